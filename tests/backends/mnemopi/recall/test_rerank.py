"""Variety and coverage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.recall import rerank

Row = tuple[str, float]

contents = st.lists(st.sampled_from(["red", "green", "blue", "gold"])).map(" ".join)
rows = st.lists(
    st.tuples(contents, st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    max_size=9,
)


def score(row: Row) -> float:
    return row[1]


def mmr(items: list[Row], lam: float, top_k: float) -> list[Row]:
    return rerank.mmr(items, lam, top_k, score=score, words=lambda row: rerank.words(row[0]))


def cover(items: list[Row], wanted: list[str], top_k: int, bonus: float = 0.06) -> list[Row]:
    return rerank.cover(items, wanted, top_k, bonus=bonus, score=score, tokens=lambda row: row[0].split())


def test_words_split_at_javascript_white_space_only() -> None:
    assert rerank.words("A\ufeffb\x85c B") == {"a", "b\x85c", "b"}


@pytest.mark.parametrize(
    ("ours", "theirs", "like"), [("a b", "b c", 1 / 3), ("a a", "A", 1), ("", "", 0), ("a", "", 0)]
)
def test_likeness(ours: str, theirs: str, like: float) -> None:
    assert rerank.jaccard(rerank.words(ours), rerank.words(theirs)) == like


def test_a_likeness_costs_a_place() -> None:
    items = [("red green", 0.9), ("red green blue", 0.8), ("gold", 0.7)]
    assert mmr(items, 0.7, 3) == [items[0], items[2], items[1]]


def test_the_worst_likeness_to_any_chosen_row_counts() -> None:
    items = [("a b", 1.0), ("c d", 0.9), ("c d x", 0.8), ("a q r s", 0.7)]
    assert mmr(items, 0.5, 4)[2] == items[3]


@given(rows, st.sampled_from([0, 0.5, 0.7, 1]), st.integers(0, 12))
def test_every_row_is_chosen_once_and_the_best_first(items: list[Row], lam: float, top_k: int) -> None:
    chosen = mmr(items, lam, top_k)
    assert len(chosen) == min(top_k, len(items))
    assert sorted(mmr(items, lam, len(items))) == sorted(items)
    if chosen:
        assert chosen[0] == max(items, key=score)


@given(rows)
def test_without_variety_the_order_is_that_of_the_scores(items: list[Row]) -> None:
    assert mmr(items, 1, len(items)) == sorted(items, key=score, reverse=True)


@given(rows, st.integers(1, 9))
def test_a_shorter_choice_is_the_start_of_a_longer_one(items: list[Row], top_k: int) -> None:
    assert mmr(items, 0.7, top_k) == mmr(items, 0.7, len(items))[:top_k]


@pytest.mark.parametrize(("top_k", "count"), [(2.5, 2), (-1, 0), (0.5, 0)])
def test_a_count_is_cut_to_a_whole_number(top_k: float, count: int) -> None:
    assert len(mmr([("a", 0.5), ("b", 0.4), ("c", 0.3)], 0.7, top_k)) == count


def test_uncovered_words_are_worth_a_place() -> None:
    items = [("red", 0.9), ("red", 0.89), ("green blue", 0.8)]
    assert cover(items, ["red", "green", "blue"], 2) == [items[0], items[2]]


def test_each_occurrence_of_a_word_counts_once_more() -> None:
    items = [("red", 0.5), ("green green green", 0.4)]
    assert cover(items, ["red", "green"], 1) == [items[1]]


@given(rows, st.integers(0, 9))
def test_without_a_bonus_coverage_takes_the_best_scores(items: list[Row], top_k: int) -> None:
    ordered = sorted(items, key=score, reverse=True)
    assert cover(ordered, ["red", "green"], top_k, bonus=0) == ordered[:top_k]
