"""One open bank: how it is opened, its transactions, and that reading leaves it alone."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db import connection as connection_module
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.clock import FixedClock
from ipy_memory.errors import (
    BankError,
    BankNotFoundError,
    DiskFullError,
    ReadOnlyBankError,
    RecallCancelled,
)

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_missing_bank_is_made_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "mnemopi.db"
    with pytest.raises(BankNotFoundError):
        Bank.open(path, "proj", clock=CLOCK, create=False)
    assert not path.parent.exists()
    Bank.open(path, "proj", clock=CLOCK).close()
    assert path.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_made_is_the_users_alone(tmp_path: Path, umask: int) -> None:
    """A13: whatever the umask is, with the files that SQLite puts beside a bank."""
    path = tmp_path / "deep" / "er" / "mnemopi.db"
    before = os.umask(umask)
    try:
        with Bank.open(path, "proj", clock=CLOCK):
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("mnemopi.db", "mnemopi.db-wal", "mnemopi.db-shm"), 0o600)
    assert [folder.stat().st_mode & 0o777 for folder in list(path.parents)[:2]] == [0o700, 0o700]


def test_what_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "shared" / "mnemopi.db"
    Bank.open(path, "proj", clock=CLOCK).close()
    path.chmod(0o664)
    path.parent.chmod(0o775)
    Bank.open(path, "proj", clock=CLOCK).close()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o664, 0o775)


def test_a_bank_that_is_a_link_to_nothing_yet_is_made_where_it_leads(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    path.symlink_to(tmp_path / "target.db")
    Bank.open(path, "proj", clock=CLOCK).close()
    assert (tmp_path / "target.db").stat().st_size
    assert path.is_symlink()


def test_a_statement_that_reads_for_ever_is_stopped(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """A15: with an error of the family, not as if the user had pressed Ctrl-C."""
    monkeypatch.setattr(connection_module, "READ_SECONDS", 0.05)
    for hold in (bank.reading, bank.snapshot):
        with pytest.raises(BankError, match="Reading took longer than") as caught, hold():
            bank.connection.execute(FOREVER).fetchone()
        assert caught.value.hint
    with bank.transaction() as connection:
        connection.execute(INSERT, ("a",))
    assert stored(bank) == ["a"]


def test_an_interrupt_after_a_late_statement_is_an_interrupt(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "READ_SECONDS", 0.05)
    with pytest.raises(BankError), bank.reading():
        bank.connection.execute(FOREVER).fetchone()
    with pytest.raises(KeyboardInterrupt), bank.reading():
        raise KeyboardInterrupt


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
    from ipy_memory.backends.mnemopi.config import engine_config

    config = engine_config({"MNEMOPI_DB_PAGE_SIZE": str(size)})
    with Bank.open(path, "proj", clock=CLOCK, config=config) as bank:
        assert bank.connection.execute("PRAGMA page_size").fetchone() == (size,)


@pytest.mark.parametrize("text", ["", "1000", "131072", "256", "-512", "abc"])
def test_an_odd_page_size_is_passed_over(text: str) -> None:
    from ipy_memory.backends.mnemopi.config import engine_config

    assert engine_config({"MNEMOPI_DB_PAGE_SIZE": text}).page_size is None
