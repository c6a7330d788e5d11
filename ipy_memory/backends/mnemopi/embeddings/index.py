"""Vectors of a bank: what an embedder is, how vectors are stored, and the explicit rebuild of them."""

from __future__ import annotations

import logging
from array import array
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from ipy_memory import process
from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.db.rows import check_replaces_one
from ipy_memory.errors import EmbeddingError
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.model import Embedder, Vector

log = logging.getLogger("ipy_memory.backends.mnemopi")

BATCH = 128
"""How many texts one call of an embedder gets."""

MAX_UNITS = 8192
"""Longer texts are embedded by their beginning and their end."""

CUT_MARK = "\n\n[...]\n\n"
CACHED_QUERIES = 512


def float32(vector: Iterable[float]) -> Vector:
    """Return a vector as it is stored: each number rounded to single precision."""
    return array("f", vector).tolist()


def clipped(text: str) -> str:
    """Return a text of at most :data:`MAX_UNITS` units: its beginning, a mark, and its end."""
    size = js.units(text)
    if size <= MAX_UNITS:
        return text
    head = (MAX_UNITS - len(CUT_MARK)) // 2
    tail = MAX_UNITS - len(CUT_MARK) - head
    return js.cut(text, 0, head) + CUT_MARK + js.cut(text, size - tail)


class QueryCache:
    """The vectors of the latest queries, by model, address and text; one for the process."""

    def __init__(self, size: int = CACHED_QUERIES) -> None:
        self._size = size
        self._known: OrderedDict[tuple[str, str, str], Vector] = OrderedDict()
        self._renew_lock()
        process.after_fork_in_child(self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = Lock()

    def get(self, model: str, address: str, text: str, compute: Callable[[], Vector | None]) -> Vector | None:
        """Return the known vector, or compute it; a failure is not remembered."""
        key = (model, address, text)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        vector = compute()
        if vector is not None:
            with self._lock:
                self._known[key] = vector
                while len(self._known) > self._size:
                    self._known.popitem(last=False)
        return vector

    def clear(self) -> None:
        """Forget every vector."""
        with self._lock:
            self._known.clear()


QUERIES = QueryCache()


_DROP_OLDER_FORM = "UPDATE OR ABORT episodic_memory SET binary_vector = NULL WHERE binary_vector IS NOT NULL"


def store_vectors(bank: Bank, texts: Mapping[str, str]) -> int:
    """Compute and store the vectors of memories, and return how many were stored.

    Parameters
    ----------
    bank
        The bank; without an active embedder nothing is done.
    texts
        Memory id -> the text to embed. Blank texts and memories that are gone are passed over.
    """
    embedder = _active(bank)
    if embedder is None:
        return 0
    rows = [(memory_id, text) for memory_id, text in texts.items() if js.trim(text)]
    return sum(_store_batch(bank, embedder, batch) for batch in _batches(rows))


def reindex(bank: Bank, progress: Callable[[int, int], object] | None = None, *, missing_only: bool = False) -> int:
    """Compute the vectors of all live memories again, and return how many were stored.

    A vector is replaced only by one that was computed; vectors of another model go when all are there. Where a whole
    batch gets none, no further one is tried.

    Parameters
    ----------
    bank
        The bank, open for writing, with an embedder.
    progress
        Told after each batch how many of how many memories are done.
    missing_only
        Leave memories alone that have a vector of the embedder's model.

    Raises
    ------
    EmbeddingError
        There is no embedder, or it computed nothing for some memories; what was stored stays.
    """
    embedder = _needed(bank)
    rows = _live_texts(bank)
    if missing_only:
        known = _known(bank, embedder.model)
        rows = [row for row in rows if row[0] not in known]
    done = stored = 0
    for batch in _batches(rows):
        new = _store_batch(bank, embedder, batch)
        stored += new
        done += len(batch)
        if not new:
            break
        if progress is not None:
            progress(done, len(rows))
    if stored < len(rows):
        raise EmbeddingError(
            f"{len(rows) - stored} of {len(rows)} memories got no vector.",
            where=bank.where,
            hint="Check the embedder and run this again; earlier vectors were kept.",
        )
    with bank.transaction() as connection:
        connection.execute("DELETE FROM memory_embeddings WHERE model IS NOT ?", (embedder.model,))
        connection.execute(_DROP_OLDER_FORM)
    return stored


def reconcile(bank: Bank) -> int:
    """Do what the real engine does on opening: rebuild after a change of model, else compute what is missing.

    Raises
    ------
    EmbeddingError
        There is no embedder.
    """
    embedder = _needed(bank)
    with bank.transaction() as connection:
        changed = connection.execute(
            "SELECT 1 FROM memory_embeddings WHERE model IS NOT ? LIMIT 1", (embedder.model,)
        ).fetchone()
        if changed:
            connection.execute("DELETE FROM memory_embeddings")
            connection.execute(_DROP_OLDER_FORM)
        known = _known(bank, embedder.model)
    return store_vectors(bank, {memory_id: text for memory_id, text in _live_texts(bank) if memory_id not in known})


def _active(bank: Bank) -> Embedder | None:
    return None if bank.config.no_embeddings else bank.embedder


def _needed(bank: Bank) -> Embedder:
    embedder = _active(bank)
    if embedder is None:
        raise EmbeddingError(
            "No embedder is active.", where=bank.where, hint="Configure an embedding endpoint or pass an embedder."
        )
    return embedder


@within_limits
def _known(bank: Bank, model: str) -> set[str]:
    with bank.reading() as connection:
        found = connection.execute("SELECT memory_id FROM memory_embeddings WHERE model IS ?", (model,))
        return {row[0] for row in found}


@within_limits
def _live_texts(bank: Bank) -> list[tuple[str, str]]:
    with bank.reading() as connection:
        return [
            (memory_id, text)
            for columns, table in (("COALESCE(embed_text, content)", "working_memory"), ("content", "episodic_memory"))
            for memory_id, text in connection.execute(
                f"SELECT id, {columns} FROM {table} WHERE superseded_by IS NULL"
                f" AND typeof(id) = 'text' AND typeof({columns}) = 'text' ORDER BY rowid"
            )
            if js.trim(text)
        ]


def _batches(rows: Sequence[tuple[str, str]]) -> Iterator[Sequence[tuple[str, str]]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def _store_batch(bank: Bank, embedder: Embedder, batch: Sequence[tuple[str, str]]) -> int:
    try:
        vectors = embedder.embed([text for _, text in batch])
    except Exception as error:  # noqa: BLE001  an embedder may be anyone's; the memories are stored without it
        log.warning("Mnemopi: embedding failed: bank=%s error=%s", bank.name, type(error).__name__)
        return 0
    found = [
        {"id": memory_id, "vector": js.json_text(float32(vector)), "model": embedder.model}
        for (memory_id, _), vector in zip(batch, vectors, strict=False)
        if vector is not None
    ]
    with bank.transaction() as connection:
        # A memory may have been deleted while its vector was computed.
        check_replaces_one(connection, "memory_embeddings")
        before = connection.total_changes
        connection.executemany(
            "INSERT OR REPLACE INTO memory_embeddings (memory_id, embedding_json, model) SELECT :id, :vector, :model"
            " WHERE EXISTS (SELECT 1 FROM working_memory WHERE id = :id)"
            " OR EXISTS (SELECT 1 FROM episodic_memory WHERE id = :id)",
            found,
        )
        return connection.total_changes - before
