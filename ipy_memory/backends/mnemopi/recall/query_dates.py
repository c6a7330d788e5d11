"""Date words in a text, and what the time of a query does to a row's score.

All date arithmetic is on UTC dates, counted as days since 1970.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from ipy_memory.errors import ToolInputError
from ipy_memory.jscompat import dates
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Callable

_DAY_MS = 86_400_000
_LAST_DAY = dates.MAX_MS // _DAY_MS
_LAST_COUNT = 2**53 - 1
_DAY_OR_ZONE = re.compile(r"\A\d{4}-\d\d-\d\d\Z|(?:Z|[+-]\d\d:?\d\d)\Z", re.ASCII)
_SHORTEST_HALFLIFE = 0.001  # hours; a shorter or negative one counts as this

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAMED_TIMES = ("morning", "afternoon", "evening", "night", "midnight", "noon", "dawn", "dusk")
_UNIT_MS = {
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": _DAY_MS,
    "week": 7 * _DAY_MS,
    "month": 30 * _DAY_MS,
    "year": 365 * _DAY_MS,
}


@dataclass(frozen=True, slots=True)
class Temporal:
    """What a text says about time.

    Attributes
    ----------
    event_date
        The first ten characters of the date's ISO form, or ``None``.
    event_date_precision
        ``day``, ``week``, ``month``, ``year``, ``relative`` or ``unknown``.
    temporal_tags
        Tags of the date, then the time of day.
    """

    event_date: str | None = None
    event_date_precision: str = "unknown"
    temporal_tags: tuple[str, ...] = ()

    @property
    def primary_signal(self) -> str | None:
        """The first tag."""
        return self.temporal_tags[0] if self.temporal_tags else None

    @property
    def event_ms(self) -> float | None:
        """The date's midnight in UTC."""
        return None if self.event_date is None else dates.parse_ms(self.event_date, UTC)


def extract_temporal(text: str, now_ms: float) -> Temporal:
    """Return the date that a text names, seen from ``now_ms``, with its tags."""
    text = js.trim(text)
    lowered = js.lower(text)
    found = _find_date(text, lowered, int(now_ms))
    part_of_day = next((name for name in _NAMED_TIMES if name in lowered), None)
    tags = (part_of_day,) if part_of_day else ()
    if found is None:
        return Temporal(temporal_tags=tags)
    return Temporal(_date_text(found.day), found.precision, found.tags + tags)


def temporal_boost(timestamp: str | None, query_ms: float, halflife_hours: float, tz: tzinfo | None) -> float:
    """Return how near a time is before the query's time: 1 at or after it, falling towards 0; 0 for no date."""
    ms = dates.parse_ms(timestamp, tz) if timestamp else None
    if ms is None:
        return 0.0
    hours = (query_ms - ms) / 3_600_000
    if hours <= 0:
        return 1.0
    return math.exp(-hours / max(halflife_hours, _SHORTEST_HALFLIFE))


def query_time(text: str, tz: tzinfo | None) -> float:
    """Return the instant that a caller gave as the time of a query, in milliseconds; without a zone it is in UTC.

    Raises
    ------
    ToolInputError
        The text is not a date.
    """
    ms = dates.parse_ms(text if _DAY_OR_ZONE.search(text) else f"{text}Z", tz)
    if ms is None:
        raise ToolInputError(
            "queryTime must be null, an ISO date string, or a valid Date",
            where=js.clip(text, 40),
            hint="write it as 2026-05-30 or 2026-05-30T10:00:00Z",
        )
    return ms


@dataclass(frozen=True, slots=True)
class _Found:
    day: int
    precision: str
    tags: tuple[str, ...]


class _OutOfRangeError(ValueError):
    """A date was named that no calendar has: nothing further is tried."""


def _find_date(text: str, lowered: str, now_ms: int) -> _Found | None:
    try:
        for pattern, raw, read in _RULES:
            matched = pattern.search(text if raw else lowered)
            found = read(matched, now_ms) if matched else None
            if found:
                return found
    except _OutOfRangeError:
        pass
    return None


def _date_text(day: int) -> str:
    return dates.iso_date(day * _DAY_MS)


def _calendar_day(year: int, month: int, day: int) -> int | None:
    # A written year below 100 is none: JavaScript would read it as 19xx.
    if year < 100 or not 1 <= month <= 12:
        return None
    days = dates.days_from_civil(year, month, day)
    return days if dates.civil_from_days(days) == (year, month, day) else None


def _weekday(day: int) -> int:
    return (day + 3) % 7


def _week_tag(day: int) -> str:
    """Return the ISO week's number with the calendar year of the date itself."""
    year = dates.civil_from_days(day)[0]
    thursday = day - _weekday(day) + 3
    first = dates.days_from_civil(dates.civil_from_days(thursday)[0], 1, 1)
    return f"week-{(thursday - first) // 7 + 1}-{year}"


def _written(day: int | None) -> _Found | None:
    if day is None:
        return None
    return _Found(day, "day", (_date_text(day), _week_tag(day), _WEEKDAYS[_weekday(day)]))


def _iso_date(matched: re.Match[str], _now_ms: int) -> _Found | None:
    return _written(_calendar_day(int(matched[1]), int(matched[2]), int(matched[3])))


def _slash_date(matched: re.Match[str], _now_ms: int) -> _Found | None:
    month, day, year = int(matched[1]), int(matched[2]), int(matched[3])
    if month > 12:
        month, day = day, month
    return _written(_calendar_day(year + 2000 if year < 100 else year, month, day))


