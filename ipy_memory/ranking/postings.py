"""The resident index of a bank: which rows have which words, in order of time, with the voice of neighbours.

Rows are held in order of (time, stored order). Consecutive rows with small gaps form a run: what one row of a
conversation says, its neighbours are about too, so a row lends its words to them at a lower weight.
"""

from __future__ import annotations

import math
import re
from array import array
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ipy_memory.ranking.words import Languages, Stems, words_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.floating]"
Ints: TypeAlias = "NDArray[np.integer]"

SATURATION, LENGTH_SHARE = 0.9, 0.4
"""How fast a repeated word saturates, and how much a row's length counts (k1 and b of BM25)."""
VOICE = (0.4, 0.3, 0.2)
"""What a row's word is worth to the rows one, two and three places away."""
LENDING_SHARE, LENDING_ROWS = 0.1, 100
"""Words of more rows than this share (or this many, if that is more) are not lent."""
LONG_ROW = 80
"""Rows of more words need less context, and are never taken for a question."""
RUN_GAP_S = 600.0
"""Seconds between two rows that end a run."""

_PAD = len(VOICE)
_QUESTION = re.compile(r"\?[\"'”’)\s]*(\[[^\]]*\]\s*)?$")
_TAIL = 200
_LARGEST_COUNT = 255


class Row(NamedTuple):
    """What the index keeps of a row beside its words: a key, seconds since 1970, and a factor for its score."""

    key: Hashable
    time: float
    prior: float = 1.0
    asks: bool = False
    """Whether its last sentence is a question."""


class Lent(NamedTuple):
    """How a row answers a word: its worth, and the row that lent it (the row itself for its own)."""

    worth: float
    lender: int


def asks(text: str) -> bool:
    """Return whether a text ends in a question."""
    return _QUESTION.search(text[-_TAIL:]) is not None


