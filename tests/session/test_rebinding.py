"""Trust of folders in a session: what is used and told before and after, and what a change of folder takes along."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory import open_session
from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.errors import MemoryToolkitError, NoBackendError
from ipy_memory.settings.trust import trusted_folders
from tests.backends.hindsight.stub import StubServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory.session import MemorySession


class World:
    """A user with an agent folder, projects, and sessions in them."""

    def __init__(self, root: Path) -> None:
        self.root, self.agent, self.project = root, root / "agent", root / "project"
        self.agent.mkdir()
        self.sessions: list[MemorySession] = []

    def own(self, text: str) -> None:
        (self.agent / "config.yml").write_text(text)

    def says(self, text: str, folder: str = "project") -> Path:
        path = self.root / folder / ".omp" / "config.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def open(self, backend: str | None = "mnemopi", **given: Any) -> MemorySession:
        usual = {"cwd": self.project, "agent_dir": self.agent, "env": {"HOME": str(self.root)}}
        fixed = {"clock": FixedClock("2026-06-01T12:00:00Z"), "ids": FixedIds(), "timers": ManualTimers()}
        session = open_session(backend, **{**usual, **fixed, **given})
        self.sessions.append(session)
        return session


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for session in made.sessions:
        session.close()


def bank(session: MemorySession) -> str:
    return session.live_backend().retain_bank


@pytest.mark.claim("C-02")
def test_the_first_answer_says_what_is_ignored_and_only_that(world: World) -> None:
    """A02."""
    path = world.says("mnemopi:\n  bank: team\n  recallLimit: 3\n")
    session = world.open()
    first, second = session.recall("anything"), session.recall("anything")
    assert first.text == second.text == "No relevant memories found."
    why = (
        f"the folder {world.project} is not trusted: 1 setting of its files, which the agent follows, is not used here"
    )
    assert first.notes == (
        f"{why}; %memory trust uses them",
        f"the agent takes mnemopi.bank = team ({path}:2); here it is not set",
    )
    assert first.attrs["notes"] == list(first.notes)
    assert second.notes == ()
    assert session.tools["recall"](query="anything").text == first.text
    assert session.settings.get("mnemopi.recallLimit") == 3


def test_any_answer_may_be_the_first(world: World) -> None:
    world.says("mnemopi: {bank: team}")
    for ask in (
        lambda session: session.retain("A note."),
        lambda session: session.reflect("What?"),
        lambda session: session.recall("What?", bank=bank(session)),
    ):
        session = world.open()
        assert any("is not trusted" in note for note in ask(session).notes)
        assert session.recall("x").notes == ()


def test_what_a_file_says_wrongly_is_in_the_first_answer_and_in_status(world: World) -> None:
    """C02."""
    world.own("memory: {backend: mnemopi}\nmnemopi:\n  autoRetain: off\n  recalLimit: 3\n")
    session = world.open(None)
    said = [
        "line 3: mnemopi.autoRetain must be true or false; the agent reads this value as true",
        "line 4: mnemopi.recalLimit is not a known setting (did you mean mnemopi.recallLimit?)",
    ]
    where = f"{world.agent}/config.yml, "
    assert [note.removeprefix(where) for note in session.recall("x").notes] == said
    assert [row.value.removeprefix(where) for row in session.status() if row.name == "settings"] == said


def test_many_notes_end_in_a_count(world: World) -> None:
    world.own("mnemopi:\n" + "".join(f"  wrong{number}: 1\n" for number in range(40)))
    notes = world.open().recall("x").notes
    assert len(notes) == 12
    assert notes[-1] == "29 more notes on the settings: %memory status shows them"


def test_status_says_how_the_folder_stands(world: World) -> None:
    def standing(session: MemorySession) -> list[tuple[str, str]]:
        return [(row.value, row.origin) for row in session.status() if row.name == "trusted folder"]

    folder = str(world.project)
    assert standing(world.open()) == []
    world.says("mnemopi: {bank: team}")
    session = world.open()
    assert standing(session) == [("no", folder)]
    assert len([row for row in session.status() if row.name == "settings"]) == 2
    assert standing(world.open(trust=True)) == [("yes, in this session", folder)]
    session.trust_folder()
    assert standing(session) == standing(world.open()) == [("yes, since 2026-06-01", folder)]
    assert [row for row in session.status() if row.name == "settings"] == []
    world.says("mnemopi: {bank: others}")
    assert standing(world.open()) == [("no longer: its guarded settings changed", folder)]


def test_trust_takes_effect_at_once_and_ends_at_once(world: World) -> None:
    world.says("mnemopi: {bank: team}")
    session = world.open()
    session.retain("Before.")
    plain = bank(session)
    standing = session.trust_folder()
    assert [each[1:] for each in standing.guarded] == [("mnemopi.bank", "team")]
    assert bank(session) == f"team-{plain}"
    assert bank(world.open()) == f"team-{plain}"
    assert session.revoke_trust() is True
    assert session.revoke_trust() is False
    assert (bank(session), bank(world.open())) == (plain, plain)
    assert "Before." in session.recall("Before").text


def test_a_folder_whose_settings_changed_since_they_were_read_is_not_trusted_unseen(world: World) -> None:
    path = world.says("mnemopi: {bank: team}")
    session = world.open()
    path.write_text("mnemopi: {bank: theirs}")
    with pytest.raises(MemoryToolkitError, match="have changed since they were read"):
        session.trust_folder()
    assert trusted_folders(world.agent) == {}
    assert any("mnemopi.bank = theirs" in note for note in session.recall("x").notes)
    session.trust_folder()
    assert bank(session).startswith("theirs-")


def test_another_folder_can_be_trusted_from_here(world: World) -> None:
    world.says("mnemopi: {bank: team}", "other")
    session = world.open()
    here = bank(session)
    session.trust_folder(world.root / "other")
    session.trust_folder("~/other")
    assert bank(session) == here
    assert list(trusted_folders(world.agent)) == [str(world.root / "other")]
    session.rebind(world.root / "other")
    assert bank(session).startswith("team-other-")
    assert session.revoke_trust("~/other") is True
    assert bank(session).startswith("other-")


def test_a_folder_that_is_gone_can_still_be_taken_off_the_list(world: World) -> None:
    path = world.says("mnemopi: {bank: team}", "other")
    session = world.open()
    session.trust_folder("~/other")
    path.unlink()
    path.parent.rmdir()
    path.parent.parent.rmdir()
    assert session.revoke_trust("~/other") is True


def test_what_the_caller_says_holds_for_one_folder_and_is_not_remembered(world: World) -> None:
    world.says("mnemopi: {bank: team}")
    world.says("mnemopi: {bank: theirs}", "other")
    session = world.open(trust=True)
    assert bank(session).startswith("team-")
    session.rebind(world.project)
    assert bank(session).startswith("team-")
    session.rebind(world.root / "other")
    assert bank(session).startswith("other-")
    assert trusted_folders(world.agent) == {}
    refusing = world.open(trust=False)
    refusing.rebind(world.root / "other")
    world.open(cwd=world.root / "other").trust_folder()
    refusing.rebind(world.project)
    refusing.rebind(world.root / "other")
    assert bank(refusing).startswith("other-")


def test_the_backend_that_a_project_chooses_waits_and_the_error_says_so(world: World) -> None:
    world.says("memory: {backend: mnemopi}")
    session = world.open(None)
    with pytest.raises(NoBackendError) as caught:
        session.recall("x")
    assert str(caught.value.hint).endswith("the project's files choose mnemopi, which counts after %memory trust")
    session.trust_folder()
    assert session.recall("x").text == "No relevant memories found."
    with pytest.raises(NoBackendError) as caught:
        world.open("off").recall("x")
    assert "project" not in str(caught.value.hint)


@pytest.mark.parametrize("same_bank", [True, False])
def test_a_change_of_folder_leaves_the_former_server_and_its_key_behind(world: World, same_bank: bool) -> None:
    """A02: the former folder's server gets what was said there, and nothing of what comes after."""
    scoping = "global" if same_bank else "per-project"
    with StubServer() as theirs, StubServer() as mine:
        world.own(f"hindsight: {{apiUrl: '{mine.url}', apiToken: user-key, scoping: {scoping}}}")
        world.says(f"hindsight: {{apiUrl: '{theirs.url}', apiToken: project-key}}")
        session = world.open("hindsight", trust=True)
        session.retain("Said in the project.")
        session.rebind(world.root / "other")
        session.retain("Said elsewhere.")
        session.flush()
        session.recall("elsewhere")
        session.rebind(world.project)
        session.retain("Said again.")
        session.flush()
        session.close()
        for server, key, texts in (
            (theirs, "project-key", ["Said in the project.", "Said again."]),
            (mine, "user-key", ["Said elsewhere."]),
        ):
            assert {request["headers"]["authorization"] for request in server.requests} == {f"Bearer {key}"}
            bodies = [request["body"] for request in server.requests if request["url"].endswith("/memories")]
            assert [item["content"] for body in bodies for item in body["items"]] == texts
            assert any(request["method"] == "PUT" for request in server.requests)


