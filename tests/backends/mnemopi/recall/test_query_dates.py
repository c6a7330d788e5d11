"""Date words and the time of a query."""

import math
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.recall.query_dates import extract_temporal, query_time, temporal_boost
from ipy_memory.errors import ToolInputError
from ipy_memory.jscompat import dates

NOW = 1_780_315_200_000  # Monday 2026-06-01T12:00Z
DAY = 86_400_000

nows = st.integers(0, 4_000_000_000_000)


def days_from_now(text: str, now_ms: int) -> int:
    found = extract_temporal(text, now_ms).event_ms
    assert found is not None
    return int(found) // DAY - now_ms // DAY


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("x 2026-02-30, 5/30/26", "2026-05-30"),  # an impossible date does not end the search
        ("13/5/2026", "2026-05-13"),
        ("yesterday or 2020-01-02", "2020-01-02"),  # written dates first, wherever they stand
        ("today, not yesterday", "2026-06-01"),
        ("0050-01-01", None),
        ("1/2/49", "2049-01-02"),
        ("on Sept 5", None),
        ("sep 5,2024", "2024-09-05"),
        ("september 5th2024", "2024-09-05"),
        ("Feb 29", None),
        ("last\u00a0week", "2026-05-25"),
        ("last\x85week", None),
        ("long  ago", None),
        ("007 days ago", "2026-05-25"),
        ("36 hours back", "2026-05-31"),
        ("in 1 year", "2027-06-01"),
        ("some time ago", "2026-06-01"),
        ("todays", None),
        ("9007199254740992 days ago, recently", None),  # a hopeless count ends the search
        ("99999999999 days ago", None),
        ("2026 years ago", "0001-10-05"),
        ("17322934 hours ago", "1950-03-23"),
    ],
)
def test_dates(text: str, date: str | None) -> None:
    assert extract_temporal(text, NOW).event_date == date


@pytest.mark.parametrize(
    ("text", "precision", "tags"),
    [
        ("last tue at noon", "day", ("2026-05-19", "week-21-2026", "tue", "last", "noon")),
        ("next month", "month", ("2026-07", "next-month")),
        ("this year", "year", ("2026", "this-year")),
        ("5 minutes ago", "week", ("2026-06-01", "5-minutes-ago")),
        ("midnight", "unknown", ("night",)),
        ("Dec 30 2024", "day", ("2024-12-30", "week-1-2024", "monday")),
        ("Jan 1 2027", "day", ("2027-01-01", "week-53-2027", "friday")),
        ("nothing", "unknown", ()),
    ],
)
def test_tags(text: str, precision: str, tags: tuple[str, ...]) -> None:
    found = extract_temporal(text, NOW)
    assert (found.event_date_precision, found.temporal_tags) == (precision, tags)
    assert found.primary_signal == (tags[0] if tags else None)


@given(nows, st.sampled_from(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]))
def test_weekdays_keep_their_distance(now_ms: int, weekday: str) -> None:
    assert -6 <= days_from_now(weekday, now_ms) <= 0
    assert -13 <= days_from_now(f"last {weekday[:3]}", now_ms) <= -7
    assert 1 <= days_from_now(f"next {weekday}", now_ms) <= 7
    assert weekday in extract_temporal(f"next {weekday}", now_ms).temporal_tags


@given(nows, st.integers(0, 9000))
def test_counted_days(now_ms: int, count: int) -> None:
    assert days_from_now(f"{count} days ago", now_ms) == -count
    assert days_from_now(f"in {count} weeks", now_ms) == 7 * count


@given(st.text(), nows)
def test_any_text_gets_an_answer(text: str, now_ms: int) -> None:
    found = extract_temporal(f"yesterday {text} 99999999999999999999 days ago", now_ms)
    assert found.event_date is not None


@pytest.mark.parametrize(("text", "far"), [("100000000 days ago", -1), ("in 9999999 weeks", 1)])
def test_a_far_date_is_cut_and_still_an_instant(text: str, far: int) -> None:
    found = extract_temporal(text, NOW)
    assert found.event_date is not None
    assert len(found.event_date) == 10
    assert found.event_ms is not None
    assert math.copysign(1, found.event_ms) == far


def test_the_boost_falls_with_the_hours_before_the_query() -> None:
    assert temporal_boost("2026-05-31T12:00:00Z", NOW, 24, UTC) == math.exp(-1)
    assert temporal_boost("2026-05-31T12:00:00Z", NOW, 48, UTC) == math.exp(-0.5)


@pytest.mark.parametrize(
    ("timestamp", "halflife", "boost"),
    [
        ("2026-06-01T12:00:00Z", 24, 1),
        ("2027", 24, 1),
        (None, 24, 0),
        ("", 24, 0),
        ("soon", 24, 0),
        ("2026-05-31", 0, 0),
        ("2026-06-01T11:59:56.400Z", 0, math.exp(-1)),
        ("2026-06-01T11:59:56.400Z", -5, math.exp(-1)),
    ],
)
def test_the_ends_of_the_boost(timestamp: str | None, halflife: float, boost: float) -> None:
    assert temporal_boost(timestamp, NOW, halflife, UTC) == boost


def test_a_row_s_time_without_a_zone_is_local_and_that_of_a_query_in_utc() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    assert temporal_boost("2026-05-31T12:00", NOW, 24, tokyo) == math.exp(-33 / 24)
    assert query_time("2026-05-31T12:00", tokyo) == NOW - 24 * 3_600_000
    assert query_time("May 31 2026 12:00", tokyo) == NOW - 24 * 3_600_000
    assert query_time("2026-05-31T21:00+0900", tokyo) == NOW - 24 * 3_600_000


@pytest.mark.parametrize("text", ["2026-05-31t12:00:00z", "31 May 2026 12:00 GMT", "0026", "2026-05-31T12:00:00Z "])
def test_a_query_s_time_with_another_zone_is_refused(text: str) -> None:
    with pytest.raises(ToolInputError):
        query_time(text, UTC)


def test_a_date_alone_is_itself() -> None:
    assert query_time("0026-05-31", UTC) == dates.parse_ms("0026-05-31", UTC)


@given(st.integers(-dates.MAX_MS, dates.MAX_MS))
def test_the_time_of_a_query_is_an_instant(ms: int) -> None:
    assert query_time(dates.iso(ms), UTC) == ms


def test_no_date_is_refused_with_the_way_to_write_one() -> None:
    with pytest.raises(
        ToolInputError, match=r"^queryTime must be null, an ISO date string, or a valid Date$"
    ) as caught:
        query_time("soon", UTC)
    assert "2026-05-30" in caught.value.one_line()
