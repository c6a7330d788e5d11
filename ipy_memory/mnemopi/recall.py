"""The recall of one bank: candidates, score, choice. It only reads; :func:`touch` counts afterwards.

A :class:`~ipy_memory.mnemopi.trace.Trace` may listen; it changes nothing.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING

from ipy_memory import js
from ipy_memory.errors import BankError
from ipy_memory.jsdate import iso, parse_ms
from ipy_memory.mnemopi import account, candidates, lexicon, rerank, scoring
from ipy_memory.mnemopi.candidates import EPISODIC, WORKING, Row, Tier, Visibility
from ipy_memory.mnemopi.entries import Entry, Found, hit_of
from ipy_memory.mnemopi.facts import fact_recall
from ipy_memory.mnemopi.session_embedder import SessionEmbedder
from ipy_memory.mnemopi.temporal import extract_temporal, query_time, temporal_boost
from ipy_memory.mnemopi.vectors import has_vectors, window
from ipy_memory.model import Hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import tzinfo

    from ipy_memory.mnemopi.bank import Bank
    from ipy_memory.mnemopi.scoring import Document
    from ipy_memory.mnemopi.trace import Trace

log = logging.getLogger("ipy_memory.mnemopi")

PREVIEW_UNITS = 500
"""How much of a content a hit shows (R-11)."""

_parse = lru_cache(maxsize=4096)(parse_ms)
_SCORE = attrgetter("score")
_CONTENT = attrgetter("content")


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What a caller may ask of one engine call; the tools use the defaults with ``channel_id``.

    An empty text asks for nothing.
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


def recall_enhanced(
    bank: Bank, query: str, k: int, options: RecallOptions = RecallOptions(), trace: Trace | None = None
) -> list[Hit]:
    """Return what the tools ask one bank for: memories weighted by intent, facts, and variety (R-18).

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


def touch(bank: Bank, counts: Mapping[tuple[str, str], int]) -> None:
    """Count memories as recalled now: (tier, id) -> how often (R-34). A bank that cannot be written stays as it is."""
    now = iso(bank.clock.now_ms())
    visible = _visibility(bank, RecallOptions(channel_id=bank.name), now)
    try:
        with bank.counting() as connection:
            for tier in (WORKING, EPISODIC):
                where, values = candidates.condition(visible.rules(), candidates.names_of(bank, tier.table))
                connection.executemany(
                    f"UPDATE {tier.table} SET recall_count = COALESCE(recall_count, 0) + ?, last_recalled = ?"
                    f" WHERE id = ? AND {where}",
                    [(n, now, id_, *values) for (name, id_), n in counts.items() if name == tier.name],
                )
    except BankError as error:
        log.debug("Recall counters were not written (%s): %s", bank.where, error)


def _visibility(bank: Bank, options: RecallOptions, now: str) -> Visibility:
    asked = {name: getattr(options, name) for name in ("source", "author_id", "author_type") if getattr(options, name)}
    return Visibility(now, bank.name, options.channel_id, tuple(asked.items()), options.from_date, options.to_date)


def _question(bank: Bank, query: str, options: RecallOptions, *, intent: bool = False) -> Question:
    now_ms, tz, config = bank.clock.now_ms(), bank.clock.tz, bank.config
    words = scoring.Words.of(query)
    configured = (config.vector_weight, config.fts_weight, config.importance_weight)
    weights = scoring.normalised_weights(
        *(given if asked is None else asked for asked, given in zip(options.weights, configured, strict=True))
    )
    if intent:
        weights = lexicon.adjust_weights(*weights, lexicon.classify_intent(query))
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
            tokens=lambda entry: lexicon.tokenise(entry.content),
        )
        if trace is not None:
            account.covered(trace, _shown(entries), _shown(kept))
    else:
        kept = entries[:count]
        if trace is not None:
            account.cut(trace, _shown(entries), _shown(kept))
    return kept


def _query_vector(bank: Bank, query: str) -> Sequence[float] | None:
    embedder = bank.embedder
    if embedder is None or bank.config.no_embeddings or not query:
        return None
    if isinstance(embedder, SessionEmbedder) and embedder.reluctant and not has_vectors(bank):
        return None
    return embedder.embed_query(query)


def _find(bank: Bank, tier: Tier, question: Question, limit: float, vector: Sequence[float] | None) -> dict[int, Found]:
    """Return the candidates of a tier by rowid, in the engine's order; the newest rows stand in for none."""
    found: dict[int, Found] = {}
    ranked = candidates.full_text(bank, tier, lexicon.fts_query(question.text), question.visible, limit)
    scores = scoring.fts_scores([rank for _, rank in ranked])
    for (rowid, _), score in zip(ranked, scores, strict=True):
        found[rowid] = Found(fts=score, origin="fts")
    if vector is not None:
        compared = window(bank, tier, question.visible, vector)
        alike = compared.compare(vector)
        # Equals keep the order of their ids.
        nearest = sorted(range(len(alike)), key=alike.__getitem__, reverse=True)[: math.ceil(limit)]
        for place in nearest:
            found.setdefault(compared.rowids[place], Found())
        for rowid in compared.places.keys() & found.keys():
            how = found[rowid]
            how.similarity = alike[compared.places[rowid]]
            if how.origin != "fts" and how.similarity > 0:
                how.origin = "vec"
    if found:
        return {rowid: found[rowid] for rowid in candidates.visible_among(bank, tier, found, question.visible)}
    return {rowid: Found() for rowid, _ in candidates.newest(bank, tier, question.visible, scoring.NEWEST)}


