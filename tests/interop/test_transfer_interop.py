"""An archive in a bank that the real engine holds open: nothing is trimmed, and it answers as from the source."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory import open_session
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.explore.transfer import export, import_archive
from tests.interop.players import BANK, START, Theirs, differences

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory import MemorySession
    from tests.interop.engine import Engine

pytestmark = pytest.mark.interop

OLD = 3_000
"""More than the engine keeps unconsolidated."""


def opened(path: Path, clock: FixedClock) -> MemorySession:
    settings: dict[str, Any] = {"mnemopi.scoping": "global", "mnemopi.bank": BANK}
    return open_session(
        "mnemopi",
        cwd="/proj",
        database=path,
        settings=settings,
        agent_dir=path.parent,
        env={},
        clock=clock,
        ids=FixedIds(),
    )


def test_the_real_engine_trims_nothing_that_was_imported(engine: Engine, tmp_path: Path) -> None:
    clock = FixedClock(START)
    (tmp_path / "from").mkdir()
    with opened(tmp_path / "from" / "mnemopi.db", clock) as source:
        source.retain([f"Note {number} of last year says lantern{number}." for number in range(OLD)])
        source.flush()
    with closing(sqlite3.connect(tmp_path / "from" / "mnemopi.db")) as connection:
        connection.execute("UPDATE working_memory SET timestamp = '2025-01-01T00:00:00.000Z', consolidated_at = NULL")
        connection.commit()
    (tmp_path / "to").mkdir()
    target = tmp_path / "to" / "mnemopi.db"
    held = Theirs(engine, target, clock)
    held.remember("The engine was here first.", {})
    with opened(tmp_path / "from" / "mnemopi.db", clock) as source:
        export(source, tmp_path / "old.jsonl")
    with opened(target, clock) as ours:
        import_archive(ours, tmp_path / "old.jsonl")
    held.remember("And stores once more.", {})
    with closing(sqlite3.connect(target)) as connection:
        (kept,) = connection.execute("SELECT count(*) FROM working_memory WHERE content LIKE 'Note %'").fetchone()
    assert kept == OLD
    found = held.ask("recallEnhanced", "lantern451", 3, {"channelId": BANK})
    assert "lantern451" in str(found)
    held.close()


def test_the_real_engine_answers_alike_from_the_source_and_the_copy(engine: Engine, tmp_path: Path) -> None:
    clock = FixedClock(START)
    words = ("harbour", "lantern", "billing", "deploy", "gateway", "tea", "port", "Anna", "Boris", "staging")
    source = tmp_path / "from" / "mnemopi.db"
    source.parent.mkdir()
    with opened(source, clock) as made:
        made.retain(
            [
                f"{one} and {other} meet at {number}."
                for number, one in enumerate(words)
                for other in words
                if one != other
            ]
        )
        made.flush()
        export(made, tmp_path / "bank.jsonl")
    copy = tmp_path / "to" / "mnemopi.db"
    copy.parent.mkdir()
    with opened(copy, clock) as taken:
        import_archive(taken, tmp_path / "bank.jsonl")
    players = [Theirs(engine, path, clock) for path in (source, copy)]
    queries = [f"{one} {other}" for one in words for other in words]
    wrong = []
    for query in queries:
        one, other = (player.ask("recallEnhanced", query, 8, {"channelId": BANK}) for player in players)
        wrong += differences(one, other)
    assert wrong == []
    for player in players:
        player.close()
