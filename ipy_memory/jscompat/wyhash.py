"""The 64-bit hash behind project bank names: wyhash, final version, seed 0 (pure)."""

from __future__ import annotations

from ipy_memory.clock import base36
from ipy_memory.jscompat.strings import well_formed

_MASK = (1 << 64) - 1
_SECRET = (0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3)
_LANES = _SECRET[1:]


def wyhash(data: bytes) -> int:
    """Return the unsigned 64-bit hash of some bytes (S-09)."""
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
