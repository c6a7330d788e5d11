"""Measures of rankings: hand-made values, and what always holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.ranking.measures import Scores, interval, mean, needed, scores, seen_difference

IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


def test_hand_made_values() -> None:
    found = scores(["x", "a", "y", "b"], {"a", "b"}, 4)
    assert (found.hit, found.recall, found.reciprocal) == (1.0, 1.0, 0.5)
    assert found.gain == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))
    assert scores(["x", "a"], {"a", "b"}, 1) == Scores(0.0, 0.0, 0.0, 0.0)
    assert scores(["a", "b"], {"a", "b"}, 2) == Scores(1.0, 1.0, 1.0, 1.0)


def test_a_repeated_entry_counts_once() -> None:
    assert scores(["a", "a", "b"], {"b"}, 2).reciprocal == 0.5


@given(ranked=IDS, wanted=st.sets(st.sampled_from("abcdefgh"), min_size=1), k=st.integers(1, 9))
def test_measures_lie_between_nothing_and_one(ranked: list[str], wanted: set[str], k: int) -> None:
    found = scores(ranked, wanted, k)
    for value in (found.hit, found.recall, found.reciprocal, found.gain):
        assert 0 <= value <= 1 + 1e-12
    assert found.hit == (found.recall > 0)


@given(ranked=IDS, wanted=st.sets(st.sampled_from("abcdefgh"), min_size=1), k=st.integers(1, 8))
def test_looking_further_never_lowers_recall(ranked: list[str], wanted: set[str], k: int) -> None:
    assert scores(ranked, wanted, k).recall <= scores(ranked, wanted, k + 1).recall


def test_an_interval_holds_the_mean_and_is_repeatable() -> None:
    differences = [0.2, 0.1, -0.1, 0.4, 0.0, 0.3]
    low, high = interval(differences)
    assert low <= mean(differences) <= high
    assert interval(differences) == (low, high)
    assert interval([0.5] * 9) == (0.5, 0.5)
    assert interval([]) == (0.0, 0.0)


def test_how_many_questions_a_difference_needs() -> None:
    assert needed([0.5, 0.5]) == 2
    assert needed([0.1, -0.1]) is None
    assert needed([1.0]) is None
    # A spread of .28 and a difference of .1 need about 62 questions: (1.96 + .84)² · .28² / .1².
    spread = 0.28
    assert needed([0.1 + spread * sign for sign in (1, -1) * 500]) == pytest.approx(62, abs=1)


def test_few_questions_show_only_large_differences() -> None:
    assert seen_difference(71) == pytest.approx(0.1, abs=0.005)
    assert seen_difference(10) > seen_difference(100)
