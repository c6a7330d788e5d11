"""Words of a query."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.recall import query_terms
from ipy_memory.jscompat import strings as js

queries = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.lists(
    st.sampled_from(['"', "db", "OR", "NEAR(", "the", "token", "*", "-", "prefer", "data_store", "ÉCOLE", "日本", "^a"])
).map(" ".join)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The DB-error in prod", ["db", "error", "prod"]),
        ("e\u0301cole x_1 ½", ["e", "cole", "x_1", "½"]),  # a combining mark splits
        ("ΟΔΟΣ 日本語カー", ["οδος", "日本語カー"]),
        ("twice Twice", ["twice", "twice"]),
        ("to be or what", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert query_terms.tokenise(text) == tokens


def test_a_word_of_several_groups_belongs_to_the_last() -> None:
    assert query_terms.synonyms("secret") == ["key", "token", "credential", "secret", "api_key"]
    assert query_terms.synonyms("port")[0] == "migrate"


def test_some_words_have_more_variants_than_their_group() -> None:
    assert query_terms.variants("prefer") == ["prefer", "wants", "want", "prefers"]
    assert query_terms.synonyms("prefer") == ["prefer"]


def test_groups_stay_apart_while_the_expansion_names_each_token_once() -> None:
    assert query_terms.groups("db database") == [["database", "db", "datastore", "data_store"]] * 2
    assert query_terms.expanded("db database x") == ["database", "db", "datastore", "data_store", "x"]


def test_stop_words_among_the_synonyms_are_left_out() -> None:
    assert query_terms.synonyms("date") == ["time", "date", "when", "timestamp", "schedule"]
    assert query_terms.expanded("date") == ["time", "date", "timestamp", "schedule"]


@given(queries)
def test_the_expansion_is_the_union_of_the_groups(query: str) -> None:
    expanded, groups = query_terms.expanded(query), query_terms.groups(query)
    assert len(set(expanded)) == len(expanded)
    assert set(expanded) == {token for group in groups for token in group}
    assert len(groups) == len(query_terms.tokenise(query))


@pytest.mark.parametrize(
    ("query", "normal"),
    [
        ("What is the database password?", "database password?"),
        ("web workspace, tokens!", "browser tokens! workspace,"),
        ("c \uffee 🚀 b", "b c 🚀 \uffee"),
        (" \ufeff the ", ""),
    ],
)
def test_the_normal_form(query: str, normal: str) -> None:
    assert query_terms.normalise(query) == normal


@given(queries)
def test_the_normal_form_is_sorted_and_without_repeats(query: str) -> None:
    words = js.split_spaces(query_terms.normalise(query))
    assert words == sorted(set(words), key=js.unit_key)


def test_the_full_text_query_quotes_the_first_twelve_tokens() -> None:
    query = " ".join(f"w{number}" for number in range(20))
    assert query_terms.fts_query(query) == " OR ".join(f'"w{number}"' for number in range(12))


def test_a_query_without_tokens_is_one_phrase() -> None:
    assert query_terms.fts_query(' what "is" ') == '"what ""is"""'


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(content)")
        connection.execute("INSERT INTO texts VALUES ('alpha beta'), ('gamma')")
        yield connection


@given(query=queries)
def test_operators_in_a_query_are_only_text(index: sqlite3.Connection, query: str) -> None:
    found = index.execute("SELECT content FROM texts WHERE texts MATCH ?", [query_terms.fts_query(query + " gamma")])
    assert ("gamma",) in found.fetchall() or len(query_terms.expanded(query)) >= query_terms.FTS_TOKENS


def test_the_intent_with_most_hits_wins() -> None:
    intent = query_terms.classify_intent("how to install what is best choice")
    assert (intent.category, intent.confidence) == ("preference", 0.6)
    assert intent.signals == ("factual", "preference", "preference", "procedural", "procedural")


def test_on_ties_the_first_category_wins() -> None:
    assert query_terms.classify_intent("Deploy MONDAY").category == "temporal"


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 1), queries)
def test_adjusted_weights_sum_to_one(vector: float, text: float, importance: float, query: str) -> None:
    weights = query_terms.adjust_weights(vector, text, importance, query_terms.classify_intent(query))
    assert sum(weights) == pytest.approx(1)


def test_weights_of_nothing_stay_nothing() -> None:
    assert query_terms.adjust_weights(0, 0, 0, query_terms.classify_intent("when")) == (0, 0, 0)


def test_words_that_come_too_late_are_named() -> None:
    assert query_terms.unread("deploy target") == []
    long = " ".join(f"word{number}" for number in range(20))
    assert query_terms.unread(long) == [f"word{number}" for number in range(12, 20)]
