"""Which vectors a bank holds, and what the user should know of them (read-only)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ipy_memory import text
from ipy_memory.backends.base import BankVectors, StoredModel, Vectors
from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.recall.scoring import NEWEST
from ipy_memory.backends.mnemopi.recall.similarity import has_vectors, unlike
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.embeddings.selection import Choice

_COVERED = (
    "SELECT count(*), count(e.memory_id) FROM ("
    "SELECT id FROM working_memory WHERE superseded_by IS NULL AND trim(COALESCE(embed_text, content), :blank) <> ''"
    " UNION ALL SELECT id FROM episodic_memory WHERE superseded_by IS NULL AND trim(content, :blank) <> ''"
    ") m LEFT JOIN memory_embeddings e ON e.memory_id = m.id AND (:model IS NULL OR e.model = :model)"
)


@within_limits
def bank_vectors(bank: Bank, model: str | None) -> BankVectors:
    """Count a bank's vectors, those of ``model`` (or of any) against its memories."""
    with bank.snapshot() as connection:
        if not has_vectors(bank):
            models = []
        else:
            models = connection.execute("SELECT model, count(*) FROM memory_embeddings GROUP BY model").fetchall()
        memories, covered = connection.execute(_COVERED, {"blank": js.TRIM_SET, "model": model}).fetchone()
        found = tuple(StoredModel(str(name), count, _size(bank, name)) for name, count in models)
    return BankVectors(bank.name, memories, covered, found)


def _size(bank: Bank, model: object) -> int | None:
    row = bank.connection.execute(
        "SELECT embedding_json FROM memory_embeddings WHERE model IS ? LIMIT 1", (model,)
    ).fetchone()
    try:
        vector = json.loads(row[0])
    except (ValueError, TypeError, RecursionError):
        return None
    return len(vector) if isinstance(vector, list) else None


def notes(choice: Choice, banks: Sequence[Bank]) -> list[str]:
    """Return what to say of the vectors after a recall of these banks; nothing where all is as the agent has it."""
    if choice.off:
        return []
    embedder = choice.embedder
    if embedder is None:
        unused = any(has_vectors(bank) for bank in banks)
        return [f"{text.VECTORS_UNUSED} ({choice.reason}: {choice.hint}.)"] if unused else []
    if embedder.problem:
        return [text.vectors_unanswered(embedder.model, embedder.problem)]
    found = []
    for bank in banks:
        apart = unlike(bank)
        if apart.models:
            found.append(text.vectors_of_another_model(bank.name, apart.models, embedder.model))
        if apart.sizes:
            found.append(text.vectors_of_another_size(bank.name, apart.sizes, apart.asked))
        if (count := _stored(bank)) > NEWEST:
            found.append(text.vectors_not_compared(bank.name, count, NEWEST))
    return found


def _stored(bank: Bank) -> int:
    """Return how many vectors a bank holds."""
    if not has_vectors(bank):
        return 0
    with bank.reading() as connection:
        count: int = connection.execute("SELECT count(*) FROM memory_embeddings").fetchone()[0]
    return count


def state(choice: Choice) -> str:
    """Return whether vectors are in use, by what, or why not."""
    embedder = choice.embedder
    if embedder is None:
        return f"not in use: {choice.reason} ({choice.hint})"
    by = f"{embedder.model}, {embedder.place}"
    return f"off: {embedder.problem} ({by})" if embedder.problem else f"in use: {by}"


def report(choice: Choice, banks: Sequence[BankVectors]) -> Vectors:
    """Return what vectors do in a session, and those that the banks in scope hold."""
    shown = state(choice)
    return Vectors(shown, _summary(choice, banks, shown), tuple(banks))


def _summary(choice: Choice, banks: Sequence[BankVectors], shown: str) -> str:
    memories, covered = sum(bank.memories for bank in banks), sum(bank.covered for bank in banks)
    if choice.embedder is None:
        return f"{shown}; {_of(covered, memories)} have one" if covered else shown
    if covered == memories:
        return shown
    line = f"{shown}; {_of(covered, memories)} have one"
    return line if choice.embedder.problem else f"{line}, %memory embeddings reindex makes the rest"


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} memories"
