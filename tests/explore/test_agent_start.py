"""Recall before the agent's next start: what it will consolidate is said, and its answer can be had (C05, D02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory import demo
from ipy_memory.clock import FixedClock
from ipy_memory.errors import MemoryToolkitError
from tests.explore.conftest import OpenSession, fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.session import MemorySession

LATER = "2026-06-02T02:00:00.000Z"
NOTES = [f"Deploy {number} goes to fly.io in region {number % 3}." for number in range(9)]
QUERIES = ["deploy", "region 1", "fly.io", "deploy 7", "nothing of the kind"]


@pytest.fixture
def later(open_here: OpenSession) -> MemorySession:
    """A session on a bank whose memories are 14 hours old, before its start."""
    open_here().retain(NOTES)
    return open_here(clock=FixedClock(LATER))


def told(session: MemorySession, query: str = "deploy") -> list[str]:
    return [note for note in session.recall(query).notes if "next start" in note]


def test_what_the_agent_consolidates_first_is_said(later: MemorySession) -> None:
    (note,) = told(later)
    assert note.startswith("At its next start the agent first consolidates 9 memories, so its answer may differ: ")
    assert "%memory consolidate --dry-run" in note
    assert "%recall --as-agent-start" in note
    assert told(later) == [note]


def test_nothing_is_said_where_nothing_is_due(open_here: OpenSession) -> None:
    fresh = open_here()
    fresh.retain(NOTES)
    assert told(fresh) == []
    begun = open_here(clock=FixedClock(LATER))
    begun.start()
    assert told(begun) == []
    assert told(open_here(clock=FixedClock(LATER))) == []  # the start above has consolidated them


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_as_at_the_start_is_the_one_after_it(later: MemorySession, query: str) -> None:
    found = later.recall(query, as_agent_start=True)
    later.start()
    after = later.recall(query, touch=False)
    assert found.text == after.text
    assert [(hit.content, hit.score) for hit in found.hits] == [(hit.content, hit.score) for hit in after.hits]
    assert any("after its next start, which consolidates 9 memories" in note for note in found.notes)


def test_the_answer_may_differ_from_the_one_of_now(tmp_path: Path) -> None:
    with demo.make(tmp_path / "demo").session() as session:
        now = session.recall(demo.QUERY, touch=False)
        found = session.recall(demo.QUERY, as_agent_start=True)
        session.start()
        after = session.recall(demo.QUERY, touch=False)
    assert now.text != found.text
    assert len(found.hits) == len(after.hits) == len(now.hits) + 1


def test_asking_as_at_the_start_changes_no_byte_and_counts_nothing(later: MemorySession, tmp_path: Path) -> None:
    before = fingerprint(tmp_path / "home")
    later.recall("deploy", as_agent_start=True)
    assert fingerprint(tmp_path / "home") == before
    assert later.memories()["recall_count"].tolist() == [0] * 9


def test_every_bank_in_scope_counts_and_answers(open_here: OpenSession) -> None:
    open_here("global").retain("Everybody deploys on Tuesdays.")
    open_here("per-project-tagged").retain("The shop deploys to fly.io.")
    session = open_here("per-project-tagged", clock=FixedClock(LATER))
    (note,) = told(session)
    assert "consolidates 2 memories" in note
    found = session.recall("deploys", as_agent_start=True)
    session.start()
    assert found.text == session.recall("deploys", touch=False).text
    assert "Tuesdays" in found.text
    assert "fly.io" in found.text


def test_rescued_banks_are_consolidated_too(open_here: OpenSession, tmp_path: Path) -> None:
    open_here(cwd="/work/shop").retain("The shop deploys to fly.io.")
    banks = tmp_path / "home" / "banks"
    (own,) = banks.iterdir()
    open_here(cwd="/work/shop").close()
    (banks / "shop-before").mkdir()
    (banks / "shop-before" / "mnemopi.db").write_bytes((own / "mnemopi.db").read_bytes())
    session = open_here(clock=FixedClock(LATER))
    found = session.recall("deploys", as_agent_start=True)
    session.start()
    assert found.text == session.recall("deploys", touch=False).text


def test_the_account_of_the_answer_can_be_had(later: MemorySession) -> None:
    traces: list[object] = []
    later.recall("deploy", as_agent_start=True, traces=traces)  # type: ignore[arg-type]
    assert traces


@pytest.mark.parametrize("further", [{"bank": "default"}, {"ranking": "best"}])
def test_another_bank_or_ranking_has_no_start(later: MemorySession, further: dict[str, str]) -> None:
    with pytest.raises(MemoryToolkitError, match="only the agent's own recall"):
        later.recall("deploy", as_agent_start=True, **further)  # type: ignore[arg-type]
