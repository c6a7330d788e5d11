"""The life of a session on local banks, as the real agent lives it: first turn, instructions, turns, start, clear."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory import text
from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.session import MnemopiSession
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.conversation import Message
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
OLD = "2026-05-31T20:00:00.000Z"
CWD = "/work/shop"
Opened = Callable[..., MemorySession]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    sessions: list[MemorySession] = []

    def opened(**settings: Any) -> MemorySession:
        session = open_session(
            "mnemopi",
            CWD,
            tmp_path / "mnemopi.db",
            {f"mnemopi.{name}": value for name, value in settings.items()},
            agent_dir=tmp_path,
            env={"HOME": str(tmp_path)},
            clock=FixedClock(NOW),
            ids=FixedIds(),
        )
        sessions.append(session)
        return session

    yield opened
    for session in sessions:
        session.close()


def backend_of(session: MemorySession) -> MnemopiSession:
    assert isinstance(session.backend, MnemopiSession)
    return session.backend


def legacy(home: Path, *contents: str, session: str = "shop-old") -> Path:
    path = home / "banks" / "shop-old" / "mnemopi.db"
    with Bank.open(path, session, clock=FixedClock(OLD), ids=FixedIds()) as bank:
        for content in contents:
            remember(bank, content, RememberOptions(metadata={"cwd": CWD}, scope="bank", source="x"))
    return path


def column(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(query)]


@pytest.mark.claim("A-01", "A-03")
@pytest.mark.parametrize("blank", ["", "  \n", "\u3000\ufeff"])
def test_a_blank_prompt_leaves_the_recall_to_the_next_one(opened: Opened, blank: str) -> None:
    """D11: an image alone, for example."""
    session = opened()
    session.retain("The deploy target is staging.")
    assert session.first_turn(blank) is None
    prepared = session.first_turn("deploy")
    assert prepared is not None
    assert "The deploy target is staging." in (prepared.context or "")


@pytest.mark.claim("A-03")
def test_an_empty_recall_is_done_once_it_is_committed(opened: Opened) -> None:
    session = opened()
    prepared = session.first_turn("zebra")
    assert prepared is not None
    assert prepared.context is None
    session.retain("A zebra.")
    assert session.first_turn("zebra") is not None
    assert prepared.commit()
    assert session.first_turn("zebra") is None
    assert session.describe()["lastRecall"] is False


LONG = "abcdefghij" * 49


@pytest.mark.claim("C-05")
@pytest.mark.parametrize(
    ("limit", "context", "instructions"),
    [
        (0, None, 1),
        (1, None, 4),
        (100, None, 400),
        (185, None, 739),
        (185.5, None, 739),
        (185.75, 2, 743),
        (186, 3, 744),
        (187.75, 10, 751),
        (255, 279, 1020),
        (256, 283, 1024),
        (300, 459, 1200),
        (300.5, 461, 1202),
        (300.9, 462, 1203),
        (5000, 707, 1448),
    ],
)
def test_the_block_is_cut_to_the_room_beside_the_instructions(
    opened: Opened, limit: float, context: int | None, instructions: int
) -> None:
    """D10: lengths that the real agent gives; the raw setting counts, also below the 256 of the configuration."""
    session = opened()
    session.retain("Deploy " + LONG)
    backend = backend_of(session)
    backend.token_limit = limit
    prepared = session.first_turn("deploy")
    assert prepared is not None
    assert (None if prepared.context is None else len(prepared.context)) == context
    assert prepared.commit()
    assert len(session.developer_instructions()) == instructions
    assert session.describe()["lastRecall"] is True
    assert len(session.pre_compaction_context([Message("user", "deploy")]) or "") == 707


@pytest.mark.claim("C-05")
@pytest.mark.parametrize("limit", [100, 300])
def test_the_limit_of_the_settings_is_the_one_that_cuts(opened: Opened, limit: int) -> None:
    session = opened(injectionTokenLimit=limit)
    session.retain("Deploy " + LONG)
    with session.turn("deploy") as turn:
        assert turn.instructions.startswith(text.MNEMOPI_INSTRUCTIONS[: 4 * limit - 1].rstrip())
        assert len(turn.instructions) <= 4 * limit
    assert len(session.developer_instructions()) == 4 * limit


@pytest.mark.claim("A-09")
def test_a_prompt_without_letters_or_digits_is_no_turn(opened: Opened, tmp_path: Path) -> None:
    """D08: not for the cadence, and not in the transcript."""
    session = opened(retainEveryNTurns=2, scoping="global")
    session.add_turn("I prefer green tea.", "Noted, green tea.")
    session.add_turn("👍", "…")
    path = tmp_path / "mnemopi.db"
    assert not path.exists() or column(path, "SELECT content FROM working_memory") == []
    session.add_turn("And black coffee.", "Sure.")
    (stored,) = column(path, "SELECT content FROM working_memory")
    assert stored.count("[role: user]") == 2
    assert "👍" not in stored
    assert column(path, "SELECT json_extract(metadata_json, '$.retained_through_user_turn') FROM working_memory") == [2]
    assert len(session.messages) == 6


@pytest.mark.claim("A-13", "L-01")
def test_the_start_consolidates_rescued_banks_too(opened: Opened, tmp_path: Path) -> None:
    """D09: every bank that is opened."""
    path = legacy(tmp_path, "A harbour crane.")
    opened().start()
    assert column(path, "SELECT content FROM episodic_memory") == ["[x] A harbour crane."]


@pytest.mark.claim("A-12")
def test_enqueue_consolidates_every_session_of_rescued_banks(opened: Opened, tmp_path: Path) -> None:
    """D09."""
    legacy(tmp_path, "A harbour crane.")
    path = legacy(tmp_path, "A lighthouse.", session="elsewhere")
    opened().enqueue()
    assert sorted(column(path, "SELECT content FROM episodic_memory")) == ["[x] A harbour crane.", "[x] A lighthouse."]


def test_a_bank_that_cannot_be_consolidated_hinders_no_start(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "mnemopi.db").write_text("this is no database, but long enough to be one\n" * 40)
    session = opened(scoping="per-project-tagged")
    session.start()
    assert backend_of(session).started
    assert [notice.text for notice in session.notices] == ["Bank default was passed over: file is not a database"]
    assert session.retain("A crane.").text == "1 memory stored."


@pytest.mark.claim("A-11")
def test_after_a_clear_the_next_prompt_recalls_and_the_conversation_is_stored(opened: Opened, tmp_path: Path) -> None:
    """D17."""
    session = opened(retainEveryNTurns=1, scoping="global")
    with session.turn("What is the deploy target?") as turn:
        turn.answer("It is staging.")
    session.clear(backup=False)
    session.retain("The deploy target is production.")
    with session.turn("And the deploy target now?") as turn:
        assert "production" in turn.context
    stored = column(tmp_path / "mnemopi.db", "SELECT content FROM working_memory ORDER BY rowid")
    assert "What is the deploy target?" in stored[-1]


@pytest.mark.claim("A-01")
def test_a_compaction_counts_what_an_emoji_says(opened: Opened) -> None:
    """The real agent's filter of turns is not applied to the messages that are compacted, only blank ones go."""
    session = opened()
    session.retain("A 👍 is enough.")
    asked: list[str] = []
    backend = backend_of(session)
    recall = backend.recall

    def spy(request: RecallRequest) -> Any:
        asked.append(request.query)
        return recall(request)

    backend.recall = spy  # type: ignore[method-assign]
    said = [Message("user", "q"), Message("assistant", "a"), Message("user", "👍"), Message("user", "  ")]
    session.pre_compaction_context(said)
    assert asked == ["Prior context:\n\nuser: q\nassistant: a\n\n👍"]


@pytest.mark.parametrize("content", ["[role: user]", "  [role: user]  ", "\n\n[timestamp: x role user]\n"])
def test_a_memory_of_marker_lines_alone_is_shown_as_it_is(opened: Opened, content: str) -> None:
    """D15."""
    session = opened()
    session.retain(content)
    prepared = session.first_turn("role user")
    assert prepared is not None
    assert f"\n\n- {content} [coding-agent-retain] (2026-06-01)\n</memories>" in (prepared.context or "")
