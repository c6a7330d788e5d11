"""Which rows a query looks at: those that hold its words, and the newest where none does or vectors are compared."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.visibility import Visibility
from ipy_memory.backends.mnemopi.embeddings.index import store_vectors
from ipy_memory.backends.mnemopi.recall import candidates
from ipy_memory.backends.mnemopi.recall.row_cache import EPISODIC, WORKING, Tier
from ipy_memory.backends.mnemopi.recall.single_bank import RecallOptions, recall
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


@given(
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "alpha beta", "beta gamma delta"]), max_size=40),
    st.sampled_from([1, 2, 5]),
)
@settings(max_examples=40, deadline=None)
def test_full_text_candidates_are_those_of_the_one_step_query(contents: list[str], every: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Bank.open(f"{folder}/m.db", "proj", clock=FixedClock(NOW)) as bank:
        with bank.transaction() as connection:
            for number, content in enumerate(contents):
                superseded = "x" if number % every == every - 1 else None
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


@pytest.mark.parametrize("tier", [WORKING, EPISODIC], ids=lambda tier: tier.name)
class TestManyOfOneForm:
    ROWS = 2_000

    @pytest.fixture
    def bank(self, tier: Tier, tmp_path: Path) -> Iterator[Bank]:
        """Rows that all have the same rank, in an order unlike that of their ids."""
        with Bank.open(tmp_path / "m.db", "proj", clock=FixedClock(NOW), ids=FixedIds()) as bank:
            with bank.transaction() as connection:
                connection.executemany(
                    f"INSERT INTO {tier.table} (id, content, session_id) VALUES (?, ?, 'proj')",
                    [(f"{number * 7919 % 2003:04d}", f"port {number:05d} is open") for number in range(self.ROWS)],
                )
            yield bank

    def searched(self, bank: Bank, tier: Tier, limit: int) -> tuple[list[str], list[str]]:
        """Return the ids of the candidates, and the full-text searches that it took."""
        statements: list[str] = []
        bank.connection.set_trace_callback(statements.append)
        found = candidates.full_text(bank, tier, '"port"', Visibility(NOW, "proj", "proj"), limit)
        bank.connection.set_trace_callback(None)
        return [row.id for row, _ in found], [sql for sql in statements if "MATCH" in sql]

    def test_ties_are_cut_by_key_and_few_rows_are_read(self, bank: Bank, tier: Tier) -> None:
        ids, searches = self.searched(bank, tier, 50)
        every = bank.connection.execute(f"SELECT id FROM {tier.table} ORDER BY {tier.key}").fetchall()
        assert ids == [row[0] for row in every[:50]]
        assert len(searches) == 1
        assert len(bank.memo[tier.name].by_rowid) < 100

    def test_rows_that_are_not_live_cost_one_more_search(self, bank: Bank, tier: Tier) -> None:
        with bank.transaction() as connection:
            connection.execute(f"UPDATE {tier.table} SET superseded_by = 'x' WHERE rowid % 100 != 1")
        ids, searches = self.searched(bank, tier, 50)
        assert len(ids) == self.ROWS / 100
        assert len(searches) == 2
        assert len(bank.memo[tier.name].by_rowid) < 150
