"""Which rows of a bank a query looks at: visibility, full text, newest rows.

The two tiers differ in tables and keys only; a row is known by its rowid, ordered as the real system orders it.
"""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.connection import was_interrupted
from ipy_memory.backends.mnemopi.db.rows import json_list
from ipy_memory.backends.mnemopi.db.visibility import condition, names_of
from ipy_memory.backends.mnemopi.recall import row_cache
from ipy_memory.backends.mnemopi.recall.rerank import Preview
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.strings import well_formed
from ipy_memory.model import Hit, ScoreParts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.db.visibility import Visibility
    from ipy_memory.backends.mnemopi.recall.row_cache import Stored, Tier

log = logging.getLogger("ipy_memory.backends.mnemopi")

DAMAGED = "damaged index"
"""Key of a bank's ``memo`` under which the latest search leaves that its full-text index could not be read."""

_AT_ONCE = 1000


def full_text(bank: Bank, tier: Tier, query: str, visible: Visibility, limit: float) -> list[tuple[Stored, float]]:
    """Return the best rows that hold a word of the query with their rank, in order of rank, then key.

    Rows that are not live do not count, but rows out of reach do.
    """
    if limit % 1:  # SQLite takes no such limit, and a search that fails finds nothing
        return []
    wanted = int(limit)
    # Most rows are live: to ask which are is dearer than to look at a few that are not.
    size = wanted + wanted // 4 + 1
    best = _best(bank, tier, query, size)
    live = _live(bank, tier, visible, best)
    if len(best) == size and len(live) < wanted:
        live = _live(bank, tier, visible, _best(bank, tier, query, wanted, visible))
    return live[:wanted]


def _live(bank: Bank, tier: Tier, visible: Visibility, best: list[tuple[Any, float]]) -> list[tuple[Stored, float]]:
    read = row_cache.by_id if tier.by_id else row_cache.by_rowid
    rows = read(bank, tier, visible, [key for key, _ in best])
    return [(row, rank) for key, rank in best if (row := rows.get(key)) is not None and row.is_live]


def _best(bank: Bank, tier: Tier, query: str, size: int, live: Visibility | None = None) -> list[tuple[Any, float]]:
    """Return key and rank of the best rows of an index, in order of rank, then key; perhaps only of live rows."""
    key = _key(tier)
    only, values = "", tuple[str | float, ...]()
    if live is not None:
        where, values = condition(live.live(), names_of(bank, tier.table))
        # "+" keeps SQLite from one search for each live row.
        only = f" AND +{key} IN (SELECT {tier.key} FROM {tier.table} WHERE {where})"
    # "+" lets SQLite keep the best few alone; the index itself would sort every row, with all that it knows of it.
    sql = f"SELECT {key}, rank FROM {tier.index} WHERE {tier.index} MATCH ?{only} ORDER BY +rank, 1 LIMIT {size}"
    return list(fetch(bank, match(bank, sql, query, values), size))


def _key(tier: Tier) -> str:
    """Return how a search reads the key of a row: ids where the index keeps them, which brings no whole text along."""
    if not tier.by_id:
        return "rowid"
    return f"(SELECT c0 FROM {tier.index}_content AS text WHERE text.id = {tier.index}.rowid)"


def places(bank: Bank, tier: Tier, query: str, visible: Visibility, wanted: Iterable[str]) -> dict[str, int]:
    """Return for those of the ids that hold a word of the query their position in the order of :func:`full_text`."""
    where, values = condition(visible.live(), names_of(bank, tier.table))
    hidden = f"SELECT {tier.key} FROM {tier.table} WHERE NOT ({where})"
    unseen = {row[0] for row in bank.connection.execute(hidden, values)}
    named = f"SELECT {tier.key}, id FROM {tier.table} WHERE id IN (SELECT value FROM json_each(?))"
    left = dict(bank.connection.execute(named, (json_list(map(well_formed, wanted)),)))
    cursor = match(bank, f"SELECT {_key(tier)}, rank FROM {tier.index} WHERE {tier.index} MATCH ? ORDER BY rank", query)
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


def match(bank: Bank, sql: str, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor | None:
    """Start a full-text search; ``None`` where the index cannot take the query (which then finds nothing)."""
    try:
        return bank.connection.execute(sql, (well_formed(query), *values))
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
    if was_interrupted(error):
        raise error
    if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_ERROR:
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


def in_order(bank: Bank, tier: Tier, rows: Iterable[Stored], visible: Visibility) -> list[int]:
    """Return which of the rows may be seen, as rowids, by id or rowid; with a filter, as the index gives them."""
    if not visible.equal:
        kept = [(row.id if tier.by_id else row.rowid, row.rowid) for row in rows if row.is_visible]
        return [rowid for _, rowid in sorted(kept)]
    where, values = condition(visible.rules(), names_of(bank, tier.table))
    keys = [row.id if tier.by_id else row.rowid for row in rows]
    sql = f"SELECT rowid FROM {tier.table} WHERE {tier.key} IN ({', '.join('?' * len(keys))}) AND {where}"
    return [rowid for (rowid,) in bank.connection.execute(sql, (*keys, *values))]


@dataclass(slots=True)
class Found:
    """How a row was found: full-text score, similarity, and which came first."""

    row: Stored
    fts: float = 0.0
    similarity: float = 0.0
    origin: str = "fallback"


class Entry:
    """What choosing needs of a row; its hit is made when it is first asked for, since most are never shown."""

    __slots__ = ("_hit", "_show", "id", "preview", "score", "summary_of", "tier")

    def __init__(
        self,
        tier: str,
        id_: str,
        score: float,
        preview: Preview,
        summary_of: str | None,
        show: Callable[[float, str], Hit],
    ) -> None:
        self.tier = tier
        self.id = id_
        self.score = score
        self.preview = preview
        self.summary_of = summary_of
        self._show = show
        self._hit: Hit | None = None

    @classmethod
    def of(cls, hit: Hit) -> Entry:
        """Return the entry of something that is a hit already."""
        preview = Preview(hit.content)
        return cls(hit.tier or "", hit.id or "", hit.score or 0.0, preview, None, lambda _score, _content: hit)

    @property
    def hit(self) -> Hit:
        """The entry as a hit, always the same one."""
        if self._hit is None:
            self._hit = self._show(self.score, self.preview.text)
        return self._hit


def hit_of(
    how: Found, tier: Tier, bank: str, lexical: float, recency: float, near: float, score: float, content: str
) -> Hit:
    """Return the hit of a row: its columns, the parts of its score, and the content as it is shown."""
    explained = (("keyword", lexical), ("dense", how.similarity), ("temporal", near))
    stored, row = how.row, how.row.row
    return Hit(
        id=stored.id,
        content=content,
        source=row.source,
        timestamp=row.timestamp,
        score=score,
        bank=bank,
        tier=tier.name,
        type=row.memory_type,
        importance=row.importance,
        veracity=row.veracity,
        truncated=content != stored.content,
        full_length=js.units(stored.content),
        session_id=row.session_id,
        scope=row.scope,
        recall_count=row.recall_count,
        last_recalled=row.last_recalled,
        rank=how.fts,
        parts=ScoreParts(
            keyword=js.round4(lexical),
            dense=js.round4(how.similarity),
            fts=js.round4(how.fts),
            importance=js.round4(row.importance),
            recency=js.round4(recency),
            temporal=js.round4(near),
        ),
        explanation=f"{tier.name} {how.origin}"
        + "".join(f" {name}={js.number_text(js.round4(value))}" for name, value in explained if value > 0),
        degradation_tier=row.degradation,
    )
