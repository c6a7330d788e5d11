"""Rows that are kept from one query to the next are never older than the file, nor more visible than the clock says."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.visibility import Visibility
from ipy_memory.backends.mnemopi.recall import row_cache as stored
from ipy_memory.backends.mnemopi.recall.row_cache import WORKING
from ipy_memory.backends.mnemopi.recall.single_bank import RecallOptions, recall, recall_enhanced, touch
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE = RecallOptions(channel_id="proj")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock("2026-06-01T12:00:00.000Z")


@pytest.fixture
def bank(tmp_path: Path, clock: FixedClock) -> Iterator[Bank]:
    with Bank.open(tmp_path / "mnemopi.db", "proj", clock=clock, ids=FixedIds()) as bank:
        for content, until in (
            ("the harbour closes at noon", "2026-06-02T00:00:00.000Z"),
            ("the harbour is old", None),
        ):
            remember(bank, content, RememberOptions(scope="bank", valid_until=until))
        yield bank


def found(bank: Bank, options: RecallOptions = HERE) -> list[str]:
    return sorted(hit.content for hit in recall(bank, "harbour", 5, options))


def test_a_row_is_gone_once_it_has_expired_and_back_when_the_clock_is(bank: Bank, clock: FixedClock) -> None:
    both = ["the harbour closes at noon", "the harbour is old"]
    assert found(bank) == both
    clock.set("2026-06-02T00:00:00.000Z")
    assert found(bank) == both[1:]
    clock.set("2026-06-01T23:59:59.999Z")
    assert found(bank) == both


def test_a_row_out_of_reach_for_one_question_is_read_anew_for_the_next(bank: Bank) -> None:
    bank.connection.execute("UPDATE working_memory SET session_id = 'else', channel_id = 'proj'")
    assert found(bank, RecallOptions()) == []
    assert len(found(bank)) == 2
    assert found(bank, RecallOptions()) == []


def test_what_was_counted_is_shown_by_the_next_recall(bank: Bank) -> None:
    for times in range(3):
        hits = recall_enhanced(bank, "harbour", 5, HERE)
        assert [hit.recall_count for hit in hits if hit.tier == "working"] == [times, times]
        touch(bank, {(hit.tier or "", hit.id or ""): 1 for hit in hits})


def test_counting_what_is_out_of_reach_counts_nothing(bank: Bank) -> None:
    foreign = recall(bank, "harbour", 5, HERE)[0].id
    bank.connection.execute(
        "UPDATE working_memory SET session_id = 'else', channel_id = 'else' WHERE id = ?", [foreign]
    )
    anyone = RecallOptions(author_id="coding-agent")
    seen = {hit.id for hit in recall(bank, "harbour", 5, anyone)}
    assert foreign in seen
    touch(bank, dict.fromkeys((("working", id_ or "") for id_ in seen), 1))
    counts = {hit.id: hit.recall_count for hit in recall(bank, "harbour", 5, anyone)}
    assert counts == {id_: int(id_ != foreign) for id_ in seen}


def test_an_episode_that_was_counted_is_read_anew(bank: Bank) -> None:
    with bank.transaction() as connection:
        connection.execute(
            "INSERT INTO episodic_memory (id, content, session_id, channel_id, timestamp)"
            " VALUES ('ep', 'a harbour episode', 'proj', 'proj', '2026-05-01T00:00:00.000Z')"
        )
    for times in range(2):
        episode = next(hit for hit in recall(bank, "harbour", 5, HERE) if hit.id == "ep")
        assert episode.recall_count == times
        touch(bank, {("episodic", "ep"): 1})


def test_another_process_may_change_a_row(bank: Bank) -> None:
    assert len(found(bank)) == 2
    other = sqlite3.connect(bank.path)
    other.execute("UPDATE working_memory SET superseded_by = 'x' WHERE content LIKE '%old'")
    other.commit()
    other.close()
    assert found(bank) == ["the harbour closes at noon"]


@pytest.mark.parametrize("bound", ["_KEPT_ROWS", "_KEPT_TEXT"])
def test_only_so_much_is_kept(bank: Bank, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(stored, bound, 1)
    visible = Visibility("2026-06-01T12:00:00.000Z", "proj", "proj")
    first = stored.by_rowid(bank, WORKING, visible, [1, 2])
    assert set(first) == {1, 2}
    assert set(stored.by_rowid(bank, WORKING, visible, [2])) == {2}
    assert set(first) == {1, 2}  # a question that is under way keeps what it was given
