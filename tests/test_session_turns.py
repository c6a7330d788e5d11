"""A session's life on both backends: turns, their commitment, restarts, a change of place, clearing, the end."""

from __future__ import annotations

import linecache
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.session import MemorySession, open_session
from ipy_memory.turns import Message
from tests.hindsight.stub import StubServer

NOW = "2026-06-01T12:00:00.000Z"
RESULTS = {"results": [{"id": "1", "text": "The harbour opens at six.", "type": "world"}]}
MODELS = {"items": [{"id": "m", "name": "M", "content": "Anna likes tea."}]}
EVERY = {"mnemopi": "mnemopi.retainEveryNTurns", "hindsight": "hindsight.retainEveryNTurns"}
both = pytest.mark.parametrize("backend", ["mnemopi", "hindsight"])


@dataclass
class World:
    """Opens sessions on one database folder or one stand-in server, and tells what they left behind."""

    folder: Path
    stub: StubServer
    clock: FixedClock
    timers: ManualTimers
    opened: list[MemorySession]

    def open(
        self, backend: str, settings: dict[str, Any] | None = None, every: int = 1, cwd: str = "/proj/demo", **more: Any
    ) -> MemorySession:
        given = {
            "hindsight.apiUrl": self.stub.url,
            "hindsight.mentalModelsEnabled": False,
            "mnemopi.dbPath": str(self.folder / "mnemopi.db"),
        }
        if backend in EVERY:
            given[EVERY[backend]] = every
        session = open_session(
            backend,
            cwd=cwd,
            settings=given | (settings or {}),
            agent_dir=self.folder / "agent",
            env={"HOME": str(self.folder)},
            clock=self.clock,
            ids=FixedIds(),
            timers=self.timers,
            **({"session_id": "sess-1", "resumed": False} | more),
        )
        self.opened.append(session)
        return session

    def bank(self, name: str = "demo-1atfzjjejbapn") -> Path:
        return self.folder / "banks" / name / "mnemopi.db"

    def transcripts(self, backend: str, bank: str = "demo-1atfzjjejbapn") -> list[str]:
        """Return the conversation texts that a backend holds: rows, or the latest text of each document."""
        if backend == "mnemopi":
            query = "SELECT content FROM working_memory WHERE source = 'coding-agent-transcript' ORDER BY rowid"
            return [content for (content,) in rows(self.bank(bank), query)]
        documents: dict[str, str] = {}
        for request in self.stub.requests:
            if request["method"] == "POST" and request["url"].endswith("/memories"):
                documents |= {
                    item["document_id"]: item["content"] for item in request["body"]["items"] if "document_id" in item
                }
        return list(documents.values())

    def retained(self, backend: str) -> list[str]:
        """Return what the retain tool has stored, in the order of its coming."""
        if backend == "mnemopi":
            query = "SELECT content FROM working_memory WHERE source = 'coding-agent-retain' ORDER BY rowid"
            return [content for (content,) in rows(self.bank(), query)]
        bodies = [request["body"] or {} for request in self.stub.requests if request["method"] == "POST"]
        return [i["content"] for body in bodies for i in body.get("items", ()) if "document_id" not in i]

    @property
    def sent(self) -> list[str]:
        return [f"{r['method']} {r['url'].removeprefix('/v1/default/banks/')}" for r in self.stub.requests]


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def stored_times(world: World, backend: str, text: str) -> int:
    return sum(content.count(text) for content in world.transcripts(backend))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with StubServer([{"url_contains": "recall", "body": RESULTS}]) as stub:
        world = World(tmp_path, stub, FixedClock(NOW), ManualTimers(), [])
        yield world
        for session in world.opened:
            session.close()


def speak(session: MemorySession, *turns: int) -> None:
    for number in turns:
        with session.turn(f"Question {number} about the harbour") as turn:
            turn.answer(f"Answer number {number}.")


# ---- a turn


