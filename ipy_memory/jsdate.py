"""JavaScript dates: ``Date.parse``, ``toISOString`` and the printed forms made from them.

An instant is a number of milliseconds since 1970-01-01T00:00:00Z. ``Date.parse`` knows the ISO form and, for anything
else, a lenient one: numbers in the order month-day-year (or year-month-day when the first cannot be a day), a clock
time with colons, month names, AM and PM, zone names, and words before the first number, which are skipped.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from ipy_memory import js

MAX_MS = 8_640_000_000_000_000
"""The last instant that JavaScript knows (and, negated, the first)."""

_DAY_MS = 86_400_000
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
_ISO = re.compile(
    r"(?P<year>\d{4}|[+-]\d{6})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?"
    r"(?:[Tt](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
    r"(?P<zone>[Zz]|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the proleptic Gregorian calendar; days out of range roll over."""
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    if month <= 2:
        year -= 1
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a count of days since 1970-01-01."""
    era, of_era = divmod(days + 719_468, 146_097)
    years = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return era * 400 + years + (month <= 2), month, day


def iso(ms: float) -> str:
    """Return ``toISOString()``: UTC, three fraction digits, six-digit years outside 0 to 9999.

    Raises
    ------
    ValueError
        The instant is outside the range of JavaScript dates.
    """
    if not -MAX_MS <= ms <= MAX_MS:
        raise ValueError(f"no date: {ms}")
    days, rest = divmod(int(ms), _DAY_MS)
    return f"{_date_text(days)}T{_time_text(rest)}.{rest % 1000:03d}Z"


def iso_date(ms: float) -> str:
    """Return the first ten characters of :func:`iso`: the UTC date, for years 0 to 9999."""
    return iso(ms)[:10]


def minute_stamp(ms: float) -> str:
    """Return ``YYYY-MM-DD HH:MM`` in UTC, cut to the minute (R-07)."""
    return iso(ms)[:16].replace("T", " ")


def local_iso(ms: float, tz: tzinfo | None) -> str:
    """Return local time with its offset; milliseconds only where they are not 0."""
    offset = _offset_at(int(ms), tz)
    days, rest = divmod(int(ms) + offset, _DAY_MS)
    fraction = f".{rest % 1000:03d}" if rest % 1000 else ""
    hours, minutes = divmod(abs(offset) // 60_000, 60)
    return f"{_date_text(days)}T{_time_text(rest)}{fraction}{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def parse_ms(text: str, tz: tzinfo | None) -> float | None:
    """Return ``Date.parse(text)`` in milliseconds, or ``None`` for NaN.

    Parameters
    ----------
    text
        Any text.
    tz
        Zone of times that name none; ``None`` is the system's.
    """
    matched = _ISO.fullmatch(text)
    moment = _read_iso(matched) if matched and not text.startswith("-000000") else None
    if moment is None:
        moment = _Lenient(text).read()
    if moment is None:
        return None
    days, time_ms, offset_ms = moment
    local = days * _DAY_MS + time_ms
    if abs(local) > MAX_MS + _DAY_MS:
        return None
    ms = local - (_offset_for_local(local, tz) if offset_ms is None else offset_ms)
    return float(ms) if abs(ms) <= MAX_MS else None


def _date_text(days: int) -> str:
    year, month, day = civil_from_days(days)
    text = f"{year:04d}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):06d}"
    return f"{text}-{month:02d}-{day:02d}"


def _time_text(ms_of_day: int) -> str:
    minutes, seconds = divmod(ms_of_day // 1000, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


def _time_ms(hour: int, minute: int, second: int, ms: int) -> int | None:
    """Return milliseconds into the day; 24:00 is the next midnight."""
    if hour == 24 and not (minute or second or ms):
        return _DAY_MS
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1000 + ms


def _day_number(year: int, month: int, day: int) -> int | None:
    """Return days since 1970; any month may have 31 days, the surplus rolls over."""
    return days_from_civil(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _fraction_ms(digits: str) -> int:
    return int(digits[:3].ljust(3, "0"))


_Moment = tuple[int, int, "int | None"]
"""Days since 1970, milliseconds into the day, and the offset from UTC in milliseconds if one is known."""


def _read_iso(matched: re.Match[str]) -> _Moment | None:
    part = matched.groupdict()
    days = _day_number(int(part["year"]), int(part["month"] or 1), int(part["day"] or 1))
    if days is None:
        return None
    if part["hour"] is None:
        return days, 0, 0
    fraction = _fraction_ms(part["fraction"] or "")
    time_ms = _time_ms(int(part["hour"]), int(part["minute"]), int(part["second"] or 0), fraction)
    if time_ms is None:
        return None
    zone = part["zone"]
    if zone is None:
        return days, time_ms, None
    if zone in "Zz":
        return days, time_ms, 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    sign = -1 if zone[0] == "-" else 1
    return days, time_ms, sign * (hours * 60 + minutes) * 60_000


_PREFIX = re.compile(r"(\d{4}(?!\d)|[+-]\d{6}(?!\d))(?:-(?:(\d\d)(?!\d)(?:-(?:(\d\d)(?!\d))?)?)?)?", re.ASCII)
_TOKEN = re.compile(rf"(?P<number>[0-9]+)|(?P<word>[A-Za-z]+)|(?P<space>[{js.WHITESPACE}]+)|(?P<sign>.)", re.DOTALL)


class _NotADateError(ValueError):
    pass


class _Lenient:
    """Reads the lenient form from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.dates: list[int] = []
        self.iso_date = False
        self.month: int | None = None
        self.time: list[int] = []
        self.time_done = False
        self.half: int | None = None
        self.zone_sign = 0
        self.zone_hours = 0
        self.zone_minutes: int | None = None
        self.number_seen = False

    def read(self) -> _Moment | None:
        """Return what the text says, or ``None``."""
        try:
            self._read_prefix()
            while self.at < len(self.text):
                self._read_token()
            return self._days(), self._time(), self._offset()
        except _NotADateError:
            return None

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
        self.iso_date = len(self.dates) == 3
        self.at = found.end()

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self.at += 1
        return True

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
            self._add_time(number)
            if self._skip(":"):
                self._add_time(0)
            else:
                self._skip(".")
        elif self._skip(".") and self._time_wants(number):
            self._add_time(number)
            fraction = re.compile("[0-9]+").match(self.text, self.at)
            if not fraction:
                raise _NotADateError
            self.at = fraction.end()
            self._end_time(_fraction_ms(fraction[0]))
        elif self.zone_sign and self.zone_minutes is None:
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
        self._add_time(number)
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
        found = re.compile("[0-9]+").match(self.text, self.at)
        if not found:
            return
        self.at = found.end()
        number, length = _nine_digits(found[0]), len(found[0])
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

    def _days(self) -> int:
        if not self.dates:
            raise _NotADateError
        first, second, third = [*self.dates, 1, 1][:3]
        if self.month is None:
            if self.iso_date or not 1 <= first <= 31:
                year, month, day = first, second, third
            else:
                month, day, year = first, second, third
        else:
            month = self.month
            if 1 <= first <= 31:
                day, year = first, second
            else:
                year, day = first, second
        if not self.iso_date:
            year += 2000 if 0 <= year < 50 else 1900 if 50 <= year < 100 else 0
        days = _day_number(year, month, day)
        if days is None:
            raise _NotADateError
        return days

    def _time(self) -> int:
        hour, minute, second, ms = [*self.time, 0, 0, 0, 0][:4]
        if self.half is not None:
            if hour > 12:
                raise _NotADateError
            hour = hour % 12 + self.half
        time_ms = _time_ms(hour, minute, second, ms)
        if time_ms is None:
            raise _NotADateError
        return time_ms

    def _offset(self) -> int | None:
        if not self.zone_sign:
            return None
        return self.zone_sign * (self.zone_hours * 60 + (self.zone_minutes or 0)) * 60_000


def _nine_digits(digits: str) -> int:
    return int(digits.lstrip("0")[:9] or "0")


def _offset_at(ms: int, tz: tzinfo | None) -> int:
    """Return the offset from UTC, in milliseconds, at an instant."""
    moment = _within_datetime(ms).replace(tzinfo=UTC).astimezone(tz)
    return _milliseconds(moment.utcoffset())


def _offset_for_local(local_ms: int, tz: tzinfo | None) -> int:
    """Return the offset of a local time: the first of two in a repeated hour, the earlier one in a skipped hour."""
    naive = _within_datetime(local_ms)
    moment = naive.astimezone() if tz is None else naive.replace(tzinfo=tz)
    return _milliseconds(moment.utcoffset())


def _milliseconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(milliseconds=1)


def _within_datetime(ms: int) -> datetime:
    """Return the naive date-time of ``ms``; years that Python lacks are replaced by like ones."""
    days, rest = divmod(ms, _DAY_MS)
    year = civil_from_days(days)[0]
    if year > 9998:
        days -= (year - 9600) // 400 * 146_097
    elif year < 2:
        days += -((year - 2) // 400) * 146_097
    return datetime(1970, 1, 1) + timedelta(days=days, milliseconds=rest)
