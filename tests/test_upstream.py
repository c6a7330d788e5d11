"""The comparison of two releases of the real engine: what counts as changed, and what is asked."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.upstream import SHOWN, changed, recorded_questions, report


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 before, 2 now"]),
        ({"a": 1}, {}, ["a: gone, was 1"]),
        ({}, {"a": None}, ["a: new, null"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a: 2 entries before, 1 now"]),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": "1"}]}}, ['a.b[0].c: 1 before, "1" now']),
    ],
)
def test_a_difference_is_named_by_its_place(before: Any, after: Any, says: list[str]) -> None:
    assert list(changed(before, after)) == says


def test_the_report_counts_what_differs_and_shows_the_beginning() -> None:
    before = {"same": [1], "scores": list(range(100))}
    text, differs = report(before, before | {"scores": list(range(1, 101))}, "99.0.0")
    assert differs
    assert "-> 99.0.0: 1 of 2 answers and tables differ" in text
    assert text.endswith(f"… and {100 - SHOWN} further differences")
    assert report(before, before, "99.0.0")[1] is False


def test_every_recorded_question_of_a_bank_is_asked_again() -> None:
    now, questions = recorded_questions()
    assert now.endswith("Z")
    assert len({question.name for question in questions}) == len(questions) > 30
    assert {question.method for question in questions} >= {"recall", "recallEnhanced", "beam.factRecall"}
