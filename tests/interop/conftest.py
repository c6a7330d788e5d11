from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.clock import FixedClock
from tests.interop.corpus import Source
from tests.interop.engine import Engine, install
from tests.interop.players import START, Ours, Theirs, play

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = int(os.environ.get("IPY_MEMORY_SEED") or "20260601")
"""What everything here is drawn from; another one may be asked for."""

MEMORIES = 330
QUERIES = 230


@pytest.fixture(scope="session")
def program() -> Path:
    """The runtime of the real engine, installed once."""
    return install()


@pytest.fixture
def engine(program: Path, tmp_path: Path) -> Iterator[Engine]:
    """The real engine in a fresh process."""
    with Engine(program, tmp_path / "home") as engine:
        yield engine


@dataclass
class Life:
    """One story lived by both engines, each in a bank of its own."""

    source: Source
    ours: Path
    theirs: Path
    vectors: bool
    end_ms: int = 0
    answers: dict[str, list[Any]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def path(self, writer: str) -> Path:
        """Return the bank of one of the two."""
        return self.ours if writer == "ours" else self.theirs


@pytest.fixture(scope="session", params=["by text", "with vectors"])
def life(request: pytest.FixtureRequest, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Both engines after the same story."""
    vectors = request.param == "with vectors"
    print(f"seed {SEED}, {MEMORIES} memories, {request.param}")
    source = Source(SEED + vectors)
    story = source.story(MEMORIES)
    folder = tmp_path_factory.mktemp("life")
    found = Life(source, folder / "ours.db", folder / "theirs.db", vectors)
    found.texts = [step["content"] for step in story if step["op"] == "remember"]
    with Engine(program, folder / "home") as engine:
        for name, path in (("ours", found.ours), ("theirs", found.theirs)):
            clock = FixedClock(START)
            given = {"linking": not vectors, "vectors": vectors}
            player = Ours(path, clock, **given) if name == "ours" else Theirs(engine, path, clock, **given)
            found.answers[name] = play(player, story, [])
            player.close()
            found.end_ms = clock.now_ms()
    return found
