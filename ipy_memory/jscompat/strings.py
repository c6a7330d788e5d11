"""The JavaScript string, number and JSON rules that byte-equality with the real system needs.

Text is Python ``str`` in *pair form*: astral characters are one code point, lone surrogates stay as they are.
"Units" are UTF-16 code units. Dates are in :mod:`ipy_memory.jscompat.dates`, collation in
:mod:`ipy_memory.jscompat.collation`.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from typing import Any
from unicodedata import category

from ipy_memory.clock import base36

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


TRIM_SET = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
TRIM_SET += "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""The characters that JavaScript's ``trim`` takes off."""

WHITESPACE = TRIM_SET
"""The inside of a character class that matches what JavaScript's ``\\s`` matches: the same characters."""

_SPACES = re.compile(f"[{WHITESPACE}]+")
_SEPARATORS = re.compile("[\x1c-\x1f]")  # white space to Python alone
_DECIMAL = re.compile(r"[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_RADIX = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_EXACT_DIGITS = 300
_DEEPEST = 200
_JSON_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|([\[\]{}])', re.DOTALL)
_json_string = json.JSONEncoder(ensure_ascii=False).encode


def units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, start: int, end: int | None = None) -> str:
    """Return ``text.slice(start, end)`` counted in UTF-16 units; may leave half of a pair."""
    if text.isascii():
        return text[start:end]
    raw = text.encode("utf-16-le", "surrogatepass")
    size = len(raw) // 2
    first, last, _ = slice(start, end).indices(size)
    return raw[2 * first : 2 * last].decode("utf-16-le", "surrogatepass")


def clip(text: str, limit: int, mark: str = "…") -> str:
    """Return ``text`` cut to ``limit`` units, the last of which is the mark when something was cut."""
    return text if units(text) <= limit else cut(text, 0, limit - 1) + mark


def pairs(text: str) -> str:
    """Return the text with surrogate pairs joined to astral characters; lone surrogates stay."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def spread(text: str) -> str:
    """Return the text with each astral character as its two surrogates, so that an index counts UTF-16 units."""
    if text.isascii():
        return text
    low_first = memoryview(text.encode("utf-16-le", "surrogatepass"))
    return "".join(chr(low_first[at] | low_first[at + 1] << 8) for at in range(0, len(low_first), 2))


def well_formed(text: str) -> str:
    """Return the text with every lone surrogate replaced by U+FFFD, as it is stored and sent."""
    if not _SURROGATE.search(text):
        return text
    return _SURROGATE.sub("\ufffd", pairs(text))


def trim(text: str) -> str:
    """Return the text without JavaScript white space at both ends."""
    return text.strip(TRIM_SET)


def trim_end(text: str) -> str:
    """Return the text without JavaScript white space at its end."""
    return text.rstrip(TRIM_SET)


def split_spaces(text: str) -> list[str]:
    r"""Return ``text.split(/\s+/)`` without empty parts."""
    if text.isascii() and not _SEPARATORS.search(text):
        return text.split()
    return [part for part in _SPACES.split(text) if part]


def collapse(text: str) -> str:
    """Return the text with each run of white space as one space, trimmed."""
    return trim(_SPACES.sub(" ", text))


def lower(text: str) -> str:
    """Return ``text.toLowerCase()`` (full mapping with final sigma)."""
    return text.lower() if text.isascii() else with_small_letters(text).lower()


def unit_key(text: str) -> bytes:
    """Return a sort key that orders by UTF-16 units, as JavaScript's ``<`` does."""
    return text.encode("utf-16-be", "surrogatepass")


def round_half_up(value: float) -> float:
    """Return ``Math.round(value)``."""
    return math.floor(value + 0.5) if math.isfinite(value) else value


def round4(value: float) -> float:
    """Return the value rounded to four digits as ``Math.round(x * 10000) / 10000``."""
    return round_half_up(value * 10000) / 10000


def clamp01(value: float) -> float:
    """Return the value held within 0 and 1."""
    return 0.0 if value <= 0 else 1.0 if value >= 1 else value


def to_fixed(value: float) -> str:
    """Return ``value.toFixed(1)``: the exact binary value, ties away from zero."""
    if not math.isfinite(value):
        return number_text(value)
    if abs(value) >= 1e21:
        return number_text(value)
    from decimal import ROUND_HALF_UP, Decimal

    text = str(Decimal(value).quantize(Decimal("0.1"), rounding=ROUND_HALF_UP))
    return text.lstrip("-") if value == 0 else text


