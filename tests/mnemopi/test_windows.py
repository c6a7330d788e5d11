"""How far back a recall looks where no word is found, and how far the vectors reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.recall import RecallOptions, recall
from ipy_memory.mnemopi.store import RememberOptions, remember

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
    clock = FixedClock("2026-06-01T00:00:00.000Z")
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
    from ipy_memory.mnemopi.embeddings import store_vectors

    with _filled(tmp_path, "a beacon on the cliff", newer, _Lighthouse()) as bank:
        rows = dict(bank.connection.execute("SELECT id, content FROM working_memory").fetchall())
        store_vectors(bank, rows)
        hits = recall(bank, "pharos", 5, RecallOptions(channel_id="proj"))
        assert len([hit for hit in hits if "beacon" in hit.content]) == found
