"""JavaScript dates: ``Date.parse``, ``toISOString`` and the printed forms made from them.

An instant is a number of milliseconds since 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from ipy_memory.jscompat.date_parse import Reading, read_iso, read_lenient

MAX_MS = 8_640_000_000_000_000
"""The last instant that JavaScript knows (and, negated, the first)."""

_DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


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
    """Return ``YYYY-MM-DD HH:MM`` in UTC, cut to the minute."""
    return iso(ms)[:16].replace("T", " ")


def shown_stamp(text: str, tz: tzinfo | None) -> str:
    """Return a stored time as every table shows it: to the minute, in UTC; a mere date, or no time, as it is."""
    ms = parse_ms(text, tz) if len(text) > len("2026-05-31") else None
    return text if ms is None else iso(ms)[: -len(":00.000Z")].replace("T", " ")


def local_iso(ms: float, tz: tzinfo | None) -> str:
    """Return local time with its offset; milliseconds only where they are not 0."""
    offset = _offset_at(int(ms), tz)
    days, rest = divmod(int(ms) + offset, _DAY_MS)
    fraction = f".{rest % 1000:03d}" if rest % 1000 else ""
    hours, minutes = divmod(abs(offset) // 60_000, 60)
    return f"{_date_text(days)}T{_time_text(rest)}{fraction}{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


_TYPED = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?P<fraction>[.,]\d+)?)? ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)


def covered(text: str) -> tuple[int, int] | None:
    """Return the first and the last millisecond of a date or time that a user gives; ``None`` if it is neither.

    A year, a month, a day, a minute and a second are covered whole. Without a zone they are in UTC, as every table
    shows them.
    """
    if (matched := _TYPED.fullmatch(text.strip())) is None:
        return None
    part = matched.groupdict()
    year, month, day = int(part["year"]), int(part["month"] or 1), int(part["day"] or 1)
    hour, minute, second = int(part["hour"] or 0), int(part["minute"] or 0), int(part["second"] or 0)
    try:
        datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    offset = 0
    if (zone := part["zone"] or "Z") not in "Zz":
        offset = (int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)) * (-1 if zone[0] == "-" else 1)
    days = days_from_civil(year, month, day)
    if part["hour"] is None:
        end = days + 1 if part["day"] else days_from_civil(year, month + 1, 1)
        if not part["month"]:
            end = days_from_civil(year + 1, 1, 1)
        return days * _DAY_MS, end * _DAY_MS - 1
    fraction = (part["fraction"] or "")[1:4]
    start = days * _DAY_MS + ((hour * 60 + minute - offset) * 60 + second) * 1000 + int(fraction.ljust(3, "0"))
    length = 1 if fraction else 1000 if part["second"] else 60_000
    return start, start + length - 1


def parse_ms(text: str, tz: tzinfo | None) -> float | None:
    """Return ``Date.parse(text)`` in milliseconds, or ``None`` for NaN.

    Parameters
    ----------
    text
        Any text.
    tz
        Zone of times that name none; ``None`` is the system's.
    """
    if (usual := _usual_ms(text)) is not None:
        return usual
    text = text.partition("\0")[0]
    ms = _instant(read_iso(text), tz)
    return ms if ms is not None else _instant(read_lenient(text), tz)


def _usual_ms(text: str) -> float | None:
    """Return the instant of the form that :func:`iso` writes, in which nearly all times are; ``None`` for any other."""
    if len(text) != 24 or text[4] + text[7] + text[10] + text[19] + text[23] != "--T.Z":
        return None
    try:
        return float((datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND)
    except ValueError:  # perhaps a 31st of any month, or 24:00
        return None


def _date_text(days: int) -> str:
    year, month, day = civil_from_days(days)
    text = f"{year:04d}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):06d}"
    return f"{text}-{month:02d}-{day:02d}"


def _time_text(ms_of_day: int) -> str:
    minutes, seconds = divmod(ms_of_day // 1000, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


def _instant(reading: Reading | None, tz: tzinfo | None) -> float | None:
    """Return the instant of written parts: any month may have 31 days, and 24:00 is the next midnight."""
    if reading is None:
        return None
    year, month, day, hour, minute, second, ms, offset = reading
    midnight = hour == 24 and not (minute or second or ms)
    if not (1 <= month <= 12 and 1 <= day <= 31 and (hour < 24 or midnight) and minute < 60 and second < 60):
        return None
    local = days_from_civil(year, month, day) * _DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + ms
    if abs(local) > MAX_MS + _DAY_MS:
        return None
    instant = local - (_offset_for_local(local, tz) if offset is None else offset * 60_000)
    return float(instant) if abs(instant) <= MAX_MS else None


def _offset_at(ms: int, tz: tzinfo | None) -> int:
    """Return the offset from UTC, in milliseconds, at an instant."""
    moment = _within_datetime(ms).replace(tzinfo=UTC).astimezone(tz)
    return _milliseconds(moment.utcoffset())


def _offset_for_local(local_ms: int, tz: tzinfo | None) -> int:
    """Return the offset of a local time: the first of two in a repeated hour, the earlier one in a skipped hour."""
    naive = _within_datetime(local_ms)
    if tz is None:
        # Asking the converted time would give the later offset in a skipped hour.
        return _milliseconds(naive.replace(tzinfo=UTC) - datetime.fromtimestamp(naive.timestamp(), UTC))
    return _milliseconds(naive.replace(tzinfo=tz).utcoffset())


def _milliseconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // _MILLISECOND


def _within_datetime(ms: int) -> datetime:
    """Return the naive date-time of ``ms``; years that Python lacks are replaced by like ones."""
    days, rest = divmod(ms, _DAY_MS)
    year = civil_from_days(days)[0]
    if year > 9990:
        days -= (year - 9590) // 400 * 146_097
    elif year < 2:
        days += -((year - 2) // 400) * 146_097
    return datetime(1970, 1, 1) + timedelta(days=days, milliseconds=rest)
