"""JavaScript's rules of strings, numbers and JSON."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.jscompat import strings as js

# Any text: single surrogates, halves of pairs, astral characters.
anything = st.text(st.characters(exclude_categories=())) | st.text(st.sampled_from("a é\ud83d\ude80🚀\u2028\ufeff\x85"))


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


@given(anything)
def test_a_text_is_as_long_as_its_utf16_units(text: str) -> None:
    assert js.units(text) == len(utf16(text)) / 2


@given(anything, st.integers(-12, 12), st.none() | st.integers(-12, 12))
def test_cutting_counts_units(text: str, start: int, end: int | None) -> None:
    units = [utf16(text)[at : at + 2] for at in range(0, len(utf16(text)), 2)]
    assert utf16(js.cut(text, start, end)) == b"".join(units[start:end])


@pytest.mark.claim("R-11")
@given(anything, st.integers(1, 20))
def test_a_clipped_text_has_the_limit_and_ends_in_the_mark(text: str, limit: int) -> None:
    clipped = js.clip(text, limit)
    if js.units(text) <= limit:
        assert clipped == text
    else:
        assert js.units(clipped) == limit
        assert clipped.endswith("…")
        assert utf16(text).startswith(utf16(clipped[:-1]))


def test_clipping_may_leave_half_a_pair() -> None:
    assert js.clip("ab🚀cd", 4) == "ab\ud83d…"


def test_a_mark_of_three_dots_counts_three_units_less_one() -> None:
    assert js.clip("abcdef", 4, ".") == "abc."


@given(anything)
def test_joining_pairs_keeps_the_units(text: str) -> None:
    assert utf16(js.pairs(text)) == utf16(text)


@given(anything)
def test_well_formed_text_can_be_stored(text: str) -> None:
    stored = js.well_formed(text)
    assert stored.encode().decode() == stored
    assert js.units(stored) == js.units(text)


@pytest.mark.parametrize(
    ("text", "stored"),
    [("a\ud83d", "a\ufffd"), ("\ud83d\ude80", "🚀"), ("\ude80\ud83d", "\ufffd\ufffd"), ("plain é", "plain é")],
)
def test_lone_surrogates_become_replacement_characters(text: str, stored: str) -> None:
    assert js.well_formed(text) == stored


WHITE = "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
NOT_WHITE = "\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2060"


@pytest.mark.parametrize("space", WHITE)
def test_javascript_white_space_is_trimmed_and_split(space: str) -> None:
    assert js.trim(f"{space}a{space}") == "a"
    assert js.trim_end(f"{space}a{space}") == f"{space}a"
    assert js.split_spaces(f"{space}a{space}b") == ["a", "b"]
    assert js.collapse(f"a{space}{space}b{space}") == "a b"


@pytest.mark.parametrize("mark", NOT_WHITE)
def test_what_only_python_takes_for_white_space_stays(mark: str) -> None:
    assert js.trim(f"{mark}a{mark}") == f"{mark}a{mark}"
    assert js.split_spaces(f"a{mark}b") == [f"a{mark}b"]


@pytest.mark.parametrize(("text", "small"), [("ΟΔΥΣΣΕΥΣ", "οδυσσευς"), ("İ", "i̇"), ("ẞ", "ß"), ("ABC", "abc")])
def test_lower_case_is_the_full_mapping(text: str, small: str) -> None:
    assert js.lower(text) == small


def test_units_order_astral_characters_before_the_last_of_the_plane() -> None:
    assert sorted(["\uffee", "🚀", "a"], key=js.unit_key) == ["a", "🚀", "\uffee"]


@pytest.mark.claim("R-10")
@given(st.floats(-1e6, 1e6))
def test_fixed_digits_round_the_exact_value_away_from_zero(value: float) -> None:
    tenth = Fraction(math.floor(abs(Fraction(value)) * 10 + Fraction(1, 2)), 10)
    assert Fraction(js.to_fixed(value)) == (tenth if value >= 0 else -tenth)
    assert len(js.to_fixed(value).partition(".")[2]) == 1


@pytest.mark.claim("R-10")
@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "0.3"), (0.35, "0.3"), (0.45, "0.5"), (1, "1.0"), (-0.0, "0.0"), (-0.04, "-0.0")]
)
def test_one_decimal(value: float, text: str) -> None:
    assert js.to_fixed(value) == text


@given(st.floats(-1e9, 1e9))
def test_rounding_goes_up_on_ties(value: float) -> None:
    assert js.round_half_up(value) == math.floor(value + 0.5)
    assert js.round_half_up(math.floor(value) + 0.5) == math.floor(value) + 1


@given(st.floats(0, 1))
def test_four_digits_are_four_digits(value: float) -> None:
    assert js.round4(value) == float(f"{js.round4(value):.4f}")
    assert abs(js.round4(value) - value) <= 0.00005000001


@pytest.mark.parametrize(("value", "held"), [(-0.5, 0), (0, 0), (0.3, 0.3), (1, 1), (7, 1), (math.inf, 1)])
def test_clamping(value: float, held: float) -> None:
    assert js.clamp01(value) == held


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (0.7, "0.7"),
        (1e-7, "1e-7"),
        (1.25e-7, "1.25e-7"),
        (0.000001, "0.000001"),
        (1e21, "1e+21"),
        (123456789012345680000, "123456789012345680000"),
        (-0.0, "0"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_as_text(value: float, text: str) -> None:
    assert js.number_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_text_reads_back(value: float) -> None:
    assert float(js.number_text(value)) == value


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_json_reads_back(value: object) -> None:
    assert json.loads(js.json_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1.0, "a": [True, None, "é\n"]}, '{"b":1,"a":[true,null,"é\\n"]}'),
        ("\ud83d\ude80 \ud83d", '"🚀 \\ud83d"'),
        (math.nan, "null"),
        ({}, "{}"),
        ((), "[]"),
    ],
)
def test_json_as_javascript_writes_it(value: object, text: str) -> None:
    assert js.json_text(value) == text


def test_json_refuses_what_has_no_form() -> None:
    with pytest.raises(TypeError, match="set"):
        js.json_text({"a": {1}})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        (" \n", 0),
        ("12", 12),
        ("-.5", -0.5),
        ("1e3", 1000),
        ("1.", 1),
        ("0b11", 3),
        ("0o17", 15),
        ("0XfF", 255),
    ],
)
def test_to_number(text: str, number: float) -> None:
    assert js.to_number(text) == number


@pytest.mark.parametrize("text", ["x", "1 2", "1_000", "-0x1", "infinity", "٣", "0x", "1e", "."])
def test_to_number_of_what_is_none(text: str) -> None:
    assert math.isnan(js.to_number(text))
    assert js.to_number("-Infinity") == -math.inf
