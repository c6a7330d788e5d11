"""After a normal end a copy of the bank file alone holds everything that was acknowledged."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import remember
from ipy_memory.clock import FixedClock, FixedIds

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
CLOCK = FixedClock(NOW)

_LEFT_OPEN = """
import sys
from ipy_memory.session import open_session
path, folder = sys.argv[1:]
session = open_session("mnemopi", cwd="/w", database=path, settings={"mnemopi.scoping": "global"},
                       agent_dir=folder, env={"HOME": folder})
session.retain("The harbour opens at six")
session.recall("harbour")
"""


def alone(path: Path) -> list[str]:
    """Return the memories in a copy of the file alone."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as connection:
        return [text for (text,) in connection.execute("SELECT content FROM working_memory")]


@pytest.mark.parametrize("reader", [False, True])
def test_a_process_that_ends_leaves_all_in_the_file(tmp_path: Path, reader: bool) -> None:
    """B10: nobody closed the session; a program that only has the bank open changes nothing of that."""
    path = tmp_path / "mnemopi.db"
    Bank.open(path, "default", clock=CLOCK).close()
    with closing(sqlite3.connect(path)) as other:
        if reader:
            other.execute("SELECT count(*) FROM working_memory").fetchone()
        subprocess.run([sys.executable, "-c", _LEFT_OPEN, path, tmp_path], check=True, timeout=120)
        assert alone(path) == ["The harbour opens at six"]


def test_a_reader_in_the_middle_of_a_transaction_loses_nothing(tmp_path: Path) -> None:
    """SQLite then moves a part only: until the reader is done, the file and its -wal belong together."""
    path = tmp_path / "mnemopi.db"
    bank = Bank.open(path, "default", clock=CLOCK, ids=FixedIds())
    remember(bank, "Before")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM working_memory").fetchone()
        remember(bank, "After")
        bank.close()
        copy = tmp_path / "both.db"
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{copy}{ending}")
        with closing(sqlite3.connect(copy)) as both:
            assert both.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert both.execute("SELECT count(*) FROM working_memory").fetchone() == (2,)
    with Bank.open_readonly(path, "default", clock=CLOCK) as again:
        rows = again.connection.execute("SELECT content FROM working_memory").fetchall()
    assert rows == [("Before",), ("After",)]


def test_closing_waits_for_no_writer_and_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    bank = Bank.open(path, "default", clock=CLOCK, ids=FixedIds())
    remember(bank, "Kept")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        bank.close()
        bank.close()
        assert alone(path) == ["Kept"]