def test_a_change_of_folder_leaves_the_former_embedding_endpoint_behind(world: World) -> None:
    """A02."""
    with StubServer() as theirs, StubServer() as mine:
        world.own(f"mnemopi: {{embeddingApiUrl: '{mine.url}', embeddingApiKey: user-key, embeddingModel: m}}")
        world.says(f"mnemopi: {{embeddingApiUrl: '{theirs.url}', embeddingApiKey: project-key}}")
        session = world.open(trust=True)
        session.retain("Said in the project.")
        session.flush()
        before = len(theirs.requests)
        assert before > 0
        session.rebind(world.root / "other")
        assert len(theirs.requests) == before
        session.retain("Said elsewhere.")
        session.flush()
        assert len(theirs.requests) == before
        assert {request["headers"]["authorization"] for request in mine.requests} == {"Bearer user-key"}
        assert {request["headers"]["authorization"] for request in theirs.requests} == {"Bearer project-key"}
        assert "Said in the project." not in str(mine.requests)


@pytest.mark.parametrize("model", ["m", "openai/text-embedding-3-small"])
def test_keys_of_the_environment_stay_from_an_address_of_the_project(world: World, model: str) -> None:
    """A02."""
    keys = {f"{name}_API_KEY": "env-key" for name in ("MNEMOPI_EMBEDDING", "OPENROUTER", "OPENAI")}
    with StubServer() as theirs:
        world.own(f"mnemopi: {{embeddingModel: {model}}}")
        world.says(f"mnemopi: {{embeddingApiUrl: '{theirs.url}'}}")
        session = world.open(trust=True, env={"HOME": str(world.root), **keys})
        session.retain("A note.")
        session.flush()
        assert {request["headers"].get("authorization") for request in theirs.requests} == {None}


def test_the_conversation_so_far_stays_where_it_was_said(world: World) -> None:
    world.own("mnemopi: {retainEveryNTurns: 1, noEmbeddings: true}")
    world.says("mnemopi: {embeddingModel: theirs, bank: team}")
    session = world.open()
    session.add_turn("The harbour opens at six.", "I see.")
    session.trust_folder()
    session.add_turn("The lighthouse is closed.", "Good to know.")
    assert bank(session).startswith("team-")
    assert "lighthouse" in session.recall("lighthouse", bank=bank(session)).text
    assert "harbour" not in session.recall("harbour", bank=bank(session)).text


def test_a_worker_s_session_is_trusted_as_this_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.says("mnemopi: {bank: team}")
    monkeypatch.setenv("HOME", str(world.root))
    for trust, expected in ((True, "team-"), (None, "project-")):
        session = open_session("mnemopi", cwd=world.project, agent_dir=world.agent, trust=trust)
        program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).live_backend().retain_bank)"
        sent = pickle.dumps(session)
        session.close()
        done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
        assert done.stdout.decode().startswith(expected)
