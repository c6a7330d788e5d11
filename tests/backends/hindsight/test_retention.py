"""Automatic retention: which turns go into which document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.hindsight.retention import Sent, due, next_document, prefix_key, window_text
from ipy_memory.conversation import Message, transcript
from tests.backends.hindsight.conftest import talk

messages = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(min_size=1, max_size=12)), max_size=6
)


@pytest.mark.claim("A-07")
@given(messages, messages)
def test_a_grown_document_equals_one_built_anew(first: list[Message], more: list[Message]) -> None:
    sent = next_document(None, "d", first)
    grown = next_document(sent, "d", first + more)
    whole = transcript(first + more, full=True, stamps=True).text
    if grown is not None:
        assert grown.text == whole


@pytest.mark.claim("A-07")
@given(messages, st.integers(0, 5), st.text(min_size=1, max_size=5))
def test_any_change_to_the_beginning_builds_the_whole_anew(some: list[Message], at: int, text: str) -> None:
    sent = Sent("d", "what was sent before", len(some), prefix_key(some))
    if at < len(some) and text != some[at].text:
        edited = [*some[:at], Message(some[at].role, text), *some[at + 1 :]]
        built = next_document(sent, "d", edited)
        assert (built.text if built else None) == transcript(edited, full=True, stamps=True).text


@pytest.mark.claim("A-07")
def test_nothing_new_sends_nothing_and_a_shorter_log_starts_again() -> None:
    sent = next_document(None, "d", talk(3))
    assert sent is not None
    assert next_document(sent, "d", talk(3)) is None
    shorter = next_document(sent, "d", talk(1))
    assert shorter is not None
    assert "question 2" not in shorter.text
    other = next_document(sent, "e", talk(3))
    assert other is not None
    assert other.text == sent.text


@pytest.mark.claim("A-07")
def test_the_key_tells_messages_apart_that_read_alike() -> None:
    assert prefix_key([Message("user", "a"), Message("user", "b")]) != prefix_key([Message("user", "a\0user\0b")])
    assert prefix_key([Message("user", "a", "t")]) != prefix_key([Message("user", "a")])


@pytest.mark.claim("A-08")
def test_a_window_is_the_last_turns() -> None:
    text = window_text(talk(5), 2)
    assert text is not None
    assert "question 4" in text
    assert "question 3" not in text


@pytest.mark.claim("A-06", "A-07")
@pytest.mark.parametrize(
    ("turns", "retained", "every", "is_due"), [(2, 0, 3, False), (3, 0, 3, True), (5, 3, 3, False), (3, 20, 3, True)]
)
def test_retention_is_due_after_so_many_turns(turns: int, retained: int, every: int, is_due: bool) -> None:
    assert due(talk(turns), retained, every) is is_due
