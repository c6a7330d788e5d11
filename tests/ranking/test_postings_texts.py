"""Words kept from one state to the next: only what changed is read again, and the result is the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ipy_memory.ranking.postings import Texts
from ipy_memory.ranking.words import Stems

_ROWS = st.dictionaries(st.integers(0, 12), st.text("ab c", max_size=8), max_size=10)


def words_of_rows(texts: Texts) -> list[list[str]]:
    """Return the stems of each row, whatever numbers they have."""
    names = {number: stem for stem, number in texts._numbers.items()}
    flat = [names[number] for number in texts.flat.tolist()]
    return [flat[begin:end] for begin, end in zip(texts.starts[:-1], texts.starts[1:], strict=True)]


def test_only_rows_with_another_text_are_read() -> None:
    texts = Texts(Stems())
    assert texts.update([(1, "one"), (2, "two"), (3, "three")]) == 3
    assert texts.update([(1, "one"), (3, "third"), (4, "four")]) == 2
    assert words_of_rows(texts) == [["one"], ["third"], ["four"]]
    assert texts.update([]) == 0
    assert len(texts) == 0


@settings(max_examples=80, deadline=None)
@given(st.lists(_ROWS, min_size=1, max_size=4))
def test_after_any_changes_the_words_are_those_of_a_fresh_reading(states: list[dict[int, str]]) -> None:
    kept = Texts(Stems())
    for state in states:
        kept.update(state.items())
    fresh = Texts(Stems())
    fresh.update(states[-1].items())
    assert words_of_rows(kept) == words_of_rows(fresh)
    assert np.array_equal(kept.starts, fresh.starts)


def test_a_bank_that_was_empty_finds_its_language_with_its_first_rows() -> None:
    texts = Texts(Stems())
    texts.update([])
    texts.update([(1, "Der Server ist nicht in dem Schrank")])
    assert texts.languages.names == ("german",)