def _month_day(matched: re.Match[str], now_ms: int) -> _Found | None:
    month = next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(matched[1]))
    year = int(matched[3]) if matched[3] else dates.civil_from_days(now_ms // _DAY_MS)[0]
    return _written(_calendar_day(year, month, int(matched[2])))


def _near_day(matched: re.Match[str], now_ms: int) -> _Found:
    word = matched[0]
    day = now_ms // _DAY_MS + {"yesterday": -1, "today": 0, "tomorrow": 1}[word]
    tags = (_date_text(day), _WEEKDAYS[_weekday(day)])
    return _Found(day, "day", tags if word == "today" else (*tags, word))


def _named_weekday(matched: re.Match[str], now_ms: int) -> _Found:
    which, name = matched.groupdict().get("which"), matched["name"]
    index = next(number for number, weekday in enumerate(_WEEKDAYS) if weekday.startswith(name))
    today = now_ms // _DAY_MS
    day = today - (_weekday(today) - index) % 7
    day += {"last": -7, "next": 7}.get(which or "", 0)
    tags = (_date_text(day), _week_tag(day), name)
    return _Found(day, "day", (*tags, which) if which else tags)


def _named_span(matched: re.Match[str], now_ms: int) -> _Found:
    which, span = matched[1], matched[2]
    step = {"last": -1, "this": 0, "next": 1}[which]
    day = now_ms // _DAY_MS
    year, month, _ = dates.civil_from_days(day)
    if span == "week":
        day += 7 * step
        tag = _week_tag(day)
    elif span == "month":
        day = dates.days_from_civil(year, month + step, 1) if step else day
        tag = _date_text(day)[:7]
    else:
        day = dates.days_from_civil(year + step, 1, 1) if step else day
        tag = str(year + step)
    return _Found(day, span, (tag, f"{which}-{span}"))


def _ago(matched: re.Match[str], now_ms: int) -> _Found:
    count, unit = _count(matched[1]), matched[2]
    return _shifted(now_ms, -count, unit, f"{count}-{unit}s-ago")


def _ahead(matched: re.Match[str], now_ms: int) -> _Found:
    count, unit = _count(matched[1]), matched[2]
    return _shifted(now_ms, count, unit, f"in-{count}-{unit}s")


def _count(digits: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(_LAST_COUNT)) or int(significant) > _LAST_COUNT:
        raise _OutOfRangeError
    return int(significant)


def _shifted(now_ms: int, count: int, unit: str, tag: str) -> _Found:
    day = (now_ms + count * _UNIT_MS[unit]) // _DAY_MS
    if abs(day) > _LAST_DAY:
        raise _OutOfRangeError
    year, month, day_of_month = dates.civil_from_days(day)
    if 0 <= year < 100 and _UNIT_MS[unit] < _DAY_MS:
        # An instant's date is built again from its parts, and JavaScript takes a two-digit year as one of the 1900s.
        day = dates.days_from_civil(year + 1900, month, day_of_month)
    return _Found(day, "day" if unit in {"day", "hour"} else "week", (_date_text(day), tag))


def _recent(_matched: re.Match[str], now_ms: int) -> _Found:
    return _Found(now_ms // _DAY_MS, "relative", ("recently",))


def _vague(_matched: re.Match[str], now_ms: int) -> _Found:
    return _Found(now_ms // _DAY_MS, "relative", ("vague",))


def _rule(
    pattern: str, read: Callable[[re.Match[str], int], _Found | None], *, raw: bool = False
) -> tuple[re.Pattern[str], bool, Callable[[re.Match[str], int], _Found | None]]:
    return re.compile(pattern.replace("_", f"[{js.WHITESPACE}]+"), re.ASCII), raw, read


_DAY_NAMES = "|".join(_WEEKDAYS)
_SHORT_DAYS = "|".join(name[:3] for name in _WEEKDAYS)
_MONTH_NAMES = "|".join((*_MONTHS, *(name[:3] for name in _MONTHS)))
_UNITS = "|".join(_UNIT_MS)

# In order of precedence; "_" is white space.
_RULES = (
    _rule(r"\b(\d{4})-(\d{2})-(\d{2})\b", _iso_date, raw=True),
    _rule(r"\b(\d{1,2})/(\d{1,2})/(\d{2,4})\b", _slash_date, raw=True),
    _rule(rf"\b({_MONTH_NAMES})_(\d{{1,2}})(?:st|nd|rd|th)?(?:,?[{js.WHITESPACE}]*(\d{{4}}))?\b", _month_day),
    _rule(r"\btoday\b", _near_day),
    _rule(r"\byesterday\b", _near_day),
    _rule(r"\btomorrow\b", _near_day),
    _rule(rf"\b(?P<which>last|this|next)_(?P<name>{_DAY_NAMES}|{_SHORT_DAYS})\b", _named_weekday),
    _rule(rf"\b(?P<name>{_DAY_NAMES})\b", _named_weekday),
    _rule(r"\b(last|this|next)_(week|month|year)\b", _named_span),
    _rule(rf"\b(\d+)_({_UNITS})s?_(?:ago|before|earlier|back)\b", _ago),
    _rule(rf"\bin_(\d+)_({_UNITS})s?\b", _ahead),
    _rule(r"\b(?:recently|lately|not long ago)\b", _recent),
    _rule(r"\b(?:a while ago|some time ago|long ago)\b", _vague),
)
