"""Sessions on real bank files below a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.scoping.modes import bank_scope
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
CWD = "/work/shop"

OpenSession = Callable[..., MemorySession]


@pytest.fixture
def open_here(tmp_path: Path) -> Iterator[OpenSession]:
    """Open sessions on one database folder; they are closed afterwards."""
    opened: list[MemorySession] = []

    def open_one(scoping: str = "per-project", *, cwd: str = CWD, **given: Any) -> MemorySession:
        session = open_session(
            "mnemopi",
            cwd,
            tmp_path / "home" / "mnemopi.db",
            {"mnemopi.scoping": scoping, **given.pop("settings", {})},
            agent_dir=tmp_path / "agent",
            env={"HOME": str(tmp_path)},
            clock=given.pop("clock", FixedClock(NOW)),
            ids=given.pop("ids", FixedIds(len(opened) * 1000)),
            **given,
        )
        opened.append(session)
        return session

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture
def folder(open_here: OpenSession, tmp_path: Path) -> Path:
    """A database folder with banks of every kind."""
    with open_here("global") as shared:
        shared.retain("Everybody prefers tea")
    with open_here(cwd="/work/other") as other:
        other.retain(["Other note", "Another note"])
    with open_here() as own:
        own.retain("Own note")
    folder = tmp_path / "home" / "banks"
    own_name = bank_scope(None, CWD, "per-project").bank
    (folder / "shop-before").mkdir()
    (folder / "shop-before" / "mnemopi.db").write_bytes((folder / own_name / "mnemopi.db").read_bytes())
    (folder / "empty-folder").mkdir()
    (folder / "words").mkdir()
    (folder / "words" / "mnemopi.db").write_text("no database at all, only words in a file")
    return folder


def fingerprint(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content; SQLite's own -shm and empty -wal left out."""
    return {
        str(path.relative_to(folder)): content
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
        if (content := path.read_bytes()) or not path.name.endswith("-wal")
    }
