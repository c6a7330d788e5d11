"""One open bank: its errors, its transactions, and that reading leaves it alone."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

from ipy_memory.clock import FixedClock
from ipy_memory.errors import (
    BankError,
    BankNotFoundError,
    BusyBankError,
    CorruptBankError,
    DiskFullError,
    MissingFeatureError,
    NotABankError,
    ReadOnlyBankError,
    RecallCancelled,
)
from ipy_memory.mnemopi import connection as connection_module
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.connection import bank_errors

CLOCK = FixedClock("2026-06-01T12:00:00.000Z")
FOREVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
INSERT = "INSERT INTO scratchpad (id, content) VALUES (?, '')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mnemopi.db"


@pytest.fixture
def bank(path: Path):
    with Bank.open(path, "proj", clock=CLOCK) as opened:
        yield opened


def stored(bank: Bank) -> list[str]:
    return [row[0] for row in bank.connection.execute("SELECT id FROM scratchpad ORDER BY id")]


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
def test_each_unusable_file_has_its_error(path: Path, make, error: type[BankError]) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error) as caught:
        Bank.open_readonly(path, "proj", clock=CLOCK)
    assert type(caught.value) is error
    assert str(path) in (caught.value.where or "")
    assert caught.value.hint
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize(("make", "error"), [(not_sqlite, NotABankError), (damaged, CorruptBankError)])
def test_opening_for_writing_leaves_an_unusable_file_alone(path: Path, make, error: type[BankError]) -> None:
    make(path)
    before = path.read_bytes()
    with pytest.raises(error):
        Bank.open(path, "proj", clock=CLOCK)
    assert path.read_bytes() == before


def test_an_unreadable_file_is_named(path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module.os, "access", lambda *_: False)
    with pytest.raises(BankError, match="Permission denied"):
        Bank.open_readonly(path, "proj", clock=CLOCK)


def test_a_missing_bank_is_made_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "mnemopi.db"
    with pytest.raises(BankNotFoundError):
        Bank.open(path, "proj", clock=CLOCK, create=False)
    assert not path.parent.exists()
    Bank.open(path, "proj", clock=CLOCK).close()
    assert path.exists()


def test_a_python_without_full_text_search_is_said(path: Path) -> None:
    with pytest.raises(MissingFeatureError) as caught, bank_errors(path, "proj"):
        raise sqlite3.OperationalError("no such module: fts5")
    assert "FTS5" in (caught.value.hint or "")


def test_other_sqlite_errors_keep_their_words(bank: Bank) -> None:
    with pytest.raises(BankError, match="no such table: absent"), bank.reading():
        bank.connection.execute("SELECT * FROM absent")


def test_a_transaction_is_all_or_nothing(bank: Bank) -> None:
    def fail() -> None:
        with bank.transaction() as connection:
            connection.execute(INSERT, ("a",))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stored(bank) == []
    with bank.transaction() as connection:
        connection.execute(INSERT, ("b",))
        with bank.transaction():
            connection.execute(INSERT, ("c",))
    assert stored(bank) == ["b", "c"]
    assert not bank.connection.in_transaction


def test_a_savepoint_fails_alone(bank: Bank) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        with bank.savepoint():
            connection.execute(INSERT, ("b",))
            with bank.savepoint():
                connection.execute(INSERT, ("c",))
            raise ZeroDivisionError

    with bank.transaction() as connection:
        with bank.savepoint():
            connection.execute(INSERT, ("a",))
        with pytest.raises(ZeroDivisionError):
            fail(connection)
        with bank.savepoint():
            connection.execute(INSERT, ("d",))
    assert stored(bank) == ["a", "d"]


def test_nothing_is_written_after_sqlite_took_a_transaction_back(bank: Bank) -> None:
    def go_on() -> None:
        with bank.transaction() as connection:
            connection.execute(INSERT, ("a",))
            connection.execute("ROLLBACK")
            with bank.savepoint():
                connection.execute(INSERT, ("b",))

    with pytest.raises(BankError, match="taken back"):
        go_on()
    assert stored(bank) == []


def test_a_busy_bank_is_said_and_not_changed(path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "BUSY_MS", 0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyBankError), bank.transaction():
        pytest.fail("the transaction must not begin")
    other.execute("ROLLBACK")
    other.close()
    with bank.transaction() as connection:
        connection.execute(INSERT, ("a",))
    assert stored(bank) == ["a"]


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
        connection.execute(INSERT, ("a",))
    writer.join()
    other.close()
    assert stored(bank) == ["a"]


def test_a_full_disk_is_said_and_nothing_half_written(bank: Bank) -> None:
    pages = bank.connection.execute("PRAGMA page_count").fetchone()[0]
    bank.connection.execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        with bank.transaction() as connection:
            connection.execute(INSERT, ("a",))
            for number in range(5000):
                connection.execute("INSERT INTO scratchpad (id, content) VALUES (?, ?)", (f"x{number}", "x" * 4000))

    with pytest.raises(DiskFullError):
        fill()
    assert stored(bank) == []


def test_reading_changes_no_byte(path: Path) -> None:
    Bank.open(path, "proj", clock=CLOCK).close()
    before = path.read_bytes()
    with Bank.open_readonly(path, "proj", clock=CLOCK) as bank:
        with pytest.raises(ReadOnlyBankError), bank.transaction():
            pytest.fail("the transaction must not begin")
        with pytest.raises(ReadOnlyBankError), bank.reading():
            bank.connection.execute(INSERT, ("a",))
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_gets_no_side_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Bank.open(path, "proj", clock=CLOCK).close()
    real = os.access
    monkeypatch.setattr(connection_module.os, "access", lambda where, mode: mode != os.W_OK and real(where, mode))
    with Bank.open_readonly(path, "proj", clock=CLOCK) as bank:
        assert bank.connection.execute("SELECT count(*) FROM working_memory").fetchone() == (0,)
        assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_bank_that_cannot_be_written_is_opened_for_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Bank.open(path, "proj", clock=CLOCK).close()
    with Bank.open_for_recall(path, "proj", clock=CLOCK) as bank:
        assert bank.writable

    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    with Bank.open_for_recall(path, "proj", clock=CLOCK) as bank:
        assert not bank.writable


def test_the_generation_follows_every_change_but_counters(path: Path, bank: Bank) -> None:
    first = bank.generation
    assert bank.generation == first
    with bank.transaction() as connection:
        connection.execute(INSERT, ("a",))
    second = bank.generation
    assert second != first
    with bank.counting() as connection:
        connection.execute("UPDATE scratchpad SET session_id = 'x'")
    assert bank.generation == second
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(INSERT, ("b",))
    other.close()
    third = bank.generation
    assert third != second
    with pytest.raises(ZeroDivisionError), bank.transaction():
        raise ZeroDivisionError
    assert bank.generation != third


@pytest.mark.claim("R-25")
def test_an_interrupt_ends_a_long_statement(bank: Bank) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def run() -> None:
        with bank.transaction() as connection:
            connection.execute(INSERT, ("a",))
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            connection.execute(FOREVER).fetchone()

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stored(bank) == []
    assert not bank.connection.in_transaction


@pytest.mark.claim("R-25")
def test_a_token_cancels_a_long_statement(bank: Bank) -> None:
    bank.cancel = threading.Event()
    threading.Timer(0.05, bank.cancel.set).start()
    with pytest.raises(RecallCancelled), bank.reading():
        bank.connection.execute(FOREVER).fetchone()
    bank.cancel = None
    assert stored(bank) == []


@pytest.mark.parametrize("size", [512, 8192])
def test_the_page_size_is_that_of_the_config(path: Path, size: int) -> None:
    from ipy_memory.mnemopi.config import engine_config

    config = engine_config({"MNEMOPI_DB_PAGE_SIZE": str(size)})
    with Bank.open(path, "proj", clock=CLOCK, config=config) as bank:
        assert bank.connection.execute("PRAGMA page_size").fetchone() == (size,)


@pytest.mark.parametrize("text", ["", "1000", "131072", "256", "-512", "abc"])
def test_an_odd_page_size_is_passed_over(text: str) -> None:
    from ipy_memory.mnemopi.config import engine_config

    assert engine_config({"MNEMOPI_DB_PAGE_SIZE": text}).page_size is None


def test_paths_may_hold_any_sign(tmp_path: Path) -> None:
    path = tmp_path / "a b?c#d%41" / "mnemopi.db"
    Bank.open(path, "proj", clock=CLOCK).close()
    assert path.is_file()
    with Bank.open_readonly(path, "proj", clock=CLOCK) as bank:
        assert stored(bank) == []


def test_closing_lets_go_of_a_file_that_was_read_in_part(path: Path, bank: Bank) -> None:
    kept = bank.connection.execute("SELECT name FROM sqlite_schema")
    assert kept.fetchone() is not None
    bank.close()
    bank.close()
    # SQLite takes the log away when nothing holds the file any more.
    assert not path.with_name(f"{path.name}-wal").exists()
