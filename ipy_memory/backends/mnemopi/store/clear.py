"""Clearing banks by their rows, in one transaction each, so that nobody who has a bank open loses what comes later.

A file that is deleted while another process has it open takes what that process writes afterwards with it, unseen. So
the files stay, and are made as new: all tables go and those of the schema come back, the text leaves the free pages
too. The copy is made in the same transaction, so that it holds every memory that was acknowledged before.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.connection import was_interrupted
from ipy_memory.backends.mnemopi.db.copies import copy_bank
from ipy_memory.backends.mnemopi.db.indexes import drop_virtual
from ipy_memory.backends.mnemopi.db.schema import create_schema, quoted
from ipy_memory.backends.mnemopi.store.delete import scrub
from ipy_memory.errors import BankError
from ipy_memory.jscompat.dates import iso

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NOT_OURS = "NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


@dataclass(frozen=True, slots=True)
class Emptied:
    """What a clear did: the bank files that hold no memory any more, the copies, and what could not be done."""

    files: tuple[Path, ...] = ()
    copies: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def clear_banks(banks: Sequence[Bank], copies: Path | None) -> Emptied:
    """Make banks as new; either all of them are copied first, or none is changed.

    Parameters
    ----------
    banks
        Open for writing.
    copies
        The folder for copies of them; ``None`` makes none.

    Raises
    ------
    BankError
        A bank could not be copied or written. It, and those that come before it in ``banks``, hold what they held.
    """
    made, notes = [], []
    for bank in banks:
        with bank.reading() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA foreign_keys = OFF")  # a foreign table may refer to one that goes first
    with ExitStack() as writing:
        for bank in banks:
            writing.enter_context(bank.rebuilding())
        if copies is not None:
            made = [_copied(bank, copies) for bank in banks]
        for bank in banks:
            notes += [f"{bank.name}: {reason}" for reason in _emptied(bank)]
    for bank in banks:
        bank.memo.clear()
        with bank.reading() as connection:
            connection.execute("PRAGMA foreign_keys = ON")
        try:
            scrub(bank)
        except BankError as error:
            notes.append(f"{bank.name}: {error.message}")
    return Emptied(tuple(bank.path for bank in banks), tuple(made), tuple(notes))


def _copied(bank: Bank, copies: Path) -> Path:
    # SQLite copies nothing from a connection that is writing; another one sees the last commit, which is the same.
    with Bank.open_readonly(bank.path, bank.name, clock=bank.clock) as reader:
        return copy_bank(reader, copies)


def _emptied(bank: Bank) -> list[str]:
    """Drop everything and create the schema again, inside a transaction; return what could not be dropped and why."""
    connection = bank.connection
    left: dict[str, str] = {}
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        connection.execute(f"DROP VIEW {quoted(name)}")
    virtual = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0"
    for (name,) in connection.execute(virtual).fetchall():
        try:
            drop_virtual(connection, name)
        except sqlite3.DatabaseError as error:
            if was_interrupted(error):
                raise
            left[name] = str(error)
    tables = f"SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name {_NOT_OURS}"
    for (name,) in connection.execute(tables).fetchall():
        if not any(name.startswith(f"{owner}_") for owner in left):
            connection.execute(f"DROP TABLE {quoted(name)}")
    connection.execute("DELETE FROM sqlite_sequence")
    create_schema(connection, iso(bank.clock.now_ms()))
    return [f"the table {name} of another program was left as it is: {reason}" for name, reason in left.items()]
