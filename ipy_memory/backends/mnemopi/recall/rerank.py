"""Choosing from scored rows: variety against score (MMR), and coverage of a query's words."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heapreplace
from sys import intern
from typing import TYPE_CHECKING, TypeVar

from ipy_memory.backends.mnemopi.recall.query_terms import tokenise
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from collections.abc import Set as AbstractSet

Item = TypeVar("Item")


def words(content: str) -> frozenset[str]:
    """Return the lower-cased words of a text, split at white space."""
    return frozenset(map(intern, js.split_spaces(js.lower(content))))


class Preview:
    """The text by which a row is compared with others, and its words once they are needed."""

    __slots__ = ("_tokens", "_words", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._words: frozenset[str] | None = None
        self._tokens: tuple[str, ...] | None = None

    @property
    def words(self) -> frozenset[str]:
        """The words that :func:`mmr` compares."""
        if self._words is None:
            self._words = words(self.text)
        return self._words

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens that :func:`cover` counts."""
        if self._tokens is None:
            self._tokens = tuple(map(intern, tokenise(self.text)))
        return self._tokens


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
    words: Callable[[Item], AbstractSet[str]],
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
    score, words
        What to read from an item.
    """
    ordered = sorted(items, key=score, reverse=True)
    taken: list[Item] = []
    taken_words: list[AbstractSet[str]] = []
    # Likeness to those taken only grows as more are taken, so a gain worked out earlier is never too low: only the
    # foremost item must be brought up to date. Entries are (-gain, place, how many taken were compared, likeness).
    heap = [(-lam * score(item), place, 0, 0.0) for place, item in enumerate(ordered)]
    heapify(heap)
    while heap and len(taken) < int(top_k):
        _, place, compared, like = heap[0]
        item = ordered[place]
        if compared == len(taken):
            heappop(heap)
            taken.append(item)
            taken_words.append(words(item))
        else:
            ours = words(item)
            for theirs in taken_words[compared:]:
                like = max(like, jaccard(theirs, ours))
            heapreplace(heap, (-(lam * score(item) - (1 - lam) * like), place, len(taken), like))
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
    known: dict[int, list[str]] = {}
    taken: list[Item] = []
    # As tokens get covered a gain only falls: as in mmr, only the foremost item must be brought up to date.
    heap = [(-math.inf, place, -1) for place in range(len(items))]
    while heap and len(taken) < top_k:
        _, place, compared = heap[0]
        if compared == len(taken):
            heappop(heap)
            taken.append(items[place])
            uncovered.difference_update(known[place])
        else:
            if place not in known:
                known[place] = [token for token in tokens(items[place]) if token in uncovered]
            gain = score(items[place]) + bonus * sum(token in uncovered for token in known[place])
            heapreplace(heap, (-gain, place, len(taken)))
    return taken
