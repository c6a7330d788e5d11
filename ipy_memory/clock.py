"""Time, timers and ids: the system's own, and fixed ones for tests and documentation.

Nothing else in the package reads the wall clock, starts a timer or draws a random id.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number: int) -> str:
    """Return a non-negative integer in lower-case base 36 without padding."""
    if number == 0:
        return "0"
    digits = []
    while number:
        number, rest = divmod(number, 36)
        digits.append(_DIGITS[rest])
    return "".join(reversed(digits))


class Clock(Protocol):
    """The time: milliseconds since 1970 (UTC) and the local zone.

    ``tz`` is ``None`` for the system's local zone; it matters only for times written without a zone.
    """

    tz: tzinfo | None

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01T00:00:00Z."""
        ...


class SystemClock:
    """The machine's clock and local zone."""

    tz: tzinfo | None = None

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01T00:00:00Z."""
        return time.time_ns() // 1_000_000


class FixedClock:
    """A clock that stands still until told otherwise.

    Parameters
    ----------
    now
        An ISO instant such as ``2026-06-01T12:00:00.000Z``, or milliseconds since 1970.
    tz
        The local zone; UTC by default.
    """

    def __init__(self, now: str | int, tz: tzinfo | None = UTC) -> None:
        self.tz = tz
        self._now = now if isinstance(now, int) else _instant_ms(now)

    def now_ms(self) -> int:
        """Return the instant at which the clock stands, in milliseconds since 1970."""
        return self._now

    def set(self, now: str | int) -> None:
        """Put the clock to an instant."""
        self._now = now if isinstance(now, int) else _instant_ms(now)

    def advance(self, ms: int) -> None:
        """Move the clock forward by ``ms`` milliseconds."""
        self._now += ms


def _instant_ms(text: str) -> int:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


class Timers(Protocol):
    """Something that calls a function later."""

    def call_later(self, delay_ms: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` after ``delay_ms``; the answer cancels it (harmless afterwards)."""
        ...


class SystemTimers:
    """Timers on daemon threads: a pending one never delays the end of the process."""

    def call_later(self, delay_ms: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` from a daemon thread after ``delay_ms``; the answer cancels it."""
        timer = threading.Timer(delay_ms / 1000, call)
        timer.daemon = True
        timer.name = "ipy-memory-timer"
        timer.start()
        return timer.cancel


class ManualTimers:
    """Timers that fire only when :meth:`advance` is called."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()

    def call_later(self, delay_ms: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` once :meth:`advance` has passed ``delay_ms``; the answer cancels it."""
        ticket = next(self._order)
        heapq.heappush(self._due, (self._now + delay_ms, ticket, call))
        return lambda: self._cancelled.add(ticket)

    def advance(self, ms: float) -> None:
        """Let ``ms`` milliseconds pass and run what is due, in order."""
        end = self._now + ms
        while self._due and self._due[0][0] <= end:
            self._now, ticket, call = heapq.heappop(self._due)
            if ticket not in self._cancelled:
                call()
        self._now = end


class IdSource(Protocol):
    """Where new ids come from."""

    def nonce(self) -> str:
        """Return the next ``a:b:c`` nonce of a memory id."""
        ...

    def token(self) -> str:
        """Return 12 fresh hexadecimal digits (session ids)."""
        ...

    def uuid(self) -> str:
        """Return a fresh random UUID (operation ids)."""
        ...


class ProcessIds:
    """Ids of this process: two random numbers fixed at start and a counter; a forked child begins its own."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._prefix = ":".join(base36(int.from_bytes(os.urandom(4))) for _ in range(2))
        self._count = itertools.count(1)

    def nonce(self) -> str:
        """Return the next ``a:b:c`` nonce of a memory id."""
        if self._process != os.getpid():
            self._begin()
        return f"{self._prefix}:{base36(next(self._count))}"

    def token(self) -> str:
        """Return 12 fresh hexadecimal digits."""
        return os.urandom(6).hex()

    def uuid(self) -> str:
        """Return a fresh random UUID (version 4)."""
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class FixedIds:
    """Ids that are the same on every run: the nonce is ``1:2:<counter>``.

    Parameters
    ----------
    last
        The last counter taken; the first nonce takes ``last + 1``.
    """

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._tokens = itertools.count(1)

    def nonce(self) -> str:
        """Return the next ``1:2:c`` nonce."""
        self.last += 1
        return f"1:2:{base36(self.last)}"

    def token(self) -> str:
        """Return 12 hexadecimal digits made from a counter."""
        return f"{next(self._tokens):012x}"

    def uuid(self) -> str:
        """Return a UUID made from a counter."""
        return f"00000000-0000-4000-8000-{next(self._tokens):012x}"


def memory_id(content: str, instant: str, nonce: str) -> str:
    """Return the id of a new memory: 16 hex digits over content, ISO instant and nonce."""
    text = "\0".join((content, instant, nonce))
    return _digest(text)


def stable_id(text: str, source: str | None = None) -> str:
    """Return the id of a thing that is known by its content (facts): the same for the same text."""
    return _digest(f"{text}\0{source}" if source else text)


def _digest(text: str) -> str:
    import hashlib  # costly to load, and reading needs no ids

    return hashlib.sha256(_utf8(text)).hexdigest()[:16]


def _utf8(text: str) -> bytes:
    # UTF-16 pairs that arrive as two surrogates become one character, lone ones U+FFFD, as in JavaScript.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")
