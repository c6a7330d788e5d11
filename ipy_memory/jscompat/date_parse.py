"""The two written forms that ``Date.parse`` reads: ISO, and anything that looks like a date.

The lenient form takes numbers in the order month, day, year (year, month, day when the first cannot be a day), a clock
time with colons, month names, AM and PM, zone names and offsets; it skips brackets and words before the first number.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ipy_memory.jscompat import strings as js


class Reading(NamedTuple):
    """The parts as they were written, not yet checked against the calendar.

    ``offset`` is in minutes east of UTC, ``None`` for local time.
    """

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    ms: int = 0
    offset: int | None = 0


def read_iso(text: str) -> Reading | None:
    """Return the parts of the ISO form (a date alone is UTC), or ``None`` if the text has another form."""
    matched = _ISO.fullmatch(text)
    if not matched or text.startswith("-000000"):
        return None
    part = matched.groupdict()
    date = int(part["year"]), int(part["month"] or 1), int(part["day"] or 1)
    if part["hour"] is None:
        return Reading(*date)
    clock = int(part["hour"]), int(part["minute"]), int(part["second"] or 0), fraction_ms(part["fraction"] or "")
    zone = part["zone"]
    if zone is None:
        return Reading(*date, *clock, None)
    if zone in "Zz":
        return Reading(*date, *clock, 0)
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    return Reading(*date, *clock, (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1))


def read_lenient(text: str) -> Reading | None:
    """Return the parts of a text in the lenient form, or ``None`` if it is not a date."""
    try:
        return _Reader(text).read()
    except _NotADateError:
        return None


def fraction_ms(digits: str) -> int:
    """Return the milliseconds of a fraction's digits, cut."""
    return int(digits[:3].ljust(3, "0"))


_ISO = re.compile(
    r"(?P<year>\d{4}|[+-]\d{6})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?"
    r"(?:[Tt](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
    r"(?P<zone>[Zz]|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONE_HOURS = {
    "ut": 0,
    "utc": 0,
    "gmt": 0,
    "z": 0,
    "edt": -4,
    "est": -5,
    "cdt": -5,
    "cst": -6,
    "mdt": -6,
    "mst": -7,
    "pdt": -7,
    "pst": -8,
}
_PREFIX = re.compile(
    r"(\d{4}(?!\d)|[+-]\d{6}(?!\d))(?:-(?:(0[1-9]|1[0-2])(?!\d)(?:-(?:(0[1-9]|[12]\d|3[01])(?!\d))?)?)?)?",
    re.ASCII,
)
_DIGITS = re.compile("[0-9]*")
_TOKEN = re.compile(
    rf"(?P<number>[0-9]+)|(?P<space>[{js.WHITESPACE}]+)|(?P<word>(?:(?![{js.WHITESPACE}])[A-\U0010ffff])+)|(?P<sign>.)",
    re.DOTALL,
)


class _NotADateError(ValueError):
    pass


