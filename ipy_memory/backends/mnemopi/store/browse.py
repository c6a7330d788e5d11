"""The rows of a bank as the user browses them: filtered, newest first, a page at a time. Reads only."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.db.rows import as_number, as_text, as_whole, json_list, moment, teach_moment
from ipy_memory.backends.mnemopi.db.schema import columns
from ipy_memory.backends.mnemopi.db.visibility import names_of
from ipy_memory.jscompat.dates import iso, parse_ms
from ipy_memory.jscompat.strings import well_formed
from ipy_memory.model import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank

MEMORY_STORES = ("working", "episodic")
STORES = (*MEMORY_STORES, "fact", "annotation", "entity", "triple")
"""What can be browsed: memories, and what was made from them."""

_CWD = "CASE WHEN json_valid({metadata_json}) THEN json_extract({metadata_json}, '$.cwd') END"
_STATE = (
    "CASE WHEN {superseded_by} IS NOT NULL THEN 'superseded'"
    " WHEN {valid_until} IS NOT NULL AND {valid_until} <= :now THEN 'expired' ELSE 'live' END"
)
_ENTITIES = f"""(
    SELECT row_number() OVER (ORDER BY name) AS rowid, name, seen, max({moment("seen")}),
        count(DISTINCT memory) AS memories, group_concat(DISTINCT memory) AS memory_ids
    FROM (
        SELECT subject AS name, source_msg_id AS memory, timestamp AS seen FROM facts WHERE subject <> 'fact'
        UNION ALL SELECT subject, source_memory_id, NULL FROM memoria_kg
        UNION ALL SELECT value, memory_id, timestamp
            FROM gists, json_each(CASE WHEN json_valid(participants_json) THEN participants_json ELSE '[]' END)
    )
    WHERE trim(name) <> '' GROUP BY name
)"""
"""Who and what the facts, relations and gists of a bank speak of; ``recall_count`` counts the memories."""

_AT_ONCE = 10_000
_READ: Mapping[str, Callable[[object], object]] = {"importance": as_number, "recall_count": as_whole}


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where the rows of one store are, and which SQL gives each field of a memory.

    Times without a zone are local, or UTC where SQLite wrote them (``utc``).
    """

    table: str
    fields: Mapping[str, str]
    source: str = ""
    needs: tuple[str, ...] = ()
    utc: bool = False

    @property
    def moment(self) -> str:
        """The row's time as a number, whose order is that of time, unlike the order of the texts."""
        return moment(self.fields["timestamp"], utc=self.utc)

    @property
    def rows(self) -> str:
        return self.source or self.table


def _memories(table: str) -> _Shape:
    plain = ("id", "content", "source", "timestamp", "created_at", "importance", "veracity", "session_id", "scope")
    counters = ("valid_until", "superseded_by", "recall_count", "last_recalled")
    own = {name: f"{{{name}}}" for name in (*plain, *counters)}
    about = {"about": "{summary_of}"} if table == "episodic_memory" else {}
    more = {"type": "{memory_type}", "metadata": "{metadata_json}", "cwd": _CWD, "state": _STATE}
    return _Shape(table, own | more | about)


