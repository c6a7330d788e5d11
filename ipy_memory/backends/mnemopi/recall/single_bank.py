"""The recall of one bank: candidates, score, choice. It only reads; :func:`touch` counts afterwards.

A :class:`~ipy_memory.backends.trace.Trace` may listen; it changes nothing.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.db.rows import teach_moment
from ipy_memory.backends.mnemopi.db.visibility import Visibility, condition, names_of
from ipy_memory.backends.mnemopi.embeddings.selection import SessionEmbedder
from ipy_memory.backends.mnemopi.recall import candidates, query_terms, rerank, row_cache, scoring, tracing
from ipy_memory.backends.mnemopi.recall.candidates import Entry, Found, hit_of
from ipy_memory.backends.mnemopi.recall.facts import fact_recall
from ipy_memory.backends.mnemopi.recall.query_dates import extract_temporal, query_time, temporal_boost
from ipy_memory.backends.mnemopi.recall.row_cache import EPISODIC, WORKING
from ipy_memory.backends.mnemopi.recall.similarity import has_vectors, window
from ipy_memory.errors import BankError, BusyBankError
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import iso, parse_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo
    from sqlite3 import Connection

    from ipy_memory.backends.mnemopi.db.bank import Bank, Counts
    from ipy_memory.backends.mnemopi.recall.row_cache import Tier
    from ipy_memory.backends.trace import Trace
    from ipy_memory.model import Hit

log = logging.getLogger("ipy_memory.backends.mnemopi")

PREVIEW_UNITS = 500
"""How much of a content a hit shows."""

_KEPT_BATCHES = 100
"""So many calls whose counts could not be written keep their own times."""

_parse = lru_cache(maxsize=4096)(parse_ms)
_SCORE = attrgetter("score")
_WORDS = attrgetter("preview.words")
_TOKENS = attrgetter("preview.tokens")


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What a caller may ask of one engine call; the tools use the defaults with ``channel_id``.

    An empty source or channel asks for nothing, an empty author for rows whose author is empty. ``from_date`` and
    ``to_date`` are days, or instants. Two are not the engine's: ``now_ms`` stands for the clock's time, and
    ``filter_first`` searches among the rows that are asked for alone.
    ``query_time`` is an ISO text; ``temporal_halflife`` in hours; ``weights`` = vector, full text, importance
    (each ``None``: configured); ``content_preview_chars`` 0 or less shows all.
    """

    include_facts: bool = True
    channel_id: str | None = None
    source: str | None = None
    author_id: str | None = None
    author_type: str | None = None
    from_date: str | None = None
    to_date: str | None = None
    include_working: bool = True
    query_time: str | None = None
    temporal_weight: float | None = None
    temporal_halflife: float | None = None
    weights: tuple[float | None, float | None, float | None] = (None, None, None)
    content_preview_chars: int = PREVIEW_UNITS
    now_ms: int | None = None
    filter_first: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A query with all that it asks for, worked out once."""

    text: str
    words: scoring.Words
    floor: float
    weights: tuple[float, float, float]
    now_ms: int
    query_ms: float | None
    temporal_weight: float
    halflife: float
    wants_now: bool
    visible: Visibility
    preview: int
    tz: tzinfo | None


@within_limits
def recall(
    bank: Bank, query: str, k: float, options: RecallOptions = RecallOptions(), trace: Trace | None = None
) -> list[Hit]:
    """Return the ``k`` best memories of a bank, facts left out, without counting them."""
    with bank.snapshot():
        question = _question(bank, query, options)
        hits = _shown(_chosen(_scored(bank, question, k, options, trace), question, k, trace))
    if trace is not None:
        trace.returned(hits)
    return hits


@within_limits
def recall_enhanced(
    bank: Bank, query: str, k: int, options: RecallOptions = RecallOptions(), trace: Trace | None = None
) -> list[Hit]:
    """Return what the tools ask one bank for: memories weighted by intent, facts, and variety.

    The list is in order of choice, not of score. Nothing is written.
    """
    with bank.snapshot():
        question = _question(bank, query, options, intent=True)
        entries = _scored(bank, question, 2 * k, options, trace)
        if len(question.words.expanded) >= scoring.COVERAGE_TOKENS:
            entries = _chosen(entries, question, 2 * k, trace)
        entries = _varied(entries, 2 * k, trace)
        if options.include_facts:
            wanted = min(k, max(scoring.FACTS_AT_LEAST, math.ceil(k / 2)))
            entries += map(Entry.of, fact_recall(bank, query, wanted, trace))
            entries.sort(key=_SCORE, reverse=True)
        final = _shown(_varied(entries, k, trace))
    if trace is not None:
        trace.returned(final)
    return final


def touch(bank: Bank, counts: Counts) -> bool:
    """Count memories as recalled now, and those that could not be counted before; return whether that was done.

    While another process writes, the counts are kept for the next time. A bank that cannot be written stays as it is.
    """
    now = iso(bank.clock.now_ms())
    batches = _latest([*bank.uncounted, (now, counts)])
    visible = _visibility(bank, RecallOptions(channel_id=bank.name), now)
    bank.uncounted = []
    try:
        with bank.counting() as connection:
            for then, batch in batches:
                _count(bank, connection, batch, then, visible)
    except BusyBankError as error:
        bank.uncounted = batches
        log.debug("Recall counters wait for another writer (%s): %s", bank.where, error)
        return False
    except BankError as error:
        log.debug("Recall counters were not written (%s): %s", bank.where, error)
    return True


def _count(bank: Bank, connection: Connection, counts: Counts, then: str, visible: Visibility) -> None:
    for tier in (WORKING, EPISODIC):
        if times := {id_: n for (name, id_), n in counts.items() if name == tier.name}:
            where, values = condition(visible.rules(), names_of(bank, tier.table))
            counted = connection.executemany(
                f"UPDATE OR ABORT {tier.table} SET recall_count = COALESCE(recall_count, 0) + ?, last_recalled = ?"
                f" WHERE id = ? AND {where}",
                [(n, then, id_, *values) for id_, n in times.items()],
            )
            row_cache.count(bank, tier, times if counted.rowcount == len(times) else None, then)


def _latest(batches: list[tuple[str, Counts]]) -> list[tuple[str, Counts]]:
    """Return counts in order; of very many the older ones together, under the time of the last of them."""
    if len(batches) <= _KEPT_BATCHES:
        return batches
    (_, older), (then, newer), *rest = batches
    return [(then, Counter(older) + Counter(newer)), *rest]


def _visibility(bank: Bank, options: RecallOptions, now: str) -> Visibility:
    asked = (("source", options.source or None), ("author_id", options.author_id), ("author_type", options.author_type))
    equal = tuple((name, value) for name, value in asked if value is not None)
    channel = options.channel_id or None
    return Visibility(now, bank.name, channel, equal, options.from_date, options.to_date, options.filter_first)


def _question(bank: Bank, query: str, options: RecallOptions, *, intent: bool = False) -> Question:
    tz, config = bank.clock.tz, bank.config
    now_ms = bank.clock.now_ms() if options.now_ms is None else options.now_ms
    if options.from_date or options.to_date:
        teach_moment(bank.connection, tz)
    words = scoring.Words.of(query)
    configured = (config.vector_weight, config.fts_weight, config.importance_weight)
    weights = scoring.normalised_weights(
        *(given if asked is None else asked for asked, given in zip(options.weights, configured, strict=True))
    )
    if intent:
        weights = query_terms.adjust_weights(*weights, query_terms.classify_intent(query))
    query_ms = None if options.query_time is None else query_time(options.query_time, tz)
    weight = options.temporal_weight
    written = extract_temporal(query, now_ms)
    if written.event_date is not None:
        query_ms = written.event_ms if query_ms is None else query_ms
        weight = scoring.WRITTEN_DATE_WEIGHT if weight is None else weight
    wants_now = scoring.asks_for_now(query)
    if wants_now:
        query_ms = now_ms if query_ms is None else query_ms
        weight = scoring.CURRENT_WEIGHT if weight is None else weight
    return Question(
        query,
        words,
        scoring.min_relevance(len(words.expanded)),
        weights,
        now_ms,
        query_ms,
        weight or 0.0,
        config.halflife_hours if options.temporal_halflife is None else options.temporal_halflife,
        wants_now,
        _visibility(bank, options, iso(now_ms)),
        options.content_preview_chars,
        tz,
    )


def _scored(bank: Bank, question: Question, k: float, options: RecallOptions, trace: Trace | None) -> list[Entry]:
    if trace is not None:
        trace.bank, trace.path, trace.query = bank.name, bank.path, question.text
        trace.floor, trace.weights = question.floor, question.weights
    if k <= 0:
        return []
    limit = max(scoring.CANDIDATES_PER_RESULT * k, scoring.CANDIDATES_AT_LEAST)
    vector = _query_vector(bank, question.text)
    entries: list[Entry] = []
    for tier in (WORKING, EPISODIC) if options.include_working else (EPISODIC,):
        bank.check_cancelled()
        entries += _tier_entries(bank, tier, question, limit, vector, trace)
    entries.sort(key=_SCORE, reverse=True)
    if trace is not None:
        trace.scored(_shown(entries))
    return _without_summaries(entries, trace)


def _chosen(entries: list[Entry], question: Question, k: float, trace: Trace | None) -> list[Entry]:
    """Return the ``k`` entries that stay: for longer queries those that cover most of its words."""
    count = math.trunc(k)
    if len(question.words.expanded) >= scoring.COVERAGE_TOKENS and len(entries) > k:
        kept = rerank.cover(
            entries,
            question.words.expanded,
            count,
            bonus=scoring.COVERAGE_BONUS,
            score=_SCORE,
            tokens=_TOKENS,
        )
        if trace is not None:
            tracing.covered(trace, _shown(entries), _shown(kept))
    else:
        kept = entries[:count]
        if trace is not None:
            tracing.cut(trace, _shown(entries), _shown(kept))
    return kept


def _query_vector(bank: Bank, query: str) -> Sequence[float] | None:
    embedder = bank.embedder
    if embedder is None or bank.config.no_embeddings or not query:
        return None
    if isinstance(embedder, SessionEmbedder) and embedder.reluctant and not has_vectors(bank):
        return None
    return embedder.embed_query(query)


def _find(bank: Bank, tier: Tier, question: Question, limit: float, vector: Sequence[float] | None) -> list[Found]:
    """Return the candidates of a tier in the engine's order; the newest rows stand in for none."""
    visible = question.visible
    ranked = candidates.full_text(bank, tier, question.words.search, visible, limit)
    scores = scoring.fts_scores([rank for _, rank in ranked])
    found = {row.rowid: Found(row, fts=score, origin="fts") for (row, _), score in zip(ranked, scores, strict=True)}
    if vector is not None:
        compared = window(bank, tier, visible, vector)
        alike = compared.compare(vector)
        # Equals keep the order of their ids.
        nearest = sorted(range(len(alike)), key=alike.__getitem__, reverse=True)[: math.trunc(limit)]
        near = [compared.rowids[place] for place in nearest]
        rows = row_cache.by_rowid(bank, tier, visible, near)
        found |= {rowid: Found(rows[rowid]) for rowid in near if rowid not in found}
        for rowid in compared.places.keys() & found.keys():
            how = found[rowid]
            how.similarity = alike[compared.places[rowid]]
            if how.origin != "fts" and how.similarity > 0:
                how.origin = "vec"
    if found:
        return [found[rowid] for rowid in candidates.in_order(bank, tier, [how.row for how in found.values()], visible)]
    newest = [rowid for rowid, _ in candidates.newest(bank, tier, visible, scoring.NEWEST)]
    rows = row_cache.by_rowid(bank, tier, visible, newest)
    return [Found(rows[rowid]) for rowid in newest]


