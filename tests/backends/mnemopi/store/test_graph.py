"""Gists, statements, and the edges between memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.graph import Graph, extract_gist, extract_statements
from ipy_memory.backends.mnemopi.store.write import remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
NOW_MS = FixedClock(NOW).now_ms()


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.open(tmp_path / "mnemopi.db", "proj", clock=FixedClock(NOW), ids=FixedIds()) as opened:
        yield opened


def _add(bank: Bank, table: str = "working_memory", **row: object) -> None:
    with bank.transaction() as connection:
        connection.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()]
        )


def _ingest(bank: Bank, memory_id: str, text: str, *, statements: bool = True) -> None:
    with bank.transaction():
        Graph(bank).ingest(memory_id, text, statements=statements)


def _edges(bank: Bank, source: str) -> dict[tuple[str, str], float]:
    rows = bank.connection.execute("SELECT target, edge_type, weight FROM graph_edges WHERE source = ?", (source,))
    return {(target, kind): weight for target, kind, weight in rows if not target.startswith("gist_")}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("John Smith met NASA and Bob", ("John Smith", "Bob")),
        ("John Smith Brown", ("John Smith", "Brown")),
        ("John-Smith, Foo_bar Foo1", ("John", "Smith")),
        ("Иван Петров, Élan", ("Иван Петров", "Élan")),
        ("He said she and HE", ("He", "she")),
        ("A Bc De Fg Hi Jk Lm", ("Bc De", "Fg Hi", "Jk Lm")),
        ("New\u0085York", ("New", "York")),  # not white space in JavaScript
    ],
)
def test_participants_are_names_and_then_pronouns(text: str, names: tuple[str, ...]) -> None:
    assert extract_gist(text, "m", NOW_MS).participants == names


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("met in New York last week", "New York"),
        ("at Rome attic", "Rome attic"),
        ("at Rome.", None),
        ("AT Rome", None),
        ("Office work at rome", "Office"),
        ("homework", None),
    ],
)
def test_location(text: str, place: str | None) -> None:
    assert extract_gist(text, "m", NOW_MS).location == place


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("TODAY", "point_in_time"),
        ("next\nweek", "point_in_time"),
        ("since May until June", "duration"),
        ("since May\nuntil June", None),  # not over a line's end
        ("between a and b", "range"),
        ("from a to b", "duration"),
        ("at 9:30", "point_in_time"),
        ("nowhere", None),
    ],
)
def test_time_scope(text: str, scope: str | None) -> None:
    assert extract_gist(text, "m", NOW_MS).time_scope == scope


def test_the_first_sentence_is_the_summary_unless_it_is_short() -> None:
    assert extract_gist("A long enough one. Two", "m", NOW_MS).text == "A long enough one"
    assert extract_gist("Short. Two ", "m", NOW_MS).text == "Short. Two"
    assert extract_gist("😀" * 60, "m", NOW_MS).text == "😀" * 50


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("Alice is anxious", [("Alice", "is", "nxious")]),  # the article takes the a
        ("Alice is the", [("Alice", "is", "the")]),
        ("Alice has 1234", [("Alice", "has", "1234")]),
        ("Alice uses 1234", []),
        ("Alice works at Acme Corp", [("Alice", "works_at", "Acme")]),
        ("Alice works at acme", []),
        ("Al is good", []),
        ("Alice is ok", []),
        ("Alice used Redis", [("Alice", "uses", "Redis")]),
        ("Bob has tea. Alice is good", [("Alice", "is", "good"), ("Bob", "has", "tea")]),
    ],
)
def test_statements(text: str, statements: list[tuple[str, str, str]]) -> None:
    found = extract_statements(text, "m", NOW_MS)
    assert [(one.subject, one.predicate, one.object) for one in found] == statements
    assert [one.id for one in found] == [f"fact_m_{number}" for number in range(len(found))]


def test_at_most_five_statements_in_the_first_4096_units() -> None:
    assert len(extract_statements("Alice is good. " * 9, "m", NOW_MS)) == 5
    assert extract_statements("x" * 4090 + " Alice is good", "m", NOW_MS) == []


@given(st.text(max_size=200))
def test_any_text_has_a_gist(text: str) -> None:
    gist = extract_gist(text, "m", NOW_MS)
    assert js.units(gist.text) <= 100
    assert len(gist.participants) <= 5
    for statement in extract_statements(text, "m", NOW_MS):
        assert statement.subject in text


def test_like_texts_are_tied_by_the_share_of_words(bank: Bank) -> None:
    _add(bank, id="w1", content="alpha beta gamma delta", embed_text="one two three", session_id="other")
    _add(bank, id="w2", content="zeta eta theta", embed_text="alpha beta gamma")
    _add(bank, "episodic_memory", id="e1", content="the alpha, BETA")
    _add(bank, "gists", id="gist_g1", memory_id="g1", text="alpha beta gamma")
    _ingest(bank, "new", "alpha beta gamma")
    assert _edges(bank, "new") == {
        ("g1", "related_to"): 1.0,
        ("g1", "ctx"): 1.0,
        ("w1", "related_to"): 0.75,
        ("w1", "ctx"): 0.75,
        ("e1", "related_to"): 0.667,
        ("e1", "ctx"): 0.667,
    }


def test_the_threshold_is_reached_at_35_hundredths(bank: Bank) -> None:
    words = [f"word{number}" for number in range(20)]
    _add(bank, id="at", content=" ".join(words[:7]))
    _add(bank, id="under", content=" ".join(words[:6]))
    _ingest(bank, "new", " ".join(words))
    assert _edges(bank, "new") == {("at", "related_to"): 0.35, ("at", "ctx"): 0.35}


def test_shared_entities_make_references(bank: Bank) -> None:
    _add(bank, id="w1", content="xx")
    _add(bank, "facts", fact_id="f1", session_id="s", subject=" Alice", predicate="p", object="tea", source_msg_id="w1")
    _add(bank, "facts", fact_id="f2", session_id="s", subject="q", predicate="p", object="", source_msg_id="w1")
    _ingest(bank, "new", "Alice is good. Carol is kind")
    assert _edges(bank, "new") == {("w1", "references"): 0.25}
    _ingest(bank, "more", "Alice has tea")
    assert _edges(bank, "more")["w1", "references"] == 0.667
    assert _edges(bank, "more")["w1", "ctx"] == 0.667
    assert ("new", "references") in _edges(bank, "more")


def test_a_shared_time_scope_ties_where_nothing_else_does(bank: Bank) -> None:
    _add(bank, id="w1", content="xx")
    _add(bank, "gists", id="gist_w1", memory_id="w1", text="xx", time_scope="point_in_time")
    _add(bank, id="w2", content="yy")
    _ingest(bank, "new", "today")
    assert _edges(bank, "new") == {("w1", "ctx"): 0.35}


def test_memories_of_one_transaction_see_each_other(bank: Bank) -> None:
    with bank.transaction():
        graph = Graph(bank)
        graph.ingest("one", "alpha beta today. Alice is good")
        graph.ingest("two", "gamma delta today. Alice has tea")
    assert _edges(bank, "two") == {("one", "references"): 0.5, ("one", "ctx"): 0.5}


def test_ingesting_again_refreshes_edges_gist_and_statements(bank: Bank) -> None:
    _add(bank, id="w1", content="alpha beta")
    _ingest(bank, "m", "alpha beta. Alice is good")
    first = bank.connection.execute("SELECT count(*) FROM graph_edges").fetchone()
    _ingest(bank, "m", "alpha beta gamma. Alice is kind")
    assert bank.connection.execute("SELECT count(*) FROM graph_edges").fetchone() == first
    assert _edges(bank, "m")["w1", "ctx"] == 0.4
    assert [row[0] for row in bank.connection.execute("SELECT object FROM facts")] == ["kind"]


def test_without_statements_only_gist_and_ties(bank: Bank) -> None:
    _ingest(bank, "m", "Alice is good", statements=False)
    assert bank.connection.execute("SELECT count(*) FROM facts").fetchone() == (0,)
    assert bank.connection.execute("SELECT memory_id FROM gists").fetchall() == [("m",)]


def test_a_gist_that_ends_within_a_pair_is_stored_well_formed(bank: Bank) -> None:
    _ingest(bank, "m", "x" * 99 + "😀")
    assert bank.connection.execute("SELECT text FROM gists").fetchone() == ("x" * 99 + "\ufffd",)


def test_a_row_that_is_not_text_keeps_no_other_from_being_linked(tmp_path: Path) -> None:
    """A12: bytes in a content and in a fact, read when a new memory is tied to the others."""
    config = EngineConfig(proactive_linking=True)
    with Bank.open(tmp_path / "odd.db", "proj", clock=FixedClock("2026-06-01T12:00:00.000Z"), config=config) as bank:
        first = remember(bank, "Mira uses Redis for caching the harbour tables")
        with bank.transaction() as connection:
            connection.execute("INSERT INTO working_memory (id, content) VALUES ('odd', x'ff00fe')")
            connection.execute(
                "INSERT INTO facts (fact_id, session_id, subject, predicate, object, source_msg_id)"
                " VALUES ('f', 'proj', x'ff', 'p', x'fe', 'odd')"
            )
        second = remember(bank, "Mira uses Redis for caching the harbour lists")
        linked = bank.connection.execute("SELECT target FROM graph_edges WHERE source = ?", (second,)).fetchall()
    assert (first,) in linked
