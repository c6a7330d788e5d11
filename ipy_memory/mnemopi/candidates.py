"""Which rows of a bank a query looks at: visibility, full text, newest rows.

The two tiers differ in tables and keys only; a row is known by its rowid, ordered as the real system orders it.
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ipy_memory import js
from ipy_memory.js import well_formed
from ipy_memory.mnemopi import scoring
from ipy_memory.mnemopi.schema import column_defaults, columns
from ipy_memory.mnemopi.scoring import Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ipy_memory.mnemopi.bank import Bank

log = logging.getLogger("ipy_memory.mnemopi")

EXPIRED = "expired or invalidated"
OTHER_SESSION = "of another session"
DAMAGED = "damaged index"
"""Key of a bank's ``memo`` under which the latest search leaves that its full-text index could not be read."""

_AT_ONCE = 1000
_KEPT_DOCUMENTS = 20_000
_KEPT_TEXT = 20_000_000
_ROW_COLUMNS = (
    *("rowid", "id", "content", "source", "timestamp", "session_id", "importance", "veracity", "memory_type"),
    *("recall_count", "last_recalled", "scope", "event_date"),
)


@dataclass(frozen=True, slots=True)
class Tier:
    """One kind of memory and where it is kept."""

    name: str
    table: str
    index: str
    text: str
    by_id: bool
    extra: tuple[str, ...] = ()


_SEARCHED = "CASE WHEN length({embed_text}) > 0 THEN {embed_text} ELSE {content} END"
WORKING = Tier("working", "working_memory", "fts_working", _SEARCHED, by_id=True)
EPISODIC = Tier("episodic", "episodic_memory", "fts_episodes", "{content}", by_id=False, extra=("summary_of", "tier"))


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which rows may be seen: valid now, not superseded, within reach, and whatever else was asked for.

    ``channel`` is ``None`` where no channel was asked for; ``author`` then lifts the limit to the session.
    """

    now: str
    session: str
    channel: str | None = None
    equal: tuple[tuple[str, str], ...] = ()
    from_date: str | None = None
    to_date: str | None = None

    def apart_from_now(self) -> tuple[object, ...]:
        """Return all but the instant, to tell questions that may look at the same rows."""
        return self.session, self.channel, self.equal, self.from_date, self.to_date

    def live(self) -> list[Rule]:
        """Return the rules that full-text search itself applies: valid now and not superseded."""
        return [
            Rule(EXPIRED, "({valid_until} IS NULL OR {valid_until} > ?)", (self.now,)),
            Rule("superseded by another memory", "{superseded_by} IS NULL"),
        ]

    def rules(self) -> list[Rule]:
        """Return all rules."""
        rules = self.live()
        reach = f"{'' if self.equal else '+'}{{session_id}} = ? OR {{scope}} = 'global'"  # + keeps to the time index
        if self.channel is not None:
            rules.append(Rule(OTHER_SESSION, f"({reach} OR {{channel_id}} = ?)", (self.session, self.channel)))
        elif not any(name in {"author_id", "author_type"} for name, _ in self.equal):
            rules.append(Rule(OTHER_SESSION, f"({reach})", (self.session,)))
        rules += [Rule(f"of another {name}", f"{{{name}}} = ?", (value,)) for name, value in self.equal]
        if self.from_date is not None:
            rules.append(Rule("before the asked dates", "{timestamp} >= ?", (f"{self.from_date}T00:00:00",)))
        if self.to_date is not None:
            rules.append(Rule("after the asked dates", "{timestamp} <= ?", (f"{self.to_date}T23:59:59",)))
        return rules


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition of a row: what is said if it fails, SQL with column names in braces, and its values."""

    otherwise: str
    sql: str
    values: tuple[str, ...] = ()