@both
@pytest.mark.claim("A-01", "A-03", "A-05", "A-06", "A-09")
def test_a_turn_gives_context_before_the_model_and_is_retained_after(world: World, backend: str) -> None:
    session = world.open(backend, {"hindsight.mentalModelsEnabled": True})
    if backend == "mnemopi":
        session.retain("The harbour opens at six.")
    with session.turn("When does the harbour open?") as turn:
        assert turn.context.startswith("<memories>\n")
        assert "The harbour opens at six." in turn.context
        assert turn.context in turn.instructions
        assert [(message.role, message.text) for message in turn.messages] == [("user", turn.prompt)]
        assert turn.context not in session.developer_instructions()
        assert world.transcripts(backend) == []
        turn.answer("At six in the morning.")
    assert turn.context in session.developer_instructions()
    [text] = world.transcripts(backend)
    assert "[role: user]" in text
    assert "When does the harbour open?" in text
    assert "At six in the morning." in text
    assert "<memories>" not in text
    with session.turn("And when does it close?") as later:
        assert later.context == turn.context
        assert [message.text for message in later.messages][:2] == [turn.prompt, "At six in the morning."]
    assert session.messages[0] == Message("user", turn.prompt, NOW)


@pytest.mark.claim("B-04", "B-05", "B-06")
def test_mental_models_come_before_the_memories(world: World) -> None:
    world.stub.answer_with([{"url_contains": "recall", "body": RESULTS}, {"method": "GET", "body": MODELS}])
    session = world.open("hindsight", {"hindsight.mentalModelsEnabled": True})
    session.start()
    world.timers.advance(0)
    with session.turn("When does the harbour open?") as turn:
        assert turn.context.index("<mental_models>") < turn.context.index("<memories>")
    assert "Anna likes tea." in turn.instructions


@both
def test_without_a_backend_a_turn_is_just_a_turn(world: World, backend: str) -> None:
    session = world.open("off")
    speak(session, 1)
    assert len(session.messages) == 2
    chosen = world.open(backend)
    chosen.change_settings({"memory.backend": "off"})
    speak(chosen, 1)
    assert (world.sent, world.bank().exists()) == ([], False)


@both
@pytest.mark.claim("A-03")
def test_recall_happens_once_a_session(world: World, backend: str) -> None:
    session = world.open(backend)
    if backend == "mnemopi":
        session.retain("The harbour opens at six.")
    speak(session, 1, 2, 3)
    if backend == "hindsight":
        assert world.sent.count("POST omp/memories/recall") == 1
    else:
        assert rows(world.bank(), "SELECT recall_count FROM working_memory ORDER BY rowid")[0] == (1,)


@both
@pytest.mark.claim("A-04")
def test_no_failure_of_memory_reaches_a_turn(world: World, backend: str, caplog: pytest.LogCaptureFixture) -> None:
    world.stub.answer_with([{"status": 500, "body": {"detail": "down"}}])
    world.bank().parent.mkdir(parents=True)
    world.bank().write_bytes(b"no database at all" * 100)
    session = world.open(backend)
    speak(session, 1)
    assert "automatic recall" in caplog.text
    assert "automatic retention" in caplog.text
    world.stub.answer_with([{"url_contains": "recall", "body": RESULTS}])
    world.bank().unlink()
    speak(session, 2)
    assert [stored_times(world, backend, f"Question {n}") for n in (1, 2)] == [1, 1]


@both
@pytest.mark.claim("A-01", "A-06", "A-09", "A-13")
def test_what_is_switched_off_is_off_to_the_very_end(world: World, backend: str) -> None:
    off = {f"{backend}.autoRecall": False, f"{backend}.autoRetain": False}
    session = world.open(backend, off)
    if backend == "mnemopi":
        session.retain("The harbour opens at six.")
    with session.turn("When does the harbour open?") as turn:
        assert turn.context == ""
        turn.answer("No idea.")
    speak(session, 1, 2)
    session.close()
    assert world.transcripts(backend) == []
    assert world.sent == []


