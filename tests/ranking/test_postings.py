"""The index: what a row has, what neighbours lend it, and sums that can be taken apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipy_memory.ranking.best import Question, Vectors, reasons, score
from ipy_memory.ranking.postings import RUN_GAP_S, VOICE
from tests.ranking.notes import Note, index

TALK = [
    Note("a", "Shall we move the database?", 0.0),
    Note("b", "Yes, to Frankfurt.", 10.0),
    Note("c", "Lunch was good.", 10_000.0),
    Note("d", "The parser reads JSON.", 20_000.0),
]


def ranked(rows: list[Note], query: str, count: int = 8) -> list[object]:
    postings = index(rows)
    return [postings.keys[row] for row in score(postings, Question(query)).top(count)]


def test_a_row_with_the_words_comes_first_and_its_neighbour_next() -> None:
    assert ranked(TALK, "databases") == ["a", "b"]


def test_a_neighbour_beyond_the_gap_lends_nothing() -> None:
    apart = [Note("a", "database", 0.0), Note("b", "other", RUN_GAP_S + 1)]
    assert ranked(apart, "database") == ["a"]
    assert ranked([apart[0], Note("b", "other", RUN_GAP_S)], "database") == ["a", "b"]


def test_a_lent_word_counts_less_with_each_place() -> None:
    rows = [Note(n, "needle" if n == 0 else "hay", float(n)) for n in range(5)]
    postings = index(rows)
    text = score(postings, Question("needle")).text
    assert text[1:5] == pytest.approx([text[0] * worth for worth in (*VOICE, 0.0)])


def test_equal_scores_keep_the_order_of_time() -> None:
    rows = [Note(n, "same text", n * 10_000.0) for n in range(20)]
    assert ranked(rows, "same", 5) == [0, 1, 2, 3, 4]


def test_an_unknown_word_finds_nothing() -> None:
    assert ranked(TALK, "zebra") == []
    assert ranked([], "zebra") == []


def test_a_question_counts_less_than_an_answer() -> None:
    rows = [Note("asks", "Is the port open?", 0.0), Note("says", "Is the port open.", 10_000.0)]
    assert ranked(rows, "port") == ["says", "asks"]


def test_a_named_day_comes_before_other_days() -> None:
    day = 86_400.0
    rows = [Note(n, "stand-up notes", n * day) for n in range(60)]
    assert ranked(rows, "stand-up on 1970-01-11", 1) == [10]


def test_a_vector_finds_what_no_word_does_and_rows_without_one_have_no_say() -> None:
    postings = index(TALK)
    vectors = Vectors([1, 2, 3], np.eye(3, dtype=np.float32), len(TALK))
    found = score(postings, Question("meal", vector=np.array([0.0, 1.0, 0.0], np.float32)), vectors)
    assert [postings.keys[row] for row in found.top(1)] == ["c"]
    assert found.similarity is not None
    assert found.similarity[0] == 0
    assert vectors.similarities(np.ones(2, np.float32)) is None
    assert vectors.similarities(np.zeros(3, np.float32)) is None


_WORDS = st.lists(
    st.sampled_from(["port", "host", "rack", "disk", "node", "wire", "fan", "bolt"]), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_WORDS, st.integers(0, 3000)), min_size=1, max_size=25), _WORDS)
def test_the_reasons_of_a_row_add_up_to_its_text_score(rows: list[tuple[list[str], int]], query: list[str]) -> None:
    ordered = sorted(
        (Note(n, " ".join(words), float(time)) for n, (words, time) in enumerate(rows)), key=lambda row: row.time
    )
    postings = index(ordered)
    found = score(postings, Question(" ".join(query)))
    for row in range(len(postings)):
        assert sum(one.share for one in reasons(postings, found, row)) == pytest.approx(found.text[row], abs=1e-5)


def test_a_reason_names_the_row_that_lent_the_word() -> None:
    postings = index(TALK)
    found = score(postings, Question("database"))
    (own,) = reasons(postings, found, 0)
    (lent,) = reasons(postings, found, 1)
    assert (own.lent_by, lent.lent_by) == (None, "a")
