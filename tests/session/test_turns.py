"""A session's life on both backends: turns, their commitment, restarts, a change of place, clearing, the end."""

from __future__ import annotations

import gc
import linecache
import sqlite3
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pytest

from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.conversation import Message
from ipy_memory.errors import MemoryToolkitError, NoBackendError, NotInitialisedError, SettingsError
from ipy_memory.explore.banks import open_bank_file
from ipy_memory.session import MemorySession, open_session
from tests.backends.hindsight.stub import StubServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

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
    abandoned: list[Any] = field(default_factory=list)

    def abandon(self, session: MemorySession) -> None:
        """Let a session's process end without a word; its files are closed after the test."""
        self.abandoned.append(session.backend)
        session.backend = None

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
            **dict[str, Any]({"session_id": "sess-1", "resumed": False} | more),
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
        for one in (*world.opened, *world.abandoned):
            one.close()


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

    def __enter__(self) -> Self:
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


LIFE = ("session/turns.py", "backends/mnemopi/session.py", "backends/mnemopi/retention.py")
REMOTE = (
    "session/turns.py",
    "backends/hindsight/backend.py",
    "backends/hindsight/retention.py",
    "backends/hindsight/queue.py",
)
ENGINE = (
    "backends/mnemopi/db/bank.py",
    "backends/mnemopi/pool.py",
    "backends/mnemopi/store/write.py",
    "backends/mnemopi/consolidation/sleep.py",
)
WIRE = ("backends/hindsight/bank.py", "backends/hindsight/client.py", "backends/hindsight/mental_models.py")


