"""Clearing banks: everything goes, nothing that others acknowledge is lost, and the copies hold what was there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db import connection as connection_module
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.delete import clear_banks
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import BankError, BusyBankError, CorruptBankError
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
CLOCK = FixedClock(NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mnemopi.db"


@pytest.fixture
def session(path: Path) -> Iterator[MemorySession]:
    with opened(path) as session:
        yield session


def opened(path: Path) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/work/shop",
        database=path,
        settings={"mnemopi.scoping": "global"},
        agent_dir=path.parent / "agent",
        env={"HOME": str(path.parent)},
        clock=CLOCK,
        ids=FixedIds(),
    )


def column(path: Path, query: str) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(query)]


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        # An index counts by what it holds, not by how it is laid out.
        return [line for line in connection.iterdump() if "_data" not in line]


def test_what_another_process_stores_later_is_in_the_bank(session: MemorySession, path: Path) -> None:
    session.retain("Before")
    with Bank.open(path, "default", clock=CLOCK, ids=FixedIds(50)) as other:
        remember(other, "By the agent, before")
        session.clear()
        remember(other, "By the agent, after", RememberOptions(scope="bank"))
    assert [hit.content for hit in session.recall("agent").hits] == ["By the agent, after"]
    assert column(path, "SELECT content FROM working_memory") == ["By the agent, after"]


def test_a_cleared_bank_is_as_a_new_one(session: MemorySession, path: Path, tmp_path: Path) -> None:
    session.retain(["I prefer harbour tea", "Mira uses Redis"])
    bank = session.live_backend().writer()  # type: ignore[attr-defined]
    with bank.transaction() as connection:
        connection.execute("INSERT INTO triples (subject, predicate, object) VALUES ('a', 'b', 'c')")
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("INSERT INTO notes VALUES ('xyzzyplugh')")
        connection.execute("CREATE TABLE more (note REFERENCES notes(rowid))")
        connection.execute("CREATE VIEW seen AS SELECT text FROM notes")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TRIGGER x AFTER INSERT ON notes BEGIN SELECT 1; END")
        other.commit()
    done = session.clear()
    assert (done.emptied, done.warning) == ((path,), None)
    fresh = tmp_path / "fresh.db"
    Bank.open(fresh, "default", clock=CLOCK).close()
    assert sorted(dump(path)) == sorted(dump(fresh))
    session.retain("I prefer harbour tea")
    assert column(path, "SELECT rowid FROM working_memory") == [1]
    assert column(path, "SELECT id FROM annotations ORDER BY id") == [1, 2]


def test_no_byte_of_a_text_stays_in_the_files(session: MemorySession, path: Path) -> None:
    session.retain(["The secret word is xyzzyplugh", "x" * 100_000])
    session.clear(backup=False)
    session.close()
    assert not any(b"xyzzyplugh" in file.read_bytes() for file in path.parent.glob("mnemopi.db*"))


def test_a_table_that_nothing_here_can_open_goes_too(session: MemorySession, path: Path) -> None:
    session.retain("Before")
    session.close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE vec_chunks (text)")
        other.execute("INSERT INTO vec_chunks VALUES ('xyzzyplugh')")
        other.execute("PRAGMA writable_schema = ON")
        other.execute(
            "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)"
            " VALUES ('table', 'vec', 'vec', 0, 'CREATE VIRTUAL TABLE vec USING vec0(embedding float[4])')"
        )
        other.commit()
    with opened(path) as again:
        assert again.clear().warning is None
    assert column(path, "SELECT name FROM sqlite_master WHERE name LIKE 'vec%'") == []
    assert b"xyzzyplugh" not in path.read_bytes()


def test_the_copies_are_made_before_anything_goes(path: Path, tmp_path: Path) -> None:
    with (
        Bank.open(path, "one", clock=CLOCK, ids=FixedIds()) as one,
        Bank.open(tmp_path / "two.db", "two", clock=CLOCK, ids=FixedIds()) as two,
    ):
        remember(one, "kept")
        remember(two, "kept too")
        blocked = tmp_path / "file"
        blocked.write_bytes(b"")
        with pytest.raises(BankError, match="not copied"):
            clear_banks([one, two], blocked / "copies")
        assert column(path, "SELECT content FROM working_memory") == ["kept"]
        done = clear_banks([one, two], tmp_path / "agent" / "ipy_memory" / "copies")
    assert [column(copy, "SELECT content FROM working_memory") for copy in done.copies] == [["kept"], ["kept too"]]
    assert column(path, "SELECT content FROM working_memory") == []


def test_a_bank_that_is_held_by_a_writer_keeps_all_of_them(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        Bank.open(path, "one", clock=CLOCK, ids=FixedIds()) as one,
        Bank.open(tmp_path / "two.db", "two", clock=CLOCK, ids=FixedIds(), patience_ms=0) as two,
        closing(sqlite3.connect(two.path, isolation_level=None)) as other,
    ):
        remember(one, "kept")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyBankError):
            clear_banks([one, two], None)
        other.execute("ROLLBACK")
    assert column(path, "SELECT content FROM working_memory") == ["kept"]


def test_a_reader_with_old_pages_is_named(session: MemorySession, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session.retain("Before")
    monkeypatch.setattr(connection_module, "BUSY_MS", 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM working_memory").fetchone()
        done = session.clear()
    assert "another process" in (done.warning or "")
    assert column(path, "SELECT content FROM working_memory") == []


def test_a_file_that_cannot_be_read_is_left_and_said(path: Path) -> None:
    with opened(path) as session:
        session.retain("Before")
    raw = bytearray(path.read_bytes())
    raw[100:2000] = b"\xff" * 1900
    path.write_bytes(raw)
    for backup in (True, False):
        with opened(path) as session, pytest.raises(CorruptBankError):
            session.clear(backup=backup)
    assert path.read_bytes() == bytes(raw)
