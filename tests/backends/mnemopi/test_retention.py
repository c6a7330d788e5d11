"""Automatic retention: when turns become a memory, which of them, and after a restart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.retention import TRANSCRIPT_SOURCE, Retention, due, stored_through
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.conversation import Message, user_turns
from ipy_memory.errors import BankError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
NOW_MS = 1_780_315_200_000


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.open(tmp_path / "mnemopi.db", "proj", clock=FixedClock(NOW), ids=FixedIds()) as opened:
        yield opened


def _talk(turns: int) -> list[Message]:
    return [
        message
        for number in range(1, turns + 1)
        for message in (Message("user", f"question {number}"), Message("assistant", f"answer {number}"))
    ]


def _retention(bank: Bank, every: int = 4, session: str = "sess-1") -> Retention:
    return Retention(lambda: bank, session_id=session, cwd="/proj/demo", every=every)


def _due(messages: list[Message], last: int, every: int, **more: Any) -> Any:
    return due(messages, last=last, every=every, session_id="s", cwd="/c", now_ms=NOW_MS, **more)


def _contents(bank: Bank) -> list[str]:
    return [row[0] for row in bank.connection.execute("SELECT content FROM working_memory ORDER BY rowid")]


@pytest.mark.claim("A-09")
@given(turns=st.integers(0, 12), last=st.integers(0, 12), every=st.integers(1, 6), forced=st.booleans())
def test_the_cadence(turns: int, last: int, every: int, forced: bool) -> None:
    found = _due(_talk(turns), last, every, forced=forced)
    assert (found is not None) == (turns - last >= (1 if forced else every))
    if found is not None:
        assert found.through == turns
        assert found.content.count("[role: user]") == turns - last
        assert f"question {last + 1}\n" in found.content


@given(
    messages=st.lists(
        st.builds(Message, st.sampled_from(["user", "assistant"]), st.sampled_from(["hello there", "…", ""]))
    ),
    every=st.integers(1, 3),
)
def test_each_user_turn_is_taken_once(messages: list[Message], every: int) -> None:
    last, seen = 0, 0
    for end in range(len(messages) + 1):
        if found := _due(messages[:end], last, every):
            seen += found.content.count("[role: user]")
            last = found.through
    expected = sum(message.role == "user" and message.text == "hello there" for message in messages)
    assert seen <= expected
    assert last <= user_turns(messages)


@pytest.mark.claim("A-09")
def test_what_is_stored(bank: Bank) -> None:
    talk = [Message("user", "I prefer tea <memories>old</memories>"), Message("assistant", "I use what you never use.")]
    assert _retention(bank, every=1).end_turn(talk)
    row = bank.connection.execute(
        "SELECT source, importance, veracity, memory_type, scope, embed_text, metadata_json FROM working_memory"
    ).fetchone()
    assert row[:5] == (TRANSCRIPT_SOURCE, 0.65, "unknown", "episode", "bank")
    assert row[5] == "I prefer tea\n\nI use what you never use."
    assert row[6] == (
        f'{{"session_id":"sess-1","source_id":"sess-1-{NOW_MS}","message_count":2,'
        '"retained_through_user_turn":1,"cwd":"/proj/demo"}'
    )
    facts = [fact for (fact,) in bank.connection.execute("SELECT object FROM facts")]
    assert facts == ["The user prefers tea [user:end]"]


@pytest.mark.claim("A-09")
def test_a_forced_retain_carries_the_bare_session_and_may_read_no_facts(bank: Bank) -> None:
    retention = _retention(bank)
    assert retention.end_turn([Message("user", "I prefer tea")]) is None
    assert retention.force([Message("user", "I prefer tea")], extract=False)
    metadata = json.loads(bank.connection.execute("SELECT metadata_json FROM working_memory").fetchone()[0])
    assert metadata["source_id"] == "sess-1"
    assert bank.connection.execute("SELECT count(*) FROM facts").fetchone() == (0,)
    assert retention.force([Message("user", "I prefer tea")]) is None


def test_without_facts_the_whole_talk_is_linked_else_what_the_user_said(bank: Bank) -> None:
    bank.config = EngineConfig(proactive_linking=True)
    talk = [Message("user", "we meet"), Message("assistant", "with Maria")]
    _retention(bank).force(talk, extract=False)
    bank.clock.advance(1)  # type: ignore[attr-defined]
    _retention(bank, session="sess-2").force([*talk, Message("user", "soon")])
    gists = bank.connection.execute("SELECT participants_json FROM gists ORDER BY timestamp").fetchall()
    assert ["Maria" in participants for (participants,) in gists] == [True, False]


@pytest.mark.claim("A-10")
def test_turns_are_not_stored_again_after_a_restart(bank: Bank) -> None:
    _retention(bank, every=2).end_turn(_talk(2))
    fresh = _retention(bank, every=2)
    assert fresh.last_turn == 2
    assert fresh.end_turn(_talk(3)) is None
    assert fresh.end_turn(_talk(4))
    assert [content.count("[role: user]") for content in _contents(bank)] == [2, 2]
    fresh.reset()
    assert fresh.end_turn(_talk(5)) is None
    assert fresh.last_turn == 4
    assert _retention(bank, session="other").last_turn == 0


@pytest.mark.claim("A-10")
@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ('{"session_id":"s","source_id":"s","retained_through_user_turn":7}', 7),
        ('{"session_id":"t","source_id":"s","retained_through_user_turn":7}', 0),
        ('{"session_id":"s","source_id":"s-123"}', 2),
        ('{"source_id":"s"}', 2),
        ('{"source_id":"sx"}', 0),
        ('{"session_id":"s","source_id":"s","retained_through_user_turn":true}', 2),
        ("no json", 0),
        ("[1]", 0),
        ("[" * 100_000, 0),
    ],
)
def test_the_cursor_is_read_from_the_bank(bank: Bank, metadata: str, expected: int) -> None:
    content = "[role: user]\na [role: user]\n[user:end]\n\n[role: user]\nb\n[user:end]"
    id_ = remember(bank, content, RememberOptions(source=TRANSCRIPT_SOURCE))
    bank.connection.execute("UPDATE working_memory SET metadata_json = ? WHERE id = ?", (metadata, id_))
    assert stored_through(bank, "s") == expected


@pytest.mark.claim("A-04")
def test_a_failed_retention_leaves_the_cursor(bank: Bank) -> None:
    retention = _retention(bank, every=1)
    bank.connection.execute(
        "CREATE TEMP TRIGGER fail BEFORE INSERT ON main.annotations BEGIN SELECT RAISE(ABORT, 'failed'); END"
    )
    with pytest.raises(BankError):
        retention.end_turn(_talk(1))
    assert _contents(bank) == []
    bank.connection.execute("DROP TRIGGER fail")
    retention.end_turn(_talk(2))
    assert [content.count("[role: user]") for content in _contents(bank)] == [2]


def test_a_first_transcript_begins_with_the_log_even_before_the_user_speaks() -> None:
    log = [Message("assistant", "welcome back"), Message("user", "hello there")]
    assert _due(log, 0, 1).content.startswith("[role: assistant]\nwelcome back\n")
    assert _due([*log, Message("user", "and again")], 1, 1).content.startswith("[role: user]\nand again\n")
    assert _due(log[:1], 0, 1) is None
    assert _due(log[:1], 0, 1, forced=True).content == "[role: assistant]\nwelcome back\n[assistant:end]"
    assert _due(log, 1, 1, forced=True) is None


def test_no_facts_are_read_where_the_user_said_nothing() -> None:
    options = _due([Message("user", "<memories>a</memories>"), Message("assistant", "Maria uses it")], 0, 1).options
    assert (options.extract, options.extract_entities, options.extract_text) == (False, False, None)


def test_turns_that_say_nothing_are_dealt_with(bank: Bank) -> None:
    retention = _retention(bank, every=1)
    silent = [Message("user", "<memories>a</memories>")]
    assert retention.end_turn(silent) is None
    assert retention.last_turn == 1
    assert retention.end_turn([*silent, Message("assistant", "one more answer")]) is None
    assert _contents(bank) == []
