"""What stands in for a bank's tables while they are read: temporary, seen by one connection only, part of no file.

An older bank lacks a table: an empty one stands in, as the agent would create it. A cell is too large to be read: a
view of its table stands in that shows the cell's beginning. Either name hides the file's own table from every query,
so that no reader needs to know of it.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.schema import TABLES, columns

if TYPE_CHECKING:
    from collections.abc import Iterator

CELL_BYTES = 4 << 20
"""Where a query came upon a value too large, longer cells are cut: so short that some of them may be joined."""

SHOWN_BYTES = 64 << 10
"""How much of a longer cell is shown."""

_CELLS = "large_cells"
_KEYLESS = "rowid"
_LAST = (1 << 63) - 1


def missing_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the schema's tables that a file lacks."""
    there = {name for (name,) in connection.execute("SELECT lower(name) FROM main.sqlite_master WHERE type <> 'index'")}
    return [name for name in TABLES if name not in there]


def add_missing(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Let an empty table stand in for each that the file lacks; return their names."""
    missing = missing_tables(connection)
    for name in missing:
        connection.execute(f"CREATE TEMP TABLE {name} ({TABLES[name]})")
    return tuple(missing)


def drop_missing(connection: sqlite3.Connection, standing: tuple[str, ...]) -> tuple[str, ...]:
    """Drop the stand-ins of tables that the file has by now, since another process made them; return the others."""
    still = missing_tables(connection)
    for name in standing:
        if name not in still:
            connection.execute(f"DROP TABLE temp.{name}")
    return tuple(name for name in standing if name in still)


def cut_large(connection: sqlite3.Connection) -> dict[str, int]:
    """Let a view stand in for each table with cells too large to be read; return how many rows of which table."""
    drop_cut(connection)
    limit = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_BYTES)
    try:
        found = {
            table: cells
            for table in TABLES
            if table not in missing_tables(connection) and (cells := list(_large_cells(connection, table)))
        }
    finally:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)
    if not found:
        return {}
    connection.execute(
        f"CREATE TEMP TABLE {_CELLS} (tbl TEXT, row INTEGER, col TEXT, head TEXT, PRIMARY KEY (tbl, row, col))"
    )
    for table, cells in found.items():
        connection.executemany(
            f"INSERT OR ABORT INTO temp.{_CELLS} VALUES (?, ?, ?, ?)",
            [(table, row, col, head) for row, col, head in cells],
        )
        connection.execute(_view(connection, table, {col for _, col, _ in cells}))
    return {table: len({row for row, _, _ in cells}) for table, cells in found.items()}


def drop_cut(connection: sqlite3.Connection) -> None:
    """Drop those views, so that the file's own tables can be written."""
    for (name,) in connection.execute("SELECT name FROM temp.sqlite_master WHERE type = 'view'").fetchall():
        connection.execute(f"DROP VIEW temp.{name}")
    connection.execute(f"DROP TABLE IF EXISTS temp.{_CELLS}")


def _large_cells(connection: sqlite3.Connection, table: str) -> Iterator[tuple[int, str, str]]:
    """Yield row, column and beginning of each cell of a table that is too large; none of them is read whole."""
    names = [name for name in columns(connection, table) if name != _KEYLESS]
    sizes = ", ".join(f'length(CAST("{name}" AS BLOB))' for name in names)
    last = ~_LAST
    while True:
        try:
            for rowid, *_ in connection.execute(
                f"SELECT rowid, {sizes} FROM main.{table} WHERE rowid >= ? ORDER BY rowid", (last,)
            ):
                last = min(rowid, _LAST - 1) + 1
            return
        except sqlite3.DataError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_TOOBIG:
                raise
        # Sizes are known by reading only; the row at which that failed has at least one cell too many.
        (rowid,) = connection.execute(f"SELECT min(rowid) FROM main.{table} WHERE rowid >= ?", (last,)).fetchone()
        yield from ((rowid, name, head) for name in names if (head := _head(connection, table, name, rowid)))
        if rowid == _LAST:
            return
        last = rowid + 1


def _head(connection: sqlite3.Connection, table: str, column: str, rowid: int) -> str | None:
    """Return the beginning of a cell with a word about its size, if it is too large."""
    try:
        with connection.blobopen(table, column, rowid, readonly=True, name="main") as blob:
            if len(blob) <= CELL_BYTES:
                return None
            head = blob.read(SHOWN_BYTES).decode("utf-8", "replace")
            return f"{head}\n[{len(blob):,} bytes; only the beginning is shown]"
    except sqlite3.OperationalError:  # a number or nothing: no cell of any size
        return None


def _view(connection: sqlite3.Connection, table: str, cut: set[str]) -> str:
    def shown(column: str) -> str:
        if column not in cut:
            return f'"{column}"'
        cell = f"FROM temp.{_CELLS} WHERE tbl = '{table}' AND row = whole.rowid AND col = '{column}'"
        return f'CASE WHEN EXISTS (SELECT 1 {cell}) THEN (SELECT head {cell}) ELSE "{column}" END AS "{column}"'

    names = [name for name in columns(connection, table) if name != _KEYLESS]
    listed = ", ".join(["rowid AS rowid", *map(shown, names)])
    return f"CREATE TEMP VIEW {table} AS SELECT {listed} FROM main.{table} AS whole"
