"""The order of texts that JavaScript's ``localeCompare`` gives: Unicode's root collation, three levels.

Texts are compared by their letters first, then by accents, then by small differences such as upper and lower case.
The weights are data (``collation.json.z``, Unicode 17): characters with one weight are kept as runs of neighbouring
code points with rising primary weights; those with several, and sequences that weigh as one, stand under their text.
"""

from __future__ import annotations

import json
import unicodedata
import zlib
from bisect import bisect_right
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import Any

from ipy_memory.jscompat import strings as js

Weight = tuple[int, int, int]
"""Primary, secondary and tertiary weight; 0 counts for nothing at its level."""

Key = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

_LAST_CODE = 0x10FFFF
# The two that sort behind everything else, unassigned characters included.
_LAST = {"\ufffd": 1, "\uffff": 2}


class _Weights:
    """The table of weights, as read from the package's data."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.starts = list(accumulate(data["starts"]))
        self.lengths: list[int] = data["lengths"]
        self.primaries = list(accumulate(data["primaries"]))
        self.kinds: list[int] = data["kinds"]
        self.lower_weights: list[tuple[int, int]] = [(second, third) for second, third in data["weights"]]
        self.common: tuple[int, int] = (data["common"][0], data["common"][1])
        self.unassigned: int = data["ranks"]
        self.several: dict[str, tuple[Weight, ...]] = {
            text: tuple(zip(flat[::3], flat[1::3], flat[2::3], strict=True)) for text, flat in data["several"].items()
        }
        self.sequence_sizes: dict[str, int] = {}
        for text in self.several:
            if len(text) > 1:
                self.sequence_sizes[text[0]] = max(len(text), self.sequence_sizes.get(text[0], 0))

    def of(self, character: str) -> tuple[Weight, ...]:
        """Return the weights of one character."""
        if character in self.several:
            return self.several[character]
        code = ord(character)
        run = bisect_right(self.starts, code) - 1
        step = code - self.starts[run]
        if character not in _LAST and step < self.lengths[run]:
            primary = self.primaries[run]
            return ((primary + step if primary else 0, *self.lower_weights[self.kinds[run]]),)
        rank = _LAST_CODE + _LAST[character] if character in _LAST else code
        return ((self.unassigned + rank, *self.common),)


@cache
def _weights() -> _Weights:
    packed = files("ipy_memory.jscompat").joinpath("collation.json.z").read_bytes()
    return _Weights(json.loads(zlib.decompress(packed)))


@lru_cache(maxsize=4096)
def _character(character: str) -> tuple[Weight, ...]:
    return _weights().of(character)


def key(text: str) -> Key:
    """Return a sort key that orders texts as :func:`compare` does."""
    left = list(unicodedata.normalize("NFD", js.pairs(text)))
    found: list[Weight] = []
    at = 0
    while at < len(left):
        if left[at] in _weights().sequence_sizes:
            sequence = _take_sequence(left, at)
            found += _weights().several.get(sequence) or _character(sequence)
        else:
            found += _character(left[at])
        at += 1
    first, second, third = (tuple(weight[level] for weight in found if weight[level]) for level in range(3))
    return first, second, third


def _take_sequence(left: list[str], at: int) -> str:
    """Return the longest sequence that weighs as one from ``at``, and take what follows its first character out.

    A mark belongs to the sequence even when others stand before it, unless one of them goes to the same place.
    """
    table = _weights()
    sequence = left[at]
    for size in range(table.sequence_sizes[sequence], 1, -1):
        candidate = "".join(left[at : at + size])
        if candidate in table.several:
            sequence = candidate
            del left[at + 1 : at + len(candidate)]
            break
    after, passed = at + 1, 0
    while after < len(left) and (place := unicodedata.combining(left[after])):
        if place > passed and sequence + left[after] in table.several:
            sequence += left.pop(after)
        else:
            passed = place
            after += 1
    return sequence


def compare(ours: str, theirs: str) -> int:
    """Return -1, 0 or 1: the order of two texts."""
    if ours == theirs:
        return 0
    left, right = key(ours), key(theirs)
    return (left > right) - (left < right)
