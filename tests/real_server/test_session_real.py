"""A session's life on a real Hindsight server: turns, cadence, restarts, another folder, clearing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.clock import FixedClock
from ipy_memory.errors import NotInitialisedError
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_server.remote import Remote
    from tests.services.hindsight_server import HindsightServer

pytestmark = pytest.mark.hindsight

NOW = "2026-06-01T12:00:00.000Z"
DEPLOY = "The deploy target is the north cluster"
OFF = {"hindsight.mentalModelsEnabled": False}
Open = Callable[..., MemorySession]


@pytest.fixture
def opened(hindsight_server: HindsightServer, hindsight_bank: str, tmp_path: Path) -> Iterator[Open]:
    """Open a session on the test's own bank: ``opened(every, session_id=…, **settings)``."""
    sessions: list[MemorySession] = []

    def open_one(
        every: int = 1, session_id: str = "session-1", resumed: bool = False, project: str = "demo", **more: Any
    ) -> MemorySession:
        (tmp_path / project).mkdir(exist_ok=True)
        settings = {
            "hindsight.apiUrl": hindsight_server.base_url,
            "hindsight.apiToken": hindsight_server.api_key,
            "hindsight.bankId": hindsight_bank,
            "hindsight.retainEveryNTurns": every,
            **OFF,
            **{f"hindsight.{name}": value for name, value in more.items()},
        }
        session = open_session(
            "hindsight",
            cwd=tmp_path / project,
            settings=settings,
            agent_dir=tmp_path,
            env={},
            clock=FixedClock(NOW),
            session_id=session_id,
            resumed=resumed,
        )
        sessions.append(session)
        return session

    yield open_one
    for session in sessions:
        session.close()


def speak(session: MemorySession, *turns: int) -> None:
    for number in turns:
        with session.turn(f"Question {number} about the deploy target") as turn:
            turn.answer(f"Answer number {number}.")


def counts(documents: dict[str, str], turns: range) -> list[int]:
    whole = "\n\n".join(documents.values())
    return [whole.count(f"Question {number} ") for number in turns]


@pytest.mark.claim("A-01", "A-02", "A-03", "A-05", "A-06")
def test_b058_the_same_prompt_ten_times_grows_the_bank_by_the_new_turns_only(
    opened: Open, remote: Remote, hindsight_bank: str
) -> None:
    session = opened()
    session.retain(DEPLOY)
    session.flush()
    remote.settle(hindsight_bank)
    before = session.developer_instructions()
    for number in range(10):
        with session.turn("What is the deploy target?") as turn:
            assert DEPLOY in turn.context
            assert turn.context in turn.instructions
            turn.answer(f"{turn.context}\nAnswer number {number}.")
    assert session.developer_instructions() != before
    document = remote.documents(hindsight_bank)["session-1"]
    assert "<memories>" not in document
    assert DEPLOY not in document
    assert document.count("What is the deploy target?") == 10
    assert [document.count(f"Answer number {number}.") for number in range(10)] == [1] * 10
    assert not [text for text in remote.texts(hindsight_bank) if "<memories>" in text]


@pytest.mark.claim("A-04", "A-06")
def test_the_cadence_and_the_switches_hold(opened: Open, remote: Remote, hindsight_bank: str) -> None:
    silent = opened(autoRetain=False, autoRecall=False)
    speak(silent, 1, 2, 3)
    silent.close()
    assert hindsight_bank not in remote.banks()
    session = opened(3, autoRecall=False)
    speak(session, 1, 2)
    assert hindsight_bank not in remote.banks()
    speak(session, 3, 4)
    assert counts(remote.documents(hindsight_bank), range(1, 5)) == [1, 1, 1, 0]


@pytest.mark.claim("A-07")
@pytest.mark.parametrize("broken_off_after", [4, 6])
def test_a_restart_stores_no_turn_twice_and_loses_none(
    opened: Open, remote: Remote, hindsight_bank: str, broken_off_after: int
) -> None:
    first = opened(3, autoRecall=False)
    speak(first, *range(1, broken_off_after + 1))
    first.close()
    before = remote.documents(hindsight_bank)
    second = opened(3, autoRecall=False, resumed=True)
    second.messages = list(first.messages)
    speak(second, *range(broken_off_after + 1, 10))
    second.force_retain()
    third_messages = list(second.messages)
    second.close()
    remote.settle(hindsight_bank)
    third = opened(1, autoRecall=False, resumed=True)
    third.messages = third_messages
    speak(third, 10)
    documents = remote.documents(hindsight_bank)
    assert documents["session-1"] == before["session-1"]
    assert counts(documents, range(1, 11)) == [1] * 10


