"""The full-text indexes of a bank: whether they match its rows, and how one is made again, however damaged."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.connection import was_interrupted
from ipy_memory.backends.mnemopi.db.schema import create_schema, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

_OWN_ROWS = "SELECT id, COALESCE(embed_text, content) FROM working_memory"
_PARTS = ("data", "idx", "content", "docsize", "config")
"""The tables in which a full-text index keeps itself, by the ends of their names."""


def fault(connection: sqlite3.Connection, index: str) -> str:
    """Return in words how an index differs from the rows; nothing if it matches them.

    The check belongs to the statements that write, so the connection is one to a copy.
    """
    try:
        connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
        return _difference(connection) if index == "fts_working" else ""
    except sqlite3.DatabaseError as error:
        if was_interrupted(error):
            raise
        return f"the full-text index is damaged: {error}"


def rebuild(connection: sqlite3.Connection, index: str, now: str) -> None:
    """Make an index again from the rows, inside a transaction; the rows themselves are not touched."""
    drop_virtual(connection, index)
    create_schema(connection, now)
    if index == "fts_working":
        connection.execute(f"INSERT INTO fts_working (id, content) {_OWN_ROWS} ORDER BY rowid")
    else:
        connection.execute(f"INSERT INTO {index}({index}) VALUES ('rebuild')")


def drop_virtual(connection: sqlite3.Connection, name: str) -> None:
    """Drop an index, or the virtual table of another program, also where SQLite cannot open it."""
    try:
        connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
    except sqlite3.DatabaseError as error:
        if was_interrupted(error):
            raise
        # SQLite opens what it drops. What cannot be opened is struck from the list of tables instead.
        connection.execute("PRAGMA writable_schema = ON")
        try:
            connection.execute("DELETE FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage = 0", (name,))
        finally:
            connection.execute("PRAGMA writable_schema = RESET")
    for part in _PARTS:
        _drop_part(connection, f"{name}_{part}")


def _drop_part(connection: sqlite3.Connection, name: str) -> None:
    for (kind,) in connection.execute(
        "SELECT type FROM sqlite_master WHERE name = ? AND type IN ('table', 'view')", (name,)
    ).fetchall():
        connection.execute(f"DROP {kind} {quoted(name)}")


def _difference(connection: sqlite3.Connection) -> str:
    """Say how the index over working memories, which keeps its own texts, differs from the rows."""
    indexed = _counted(connection.execute("SELECT id, content FROM fts_working"))
    stored = _counted(connection.execute(_OWN_ROWS))
    missing, surplus = (stored - indexed).total(), (indexed - stored).total()
    said = [(missing, "memories are not in it as they are stored"), (surplus, "entries belong to no memory of now")]
    return ", ".join(f"{number} {words}" for number, words in said if number)


def _counted(rows: Iterable[tuple[object, object]]) -> Counter[tuple[object, int]]:
    # Texts are told apart by their hashes, so that no more than one is held at a time.
    return Counter((id_, hash(text)) for id_, text in rows)
