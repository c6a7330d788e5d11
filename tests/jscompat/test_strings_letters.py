"""Letters and digits of the newest Unicode, on every supported Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from unicodedata import category

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.single_bank import recall_enhanced
from ipy_memory.backends.mnemopi.store.write import remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.conversation import has_substance
from ipy_memory.jscompat import strings
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from pathlib import Path

NEWEST = {
    "15.0: CJK extension H": "\U00031350\U00031351",
    "15.0: Kawi digits": "\U00011f50\U00011f59",
    "15.1: CJK extension I": "\U0002ebf0",
    "16.0: Garay": "\U00010d50\U00010d51",
    "16.0: Ol Onal": "\U0001e5d0\U0001e5f1",
    "17.0: CJK extension J": "\U000323b0\U00033479",
    "17.0: Beria Erfe": "\U00016ea0\U00016eb8",
}
EVERY = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


@pytest.mark.parametrize("word", NEWEST.values(), ids=NEWEST.keys())
class TestNewest:
    def test_they_are_letters(self, word: str) -> None:
        assert strings.words(f"a {word}b, {word}") == ["a", f"{word}b", word]
        assert all(map(strings.is_word_character, word))
        assert strings.has_letter_or_digit(f"! {word}")
        assert has_substance(f"! {word}")

    def test_memories_in_them_are_found(self, word: str, tmp_path: Path) -> None:
        bank = Bank.open(tmp_path / "m.db", "proj", clock=FixedClock("2026-06-01T12:00:00.000Z"), ids=FixedIds())
        remember(bank, f"the sign {word} is new")
        remember(bank, "plain words")
        assert [hit.content for hit in recall_enhanced(bank, word, 5)] == [f"the sign {word} is new"]
        bank.close()


def test_nothing_that_this_python_knows_is_lost_or_won() -> None:
    for char in EVERY:
        known = category(char)
        if known != "Cn":
            assert strings.has_letter_or_digit(char) is (known[0] in "LN"), hex(ord(char))
            assert strings.is_word_character(char) is (known[0] in "LN" or char == "_"), hex(ord(char))
        if known == "Cn":
            assert char.lower() == char


def test_words_are_runs_of_word_characters() -> None:
    assert [char for char in EVERY if strings.words(char) != [char] * strings.is_word_character(char)] == []


def test_newer_capitals_have_small_letters() -> None:
    pairs = [(char, js.lower(char)) for char in EVERY if strings.is_capital(char) and js.lower(char) != char]
    assert len(pairs) >= 1_400
    assert all(strings.is_small(small[0]) for _, small in pairs)
    assert js.lower("\U00010d50 ΑΣ \ua7cb") == "\U00010d70 ας \u0264"