@both
@pytest.mark.claim("A-06", "A-09")
def test_b058_the_same_prompt_ten_times_grows_the_bank_by_the_new_turns_only(world: World, backend: str) -> None:
    session = world.open(backend)
    if backend == "mnemopi":
        session.retain("The harbour opens at six.")
    for number in range(10):
        with session.turn("When does the harbour open?") as turn:
            # An agent that puts the block into the prompt itself, and a model that repeats it.
            turn.answer(f"{turn.context}\nAnswer number {number}: at six.")
    texts = world.transcripts(backend)
    assert "<memories>" not in str(texts)
    assert "opens at six" not in str(texts)
    assert [str(texts).count(f"Answer number {number}:") for number in range(10)] == [1] * 10
    if backend == "mnemopi":
        assert rows(world.bank(), "SELECT count(*) FROM working_memory") == [(11,)]


def test_a_block_that_fails_leaves_nothing(world: World) -> None:
    session = world.open("mnemopi")
    with pytest.raises(RuntimeError), session.turn("When does the harbour open?"):
        raise RuntimeError("the model is down")
    assert (session.messages, world.transcripts("mnemopi")) == ([], [])


# ---- interrupts


class Interrupter:
    """Raises KeyboardInterrupt at the n-th line that is run in some modules of the package."""

    def __init__(self, at: int, modules: tuple[str, ...]) -> None:
        self.left = at
        self.modules = modules
        self.fired = False

    def __enter__(self) -> Interrupter:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.endswith(self.modules):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        # A signal never falls between the end of a with block and its exit, where tracing reports the line again.
        if event == "line" and not line.startswith("with "):
            self.left -= 1
            if self.left == 0:
                self.fired = True
                raise KeyboardInterrupt
        return self._trace


LIFE = ("/session_turns.py", "mnemopi/life.py", "mnemopi/retention.py")
REMOTE = ("/session_turns.py", "hindsight/backend.py", "hindsight/retention.py", "hindsight/queue.py")
ENGINE = ("mnemopi/bank.py", "mnemopi/readers.py", "mnemopi/store.py", "mnemopi/consolidation.py")
WIRE = ("hindsight/service.py", "hindsight/client.py", "hindsight/snapshot.py")


@pytest.mark.claim("A-04", "A-07", "A-10", "R-25")
@pytest.mark.parametrize(
    ("backend", "modules", "mode", "step"),
    [
        ("mnemopi", LIFE, "", 1),
        ("mnemopi", ENGINE, "", 3),
        ("hindsight", REMOTE, "full-session", 1),
        ("hindsight", REMOTE, "last-turn", 1),
        ("hindsight", WIRE, "full-session", 1),
    ],
)
def test_a_turn_is_committed_once_or_not_at_all_wherever_it_is_interrupted(
    tmp_path: Path, backend: str, modules: tuple[str, ...], mode: str, step: int
) -> None:
    at, fired = 0, True
    while fired:
        at += step
        folder = tmp_path / str(at)
        folder.mkdir()
        with StubServer([{"url_contains": "recall", "body": RESULTS}]) as stub:
            world = World(folder, stub, FixedClock(NOW), ManualTimers(), [])
            settings = {"hindsight.retainMode": mode, "hindsight.retainOverlapTurns": 1} if mode else {}
            session = world.open(backend, settings)
            session.retain("The harbour opens at six.")
            interrupter = Interrupter(at, modules)
            try:
                with interrupter, session.turn("Question 1 about the harbour") as turn:
                    turn.answer("Answer number 1.")
            except KeyboardInterrupt:
                pass
            fired = interrupter.fired
            committed = len(session.messages)
            assert committed in {0, 2}, at
            world.clock.advance(1000)
            with session.turn("Question 2 about the harbour") as turn:
                assert "The harbour opens at six." in turn.context, at
                turn.answer("Answer number 2.")
            assert len(session.messages) == committed + 2, at
            shown = [row.text for row in session.backend.queue_rows()] if backend == "hindsight" else []
            session.close()
            for question, count in (("Question 1", committed // 2), ("Question 2", 1)):
                times = stored_times(world, backend, question)
                # A window overlaps the one before it by design.
                assert (min(times, count) if mode == "last-turn" and count else times) == count, (at, question)
            # What was retained before is stored once, or, where that cannot be known, there to be seen.
            stored = world.retained(backend)
            assert len(stored) <= 1, at
            assert {*stored, *shown} == {"The harbour opens at six."}, at
    assert at > 20
