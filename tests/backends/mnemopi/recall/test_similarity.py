"""Similarities are summed as the real system sums them, whatever the number of rows; windows notice what expires."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.visibility import Visibility
from ipy_memory.backends.mnemopi.recall.row_cache import WORKING
from ipy_memory.backends.mnemopi.recall.similarity import Window, window
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock
from ipy_memory.jscompat.strings import round4

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"


def cosine(vector: Sequence[float], query: Sequence[float]) -> float:
    product = ours = theirs = 0.0
    for place in range(max(len(vector), len(query))):
        one = vector[place] if place < len(vector) else 0.0
        other = query[place] if place < len(query) else 0.0
        product += one * other
        ours += one * one
        theirs += other * other
    found = product / (math.sqrt(ours) * math.sqrt(theirs)) if ours and theirs else 0.0
    return max(0.0, found)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
@pytest.mark.parametrize(("size", "asked"), [(1, 1), (24, 24), (768, 768), (768, 300), (5, 40)])
def test_sums_are_taken_in_order(count: int, size: int, asked: int) -> None:
    draw = random.Random(count * size)
    vectors = [[float(draw.randint(-9, 9)) / 8 for _ in range(size)] for _ in range(count)]
    query = [draw.gauss(0, 1) for _ in range(asked)]
    found = Window(list(enumerate(vectors))).compare(query)
    assert found == [cosine(vector, query) for vector in vectors]


def test_what_cannot_be_compared_is_nothing() -> None:
    assert Window([(1, []), (2, [0.0, 0.0]), (3, [math.inf, 1.0])]).compare([1.0, 1.0]) == [0.0, 0.0, 0.0]
    assert Window([(1, [1.0])]).compare([]) == [0.0]
    assert Window([]).compare([1.0]) == []


@pytest.mark.parametrize(
    ("stored", "likeness"),
    [("[1, 1]", 1.0), ("[null, 1]", 0.7071), ('[" 1 ", "0x1"]', 1.0), ("[]", 0.0), ("[-1]", 0.0)],
)
def test_a_stored_component_may_be_odd(stored: str, likeness: float, bank: Bank) -> None:
    bank.connection.execute("UPDATE memory_embeddings SET embedding_json = ?", (stored,))
    found = window(bank, WORKING, Visibility(NOW, "proj", "proj"), [1.0, 1.0]).compare([1.0, 1.0])
    assert [round4(one) for one in found] == [likeness] * 2


@pytest.mark.parametrize("stored", ["x", "{}", "5", "null", '[1, "a"]', "[1e400, 1]", "[{}]"])
def test_what_is_no_vector_is_passed_over(stored: str, bank: Bank) -> None:
    bank.connection.execute("UPDATE memory_embeddings SET embedding_json = ?", (stored,))
    assert window(bank, WORKING, Visibility(NOW, "proj", "proj"), [1.0, 1.0]).rowids == []


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.open(tmp_path / "bank.db", "proj", clock=FixedClock(NOW)) as opened:
        for text, until in (("stays", None), ("ends", "2026-06-02"), ("ended", "2026-05-01")):
            id_ = remember(opened, text, RememberOptions(valid_until=until))
            opened.connection.execute(
                "INSERT INTO memory_embeddings (memory_id, embedding_json) VALUES (?, ?)", (id_, json.dumps([1, 2]))
            )
        yield opened


def seen(bank: Bank, now: str) -> set[str]:
    rowids = window(bank, WORKING, Visibility(now, "proj", "proj"), [1.0, 1.0]).rowids
    texts = dict(bank.connection.execute("SELECT rowid, content FROM working_memory"))
    return {texts[rowid] for rowid in rowids}


def test_a_window_is_kept_until_a_row_of_it_expires(bank: Bank) -> None:
    visible = Visibility(NOW, "proj", "proj")
    first = window(bank, WORKING, visible, [1.0, 1.0])
    assert window(bank, WORKING, Visibility("2026-06-01T23:00:00.000Z", "proj", "proj"), [2.0]) is first
    assert seen(bank, NOW) == {"stays", "ends"}
    assert seen(bank, "2026-06-02T00:00:00.000Z") == {"stays"}
    assert seen(bank, "2026-04-01T00:00:00.000Z") == {"stays", "ends", "ended"}
    assert seen(bank, NOW) == {"stays", "ends"}


def test_a_window_is_read_anew_after_a_change(bank: Bank) -> None:
    seen(bank, NOW)
    bank.connection.execute("UPDATE working_memory SET superseded_by = 'x' WHERE content = 'stays'")
    assert seen(bank, NOW) == {"ends"}
    assert round4(window(bank, WORKING, Visibility(NOW, "proj", "proj"), [1.0, 1.0]).compare([1.0, 1.0])[0]) == 0.9487
