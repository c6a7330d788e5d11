"""Facts of a bank as hits of a recall: short statements, matched by their words alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.rows import as_text, json_list, number_or
from ipy_memory.backends.mnemopi.db.visibility import OTHER_SESSION
from ipy_memory.backends.mnemopi.recall import candidates, scoring, tracing
from ipy_memory.backends.mnemopi.recall.query_terms import CLITIC_FRAGMENTS, FACT_FILLER_WORDS
from ipy_memory.backends.trace import Step
from ipy_memory.jscompat import strings as js
from ipy_memory.model import Hit, ScoreParts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.recall.scoring import Words
    from ipy_memory.backends.trace import Trace

SOURCE = "facts"
TIER = "fact"
_LIKE_TOKENS = 6
_LONGEST_PATTERN = 50_000  # bytes; SQLite refuses longer ones
_COLUMNS = "rowid, fact_id, subject, predicate, object, timestamp, confidence"
_MEANINGLESS = frozenset({"entity", "fact"})


@dataclass(frozen=True, slots=True)
class _Fact:
    id: str
    subject: str
    predicate: str
    object: str
    timestamp: str | None
    confidence: float

    @property
    def content(self) -> str:
        return self.object or js.trim(f"{self.subject} {self.predicate}")

    @property
    def searchable(self) -> str:
        object_ = js.trim(self.object)
        if not object_:
            return f"{self.subject} {self.predicate}"
        heads = [part for part in map(js.trim, (self.subject, self.predicate)) if part]
        return " ".join([*(part for part in heads if js.lower(part) not in _MEANINGLESS), object_])


def fact_recall(bank: Bank, query: str, k: float, trace: Trace | None = None) -> list[Hit]:
    """Return the ``k`` best facts of a bank; they are never cut and never counted."""
    if k <= 0:
        return []
    count = int(k)
    words = scoring.Words.of(query)
    found = _by_index(bank, words.search, 3 * count) or _by_like(bank, words.expanded, count)
    scores = dict(zip(found, scoring.fts_scores(list(found.values())), strict=True))
    hits = []
    matcher = _Matcher(words)
    for rowid, fact in _facts(bank, found):
        lexical = matcher.lexical(fact)
        score = scoring.fact_score(lexical, fact.confidence, scores[rowid])
        if trace is not None:
            _account(trace, words, fact, lexical, scores[rowid], score)
        if score > 0:
            hits.append(_hit(bank, fact, lexical, scores[rowid], score))
    hits.sort(key=lambda hit: hit.score or 0.0, reverse=True)
    if trace is not None:
        trace.scored(hits)
        tracing.cut(trace, hits, hits[:count])
        _account_missing(trace, bank, words.search, 3 * count)
    return hits[:count]


def _account(
    trace: Trace,
    words: Words,
    fact: _Fact,
    lexical: float,
    fts: float,
    score: float,
) -> None:
    """Note a fact that was looked at."""
    candidate = trace.candidate(TIER, fact.id)
    candidate.origin, candidate.score, candidate.base = "fts", score, lexical
    candidate.parts = ScoreParts(keyword=js.round4(lexical), fts=js.round4(fts))
    candidate.terms = {"keyword": lexical}
    candidate.factors = {"fact_factor": scoring.fact_factor(fact.confidence, fts)}
    candidate.matched = scoring.matched_words(words, scoring.Document(fact.searchable))
    if score <= 0:
        candidate.left(Step.NO_SHARED_TERM)
        candidate.detail = "only words that say nothing by themselves"


def _account_missing(trace: Trace, bank: Bank, search: str, limit: int) -> None:
    """Note where the watched facts are that were not looked at."""
    missing = trace.watch - {candidate.id for candidate in trace.candidates.values() if candidate.tier == TIER}
    if not missing:
        return
    ranks = {rowid: place for place, rowid in enumerate(_by_index(bank, search, tracing.EVERY_ROW), 1)}
    for rowid, id_, session in bank.connection.execute(
        "SELECT rowid, fact_id, session_id FROM facts WHERE fact_id IN (SELECT value FROM json_each(?))",
        (json_list(map(js.well_formed, missing)),),
    ):
        candidate = trace.candidate(TIER, as_text(id_) or "")
        if session != bank.name:
            candidate.left(Step.OUT_OF_REACH)
            candidate.detail = OTHER_SESSION
        elif rowid in ranks:
            candidate.left(Step.BEYOND_CANDIDATES)
            candidate.rank, candidate.floor = ranks[rowid], float(limit)
        else:
            candidate.left(Step.NO_SHARED_TERM)


def _by_index(bank: Bank, search: str, limit: int) -> dict[int, float]:
    # The first "+" keeps SQLite from one search for each fact, the second from sorting every one of them.
    sql = (
        "SELECT rowid, rank FROM fts_facts WHERE fts_facts MATCH ?"
        f" AND +rowid IN (SELECT rowid FROM facts WHERE session_id = ?) ORDER BY +rank, rowid LIMIT {limit}"
    )
    return dict(candidates.fetch(bank, candidates.match(bank, sql, search, (bank.name,)), limit))


def _by_like(bank: Bank, expanded: Sequence[str], limit: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for token in expanded[:_LIKE_TOKENS]:
        pattern = f"%{js.well_formed(token)}%"
        if len(pattern.encode()) > _LONGEST_PATTERN:
            continue
        for (rowid,) in bank.connection.execute(
            "SELECT rowid FROM facts WHERE session_id = ?"
            f" AND (subject LIKE ? OR predicate LIKE ? OR object LIKE ?) LIMIT {limit}",
            (bank.name, pattern, pattern, pattern),
        ):
            found[rowid] = 0.0
    return found


def _facts(bank: Bank, rowids: Any) -> list[tuple[int, _Fact]]:
    rows = bank.connection.execute(
        f"SELECT {_COLUMNS} FROM facts WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY confidence DESC, rowid",
        (json_list(rowids),),
    )
    found = []
    for rowid, id_, subject, predicate, object_, timestamp, confidence in rows:
        head = [as_text(cell) or "" for cell in (id_, subject, predicate, object_)]
        found.append(
            (
                rowid,
                _Fact(
                    head[0],
                    head[1],
                    head[2],
                    head[3],
                    as_text(timestamp),
                    number_or(confidence, scoring.UNREADABLE_IMPORTANCE),
                ),
            )
        )
    return found


class _Matcher:
    """How well facts match a query; filler words of the query count only if a fact has them."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._groups: dict[frozenset[str], scoring.Groups] = {}
        asked = {token for token, _ in words.asked}
        self._fillers = frozenset((asked | set(words.expanded)) & FACT_FILLER_WORDS) - CLITIC_FRAGMENTS

    def lexical(self, fact: _Fact) -> float:
        """Return the lexical score of a fact."""
        document = scoring.Document(fact.searchable)
        kept = self._fillers & document.tokens
        if kept not in self._groups:
            self._groups[kept] = scoring.Groups(self._counted(kept))
        return scoring.lexical_score(self._groups[kept], self._words.phrase, document)

    def _counted(self, kept: frozenset[str]) -> Iterator[list[str]]:
        for token, variants in self._words.asked:
            if token not in FACT_FILLER_WORDS or token in kept:
                group = [variant for variant in variants if variant not in FACT_FILLER_WORDS or variant in kept]
                if group:
                    yield group


def _hit(bank: Bank, fact: _Fact, lexical: float, fts: float, score: float) -> Hit:
    keyword = js.round4(lexical)
    return Hit(
        id=fact.id,
        content=fact.content,
        source=SOURCE,
        timestamp=fact.timestamp,
        score=score,
        bank=bank.name,
        tier=TIER,
        full_length=js.units(fact.content),
        parts=ScoreParts(keyword=keyword, fts=js.round4(fts), importance=js.round4(fact.confidence)),
        explanation=f"fact keyword={js.number_text(keyword)}" if lexical > 0 else "fact",
        fact=(fact.subject, fact.predicate),
    )
