"""Cells of any kind in a bank: each reader and writer answers, and no other row suffers."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.consolidation.sleep import sleep
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.schema import TABLES
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MemoryNotFoundError
from ipy_memory.explore.aging import ageing_notes, consolidate_now
from ipy_memory.explore.banks import banks
from ipy_memory.explore.why import verdicts, verdicts_frame
from ipy_memory.session import open_session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.crash

NOW, HOUR_MS = "2026-06-01T12:00:00.000Z", 3_600_000
VALUES = {
    "bytes": "x'ff00fe'",
    "broken text": "CAST(x'68c3' AS TEXT)",
    "the largest number": "9223372036854775807",
    "infinity": "9e999",
    "the year 275760": "'275760-09-13T00:00:00Z'",
    "the year 0": "'0000-01-01T00:00:00Z'",
    "numbers that JSON cannot hold": (
        """'{"retained_through_user_turn":1e999,"session_id":"s","cwd":5,"source_id":7}'"""
    ),
}
READ = ("working_memory", "episodic_memory", "facts", "gists", "annotations", "triples", "memoria_kg")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd") / "mnemopi.db"
    clock = FixedClock(NOW)
    with Bank.open(path, "default", clock=clock, ids=FixedIds()) as bank:
        options = RememberOptions(scope="bank", extract=True, source="coding-agent-transcript", metadata={"cwd": "/w"})
        remember(bank, "I prefer harbour tea", options)
        clock.advance(13 * HOUR_MS)
        sleep(bank)
        with bank.transaction() as connection:
            connection.execute("INSERT INTO triples (subject, predicate, object) VALUES ('a', 'harbour', 'c')")
            connection.execute("INSERT INTO gists (id, text, memory_id) VALUES ('g', 'harbour', 'm')")
            connection.execute("INSERT INTO memoria_kg (subject, predicate, object) VALUES ('a', 'b', 'c')")
        remember(bank, "Mira uses Redis at the harbour", RememberOptions(scope="bank", extract=True))
    return path


@pytest.mark.parametrize("table", READ)
@pytest.mark.parametrize("value", VALUES)
def test_no_cell_stops_a_reader_or_a_writer(template: Path, tmp_path: Path, table: str, value: str) -> None:
    """A12: each column in turn, where the table takes the value at all."""
    with closing(sqlite3.connect(template)) as connection:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] in TABLES[table]]
    done = 0
    for column in columns:
        path = tmp_path / column / "mnemopi.db"
        path.parent.mkdir()
        shutil.copy(template, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            try:
                connection.execute(
                    f"UPDATE {table} SET {column} = {VALUES[value]} WHERE rowid = (SELECT min(rowid) FROM {table})"
                )
            except sqlite3.Error:
                continue
            exhausted = column == "id" and "number" in value and "AUTOINCREMENT" in TABLES[table]
        done += 1
        clock = FixedClock(NOW)
        clock.advance(20 * HOUR_MS)
        with open_session(
            "mnemopi",
            "/w",
            path,
            {"mnemopi.scoping": "global", "mnemopi.proactiveLinking": True},
            agent_dir=tmp_path / "agent",
            env={"HOME": str(tmp_path)},
            clock=clock,
        ) as session:
            found = session.recall("harbour")
            found.frame()
            assert "Mira uses Redis at the harbour" in [hit.content for hit in found.hits], column
            session.reflect("harbour")
            listed = session.memories(store="all")
            listed.to_csv()
            session.memories(where={"since": "2020-01-01", "text": "harbour"})
            session.stats()
            session.diagnose()
            session.describe()
            session.status()
            banks(session).to_csv()
            verdicts_frame(verdicts(session, "harbour"))
            ageing_notes(session)
            consolidate_now(session, dry_run=True)
            assert session.live_backend().retention.last_turn == 0  # type: ignore[attr-defined]
            if not exhausted:
                session.retain("Another harbour, Mira uses tea")
                session.enqueue()
            for memory_id in session.memories()["id"]:
                try:
                    session.memory(memory_id)
                    session.change("invalidate", memory_id)
                except MemoryNotFoundError:  # an id that is not text, or a row of another session
                    pass
    assert done
