"""The words of rows as numbers, kept from one state of a bank to the next, so that only what changed is read again."""

from __future__ import annotations

from array import array
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from ipy_memory.ranking.words import Languages, Stems, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ipy_memory.ranking.postings import Ints

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
