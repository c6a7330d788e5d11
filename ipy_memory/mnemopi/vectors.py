"""How like the stored vectors of some rows are to a query's vector. numpy is met only when there is one."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.mnemopi.session_embedder import SessionEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ipy_memory.mnemopi.bank import Bank


class _Matrix:
    """The vectors read so far, one float32 row each, all of the width of the widest.

    ``own`` is the only model whose vectors count, if any; ``others`` counts those of other models, ``sizes`` are
    the lengths of the vectors, ``asked`` that of the latest query's.
    """

    def __init__(self, generation: tuple[int, int, int], own: str | None) -> None:
        self.generation = generation
        self.own = own
        self.place: dict[str, int | None] = {}
        self.others: Counter[str] = Counter()
        self.sizes: set[int] = set()
        self.asked = 0
        self._values: Any = None

    def take(self, stored: Iterable[tuple[str, object, object]]) -> None:
        """Take rows of id, vector as JSON, and model; what cannot be compared is passed over."""
        taken = []
        for id_, text, model in stored:
            if self.own is not None and model != self.own:
                self.others[str(model)] += 1
            elif (vector := _vector(text)) is not None:
                self.sizes.add(len(vector))
                taken.append((id_, vector))
        self.add(taken)

    def add(self, vectors: Sequence[tuple[str, list[float]]]) -> None:
        import numpy as np

        if not vectors:
            return
        width = max(len(vector) for _, vector in vectors)
        height = 0
        if self._values is not None:
            height, width = self._values.shape[0], max(width, self._values.shape[1])
        grown = np.zeros((height + len(vectors), width), dtype=np.float32)
        if self._values is not None:
            grown[:height, : self._values.shape[1]] = self._values
        for number, (id_, vector) in enumerate(vectors, height):
            grown[number, : len(vector)] = vector
            self.place[id_] = number
        self._values = grown

    def compare(self, places: Sequence[int], query: Sequence[float]) -> list[float]:
        """Return max(0, cosine) for rows of the matrix; summed component by component, as the real system does."""
        import numpy as np

        asked = np.zeros(max(len(query), self._values.shape[1]))
        asked[: len(query)] = query
        chosen = np.zeros((len(places), len(asked)))
        chosen[:, : self._values.shape[1]] = self._values[places]
        with np.errstate(all="ignore"):
            products = np.cumsum(chosen * asked, axis=1)[:, -1]
            lengths = np.sqrt(np.cumsum(chosen * chosen, axis=1)[:, -1]) * np.sqrt(np.cumsum(asked * asked)[-1])
            cosines = products / lengths
        found: list[float] = np.where(np.isfinite(cosines) & (cosines > 0), cosines, 0.0).tolist()
        return found


def similarities(bank: Bank, ids: Sequence[str], query: Sequence[float]) -> dict[str, float]:
    """Return the similarity of those rows that have a vector, in the order of ``ids``.

    In a session only vectors of its own model count: after a change of model the agent would compute all anew, and
    we do so only when told to. The engine by itself compares whatever is there, as the real one does.
    """
    generation = bank.generation
    own = bank.embedder.model if isinstance(bank.embedder, SessionEmbedder) else None
    matrix: _Matrix | None = bank.memo.get("vectors")
    if matrix is None or (matrix.generation, matrix.own) != (generation, own):
        matrix = bank.memo["vectors"] = _Matrix(generation, own)
    missing = [id_ for id_ in ids if id_ not in matrix.place]
    if missing:
        matrix.place.update(dict.fromkeys(missing))
        stored = bank.connection.execute(
            "SELECT memory_id, embedding_json, model FROM memory_embeddings"
            " WHERE memory_id IN (SELECT value FROM json_each(?))",
            (json.dumps(missing),),
        )
        matrix.take(stored)
    matrix.asked = len(query)
    places = [(id_, place) for id_ in ids if (place := matrix.place[id_]) is not None]
    if not places or not query:
        return {id_: 0.0 for id_, _ in places}
    return dict(zip((id_ for id_, _ in places), matrix.compare([place for _, place in places], query), strict=True))


def has_vectors(bank: Bank) -> bool:
    """Tell whether a bank holds any stored vector."""
    with bank.reading() as connection:
        try:
            return connection.execute("SELECT 1 FROM memory_embeddings LIMIT 1").fetchone() is not None
        except sqlite3.Error:  # a bank without the table has none
            return False


@dataclass(frozen=True, slots=True)
class Unlike:
    """What the latest recall of a bank could not compare: vectors of other models, and lengths unlike the query's."""

    models: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    asked: int = 0


def unlike(bank: Bank) -> Unlike:
    """Return what the latest recall of a bank could not compare."""
    matrix: _Matrix | None = bank.memo.get("vectors")
    if matrix is None:
        return Unlike()
    sizes = tuple(sorted(matrix.sizes - {matrix.asked})) if matrix.asked else ()
    return Unlike(tuple(sorted(matrix.others)), sizes, matrix.asked)


def _vector(text: object) -> list[float] | None:
    try:
        vector = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if not isinstance(vector, list) or not all(isinstance(part, int | float) for part in vector):
        return None
    return vector
