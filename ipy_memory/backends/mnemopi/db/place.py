"""Where a bank lies: on a disk of this machine, on a network file system, or in a folder that is synced."""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
"""Where Linux says what is mounted; elsewhere the type of a file system is not known."""

_NETWORK = re.compile(r"nfs4?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|vboxsf|fuse\.(?:sshfs|s3fs|rclone|gcsfuse)")
_SYNCED = re.compile(r"dropbox|onedrive\b.*|google ?drive|my drive|icloud.*|mobile documents|nextcloud|owncloud", re.I)
_MARKERS = (".stfolder", ".dropbox")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def warnings_of(bank: Path, mounts: Path = MOUNTS) -> list[str]:
    """Return what threatens a bank in the place where it lies.

    Parameters
    ----------
    bank
        The bank's file; it need not be there.
    mounts
        The list of mounted file systems.
    """
    found = []
    folder = Path(os.path.realpath(bank.parent))
    if (kind := file_system(folder, mounts)) and _NETWORK.fullmatch(kind):
        found.append(
            f"The bank lies on a network file system ({kind}): SQLite's locks may not work there, and two machines that"
            " write can damage it. Move it to a local disk."
        )
    if (root := synced_folder(folder)) is not None:
        found.append(
            f"The bank lies in a synced folder ({root.name}): what is synced while it is written can damage or undo it."
            " Move it to a folder that is not synced."
        )
    if copies := conflict_copies(bank):
        names = ", ".join(copy.name for copy in copies)
        found.append(f"Beside the bank lie conflict copies, whose memories are not read: {names}.")
    return found


def file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the type of the file system that holds a folder; ``None`` where it is not known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    best: tuple[int, str] | None = None
    for line in lines:
        before, dash, after = line.partition(" - ")
        fields = before.split()
        if not dash or len(fields) < 5:
            continue
        point = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4])
        # Of two mounts at one place the later one is seen.
        if folder.is_relative_to(point) and (best is None or len(point) >= best[0]):
            best = len(point), after.split()[0]
    return best[1] if best else None


def synced_folder(folder: Path) -> Path | None:
    """Return the root of the synced folder around a folder, known by its name or by the service's own mark."""
    for parent in (folder, *folder.parents):
        if _SYNCED.fullmatch(parent.name) or any((parent / mark).exists() for mark in _MARKERS):
            return parent
    return None


def conflict_copies(bank: Path) -> list[Path]:
    """Return the files beside a bank that a syncing service made of two versions of it."""
    try:
        names = sorted(entry.name for entry in os.scandir(bank.parent))
    except OSError:
        return []
    stem, suffix = bank.stem.lower(), bank.suffix.lower()
    return [
        bank.with_name(name)
        for name in names
        if name.lower().startswith(stem) and name.lower().endswith(suffix) and "conflict" in name.lower()
    ]