class _Reader:
    """Reads the text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.dates: list[int] = []
        self.month: int | None = None
        self.time: list[int] = []
        self.time_done = False
        self.half: int | None = None
        self.zone_sign = 0
        self.zone_hours = 0
        self.zone_minutes: int | None = None
        self.number_seen = False

    def read(self) -> Reading:
        """Return what the text says."""
        self._read_prefix()
        while self.at < len(self.text):
            self._read_token()
        return Reading(*self._date(), *self._clock(), self._offset())

    def _read_prefix(self) -> None:
        found = _PREFIX.match(self.text)
        if not found:
            return
        self.number_seen = True
        if found[1] == "-000000":
            # A minus zero is no year: it is passed over as if it were a stray sign.
            self.at, self.number_seen = 7, False
            return
        self.dates = [int(part) for part in found.groups() if part is not None]
        self.at = found.end()

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self.at += 1
        return True

    def _take_digits(self) -> str:
        found = _DIGITS.match(self.text, self.at)
        assert found is not None  # noqa: S101  it matches the empty text too
        self.at = found.end()
        return found[0]

    def _read_token(self) -> None:
        token = _TOKEN.match(self.text, self.at)
        assert token is not None  # noqa: S101  the last alternative takes anything
        self.at = token.end()
        if token.lastgroup == "number":
            self.number_seen = True
            self._read_number(token[0])
        elif token.lastgroup == "word":
            self._read_word(token[0].lower())
        elif token.lastgroup == "sign":
            self._read_sign(token[0])

    def _read_number(self, digits: str) -> None:
        number = _nine_digits(digits)
        if self._skip(":"):
            if self._peek() == ":" and self.time:
                raise _NotADateError
            self._add_time(number)
            if self._skip(":"):
                self._add_time(0)
            else:
                self._skip(".")
        elif self._skip(".") and self._time_wants(number):
            self._add_time(number)
            fraction = self._take_digits()
            if not fraction:
                raise _NotADateError
            self._end_time(fraction_ms(fraction))
        elif self.zone_sign and self.zone_minutes is None and number < 60:
            self.zone_minutes = number
        elif self._time_wants(number):
            self._end_time(number)
            if self._peek() and not re.match(f"[{js.WHITESPACE}zZ+-]", self._peek()):
                raise _NotADateError
        else:
            if len(self.dates) == 3:
                raise _NotADateError
            self.dates.append(number)
            self._skip("-")

    def _time_wants(self, number: int) -> bool:
        """Say whether a number can go on the time that was begun: minutes, seconds, milliseconds."""
        return not self.time_done and len(self.time) in {1, 2, 3} and number < (60, 60, 1000)[len(self.time) - 1]

    def _add_time(self, number: int) -> None:
        if self.time_done or len(self.time) == 4:
            raise _NotADateError
        self.time.append(number)

    def _end_time(self, number: int) -> None:
        # A part too many is dropped here, while it spoils the date where a colon follows it.
        self.time = [*self.time, number][:4]
        self.time_done = True

    def _read_word(self, word: str) -> None:
        short = word[:3]
        if word in {"am", "pm"} and self.time:
            self.half = 12 if word == "pm" else 0
        elif short in _MONTHS:
            self.month = _MONTHS.index(short) + 1
            self._skip("-")
        elif word in _ZONE_HOURS and self.number_seen:
            self._set_zone(_ZONE_HOURS[word])
        elif self.number_seen or self._peek().isdecimal():
            raise _NotADateError

    def _set_zone(self, hours: int) -> None:
        self.zone_sign, self.zone_hours, self.zone_minutes = (-1 if hours < 0 else 1), abs(hours), 0

    def _read_sign(self, sign: str) -> None:
        utc = bool(self.zone_sign) and not self.zone_hours and not self.zone_minutes
        if sign in "+-" and (utc or self.time):
            self._read_offset(-1 if sign == "-" else 1)
        elif sign in "+-)" and self.number_seen:
            raise _NotADateError
        elif sign == "(":
            self._skip_comment()

    def _read_offset(self, sign: int) -> None:
        self.zone_sign, self.zone_hours, self.zone_minutes = sign, 0, 0
        digits = self._take_digits()
        number, length = _nine_digits(digits), len(digits)
        self.number_seen = True
        if self._peek() == ":":
            self.zone_hours, self.zone_minutes = number, None
        elif length in {1, 2}:
            self.zone_hours, self.zone_minutes = number, 0
        elif length in {3, 4}:
            self.zone_hours, self.zone_minutes = divmod(number, 100)
        else:
            raise _NotADateError

    def _skip_comment(self) -> None:
        depth = 1
        while depth and self.at < len(self.text):
            depth += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1

    def _date(self) -> tuple[int, int, int]:
        if not self.dates:
            raise _NotADateError
        first, second, third = [*self.dates, 1, 1][:3]
        if self.month is None:
            year, month, day = (third, first, second) if 1 <= first <= 31 else (first, second, third)
        else:
            month = self.month
            day, year = (first, second) if 1 <= first <= 31 else (second, first)
        century = 2000 if 0 <= year < 50 else 1900 if 50 <= year < 100 else 0
        return year + century, month, day

    def _clock(self) -> tuple[int, int, int, int]:
        hour, minute, second, ms = [*self.time, 0, 0, 0, 0][:4]
        if self.half is not None:
            if hour > 12:
                raise _NotADateError
            hour = hour % 12 + self.half
        return hour, minute, second, ms

    def _offset(self) -> int | None:
        return self.zone_sign * (self.zone_hours * 60 + (self.zone_minutes or 0)) if self.zone_sign else None


def _nine_digits(digits: str) -> int:
    return int(digits.lstrip("0")[:9] or "0")
