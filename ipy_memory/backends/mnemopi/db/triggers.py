"""Triggers that a bank's schema does not have: they never run from a connection of ours.

A trigger in somebody's file can delete what is stored, or change it unseen. SQLite offers Python no switch for single
triggers, so a transaction takes the foreign ones out before its first statement and puts them back before its commit:
nobody else ever sees the file without them, and a rollback restores them too.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.connection import was_interrupted
from ipy_memory.backends.mnemopi.db.schema import REPLACED_TRIGGERS, TRIGGERS, create_schema, quoted, same_sql
from ipy_memory.errors import BankError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

_UNREADABLE = "\ufffd"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of a file: its name, the table or view it belongs to, and the statement that creates it."""

    name: str
    table: str
    sql: str

    @property
    def is_own(self) -> bool:
        """Whether the schema has this very trigger."""
        return self.name in TRIGGERS and same_sql(self.sql, TRIGGERS[self.name])


def foreign_triggers(connection: sqlite3.Connection) -> list[Trigger]:
    """Return the triggers of a file that are not the schema's own, one with the name of an own one included."""
    found = connection.execute("SELECT name, tbl_name, sql FROM main.sqlite_master WHERE type = 'trigger'").fetchall()
    return [trigger for row in found if not (trigger := Trigger(*map(_text, row))).is_own]


def set_aside(connection: sqlite3.Connection, where: str) -> Sequence[Trigger]:
    """Drop the foreign triggers inside a transaction, and return them for :func:`put_back`.

    Where one has taken the name of an own trigger, the own one takes its place for the time being; for those that
    the engine itself replaces at each opening, for good.

    Raises
    ------
    BankError
        A trigger could not be put back as it was.
    """
    foreign = foreign_triggers(connection)
    for trigger in foreign:
        if _UNREADABLE in trigger.name + trigger.sql:
            raise BankError(
                "The bank has a trigger that does not belong to it and that cannot be set aside: "
                "its text is not valid UTF-8.",
                where=where,
                hint="nothing was written; remove the trigger, or use a copy of the bank from before it",
            )
        connection.execute(f"DROP TRIGGER {quoted(trigger.name)}")
        if trigger.name in TRIGGERS:
            connection.execute(TRIGGERS[trigger.name])
    return [trigger for trigger in foreign if trigger.name not in REPLACED_TRIGGERS]


def put_back(connection: sqlite3.Connection, foreign: Sequence[Trigger]) -> None:
    """Create again, before the commit, what :func:`set_aside` has dropped."""
    for trigger in foreign:
        if trigger.name in TRIGGERS:
            connection.execute(f"DROP TRIGGER {quoted(trigger.name)}")
        connection.execute(trigger.sql)


def _text(cell: object) -> str:
    return cell if isinstance(cell, str) else _UNREADABLE


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
