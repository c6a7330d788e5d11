"""The connection to a bank's file: what cannot be opened and why, who is waited for, what is released."""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db import connection as connection_module
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.connection import bank_errors
from ipy_memory.clock import FixedClock
from ipy_memory.errors import (
    BankError,
    BankNotFoundError,
    BusyBankError,
    CorruptBankError,
    MissingFeatureError,
    NotABankError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CLOCK = FixedClock("2026-06-01T12:00:00.000Z")
INSERT = "INSERT INTO scratchpad (id, content) VALUES ('a', '')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mnemopi.db"


@pytest.fixture
def bank(path: Path) -> Iterator[Bank]:
    with Bank.open(path, "proj", clock=CLOCK) as opened:
        yield opened


def notes(bank: Bank) -> list[str]:
    return [row[0] for row in bank.connection.execute("SELECT id FROM scratchpad")]


def not_sqlite(path: Path) -> None:
    path.write_bytes(b"this is no database at all, but long enough to look like one " * 20)


def empty_file(path: Path) -> None:
    path.touch()


def folder(path: Path) -> None:
    path.mkdir()


def damaged(path: Path) -> None:
    Bank.open(path, "proj", clock=CLOCK).close()
    raw = bytearray(path.read_bytes())
    raw[100:2000] = b"\xff" * 1900
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda path: None, BankNotFoundError),
        (folder, NotABankError),
        (not_sqlite, NotABankError),
        (empty_file, BankNotFoundError),
        (damaged, CorruptBankError),
    ],
)
def test_each_unusable_file_has_its_error(path: Path, make: Callable[[Path], None], error: type[BankError]) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error) as caught:
        Bank.open_readonly(path, "proj", clock=CLOCK)
    assert type(caught.value) is error
    assert str(path) in (caught.value.where or "")
    assert caught.value.hint
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize(("make", "error"), [(not_sqlite, NotABankError), (damaged, CorruptBankError)])
def test_opening_for_writing_leaves_an_unusable_file_alone(
    path: Path, make: Callable[[Path], None], error: type[BankError]
) -> None:
    make(path)
    before = path.read_bytes()
    with pytest.raises(error):
        Bank.open(path, "proj", clock=CLOCK)
    assert path.read_bytes() == before


def test_an_unreadable_file_is_named(path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module.os, "access", lambda *_: False)
    with pytest.raises(BankError, match="Permission denied"):
        Bank.open_readonly(path, "proj", clock=CLOCK)


def test_a_python_without_full_text_search_is_said(path: Path) -> None:
    with pytest.raises(MissingFeatureError) as caught, bank_errors(path, "proj"):
        raise sqlite3.OperationalError("no such module: fts5")
    assert "FTS5" in (caught.value.hint or "")


def test_other_sqlite_errors_keep_their_words(bank: Bank) -> None:
    with pytest.raises(BankError, match="no such table: absent"), bank.reading():
        bank.connection.execute("SELECT * FROM absent")


def test_a_busy_bank_is_said_and_not_changed(path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "BUSY_MS", 0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyBankError), bank.transaction():
        pytest.fail("the transaction must not begin")
    other.execute("ROLLBACK")
    other.close()
    with bank.transaction() as connection:
        connection.execute(INSERT)
    assert notes(bank) == ["a"]


def test_a_busy_bank_is_waited_for(path: Path, bank: Bank) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    waits = threading.Event()

    def let_go() -> None:
        waits.wait(60)
        other.execute("COMMIT")

    writer = threading.Thread(target=let_go)
    writer.start()
    bank.connection.set_trace_callback(lambda statement: waits.set() if "BEGIN" in statement else None)
    with bank.transaction() as connection:
        connection.execute(INSERT)
    writer.join()
    other.close()
    assert notes(bank) == ["a"]


def test_a_folder_that_cannot_be_written_gets_no_side_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Bank.open(path, "proj", clock=CLOCK).close()
    real = os.access
    monkeypatch.setattr(connection_module.os, "access", lambda where, mode: mode != os.W_OK and real(where, mode))
    with Bank.open_readonly(path, "proj", clock=CLOCK) as bank:
        assert bank.connection.execute("SELECT count(*) FROM working_memory").fetchone() == (0,)
        assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_paths_may_hold_any_sign(tmp_path: Path) -> None:
    path = tmp_path / "a b?c#d%41" / "mnemopi.db"
    Bank.open(path, "proj", clock=CLOCK).close()
    assert path.is_file()
    with Bank.open_readonly(path, "proj", clock=CLOCK) as bank:
        assert notes(bank) == []


def test_closing_lets_go_of_a_file_that_was_read_in_part(path: Path, bank: Bank) -> None:
    kept = bank.connection.execute("SELECT name FROM sqlite_schema")
    assert kept.fetchone() is not None
    bank.close()
    bank.close()
    # SQLite takes the log away when nothing holds the file any more.
    assert not path.with_name(f"{path.name}-wal").exists()
