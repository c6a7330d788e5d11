"""Recall as of an earlier moment: equal to the answer that was given then, from copies alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory import open_session
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MagicError, MemoryToolkitError
from tests.explore.conftest import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory import MemorySession

HOUR = 3_600_000


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock("2026-06-01T12:00:00.000Z")


@pytest.fixture
def session(tmp_path: Path, clock: FixedClock) -> Iterator[MemorySession]:
    with open_session(
        "mnemopi",
        cwd="/proj/shop",
        database=tmp_path / "mnemopi.db",
        settings={"mnemopi.scoping": "global"},
        agent_dir=tmp_path,
        env={},
        clock=clock,
        ids=FixedIds(),
    ) as made:
        yield made


def made_at_their_time(folder: Path) -> None:
    """Let rows be made when they say: SQLite writes the time of this machine, not of the test's clock."""
    with closing(sqlite3.connect(folder / "mnemopi.db")) as connection:
        for table in ("working_memory", "episodic_memory"):
            connection.execute(f"UPDATE {table} SET created_at = timestamp")
        connection.commit()


def test_the_answer_of_then_comes_again(session: MemorySession, clock: FixedClock, tmp_path: Path) -> None:
    first = session.retain("The deploy target is Frankfurt.").receipt
    session.retain("Tea is served at four.")
    made_at_their_time(tmp_path)
    then = session.recall("deploy target", touch=False)
    clock.advance(2 * HOUR)
    new = session.retain("The deploy target is Paris.").receipt
    assert first is not None
    assert new is not None
    session.change("invalidate", first.ids[0] or "", replacement_id=new.ids[0])
    session.flush()
    with closing(sqlite3.connect(tmp_path / "mnemopi.db")) as connection:
        connection.execute("UPDATE working_memory SET created_at = timestamp")
        connection.commit()
    assert "Frankfurt" not in session.recall("deploy target", touch=False).text
    before = fingerprint(tmp_path)
    found = session.recall("deploy target", as_of="2026-06-01T12:00")
    assert fingerprint(tmp_path) == before
    assert found.text.split("\n", 1)[1] == then.text.split("\n", 1)[1]
    assert [hit.score for hit in found.hits] == [hit.score for hit in then.hits]
    (note,) = [note for note in found.notes if note.startswith("As of")]
    assert "1 memory made later left out" in note
    assert "does not keep" in note


def test_a_day_means_its_end_and_now_is_as_without(session: MemorySession, tmp_path: Path) -> None:
    session.retain("The deploy target is Frankfurt.")
    made_at_their_time(tmp_path)
    now = session.recall("deploy", touch=False)
    assert session.recall("deploy", as_of="2026-06-01").text == now.text
    assert session.recall("deploy", as_of="2026-05-31").hits == ()


@pytest.mark.parametrize(("moment", "says"), [("yesterday", "not a date or time"), ("2030", "lies ahead")])
def test_other_moments_are_errors(session: MemorySession, moment: str, says: str) -> None:
    session.retain("x y z")
    with pytest.raises(MagicError, match=says):
        session.recall("x", as_of=moment)


def test_one_other_way_at_a_time(session: MemorySession) -> None:
    session.retain("x y z")
    for further in ({"ranking": "best"}, {"bank": "default"}, {"as_agent_start": True}):
        with pytest.raises(MemoryToolkitError, match="At another time"):
            session.recall("x", as_of="2026-06-01", **further)
