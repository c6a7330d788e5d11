"""What a recall notes down for explanations while a trace listens; nothing here changes an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.visibility import EXPIRED, hidden
from ipy_memory.backends.mnemopi.recall import candidates, rerank, scoring
from ipy_memory.backends.trace import Step
from ipy_memory.jscompat import strings as js
from ipy_memory.model import ScoreParts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.db.visibility import Hidden, Visibility
    from ipy_memory.backends.mnemopi.recall.candidates import Entry, Found
    from ipy_memory.backends.mnemopi.recall.row_cache import Tier
    from ipy_memory.backends.mnemopi.recall.scoring import Factors, Words
    from ipy_memory.backends.trace import Candidate, Trace
    from ipy_memory.model import Hit

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
