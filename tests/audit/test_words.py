"""How a text is read before it is compared."""

from __future__ import annotations

import pytest

from ipy_memory.audit.words import CUT, Content, one_block_moved, tokens_of


def _forms(text: str) -> list[str]:
    return [token.form for token in tokens_of(text)]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("See v1.2.3, at 10:32.", ["see", "v1.2.3", CUT, "at", "10:32"]),
        ("1,000 users", ["1000", "users"]),
        ("Dana's in-memory cache", ["dana", "s", "in", "memory", "cache"]),
        ("C++ and node.js", ["c++", "and", "node.js"]),
        ("it isn't", ["it", "is", "not"]),
        ("-5 or 5%", ["-5", "or", "5%"]),
    ],
)
def test_values_stay_whole_and_words_are_taken_apart(text: str, forms: list[str]) -> None:
    assert _forms(text) == forms


def test_numbers_and_identifiers_are_exact_and_names_are_marked() -> None:
    exact = [token.form for token in tokens_of("Today getUser calls user_id 7 for Dana") if token.exact]
    assert exact == ["getuser", "user_id", "7"]
    assert [token.written for token in tokens_of("Today we met Dana") if token.name] == ["Dana"]


def test_the_content_has_no_order_no_articles_and_no_endings() -> None:
    one, other = (Content(tokens_of(text), "english") for text in ("The servers run jobs", "Job runs: server"))
    assert one.key == other.key


def test_two_negations_deny_nothing() -> None:
    assert [Content(tokens_of(text), "english").negated for text in ("not seen", "never not seen")] == [True, False]


@pytest.mark.parametrize(("other", "moved"), [("abcd", True), ("cdab", True), ("acbd", True), ("dbca", False)])
def test_one_block_moved(other: str, moved: bool) -> None:
    assert one_block_moved("abcd", other) is moved
