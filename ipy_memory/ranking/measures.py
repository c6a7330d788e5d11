"""How well a ranking answers questions whose memories are known: hit, recall, reciprocal rank, gain, and intervals.

All measures look at the first ``k`` entries. A difference between two rankings is judged by pairs: both answered the
same questions, so what counts is the difference for each question.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

RESAMPLES = 2_000
"""How many times the questions are drawn again for an interval."""

_LEVEL, _POWER = 1.959964, 0.841621
"""Quantiles of the normal distribution: 95 % confidence, and a power of 80 %."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one question, each from 0 to 1.

    Attributes
    ----------
    hit
        Whether any of its memories is among the first ``k``.
    recall
        The share of its memories that is.
    reciprocal
        One divided by the rank of the first of them; 0 where there is none.
    gain
        The normalised discounted cumulative gain.
    """

    hit: float
    recall: float
    reciprocal: float
    gain: float


def scores(ranked: Sequence[str], wanted: Collection[str], k: int) -> Scores:
    """Return the measures of one question.

    Parameters
    ----------
    ranked
        Ids as they were given, best first.
    wanted
        The ids of the memories that answer the question; at least one.
    k
        How many entries are looked at; at least 1.

    Examples
    --------
    >>> scores(["a", "b", "c"], {"b"}, 3)
    Scores(hit=1.0, recall=1.0, reciprocal=0.5, gain=0.6309297535714575)
    """
    first = list(dict.fromkeys(ranked))[:k]
    places = [place for place, id_ in enumerate(first, 1) if id_ in wanted]
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(set(wanted)), k) + 1))
    return Scores(
        float(bool(places)),
        len(places) / len(set(wanted)),
        1 / places[0] if places else 0.0,
        sum(1 / math.log2(place + 1) for place in places) / ideal,
    )


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0


def interval(differences: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of a mean difference, by drawing the questions again (paired bootstrap).

    Parameters
    ----------
    differences
        One for each question.
    seed
        The same seed gives the same interval.
    """
    if not differences:
        return 0.0, 0.0
    draw = random.Random(seed)  # noqa: S311  repeatable, and no secret
    means = sorted(mean(draw.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return means[round(0.025 * (RESAMPLES - 1))], means[round(0.975 * (RESAMPLES - 1))]


def needed(differences: Sequence[float]) -> int | None:
    """Return how many questions show a difference as large as the mean one, 95 % sure, four times out of five.

    ``None`` where the mean difference is nothing, which no number of questions shows.
    """
    if len(differences) < 2 or not (size := abs(mean(differences))):
        return None
    centre = mean(differences)
    variance = math.fsum((one - centre) ** 2 for one in differences) / (len(differences) - 1)
    return max(2, math.ceil((_LEVEL + _POWER) ** 2 * variance / size**2))


def seen_difference(count: int, spread: float = 0.3) -> float:
    """Return the least difference that a number of questions can show, for a usual spread of the differences."""
    return (_LEVEL + _POWER) * spread / math.sqrt(max(count, 1))
