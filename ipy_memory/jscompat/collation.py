"""The order of texts that JavaScript's ``localeCompare`` gives: Unicode's root collation, three levels.

Texts are compared by their letters first, then by accents, then by small differences such as upper and lower case.
The weights are data (``collation.json.z``, Unicode 17): characters with one weight are kept as runs of neighbouring
code points with rising primary weights; those with several, and sequences that weigh as one, stand under their text.
"""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from bisect import bisect_right
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import Any
from unicodedata import category

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
    """Return -1, 0 or 1: the order of two texts (R-20)."""
    if ours == theirs:
        return 0
    left, right = key(ours), key(theirs)
    return (left > right) - (left < right)


_NEWER = (
    "88f c5c cdc 1c89-1c8a a7cb-a7cf a7d2 a7d4 a7da-a7dc a7f1 105c0-105f3 10940-10959 10d40-10d65 10d6f-10d85 "
    "10ec2-10ec7 1123f-11240 11380-11389 1138b 1138e 11390-113b5 113b7 113d1 113d3 116d0-116e3 11bc0-11be0 "
    "11bf0-11bf9 11db0-11ddb 11de0-11de9 11f02 11f04-11f10 11f12-11f33 11f50-11f59 1342f 13441-13446 13460-143fa "
    "16100-1611d 16130-16139 16d40-16d6c 16d70-16d79 16ea0-16eb8 16ebb-16ed3 16ff2-16ff6 187f8-187ff 18cff "
    "18d09-18d1e 18d80-18df2 1b132 1b155 1ccf0-1ccf9 1d2c0-1d2d3 1df25-1df2a 1e030-1e06d 1e4d0-1e4eb 1e4f0-1e4f9 "
    "1e5d0-1e5ed 1e5f0-1e5fa 1e6c0-1e6de 1e6e0-1e6e2 1e6e4-1e6e5 1e6e7-1e6ed 1e6f0-1e6f4 1e6fe-1e6ff 2b739-2b73f "
    "2cea2-2cead 2ebf0-2ee5d 31350-33479 "
)
"""The letters and digits that Unicode got after version 14."""

_CAPITALS = {
    (0x1C89, 0x1C89): 1,
    (0xA7CB, 0xA7CB): -42343,
    (0xA7CC, 0xA7CC): 1,
    (0xA7CE, 0xA7CE): 1,
    (0xA7D2, 0xA7D2): 1,
    (0xA7D4, 0xA7D4): 1,
    (0xA7DA, 0xA7DA): 1,
    (0xA7DC, 0xA7DC): -42561,
    (0x10D50, 0x10D65): 32,
    (0x16EA0, 0x16EB8): 27,
}
"""Those of them that have a small letter: the first, the last, and how far away their small letters are."""

_LONE_SMALL = "1df25-1df2a"
"""Newer small letters without a capital."""


def _class(ranges: str) -> str:
    return "".join("-".join(chr(int(end, 16)) for end in part.split("-")) for part in ranges.split())


WORD = rf"\w{_class(_NEWER)}"
r"""The inside of a character class that matches ``[\p{L}\p{N}_]``."""

_SMALL = {code: code + away for (first, last), away in _CAPITALS.items() for code in range(first, last + 1)}
_NEWER_CAPITALS = frozenset(map(chr, _SMALL))
_NEWER_SMALL = re.compile(f"[{''.join(map(chr, _SMALL.values()))}{_class(_LONE_SMALL)}]")
_NO_SMALL = "\u0295"  # a small letter up to version 15
_PLAIN_WORD, _ANY_WORD = re.compile(r"\w+"), re.compile(f"[{WORD}]+")
_LETTER_OR_DIGIT = re.compile(rf"[^\W_]|[{_class(_NEWER)}]")


@cache
def _newer() -> frozenset[str]:
    # Asking a set for each character of a text is far quicker than asking a class of many ranges.
    ends = [[int(end, 16) for end in part.split("-")] for part in _NEWER.split()]
    return frozenset(chr(code) for first, *last in ends for code in range(first, (last or [first])[0] + 1))


def words(text: str) -> list[str]:
    r"""Return the runs of ``[\p{L}\p{N}_]`` in a text."""
    return (_PLAIN_WORD if text.isascii() or _newer().isdisjoint(text) else _ANY_WORD).findall(text)


def is_word_character(char: str) -> bool:
    r"""Return whether a character is one of ``[\p{L}\p{N}_]``."""
    return char.isalnum() or char == "_" or (not char.isascii() and char in _newer())


def has_letter_or_digit(text: str) -> bool:
    r"""Return whether a text holds one of ``[\p{L}\p{N}]``."""
    return _LETTER_OR_DIGIT.search(text) is not None


def is_capital(char: str) -> bool:
    r"""Return whether a character is one of ``\p{Lu}``."""
    return category(char) == "Lu" or char in _NEWER_CAPITALS


def is_small(char: str) -> bool:
    r"""Return whether a character is one of ``\p{Ll}``."""
    return (category(char) == "Ll" and char != _NO_SMALL) or _NEWER_SMALL.match(char) is not None


def with_small_letters(text: str) -> str:
    """Return the text with newer capitals as their small letters; all others are left to ``str.lower``."""
    return text if _NEWER_CAPITALS.isdisjoint(text) else text.translate(_SMALL)
