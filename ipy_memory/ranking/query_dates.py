"""Dates that a query names, and how near a row's time is to them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ipy_memory.ranking.postings import Floats

BEFORE_DAYS = 3.0
AFTER_DAYS = 20.0
"""Nearness falls to 1/e within so many days: things are told of later more often than before."""

_DAY = 86_400.0
_FARTHEST = 50.0
_YEARS = 30
"""A date without a year is looked for in so many years up to the bank's last."""

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_MONTH = (
    "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = r"((?:19|20)\d\d)"
_SUFFIX = "(?:st|nd|rd|th)?"
_UNSURE = {"may", "mar", "march", "dec", "jan", "sep", "sept", "aug"}
"""Months that are other words or names too: they count only after a preposition."""
_PREPOSITION = re.compile(
    r"\b(?:in|on|of|during|since|by|until|before|after|early|late|mid|last|this|next)\s+$", re.IGNORECASE
)


class NamedDate(NamedTuple):
    """A year, a month or a day; ``None`` where the query does not say."""

    year: int | None
    month: int | None
    day: int | None


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _month(text: str) -> int:
    return _MONTHS[text.lower()[:3]]


_FORMS: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], NamedDate]]] = (
    (
        re.compile(rf"\b{_YEAR}-(\d\d)(?:-(\d\d))?\b"),
        lambda m: NamedDate(int(m[1]), int(m[2]), _number(m[3])),
    ),
    (
        re.compile(rf"\b(\d{{1,2}}){_SUFFIX}(?:\s+of)?\s+{_MONTH}\b\.?,?(?:\s+{_YEAR})?", re.IGNORECASE),
        lambda m: NamedDate(_number(m[3]), _month(m[2]), int(m[1])),
    ),
    (
        re.compile(rf"\b{_MONTH}\.?\s+(\d{{1,2}}){_SUFFIX}\b(?!\s*\d{{2}}\b),?(?:\s+{_YEAR})?", re.IGNORECASE),
        lambda m: NamedDate(_number(m[3]), _month(m[1]), int(m[2])),
    ),
    (
        re.compile(rf"\b{_MONTH}\.?,?(?:\s+of)?\s+{_YEAR}\b", re.IGNORECASE),
        lambda m: NamedDate(int(m[2]), _month(m[1]), None),
    ),
)
_BARE_MONTH = re.compile(rf"\b{_MONTH}\b", re.IGNORECASE)
_BARE_YEAR = re.compile(rf"\b{_YEAR}\b")


def named_dates(query: str) -> list[NamedDate]:
    """Return the dates that a query names, the fuller forms first."""
    found: list[NamedDate] = []
    rest = query
    for pattern, read in _FORMS:
        found += map(read, pattern.finditer(rest))
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    for match in _BARE_MONTH.finditer(rest):
        if match[1].lower() not in _UNSURE or _PREPOSITION.search(rest[: match.start()]):
            found.append(NamedDate(None, _month(match[1]), None))
    return found or [NamedDate(int(match[1]), None, None) for match in _BARE_YEAR.finditer(rest)]


def nearness(asked: Sequence[NamedDate], times: Floats) -> Floats:
    """Return 0 to 1 for each time: 1 inside a named date, falling off before and after it.

    Parameters
    ----------
    asked
        Dates of the query.
    times
        Seconds since 1970 (UTC), at least one.
    """
    import numpy as np

    best = np.zeros(len(times), np.float32)
    first, last = (datetime.fromtimestamp(float(edge), UTC).year for edge in (times.min(), times.max()))
    for date in asked:
        for year in (date.year,) if date.year else range(max(first, last - _YEARS), last + 1):
            span = _span(year, date)
            if span is None:
                continue
            begin, end = span
            days = np.where(
                times < begin,
                (begin - times) / BEFORE_DAYS,
                np.where(times >= end, (times - end) / AFTER_DAYS, 0.0),
            )
            best = np.maximum(best, np.exp(-np.minimum(days / _DAY, _FARTHEST)).astype(np.float32))
    return best


def _span(year: int, date: NamedDate) -> tuple[float, float] | None:
    try:
        begin = datetime(year, date.month or 1, date.day or 1, tzinfo=UTC)
        if not date.month:
            end = datetime(year + 1, 1, 1, tzinfo=UTC)
        elif date.day:
            end = begin + timedelta(days=1)
        else:
            end = datetime(year + date.month // 12, date.month % 12 + 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return begin.timestamp(), end.timestamp()
