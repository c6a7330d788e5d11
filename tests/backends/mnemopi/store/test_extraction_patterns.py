"""What is read out of summaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.store.extraction import MAX_LENGTH, extract_patterns, extract_relations
from ipy_memory.jscompat import strings as js


def _values(text: str, kind: str) -> list[tuple[str, str]]:
    return [(found.key, found.value) for found in extract_patterns(text) if found.type == kind]


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("latency 20ms now", "latency_ms", "20ms"),
        ("We ran 120 tests", "ran_test", "120tests"),
        ("The Gateway uses 12 endpoints.", "gateway_uses_endpoint", "12endpoints"),
        ("cost was 3,5 GB", "cost_gb", "3,5GB"),
        ("one. two 4 items", "two_items", "4items"),  # a unit in ms keeps its s, context begins after a sentence
        ("see `the code` 5 rows", "row", "5rows"),
        ("load 5%x", "load_pct", "5%"),  # the sign needs a word after it
        ("12 days", "day", "12days"),
        ("alpha beta gamma delta 2 bugs", "beta_gamma_delta_bug", "2bugs"),
    ],
)
def test_measures_are_named_by_the_words_before_them(text: str, key: str, value: str) -> None:
    assert _values(text, "metric") == [(key, value)]


def test_a_percent_sign_before_a_space_and_a_unit_within_a_word_are_no_measures() -> None:
    assert _values("load 80% | 12 msx | 3 itemsets", "metric") == []


def test_at_most_ten_measures() -> None:
    assert len(_values("5 bugs " * 12, "metric")) == 10


def test_dates_near_an_event_go_on_the_timeline() -> None:
    far = " x" * 120 + " "
    found = [p for p in extract_patterns(f"release on 2026-06-15{far}2026-13-99{far}") if p.type == "date"]
    assert [(p.value, p.event) for p in found] == [("2026-06-15", True), ("2026-13-99", False)]


def test_versions_are_not_months() -> None:
    assert [v for _, v in _values("v1.2 1.2.3-beta+1 2026-06 0.5 v2", "version")] == ["v1.2", "1.2.3-beta", "0.5"]


def test_relations_need_a_capital_and_end_with_the_sentence() -> None:
    text = "Gateway  depends on Kafka\n and more. the Ledger is it; it uses that! Ab is no"
    assert extract_relations(text) == [("Gateway", "Kafka and more"), ("Ledger", "it")]


def test_lengths_are_counted_in_units() -> None:
    # 80 units of two-unit characters: 40 of them.
    assert extract_relations("Gateway uses " + "😀" * 60) == [("Gateway", "😀" * 40)]
    before = extract_patterns("😀" * 30 + " wordy 5 bugs")[0]
    assert before.key == "\ude00" + "😀" * 21 + "_wordy_bug"  # the window of 50 units begins within a pair
    assert js.units(before.snippet) <= 100


def test_long_summaries_are_not_read() -> None:
    text = "Gateway is it. " + "5 bugs 2026-06-15 v1.2 " * 3000
    assert js.units(text) > MAX_LENGTH
    assert extract_patterns(text) == []
    assert extract_relations(text) == []


@given(st.text(max_size=300))
def test_whatever_the_text_snippets_are_short_and_values_come_from_it(text: str) -> None:
    for found in extract_patterns(text):
        assert js.units(found.snippet) <= 200
        if found.type != "metric":
            assert found.value in text