@pytest.mark.claim("A-07")
def test_b069_a_shortened_log_after_a_restart_replaces_no_longer_document(
    opened: Open, remote: Remote, hindsight_bank: str
) -> None:
    first = opened(20, autoRecall=False)
    speak(first, *range(1, 21))
    long = remote.documents(hindsight_bank)["session-1"]
    second = opened(1, autoRecall=False, resumed=True)
    second.messages = first.messages[-6:]
    speak(second, 21)
    documents = remote.documents(hindsight_bank)
    assert documents["session-1"] == long
    assert counts(documents, range(1, 22)) == [1] * 21


@pytest.mark.claim("A-08")
def test_a_window_of_the_last_turns_is_a_document_of_its_own(opened: Open, remote: Remote, hindsight_bank: str) -> None:
    session = opened(2, retainMode="last-turn", retainOverlapTurns=1, autoRecall=False)
    speak(session, 1, 2)
    session.clock.advance(1000)  # type: ignore[attr-defined]
    speak(session, 3, 4)
    documents = remote.documents(hindsight_bank)
    assert len(documents) == 2
    assert counts(documents, range(1, 5)) == [1, 2, 1, 1]


@pytest.mark.claim("A-11", "A-12", "R-17", "Q-10")
def test_enqueue_stores_all_and_clear_leaves_the_server_alone(
    opened: Open, remote: Remote, hindsight_bank: str
) -> None:
    session = opened(9, autoRecall=False)
    speak(session, 1)
    session.retain(DEPLOY)
    child = session.child(session_id="sub-1")
    child.messages = list(session.messages)
    child.enqueue()
    assert hindsight_bank not in remote.banks()
    session.enqueue()
    assert counts(remote.documents(hindsight_bank), range(1, 2)) == [1]
    session.retain("Said last")
    done = session.clear()
    assert hindsight_bank in (done.warning or "")
    with pytest.raises(NotInitialisedError):
        session.recall("x")
    assert {DEPLOY, "Said last"} <= set(remote.texts(hindsight_bank))


@pytest.mark.claim("S-13", "Q-10")
@pytest.mark.parametrize("scoping", ["per-project", "per-project-tagged"])
def test_another_folder_is_taken_over_cleanly(
    opened: Open, remote: Remote, hindsight_bank: str, tmp_path: Path, scoping: str
) -> None:
    (tmp_path / "other").mkdir()
    session = opened(2, scoping=scoping, autoRecall=False)
    speak(session, 1, 2, 3)
    session.retain("Known at home")
    session.rebind(tmp_path / "other")
    speak(session, 4, 5)
    at_home, away = f"{hindsight_bank}-demo", f"{hindsight_bank}-other"
    if scoping == "per-project":
        assert counts(remote.documents(at_home), range(1, 6)) == [1, 1, 1, 0, 0]
        assert counts(remote.documents(away), range(1, 6)) == [0, 0, 0, 1, 1]
    else:
        remote.settle(hindsight_bank)
        listed = remote.get(f"/{hindsight_bank}/documents", limit=100)["items"]
        tags = {item["id"]: item["tags"] for item in listed if item["id"].startswith("session-1")}
        assert sorted(tags.values()) == [["project:demo"], ["project:other"]]
        assert counts(remote.documents(hindsight_bank), range(1, 6)) == [1] * 5


@pytest.mark.claim("B-03", "B-04", "B-06", "R-28")
def test_the_models_are_there_at_a_turn_and_not_asked_by_recall(
    opened: Open, remote: Remote, hindsight_bank: str
) -> None:
    session = opened(1, mentalModelsEnabled=True)
    session.retain(DEPLOY)
    session.flush()
    remote.settle(hindsight_bank)
    session.start()
    backend: Any = session.backend
    backend.models.wait()
    remote.settle(hindsight_bank)
    assert backend.models.reload()
    with session.turn("What is the deploy target?") as turn:
        assert turn.context.index("<mental_models>") < turn.context.index("<memories>")
