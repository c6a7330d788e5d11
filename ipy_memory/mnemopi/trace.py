"""What became of each row that a recall looked at: the one account that explanations read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ipy_memory.model import ScoreParts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ipy_memory.model import Hit


class Step(StrEnum):
    """Where a candidate left the recall, or that it stayed."""

    RETURNED = "returned"
    ABSENT = "absent"
    NOT_VISIBLE = "not visible"
    BEYOND_CANDIDATES = "beyond the candidate limit"
    BELOW_FLOOR = "below the relevance floor"
    NO_MATCH = "a fact without a matching word"
    SUMMARISED = "its own memory is in the list"
    NOT_COVERING = "other rows cover more words"
    RERANKED = "too like a chosen row, or too weak"
    CUT = "beyond the limit"
    DEDUPLICATED = "the same as another bank's entry"


@dataclass(slots=True)
class Candidate:
    """One row on its way through a recall.

    ``by`` names the row that pushed it out, ``detail`` says more (why it is not visible, the floor it missed),
    ``origin`` is ``fts``, ``vec`` or ``fallback``, ``place`` its position in the bank's answer from 0.
    """

    tier: str
    id: str
    step: Step = Step.RETURNED
    origin: str | None = None
    parts: ScoreParts = field(default_factory=ScoreParts)
    score: float | None = None
    factors: dict[str, float] = field(default_factory=dict)
    by: str | None = None
    detail: str | None = None
    place: int | None = None


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
    query: str | None = None
    floor: float | None = None
    weights: tuple[float, float, float] | None = None
    candidates: dict[tuple[str, str], Candidate] = field(default_factory=dict)

    def candidate(self, tier: str, id_: str) -> Candidate:
        """Return the account of a row, begun if need be."""
        return self.candidates.setdefault((tier, id_), Candidate(tier, id_))

    def left(self, hits: Iterable[Hit], kept: Iterable[Hit], step: Step, by: str | None = None) -> None:
        """Note that those of ``hits`` which are not among ``kept`` left at ``step``."""
        staying = {id(hit) for hit in kept}
        for hit in hits:
            if id(hit) not in staying:
                candidate = self.candidate(hit.tier or "", hit.id or "")
                candidate.step, candidate.by = step, by

    def returned(self, hits: Iterable[Hit]) -> None:
        """Note the final answer and its order."""
        for place, hit in enumerate(hits):
            candidate = self.candidate(hit.tier or "", hit.id or "")
            candidate.step, candidate.by, candidate.place = Step.RETURNED, None, place

    def of(self, id_: str) -> tuple[Candidate, ...]:
        """Return the accounts of one id (it may be known in several tiers)."""
        return tuple(candidate for candidate in self.candidates.values() if candidate.id == id_)
