"""Dates as JavaScript reads and prints them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.jscompat import dates

NEW_YORK = ZoneInfo("America/New_York")
instants = st.integers(-dates.MAX_MS, dates.MAX_MS)


def at(text: str, zone: ZoneInfo | None = None) -> str | None:
    ms = dates.parse_ms(text, zone or UTC)
    return None if ms is None else dates.iso(ms)


@given(instants)
def test_iso_text_reads_back(ms: int) -> None:
    assert dates.parse_ms(dates.iso(ms), NEW_YORK) == ms


@given(st.datetimes(timezones=st.just(UTC)))
def test_iso_text_agrees_with_python(moment: datetime) -> None:
    ms = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    assert dates.iso(ms) == text
    assert dates.iso_date(ms) == text[:10]


@given(st.integers(-(10**8), 10**8))
def test_days_and_dates_are_inverse(days: int) -> None:
    assert dates.days_from_civil(*dates.civil_from_days(days)) == days


@pytest.mark.parametrize(
    ("parts", "same"), [((2026, 13, 1), (2027, 1, 1)), ((2026, 0, 1), (2025, 12, 1)), ((2026, 2, 30), (2026, 3, 2))]
)
def test_months_and_days_out_of_range_roll_over(parts: tuple[int, int, int], same: tuple[int, int, int]) -> None:
    assert dates.days_from_civil(*parts) == dates.days_from_civil(*same)


def test_years_of_more_than_four_digits_have_six_and_a_sign() -> None:
    assert dates.iso(dates.MAX_MS) == "+275760-09-13T00:00:00.000Z"
    assert dates.iso(-dates.MAX_MS) == "-271821-04-20T00:00:00.000Z"


@pytest.mark.parametrize("ms", [dates.MAX_MS + 1, -dates.MAX_MS - 1, float("nan"), float("inf")])
def test_instants_out_of_range_have_no_text(ms: float) -> None:
    with pytest.raises(ValueError, match="no date"):
        dates.iso(ms)


@pytest.mark.claim("R-07")
def test_the_minute_is_cut_and_in_utc() -> None:
    assert dates.minute_stamp(dates.parse_ms("2026-06-01T23:59:59.999-03:00", NEW_YORK) or 0) == "2026-06-02 02:59"


@pytest.mark.parametrize(
    ("instant", "zone", "text"),
    [
        ("2026-01-15T12:00:00Z", "Asia/Kathmandu", "2026-01-15T17:45:00+05:45"),
        ("2026-07-01T03:04:05.006Z", "America/St_Johns", "2026-07-01T00:34:05.006-02:30"),
        ("2026-03-08T10:00:00.050Z", "UTC", "2026-03-08T10:00:00.050+00:00"),
    ],
)
def test_local_time_with_its_offset(instant: str, zone: str, text: str) -> None:
    assert dates.local_iso(dates.parse_ms(instant, UTC) or 0, ZoneInfo(zone)) == text


@given(st.integers(-5 * 10**13, 10**14))
def test_local_text_names_the_same_instant(ms: int) -> None:
    # Whole-minute offsets only: before 1883 New York was off by odd seconds, which the text cannot hold.
    zone = NEW_YORK if ms > -(2 * 10**12) else UTC
    assert dates.parse_ms(dates.local_iso(ms, zone), UTC) == ms


@given(st.text() | st.text(st.sampled_from("0123456789-:/. +TZjanGMTpm,()\0")))
def test_no_text_is_refused_by_an_exception(text: str) -> None:
    ms = dates.parse_ms(text, UTC)
    assert ms is None or abs(ms) <= dates.MAX_MS


ISO_FORMS = {
    "2026-05": "2026-05-01T00:00:00.000Z",
    "2026-02-30": "2026-03-02T00:00:00.000Z",
    "2026-05-30T24:00": "2026-05-31T04:00:00.000Z",
    "2026-05-30T10:59:59.9999": "2026-05-30T14:59:59.999Z",
    "2026-05-30t10:00z": "2026-05-30T10:00:00.000Z",
    "2026-05-30T10:00:00+23:59": "2026-05-29T10:01:00.000Z",
    "2026-05-30T10:00-0330": "2026-05-30T13:30:00.000Z",
    "0099-03-05": "0099-03-05T00:00:00.000Z",
    "+010000-01-01": "+010000-01-01T00:00:00.000Z",
    "-000001-07-01T00:00Z": "-000001-07-01T00:00:00.000Z",
    "2026-13-01": None,
    "2026-05-00": None,
    "2026-05-32": None,
    "2026-05-30T10": None,
    "2026-05-30T10:60": None,
    "2026-05-30T10:00:00.": None,
    "2026-05-30T10:00 ": None,
    "2026-05-30T10:00:00+24:00": None,
    "2026-05-30T24:00:01": None,
    "+275760-09-13T00:00:00.001Z": None,
}

LENIENT_FORMS = {
    # order of numbers, and what separates them
    "2026-5-30": "2026-05-30T04:00:00.000Z",
    "5/30/49": "2049-05-30T04:00:00.000Z",
    "5/30/50": "1950-05-30T04:00:00.000Z",
    "99.5.30": "1999-05-30T04:00:00.000Z",
    "1;2;3": "2003-01-02T05:00:00.000Z",
    "30/5/2026": None,
    "1 2 3 4": None,
    "1 -2 3": None,
    "7": "2001-07-01T04:00:00.000Z",
    "32": "2032-01-01T05:00:00.000Z",
    "-5": "2001-05-01T04:00:00.000Z",
    "+2026-05-30": "2026-05-30T04:00:00.000Z",
    "-000000-05-30": "2001-05-30T04:00:00.000Z",
    "0099-03-05 UTC": "1999-03-05T00:00:00.000Z",
    # months, words and brackets
    "Sept 5, 2026": "2026-09-05T04:00:00.000Z",
    "5jan2026": "2026-01-05T05:00:00.000Z",
    "2026-jan-5": "2026-01-05T05:00:00.000Z",
    "mayhem 5 2026": "2026-05-05T04:00:00.000Z",
    "jan 0": "2000-01-01T05:00:00.000Z",
    "Saturday (the last) 30 May 2026": "2026-05-30T04:00:00.000Z",
    "on 5/30/2026": "2026-05-30T04:00:00.000Z",
    "abc6": None,
    "6 abc": None,
    "6 )": None,
    "6é": None,
    "jan 5th 2026": None,
    "jan 0 2026": None,
    # clock times
    "2026-05-30 1:2:3": "2026-05-30T05:02:03.000Z",
    "2026-05-30 10:00:00.1234": "2026-05-30T14:00:00.123Z",
    "2026-05-30 12:30 AM": "2026-05-30T04:30:00.000Z",
    "2026-05-30 0:00 pm": "2026-05-30T16:00:00.000Z",
    "2026-05-30 10::30": "2026-05-30T14:00:30.000Z",
    "2026-05-30 10:00PM": None,
    "2026-05-30 13:00 PM": None,
    "2026-05-30 10 PM": None,
    "2026-05-30 10:00:00,5": None,
    "2026-05-30 10:30::5": None,
    "mar 26 12:30:60": "1960-03-26T17:30:00.000Z",
    # zones
    "30 May 2026 10:00 EST": "2026-05-30T15:00:00.000Z",
    "30 May 2026 10:00 GMT+02:30": "2026-05-30T07:30:00.000Z",
    "30 May 2026 10:00 +2": "2026-05-30T08:00:00.000Z",
    "30 May 2026 10:00 -0330 (NDT)": "2026-05-30T13:30:00.000Z",
    "13:00 +25:99 00/3/05": "1999-03-04T12:00:00.000Z",
    "2026-05Z": "2026-05-01T00:00:00.000Z",
    "30 May 2026 10:00 CET": None,
    "30 May 2026 10:00 +12345": None,
    "30 May 2026 10:00 + 2": None,
    "2026-05-30+02:00": None,
    # the end of the text
    "2026-05-30\0 or so": "2026-05-30T00:00:00.000Z",
    "": None,
    "T": None,
    "jan": None,
}


def test_hours_of_an_offset_are_as_many_as_they_are_written() -> None:
    """D19: the agent's runtime counts them in 32 bits, so that many hours become others."""
    start = dates.parse_ms("2026-05-30T10:00Z", UTC)
    assert start is not None
    assert dates.parse_ms("2026-05-30 10:00 +00000005:30", UTC) == start - 5.5 * 3_600_000
    assert dates.parse_ms("2026-05-30 10:00 +12345678:30", UTC) == start - 12345678.5 * 3_600_000


@pytest.mark.parametrize(("text", "instant"), [*ISO_FORMS.items(), *LENIENT_FORMS.items()])
def test_written_forms_in_new_york(text: str, instant: str | None) -> None:
    assert at(text, NEW_YORK) == instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-08T02:30", "2026-03-08T07:30:00.000Z"),
        ("2026-11-01T01:30", "2026-11-01T05:30:00.000Z"),
        ("+012000-07-01T00:00", "+012000-07-01T04:00:00.000Z"),
    ],
    ids=["skipped hour", "repeated hour", "far year"],
)
def test_hours_that_the_clocks_skip_or_repeat(text: str, instant: str) -> None:
    assert at(text, NEW_YORK) == instant


@pytest.fixture
def system_in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("system_in_new_york")
@pytest.mark.parametrize("text", ["2026-03-08T02:30", "2026-11-01T01:30", "2026-07-01 10:00", "9999-12-31T23:00"])
def test_without_a_zone_the_system_s_own_counts(text: str) -> None:
    ms = dates.parse_ms(text, None)
    assert ms == dates.parse_ms(text, NEW_YORK)
    assert ms is not None
    assert dates.local_iso(ms, None) == dates.local_iso(ms, NEW_YORK)