_STATEMENT = "{subject} || ' ' || {predicate} || ' ' || {object}"
_SHAPES: Mapping[str, _Shape] = {
    "working": _memories("working_memory"),
    "episodic": _memories("episodic_memory"),
    "fact": _Shape(
        "facts",
        {
            "id": "{fact_id}",
            "content": _STATEMENT,
            "source": "'facts'",
            "timestamp": "{timestamp}",
            "created_at": "{created_at}",
            "importance": "{confidence}",
            "session_id": "{session_id}",
            "about": "{source_msg_id}",
        },
    ),
    "annotation": _Shape(
        "annotations",
        {
            "id": "'annotation:' || {id}",
            "content": "{value}",
            "source": "{source}",
            "timestamp": "{created_at}",
            "created_at": "{created_at}",
            "importance": "{confidence}",
            "type": "{kind}",
            "about": "{memory_id}",
        },
        utc=True,
    ),
    "entity": _Shape(
        "facts",
        {
            "id": "'entity:' || name",
            "content": "name",
            "timestamp": "seen",
            "created_at": "seen",
            "recall_count": "memories",
            "about": "memory_ids",
        },
        source=_ENTITIES,
        needs=("facts", "memoria_kg", "gists"),
    ),
    "triple": _Shape(
        "triples",
        {
            "id": "'triple:' || {id}",
            "content": _STATEMENT,
            "source": "{source}",
            "timestamp": "{valid_from}",
            "created_at": "{created_at}",
            "importance": "{confidence}",
            "valid_until": "{valid_until}",
            "about": "{source}",
        },
    ),
}
_EQUAL = {
    "id": "id",
    "source": "source",
    "type": "type",
    "veracity": "veracity",
    "session": "session_id",
    "cwd": "cwd",
    "state": "state",
}
FILTERS = (*_EQUAL, "about", "since", "until", "text")
"""What the rows can be filtered by."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of one or more banks, how many there are in all, and which banks could not be read."""

    memories: tuple[Memory, ...]
    total: int
    offset: int = 0
    problems: tuple[str, ...] = ()

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins; ``None`` on the last one."""
        end = self.offset + len(self.memories)
        return end if end < self.total else None


def page(
    banks: Sequence[Bank],
    stores: Sequence[str],
    where: Mapping[str, str],
    *,
    limit: int | None,
    offset: int = 0,
) -> Page:
    """Return rows of the banks that pass every filter, newest first.

    Parameters
    ----------
    banks
        In the order in which equal times are listed.
    stores
        Some of :data:`STORES`.
    where
        Filters by the names of :data:`FILTERS`: ``since`` and ``until`` are instants (both included), ``text`` is
        looked for in the content in any case, ``about`` is the id of the memory that a row was made from.
    limit, offset
        The page; all rows without a limit.
    """
    total, keys = 0, []
    for number, bank in enumerate(banks):
        more, found = keys_of(bank, number, stores, where, None if limit is None else limit + offset)
        total += more
        keys += found
    chosen = choose(keys, limit=limit, offset=offset)
    rows = {number: rows_of(bank, number, chosen) for number, bank in enumerate(banks)}
    return Page(in_order(chosen, rows), total, offset)


Key = tuple[float, int, int, int]
"""A row to choose from: its time, and what tells equal times apart: bank, store, rowid."""


def keys_of(
    bank: Bank, number: int, stores: Sequence[str], where: Mapping[str, str], most: int | None
) -> tuple[int, list[list[Key]]]:
    """Return how many rows of one bank pass, and the newest of each store; ``number`` is the bank's place."""
    total, keys = 0, []
    for store in stores:
        found = _keys(bank, store, where, most)
        if found is not None:
            total += found[0]
            keys.append([(made, -number, -STORES.index(store), rowid) for made, rowid in found[1]])
    return total, keys


def choose(keys: Sequence[Sequence[Key]], *, limit: int | None, offset: int) -> list[Key]:
    """Return the rows of a page, newest first, from the newest rows of each bank and store."""
    merged = heapq.merge(*keys, reverse=True)
    if limit is None:
        return list(merged)[offset:]
    return [key for key, _ in zip(merged, range(limit + offset), strict=False)][offset:]


def rows_of(bank: Bank, number: int, chosen: Sequence[Key]) -> dict[tuple[int, int], Memory]:
    """Return the chosen rows of one bank, by store and rowid."""
    wanted: dict[int, list[int]] = {}
    for _, place, store, rowid in chosen:
        if place == -number:
            wanted.setdefault(store, []).append(rowid)
    return {
        (store, rowid): memory
        for store, rowids in wanted.items()
        for rowid, memory in _fetched(bank, STORES[-store], rowids).items()
    }


def in_order(chosen: Sequence[Key], rows: Mapping[int, Mapping[tuple[int, int], Memory]]) -> tuple[Memory, ...]:
    """Return the rows in the order in which they were chosen; one that is gone by now is left out."""
    found = (rows.get(-place, {}).get((store, rowid)) for _, place, store, rowid in chosen)
    return tuple(memory for memory in found if memory is not None)


def every_row(bank: Bank) -> list[Memory]:
    """Return every memory and fact of a bank, of any session."""
    return [memory for store in (*MEMORY_STORES, "fact") for memory in _store(bank, store)]


@within_limits
def replaced_by(bank: Bank, memory_id: str) -> list[Memory]:
    """Return the memories that a memory replaced."""
    found: list[Memory] = []
    with bank.reading() as connection:
        for store in MEMORY_STORES:
            names = names_of(bank, _SHAPES[store].table)
            rowids = [
                row[0]
                for row in connection.execute(
                    f"SELECT rowid FROM {_SHAPES[store].table} WHERE {names['superseded_by']} = ? ORDER BY rowid",
                    (well_formed(memory_id),),
                )
            ]
            found += _fetched(bank, store, rowids).values()
    return found


