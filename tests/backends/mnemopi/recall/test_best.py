"""The ranking `best` on bank files: what it sees, what it leaves alone, and that it follows every change."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ipy_memory.backends.mnemopi.consolidation.sleep import sleep
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.best import best_recall
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.open(tmp_path / "mnemopi.db", "notes", clock=FixedClock(NOW)) as bank:
        yield bank


def retain(bank: Bank, *texts: str, at: str = NOW, **options: object) -> list[str]:
    given = RememberOptions(source="test", scope="bank", timestamp=at, trust_tier="IMPORTED", **options)  # type: ignore[arg-type]
    with bank.transaction():
        return [remember(bank, text, given) for text in texts]


def found(bank: Bank, query: str, k: int = 8) -> list[str]:
    return [one.hit.content for one in best_recall(bank, query, k)]


def test_an_inflected_word_finds_its_memory(bank: Bank) -> None:
    retain(bank, "Lunch is at noon.", at="2026-05-01T12:00:00.000Z")
    retain(bank, "The deployment moved to Frankfurt.")
    assert found(bank, "where do we deploy") == ["The deployment moved to Frankfurt."]


def test_nothing_is_written(bank: Bank) -> None:
    retain(bank, "The deployment moved to Frankfurt.")
    bank.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = hashlib.sha256(bank.path.read_bytes()).digest()
    best_recall(bank, "deployments", 8)
    bank.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert hashlib.sha256(bank.path.read_bytes()).digest() == before


def _update(other: sqlite3.Connection) -> None:
    other.execute("UPDATE working_memory SET content = 'The harbour closes.' WHERE content LIKE 'The deploy%'")


def _invalidate(other: sqlite3.Connection) -> None:
    other.execute("UPDATE working_memory SET valid_until = '2026-01-01T00:00:00Z' WHERE content LIKE 'The deploy%'")


def _supersede(other: sqlite3.Connection) -> None:
    other.execute("UPDATE working_memory SET superseded_by = 'x' WHERE content LIKE 'The deploy%'")


def _forget(other: sqlite3.Connection) -> None:
    other.execute("DELETE FROM working_memory WHERE content LIKE 'The deploy%'")


@pytest.mark.parametrize("change", [_update, _invalidate, _supersede, _forget])
def test_a_change_by_another_process_is_seen_by_the_next_recall(
    bank: Bank, change: Callable[[sqlite3.Connection], None]
) -> None:
    retain(bank, "Lunch is at noon.", at="2026-05-01T12:00:00.000Z")
    retain(bank, "The deployment moved to Frankfurt.")
    assert found(bank, "deployments")
    with sqlite3.connect(bank.path) as other:
        change(other)
    assert found(bank, "deployments") == []
    assert found(bank, "lunches") == ["Lunch is at noon."]


def test_a_new_row_and_a_vacuum_by_another_process_are_seen(bank: Bank) -> None:
    ids = retain(bank, *(f"note {number} about bolts" for number in range(20)))
    assert len(found(bank, "bolt", 50)) == 20
    with sqlite3.connect(bank.path) as other:
        other.execute("DELETE FROM working_memory WHERE id IN (?, ?)", ids[:2])
    other = sqlite3.connect(bank.path, isolation_level=None)
    other.execute("VACUUM")
    other.close()
    retain(bank, "one more bolt")
    assert len(found(bank, "bolts", 50)) == 19


def test_a_memory_that_expires_is_no_longer_found(bank: Bank) -> None:
    retain(bank, "The token is valid today.", valid_until="2026-06-01T13:00:00.000Z")
    assert found(bank, "tokens")
    assert isinstance(bank.clock, FixedClock)
    bank.clock.set("2026-06-01T13:00:00.000Z")
    assert found(bank, "tokens") == []
    bank.clock.set(NOW)
    assert found(bank, "tokens")


def test_a_summary_gives_its_place_to_the_memory_it_sums_up(bank: Bank) -> None:
    retain(bank, "The deployment moved to Frankfurt.", at="2026-05-01T12:00:00.000Z")
    bank.connection.execute("UPDATE working_memory SET trust_tier = 'STATED'")
    sleep(bank)
    answer = best_recall(bank, "deployments", 8)
    assert [one.hit.tier for one in answer] in (["working"], ["episodic"])
    assert len(answer) == 1


def test_a_fact_is_a_row_of_its_own_only_when_its_memory_cannot_be_seen(bank: Bank) -> None:
    (id_,) = retain(bank, "Mira uses Redis for caching.")
    bank.connection.execute(
        "INSERT INTO facts (fact_id, session_id, subject, predicate, object, timestamp, source_msg_id)"
        " VALUES ('f', 'notes', 'Mira', 'uses', 'Redis', ?, ?)",
        (NOW, id_),
    )
    assert [one.hit.tier for one in best_recall(bank, "Redis", 8)] == ["working"]
    bank.connection.execute("DELETE FROM working_memory")
    facts = best_recall(bank, "Redis", 8)
    assert {one.hit.tier for one in facts} == {"fact"}
    assert all(one.made_from == (id_,) for one in facts)


def test_the_same_text_is_found_once(bank: Bank) -> None:
    retain(bank, "The port is 8080.")
    bank.connection.execute(
        "INSERT INTO working_memory (id, content, timestamp, session_id, scope)"
        " SELECT 'copy', content, timestamp, session_id, scope FROM working_memory"
    )
    assert found(bank, "ports") == ["The port is 8080."]


def test_a_hit_says_which_words_it_has_and_who_lent_them(bank: Bank) -> None:
    retain(bank, "Shall we move the database?", at="2026-05-01T12:00:00.000Z")
    retain(bank, "Yes, to Frankfurt.", at="2026-05-01T12:00:10.000Z")
    own, lent = best_recall(bank, "databases", 8)
    assert [(reason.word, reason.lent_by) for reason in own.reasons()] == [("databas", None)]
    (reason,) = lent.reasons()
    assert reason.lent_by is not None
    assert lent.hit.parts.keyword == pytest.approx(reason.share, abs=1e-4)


class Compass:
    """Embeds a text as the direction of its first word."""

    model = "compass"
    _words = ("north", "east", "south", "west")

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(text.startswith(word)) + 0.01 for word in self._words]


def test_vectors_of_the_same_model_find_what_no_word_does(tmp_path: Path) -> None:
    with Bank.open(tmp_path / "v.db", "v", clock=FixedClock(NOW), embedder=Compass()) as bank:  # type: ignore[arg-type]
        ids = retain(bank, "north wind", "east wind", "south wind")
        with bank.transaction() as connection:
            for id_, vector in zip(ids, np.eye(3, 4).tolist(), strict=True):
                connection.execute(
                    "INSERT OR REPLACE INTO memory_embeddings (memory_id, embedding_json, model) VALUES (?, ?, ?)",
                    (id_, str(vector), "compass"),
                )
        assert found(bank, "east", 1) == ["east wind"]
        assert [one.hit.parts.dense for one in best_recall(bank, "east", 1)] != [None]
