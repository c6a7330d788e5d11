"""Words of a query."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory import js
from ipy_memory.mnemopi import lexicon

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
    assert lexicon.tokenise(text) == tokens


def test_a_word_of_several_groups_belongs_to_the_last() -> None:
    assert lexicon.synonyms("secret") == ["key", "token", "credential", "secret", "api_key"]
    assert lexicon.synonyms("port")[0] == "migrate"


def test_some_words_have_more_variants_than_their_group() -> None:
    assert lexicon.variants("prefer") == ["prefer", "wants", "want", "prefers"]
    assert lexicon.synonyms("prefer") == ["prefer"]


def test_groups_stay_apart_while_the_expansion_names_each_token_once() -> None:
    assert lexicon.groups("db database") == [["database", "db", "datastore", "data_store"]] * 2
    assert lexicon.expanded("db database x") == ["database", "db", "datastore", "data_store", "x"]


def test_stop_words_among_the_synonyms_are_left_out() -> None:
    assert lexicon.synonyms("date") == ["time", "date", "when", "timestamp", "schedule"]
    assert lexicon.expanded("date") == ["time", "date", "timestamp", "schedule"]


@given(queries)
def test_the_expansion_is_the_union_of_the_groups(query: str) -> None:
    expanded, groups = lexicon.expanded(query), lexicon.groups(query)
    assert len(set(expanded)) == len(expanded)
    assert set(expanded) == {token for group in groups for token in group}
    assert len(groups) == len(lexicon.tokenise(query))


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
    assert lexicon.normalise(query) == normal


@given(queries)
def test_the_normal_form_is_sorted_and_without_repeats(query: str) -> None:
    words = js.split_spaces(lexicon.normalise(query))
    assert words == sorted(set(words), key=js.unit_key)


def test_the_full_text_query_quotes_the_first_twelve_tokens() -> None:
    query = " ".join(f"w{number}" for number in range(20))
    assert lexicon.fts_query(query) == " OR ".join(f'"w{number}"' for number in range(12))


def test_a_query_without_tokens_is_one_phrase() -> None:
    assert lexicon.fts_query(' what "is" ') == '"what ""is"""'


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(content)")
        connection.execute("INSERT INTO texts VALUES ('alpha beta'), ('gamma')")
        yield connection


@given(query=queries)
def test_operators_in_a_query_are_only_text(index: sqlite3.Connection, query: str) -> None:
    found = index.execute("SELECT content FROM texts WHERE texts MATCH ?", [lexicon.fts_query(query + " gamma")])
    assert ("gamma",) in found.fetchall() or len(lexicon.expanded(query)) >= lexicon.FTS_TOKENS


def test_the_intent_with_most_hits_wins() -> None:
    intent = lexicon.classify_intent("how to install what is best choice")
    assert (intent.category, intent.confidence) == ("preference", 0.6)
    assert intent.signals == ("factual", "preference", "preference", "procedural", "procedural")


def test_on_ties_the_first_category_wins() -> None:
    assert lexicon.classify_intent("Deploy MONDAY").category == "temporal"


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 1), queries)
def test_adjusted_weights_sum_to_one(vector: float, text: float, importance: float, query: str) -> None:
    weights = lexicon.adjust_weights(vector, text, importance, lexicon.classify_intent(query))
    assert sum(weights) == pytest.approx(1)


def test_weights_of_nothing_stay_nothing() -> None:
    assert lexicon.adjust_weights(0, 0, 0, lexicon.classify_intent("when")) == (0, 0, 0)
