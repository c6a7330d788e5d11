"""The ranking `best` on one bank: every visible row is scored, read-only, and nothing is counted.

Memories and facts have an index each, kept with the open bank and brought up to date when the file has changed. The
texts of a bank are not kept: those of the answer are read after the ranking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ipy_memory.backends.mnemopi.db.rows import as_text, json_list, number_or
from ipy_memory.backends.mnemopi.db.visibility import Visibility, condition, names_of
from ipy_memory.backends.mnemopi.embeddings.selection import SessionEmbedder
from ipy_memory.backends.mnemopi.recall import row_cache, scoring
from ipy_memory.backends.mnemopi.recall.row_cache import EPISODIC, WORKING
from ipy_memory.backends.mnemopi.recall.similarity import has_vectors, stored_vector
from ipy_memory.backends.mnemopi.recall.single_bank import PREVIEW_UNITS
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import iso, parse_ms
from ipy_memory.model import Hit, ScoreParts
from ipy_memory.ranking.best import Question, Reason, Scores, Vectors, reasons, score
from ipy_memory.ranking.postings import Postings, Row, Texts, asks
from ipy_memory.ranking.words import shared_stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.recall.row_cache import Tier

FACT = "fact"
_KEPT = "best"
_TIERS = (WORKING, EPISODIC)
_IMPORTANCE_SHARE = 0.1
_VERACITY = {"false": 0.5, "inferred": 0.95}
"""Light priors: the ranking is about what the question asks, not about how much a row was valued."""
_SPARE = 4
"""So many times the wanted hits are looked through, since a memory and what was made of it count once."""


class Key(NamedTuple):
    """A row of the bank: its tier's name, rowid and id."""

    tier: str
    rowid: int
    id: str


@dataclass(slots=True)
class _Indexed:
    """Rows of one kind with their index."""

    texts: Texts = field(default_factory=lambda: Texts(shared_stems()))
    postings: Postings | None = None
    vectors: Vectors | None = None


@dataclass(slots=True)
class _Resident:
    """What is kept of a bank: valid for one state of the file, from one instant until a row expires."""

    state: tuple[object, ...] = ()
    since: str = ""
    until: str | None = None
    memories: _Indexed = field(default_factory=_Indexed)
    facts: _Indexed = field(default_factory=_Indexed)
    model: str | None = None

    def stands(self, state: tuple[object, ...], now: str) -> bool:
        return self.state == state and self.since <= now and (self.until is None or now < self.until)


class _Ranked(NamedTuple):
    postings: Postings
    scores: Scores
    row: int
    score: float

    @property
    def key(self) -> Key:
        return cast("Key", self.postings.keys[self.row])


@dataclass(frozen=True, slots=True)
class BestHit:
    """A hit, what it was made from, and on request the words that make up its text score."""

    hit: Hit
    made_from: tuple[str, ...]
    _ranked: _Ranked

    def reasons(self) -> list[Reason]:
        """Return the words that make up the text score, the weightiest first."""
        return reasons(self._ranked.postings, self._ranked.scores, self._ranked.row)


def best_recall(bank: Bank, query: str, k: int, *, earlier: str = "") -> list[BestHit]:
    """Return the ``k`` best memories and facts of a bank, best first.

    Parameters
    ----------
    bank
        Read only; no counter changes.
    query
        The question, or the latest message of a conversation.
    k
        The most hits.
    earlier
        What was said before the latest message; its words count little.
    """
    with bank.snapshot() as connection:
        now = iso(bank.clock.now_ms())
        resident = _resident(bank, Visibility(now, bank.name, bank.name))
        vector = _query_vector(bank, query, resident)
        found: list[_Ranked] = []
        for kind in (resident.memories, resident.facts):
            if kind.postings is not None and len(kind.postings):
                scores = score(kind.postings, Question(query, earlier, vector), kind.vectors)
                found += [
                    _Ranked(kind.postings, scores, int(row), float(scores.total[row])) for row in scores.top(_SPARE * k)
                ]
        found.sort(key=lambda one: -one.score)
        return _answer(bank, connection, found, k)


def _resident(bank: Bank, visible: Visibility) -> _Resident:
    kept: _Resident = bank.memo.setdefault(_KEPT, _Resident())
    model = _model(bank)
    state = (bank.generation, visible.apart_from_now(), model)
    if not kept.stands(state, visible.now):
        kept.until = None
        kept.model = model
        _update(kept.memories, _memories(bank, visible, kept), bank)
        _update(kept.facts, _facts(bank, visible), bank)
        kept.memories.vectors = _vectors(bank, kept.memories, model)
        kept.state, kept.since = state, visible.now
    return kept


