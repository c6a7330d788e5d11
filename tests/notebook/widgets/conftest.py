"""Panels on the made-up home's real banks, without a front end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory import demo
from ipy_memory.notebook.widgets.session_hub import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory.session import MemorySession

HETZNER = "Deploy target of the shop: Hetzner, region fra."
POSTGRES = "The shop uses PostgreSQL 16; migrations run before a deploy."


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up home, written once."""
    return demo.make(tmp_path_factory.mktemp("home") / "demo").folder


@pytest.fixture
def session(written: Path, tmp_path: Path) -> Iterator[MemorySession]:
    import shutil

    shutil.copytree(written, tmp_path / "demo")
    with demo.Demo(tmp_path / "demo").session() as session:
        yield session


@pytest.fixture
def desk(session: MemorySession) -> Desk:
    def rescope(mode: str) -> None:
        session.rebind(changes={"mnemopi.scoping": mode})

    return Desk(lambda: session, rescope)


def id_of(session: MemorySession, content: str) -> str:
    """Return the id of the memory with this text."""
    hits = session.recall(content, touch=False).hits
    return next(str(hit.id) for hit in hits if hit.content == content)
