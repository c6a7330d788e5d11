"""What a bank holds, in the form of the recorded table dumps; real ids as placeholders and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from ipy_memory.backends.mnemopi.db.bank import Bank

_LEFT_OUT = frozenset(("fts_episodes", "fts_facts"))
_STAMPED = ("created_at", "updated_at", "valid_from")
_SQLITE_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_NAMED = {"working_memory": "wm", "episodic_memory": "em", "scratchpad": "sp", "facts": "f"}
_ID = re.compile(r"[0-9a-f]{16}")
_LONG, _HEAD, _TAIL = 4000, 80, 40


class Names:
    """Placeholders for ids, given out in the order in which tables first showed the ids."""

    def __init__(self) -> None:
        self.placeholder: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def see(self, tables: Mapping[str, list[dict[str, Any]]], prefix: str = "") -> None:
        """Name the ids of a dump that have no name yet."""
        for table, letters in _NAMED.items():
            for row in tables.get(table, ()):
                found = row.get("fact_id" if table == "facts" else "id")
                if isinstance(found, str) and _ID.fullmatch(found) and found not in self.placeholder:
                    count = self._counts[prefix + letters] = self._counts.get(prefix + letters, 0) + 1
                    self.placeholder[found] = f"<{prefix}{letters}{count}>"

    def hide(self, value: Any) -> Any:
        """Return a value with every named id as its placeholder."""
        return mapped(value, lambda text: _ID.sub(lambda m: self.placeholder.get(m[0], m[0]), text))

    def real(self, value: Any) -> Any:
        """Return a value with every placeholder as the real id."""
        ids = {name: found for found, name in self.placeholder.items()}
        return mapped(value, lambda text: re.sub(r"<[\w:]+>", lambda m: ids.get(m[0], m[0]), text))


def mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a value with every string in it changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(item, change) for item in value]
    return value


def tables(bank: Bank) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables that hold any."""
    found = {}
    for (table,) in bank.connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    ).fetchall():
        if table not in _LEFT_OUT and not re.match(r"fts_\w+_(data|idx|content|docsize|config)", table):
            found[table] = _rows(bank, table)
    return {table: rows for table, rows in found.items() if rows}


def _rows(bank: Bank, table: str) -> list[dict[str, Any]]:
    own_id = _integer_key(bank, table)
    cursor = bank.connection.execute(f"SELECT rowid AS _rowid, * FROM {table} ORDER BY rowid")
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    if own_id:
        for row in rows:
            del row["_rowid"]
    if table == "graph_edges":
        rows = [{k: v for k, v in row.items() if k != "id"} for row in rows]
        rows.sort(key=lambda row: (row["source"], row["target"], row["edge_type"]))
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def _integer_key(bank: Bank, table: str) -> str | None:
    keys = [row for row in bank.connection.execute(f"PRAGMA table_info({table})") if row[5]]
    if len(keys) == 1 and keys[0][2] == "INTEGER" and table != "episodic_memory":
        return str(keys[0][1])
    return None


def shown(dump: Mapping[str, list[dict[str, Any]]], names: Names) -> dict[str, list[dict[str, Any]]]:
    """Return a dump as it was recorded: ids and times as placeholders, long strings by their ends."""
    result = {}
    for table, rows in dump.items():
        result[table] = [{key: _cell(key, value, names) for key, value in row.items()} for row in rows]
        if table == "graph_edges":
            result[table].sort(key=lambda row: (row["source"], row["target"], row["edge_type"]))
    return result


def _cell(key: str, value: Any, names: Names) -> Any:
    value = names.hide(value)
    if not isinstance(value, str):
        return value
    if key in _STAMPED and _SQLITE_TIME.fullmatch(value):
        return "<CURRENT_TIMESTAMP>"
    return short(value)


def short(text: str) -> Any:
    """Return a text, or what tells a long one."""
    size = js.units(text)
    if size <= _LONG:
        return text
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return {"$len": size, "$sha256": digest, "$head": js.cut(text, 0, _HEAD), "$tail": js.cut(text, size - _TAIL)}


def written_out(value: Any) -> Any:
    """Return an input with the short form of long texts (prefix, repeat, times, suffix) written out."""
    if isinstance(value, Mapping):
        if {"repeat", "times"} <= value.keys() <= {"prefix", "repeat", "times", "suffix"}:
            return value.get("prefix", "") + value["repeat"] * value["times"] + value.get("suffix", "")
        return {key: written_out(item) for key, item in value.items()}
    if isinstance(value, list):
        return [written_out(item) for item in value]
    return value


def see_all(names: Names, banks: Iterable[tuple[Bank, str]]) -> None:
    """Name what each bank shows now, with the bank's prefix."""
    for bank, prefix in banks:
        names.see(tables(bank), prefix)