class _Read(NamedTuple):
    key: Key
    text: str
    time: float
    prior: float


def _update(kind: _Indexed, rows: Iterator[_Read], bank: Bank) -> None:
    read: list[Row] = []

    def texts() -> Iterator[tuple[int, str]]:
        for number, row in enumerate(rows):
            if number % 1024 == 0:
                bank.check_cancelled()
            read.append(Row(row.key, row.time, row.prior, asks(row.text)))
            yield 2 * row.key.rowid + (row.key.tier == EPISODIC.name), row.text

    kind.postings = None  # an interrupted update leaves no index of other words
    kind.texts.update(texts())
    kind.postings = Postings(kind.texts, read)


def _memories(bank: Bank, visible: Visibility, kept: _Resident) -> Iterator[_Read]:
    for tier in _TIERS:
        names = names_of(bank, tier.table)
        where, values = condition(visible.rules(), names)
        columns = ", ".join(names[name] for name in ("timestamp", "importance", "veracity", "valid_until"))
        for rowid, id_, content, timestamp, importance, veracity, until in bank.connection.execute(
            f"SELECT rowid, id, content, {columns} FROM {tier.table} WHERE {where} ORDER BY rowid", values
        ):
            if isinstance(until, str) and until > visible.now and (kept.until is None or until < kept.until):
                kept.until = until
            text = content if isinstance(content, str) else ""
            worth = number_or(importance, scoring.UNREADABLE_IMPORTANCE)
            prior = (1 + _IMPORTANCE_SHARE * (worth - 0.5)) * _VERACITY.get(as_text(veracity) or "", 1.0)
            yield _Read(Key(tier.name, rowid, as_text(id_) or ""), text, _seconds(timestamp, bank.clock.tz), prior)


def _facts(bank: Bank, visible: Visibility) -> Iterator[_Read]:
    """Yield the facts whose memory cannot be seen: a memory itself says all that its facts say."""
    seen = []
    values: tuple[str | float, ...] = ()
    for tier in _TIERS:
        where, of_tier = condition(visible.rules(), names_of(bank, tier.table))
        seen.append(f"SELECT id FROM {tier.table} WHERE id IS NOT NULL AND {where}")
        values += of_tier
    rows = bank.connection.execute(
        "SELECT rowid, fact_id, subject, predicate, object, timestamp FROM facts WHERE session_id = ?"
        f" AND (source_msg_id IS NULL OR source_msg_id NOT IN ({' UNION ALL '.join(seen)})) ORDER BY rowid",
        (bank.name, *values),
    )
    for rowid, id_, subject, predicate, object_, timestamp in rows:
        text = " ".join(filter(None, map(as_text, (subject, predicate, object_))))
        yield _Read(Key(FACT, rowid, as_text(id_) or ""), text, _seconds(timestamp, bank.clock.tz), 1.0)


def _seconds(timestamp: object, tz: tzinfo | None) -> float:
    return _parsed(timestamp, tz) if isinstance(timestamp, str) else 0.0


@lru_cache(maxsize=4096)
def _parsed(timestamp: str, tz: tzinfo | None) -> float:
    try:  # the usual form, fifty times as fast as the lenient reading
        moment = datetime.fromisoformat(timestamp)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        pass
    ms = parse_ms(timestamp, tz)
    return 0.0 if ms is None or math.isnan(ms) else ms / 1000


def _model(bank: Bank) -> str | None:
    embedder = bank.embedder
    return None if embedder is None or bank.config.no_embeddings else embedder.model


def _vectors(bank: Bank, kind: _Indexed, model: str | None) -> Vectors | None:
    """Return the vectors of all memories of the session's own model; other models cannot be compared."""
    import numpy as np

    if model is None or kind.postings is None:
        return None
    places = {cast("Key", key).id: place for place, key in enumerate(kind.postings.keys)}
    rows: list[int] = []
    found: list[list[float]] = []
    for id_, text in bank.connection.execute(
        "SELECT memory_id, embedding_json FROM memory_embeddings WHERE model IS ?", (model,)
    ):
        vector = stored_vector(text)
        if vector and id_ in places and (not found or len(vector) == len(found[0])):
            rows.append(places[id_])
            found.append(vector)
    return Vectors(rows, np.array(found, np.float32), len(kind.postings)) if found else None