@pytest.fixture
def unkept() -> Iterator[None]:
    """Release files that an interrupt came between opening and keeping: the collector closes them, and says so."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.claim("A-04", "A-07", "A-10", "R-25")
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.usefixtures("unkept")
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
            live: Any = session.backend
            shown = [row.text for row in live.queue_rows()] if backend == "hindsight" else []
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


# ---- restarts


@both
@pytest.mark.claim("A-06", "A-07", "A-09", "A-10")
@pytest.mark.parametrize("broken_off_after", range(1, 9))
def test_a_restart_stores_no_turn_twice_and_loses_none(world: World, backend: str, broken_off_after: int) -> None:
    off = {"mnemopi.autoRecall": False, "hindsight.autoRecall": False}
    first = world.open(backend, off, every=3)
    speak(first, *range(1, broken_off_after + 1))
    world.abandon(first)
    stored = world.transcripts(backend)
    answer_for_documents(world)
    world.clock.advance(60_000)
    second = world.open(backend, off, every=3, resumed=True)
    second.messages = list(first.messages)
    speak(second, *range(broken_off_after + 1, 13))
    second.force_retain()
    texts = world.transcripts(backend)
    assert texts[: len(stored)] == stored
    assert [str(texts).count(f"Question {n} ") for n in range(1, 13)] == [1] * 12


def answer_for_documents(world: World) -> None:
    """Let the stand-in server give back the documents that it was sent."""
    documents = {}
    for request in world.stub.requests:
        for item in (request["body"] or {}).get("items", ()):
            if "document_id" in item:
                documents[item["document_id"]] = item["content"]
    rules: list[dict[str, Any]] = [
        {"url_contains": f"/documents/{name}", "body": {"id": name, "original_text": text}}
        for name, text in documents.items()
    ]
    listed = {"items": [{"id": name} for name in documents]}
    world.stub.answer_with([*rules, {"method": "GET", "url_contains": "/documents?", "body": listed}])


@pytest.mark.claim("A-07")
def test_b069_a_shortened_log_after_a_restart_replaces_no_longer_document(world: World) -> None:
    first = world.open("hindsight", every=5)
    speak(first, *range(1, 21))
    [(name, long)] = documents_of(world).items()
    assert (name, long.count("Question")) == ("sess-1", 20)
    answer_for_documents(world)
    second = world.open("hindsight", every=1, resumed=True)
    second.messages = first.messages[-6:]
    speak(second, 21)
    documents = documents_of(world)
    assert documents["sess-1"] == long
    [again] = [text for name, text in documents.items() if name != "sess-1"]
    assert [f"Question {n} " in again for n in (18, 19, 20, 21)] == [False, False, False, True]
    assert set(documents) == {"sess-1", f"sess-1-r{world.clock.now_ms()}"}


def documents_of(world: World) -> dict[str, str]:
    found = {}
    for request in world.stub.requests:
        for item in (request["body"] or {}).get("items", ()):
            if "document_id" in item:
                found[item["document_id"]] = item["content"]
    return found


@pytest.mark.claim("A-07", "A-04")
def test_when_nobody_knows_what_is_stored_nothing_is_left_out(world: World) -> None:
    first = world.open("hindsight")
    speak(first, 1, 2)
    world.stub.answer_with([{"method": "GET", "status": 404, "body": {"detail": "Bank 'omp' not found"}}])
    second = world.open("hindsight", resumed=True)
    second.messages = list(first.messages)
    speak(second, 3)
    documents = documents_of(world)
    assert documents["sess-1"].count("Question") == 2
    assert documents[f"sess-1-r{world.clock.now_ms()}"].count("Question") == 3


def test_a_given_session_id_is_taken_as_begun_elsewhere_and_a_new_one_is_not(world: World) -> None:
    assert world.open("hindsight", resumed=None).resumed
    assert not world.open("hindsight", session_id=None, resumed=None).resumed


@both
@pytest.mark.claim("A-13", "A-09")
def test_the_end_of_a_session_stores_the_rest_on_local_banks_only(world: World, backend: str) -> None:
    session = world.open(backend, every=4)
    speak(session, 1, 2)
    assert world.transcripts(backend) == []
    session.close()
    assert len(world.transcripts(backend)) == (1 if backend == "mnemopi" else 0)
    session.close()


@pytest.mark.claim("A-13")
def test_the_end_of_a_local_session_neither_extracts_nor_makes_a_bank_for_nothing(world: World) -> None:
    world.open("mnemopi").close()
    assert not world.bank().exists()
    session = world.open("mnemopi", every=4)
    with session.turn("I work at the harbour office.") as turn:
        turn.answer("Noted.")
    session.close()
    assert rows(world.bank(), "SELECT count(*) FROM facts") == [(0,)]


# ---- other banks


@pytest.mark.claim("S-13", "Q-10", "B-01")
@pytest.mark.parametrize(
    "change", [{"hindsight.bankId": "new"}, {"hindsight.bankIdPrefix": "new"}, {"hindsight.scoping": "per-project"}]
)
def test_a_live_change_of_the_bank_first_sends_what_waits_to_the_old_one(
    world: World, change: dict[str, object]
) -> None:
    session = world.open("hindsight")
    session.retain("For the old bank.")
    session.change_settings(change)
    new = session.live_backend().retain_bank
    assert new != "omp"
    session.retain("For the new bank.")
    session.flush()
    assert world.sent == ["PUT omp", "POST omp/memories", f"PUT {new}", f"POST {new}/memories"]
    assert list(session.backend.known_banks) == ["omp", new]  # type: ignore[union-attr]


@pytest.mark.claim("S-13")
def test_a_live_change_takes_effect_at_the_next_call_and_moves_nothing_else(world: World) -> None:
    """C03: what a server is asked for."""
    session = world.open("hindsight")
    session.retain("Waits.")
    session.change_settings({"hindsight.recallBudget": "high", "hindsight.recallMaxTokens": 77})
    session.recall("q")
    body = world.stub.requests[0]["body"]
    assert (body["budget"], body["max_tokens"]) == ("high", 77)
    assert world.sent == ["POST omp/memories/recall"]


@pytest.mark.claim("S-13")
@pytest.mark.parametrize("name", ["apiUrl", "apiToken", "bankMission", "safeRetain", "recallTimeoutMs"])
def test_what_a_session_is_made_from_is_refused_with_the_way_that_works(world: World, name: str) -> None:
    """C03: refused before anything has changed."""
    session = world.open("hindsight")
    values = {"safeRetain": True, "recallTimeoutMs": 5}
    with pytest.raises(SettingsError, match=f"hindsight.{name} cannot change") as refused:
        session.change_settings({f"hindsight.{name}": values.get(name, "another"), "hindsight.bankId": "new"})
    assert "%memory use hindsight" in (refused.value.hint or "")
    assert session.live_backend().retain_bank == "omp"
    assert session.settings.get("hindsight.bankId") is None
    with pytest.raises(SettingsError, match="bound to its banks"):
        session.child().change_settings({"hindsight.recallBudget": "high"})


@both
@pytest.mark.claim("S-13", "A-09")
def test_retention_that_is_switched_off_writes_no_more_at_once(world: World, backend: str) -> None:
    """C03: neither at the next turn, nor at the end, nor later for what was said while it was off."""
    session = world.open(backend)
    session.add_turn("said while it was on", "indeed")
    session.change_settings({f"{backend}.autoRetain": False})
    session.add_turn("a secret while it was off", "indeed")
    session.change_settings({f"{backend}.autoRetain": True})
    session.add_turn("said when it was on again", "indeed")
    session.change_settings({f"{backend}.autoRetain": False})
    session.add_turn("another secret", "indeed")
    session.close()
    texts = ("said while it was on", "a secret", "said when it was on again", "another secret")
    assert [bool(stored_times(world, backend, text)) for text in texts] == [True, False, True, False]


@both
@pytest.mark.claim("S-13")
def test_a_cadence_and_automatic_recall_follow_a_live_change(world: World, backend: str) -> None:
    """C03: autoRecall and retainEveryNTurns."""
    session = world.open(backend, every=100)
    session.change_settings({f"{backend}.autoRecall": False, f"{backend}.retainEveryNTurns": 1})
    assert session.first_turn("What is the deploy target?") is None
    session.add_turn("said after the change", "indeed")
    assert stored_times(world, backend, "said after the change")
    session.close()


@pytest.mark.claim("S-13")
def test_local_settings_take_effect_at_the_next_call(world: World) -> None:
    """C03: limit, scope and database."""
    session = world.open("mnemopi")
    session.retain(["The first harbour", "The second harbour"])
    session.change_settings({"mnemopi.recallLimit": 1})
    assert len(session.recall("harbour").hits) == 1
    session.change_settings({"mnemopi.recallLimit": None, "mnemopi.scoping": "global"})
    assert session.recall("harbour").hits == ()
    session.retain("The third harbour")
    assert (world.folder / "mnemopi.db").exists()
    session.change_settings({"mnemopi.scoping": None})
    assert len(session.recall("harbour").hits) == 2
    other = world.folder / "other" / "x.db"
    session.change_settings({"mnemopi.scoping": "global", "mnemopi.dbPath": str(other)})
    session.retain("The fourth harbour")
    assert other.exists()
    session.close()


@pytest.mark.claim("S-13")
def test_the_engine_follows_a_live_change(world: World) -> None:
    """C03: what computes vectors, and proactive linking."""
    session = world.open("mnemopi", {"mnemopi.noEmbeddings": False})
    session.retain("The harbour of Lisbon opens at six.")
    session.change_settings({"mnemopi.noEmbeddings": True, "mnemopi.proactiveLinking": True})
    assert "switched off" in session.vectors().state
    session.retain("The harbour of Lisbon closes at ten.")
    gists = rows(world.bank(), "SELECT count(*) FROM gists")
    assert gists == [(1,)]
    session.close()


@pytest.mark.claim("Q-10")
def test_what_the_old_bank_refused_can_still_be_seen_and_sent_to_it(world: World) -> None:
    session = world.open("hindsight")
    session.retain("For the old bank.")
    world.stub.answer_with([{"status": 500, "body": {"detail": "down"}}])
    session.change_settings({"hindsight.bankId": "new"})
    backend: Any = session.backend
    assert [(row.state, row.text) for row in backend.queue_rows()] == [("failed", "For the old bank.")]
    world.stub.answer_with([])
    assert backend.resend().sent == 1
    assert world.sent[-1] == "POST omp/memories"
    assert backend.queue_rows() == []


@both
@pytest.mark.claim("S-13", "Q-10", "A-06", "A-09")
@pytest.mark.parametrize("scoping", ["per-project", "per-project-tagged", "global"])
def test_another_folder_is_taken_over_cleanly(world: World, backend: str, scoping: str) -> None:
    session = world.open(backend, {f"{backend}.scoping": scoping}, every=2)
    old = session.live_backend().retain_bank
    speak(session, 1, 2, 3)
    session.retain("Known in the old place.")
    session.rebind("/proj/other")
    assert session.cwd == "/proj/other"
    new = session.live_backend().retain_bank
    assert (new != old) is (scoping == "per-project" or (scoping, backend) == ("per-project-tagged", "mnemopi"))
    speak(session, 4, 5, 6)
    session.rebind("/proj/demo")
    speak(session, 7, 8)
    session.close()
    if backend == "mnemopi":
        shared = world.folder / "mnemopi.db"
        paths = {name: shared if name == "default" else world.bank(name) for name in (old, new)}
        query = "SELECT content FROM working_memory WHERE source = 'coding-agent-transcript' ORDER BY rowid"
        at_home = [text for (text,) in rows(paths[old], query)]
        away = [] if scoping == "global" else [text for (text,) in rows(paths[new], query)]
    else:
        stored: dict[tuple[str, ...], list[str]] = {}
        latest = {}
        for request in world.stub.requests:
            for item in (request["body"] or {}).get("items", ()):
                if "document_id" in item:
                    latest[request["url"], item["document_id"]] = (tuple(item.get("tags", ())), item["content"])
        for (url, _), (tags, text) in latest.items():
            stored.setdefault((url.split("/")[4], *tags), []).append(text)
        at_home, away = stored.pop(next(iter(stored))), [text for texts in stored.values() for text in texts]
    home, elsewhere = str(at_home), str(away)
    if scoping == "global":
        home, elsewhere = home + elsewhere, home + elsewhere
    assert [home.count(f"Question {n} ") for n in (1, 2, 3, 7, 8)] == [1] * 5
    assert [elsewhere.count(f"Question {n} ") for n in (4, 5, 6)] == [1] * 3
    if scoping != "global":
        assert "Question 4" not in home
        assert "Question 3" not in elsewhere


@pytest.mark.claim("C-02")
def test_another_folder_brings_its_own_settings_and_keeps_what_a_person_set(world: World) -> None:
    other = world.folder / "other"
    (other / ".omp").mkdir(parents=True)
    (other / ".omp" / "config.yml").write_text("mnemopi:\n  bank: team\n  retainEveryNTurns: 9\n")
    session = world.open("mnemopi", every=2)
    session.rebind(other)
    assert session.live_backend().retain_bank.startswith("other-")
    session.trust_folder()
    assert session.live_backend().retain_bank.startswith("team-other-")
    assert session.settings.get("mnemopi.retainEveryNTurns") == 2
    (other / ".omp" / "config.yml").write_text("memory:\n  backend: 'off'\n")
    undecided = world.open("mnemopi")
    undecided.change_settings({"memory.backend": None})
    undecided.rebind(other)
    with pytest.raises(NoBackendError):
        undecided.recall("x")


# ---- clearing


@both
@pytest.mark.claim("A-11", "R-17", "Q-10")
def test_clear_leaves_what_it_should(world: World, backend: str) -> None:
    session = world.open(backend)
    session.retain("The harbour opens at six.")
    speak(session, 1, 2)
    if backend == "hindsight":
        session.retain("Waits.")
        assert session.clear_files() == []
        done = session.clear()
        assert world.sent[-1] == "POST omp/memories"
        assert not [sent for sent in world.sent if sent.startswith("DELETE")]
        assert "omp" in (done.warning or "")
        with pytest.raises(NotInitialisedError, match=r"^Hindsight backend is not initialised for this session\.$"):
            session.recall("harbour")
        speak(session, 3)
        return
    assert session.clear_files() == [world.bank()]
    done = session.clear()
    assert done.emptied == (world.bank(),)
    [copy] = done.copies
    assert copy.parent == world.folder / "agent" / "ipy_memory" / "copies"
    assert rows(copy, "SELECT content FROM working_memory")[0] == ("The harbour opens at six.",)
    assert session.recall("harbour").hits == ()
    speak(session, 3)
    session.close()
    # The agent's cursor begins again too: the session that goes on stores all that was said in it.
    assert [stored_times(world, backend, f"Question {n}") for n in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.claim("A-11")
def test_an_interrupted_clear_of_a_server_session_does_not_pass_for_one_in_use(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C20: its queue is closed, so status shows no bank and a retain says that the backend is gone."""
    session = world.open("hindsight")
    session.retain("waiting")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session.backend.queue, "close", interrupted)  # type: ignore[union-attr]
    with pytest.raises(KeyboardInterrupt):
        session.clear()
    assert "banks" not in {row.name for row in session.status()}
    with pytest.raises(NotInitialisedError):
        session.retain("lost?")


