"""Copies of banks: where they are made, that no planted name leads elsewhere, and what a killed process leaves."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db import copies as copies_module
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.copies import copies_of, copy_bank, sweep, unfinished_of
from ipy_memory.backends.mnemopi.store.memories import find, update
from ipy_memory.backends.mnemopi.store.write import remember
from ipy_memory.clock import FixedClock
from ipy_memory.errors import BankError, DiskFullError
from ipy_memory.own_files import state_path
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
CLOCK = FixedClock(NOW)
STAMP = "2026-06-01T120000Z"


@pytest.fixture
def bank(tmp_path: Path):
    with Bank.open(tmp_path / "banks" / "proj" / "mnemopi.db", "proj", clock=CLOCK) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return state_path(tmp_path / "agent", "copies")


def session(tmp_path: Path) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/work/shop",
        database=tmp_path / "mnemopi.db",
        settings={"mnemopi.scoping": "global"},
        agent_dir=tmp_path / "agent",
        env={"HOME": str(tmp_path)},
        clock=CLOCK,
    )


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_copy_holds_the_bank_as_of_now_and_nothing_lies_beside_it(bank: Bank, folder: Path) -> None:
    id_ = remember(bank, "kept")
    target = copy_bank(bank, folder)
    update(bank, id_, content="changed")
    assert names(folder) == [target.name]
    assert target.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [part for part in target.name.split(".") if len(part) != 12] == ["proj", STAMP, "backup"]
    with Bank.open_readonly(target, "proj", clock=CLOCK) as copy:
        memory = find(copy, id_)
    assert memory is not None
    assert memory.content == "kept"
    assert names(folder) == [target.name]  # no -wal: one file is the whole copy


def test_copies_of_one_moment_have_different_names_in_their_order(bank: Bank, folder: Path) -> None:
    made = [copy_bank(bank, folder) for _ in range(11)]
    assert copies_of(bank.path, folder) == made
    assert made[10].name.endswith(f"{STAMP}-11.backup")


def test_copies_of_two_banks_of_one_name_are_told_apart(bank: Bank, folder: Path, tmp_path: Path) -> None:
    with Bank.open(tmp_path / "other" / "banks" / "proj" / "mnemopi.db", "proj", clock=CLOCK) as other:
        first, second = copy_bank(bank, folder), copy_bank(other, folder)
        assert copies_of(bank.path, folder) == [first]
        assert copies_of(other.path, folder) == [second]


def test_copies_that_the_first_release_left_beside_a_bank_are_listed(bank: Bank, folder: Path) -> None:
    beside = bank.path.with_name(f"mnemopi.db.{STAMP}.backup")
    beside.write_bytes(b"")
    assert copies_of(bank.path, folder) == [beside]
    assert [beside, copy_bank(bank, folder)] == copies_of(bank.path, folder)


@pytest.mark.parametrize("planted", ["target", "folder", "nothing"])
def test_no_planted_link_is_written_through(bank: Bank, folder: Path, tmp_path: Path, planted: str) -> None:
    """A04: a link in the place of a copy, of its unfinished file, of SQLite's journal, of the whole folder."""
    keys = tmp_path / "authorized_keys"
    keys.write_text("ssh-ed25519 AAAA")
    remember(bank, "kept")
    if planted == "folder":
        folder.parent.mkdir(parents=True)
        folder.symlink_to(tmp_path)
        with pytest.raises(BankError, match="not copied"):
            copy_bank(bank, folder)
    else:
        expected = copy_bank(bank, folder)
        expected.unlink()
        for name in (expected.name, f".{expected.name}.part", f"{expected.name}-journal", f"{expected.name}-wal"):
            link = folder / name
            link.symlink_to(keys if planted == "target" else tmp_path / "absent")
        beside = bank.path.parent / f".mnemopi.db.{STAMP}.backup.part"
        beside.symlink_to(keys)
        made = copy_bank(bank, folder)
        assert made.name == expected.name.replace(".backup", "-2.backup")
    assert keys.read_text() == "ssh-ed25519 AAAA"
    assert not (tmp_path / "absent").exists()


