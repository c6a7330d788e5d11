"""Recall with the vectors of a real model: what only they find, and that scores and order follow the rule."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.single_bank import recall
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.jscompat import strings as js
from ipy_memory.session import MemorySession, open_session
from tests.model.conftest import MODEL, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.embeddings.providers import CallableEmbedder

pytestmark = pytest.mark.model

NOW = "2026-06-01T12:00:00.000Z"
MEMORIES = (
    "The meeting room is on the third floor",
    "Our cat sleeps on the radiator every morning",
    "The ferry to the island leaves at noon",
    "Never restart the database during business hours",
    "The user prefers green tea",
    "Backups are written every night at two",
    "The printer needs a new toner cartridge",
    "Invoices go out on Fridays",
)
IN_OTHER_WORDS = (
    ("la salle de réunion est au troisième étage", MEMORIES[0]),
    ("Unsere Katze schläft jeden Morgen auf der Heizung", MEMORIES[1]),
    ("Datenbank niemals während der Geschäftszeiten neu starten", MEMORIES[3]),
    ("猫は毎朝ヒーターの上で寝ます", MEMORIES[1]),
)


def opened(folder: Path, embedder: CallableEmbedder | None, **settings: bool) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/proj/demo",
        database=folder / "mnemopi.db",
        settings={f"mnemopi.{name}": value for name, value in settings.items()},
        agent_dir=folder / "agent",
        env={"HOME": str(folder)},
        clock=FixedClock(NOW),
        ids=FixedIds(),
        embedder=embedder,
    )


@pytest.fixture
def stored(tmp_path: Path, embedder: CallableEmbedder) -> Path:
    with opened(tmp_path, embedder) as session:
        session.retain(MEMORIES)
    return tmp_path


def test_only_the_vector_finds_a_memory_said_in_other_words(stored: Path, embedder: CallableEmbedder) -> None:
    with opened(stored, embedder) as session:
        answers = [session.recall(query) for query, _ in IN_OTHER_WORDS]
        assert session.vectors().summary == f"in use: {MODEL}, given by the caller"
    assert [[hit.content for hit in answer.hits] for answer in answers] == [[found] for _, found in IN_OTHER_WORDS]
    assert [answer.notes for answer in answers] == [()] * len(answers)
    for answer in answers:
        (hit,) = answer.hits
        assert hit.explanation is not None
        assert hit.explanation.startswith("working vec dense=0.")
    with opened(stored, embedder, noEmbeddings=True) as session:
        missed = [session.recall(query) for query, _ in IN_OTHER_WORDS]
    assert {answer.text for answer in missed} == {"No relevant memories found."}


def test_a_session_without_the_model_says_what_it_does_without(stored: Path) -> None:
    with opened(stored, None) as session:
        answer = session.recall(IN_OTHER_WORDS[0][0])
    assert answer.useless
    assert "holds vectors, but no embedder is active" in answer.notes[0]


def test_stored_vectors_are_the_models_own_in_single_precision(
    tmp_path: Path, embedder: CallableEmbedder, worker: Worker
) -> None:
    bank = _bank(tmp_path, embedder)
    stored = dict(
        bank.connection.execute(
            "SELECT content, embedding_json FROM memory_embeddings JOIN working_memory ON id = memory_id"
        ).fetchall()
    )
    bank.close()
    assert worker.asked == [list(MEMORIES)]
    whole = worker(list(MEMORIES))
    for content, vector in zip(MEMORIES, whole, strict=True):
        assert len(vector) == 512
        assert json.loads(stored[content]) == pytest.approx(vector, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "query",
    ["Katze", "when do the backups run at night", "green tea", "ferry", "restart the printer on Fridays", "tea"],
)
def test_scores_and_order_follow_the_rule(
    tmp_path: Path, embedder: CallableEmbedder, worker: Worker, query: str
) -> None:
    bank = _bank(tmp_path, embedder)
    hits = recall(bank, query, 5)
    bank.close()
    asked, *vectors = worker([query, *MEMORIES])
    alike = {content: _cosine(asked, vector) for content, vector in zip(MEMORIES, vectors, strict=True)}
    for hit in hits:
        parts = hit.parts
        assert parts is not None
        assert parts.dense == pytest.approx(alike[hit.content], abs=1e-4)
        assert parts.keyword > 0 or parts.dense >= 0.65
        words = max(parts.keyword, 0.6 * parts.fts)
        base = words * 0.6 * 0.8 + 0.75 * 0.2 + 0.08 * words * words
        base = base * 0.8 + parts.dense * 0.2 if parts.dense > 0 else base
        assert hit.score == pytest.approx(base * (0.7 + 0.3 * parts.recency) * 0.8, abs=2e-4)
    assert [hit.score for hit in hits] == sorted((hit.score or 0.0 for hit in hits), reverse=True)
    near = {content for content, similarity in alike.items() if similarity >= 0.65}
    assert near <= {hit.content for hit in hits}


def _bank(folder: Path, embedder: CallableEmbedder) -> Bank:
    clock = FixedClock(NOW)
    bank = Bank.open(folder / "mnemopi.db", "proj", clock=clock, ids=FixedIds(), embedder=embedder)
    for content in MEMORIES:
        remember(bank, content, RememberOptions(importance=0.75))
        clock.advance(60_000)
    assert drain(bank) == 0
    return bank


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    products = sum(a * b for a, b in zip(one, other, strict=True))
    return js.round4(max(0.0, products / math.hypot(*one) / math.hypot(*other)))