def test_a_clear_whose_copy_fails_clears_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = world.open("mnemopi")
    session.retain("The harbour opens at six.")

    def full(*_: object) -> Path:
        raise MemoryToolkitError("no room")

    monkeypatch.setattr("ipy_memory.backends.mnemopi.store.delete.copy_bank", full)
    with pytest.raises(MemoryToolkitError, match="no room"):
        session.clear()
    assert session.recall("harbour").hits
    assert session.clear(backup=False).copies == ()
    assert session.recall("harbour").hits == ()


@pytest.mark.claim("A-11")
def test_clears_within_one_second_keep_a_copy_each(world: World) -> None:
    session = world.open("mnemopi")
    copies = []
    for text in ("The harbour opens at six.", "The harbour opens at seven."):
        session.retain(text)
        copies += session.clear().copies
    kept = [content for copy in copies for (content,) in rows(copy, "SELECT content FROM working_memory")]
    assert kept == ["The harbour opens at six.", "The harbour opens at seven."]


def test_a_backend_that_is_replaced_lets_go_of_its_files(world: World) -> None:
    session = world.open("mnemopi")
    session.retain("The harbour opens at six.")
    session.install_backend()
    assert not world.bank().with_name("mnemopi.db-wal").exists()
    assert session.recall("harbour").hits


