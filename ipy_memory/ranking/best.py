"""The score of the ranking `best`, and its parts: words, similarity, dates, priors.

    score = ((1 - a) * text + a * similarity) * asks * (1 + 2 * near) * prior + 0.01 * near

`text` is the share of the question that a row or its neighbours answer; `similarity` how far the row's vector stands
out from all others of the bank. Both are comparable across banks, so that banks are merged by score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ipy_memory.ranking.query_dates import named_dates, nearness

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ipy_memory.ranking.postings import Floats, Ints, Postings

SIMILARITY_SHARE = 0.35
"""What a sentence model's vectors count beside the words; nothing without vectors."""
SIMILARITY_SCALE = 6.0
"""So many standard deviations above the mean are a full similarity."""
ASKS_FACTOR = 0.85
"""For a short row that ends in a question: it asks what others answer."""
NEAR_FACTOR, NEAR_ALONE = 2.0, 0.01
"""What a named date multiplies, and what it is worth to rows without any word of the query."""
CONTEXT_SHARE = 0.1
"""What a word counts that only earlier turns of a conversation have."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the ranking takes it: the latest message, what was said before it, and its vector if there is one."""

    text: str
    earlier: str = ""
    vector: Floats | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """The parts of every row's score, in the order of the index; ``None`` where a part has no say."""

    asked: dict[tuple[str, ...], float]
    text: Floats
    similarity: Floats | None
    near: Floats | None
    asks: Floats
    total: Floats

    def top(self, count: int) -> Ints:
        """Return the rows of the highest scores above 0, best first; of equals the earlier one first."""
        most = min(count, len(self.total))
        if most < len(self.total):
            # The boundary value may be shared: take all that reach it, then cut in order.
            edge = np.partition(-self.total, most - 1)[most - 1]
            rows = np.flatnonzero(-self.total <= edge)
        else:
            rows = np.arange(len(self.total))
        rows = rows[np.lexsort((rows, -self.total[rows]))][:most]
        return rows[self.total[rows] > 0]


def asked_words(index: Postings, question: Question) -> dict[tuple[str, ...], float]:
    """Return what a question asks for: the stems that answer each word, and how much the word counts."""
    asked = dict.fromkeys(index.texts.asked(question.text), 1.0)
    if question.earlier:
        for answer in index.texts.asked(question.earlier):
            asked.setdefault(answer, CONTEXT_SHARE)
    return asked


def score(index: Postings, question: Question, vectors: Vectors | None = None) -> Scores:
    """Score every row of an index for a question."""
    asked = asked_words(index, question)
    text = index.text_scores(asked)
    similarity = vectors.similarities(question.vector) if vectors and question.vector is not None else None
    joined = text if similarity is None else (1 - SIMILARITY_SHARE) * text + SIMILARITY_SHARE * similarity
    asks = np.where(index.asks, np.float32(ASKS_FACTOR), np.float32(1))
    total = joined * index.priors * asks
    dates = named_dates(question.text) if len(index) else []
    near = nearness(dates, index.times) if dates else None
    if near is not None:
        total = total * (1 + NEAR_FACTOR * near) + NEAR_ALONE * near
    return Scores(asked, text, similarity, near, asks, total)


class Vectors:
    """The vectors of an index's rows, compared all at once.

    Parameters
    ----------
    rows
        The places in the index that have a vector.
    matrix
        One vector a row of ``rows``, any length but 0.
    size
        How many rows the index has.
    """

    def __init__(self, rows: Sequence[int] | Ints, matrix: Floats, size: int) -> None:
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        self._rows = np.asarray(rows, np.int64)
        self._matrix = (matrix / np.maximum(lengths, 1e-9)).astype(np.float32)
        self._size = size

    def similarities(self, vector: Floats) -> Floats | None:
        """Return how far each row stands out, 0 to about 1; rows without a vector have 0 and no say in the mean."""
        length = float(np.linalg.norm(vector))
        if not len(self._rows) or self._matrix.shape[1] != len(vector) or length < 1e-9:
            return None
        cosines = self._matrix @ (np.asarray(vector, np.float32) / length)
        mean, deviation = float(cosines.mean()), float(cosines.std())
        if deviation <= 1e-9:
            return None
        found = np.zeros(self._size, np.float32)
        found[self._rows] = np.maximum(cosines - mean, 0) / (SIMILARITY_SCALE * deviation)
        return found


@dataclass(frozen=True, slots=True)
class Reason:
    """One line of an explanation: a word with its share of the score, and the row that lent it, if another."""

    word: str
    share: float
    lent_by: Hashable | None = None


def reasons(index: Postings, scores: Scores, row: int) -> list[Reason]:
    """Return the words that make up a row's text score, the weightiest first; their shares add up to it."""
    weights = {answer: index.rarity(len(index.having(answer)[0])) for answer in scores.asked}
    whole = 1.2 * sum(weight for answer, weight in weights.items() if scores.asked[answer] == 1)
    found = []
    for answer, weight in weights.items():
        lent = index.lent(answer, row) if weight and whole else None
        if lent is not None:
            lender = None if lent.lender == row else index.keys[lent.lender]
            found.append(Reason(answer[0], scores.asked[answer] * weight * lent.worth / whole, lender))
    return sorted(found, key=lambda reason: -reason.share)