def _tier_entries(
    bank: Bank, tier: Tier, question: Question, limit: float, vector: Sequence[float] | None, trace: Trace | None
) -> list[Entry]:
    found = _find(bank, tier, question, limit, vector)
    entries = []
    words = question.words
    for number, how in enumerate(found):
        if number % 64 == 0:
            bank.check_cancelled()
        lexical = scoring.lexical_score(words.groups, words.phrase, how.row.document)
        if lexical >= question.floor or how.similarity >= scoring.STRONG_SIMILARITY:
            entries.append(_entry(how, tier, question, lexical, bank, trace))
        elif trace is not None:
            tracing.below_floor(trace, tier, how, question.words, lexical)
    if trace is not None:
        query = question.words.search
        tracing.not_looked_at(trace, bank, tier, (how.row.id for how in found), query, question.visible, limit)
    return entries


def _entry(how: Found, tier: Tier, question: Question, lexical: float, bank: Bank, trace: Trace | None) -> Entry:
    row, tz = how.row.row, question.tz
    recency = scoring.decay(_parse(row.timestamp, tz) if row.timestamp else None, question.now_ms, question.query_ms)
    near = 0.0
    if question.temporal_weight > 0:
        asked = question.now_ms if question.query_ms is None else question.query_ms
        near = max(
            temporal_boost(row.timestamp, asked, question.halflife, tz),
            temporal_boost(row.event_date, asked, scoring.EVENT_HALFLIFE_FACTOR * question.halflife, tz),
        )
    evidence = scoring.Evidence(lexical, how.fts, how.similarity, row.importance)
    is_working = tier is WORKING
    if is_working:
        base = scoring.working_base(evidence, question.weights[2])
    else:
        base = scoring.episodic_base(evidence, question.weights)
    factors = scoring.Factors(
        scoring.recency_factor(recency),
        scoring.temporal_factor(question.temporal_weight, near),
        1.0 if is_working else scoring.tier_factor(row.degradation),
        scoring.veracity_factor(row.veracity),
        how.row.document.current_factor if question.wants_now else 1.0,
    )
    entry = Entry(
        tier.name,
        how.row.id,
        scoring.final_score(base, factors),
        how.row.preview(question.preview),
        row.summary_of,
        partial(hit_of, how, tier, bank.name, lexical, recency, near),
    )
    if trace is not None:
        if is_working:
            terms = scoring.working_terms(evidence, question.weights[2])
        else:
            terms = scoring.episodic_terms(evidence, question.weights)
        tracing.scored(trace, entry, how, question.words, base, terms, factors)
    return entry


def _without_summaries(entries: list[Entry], trace: Trace | None) -> list[Entry]:
    """Return the entries without episodes that sum up a working memory of the list."""
    working = {entry.id for entry in entries if entry.tier == WORKING.name}
    kept = []
    for entry in entries:
        parts = map(js.trim, entry.summary_of.split(",")) if entry.summary_of else ()
        original = next((part for part in parts if part in working), None)
        if original is None:
            kept.append(entry)
        elif trace is not None:
            tracing.summarised(trace, entry.hit, original)
    return kept


def _varied(entries: list[Entry], k: int, trace: Trace | None) -> list[Entry]:
    kept = rerank.mmr(entries, scoring.MMR_BALANCE, k, score=_SCORE, words=_WORDS)
    if trace is not None:
        tracing.varied(trace, _shown(entries), _shown(kept))
    return kept


def _shown(entries: Iterable[Entry]) -> list[Hit]:
    return [entry.hit for entry in entries]
