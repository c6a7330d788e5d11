"""Choosing from scored rows: variety against score (MMR), and coverage of a query's words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from ipy_memory import js

Item = TypeVar("Item")


def words(content: str) -> frozenset[str]:
    """Return the lower-cased words of a text, split at white space."""
    return frozenset(js.split_spaces(js.lower(content)))


def jaccard(ours: AbstractSet[str], theirs: AbstractSet[str]) -> float:
    """Return the part of two word sets that both have; 0 when one is empty."""
    if not ours or not theirs:
        return 0.0
    common = len(ours & theirs)
    return common / (len(ours) + len(theirs) - common)


def mmr(
    items: Sequence[Item],
    lam: float,
    top_k: float,
    *,
    score: Callable[[Item], float],
    content: Callable[[Item], str],
) -> list[Item]:
    """Return up to ``top_k`` items, each the best one left by ``lam`` * score less likeness to those taken.

    Parameters
    ----------
    items
        Any order; ties keep it.
    lam
        1 looks at the score alone, 0 at variety alone.
    top_k
        How many to return; a fraction is cut off.
    score, content
        What to read from an item.
    """
    left = sorted(items, key=score, reverse=True)
    taken: list[Item] = []
    likeness = [0.0] * len(left)
    word_sets = [words(content(item)) for item in left]
    while left and len(taken) < int(top_k):
        gains = [lam * score(item) - (1 - lam) * like for item, like in zip(left, likeness, strict=True)]
        best = gains.index(max(gains)) if taken else 0
        taken.append(left.pop(best))
        chosen = word_sets.pop(best)
        likeness.pop(best)
        likeness = [max(like, jaccard(chosen, other)) for like, other in zip(likeness, word_sets, strict=True)]
    return taken


def cover(
    items: Sequence[Item],
    wanted: Collection[str],
    top_k: int,
    *,
    bonus: float,
    score: Callable[[Item], float],
    tokens: Callable[[Item], Sequence[str]],
) -> list[Item]:
    """Return ``top_k`` items, each the best one left by score plus ``bonus`` for each token not yet covered.

    Parameters
    ----------
    items
        In order of score; the first of equals wins.
    wanted
        The tokens to cover.
    top_k
        How many to return.
    bonus
        Worth of one occurrence of an uncovered token.
    score, tokens
        What to read from an item; repeated tokens count each time.
    """
    uncovered = set(wanted)
    left = [(item, [token for token in tokens(item) if token in uncovered]) for item in items]
    taken: list[Item] = []
    while left and len(taken) < top_k:
        gains = [score(item) + bonus * sum(token in uncovered for token in found) for item, found in left]
        item, found = left.pop(gains.index(max(gains)))
        taken.append(item)
        uncovered.difference_update(found)
    return taken