@both
def test_a_sub_agent_clears_nothing(world: World, backend: str) -> None:
    child = world.open(backend).child()
    with pytest.raises(MemoryToolkitError, match="sub-agent"):
        child.clear()


# ---- enqueue, notices, the end


@both
@pytest.mark.claim("A-12")
def test_enqueue_stores_what_the_cadence_has_not(world: World, backend: str) -> None:
    session = world.open(backend, every=9)
    speak(session, 1, 2)
    session.retain("Waits.")
    session.enqueue()
    assert [stored_times(world, backend, f"Question {n}") for n in (1, 2)] == [1, 1]
    child = session.child()
    child.messages = list(session.messages)
    before = len(world.sent)
    child.enqueue()
    assert len(world.sent) == before


@pytest.mark.claim("Q-09")
def test_a_failed_flush_is_told_to_the_person(world: World) -> None:
    world.stub.answer_with([{"method": "PUT"}, {"status": 503, "body": {"detail": "overloaded"}}])
    session = world.open("hindsight")
    session.retain("Lost?")
    session.flush()
    [notice] = session.notices
    said = "Memory retention failed for 1 memory: retainBatch failed: overloaded"
    assert notice[:3] == ("warning", said, "Hindsight")
    assert notice.hint.startswith("HTTP 503")


