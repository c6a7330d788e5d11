"""What became of each row that a recall looked at: the one account that explanations read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ipy_memory.model import ScoreParts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

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
