"""Letters and digits as the agent's runtime knows them: Unicode 17, where a supported Python may have 14.

The tables hold the difference between the two; on a newer Python a part of them says nothing new.
"""

from __future__ import annotations

import re
from functools import cache
from unicodedata import category

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