@pytest.mark.claim("Q-06")
def test_a_session_that_took_another_state_drops_what_the_old_one_holds(world: World) -> None:
    session = world.open("hindsight")
    session.retain("Waits.")
    old, session.backend = session.backend, None
    assert old is not None
    old.flush()
    assert (world.sent, session.notices) == ([], [])


@both
@pytest.mark.claim("A-06", "A-09")
def test_a_compaction_and_a_resumed_conversation_are_seen(world: World, backend: str) -> None:
    session = world.open(backend)
    if backend == "mnemopi":
        session.retain("The harbour opens at six.")
    assert session.pre_compaction_context() is None
    session.messages = [Message("user", "When does the harbour open?"), Message("assistant", "At six.")]
    assert "The harbour opens at six." in (session.pre_compaction_context() or "")


@pytest.mark.claim("B-04")
def test_b016_a_frozen_snapshot_never_changes_the_instructions(world: World) -> None:
    world.stub.answer_with([{"method": "GET", "body": MODELS}])
    session = world.open(
        "hindsight", {"hindsight.mentalModelsEnabled": True, "hindsight.mentalModelRefreshIntervalMs": 0}
    )
    session.start()
    world.timers.advance(0)
    with session.turn("Question 1 about the harbour") as first:
        first.answer("Answer.")
    newer = {"items": [{"id": "m", "name": "M", "content": "Anna likes coffee."}]}
    world.stub.answer_with([{"method": "GET", "body": newer}])
    world.clock.advance(10**9)
    with session.turn("Question 2 about the harbour") as second:
        second.answer("Answer.")
    world.timers.advance(0)
    assert session.developer_instructions() == second.instructions == first.instructions
    session.backend.models.reload()  # type: ignore[union-attr]
    assert "coffee" in session.developer_instructions()


