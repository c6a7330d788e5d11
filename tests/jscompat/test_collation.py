"""The order of texts."""

import unicodedata
from functools import cmp_to_key
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.jscompat.collation import compare, key

texts = st.text() | st.text(st.sampled_from("aAbBäÄßéœ ._-1029あア中가🚀\u0301\u0323\ud83d\u0306иИ"))

RISING = [
    "\ufffe",
    "\t",
    "\n",
    " ",
    "_",
    "-",
    "–",
    "—",
    ",",
    ";",
    ":",
    "!",
    "¡",
    "?",
    ".",
    "…",
    "'",
    "‘",
    "’",
    '"',
    "“",
    "(",
    "[",
    "{",
    "@",
    "*",
    "/",
    "\\",
    "&",
    "#",
    "%",
    "`",
    "^",
    "→",
    "+",
    "<",
    "=",
    ">",
    "|",
    "~",
    "⭐",
    "🚀",
    "$",
    "€",
    "0",
    "1",
    "½",
    "²",
    "9",
    "a",
    "A",
    "á",
    "ab",
    "æ",
    "b",
    "oe",
    "œ",
    "ss",
    "ß",
    "z",
    "Z",
    "ž",
    "þ",
    "α",
    "ά",
    "ω",
    "а",
    "и",
    "й",
    "я",
    "א",
    "أ",
    "ا",
    "ก",
    "가",
    "각",
    "힣",
    "ぁ",
    "あ",
    "ア",
    "か",
    "が",
    "一",
    "丁",
    "㐂",
    "中",
    "日",
    "龍",
    "\u0378",
    "\ud83d",
    "\ufffd",
    "\uffff",
]


@pytest.mark.claim("R-20")
@pytest.mark.parametrize(("ours", "theirs"), [*pairwise(RISING)])
def test_neighbours_of_many_scripts(ours: str, theirs: str) -> None:
    assert compare(ours, theirs) == -1
    assert compare(theirs, ours) == 1


@pytest.mark.claim("R-20")
@pytest.mark.parametrize(
    ("ours", "theirs", "order"),
    [
        ("abc", "ABD", -1),  # letters before case
        ("resumé x", "résume y", -1),  # letters before accents
        ("Résume", "resumé", 1),  # accents from the left, before case
        ("co-op", "coop", -1),  # punctuation counts
        ("item 10", "item 2", -1),  # digits one by one
        ("a\u0000b", "ab", 0),  # controls do not count
        ("a\u200bb", "ab", 0),
        ("ﬁ", "fi", 1),
        ("Ⅷ", "VIII", 1),
        ("‘a", "\u0300'a", -1),
        ("เก", "แก", -1),  # a Thai vowel is weighed behind the consonant it stands before
        ("เข", "แก", 1),
        ("и\u031f\u0306", "й\u031f", 0),  # a mark reaches its letter past one of another place
        ("и\u0301\u0306", "й", -1),  # but not past one of the same place
        ("l·", "l", 1),
        ("\u1ec7", "e\u0302\u0323", 0),
        ("₨", "Rs", 1),
        ("١", "1", 0),
        ("\ud83d\ude80", "🚀", 0),
    ],
)
def test_rules(ours: str, theirs: str, order: int) -> None:
    assert compare(ours, theirs) == order
    assert compare(theirs, ours) == -order


@given(texts, texts)
def test_keys_and_comparison_agree(ours: str, theirs: str) -> None:
    order = compare(ours, theirs)
    assert order == -compare(theirs, ours)
    assert order == (key(ours) > key(theirs)) - (key(ours) < key(theirs))


@given(texts)
def test_equivalent_spellings_are_equal(text: str) -> None:
    assert compare(unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)) == 0


@given(st.lists(st.text(st.sampled_from("abcxyz"))))
def test_plain_words_are_in_alphabetical_order(words: list[str]) -> None:
    assert sorted(words, key=cmp_to_key(compare)) == sorted(words)


@given(st.text(st.sampled_from("abcxyz"), min_size=1))
def test_lower_case_goes_before_upper_case(word: str) -> None:
    assert compare(word, word.upper()) == -1
