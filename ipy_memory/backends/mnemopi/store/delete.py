"""Taking memories out of a bank: with all that hangs on them, by age and number, and down to the last byte."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.connection import was_interrupted
from ipy_memory.backends.mnemopi.db.copies import copy_bank
from ipy_memory.backends.mnemopi.db.schema import create_schema, quoted
from ipy_memory.backends.mnemopi.db.triggers import drop_virtual
from ipy_memory.errors import BankError, BusyBankError
from ipy_memory.jscompat.dates import iso

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.bank import Bank

TRIM_AGE_MS = 24 * 3_600_000
TRIM_ROWS = 1000

_CHUNK = 400
_DEPENDENTS = (
    ("annotations", "memory_id"),
    ("memory_embeddings", "memory_id"),
    ("memoria_facts", "source_memory_id"),
    ("memoria_instructions", "source_memory_id"),
    ("memoria_kg", "source_memory_id"),
    ("memoria_preferences", "source_memory_id"),
    ("memoria_timelines", "source_memory_id"),
    ("gists", "memory_id"),
)
_OWNED = (*_DEPENDENTS, ("facts", "source_msg_id"))
_FTS = ("fts_working", "fts_episodes", "fts_facts")


def cascade_delete(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Delete working memories with everything that was made from them; triples stay, as in the real system."""
    ids = list(ids)
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        marks = _marks(chunk)
        for node in _nodes(connection, chunk):
            connection.execute("DELETE FROM graph_edges WHERE source = :node OR target = :node", {"node": node})
        connection.execute(f"DELETE FROM facts WHERE source_msg_id IN {marks}", chunk)
        for table, column in _DEPENDENTS:
            connection.execute(f"DELETE FROM {table} WHERE {column} IN {marks}", chunk)
        connection.execute(f"DELETE FROM working_memory WHERE id IN {marks}", chunk)


def _nodes(connection: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """Return by which names the graph knows memories: themselves, their gists and their facts."""
    facts = connection.execute(f"SELECT fact_id FROM facts WHERE source_msg_id IN {_marks(ids)}", ids)
    return [*ids, *(f"gist_{memory_id}" for memory_id in ids), *(row[0] for row in facts)]


def hanging_on(connection: sqlite3.Connection, memory_id: str) -> dict[str, int]:
    """Return how many rows of which table :func:`cascade_delete` deletes along with a memory."""
    counts = {
        table: connection.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (memory_id,)).fetchone()[0]
        for table, column in _OWNED
    }
    nodes = _nodes(connection, [memory_id])
    edges = f"SELECT count(*) FROM graph_edges WHERE source IN {_marks(nodes)} OR target IN {_marks(nodes)}"
    counts["graph_edges"] = connection.execute(edges, nodes * 2).fetchone()[0]
    return {table: number for table, number in counts.items() if number}


def trim(bank: Bank) -> list[str]:
    """Delete what the real engine deletes at each insert: unconsolidated rows over a day old, or over a thousand.

    Rows that were imported stay. The caller holds the transaction and has promoted whatever must not be lost.
    """
    ids = [
        row[0]
        for row in bank.connection.execute(
            "WITH open AS (SELECT id, timestamp, rowid AS place FROM working_memory"
            " WHERE session_id = ? AND consolidated_at IS NULL AND COALESCE(trust_tier, '') <> 'IMPORTED')"
            " SELECT id FROM open WHERE timestamp < ?"
            " OR id NOT IN (SELECT id FROM open ORDER BY timestamp DESC, place DESC LIMIT ?)",
            (bank.name, iso(bank.clock.now_ms() - TRIM_AGE_MS), TRIM_ROWS),
        )
    ]
    cascade_delete(bank.connection, ids)
    return ids


def delete_traces(connection: sqlite3.Connection, memory_id: str) -> None:
    """Delete what a cascade leaves of a memory: its triples and the notes of its reviews."""
    connection.execute("DELETE FROM triples WHERE source = ?", (memory_id,))
    connection.execute("DELETE FROM memory_validations WHERE memory_id = ?", (memory_id,))


def orphans(connection: sqlite3.Connection) -> dict[str, int]:
    """Return for each table that hangs on memories how many of its rows belong to none any more."""
    return {
        table: connection.execute(f"SELECT count(*) FROM {table} WHERE {_gone(column)}").fetchone()[0]
        for table, column in _OWNED
    }


def delete_orphans(connection: sqlite3.Connection) -> dict[str, int]:
    """Delete the rows that belong to no memory any more; return how many of which table."""
    deleted = {}
    for table, column in _OWNED:
        if number := connection.execute(f"DELETE FROM {table} WHERE {_gone(column)}").rowcount:
            deleted[table] = number
    return deleted


def _gone(column: str) -> str:
    return (
        f"{column} <> '' AND NOT EXISTS (SELECT 1 FROM working_memory WHERE id = {column})"
        f" AND NOT EXISTS (SELECT 1 FROM episodic_memory WHERE id = {column})"
    )


def scrub(bank: Bank) -> None:
    """Rewrite the file so that no byte of a deleted text is left in pages, full-text indexes or the -wal file.

    Raises
    ------
    BankError
        The rows are deleted, but the file could not be rewritten: there is no room for that, or another process reads
        the bank, so that old pages had to stay.
    """
    try:
        _rewrite(bank)
    except BankError as error:
        raise type(error)(
            f"The memory is deleted, but its text may still be in free pages of the file: {error.message}",
            where=bank.where,
            hint="see to the cause, then purge again with the same id",
        ) from error


def _rewrite(bank: Bank) -> None:
    with bank.rewriting() as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("VACUUM")
        with bank.transaction():
            # VACUUM may renumber rows, and the indexes point at row numbers.
            for table in _FTS:
                connection.execute(f"INSERT INTO {table}({table}) VALUES ('rebuild')")
                connection.execute(f"INSERT INTO {table}({table}) VALUES ('optimize')")
                connection.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
        connection.execute("VACUUM")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise BusyBankError(
            "another process holds old pages of the bank.",
            where=bank.where,
            hint="end what reads it, then purge again",
        )


def _marks(values: Sequence[str]) -> str:
    return "(" + ",".join("?" * len(values)) + ")"


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