def _query_vector(bank: Bank, query: str, resident: _Resident) -> Any:
    import numpy as np

    embedder = bank.embedder
    if embedder is None or resident.memories.vectors is None or not query:
        return None
    if isinstance(embedder, SessionEmbedder) and embedder.reluctant and not has_vectors(bank):
        return None
    vector = embedder.embed_query(query)
    return None if vector is None else np.asarray(vector, np.float32)


def _answer(bank: Bank, connection: Any, found: Sequence[_Ranked], k: int) -> list[BestHit]:
    """Return the hits of what was ranked, each memory once.

    A summary gives its place to a memory that it was made from, if that was found too.
    """
    places = {one.key.id: one for one in found}
    sources = _sources(connection, [one.key for one in found])
    answer: list[BestHit] = []
    used: set[tuple[str, str]] = set()
    texts: set[str] = set()
    for one in found:
        made_from = sources.get(one.key, ())
        original = next((places[id_] for id_ in made_from if id_ in places), None)
        shown = original or one
        if shown.key[::2] in used:
            continue
        used.add(shown.key[::2])
        hit = _hit(bank, shown, one.score)
        if hit is None or hit.content in texts:
            continue
        texts.add(hit.content)
        answer.append(BestHit(hit, sources.get(shown.key, ()), shown))
        if len(answer) == k:
            break
    return answer


def _sources(connection: Any, keys: Sequence[Key]) -> dict[Key, tuple[str, ...]]:
    """Return which memories the facts and summaries among some rows were made from."""
    found: dict[Key, tuple[str, ...]] = {}
    for tier, sql in (
        (EPISODIC.name, "SELECT rowid, summary_of FROM episodic_memory"),
        (FACT, "SELECT rowid, source_msg_id FROM facts"),
    ):
        rowids = {key.rowid: key for key in keys if key.tier == tier}
        if not rowids:
            continue
        for rowid, made_from in connection.execute(
            f"{sql} WHERE rowid IN (SELECT value FROM json_each(?))", (json_list(rowids),)
        ):
            names = (js.trim(name) for name in (as_text(made_from) or "").split(","))
            found[rowids[rowid]] = tuple(name for name in names if name)
    return found


def _hit(bank: Bank, one: _Ranked, value: float) -> Hit | None:
    parts = ScoreParts(
        keyword=js.round4(float(one.scores.text[one.row])),
        dense=None if one.scores.similarity is None else js.round4(float(one.scores.similarity[one.row])),
        temporal=None if one.scores.near is None else js.round4(float(one.scores.near[one.row])),
    )
    made = _fact_hit(bank, one.key) if one.key.tier == FACT else _memory_hit(bank, one.key)
    return None if made is None else replace(made, score=js.round4(value), parts=parts, explanation="best")


def _memory_hit(bank: Bank, key: Key) -> Hit | None:
    tier: Tier = WORKING if key.tier == WORKING.name else EPISODIC
    visible = Visibility(iso(bank.clock.now_ms()), bank.name, bank.name)
    row = row_cache.by_rowid(bank, tier, visible, [key.rowid]).get(key.rowid)
    if row is None:
        return None
    content = row.preview(PREVIEW_UNITS).text
    return Hit(
        id=row.id,
        content=content,
        source=row.row.source,
        timestamp=row.row.timestamp,
        bank=bank.name,
        tier=tier.name,
        type=row.row.memory_type,
        importance=row.row.importance,
        veracity=row.row.veracity,
        truncated=content != row.content,
        full_length=js.units(row.content),
        session_id=row.row.session_id,
        scope=row.row.scope,
        recall_count=row.row.recall_count,
        last_recalled=row.row.last_recalled,
        degradation_tier=row.row.degradation,
    )


def _fact_hit(bank: Bank, key: Key) -> Hit | None:
    row = bank.connection.execute(
        "SELECT subject, predicate, object, timestamp FROM facts WHERE rowid = ?", (key.rowid,)
    ).fetchone()
    if row is None:
        return None
    subject, predicate, object_ = (as_text(cell) or "" for cell in row[:3])
    content = object_ or js.trim(f"{subject} {predicate}")
    return Hit(
        id=key.id,
        content=content,
        source="facts",
        timestamp=as_text(row[3]),
        bank=bank.name,
        tier=FACT,
        full_length=js.units(content),
        fact=(subject, predicate),
    )
