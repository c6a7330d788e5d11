"""Which rows a query looks at: those that hold its words, and the newest where none does or vectors are compared."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.mnemopi import candidates
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.embeddings import store_vectors
from ipy_memory.mnemopi.recall import RecallOptions, recall
from ipy_memory.mnemopi.store import RememberOptions, remember
from ipy_memory.mnemopi.stored import WORKING
from ipy_memory.mnemopi.visibility import Visibility

NOW = "2026-06-01T00:00:00.000Z"
NEWEST = 500
"""Stated here as the real system has it, not taken from the code."""


class _Lighthouse:
    """Sees a likeness in one text only."""

    model = "lighthouse"

    def embed(self, texts: list[str]) -> list[list[float] | None]:
        return [[1.0, 0.0] if "beacon" in text else [0.0, 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float] | None:
        return [1.0, 0.0]


def _filled(path: Path, oldest: str, newer: int, embedder: _Lighthouse | None = None) -> Bank:
    clock = FixedClock(NOW)
    bank = Bank.open(path / "mnemopi.db", "proj", clock=clock, ids=FixedIds(), embedder=embedder)
    with bank.transaction():
        for number in range(newer + 1):
            remember(bank, f"note {number}" if number else oldest, RememberOptions(scope="bank"))
            clock.advance(1000)
    return bank


@pytest.mark.parametrize(("newer", "found"), [(NEWEST - 1, 1), (NEWEST, 0)])
def test_without_a_word_the_newest_five_hundred_rows_are_looked_at(tmp_path: Path, newer: int, found: int) -> None:
    with _filled(tmp_path, "superharbourmaster", newer) as bank:
        assert len(recall(bank, "harbour", 5, RecallOptions(channel_id="proj"))) == found


@pytest.mark.parametrize(("newer", "found"), [(NEWEST - 1, 1), (NEWEST, 0)])
def test_vectors_are_compared_with_the_newest_five_hundred_rows(tmp_path: Path, newer: int, found: int) -> None:
    with _filled(tmp_path, "a beacon on the cliff", newer, _Lighthouse()) as bank:
        rows = dict(bank.connection.execute("SELECT id, content FROM working_memory").fetchall())
        store_vectors(bank, rows)
        hits = recall(bank, "pharos", 5, RecallOptions(channel_id="proj"))
        assert len([hit for hit in hits if "beacon" in hit.content]) == found


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "alpha beta", "beta gamma delta"]), max_size=40))
@settings(max_examples=25, deadline=None)
def test_full_text_candidates_are_those_of_the_one_step_query(contents: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, Bank.open(f"{folder}/m.db", "proj", clock=FixedClock(NOW)) as bank:
        with bank.transaction() as connection:
            for number, content in enumerate(contents):
                superseded = "x" if number % 5 == 3 else None
                connection.execute(
                    "INSERT INTO working_memory (id, content, session_id, superseded_by) VALUES (?, ?, 'proj', ?)",
                    (f"{number * 7919 % 101:03d}-{number}", content, superseded),
                )
        visible = Visibility(NOW, "proj", "proj")
        for limit in (1, 3, 10):
            one_step = bank.connection.execute(
                "SELECT m.rowid, f.rank FROM fts_working f JOIN working_memory m ON m.id = f.id"
                " WHERE fts_working MATCH ? AND m.superseded_by IS NULL ORDER BY f.rank, m.id LIMIT ?",
                ('"alpha" OR "gamma"', limit),
            ).fetchall()
            found = candidates.full_text(bank, WORKING, '"alpha" OR "gamma"', visible, limit)
            assert [(row.rowid, rank) for row, rank in found] == one_step