@pytest.mark.claim("A-06", "E-05")
def test_b064_a_retain_by_hand_leaves_the_sessions_document_alone(world: World) -> None:
    session = world.open("hindsight")
    speak(session, 1, 2)
    before = documents_of(world)
    session.retain("One fact.")
    session.flush()
    assert documents_of(world) == before
    assert world.retained("hindsight") == ["One fact."]


@pytest.mark.claim("S-04", "S-05")
def test_b071_a_tagged_scope_says_its_filter_and_never_sends_an_empty_one(world: World) -> None:
    session = world.open("hindsight", cwd="/")
    assert session.recall("q").attrs["filter"] == "project:unknown + untagged"
    assert world.stub.requests[0]["body"]["tags"] == ["project:unknown"]


def test_a_session_that_only_reads_lives_its_turns_and_writes_nothing(world: World) -> None:
    world.open("mnemopi").retain("The harbour opens at six.")
    world.opened[0].close()
    before = world.bank().read_bytes()
    with open_bank_file(world.bank(), agent_dir=world.folder, env={}, clock=world.clock) as session:
        with session.turn("When does the harbour open?") as turn:
            assert (turn.context, turn.instructions) == ("", "")
            turn.answer("At six.")
        session.enqueue()
        assert session.pre_compaction_context() is None
        assert len(session.messages) == 2
        with pytest.raises(MemoryToolkitError, match="only reads"):
            session.clear()
    assert world.bank().read_bytes() == before


@both
@pytest.mark.claim("S-12")
def test_a_sub_agent_stays_with_its_parents_banks_wherever_it_goes(world: World, backend: str) -> None:
    parent = world.open(backend)
    child = parent.child(session_id="sub-1", cwd="/elsewhere")
    child.rebind("/proj/other")
    assert child.live_backend().retain_bank == parent.live_backend().retain_bank
    speak(child, 1)
    child.close()
    assert (world.sent, world.bank().exists()) == ([], False)
