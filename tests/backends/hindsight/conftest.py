"""A Hindsight backend in front of a stand-in server, with time and ids that stand still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.hindsight.backend import HindsightBackend
from ipy_memory.backends.hindsight.outbox import Outbox
from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.conversation import Message
from ipy_memory.scoping.modes import HindsightScope
from ipy_memory.settings.resolve import HindsightConfig, hindsight_config, load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.backends.hindsight.stub import StubServer

TAGGED = HindsightScope("omp", ("project:demo",), ("project:demo",), "any")


@dataclass
class World:
    """A backend on a stub server, with time and timers in the test's hands."""

    stub: StubServer
    folder: Path
    clock: FixedClock = field(default_factory=lambda: FixedClock("2026-06-01T12:00:00.000Z"))
    timers: ManualTimers = field(default_factory=ManualTimers)
    notices: list[tuple[str, str, str]] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    made: list[HindsightBackend] = field(default_factory=list)

    def config(self, **settings: Any) -> HindsightConfig:
        named = {f"hindsight.{name}": value for name, value in settings.items()}
        given = {"hindsight.apiUrl": self.stub.url} | named
        return hindsight_config(load_settings(self.folder, self.folder, {}, given))

    def backend(self, scope: HindsightScope = TAGGED, more: dict[str, Any] | None = None, **settings: Any) -> Any:
        made = HindsightBackend(
            self.config(**settings),
            scope,
            Outbox(self.folder),
            clock=self.clock,
            ids=FixedIds(),
            timers=self.timers,
            notify=self.notify,
            **({"session_id": "sess-1"} | (more or {})),
        )
        self.made.append(made)
        return made

    def notify(self, level: str, text: str, source: str, hint: str) -> None:
        self.notices.append((level, text, source))
        self.hints.append(hint)

    @property
    def sent(self) -> list[str]:
        """Requests so far as ``METHOD path``, with the number of items for those that carry some."""
        return [_short(request) for request in self.stub.requests]

    def bodies(self, end: str) -> list[Any]:
        return [request["body"] for request in self.stub.requests if request["url"].endswith(end)]


def _short(request: dict[str, Any]) -> str:
    items = (request["body"] or {}).get("items")
    path = request["url"].removeprefix("/v1/default/banks/")
    return f"{request['method']} {path}" + (f" {len(items)}" if items is not None else "")


@pytest.fixture
def world(stub: StubServer, tmp_path: Path) -> Iterator[World]:
    world = World(stub, tmp_path)
    yield world
    for backend in world.made:
        backend.owned = lambda: False
        backend.close()


def talk(turns: int, start: int = 1) -> list[Message]:
    """Return a conversation of so many turns."""
    found = []
    for turn in range(start, start + turns):
        found += [Message("user", f"question {turn}"), Message("assistant", f"answer {turn}")]
    return found


Talk = Callable[[int], list[Message]]
