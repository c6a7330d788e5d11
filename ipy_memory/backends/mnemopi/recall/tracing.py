"""What a recall notes down for explanations while a trace listens; nothing here changes an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.visibility import EXPIRED, hidden
from ipy_memory.backends.mnemopi.recall import candidates, rerank, scoring
from ipy_memory.jscompat import strings as js
from ipy_memory.model import ScoreParts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.db.visibility import Hidden, Visibility
    from ipy_memory.backends.mnemopi.recall.candidates import Entry, Found
    from ipy_memory.backends.mnemopi.recall.row_cache import Tier
    from ipy_memory.backends.mnemopi.recall.scoring import Factors, Words
    from ipy_memory.model import Hit


class Step(StrEnum):
    """Where a candidate left the recall, or that it stayed; in the order of the way."""

    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    OUT_OF_REACH = "out of reach"
    NO_SHARED_TERM = "no shared term"
    BEYOND_CANDIDATES = "beyond the candidate limit"
    BELOW_FLOOR = "below the relevance floor"
    SUMMARISED = "its own memory is in the list"
    NOT_COVERING = "others cover more of the query"
    RERANKED = "reranked away"
    CUT = "beyond the limit"
    DEDUPLICATED = "the same as another entry"
    RETURNED = "returned"

    @property
    def place(self) -> int:
        """How far the way went."""
        return list(Step).index(self)


@dataclass(slots=True)
class Candidate:
    """One row on its way through a recall.

    Attributes
    ----------
    origin
        How it was found: ``fts``, ``vec`` or ``fallback`` (one of the newest, as no word of the query was found).
    terms, factors
        What each part adds to the score before time and trust count, and what these multiply it by. The score is
        the sum of the terms, times each factor, rounded to four digits.
    matched
        The words of the query that it has, or has a synonym of, as they were typed.
    rank
        Its position among all rows that the search would give, from 1; for rows beyond the candidate limit too.
    scored_place, place
        Position among the bank's scored rows of its kind, and in the bank's answer, from 0.
    by, by_bank
        The row that pushed it out.
    value, floor
        What it reached and what was asked for, where it fell below a floor or behind a limit.
    """

    tier: str
    id: str
    step: Step = Step.RETURNED
    origin: str | None = None
    parts: ScoreParts = field(default_factory=ScoreParts)
    score: float | None = None
    base: float | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    matched: tuple[str, ...] = ()
    rank: int | None = None
    scored_place: int | None = None
    place: int | None = None
    by: str | None = None
    by_bank: str | None = None
    value: float | None = None
    floor: float | None = None
    detail: str | None = None

    def left(self, step: Step, *, by: str | None = None, by_bank: str | None = None) -> None:
        """Note where it left."""
        self.step, self.by, self.by_bank = step, by, by_bank


@dataclass(slots=True)
class Trace:
    """The account of one engine call.

    Parameters
    ----------
    watch
        Ids to account for even if the recall never looks at them.
    """

    watch: frozenset[str] = frozenset()
    bank: str | None = None
    path: Path | None = None
    query: str | None = None
    floor: float | None = None
    weights: tuple[float, float, float] | None = None
    candidates: dict[tuple[str, str], Candidate] = field(default_factory=dict)

    def candidate(self, tier: str, id_: str) -> Candidate:
        """Return the account of a row, begun if need be."""
        return self.candidates.setdefault((tier, id_), Candidate(tier, id_))

    def of_hit(self, hit: Hit) -> Candidate:
        """Return the account of a hit."""
        return self.candidate(hit.tier or "", hit.id or "")

    def scored(self, hits: Iterable[Hit]) -> None:
        """Note the order by score alone."""
        for place, hit in enumerate(hits):
            self.of_hit(hit).scored_place = place

    def returned(self, hits: Iterable[Hit]) -> None:
        """Note the bank's answer and its order."""
        for place, hit in enumerate(hits):
            candidate = self.of_hit(hit)
            candidate.left(Step.RETURNED)
            candidate.place = place

    def of(self, id_: str) -> tuple[Candidate, ...]:
        """Return the accounts of one id (it may be known in several tiers)."""
        return tuple(candidate for candidate in self.candidates.values() if candidate.id == id_)


EVERY_ROW = 1 << 30
"""A limit that no bank reaches: to learn the rank of rows beyond the candidate limit."""


def below_floor(trace: Trace, tier: Tier, how: Found, words: Words, lexical: float) -> None:
    """Note a row that was looked at and matches too little."""
    candidate = trace.candidate(tier.name, how.row.id)
    candidate.origin, candidate.matched = how.origin, scoring.matched_words(words, how.row.document)
    candidate.parts = ScoreParts(keyword=js.round4(lexical), dense=js.round4(how.similarity), fts=js.round4(how.fts))
    # One of the newest, which stand in where no row has a word of the query: it is no match at all.
    candidate.left(Step.BELOW_FLOOR if candidate.matched or how.origin != "fallback" else Step.NO_SHARED_TERM)
    candidate.value, candidate.floor = lexical, trace.floor