class Postings:
    """The words of rows in order of time.

    Parameters
    ----------
    texts
        The words of the rows.
    rows
        The same rows in the same order, which need not be that of time.

    Attributes
    ----------
    keys : list
        The rows' keys in order of time; rows of one time in the order they were given.
    times, priors : ndarray
        One number a row.
    asks : ndarray of bool
        Whether the row is short and its last sentence is a question.
    """

    def __init__(self, texts: Texts, rows: Sequence[Row]) -> None:
        self.texts = texts
        times = np.array([row.time for row in rows], np.float64)
        order = np.argsort(times, kind="stable")
        self.keys: list[Hashable] = [rows[place].key for place in order]
        self.times: Floats = times[order]
        self.priors: Floats = np.array([row.prior for row in rows], np.float32)[order]
        lengths = np.diff(texts.starts)[order].astype(np.int32)
        self.asks = np.array([row.asks for row in rows], bool)[order] & (lengths <= LONG_ROW)
        self._invert(order, lengths)
        self._neighbours(lengths)

    def __len__(self) -> int:
        return len(self.keys)

    def _invert(self, order: Ints, lengths: Ints) -> None:
        rows, terms = max(1, len(self)), max(1, self.texts.vocabulary)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        # One number for a word in a row: sorted, equal numbers are neighbours and count the word.
        pairs = self.texts.flat.astype(np.int64)
        pairs *= rows
        pairs += np.repeat(place, np.diff(self.texts.starts))
        pairs.sort()
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        self._counts = np.minimum(np.diff(first, append=len(pairs)), _LARGEST_COUNT).astype(np.uint8)
        pairs = pairs[first]
        term = (pairs // rows).astype(np.int32)
        self._rows = (pairs - term.astype(np.int64) * rows).astype(np.int32)
        self._starts = np.zeros(terms + 1, np.int64)
        np.cumsum(np.bincount(term, minlength=terms), out=self._starts[1:])
        mean = max(float(lengths.mean()), 1e-9) if len(lengths) else 1.0
        self._norms = (SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / mean)).astype(np.float32)

    def _neighbours(self, lengths: Ints) -> None:
        run = np.zeros(len(self), np.int32)
        if len(self) > 1:
            run[1:] = np.cumsum(np.diff(self.times) > RUN_GAP_S)
        # Padded at both ends with runs that no row has, so that no neighbour needs a bounds check.
        self._run = np.concatenate([[-1] * _PAD, run, [-2] * _PAD]).astype(np.int32)
        needs = np.minimum(1, LONG_ROW / np.maximum(lengths, 1))
        self._needs = np.concatenate([[0] * _PAD, needs, [0] * _PAD]).astype(np.float32)
        self._scratch = np.zeros(len(self) + 2 * _PAD, np.float32)

    def having(self, answer: Sequence[str]) -> tuple[Ints, Floats]:
        """Return the rows that have one of the stems, in order, and how often."""
        spans = [slice(self._starts[term], self._starts[term + 1]) for term in self.texts.numbers(answer)]
        if len(spans) == 1:
            return self._rows[spans[0]], self._counts[spans[0]].astype(np.float32)
        rows = np.concatenate([self._rows[span] for span in spans] or [np.zeros(0, np.int32)])
        counts = np.concatenate([self._counts[span] for span in spans] or [np.zeros(0, np.uint8)])
        unique, place = np.unique(rows, return_inverse=True)
        most = np.zeros(len(unique), np.float32)
        np.maximum.at(most, place, counts.astype(np.float32))
        return unique.astype(np.int32), most

    def rarity(self, rows_with: int) -> float:
        """Return the weight of a word that so many rows have."""
        return math.log((len(self) - rows_with + 0.5) / (rows_with + 0.5) + 1) if rows_with else 0.0

    def text_scores(self, asked: Mapping[tuple[str, ...], float]) -> Floats:
        """Return for each row the share of the question that it answers, itself or through its neighbours.

        Parameters
        ----------
        asked
            Stems that answer one word -> how much the word counts: 1 for the question itself.
        """
        scores = np.zeros(len(self) + 2 * _PAD, np.float32)
        total = 0.0
        for answer, share in asked.items():
            rows, counts = self.having(answer)
            weight = self.rarity(len(rows))
            if weight:
                self._add_voice(rows, counts, share * weight, scores)
            if share == 1:
                total += weight
        found = scores[_PAD:-_PAD]
        return found / (1.2 * total) if total else found

    def _saturated(self, rows: Ints, counts: Floats) -> Floats:
        return counts * (SATURATION + 1) / (counts + self._norms[rows])

    def _lends(self, rows_with: int) -> bool:
        return rows_with <= max(LENDING_ROWS, LENDING_SHARE * len(self))

    def _add_voice(self, rows: Ints, counts: Floats, weight: float, scores: Floats) -> None:
        own = self._saturated(rows, counts)
        voice, run = self._scratch, self._run
        places = rows + _PAD
        voice[places] = own
        touched = [places]
        here = run[places]
        for distance, worth in enumerate(VOICE if self._lends(len(rows)) else (), 1):
            for step in (distance, -distance):
                near = places + step
                same = run[near] == here
                near = near[same]
                voice[near] = np.maximum(voice[near], (worth * own[same]) * self._needs[near])
                touched.append(near)
        every = np.concatenate(touched)
        # Equal values are assigned, not added: a row that is named twice counts once.
        scores[every] += weight * voice[every]
        voice[every] = 0

    def lent(self, answer: Sequence[str], row: int) -> Lent | None:
        """Return how one row answers a word, or ``None`` if neither it nor a neighbour does."""
        rows, counts = self.having(answer)
        own = self._saturated(rows, counts)
        best: Lent | None = None
        reach = _PAD if self._lends(len(rows)) else 0
        begin, end = np.searchsorted(rows, row - reach), np.searchsorted(rows, row + reach, "right")
        for at in range(int(begin), int(end)):
            lender = int(rows[at])
            distance = abs(lender - row)
            if distance and self._run[lender + _PAD] != self._run[row + _PAD]:
                continue
            worth = float(own[at]) * (VOICE[distance - 1] * float(self._needs[row + _PAD]) if distance else 1.0)
            if best is None or worth > best.worth:
                best = Lent(worth, lender)
        return best

    @property
    def memory(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.times, self.priors, self.asks, self._counts, self._rows, self._starts, self._norms)
        return sum(one.nbytes for one in (*arrays, self._run, self._needs, self._scratch))


