"""Rows written so that the definitions of a foreign file swallow none of them and delete no other.

A table may say ``ON CONFLICT IGNORE`` or ``ON CONFLICT REPLACE``, give a column another type, or have a unique index
that the schema does not know. A statement that names its own way with conflicts overrules the first, and what was
written is read back within the transaction. What fails here is an ``IntegrityError``, as when SQLite itself finds it.
"""

from __future__ import annotations

import json
import math
import sqlite3
from datetime import UTC
from typing import TYPE_CHECKING

from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import parse_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import tzinfo


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    """Insert a row; a conflict with another one is an error, whatever the table says of it."""
    connection.execute(f"INSERT OR ABORT INTO {table} {_columns(row)}", row)


def insert_once(connection: sqlite3.Connection, table: str, row: Mapping[str, object], key: Sequence[str]) -> None:
    """Insert a row unless there is one with the same key; a conflict on anything else is an error."""
    done = connection.execute(f"INSERT OR IGNORE INTO {table} {_columns(row)}", row)
    if done.rowcount:
        return
    same = " AND ".join(f"{name} IS :{name}" for name in key)
    if connection.execute(f"SELECT 1 FROM {table} WHERE {same}", row).fetchone() is None:
        raise sqlite3.IntegrityError(f"a constraint that the bank's schema does not have kept a row out of {table}")


def replace(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    """Insert a row in the place of the one with the same primary key, and of no other."""
    check_replaces_one(connection, table)
    connection.execute(f"INSERT OR REPLACE INTO {table} {_columns(row)}", row)


def check_replaces_one(connection: sqlite3.Connection, table: str) -> None:
    """Refuse to replace rows of a table where others than those with the same primary key could go."""
    for _, name, unique, origin, *_ in connection.execute(f"PRAGMA index_list({table})").fetchall():
        if unique and origin != "pk":
            raise sqlite3.IntegrityError(
                f"the index {name}, which the bank's schema does not have, would delete other rows of {table}"
            )


def check_stored(connection: sqlite3.Connection, table: str, id_: str, row: Mapping[str, object]) -> None:
    """Read back what was written, in the same transaction; an error if it is not there just so."""
    found = connection.execute(f"SELECT {', '.join(row)} FROM {table} WHERE id = ?", (id_,)).fetchone()
    # Compared here: SQLite would give what was written the type of the column first.
    if found is None or tuple(row.values()) != found:
        raise sqlite3.IntegrityError(f"what was written to {table} reads back differently, so it was not kept")


def _columns(row: Mapping[str, object]) -> str:
    return f"({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"


def as_text(value: object) -> str | None:
    """Return a cell as text, ``None`` where it is empty."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def number_or(value: object, otherwise: float) -> float:
    """Return a cell as the real engine's number: NULL is 0; what is not a number gives ``otherwise``."""
    if value is None:
        return 0
    if isinstance(value, bytes):
        value = ",".join(map(str, value))
    found = js.to_number(value) if isinstance(value, str) else value
    return found if isinstance(found, int | float) and math.isfinite(found) else otherwise


def as_number(value: object) -> float | None:
    """Return a cell as a number, ``None`` where it is none."""
    return value if isinstance(value, int | float) else None


def as_whole(value: object) -> int | None:
    """Return a cell as a whole number, ``None`` where it is none."""
    return value if isinstance(value, int) else None


def json_list(values: Iterable[object]) -> str:
    """Return values as a JSON list, for ``json_each``."""
    return json.dumps(list(values), ensure_ascii=False, default=lambda _: None)


def moment(stamp: str, *, utc: bool = False) -> str:
    """Return the SQL of a time as a number; without a zone it is local, or UTC."""
    # Nearly all times have one form, which SQLite reads itself: a call of Python for each row takes seconds in large
    # banks. The others go as bytes: a text that is not UTF-8 never reaches a function.
    return (
        f"coalesce(CASE WHEN {stamp} GLOB '????-??-??T??:??:??.???Z'"
        f" THEN round((julianday({stamp}) - 2440587.5) * 86400000) END, moment(CAST({stamp} AS BLOB), {int(utc)}))"
    )


def teach_moment(connection: sqlite3.Connection, tz: tzinfo | None) -> None:
    """Let SQL read the times of a bank as the engine does."""

    def read(stamp: object, utc: int) -> float | None:
        text = as_text(stamp)
        return parse_ms(text, UTC if utc else tz) if text else None

    connection.create_function("moment", 2, read, deterministic=True)
