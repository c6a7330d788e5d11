"""The short form of summaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.consolidation.episodes import encode
from ipy_memory.jscompat import strings as js


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("User prefers tabs over spaces and uses vim", "PREF tabs>spaces+uses vim"),
        ("User asked for help", "ASK help"),  # the longer phrase comes first
        ("PREFERENCE: likes tea", "PREF|likes tea"),
        ("so PREFERENCE: likes tea", "so PREFERENCE: likes tea"),  # a category counts at the start only
        ("FACT:no space", "FACT:no space"),
        ("it completed", "it DONEd"),  # part of a word is replaced as well
        ("working correctly", "OK"),
        ("( \u3000a ) b\t)", "(a) b\t)"),
        ("user prefers tea", "user prefers tea"),  # capitals count
    ],
)
def test_phrases_become_signs(text: str, short: str) -> None:
    assert encode(text) == short


def test_a_code_of_up_to_three_words_is_left_alone_even_untrimmed() -> None:
    assert encode(" a|b and c ") == " a|b and c "
    assert encode(" a|b and c d ") == "a|b+c d"


@given(st.text())
def test_the_short_form_of_anything_but_a_code_is_trimmed(text: str) -> None:
    short = encode(text)
    assert short == js.trim(short) or short == text


@given(st.text(alphabet="abcdefg ", max_size=40))
def test_text_without_any_phrase_stays(text: str) -> None:
    assert encode(text) == text.strip()