def _tier_entries(
    bank: Bank, tier: Tier, question: Question, limit: float, vector: Sequence[float] | None, trace: Trace | None
) -> list[Entry]:
    found = _find(bank, tier, question, limit, vector)
    documents = candidates.documents(bank, tier, list(found))
    lexical: dict[int, float] = {}
    dropped: dict[int, float] = {}
    for number, (rowid, how) in enumerate(found.items()):
        if number % 64 == 0:
            bank.check_cancelled()
        score = scoring.lexical_score(question.words, documents[rowid])
        if score >= question.floor or how.similarity >= scoring.STRONG_SIMILARITY:
            lexical[rowid] = score
        else:
            dropped[rowid] = score
    rows = candidates.rows(bank, tier, lexical)
    if trace is not None:
        _account(bank, tier, question, limit, found, dropped, documents, trace)
    return [
        _entry(rows[rowid], tier, question, score, found[rowid], documents[rowid], bank, trace)
        for rowid, score in lexical.items()
    ]


def _entry(
    row: Row,
    tier: Tier,
    question: Question,
    lexical: float,
    how: Found,
    document: Document,
    bank: Bank,
    trace: Trace | None,
) -> Entry:
    tz = question.tz
    recency = scoring.decay(_parse(row.timestamp, tz) if row.timestamp else None, question.now_ms, question.query_ms)
    near = 0.0
    if question.temporal_weight > 0:
        asked = question.now_ms if question.query_ms is None else question.query_ms
        near = max(
            temporal_boost(row.timestamp, asked, question.halflife, tz),
            temporal_boost(row.event_date, asked, scoring.EVENT_HALFLIFE_FACTOR * question.halflife, tz),
        )
    weighed = (lexical, how.fts, how.similarity, row.importance)
    if tier is WORKING:
        base = scoring.working_base(*weighed, question.weights[2])
    else:
        base = scoring.episodic_base(*weighed, question.weights)
    factors = {
        "tier_factor": 1.0 if tier is WORKING else scoring.tier_factor(row.degradation),
        "veracity_factor": scoring.veracity_factor(row.veracity),
        "current_factor": scoring.current_factor(document.text) if question.wants_now else 1.0,
    }
    score = scoring.final_score(base, recency, temporal_weight=question.temporal_weight, temporal=near, **factors)
    clipped = js.clip(row.content, question.preview) if question.preview > 0 else row.content
    entry = Entry(
        tier.name,
        row.id,
        score,
        clipped,
        row.summary_of,
        partial(hit_of, row, tier, bank.name, how, lexical, recency, near),
    )
    if trace is not None:
        candidate = trace.candidate(tier.name, row.id)
        candidate.origin, candidate.parts, candidate.score, candidate.base = how.origin, entry.hit.parts, score, base
        candidate.terms = (
            scoring.working_terms(*weighed, question.weights[2])
            if tier is WORKING
            else scoring.episodic_terms(*weighed, question.weights)
        )
        candidate.factors = {
            "recency_factor": scoring.recency_factor(recency),
            "temporal_factor": scoring.temporal_factor(question.temporal_weight, near),
            **factors,
        }
        candidate.matched = scoring.matched_words(question.words.groups, question.words.typed, document)
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
            account.summarised(trace, entry.hit, original)
    return kept


def _varied(entries: list[Entry], k: int, trace: Trace | None) -> list[Entry]:
    kept = rerank.mmr(entries, scoring.MMR_BALANCE, k, score=_SCORE, content=_CONTENT)
    if trace is not None:
        account.varied(trace, _shown(entries), _shown(kept))
    return kept


def _shown(entries: Iterable[Entry]) -> list[Hit]:
    return [entry.hit for entry in entries]


def _account(
    bank: Bank,
    tier: Tier,
    question: Question,
    limit: float,
    found: Mapping[int, Found],
    dropped: Mapping[int, float],
    documents: Mapping[int, Document],
    trace: Trace,
) -> None:
    """Note what was dropped, and where the watched ids are that this tier did not look at."""
    looked_at = candidates.ids(bank, tier, found)
    for rowid, lexical in dropped.items():
        how, id_ = found[rowid], looked_at[rowid]
        parts = account.rounded(lexical, how.similarity, how.fts)
        matched = scoring.matched_words(question.words.groups, question.words.typed, documents[rowid])
        account.below_floor(trace, tier, id_, parts, how.origin, matched, lexical)
    query = lexicon.fts_query(question.text)
    account.not_looked_at(trace, bank, tier, looked_at.values(), query, question.visible, limit)
