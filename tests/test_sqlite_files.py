"""What lies beside a bank file and would lead SQLite to other files: found before SQLite meets it."""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.legacy import legacy_banks
from ipy_memory.backends.mnemopi.store.write import remember
from ipy_memory.clock import FixedClock
from ipy_memory.errors import BankError, MemoryToolkitError
from ipy_memory.explore.banks import bank_rows
from ipy_memory.session import MemorySession, open_session
from ipy_memory.sqlite_files import named_by, unsafe_neighbour

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
MAGIC = bytes.fromhex("d9d505f920a163d7")
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mnemopi.db"
    with Bank.open(path, "default", clock=FixedClock(NOW)) as bank:
        remember(bank, "The harbour opens at six")
        bank.connection.execute("PRAGMA journal_mode = DELETE")
    return path


def session(path: Path) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/work/shop",
        database=path,
        settings={"mnemopi.scoping": "global"},
        agent_dir=path.parent / "agent",
        env={"HOME": str(path.parent)},
        clock=FixedClock(NOW),
    )


def journal(path: Path, name: str | bytes = b"", *, checksum: int | None = None) -> bytes:
    """Return a journal that SQLite rolls back: the second page as it is, and the name of a further file."""
    page = path.read_bytes()[PAGE : 2 * PAGE]
    header = (MAGIC + struct.pack(">5I", 1, 0, path.stat().st_size // PAGE, 512, PAGE)).ljust(512, b"\0")
    record = struct.pack(">I", 2) + page + struct.pack(">I", sum(page[PAGE - 200 : 0 : -200]))
    if not name:
        return header + record
    raw = os.fsencode(name)
    total = sum(raw) & 0xFFFFFFFF if checksum is None else checksum
    return (
        header + record + struct.pack(">I", (1 << 30) // PAGE + 1) + raw + struct.pack(">2I", len(raw), total) + MAGIC
    )


def test_sqlite_itself_deletes_the_file_that_such_a_journal_names(path: Path, tmp_path: Path) -> None:
    """The made-up journal is one that SQLite takes: without this, the tests below would show nothing."""
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    path.with_name("mnemopi.db-journal").write_bytes(journal(path, str(victim)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM working_memory").fetchone()
    assert not victim.exists()


ACTIONS: dict[str, Callable[[MemorySession], object]] = {
    "recall": lambda session: session.recall("harbour"),
    "recall without counting": lambda session: session.recall("harbour", touch=False),
    "retain": lambda session: session.retain("Another one"),
    "browse": lambda session: session.memories(),
    "stats": lambda session: session.stats(),
    "diagnose": lambda session: session.diagnose(),
    "clear": lambda session: session.clear(),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_hot_journal_that_names_another_file_deletes_nothing(path: Path, tmp_path: Path, action: str) -> None:
    """A03: no way to the bank rolls such a journal back; the message says what lies there."""
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    beside = path.with_name("mnemopi.db-journal")
    beside.write_bytes(journal(path, str(victim)))
    before = path.read_bytes(), beside.read_bytes()
    said = ""
    with session(path) as opened:
        try:
            said = str(ACTIONS[action](opened))
        except MemoryToolkitError as error:
            said = error.one_line()
    assert victim.read_text() == "precious"
    assert (path.read_bytes(), beside.read_bytes()) == before
    assert "mnemopi.db-journal" in said
    assert str(victim) in said


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "folder", "pipe"])
def test_a_link_or_a_folder_beside_a_bank_is_not_followed(path: Path, tmp_path: Path, ending: str, kind: str) -> None:
    keys = tmp_path / "authorized_keys"
    keys.write_text("ssh-ed25519 AAAA")
    beside = path.with_name(f"mnemopi.db{ending}")
    if kind == "link":
        beside.symlink_to(keys)
    elif kind == "dangling link":
        beside.symlink_to(tmp_path / "absent")
    elif kind == "hard link":
        beside.hardlink_to(keys)
    elif kind == "folder":
        beside.mkdir()
    else:
        os.mkfifo(beside)
    found = unsafe_neighbour(path)
    assert found is not None
    assert found.path == beside
    for opener in (Bank.open, Bank.open_for_recall, Bank.open_readonly):
        with pytest.raises(
            BankError, match=f"mnemopi.db{ending}, which SQLite uses beside the bank, is (a|not) "
        ) as caught:
            opener(path, "default", clock=FixedClock(NOW))
        assert caught.value.hint
    assert keys.read_text() == "ssh-ed25519 AAAA"
    assert not (tmp_path / "absent").exists()


def test_the_files_beside_the_target_of_a_linked_bank_are_looked_at(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "mnemopi.db"
    link.parent.mkdir()
    link.symlink_to(path)
    assert unsafe_neighbour(link) is None
    path.with_name("mnemopi.db-wal").symlink_to(tmp_path / "absent")
    found = unsafe_neighbour(link)
    assert found is not None
    assert found.path == path.with_name("mnemopi.db-wal")


def test_an_ordinary_hot_journal_is_rolled_back_by_a_writer_and_explained_to_a_reader(path: Path) -> None:
    beside = path.with_name("mnemopi.db-journal")
    beside.write_bytes(journal(path))
    assert unsafe_neighbour(path) is None
    with pytest.raises(BankError, match="in the middle of a write") as caught:
        Bank.open_readonly(path, "default", clock=FixedClock(NOW))
    assert "Check the rights" not in (caught.value.hint or "")
    with session(path) as opened:
        assert opened.recall("harbour").hits
    assert not beside.exists()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("{path}-mj0A1B2C9D4", True),
        ("{path}-mj0a1b2c9d4", False),
        ("{path}-mj0A1B2C9D4.txt", False),
        ("{path}-mj/../victim", False),
        ("{path}", False),
        ("{folder}/other.db-mj0A1B2C9D4", False),
        ("relative", False),
        ("x" * 5000, False),
    ],
)
def test_only_the_journal_of_a_transaction_of_this_bank_may_be_named(path: Path, name: str, safe: bool) -> None:
    full = name.format(path=path, folder=path.parent)
    path.with_name("mnemopi.db-journal").write_bytes(journal(path, full))
    assert (unsafe_neighbour(path) is None) == safe


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", None),
        (b"short", None),
        (MAGIC, None),
        (struct.pack(">2I", 4, 0) + MAGIC, None),
        (b"a" + struct.pack(">2I", 4, 0) + MAGIC, "a"),
        (b"name" + struct.pack(">2I", 4, 0) + MAGIC, "name"),
        (b"na\0e" + struct.pack(">2I", 4, 0) + MAGIC, "na"),
        (b"name" + struct.pack(">2I", 0xFFFFFFFF, 0) + MAGIC, "name"),
        (b"name" + struct.pack(">2I", 4, 0) + MAGIC[:-1] + b"\0", None),
    ],
)
def test_a_journal_of_any_bytes_is_read_without_an_error(tmp_path: Path, content: bytes, named: str | None) -> None:
    file = tmp_path / "x-journal"
    file.write_bytes(content)
    assert named_by(file) == named
    assert named_by(tmp_path / "absent") is None


def test_a_legacy_bank_with_such_a_neighbour_is_passed_over_with_the_reason(path: Path, tmp_path: Path) -> None:
    banks = tmp_path / "banks" / "old"
    banks.mkdir(parents=True)
    path.rename(banks / "mnemopi.db")
    (banks / "mnemopi.db-shm").symlink_to(tmp_path / "absent")
    [verdict] = legacy_banks(tmp_path / "mnemopi.db", "/work/shop", ())
    assert not verdict.rescued
    assert verdict.reason == "mnemopi.db-shm beside it is a symbolic link"
    assert not (tmp_path / "absent").exists()


def test_such_a_bank_beside_healthy_ones_blocks_none_of_them(path: Path, tmp_path: Path) -> None:
    with session(path) as opened:
        opened.retain("Another harbour")
    bad = tmp_path / "banks" / "bad" / "mnemopi.db"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(path.read_bytes())
    bad.with_name("mnemopi.db-wal").symlink_to(tmp_path / "absent")
    with session(path) as opened:
        assert opened.recall("harbour").hits
        rows = {row.name: row.error for row in bank_rows(opened)}
    assert rows["default"] is None
    assert "is a symbolic link" in (rows["bad"] or "")