def condition(rules: Iterable[Rule], names: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return rules as one SQL condition with its values."""
    rules = list(rules)
    return " AND ".join(rule.sql.format_map(names) for rule in rules), tuple(v for rule in rules for v in rule.values)


@dataclass(frozen=True, slots=True)
class Row:
    """What scoring and a hit need of one row."""

    rowid: int
    id: str
    content: str
    source: str | None
    timestamp: str | None
    session_id: str | None
    importance: float
    veracity: str | None
    memory_type: str | None
    recall_count: int
    last_recalled: str | None
    scope: str | None
    event_date: str | None
    summary_of: str | None = None
    degradation: float | None = None


def names_of(bank: Bank, table: str) -> Mapping[str, str]:
    """Return for each column of ours how to read it from this file: its name, or its default where it is missing."""
    known: dict[str, Mapping[str, str]] = bank.memo.setdefault("names", {})
    if table not in known:
        present = set(columns(bank.connection, table))
        if not present:  # let the statement itself say that there is no such table
            return {name: name for name in column_defaults(table)}
        known[table] = {
            name: name if name in present else "NULL" if default == "CURRENT_TIMESTAMP" else default
            for name, default in column_defaults(table).items()
        }
    return known[table]


def full_text(bank: Bank, tier: Tier, query: str, visible: Visibility, limit: float) -> list[tuple[int, float]]:
    """Return rowid and rank of the best rows that hold a word of the query, in order of rank, then key.

    Rows that are not live do not count, but rows out of reach do. More of the index is asked for until there are enough
    rows and no further one can have the same rank as the last.
    """
    key = "id" if tier.by_id else "rowid"
    where, values = condition(visible.live(), names_of(bank, tier.table))
    lookup = f"SELECT {key}, rowid FROM {tier.table} WHERE {key} IN (SELECT value FROM json_each(?)) AND {where}"
    wanted = int(-(-limit // 1))
    size = wanted + wanted // 4 + 1
    while True:
        rows = _best(bank, tier, query, size)
        live = dict(bank.connection.execute(lookup, (json_list(row[0] for row in rows), *values)))
        found = sorted((rank, name, live[name]) for name, rank in rows if name in live)
        if len(rows) < size or (len(found) >= wanted and max(rank for _, rank in rows) > found[wanted - 1][0]):
            return [(rowid, rank) for rank, _, rowid in found[:wanted]]
        size *= 4


def _best(bank: Bank, tier: Tier, query: str, size: int) -> list[tuple[Any, float]]:
    """Return key and rank of the best rows of an index, in any order."""
    key = "id" if tier.by_id else "place"
    # "+" lets SQLite keep the best few alone; the index itself would sort every row, with all that it knows of it.
    cursor = match(
        bank,
        f"SELECT {key}, worth FROM (SELECT rowid AS place, rank AS worth FROM {tier.index}"
        f" WHERE {tier.index} MATCH ? ORDER BY +rank LIMIT {size})"
        + (f" JOIN {tier.index} ON {tier.index}.rowid = place" if tier.by_id else ""),
        query,
    )
    return list(fetch(bank, cursor, size))


def places(bank: Bank, tier: Tier, query: str, visible: Visibility, wanted: Iterable[str]) -> dict[str, int]:
    """Return for those of the ids that hold a word of the query their position in the order of :func:`full_text`."""
    key = "id" if tier.by_id else "rowid"
    where, values = condition(visible.live(), names_of(bank, tier.table))
    unseen = {row[0] for row in bank.connection.execute(f"SELECT {key} FROM {tier.table} WHERE NOT ({where})", values)}
    named = f"SELECT {key}, id FROM {tier.table} WHERE id IN (SELECT value FROM json_each(?))"
    left = dict(bank.connection.execute(named, (json_list(map(well_formed, wanted)),)))
    cursor = match(bank, f"SELECT {key}, rank FROM {tier.index} WHERE {tier.index} MATCH ? ORDER BY rank", query)
    found: dict[str, int] = {}
    place = 0
    for _, equals in groupby(_fetched(bank, cursor), key=lambda row: row[1]):
        for name in sorted(row[0] for row in equals if row[0] not in unseen):
            place += 1
            if name in left:
                found[left.pop(name)] = place
        if not left:
            break
    if cursor is not None:
        cursor.close()
    return found


def _fetched(bank: Bank, cursor: sqlite3.Cursor | None) -> Iterator[tuple[Any, float]]:
    while rows := fetch(bank, cursor, _AT_ONCE):
        yield from rows


def match(bank: Bank, sql: str, query: str) -> sqlite3.Cursor | None:
    """Start a full-text search; ``None`` where the index cannot take the query (which then finds nothing)."""
    try:
        return bank.connection.execute(sql, (well_formed(query),))
    except sqlite3.DatabaseError as error:
        _pass_over(error, bank)
        return None


def fetch(bank: Bank, cursor: sqlite3.Cursor | None, size: int) -> list[Any]:
    """Return the next rows of a full-text search; none after an error."""
    if cursor is None:
        return []
    try:
        return cursor.fetchmany(size)
    except sqlite3.DatabaseError as error:
        _pass_over(error, bank)
        return []


def _pass_over(error: sqlite3.DatabaseError, bank: Bank) -> None:
    # The real system takes a failing index for an empty one; only a cancelled search is no answer.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        raise error
    if code != sqlite3.SQLITE_ERROR:
        bank.memo[DAMAGED] = str(error)
        log.warning("The full-text index cannot be read (%s): %s", bank.where, error)


def newest(bank: Bank, tier: Tier, visible: Visibility, limit: int) -> list[tuple[int, str]]:
    """Return rowid and id of the newest visible rows; equal times newest rowid first, rows without a time last."""
    where, values = condition(visible.rules(), names_of(bank, tier.table))
    ties = "" if visible.equal else ", rowid DESC"  # with a filter, the index that SQLite takes decides
    return bank.connection.execute(
        f"SELECT rowid, id FROM {tier.table} WHERE {where} ORDER BY timestamp DESC{ties} LIMIT {limit}", values
    ).fetchall()


def first_end(bank: Bank, tier: Tier, rowids: Iterable[int]) -> str | None:
    """Return when the first of some visible rows expires, or ``None`` if none does."""
    until = names_of(bank, tier.table)["valid_until"]
    end: str | None = bank.connection.execute(
        f"SELECT min({until}) FROM {tier.table} WHERE typeof({until}) = 'text'"
        " AND rowid IN (SELECT value FROM json_each(?))",
        (json_list(rowids),),
    ).fetchone()[0]
    return end


def visible_among(bank: Bank, tier: Tier, rowids: Iterable[int], visible: Visibility) -> list[int]:
    """Return those of the rows that may be seen, by id or rowid; with a filter, as the index gives them."""
    where, values = condition(visible.rules(), names_of(bank, tier.table))
    key = "id" if tier.by_id else "rowid"
    wanted = bank.connection.execute(
        f"SELECT {key}, rowid FROM {tier.table} WHERE rowid IN (SELECT value FROM json_each(?))"
        + ("" if visible.equal else f" AND {where}"),
        (json_list(rowids), *(() if visible.equal else values)),
    ).fetchall()
    if not visible.equal:
        return [rowid for _, rowid in sorted(wanted)]
    keys = [row[0] for row in wanted]
    listed = ", ".join("?" * len(keys))
    return [
        row[0]
        for row in bank.connection.execute(
            f"SELECT rowid FROM {tier.table} WHERE {key} IN ({listed}) AND {where}", (*keys, *values)
        )
    ]


def documents(bank: Bank, tier: Tier, rowids: Sequence[int]) -> dict[int, Document]:
    """Return the searched texts of rows, kept from one query to the next while the file does not change."""
    generation = bank.generation
    kept: _Kept | None = bank.memo.get(tier.name)
    if kept is None or kept.generation != generation or kept.size > _KEPT_TEXT or len(kept.texts) > _KEPT_DOCUMENTS:
        kept = bank.memo[tier.name] = _Kept(generation, {})
    missing = [rowid for rowid in rowids if rowid not in kept.texts]
    if missing:
        text = tier.text.format_map(names_of(bank, tier.table))
        for rowid, content in bank.connection.execute(
            f"SELECT rowid, {text} FROM {tier.table} WHERE rowid IN (SELECT value FROM json_each(?))",
            (json_list(missing),),
        ):
            document = kept.texts[rowid] = Document(as_text(content) or "")
            kept.size += len(document.text)
    return kept.texts


@dataclass(slots=True)
class _Kept:
    generation: tuple[int, int, int]
    texts: dict[int, Document]
    size: int = 0


def rows(bank: Bank, tier: Tier, rowids: Iterable[int]) -> dict[int, Row]:
    """Return rows by rowid."""
    names = names_of(bank, tier.table)
    listed = ", ".join(f"{names.get(name, name)} AS {name}" for name in (*_ROW_COLUMNS, *tier.extra))
    found = {}
    for cells in bank.connection.execute(
        f"SELECT {listed} FROM {tier.table} WHERE rowid IN (SELECT value FROM json_each(?))", (json_list(rowids),)
    ):
        rowid, id_, content, source, timestamp, session, importance, veracity, kind, count, last, *rest = cells
        found[rowid] = Row(
            rowid,
            as_text(id_) or "",
            as_text(content) or "",
            as_text(source),
            as_text(timestamp),
            as_text(session),
            number_or(importance, scoring.UNREADABLE_IMPORTANCE),
            as_text(veracity),
            as_text(kind),
            count if isinstance(count, int) else 0,
            last if isinstance(last, str) else None,
            as_text(rest[0]),
            as_text(rest[1]),
            *((as_text(rest[2]), number_or(rest[3], 1)) if tier.extra else ()),
        )
    return found


@dataclass(frozen=True, slots=True)
class Hidden:
    """Whether a row can be seen: the reasons why not (none: it can), what replaces it, and when it ended."""

    reasons: tuple[str, ...]
    superseded_by: str | None
    valid_until: str | None


def hidden(bank: Bank, tier: Tier, ids: Iterable[str], visible: Visibility) -> dict[str, Hidden]:
    """Return for those of the ids that a tier has whether and why they cannot be seen."""
    names = names_of(bank, tier.table)
    rules = visible.rules()
    listed = ", ".join(f"COALESCE({rule.sql.format_map(names)}, 0)" for rule in rules)
    found = {}
    for id_, superseded_by, valid_until, *holds in bank.connection.execute(
        f"SELECT id, {names['superseded_by']}, {names['valid_until']}, {listed} FROM {tier.table}"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (*(value for rule in rules for value in rule.values), json_list(map(well_formed, ids))),
    ):
        reasons = tuple(rule.otherwise for rule, holding in zip(rules, holds, strict=True) if not holding)
        found[as_text(id_) or ""] = Hidden(reasons, as_text(superseded_by), as_text(valid_until))
    return found


def ids(bank: Bank, tier: Tier, rowids: Iterable[int]) -> dict[int, str]:
    """Return ids by rowid."""
    found = bank.connection.execute(
        f"SELECT rowid, id FROM {tier.table} WHERE rowid IN (SELECT value FROM json_each(?))", (json_list(rowids),)
    )
    return {rowid: as_text(id_) or "" for rowid, id_ in found}


def as_text(value: object) -> str | None:
    """Return a cell as text, whatever a foreign file holds."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def number_or(value: object, otherwise: float) -> float:
    """Return a cell as the number that the real engine takes it for: none is 0, and what is no number ``otherwise``."""
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
