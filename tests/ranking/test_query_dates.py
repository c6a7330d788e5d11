"""Dates that a query names."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from ipy_memory.ranking.query_dates import named_dates, nearness


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("what happened on 2026-05-03", [(2026, 5, 3)]),
        ("deploys of 2026-05", [(2026, 5, None)]),
        ("3 May 2023", [(2023, 5, 3)]),
        ("the 3rd of May", [(None, 5, 3)]),
        ("May 3rd, 2023", [(2023, 5, 3)]),
        ("in May", [(None, 5, None)]),
        ("it may rain, march on", []),
        ("since October 2024", [(2024, 10, None)]),
        ("plans for 2025", [(2025, None, None)]),
        ("port 1999", [(1999, None, None)]),
        ("port 19999", []),
    ],
)
def test_dates_are_read_in_the_usual_forms(query: str, dates: list[tuple[int | None, int | None, int | None]]) -> None:
    assert [tuple(date) for date in named_dates(query)] == dates


def test_nearness_is_one_inside_and_falls_faster_before_than_after() -> None:
    def at(day: int) -> float:
        return datetime(2026, 5, day, 12, tzinfo=UTC).timestamp()

    near = nearness(named_dates("10 May 2026"), np.array([at(7), at(10), at(13)]))
    assert near[1] == 1
    assert 0 < near[0] < near[2] < 1


def test_a_date_that_no_calendar_has_is_passed_over() -> None:
    assert not nearness(named_dates("31 June 2026"), np.array([0.0])).any()