@within_limits
def _store(bank: Bank, store: str) -> list[Memory]:
    with bank.snapshot():
        found = _keys(bank, store, {}, None)
        if found is None:
            return []
        rowids = sorted(rowid for _, rowid in found[1])
        fetched = _fetched(bank, store, rowids)
    return [fetched[rowid] for rowid in rowids]


def _names(bank: Bank, shape: _Shape) -> Mapping[str, str]:
    return {} if shape.source else names_of(bank, shape.table)


@within_limits
def _keys(
    bank: Bank, store: str, where: Mapping[str, str], limit: int | None
) -> tuple[int, list[tuple[float, int]]] | None:
    """Return how many rows pass, and time and rowid of the newest; ``None`` where the store cannot have any."""
    shape = _SHAPES[store]
    conditions = []
    values: dict[str, Any] = {"now": iso(bank.clock.now_ms()), "limit": -1 if limit is None else limit}
    with bank.reading() as connection:
        if not all(columns(connection, table) for table in shape.needs or (shape.table,)):
            return None
        names = _names(bank, shape)
        for name, value in where.items():
            written = _condition(shape, name)
            if written is None:
                return None
            conditions.append(written.format_map(names))
            values[name] = _value(name, value)
        teach_moment(connection, bank.clock.tz)
        if "text" in where:
            connection.create_function("folded", 1, _folded, deterministic=True)
        passing = f"FROM {shape.rows}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
        total = connection.execute(f"SELECT count(*) {passing}", values).fetchone()[0]
        made = shape.moment.format_map(names)
        rows = connection.execute(f"SELECT {made}, rowid {passing} ORDER BY 1 DESC, rowid DESC LIMIT :limit", values)
        # Rows without a readable time come last.
        return total, [(-math.inf if ms is None else ms, rowid) for ms, rowid in rows]


def _condition(shape: _Shape, name: str) -> str | None:
    if name == "text":
        # As bytes: a text that is no UTF-8 never reaches a function.
        return f"instr(folded(CAST({shape.fields['content']} AS BLOB)), :text) > 0"
    if name in {"since", "until"}:
        return f"{shape.moment} {'>=' if name == 'since' else '<='} :{name}"
    if name == "about":
        return (
            f"instr(',' || replace({shape.fields['about']}, ' ', '') || ',', ',' || :about || ',') > 0"
            if "about" in shape.fields
            else None
        )
    field = shape.fields.get(_EQUAL[name])
    if name == "state" and field is None:
        return ":state = 'live'"
    return None if field is None else f"{field} = :{name}"


def _value(name: str, value: str) -> str | float | None:
    if name in {"since", "until"}:
        return parse_ms(value, UTC)
    value = well_formed(value)
    return value.casefold() if name == "text" else value


def _folded(value: object) -> str:
    return (as_text(value) or "").casefold()


@within_limits
def _fetched(bank: Bank, store: str, rowids: Sequence[int]) -> dict[int, Memory]:
    shape = _SHAPES[store]
    found = {}
    with bank.reading() as connection:
        names = _names(bank, shape)
        teach_moment(connection, bank.clock.tz)
        listed = ", ".join(sql.format_map(names) for sql in shape.fields.values())
        for start in range(0, len(rowids), _AT_ONCE):
            rows = connection.execute(
                f"SELECT rowid, {listed} FROM {shape.rows} WHERE rowid IN (SELECT value FROM json_each(:rowids))",
                {"now": iso(bank.clock.now_ms()), "rowids": json_list(rowids[start : start + _AT_ONCE])},
            )
            for rowid, *cells in rows:
                found[rowid] = _memory(bank, store, dict(zip(shape.fields, cells, strict=True)))
    return found


def _memory(bank: Bank, store: str, cells: Mapping[str, object]) -> Memory:
    read: dict[str, Any] = {name: _READ.get(name, as_text)(value) for name, value in cells.items()}
    read["state"] = read.get("state") or "live"
    about = tuple(part.strip() for part in (read.pop("about", None) or "").split(",") if part.strip())
    return Memory(
        bank=bank.name, store=store, about=about, **{**read, "id": read["id"] or "", "content": read["content"] or ""}
    )
