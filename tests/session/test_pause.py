"""A pause: nothing is recorded, retained or counted, and what was said in it is never retained."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.conversation import Message
from ipy_memory.errors import PausedError
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.backends.hindsight.stub import StubServer

NOW = "2026-06-01T12:00:00.000Z"
LINE = "Memory is paused: nothing was stored."
BACKENDS = ("mnemopi", "hindsight")

Opener = Callable[..., MemorySession]


@pytest.fixture
def opened(stub: StubServer, tmp_path: Path) -> Opener:
    """Opens a session that retains each turn at once, on a local bank or on a stand-in server."""

    def open_on(backend: str, **settings: Any) -> MemorySession:
        (tmp_path / "agent").mkdir(exist_ok=True)
        return open_session(
            backend,
            "/work/shop",
            settings={
                f"{backend}.retainEveryNTurns": 1,
                "mnemopi.scoping": "global",
                "hindsight.apiUrl": stub.url,
                "hindsight.mentalModelsEnabled": False,
                **settings,
            },
            agent_dir=tmp_path / "agent",
            env={"HOME": str(tmp_path)},
            clock=FixedClock(NOW),
            ids=FixedIds(),
            timers=ManualTimers(),
        )

    return open_on


def kept(folder: Path, stub: StubServer) -> list[str]:
    """Return the contents that were stored or sent, in order."""
    found = [item["content"] for request in stub.requests for item in (request["body"] or {}).get("items", ())]
    for bank in sorted(folder.rglob("mnemopi.db")):
        with closing(sqlite3.connect(bank)) as connection:
            found += [row[0] for row in connection.execute("SELECT content FROM working_memory ORDER BY rowid")]
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_retains_are_refused_with_one_line(opened: Opener, tmp_path: Path, stub: StubServer, backend: str) -> None:
    session = opened(backend)
    child = session.child()
    session.pause()
    assert session.paused
    assert child.paused
    calls: list[Callable[[], object]] = [
        lambda: session.retain("secret"),
        lambda: session.tools["retain"](items=[{"content": "secret"}]),
        lambda: session.save("secret"),
        session.enqueue,
        lambda: child.retain("secret"),
    ]
    for call in calls:
        with pytest.raises(PausedError) as refused:
            call()
        assert refused.value.one_line() == f"PausedError: {LINE} – %memory resume ends the pause"
    session.force_retain([Message("user", "a secret that was said")])
    session.close()
    assert kept(tmp_path, stub) == []
    assert list(tmp_path.rglob("mnemopi.db")) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["full-session", "last-turn"])
def test_what_was_said_in_a_pause_is_never_retained(
    opened: Opener, tmp_path: Path, stub: StubServer, backend: str, mode: str
) -> None:
    session = opened(backend, **{"hindsight.retainMode": mode})
    session.add_turn("said before the pause", "yes, before")
    session.pause()
    session.pause()
    session.add_turn("a secret in the pause", "yes, a secret")
    with session.turn("another secret in the pause") as turn:
        turn.answer("yes, another secret")
    assert len(session.messages) == 6
    session.resume()
    session.add_turn("said after the pause", "yes, after")
    session.enqueue()
    session.close()
    stored = "\n".join(kept(tmp_path, stub))
    assert "said before the pause" in stored
    assert "said after the pause" in stored
    assert "secret" not in stored
    assert len(session.messages) == 8


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("end", ["close", "rebind", "clear"])
def test_the_end_of_a_paused_session_stores_nothing(
    opened: Opener, tmp_path: Path, stub: StubServer, backend: str, end: str
) -> None:
    session = opened(backend, **{f"{backend}.retainEveryNTurns": 5})
    session.add_turn("not yet due", "indeed")
    session.pause()
    session.add_turn("a secret in the pause", "indeed")
    if end == "rebind":
        session.rebind("/work/blog", {f"{backend}.scoping": "per-project"})
    elif end == "clear":
        session.clear()
    session.close()
    assert kept(tmp_path, stub) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_said_before_is_retained_after_the_pause(
    opened: Opener, tmp_path: Path, stub: StubServer, backend: str
) -> None:
    session = opened(backend, **{f"{backend}.retainEveryNTurns": 2})
    session.add_turn("said before the pause", "indeed")
    session.pause()
    session.add_turn("a secret in the pause", "indeed")
    session.resume()
    assert kept(tmp_path, stub) == []
    session.add_turn("said after the pause", "indeed")
    [stored] = kept(tmp_path, stub)
    assert stored.index("said before the pause") < stored.index("said after the pause")
    assert "secret" not in stored
    session.close()


def test_a_host_with_its_own_log_is_heard_as_well(opened: Opener, tmp_path: Path, stub: StubServer) -> None:
    session = opened("mnemopi")
    log = [Message("user", "said before the pause", NOW)]
    session.end_turn(log)
    session.pause()
    log += [Message("user", "a secret in the pause", NOW), Message("assistant", "a secret answer", NOW)]
    session.end_turn(log)
    session.resume()
    # The host makes its messages from its own records each time.
    again = [Message(one.role, one.text, one.timestamp) for one in log]
    session.end_turn([*again, Message("user", "said after the pause", NOW)])
    session.finish([*again, Message("user", "said after the pause", NOW)])
    stored = "\n".join(kept(tmp_path, stub))
    assert "said after the pause" in stored
    assert "secret" not in stored


@pytest.mark.claim("R-34")
def test_recalls_are_not_counted_automatic_ones_neither(opened: Opener, tmp_path: Path) -> None:
    session = opened("mnemopi")
    session.retain("The deploy target is fly.io")
    [bank] = tmp_path.rglob("mnemopi.db")

    def count() -> int:
        with closing(sqlite3.connect(bank)) as connection:
            return int(connection.execute("SELECT COALESCE(recall_count, 0) FROM working_memory").fetchone()[0])

    session.pause()
    before = bank.stat().st_mtime_ns, count()
    assert len(session.recall("deploy target").hits) == 1
    assert len(session.child().recall("deploy target").hits) == 1
    assert "fly.io" in (session.tools["reflect"](query="deploy target").text or "")
    with session.turn("What is the deploy target?") as turn:
        assert "fly.io" in turn.context
    assert (bank.stat().st_mtime_ns, count()) == before
    session.resume()
    session.recall("deploy target")
    assert count() == 1
    session.close()


def test_a_paused_session_on_a_new_bank_makes_no_file(opened: Opener, tmp_path: Path) -> None:
    session = opened("mnemopi")
    session.pause()
    with session.turn("Hello there, agent") as turn:
        turn.answer("Hello")
    session.recall("hello")
    session.close()
    assert list(tmp_path.rglob("*.db")) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pause_outlives_another_backend(opened: Opener, backend: str) -> None:
    session = opened(backend)
    session.pause()
    session.rebind(changes={"memory.backend": next(name for name in BACKENDS if name != backend)})
    with pytest.raises(PausedError):
        session.retain("secret")
    session.close()