def scored(
    trace: Trace, entry: Entry, how: Found, words: Words, base: float, terms: Mapping[str, float], factors: Factors
) -> None:
    """Note how a row got its score."""
    candidate = trace.candidate(entry.tier, entry.id)
    candidate.origin, candidate.matched = how.origin, scoring.matched_words(words, how.row.document)
    candidate.parts, candidate.score, candidate.base = entry.hit.parts, entry.score, base
    candidate.terms = terms
    candidate.factors = {f"{name}_factor": factor for name, factor in factors._asdict().items()}


def not_looked_at(
    trace: Trace, bank: Bank, tier: Tier, looked_at: Iterable[str], query: str, visible: Visibility, limit: float
) -> None:
    """Note for the watched rows of a tier that were not looked at why they were not."""
    missing = trace.watch - set(looked_at)
    states = hidden(bank, tier.table, missing, visible) if missing else {}
    open_ids = [id_ for id_, state in states.items() if not state.reasons]
    ranks = candidates.places(bank, tier, query, visible, open_ids) if open_ids else {}
    for id_, state in sorted(states.items()):
        candidate = trace.candidate(tier.name, id_)
        if state.reasons:
            _hidden(candidate, state)
        elif id_ in ranks:
            candidate.left(Step.BEYOND_CANDIDATES)
            candidate.rank, candidate.floor = ranks[id_], float(int(-(-limit // 1)))
        else:
            candidate.left(Step.NO_SHARED_TERM)


def _hidden(candidate: Candidate, state: Hidden) -> None:
    candidate.detail = "; ".join(state.reasons)
    if state.superseded_by is not None:
        candidate.left(Step.SUPERSEDED, by=state.superseded_by)
    elif EXPIRED in state.reasons:
        candidate.left(Step.EXPIRED)
        candidate.detail = state.valid_until
    else:
        candidate.left(Step.OUT_OF_REACH)


def summarised(trace: Trace, hit: Hit, original: str) -> None:
    """Note an episode that gives way to a memory it sums up."""
    trace.of_hit(hit).left(Step.SUMMARISED, by=original, by_bank=hit.bank)


def cut(trace: Trace, hits: Sequence[Hit], kept: Sequence[Hit]) -> None:
    """Note what a limit on the order of score left out."""
    for candidate, _ in _dropped(trace, hits, kept):
        candidate.left(Step.CUT)


def covered(trace: Trace, hits: Sequence[Hit], kept: Sequence[Hit]) -> None:
    """Note what gave way to others that cover more words of the query, and what was too weak anyway."""
    weakest = min(kept, key=_score, default=None)
    for candidate, hit in _dropped(trace, hits, kept):
        if weakest is not None and _score(hit) > _score(weakest):
            candidate.left(Step.NOT_COVERING, by=weakest.id, by_bank=weakest.bank)
        else:
            candidate.left(Step.CUT)


def varied(trace: Trace, hits: Sequence[Hit], kept: Sequence[Hit]) -> None:
    """Note what gave way for being like a chosen one, and what was too weak anyway."""
    if len(kept) == len(hits):
        return
    chosen = [(hit, rerank.words(hit.content)) for hit in kept]
    weakest = min(map(_score, kept), default=0.0)
    for candidate, hit in _dropped(trace, hits, kept):
        if chosen and _score(hit) > weakest:
            ours = rerank.words(hit.content)
            like, likeness = max(
                ((other, rerank.jaccard(ours, words)) for other, words in chosen), key=lambda pair: pair[1]
            )
            candidate.left(Step.RERANKED, by=like.id, by_bank=like.bank)
            candidate.value = likeness
        else:
            candidate.left(Step.CUT)


def merged(owners: Mapping[int, Trace], lost: Iterable[tuple[Hit, Hit]], beyond: Iterable[Hit]) -> None:
    """Note what the merge of several answers did.

    Parameters
    ----------
    owners
        ``id(hit)`` -> the account of the call that gave it.
    lost
        Each hit that was the same as another one, with the one that stayed.
    beyond
        The hits beyond the limit.
    """
    for hit, winner in lost:
        if trace := owners.get(id(hit)):
            trace.of_hit(hit).left(Step.DEDUPLICATED, by=winner.id, by_bank=winner.bank)
    for hit in beyond:
        if trace := owners.get(id(hit)):
            trace.of_hit(hit).left(Step.CUT)


def _dropped(trace: Trace, hits: Iterable[Hit], kept: Iterable[Hit]) -> list[tuple[Candidate, Hit]]:
    staying = {id(hit) for hit in kept}
    return [(trace.of_hit(hit), hit) for hit in hits if id(hit) not in staying]


def _score(hit: Hit) -> float:
    return hit.score or 0.0
