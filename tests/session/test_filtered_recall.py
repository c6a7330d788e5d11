"""Recall with filters on real bank files: each flag alone, what is refused, and that nothing is counted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory import open_session
from ipy_memory.backends.filters import RecallFilter
from ipy_memory.backends.mnemopi.backend import FACTS_LEFT_OUT
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MagicError, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory import MemorySession

NOW = "2026-06-01T12:00:00.000Z"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "mnemopi.db"


@pytest.fixture
def session(tmp_path: Path, database: Path) -> Iterator[MemorySession]:
    with open_session(
        "mnemopi",
        cwd="/proj/shop",
        database=database,
        settings={"mnemopi.scoping": "global"},
        agent_dir=tmp_path,
        env={},
        clock=FixedClock(NOW),
        ids=FixedIds(),
    ) as made:
        yield made


def keep(session: MemorySession, database: Path, rows: dict[str, dict[str, str]]) -> None:
    """Store memories, then set columns of their rows: a write between would consolidate those that became old."""
    session.retain(list(rows))
    with closing(sqlite3.connect(database)) as connection:
        for content, columns in rows.items():
            for name, value in columns.items():
                connection.execute(f"UPDATE working_memory SET {name} = ? WHERE content = ?", (value, content))
        connection.commit()


def found(session: MemorySession, **where: Any) -> list[str]:
    return sorted(hit.content for hit in session.recall("deploy target", where=where).hits if hit.tier != "fact")


@pytest.fixture
def kept(session: MemorySession, database: Path) -> MemorySession:
    rows = {
        "The deploy target was Oslo.": {"timestamp": "2026-03-10T23:59:59.500Z", "source": "notes"},
        "The deploy target is Rome.": {"timestamp": "2026-04-01T01:00:00+02:00", "author_id": "mira"},
        "A deploy target has a name.": {"timestamp": "2026-05-20T08:00:00.000Z"},
    }
    keep(session, database, rows)
    return session


def test_a_source_and_an_author_choose_rows(kept: MemorySession) -> None:
    assert found(kept, source="notes") == ["The deploy target was Oslo."]
    assert found(kept, author="mira") == ["The deploy target is Rome."]
    assert found(kept, source="notes", author="mira") == []


def test_dates_choose_rows_by_instants_as_browse_does(kept: MemorySession) -> None:
    for where in (
        {"until": "2026-03-10"},
        {"since": "2026-03-31T23:00", "until": "2026-03-31"},
        {"since": "2026-04-01"},
        {"since": "2026-03-10T23:59:59.501Z"},
    ):
        assert found(kept, **where) == sorted(kept.memories(where=where)["content"]), where
    assert found(kept, until="2026-03-10") == ["The deploy target was Oslo."]
    assert found(kept, since="2026-03-31T23:00", until="2026-03-31") == ["The deploy target is Rome."]


def test_a_rare_source_is_found_behind_many_better_rows(session: MemorySession, database: Path) -> None:
    rows: dict[str, dict[str, str]] = {f"deploy target {number}": {} for number in range(120)}
    rows["Somewhere in a long text about other things stands a deploy target."] = {"source": "notes"}
    keep(session, database, rows)
    assert len(found(session, source="notes")) == 1


def test_facts_are_left_out_where_rows_are_chosen_and_it_is_said(session: MemorySession) -> None:
    session.retain("Mira lives in Lisbon. The staging server is called kea.")
    session.flush()
    with_facts = session.recall("staging server", where={"at": NOW})
    assert FACTS_LEFT_OUT not in with_facts.notes
    chosen = session.recall("staging server", where={"since": "2020"})
    assert FACTS_LEFT_OUT in chosen.notes
    assert {hit.tier for hit in chosen.hits} == {"working"}


def test_at_moves_the_clock_of_ages_and_ends(session: MemorySession, database: Path) -> None:
    rows = {
        "The old deploy target.": {"timestamp": "2026-03-01T12:00:00.000Z", "valid_until": "2026-04-01"},
        "The new deploy target.": {"timestamp": "2026-05-31T12:00:00.000Z"},
    }
    keep(session, database, rows)
    assert found(session) == ["The new deploy target."]
    assert found(session, at="2026-03-02") == ["The new deploy target.", "The old deploy target."]
    now, later = (
        session.recall("new deploy", touch=False, where=where).hits[0] for where in (None, {"at": "2026-06-20"})
    )
    assert now.parts is not None
    assert later.parts is not None
    assert (now.parts.recency or 0) > (later.parts.recency or 0)


def test_at_is_scored_as_a_session_at_that_time(kept: MemorySession, tmp_path: Path, database: Path) -> None:
    then = "2026-04-02T12:00:00.000Z"
    with open_session(
        "mnemopi",
        cwd="/proj/shop",
        database=database,
        settings={"mnemopi.scoping": "global"},
        agent_dir=tmp_path,
        env={},
        clock=FixedClock(then),
    ) as other:
        for query in ("deploy target", "deploy target yesterday", "current deploy target"):
            asked = kept.recall(query, where={"at": then}).hits
            given = other.recall(query, touch=False).hits
            assert [(hit.id, hit.score, hit.parts) for hit in asked] == [
                (hit.id, hit.score, hit.parts) for hit in given
            ]


def test_a_filter_is_the_users_path_and_counts_nothing(kept: MemorySession) -> None:
    result = kept.recall("deploy target", where=RecallFilter(source="notes"))
    assert len(result.hits) == 1
    assert result.notes[-1] == "Asked with --source notes, which the agent does not do; nothing was counted."
    assert set(kept.memories()["recall_count"]) == {0}
    kept.recall("deploy target", where={})
    assert set(kept.memories()["recall_count"]) == {1}


def test_filters_go_with_one_bank_and_with_another_time(kept: MemorySession, database: Path) -> None:
    assert [hit.content for hit in kept.recall("deploy target", bank="default", where={"source": "notes"}).hits] == [
        "The deploy target was Oslo."
    ]
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE working_memory SET created_at = timestamp")
        connection.commit()
    earlier = kept.recall("deploy target", as_of="2026-04-15", where={"author": "mira"})
    assert [hit.content for hit in earlier.hits] == ["The deploy target is Rome."]
    started = kept.recall("deploy target", as_agent_start=True, where={"source": "notes"})
    assert all(hit.source == "notes" for hit in started.hits)
    with pytest.raises(MagicError, match="--as-of has a clock of its own"):
        kept.recall("deploy target", as_of="2026-04-15", where={"at": "2026-04-15"})


@pytest.mark.parametrize("where", [{"tag": "a"}, {"type": "world"}, {"budget": "low"}, {"tokens": 5}])
def test_what_only_a_server_can_do_is_refused(session: MemorySession, where: dict[str, Any]) -> None:
    with pytest.raises(NotSupportedError, match=f"Mnemopi does not support --{next(iter(where))} in a recall"):
        session.recall("x", where=where)


@pytest.mark.parametrize("where", [{"source": "a"}, {"since": "2026"}, {"at": "2026"}])
def test_the_ranking_best_honours_no_filter(session: MemorySession, where: dict[str, Any]) -> None:
    with pytest.raises(NotSupportedError, match=f"The ranking best does not support --{next(iter(where))} in a recall"):
        session.recall("x", ranking="best", where=where)
