"""The targets of the audit, on made-up memories that are labelled and share no table with the rules."""

from __future__ import annotations

import pytest

from benchmarks.audit import judged, with_table
from benchmarks.audit_notes import make
from ipy_memory.audit.rules import audit
from tests.audit.notes import NOW_MS

NOTES = make(2000, seed=11)


@pytest.mark.parametrize(
    ("kind", "recall", "precision", "wrong"),
    [("secrets", 1, 0.95, 2), ("pii", 0.95, 0.95, 2), ("duplicates", 0.95, 0.95, 50), ("conflicts", 0.8, 0.7, 50)],
)
def test_the_targets_are_met(kind: str, recall: float, precision: float, wrong: float) -> None:
    found = judged(kind, audit(NOTES.memories, [kind], now_ms=NOW_MS), NOTES)
    assert found[0] >= recall
    assert found[1] >= precision
    assert found[2] <= wrong


def test_the_same_seed_gives_the_same_notes_and_all_are_labelled_once() -> None:
    again = make(2000, seed=11)
    assert again == NOTES
    assert len({one.id for one in NOTES.memories}) == len(NOTES.memories) >= 2000
    labelled = [
        *NOTES.held["secrets"],
        *NOTES.held["pii"],
        *(i for p in NOTES.pairs.values() for pair in p for i in pair),
    ]
    assert len(labelled) == len(set(labelled))


def test_the_table_takes_the_place_of_the_former_one() -> None:
    once = with_table("# A\n\n<!-- measured -->\n\nafter", "one")
    assert "one" in once
    assert with_table(once, "two") == once.replace("one", "two")
