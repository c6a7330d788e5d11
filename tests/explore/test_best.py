"""Recall by the ranking best over the banks of a session: found, explained, and never counted."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MemoryToolkitError, RecallCancelled
from ipy_memory.explore.best import NOTE
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.explore.conftest import OpenSession

TALK = ["Where shall we put the backups of the shop?", "Lisbon, it is cheap."]


def test_best_finds_the_answer_next_to_the_question_which_the_agent_misses(open_here: OpenSession) -> None:
    session = open_here()
    session.retain(TALK)
    query = "backup"
    assert [hit.content for hit in session.recall(query).hits] == TALK[:1]
    found = session.recall(query, ranking="best")
    assert {hit.content for hit in found.hits} == set(TALK)
    assert found.text.startswith("Found 2 relevant memories")
    assert NOTE in found.notes
    assert found.attrs["ranking"] == "best"
    by_content = {hit.content: str(hit.explanation) for hit in found.hits}
    assert by_content[TALK[0]].startswith("best: backup ")
    assert " lent by " in by_content[TALK[1]]


def test_best_counts_nothing(open_here: OpenSession) -> None:
    session = open_here()
    session.retain("Backups are copied to Lisbon.")
    for _ in range(3):
        session.recall("backups", ranking="best")
    assert session.memories()["recall_count"].tolist() == [0]
    session.recall("backups")
    assert session.memories()["recall_count"].tolist() == [1]


def test_banks_are_merged_by_score_and_a_text_is_given_once(tmp_path: Path) -> None:
    def opened(folder: str) -> MemorySession:
        return open_session(
            "mnemopi",
            cwd=tmp_path / folder,
            database=tmp_path / "mnemopi.db",
            agent_dir=tmp_path,
            env={},
            settings={"mnemopi.scoping": "per-project"},
            clock=FixedClock("2026-06-01T12:00:00.000Z"),
            ids=FixedIds(),
        )

    for folder, texts in (
        ("one", ["The port is 8080.", "shared text about ports"]),
        ("two", ["shared text about ports"]),
    ):
        (tmp_path / folder).mkdir()
        with opened(folder) as session:
            session.retain(texts)
    with opened("one") as session:
        found = session.recall("which port", ranking="best", bank="*")
        assert sorted(hit.content for hit in found.hits) == ["The port is 8080.", "shared text about ports"]
        scores = [hit.score or 0 for hit in found.hits]
        assert scores == sorted(scores, reverse=True)
        assert len(found.attrs["banks"]) == 2


def test_a_wrong_ranking_and_a_server_are_refused_in_one_line(tmp_path: Path, open_here: OpenSession) -> None:
    with pytest.raises(MemoryToolkitError, match="no ranking 'bst'") as caught:
        open_here().recall("x", ranking="bst")
    assert "agent, best" in str(caught.value.hint)
    settings = {"hindsight.apiUrl": "http://127.0.0.1:9"}
    session = open_session("hindsight", cwd=tmp_path, agent_dir=tmp_path, env={}, settings=settings)
    with session, pytest.raises(MemoryToolkitError, match="keeps no local banks, which the ranking best needs"):
        session.recall("x", ranking="best")


def test_a_cancelled_recall_ends(open_here: OpenSession) -> None:
    session = open_here()
    session.retain("x")
    token = threading.Event()
    token.set()
    with pytest.raises(RecallCancelled):
        session.recall("x", ranking="best", cancel=token)
    assert session.recall("x", ranking="best").hits
