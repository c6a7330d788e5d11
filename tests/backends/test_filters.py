"""The filters of a recall as one value: what is read, what is refused, what is said of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ipy_memory.backends.filters import RecallFilter
from ipy_memory.errors import NotSupportedError, ToolInputError


def read(**given: Any) -> RecallFilter:
    made = RecallFilter.of(given)
    assert made is not None
    return made


@pytest.mark.parametrize("nothing", [None, {}, {"source": None}, {"tag": ()}, RecallFilter()])
def test_nothing_asked_for_is_no_filter(nothing: Any) -> None:
    assert RecallFilter.of(nothing) is None


def test_times_are_instants_and_a_day_is_whole() -> None:
    made = read(since="2026-05-31", until="2026-05-31", at="2026-05-31T14:00+02:00")
    assert (made.since, made.until) == ("2026-05-31T00:00:00.000Z", "2026-05-31T23:59:59.999Z")
    assert made.at == "2026-05-31T12:00:59.999Z"
    assert read(since=datetime(2026, 5, 31, tzinfo=UTC)).since == "2026-05-31T00:00:00.000Z"


def test_what_was_read_once_is_read_again_as_the_same() -> None:
    made = read(source="cli", since="2026-05", until="2026-05", tag="a, b,a", type="world", budget="low", tokens=9)
    assert RecallFilter.of(made) == made
    assert made.tag == ("a", "b")
    assert read(type=["world", "experience"]).type == ("world", "experience")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("colour", "red", "there is no filter 'colour'"),
        ("since", "soon", "'since' takes a date or time, not 'soon'"),
        ("source", "", "'source' takes a text"),
        ("author", 7, "'author' takes a text"),
        ("tag", "a,,b", "'tag' takes names"),
        ("tag", 7, "'tag' takes names"),
        ("type", "world,fact", "'type' cannot be 'fact'"),
        ("budget", "huge", "'budget' cannot be 'huge'"),
        ("tokens", 0, "'tokens' takes a whole number"),
        ("tokens", True, "'tokens' takes a whole number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_valid(name: str, value: Any, said: str) -> None:
    with pytest.raises(ToolInputError, match=said) as caught:
        RecallFilter.of({name: value})
    assert caught.value.hint


def test_a_flag_that_is_not_honoured_is_named() -> None:
    made = read(tag="a", at="2026-05-31")
    made.check("Somebody", frozenset({"tag", "at"}))
    with pytest.raises(NotSupportedError, match="Somebody does not support --at in a recall") as caught:
        made.check("Somebody", frozenset({"tag", "type"}))
    assert caught.value.hint == "what it can do is --tag, --type"
    with pytest.raises(NotSupportedError) as caught:
        made.check("Somebody", frozenset())
    assert caught.value.hint == "ask without it"


def test_the_note_says_what_was_asked() -> None:
    assert read(until="2026-05-31", tag="a,b").note == (
        "Asked with --until 2026-05-31 23:59 UTC --tag a,b, which the agent does not do; nothing was counted."
    )