def test_sqlite_makes_no_file_beside_an_unfinished_copy(
    bank: Bank, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    monkeypatch.setattr(bank, "check_cancelled", lambda: seen.update(names(folder)))
    monkeypatch.setattr(copies_module, "_PAGES_AT_ONCE", 5)
    copy_bank(bank, folder)
    assert len(seen) == 1
    assert seen.pop().endswith(".part")


def test_a_copy_that_cannot_be_made_says_so_and_leaves_nothing(bank: Bank, folder: Path) -> None:
    folder.parent.parent.mkdir()
    folder.parent.write_bytes(b"a file where a folder belongs")
    with pytest.raises(BankError, match=r"^The bank was not copied: ") as caught:
        copy_bank(bank, folder)
    assert caught.value.hint


def test_a_full_disk_is_said_and_leaves_nothing(bank: Bank, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = copies_module._target

    def full(partial: Path) -> sqlite3.Connection:
        copy = real(partial)
        copy.execute("PRAGMA max_page_count = 3")
        return copy

    monkeypatch.setattr(copies_module, "_target", full)
    with pytest.raises(DiskFullError, match="not copied"):
        copy_bank(bank, folder)
    assert names(folder) == []


def test_another_writer_neither_stops_a_copy_nor_comes_into_it(
    bank: Bank, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(bank, "kept")
    monkeypatch.setattr(copies_module, "_PAGES_AT_ONCE", 5)

    def write() -> None:
        with closing(sqlite3.connect(bank.path, isolation_level=None)) as other:
            other.execute("INSERT INTO scratchpad (id, content) VALUES (hex(randomblob(8)), 'later')")

    monkeypatch.setattr(bank, "check_cancelled", write)
    target = copy_bank(bank, folder)
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT count(*) FROM scratchpad").fetchone() == (0,)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_interrupted_copy_leaves_nothing(bank: Bank, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bank, "check_cancelled", pressed)
    with pytest.raises(KeyboardInterrupt):
        copy_bank(bank, folder)
    assert names(folder) == []
    assert not bank.connection.in_transaction


_KILLED = """
import os, signal, sys
from ipy_memory.clock import FixedClock
from ipy_memory.backends.mnemopi.db import copies
from ipy_memory.backends.mnemopi.db.bank import Bank
from pathlib import Path

copies._PAGES_AT_ONCE = 5
with Bank.open(sys.argv[1], "default", clock=FixedClock("2026-06-01T12:00:00.000Z")) as bank:
    bank.check_cancelled = lambda: os.kill(os.getpid(), signal.SIGKILL)
    copies.copy_bank(bank, Path(sys.argv[2]))
"""


def test_what_a_killed_copy_left_is_removed_at_the_next_start(tmp_path: Path, folder: Path) -> None:
    """B15: an unfinished copy holds memory text; the first write of the next session removes it."""
    with session(tmp_path) as first:
        first.retain("The secret word is xyzzyplugh")
    path = tmp_path / "mnemopi.db"
    done = subprocess.run([sys.executable, "-c", _KILLED, path, folder], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(unfinished_of(path, folder)) == 1
    with session(tmp_path) as second:
        second.recall("word")
        assert len(unfinished_of(path, folder)) == 1  # looking removes nothing
        second.retain("Something else")
    assert names(folder) == []


def test_an_unfinished_copy_that_is_being_made_is_left_alone(
    bank: Bank, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(bank, "kept")
    swept: list[Path] = []
    monkeypatch.setattr(copies_module, "_PAGES_AT_ONCE", 20)
    monkeypatch.setattr(bank, "check_cancelled", lambda: swept.extend(sweep(folder, bank.path)))
    made = copy_bank(bank, folder)
    assert swept == []
    assert copies_of(bank.path, folder) == [made]


def test_old_unfinished_copies_beside_a_bank_are_removed_and_links_not_followed(bank: Bank, folder: Path) -> None:
    keys = bank.path.parent / "authorized_keys"
    keys.write_text("ssh-ed25519 AAAA")
    old = bank.path.parent / f".mnemopi.db.{STAMP}.backup.part"
    link = bank.path.parent / f".mnemopi.db.{STAMP}-2.backup.part"
    new = bank.path.parent / f".mnemopi.db.{STAMP}-3.backup.part"
    old.write_bytes(b"text")
    link.symlink_to(keys)
    new.write_bytes(b"perhaps still being written by the first release")
    long_ago = time.time() - 2 * 3600
    for path in (old, link):
        os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    assert set(unfinished_of(bank.path, folder)) == {old, link, new}
    assert set(sweep(folder, bank.path)) == {old, link}
    assert keys.read_text() == "ssh-ed25519 AAAA"
    assert new.exists()


def test_two_threads_copying_at_once_get_two_copies(bank: Bank, folder: Path) -> None:
    remember(bank, "kept")
    made: list[Path] = []

    def copy() -> None:
        with Bank.open_readonly(bank.path, "proj", clock=CLOCK) as reader:
            made.append(copy_bank(reader, folder))

    threads = [threading.Thread(target=copy) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4
    assert set(copies_of(bank.path, folder)) == set(made)