_SAMPLE = 500
"""So many rows decide which languages a bank has."""


class Texts:
    """Rows as numbers of their stems, in the order in which they were given last.

    Parameters
    ----------
    stems
        Stems of words, shared by the banks of a process.

    Attributes
    ----------
    languages : Languages
        Of the rows, found out from the first ones at each update.
    flat, starts : ndarray
        The stems of all rows one after the other, and where each row's begin (one more at the end).
    """

    def __init__(self, stems: Stems) -> None:
        self.stems = stems
        self.languages = Languages()
        self.flat: Ints = np.zeros(0, np.int32)
        self.starts: Ints = np.zeros(1, np.int64)
        self._numbers: dict[str, int] = {}
        self._of_word: dict[tuple[str, str], tuple[int, ...]] = {}
        self._keys: Ints = np.zeros(0, np.int64)
        self._prints: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def vocabulary(self) -> int:
        """How many stems are known."""
        return len(self._numbers)

    @property
    def memory(self) -> int:
        """Bytes of the arrays."""
        return sum(one.nbytes for one in (self.flat, self.starts, self._keys, self._prints))

    def number(self, stem: str) -> int | None:
        """Return the number of a stem, or ``None`` where no row has ever had it."""
        return self._numbers.get(stem)

    def update(self, rows: Iterable[tuple[int, str]]) -> int:
        """Take the rows as they are now, as key and text; return how many were new or had another text.

        A row whose key and text are those of before keeps its words.
        """
        rows = iter(rows)
        sample = list(islice(rows, _SAMPLE))
        languages = Languages.of_rows(text for _, text in sample)
        if languages.names != self.languages.names:
            self.languages, self._keys = languages, np.zeros(0, np.int64)  # every row is read again
            self._numbers.clear()
        rows = chain(sample, rows)
        places = dict(zip(self._keys.tolist(), range(len(self._keys)), strict=True))
        old_prints, old_starts, old_flat = self._prints.tolist(), self.starts.tolist(), array("i", self.flat.tobytes())
        keys, prints, starts, flat = array("q"), array("q"), array("q", [0]), array("i")
        changed = 0
        for key, text in rows:
            mark = hash(text)
            place = places.get(key)
            if place is not None and old_prints[place] == mark:
                flat.extend(old_flat[old_starts[place] : old_starts[place + 1]])
            else:
                self._add(text, flat)
                changed += 1
            keys.append(key)
            prints.append(mark)
            starts.append(len(flat))
        self._of_word.clear()  # a bank has far more different words than stems: they are read again when needed
        self._keys, self._prints = np.array(keys, np.int64), np.array(prints, np.int64)
        self.starts, self.flat = np.array(starts, np.int64), np.array(flat, np.int32)
        return changed

    def _add(self, text: str, flat: array[int]) -> None:
        words = words_of(text)
        language = self.languages.of(words)
        for word in words:
            numbers = self._of_word.get((language, word))
            if numbers is None:
                found = self.stems.of_word(word, language)
                numbers = self._of_word[language, word] = tuple(self._number(stem) for stem in found)
            flat.extend(numbers)

    def _number(self, stem: str) -> int:
        return self._numbers.setdefault(stem, len(self._numbers))

    def asked(self, query: str) -> list[tuple[str, ...]]:
        """Return what a query asks for: for each word the stems that answer it."""
        return self.stems.of_query(query, self.languages)

    def numbers(self, stems: Sequence[str]) -> list[int]:
        """Return the numbers of those stems that some row has had."""
        return [number for stem in stems if (number := self._numbers.get(stem)) is not None]
