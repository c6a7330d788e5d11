"""Turns of a conversation as text: what is left out, what is cut, what is asked."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.conversation import (
    CONTEXT_HEADING,
    Message,
    compose_query,
    cut_query,
    has_substance,
    last_turns,
    messages_in,
    messages_of,
    plain_transcript,
    strip_protocol,
    strip_tags,
    transcript,
    truncate_tokens,
    user_transcript,
    user_turns,
)
from ipy_memory.jscompat import strings as js

roles = st.sampled_from(["user", "assistant"])
texts = st.text(st.characters(codec="utf-8"), max_size=60)
conversations = st.lists(st.builds(Message, roles, texts), max_size=8)


def entry(role: str, content: object, **more: object) -> dict[str, object]:
    return {"type": "message", "message": {"role": role, "content": content}, **more}


def test_messages_are_the_user_and_assistant_entries_that_say_something() -> None:
    log = [
        entry("user", "hello", timestamp="2026-05-01T10:00:00.000Z"),
        entry(
            "assistant",
            [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        ),
        entry("assistant", "..."),
        entry("toolResult", "output"),
        {"type": "compaction", "summary": "x"},
        {"type": "message"},
        entry("user", None),
    ]
    assert messages_of(log) == [Message("user", "hello", "2026-05-01T10:00:00.000Z"), Message("assistant", "a\nb")]


@pytest.mark.claim("A-01", "A-06")
@pytest.mark.parametrize("tag", ["memories", "mental_models", "hindsight_memories", "relevant_memories"])
def test_blocks_put_into_a_prompt_do_not_come_back(tag: str) -> None:
    assert strip_tags(f"a <{tag}>\nold\n</{tag}> b <{tag}>x</{tag}>") == "a  b "


def test_an_unclosed_block_stays() -> None:
    assert strip_tags("<memories>never closed") == "<memories>never closed"


@given(conversations)
def test_marker_lines_leave_with_the_frame(messages: list[Message]) -> None:
    framed = transcript(messages, full=True)
    assert plain_transcript(messages).message_count in {0, framed.message_count}
    if framed.text is not None:
        bare = strip_protocol(framed.text)
        assert "[user:end]" not in bare.split("\n")
        assert strip_protocol(bare) == bare


@given(conversations, st.integers(-2, 10))
def test_last_turns_is_a_tail_with_that_many_user_messages(messages: list[Message], turns: int) -> None:
    kept = list(last_turns(messages, turns))
    assert kept == messages[len(messages) - len(kept) :]
    assert user_turns(kept) == min(max(turns, 0), user_turns(messages))


@pytest.mark.claim("A-01")
def test_the_query_has_earlier_turns_above_the_latest_message() -> None:
    messages = [
        Message("user", "too old"),
        Message("user", "first"),
        Message("assistant", "<memories>x</memories> reply "),
        Message("user", " latest "),
    ]
    assert compose_query(" latest ", messages, 2) == f"{CONTEXT_HEADING}user: first\nassistant: reply\n\nlatest"
    assert compose_query(" latest ", messages, 1) == "latest"


@pytest.mark.claim("A-02")
@given(conversations, texts, st.integers(1, 200), st.integers(0, 5))
def test_a_cut_query_fits_and_keeps_the_latest_message(
    messages: list[Message], latest: str, limit: int, turns: int
) -> None:
    query = compose_query(latest, messages, turns)
    cut = cut_query(query, latest, limit)
    assert js.units(cut) <= max(limit, 0)
    wanted = js.trim(latest)
    if js.units(wanted) <= limit:
        assert cut.endswith(wanted)
    else:
        assert cut == js.cut(wanted, 0, limit) or cut == query
    assert cut_query(query, latest, 0) == query


def test_what_follows_the_latest_message_in_a_query_is_cut_with_the_rest() -> None:
    assert cut_query("Prior context:\n\nuser: a\nuser: b\n\nlatest", "late", 32) == "Prior context:\n\nuser: b\n\nlate"


def test_a_stamp_s_line_may_hold_brackets() -> None:
    assert strip_protocol("[timestamp: a]b]\nx\n[timestamp: ]") == "x\n[timestamp: ]"


@pytest.mark.claim("A-06")
def test_a_transcript_frames_what_has_substance() -> None:
    messages = [
        Message("user", "first question", "2026-05-01"),
        Message("assistant", "..."),
        Message("user", "second", " "),
    ]
    assert transcript(messages, full=True, stamps=True).text == (
        "[role: user]\n[timestamp: 2026-05-01]\nfirst question\n[user:end]\n\n[role: user]\nsecond\n[user:end]"
    )
    assert transcript(messages, full=False).message_count == 1
    assert transcript([Message("assistant", "alone here")], full=False).text is None
    assert user_transcript(messages).message_count == 2


@given(texts, st.integers(0, 20))
def test_truncated_text_is_a_beginning_with_a_mark(text: str, limit: int) -> None:
    cut = truncate_tokens(text, limit)
    assert cut == text or (cut.endswith("…") and text.startswith(js.pairs(cut[:-1])[:-1]))
    assert js.units(cut) <= max(4 * limit, 1)


@pytest.mark.parametrize(
    ("text", "says"), [("", False), ("_-!", False), ("é", True), ("½", True), ("👍", False), ("٣", True)]
)
def test_substance_is_a_letter_or_a_number(text: str, says: bool) -> None:
    assert has_substance(text) is says


_TAG_PARTS = st.sampled_from(
    [
        "<memories>",
        "</memories>",
        "<memories",
        "<mental_models>",
        "</mental_models>",
        "a",
        "\n",
        "</",
        "</memories ",
        ">",
    ]
)
_LINE_PARTS = st.sampled_from(
    ["[timestamp:", "[role:", "[user:end]", "]", " ", "\t", "\r", "\u2028", "\u3000", "user", "2026", "é", "[", ":"]
)


@given(st.lists(_TAG_PARTS, max_size=14).map("".join))
def test_tags_are_stripped_as_the_pattern_says(text: str) -> None:
    plain = text
    for name in ("memories", "mental_models", "hindsight_memories", "relevant_memories"):
        plain = re.sub(f"<{name}>.*?</{name}>", "", plain, flags=re.DOTALL)
    assert strip_tags(text) == plain


@given(st.lists(_LINE_PARTS, max_size=9).map("".join))
def test_protocol_lines_are_those_of_the_pattern(line: str) -> None:
    space = f"[{js.WHITESPACE}]"
    plain = re.compile(
        rf"\[role:{space}*[A-Za-z0-9_-]+\]|\[[A-Za-z0-9_-]+:end\]|\[timestamp:{space}+[^\n\r\u2028\u2029]+\]"
    )
    kept = "" if plain.fullmatch(js.trim(line)) else js.trim(line)
    assert strip_protocol(line) == kept


HEAVY = {
    "opening tags alone": "<memories>" * 100_000,
    "closing tags alone": "</memories>" * 100_000,
    "every kind of opening tag": "<memories><mental_models><hindsight_memories><relevant_memories>" * 16_000,
    "a time without an end": "[timestamp:" + " " * 1_000_000 + "x",
    "a role without an end": "[role:" + " " * 1_000_000 + "!",
    "blank lines": "a" + "\n" * 1_000_000 + "b",
}


@pytest.mark.parametrize("text", HEAVY.values(), ids=HEAVY.keys())
def test_a_megabyte_of_markers_is_read_in_linear_time(text: str) -> None:
    """A15: the time follows the size; the bound is only there to end a test that hangs."""
    began = time.monotonic()
    strip_protocol(strip_tags(text))
    assert time.monotonic() - began < 60


def test_empty_blocks_of_an_assistant_are_dropped_and_a_users_kept() -> None:
    """D19."""
    blocks = [{"type": "text", "text": text} for text in ("one", "", "two")]
    entries = [{"type": "message", "message": {"role": role, "content": blocks}} for role in ("user", "assistant")]
    assert [message.text for message in messages_of(entries)] == ["one\n\ntwo", "one\ntwo"]
    said = [entry["message"] for entry in entries]
    assert [message.text for message in messages_in(said, empty_blocks=True)] == ["one\n\ntwo"] * 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        (("hello there", "[assistant:end]\n   indented\n[role: x]", "[role: user]\n\t tabbed  "), "indented|tabbed"),
        (("hello there", "[assistant:end]", "more words"), "more words"),
    ],
)
def test_each_message_is_stripped_of_markers_by_itself(said: tuple[str, ...], plain: str) -> None:
    """D16: what is embedded of a transcript."""
    found = plain_transcript([Message("user", text) for text in said])
    assert found.text == "\n\n".join(["hello there", *plain.split("|")])
