"""Where a bank lies, and what threatens it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipy_memory.backends.mnemopi.db.copies import conflict_copies, file_system, synced_folder, warnings_of

MOUNTED = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:40 / /home/ana/net rw - nfs4 server:/export rw
23 21 0:41 / /home/ana/my\040share rw shared:2 master:1 - fuse.sshfs ana@host:/ rw
24 21 0:42 / /over rw - cifs //host/x rw
25 21 0:43 / /over rw - tmpfs tmpfs rw
a line that is none
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    (tmp_path / "mountinfo").write_text(MOUNTED)
    return tmp_path / "mountinfo"


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/ana/net/x", "nfs4"),
        ("/home/ana/network", "ext4"),
        ("/home/ana/my share", "fuse.sshfs"),
        ("/over/x", "tmpfs"),
        ("/", "ext4"),
    ],
)
def test_the_nearest_mount_says_the_type(mounts: Path, folder: str, kind: str) -> None:
    """C21: by file-system type."""
    assert file_system(Path(folder), mounts) == kind
    warned = [one for one in warnings_of(Path(folder, "mnemopi.db"), mounts) if f"({kind})" in one]
    assert bool(warned) is (kind in {"nfs4", "fuse.sshfs"})


def test_without_a_list_of_mounts_nothing_is_said(tmp_path: Path) -> None:
    assert file_system(tmp_path, tmp_path / "none") is None
    assert warnings_of(tmp_path / "mnemopi.db", tmp_path / "none") == []


@pytest.mark.parametrize("name", ["Dropbox", "OneDrive - Work", "Google Drive", "Nextcloud", "iCloud Drive"])
def test_synced_folders_are_known_by_their_name(tmp_path: Path, name: str) -> None:
    assert synced_folder(tmp_path / name / "a" / "b") == tmp_path / name
    assert synced_folder(tmp_path / f"not-{name}" / "a") is None


def test_syncthing_marks_its_folder(tmp_path: Path) -> None:
    (tmp_path / "x" / ".stfolder").mkdir(parents=True)
    assert synced_folder(tmp_path / "x" / "a") == tmp_path / "x"
    [warning] = warnings_of(tmp_path / "x" / "a" / "mnemopi.db", tmp_path / "none")
    assert "synced folder (x)" in warning


def test_conflict_copies_are_named(tmp_path: Path) -> None:
    """C21: what a syncing service makes of two versions."""
    for name in ("mnemopi.db", "mnemopi.db-wal", "mnemopi (Ana's conflicted copy 2026-06-01).db", "other conflict.db"):
        (tmp_path / name).touch()
    (tmp_path / "mnemopi.sync-conflict-20260601-120000-ABC.db").touch()
    copies = conflict_copies(tmp_path / "mnemopi.db")
    assert len(copies) == 2
    [warning] = warnings_of(tmp_path / "mnemopi.db", tmp_path / "none")
    assert all(copy.name in warning for copy in copies)
    assert conflict_copies(tmp_path / "none" / "mnemopi.db") == []
