"""Facts out of texts and out of a language model's answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.store.extraction import FACT_LIMIT, Extracted, heuristic_facts, parse_answer
from ipy_memory.jscompat import strings as js


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I PREFER tea and i prefer TEA", ["The user prefers tea", "The user prefers TEA"]),
        ("I always I never stop", ["Instruction: always I never stop"]),
        ("You Always Test AND go", ["Instruction: always Test"]),
        ("I am using a", ["The user is using a", "The user uses a"]),
        ("I like it and\u00a0I use vim", ["The user prefers it", "The user uses vim"]),
        ("éI use vim", ["The user uses vim"]),
        ("_I use vim", []),
        ("I li\u212ae tea", []),
        ("I prefer\u0085tea", []),
        ("I don\u2019t like tea", []),
    ],
)
def test_sentence_patterns(text: str, facts: list[str]) -> None:
    assert heuristic_facts(text) == facts


@given(
    st.lists(
        st.sampled_from(
            [
                "I",
                "you",
                "my",
                "name",
                "is",
                "am",
                "use",
                "like",
                "always",
                "never",
                "and",
                "but",
                ".",
                ";",
                ",",
                "!",
                "x",
                "\xa0",
                "é",
            ]
        )
    )
)
def test_what_is_found_is_short_unique_and_trimmed(words: list[str]) -> None:
    facts = heuristic_facts(" ".join(words))
    assert len(facts) <= FACT_LIMIT
    assert len(set(facts)) == len(facts)
    assert all(js.units(fact) > 10 and not fact.endswith((".", "!", "?")) for fact in facts)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"fact": "f", "text": "t"}, "f"),
        ({"value": "v", "statement": "s"}, "v"),
        ({"content": "c", "value": "v"}, "c"),
        ({"fact": " ", "text": "t"}, "t"),
        ({"fact": 5, "text": "t."}, "t"),
        ("x!?.", "x"),
    ],
)
def test_an_item_may_be_an_object(item: object, text: str) -> None:
    assert parse_answer(json.dumps({"facts": [item]})).facts == (text,)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"date": "D", "description": "X"}, "X D"),
        ({"date": "D", "text": "T"}, "D T"),
        ({"date": "D", "event": "E", "description": "Q"}, "Q E D"),
        ({"date": 5, "description": "n"}, "n"),
    ],
)
def test_an_event_is_put_together_from_its_parts(event: object, text: str) -> None:
    assert parse_answer(json.dumps({"timelines": [event]})).timelines == (text,)


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        ('```json\n{"facts":["one"]}\n```', ("one",)),
        ('```json\n{"facts":["broken json here long"', ("broken json here long",)),
        ('{"facts":["one"]}\n```', ('{"facts":["one"]}',)),
        ('{"facts":[NaN]}', ('{"facts":[NaN]}',)),
        ('["a fact in a list that is long"]', ('["a fact in a list that is long"]',)),
        ("12. - mixed bullets with number\n- 1. short", ("mixed bullets with number",)),
        ("2026-05-01 launch day is here", ("launch day is here",)),
        ("no_facts", ()),
        ("[" * 100_000, ("[" * 100_000,)),
        ('{"facts":' + "[" * 100_000, ('{"facts":' + "[" * 100_000,)),
    ],
)
def test_an_answer_need_not_be_clean_json(answer: str, facts: tuple[str, ...]) -> None:
    assert parse_answer(answer).facts == facts


@given(st.one_of(st.none(), st.text(), st.recursive(st.text(), lambda x: st.lists(x)).map(json.dumps)))
def test_any_answer_is_taken(answer: str | None) -> None:
    found = parse_answer(answer)
    assert isinstance(found, Extracted)
    assert bool(found) == bool(found.sentences() or found.kg)
