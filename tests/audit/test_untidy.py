"""Echoes, passed dates, fragments, leftovers and huge texts."""

from __future__ import annotations

import pytest

from ipy_memory.audit.untidy import HUGE, OVERSIZED, echoes, junk, orphans, oversized, stale
from ipy_memory.model import Hit
from ipy_memory.text import mnemopi_block, mnemopi_bullet, recall_text, reflect_text
from tests.audit.notes import NOW_MS, found, memory

HIT = Hit("716b251a2adcd9e2", "The deploy target is fly.io", "note", "2026-05-01T10:00:00.000Z", 0.5)
ECHOES = [
    recall_text([mnemopi_bullet(HIT)], NOW_MS),
    mnemopi_block([HIT], NOW_MS, lambda text: text),
    reflect_text([HIT]),
    f"I was told: {mnemopi_bullet(HIT)}\n{mnemopi_bullet(HIT)}",
    "<tool_result>ok</tool_result>",
    'Traceback (most recent call last):\n  File "a.py", line 1',
    '{"tool_call_id": "x", "output": 3}',
    "diff --git a/x b/x\n@@ -1 +1 @@",
]


@pytest.mark.parametrize("text", ECHOES)
def test_what_an_agent_was_shown_is_an_echo(text: str) -> None:
    (one,) = found(echoes, text)
    assert (one.kind, one.action) == ("echoes", "invalidate")


def test_memories_that_are_listed_again_are_an_echo_of_them() -> None:
    texts = ["Dana owns the billing service", "Staging runs in Berlin", "Notes:"]
    (one,) = found(echoes, *texts, "- Dana owns the billing service.\n- Staging runs in Berlin (2026-05-01)")
    assert (one.id, one.other) == ("m3", ("m0", "m1"))


@pytest.mark.parametrize(
    "text",
    [
        "The recall tool lists memories",
        "- first\n- second",
        "Memory blocks are <b>bold</b>",
        "exit codes matter",
        "The `<memories>` block is frozen",
    ],
)
def test_talk_of_memories_is_no_echo(text: str) -> None:
    assert found(echoes, text) == []


def test_a_passed_date_is_stale_and_one_to_come_is_not() -> None:
    assert [one.id for one in found(stale, "Freeze until 2026-05-20", "Freeze until 2026-07-01")] == ["m0"]


def test_tomorrow_is_stale_after_two_weeks() -> None:
    text = "The demo is tomorrow"
    rows = [memory(0, text, timestamp="2026-05-01T10:00Z"), memory(1, text, timestamp="2026-05-31T10:00Z")]
    (one,) = found(stale, *rows)
    assert (one.id, one.evidence) == ("m0", '"tomorrow", said 31 days ago')


@pytest.mark.parametrize(
    "text", ["ok", "Thanks!", "...", "danke", "and then we went to the", "of the new service,", "Deployment"]
)
def test_fragments_and_answers_are_junk(text: str) -> None:
    assert [one.kind for one in found(junk, text)] == ["junk"]


@pytest.mark.parametrize("text", ["Use pnpm", "pytest-9", "Dana owns billing", "缓存已启用", "API_KEY", "Log in"])
def test_short_notes_are_no_junk(text: str) -> None:
    assert found(junk, text) == []


def test_a_fact_without_a_subject_is_junk() -> None:
    facts = [memory(0, text, store="fact", about=("m9",)) for text in ("it uses redis", "Dana owns it", " is red")]
    assert [(one.evidence, one.action) for one in found(junk, *facts)] == [
        ("a fact without a subject; made from m9", "forget")
    ] * 2


def test_what_was_made_from_memories_that_are_gone_is_an_orphan() -> None:
    rows = [
        memory(0, "A note"),
        memory(1, "a fact", store="fact", about=("m0",)),
        memory(2, "a fact", store="fact", about=("gone",)),
        memory(3, "replaced", state="superseded", superseded_by="gone-too"),
        memory(4, "replaced", state="superseded", superseded_by="m0"),
    ]
    assert [(one.id, one.other, one.action) for one in found(orphans, *rows)] == [
        ("m2", ("gone",), "forget"),
        ("m3", ("gone-too",), "review"),
    ]


def test_large_memories_are_oversized() -> None:
    texts = ["x" * OVERSIZED, "x" * (OVERSIZED + 1), "x" * (HUGE + 1)]
    assert [(one.id, one.severity) for one in found(oversized, *texts)] == [("m1", "low"), ("m2", "medium")]


def test_a_sentence_stored_as_a_fact_has_the_subject_of_the_sentence() -> None:
    texts = ["fact entity The user lives in Berlin", "fact entity It is down", "fact entity"]
    facts = [memory(number, text, store="fact") for number, text in enumerate(texts)]
    assert [one.id for one in found(junk, *facts)] == ["m1", "m2"]
