"""Rows of a bank as they leave it and as another bank takes them: every column, in the order of the rows.

Full-text indexes are not moved: the triggers of the schema build them from the rows. Rows that come from elsewhere are
protected from the engine's trim, which deletes unconsolidated rows of more than a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.rows import insert
from ipy_memory.backends.mnemopi.db.schema import TABLES, columns
from ipy_memory.jscompat.dates import covered

if TYPE_CHECKING:
    import sqlite3

    from ipy_memory.backends.mnemopi.db.bank import Bank

VECTORS = "memory_embeddings"
MEMORIES = ("working_memory", "episodic_memory")
_CHUNK = 500
_KEYS: Mapping[str, str] = {
    "working_memory": "id",
    "episodic_memory": "id",
    "scratchpad": "id",
    "facts": "fact_id",
    "gists": "id",
    VECTORS: "memory_id",
}
"""Tables whose rows have a name of their own; the rows of the others are told apart by what they hold."""
_NUMBERED: Mapping[str, str] = {
    "episodic_memory": "rowid",
    "memoria_timelines": "event_id",
    "memory_validations": "validation_id",
}
_REFERENCES = ("memory_id", "source_memory_id", "source_msg_id", "superseded_by")
_NO_MEANING = ("created_at",)

Row = dict[str, Any]


def rows_of(bank: Bank, *, vectors: bool = False) -> Iterator[tuple[str, Row]]:
    """Yield table and row of everything that a bank holds, memories first, each table in the order of its rows.

    Parameters
    ----------
    bank
        Open for reading; the caller holds a snapshot.
    vectors
        Whether vectors are among them.
    """
    for table in TABLES:
        if table == VECTORS and not vectors:
            continue
        names = _own_columns(bank.connection, table)
        if not names:
            continue
        last = -(1 << 62)
        while True:
            with bank.reading() as connection:
                found = connection.execute(
                    f"SELECT rowid, {', '.join(names)} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT {_CHUNK}",
                    (last,),
                ).fetchall()
            for row in found:
                yield table, dict(zip(names, row[1:], strict=True))
            if len(found) < _CHUNK:
                break
            last = found[-1][0]


def counts_of(bank: Bank, *, vectors: bool = False) -> dict[str, int]:
    """Return how many rows of each table :func:`rows_of` yields; tables without any are left out."""
    found = {}
    with bank.reading() as connection:
        for table in TABLES:
            if columns(connection, table) and (vectors or table != VECTORS):
                found[table] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return {table: count for table, count in found.items() if count}


@dataclass(slots=True)
class Loaded:
    """What a bank took: rows added, replaced and left alone by table; memories added under a new id."""

    added: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, str] = field(default_factory=dict)


def load(bank: Bank, rows: Iterable[tuple[str, Row]], *, came_from: str, conflict: str = "skip") -> Loaded:
    """Take rows into a bank; the caller holds the transaction.

    Parameters
    ----------
    bank
        Open for writing.
    rows
        Table and row, memories before what was made from them, as :func:`rows_of` yields them.
    came_from
        The name of their bank: rows that bear it as session or channel bear the new bank's, or recall would pass them
        over.
    conflict
        What becomes of a memory whose id is there: ``"skip"`` keeps the one that is there, ``"newer"`` the one with
        the later time, ``"both"`` takes it under a new id unless its text is the same.

    Returns
    -------
    Loaded
        What was done.
    """
    done = Loaded()
    there = _Known(bank.connection)
    for table, row in rows:
        known = set(_own_columns(bank.connection, table))
        taken = {name: value for name, value in row.items() if name in known}
        _rename(taken, came_from, bank.name, done.renamed)
        if table == "working_memory" and taken.get("consolidated_at") is None:
            taken["trust_tier"] = "IMPORTED"  # what the engine's trim leaves alone
        _take(bank, table, taken, conflict, there, done)
    return done


def _take(bank: Bank, table: str, row: Row, conflict: str, there: _Known, done: Loaded) -> None:
    key = _KEYS.get(table)
    if key is None:
        if there.holds(table, row):
            done.known[table] += 1
            return
    elif (old := _row_at(bank.connection, table, key, row.get(key))) is not None:
        if table in MEMORIES and conflict == "newer" and _is_newer(row, old):
            names = [name for name in row if name != key]
            bank.connection.execute(
                f"UPDATE OR ABORT {table} SET {', '.join(f'{name} = :{name}' for name in names)} WHERE {key} = :{key}",
                row,
            )
            done.replaced[table] += 1
            return
        if table not in MEMORIES or conflict != "both" or old["content"] == row.get("content"):
            done.known[table] += 1
            return
        done.renamed[str(row[key])] = row[key] = bank.ids.token()
    insert(bank.connection, table, row)
    done.added[table] += 1


def _row_at(connection: sqlite3.Connection, table: str, key: str, value: object) -> Row | None:
    names = _own_columns(connection, table)
    found = connection.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {key} = ?", (value,)).fetchone()
    return None if found is None else dict(zip(names, found, strict=True))


def _is_newer(row: Row, old: Row) -> bool:
    """Return whether a row has a later time than the one that is there."""
    mine, other = (covered(str(each.get("timestamp") or "")) for each in (row, old))
    return mine is not None and (other is None or mine[0] > other[0])


def _rename(row: Row, old: str, new: str, renamed: Mapping[str, str]) -> None:
    if old != new:
        for name in ("session_id", "channel_id"):
            if row.get(name) == old:
                row[name] = new
    for name in _REFERENCES:
        if row.get(name) in renamed:
            row[name] = renamed[row[name]]


def _own_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """Return the columns of a table that mean something in another bank: not a number that only counts rows."""
    numbered = _NUMBERED.get(
        table, "" if table in _KEYS else "id" if table != "memory_validations" else "validation_id"
    )
    return [name for name in columns(connection, table) if name != numbered]


class _Known:
    """What tables without names of their own hold already, read once each."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: dict[str, set[tuple[Any, ...]]] = {}

    def holds(self, table: str, row: Row) -> bool:
        """Return whether an equal row is there; it is known from now on."""
        if table not in self._rows:
            names = [name for name in _own_columns(self._connection, table) if name not in _NO_MEANING]
            self._rows[table] = set(self._connection.execute(f"SELECT {', '.join(names)} FROM {table}"))
        names = [name for name in _own_columns(self._connection, table) if name not in _NO_MEANING]
        values = tuple(row.get(name) for name in names)
        if values in self._rows[table]:
            return True
        self._rows[table].add(values)
        return False
