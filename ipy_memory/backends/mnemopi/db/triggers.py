"""Triggers that a bank's schema does not have: they never run from a connection of ours.

A trigger in somebody's file can delete what is stored, or change it unseen. SQLite offers Python no switch for single
triggers, so a transaction takes the foreign ones out before its first statement and puts them back before its commit:
nobody else ever sees the file without them, and a rollback restores them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.schema import REPLACED_TRIGGERS, TRIGGERS, quoted, same_sql
from ipy_memory.errors import BankError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

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
