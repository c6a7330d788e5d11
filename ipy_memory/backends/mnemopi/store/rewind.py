"""A bank taken back to a moment, as far as its rows say: in a private copy only, never in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.schema import columns
from ipy_memory.backends.mnemopi.store.delete import cascade_delete, delete_orphans

if TYPE_CHECKING:
    import sqlite3

    from ipy_memory.backends.mnemopi.db.bank import Bank

_MEMORIES = ("working_memory", "episodic_memory")
_DERIVED = ("facts", "annotations", "triples", "gists", "graph_edges", "memory_embeddings")
_LATER = "julianday(COALESCE(created_at, timestamp)) > julianday(:moment)"


@dataclass(frozen=True, slots=True)
class Rewound:
    """How many rows were made later, how many memories ended later, and how many were recalled later."""

    made: int = 0
    ended: int = 0
    recalled: int = 0

    def __add__(self, other: Rewound) -> Rewound:
        return Rewound(self.made + other.made, self.ended + other.ended, self.recalled + other.recalled)


def rewind(bank: Bank, moment: str) -> Rewound:
    """Take a bank's rows back to a moment.

    Rows that were made later go, with everything that was made from them; memories that ended later are valid again,
    and those that were summarised later are not summarised. A changed text, a deleted row and earlier recall counts
    are not in a bank.

    Parameters
    ----------
    bank
        A private copy, open for writing.
    moment
        An ISO instant.
    """
    with bank.transaction() as connection:
        given = {"moment": moment}
        later = [row[0] for row in connection.execute(f"SELECT id FROM working_memory WHERE {_LATER}", given)]
        cascade_delete(connection, later)
        made = len(later) + connection.execute(f"DELETE FROM episodic_memory WHERE {_LATER}", given).rowcount
        for table in _DERIVED:
            _delete_later(connection, table, moment)
        ended = sum(_revive(connection, table, moment) for table in _MEMORIES)
        delete_orphans(connection)
        connection.execute(
            "UPDATE OR ABORT working_memory SET consolidated_at = NULL"
            " WHERE julianday(consolidated_at) > julianday(:moment)",
            given,
        )
        recalled = sum(
            connection.execute(
                f"SELECT count(*) FROM {table} WHERE julianday(last_recalled) > julianday(:moment)", given
            ).fetchone()[0]
            for table in _MEMORIES
        )
    return Rewound(made, ended, recalled)


def _delete_later(connection: sqlite3.Connection, table: str, moment: str) -> None:
    if "created_at" in columns(connection, table):
        connection.execute(f"DELETE FROM {table} WHERE julianday(created_at) > julianday(:moment)", {"moment": moment})


def _revive(connection: sqlite3.Connection, table: str, moment: str) -> int:
    """Make memories valid again that ended later, or whose replacement is gone; return how many there are."""
    given = {"moment": moment}
    ended: int = connection.execute(
        f"SELECT count(*) FROM {table} WHERE julianday(valid_until) > julianday(:moment)", given
    ).fetchone()[0]
    gone = " AND ".join(f"superseded_by NOT IN (SELECT id FROM {each})" for each in _MEMORIES)
    connection.execute(
        f"UPDATE OR ABORT {table} SET superseded_by = NULL WHERE superseded_by IS NOT NULL"
        f" AND (julianday(valid_until) > julianday(:moment) OR ({gone}))",
        given,
    )
    return ended