def number_text(value: float) -> str:
    """Return ``String(value)``: shortest form, ``1`` rather than ``1.0``, exponents as JavaScript writes them."""
    if isinstance(value, int):
        value = _double(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    shortest = repr(value)
    if "e" not in shortest:
        return shortest.removesuffix(".0")
    from decimal import Decimal

    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    point = len(digits) + int(exponent)
    body = _place(text, point)
    return f"-{body}" if sign else body


def _double(value: float) -> float:
    """Return a number as JavaScript holds it: whole ones beyond its range are infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _place(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    exponent = point - 1
    return f"{mantissa}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def to_number(text: str) -> float:
    """Return ``Number(text)``; NaN where the text is not a number."""
    text = trim(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    if _RADIX.fullmatch(text):
        return float(int(text, 0))
    return 0.0 if not text else math.nan


def json_text(value: Any) -> str:
    """Return ``JSON.stringify(value)``: no spaces, non-ASCII kept, lone surrogates escaped, numbers as in JavaScript.

    A mapping entry whose value is ``None`` is written as ``null``; leave absent values out beforehand.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = _json_string(pairs(value))
        return _SURROGATE.sub(lambda lone: f"\\u{ord(lone.group()):04x}", text)
    if isinstance(value, int | float):
        return number_text(value) if math.isfinite(_double(value)) else "null"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(str(k))}:{json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    raise TypeError(f"{type(value).__name__} has no JSON form")


def parse_json(text: str) -> Any:
    """Return ``JSON.parse(text)``; ``None`` where the text is not JSON, is ``null``, or is nested very deeply."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_whole_number) if _is_shallow(text) else None
    except (ValueError, RecursionError):
        return None


def _is_shallow(text: str) -> bool:
    if text.count("[") + text.count("{") <= _DEEPEST:
        return True
    depth = 0
    for bracket in _JSON_BRACKET.finditer(text):
        if bracket[1]:
            depth += 1 if bracket[1] in "[{" else -1
            if depth > _DEEPEST:
                return False
    return True


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _whole_number(digits: str) -> float:
    # Python reads no whole number of thousands of digits; JavaScript takes it for infinite.
    return int(digits) if len(digits) <= _EXACT_DIGITS else float(digits)


_MASK = (1 << 64) - 1
_SECRET = (0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3)
_LANES = _SECRET[1:]


def wyhash(data: bytes) -> int:
    """Return the unsigned 64-bit hash of some bytes."""
    size = len(data)
    state = _mix(_SECRET[0], _SECRET[1])
    if size <= 16:
        first, second = _short(data)
    else:
        state = _fold(data, state)
        first, second = _read(data, size - 16, 8), _read(data, size - 8, 8)
    product = (first ^ _SECRET[1]) * (second ^ state)
    return _mix((product & _MASK) ^ _SECRET[0] ^ size, (product >> 64) ^ _SECRET[1])


def hash36(text: str) -> str:
    """Return the hash of a text (as UTF-8, lone surrogates as U+FFFD) in base 36 without padding."""
    return base36(wyhash(well_formed(text).encode()))


def _short(data: bytes) -> tuple[int, int]:
    size = len(data)
    if size >= 4:
        step = size // 8 * 4
        first = _read(data, 0, 4) << 32 | _read(data, step, 4)
        return first, _read(data, size - 4, 4) << 32 | _read(data, size - 4 - step, 4)
    if size:
        return data[0] << 16 | data[size // 2] << 8 | data[-1], 0
    return 0, 0


def _fold(data: bytes, state: int) -> int:
    size, at = len(data), 0
    if size >= 48:
        lanes = [state] * 3
        while at + 48 < size:
            for lane, secret in enumerate(_LANES):
                start = at + 16 * lane
                lanes[lane] = _mix(_read(data, start, 8) ^ secret, _read(data, start + 8, 8) ^ lanes[lane])
            at += 48
        state = lanes[0] ^ lanes[1] ^ lanes[2]
    while at + 16 < size:
        state = _mix(_read(data, at, 8) ^ _SECRET[1], _read(data, at + 8, 8) ^ state)
        at += 16
    return state


def _read(data: bytes, start: int, count: int) -> int:
    return int.from_bytes(data[start : start + count], "little")


def _mix(first: int, second: int) -> int:
    product = first * second
    return (product & _MASK) ^ (product >> 64)
