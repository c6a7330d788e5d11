"""How like the stored vectors of some rows are to a query's vector. numpy is met only when there is one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.mnemopi.bank import Bank


class _Matrix:
    """The vectors read so far, one float32 row each, all of the width of the widest."""

    def __init__(self, generation: tuple[int, int, int]) -> None:
        self.generation = generation
        self.place: dict[str, int | None] = {}
        self._values: Any = None

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
    """Return the similarity of those rows that have a vector, in the order of ``ids``."""
    generation = bank.generation
    matrix: _Matrix | None = bank.memo.get("vectors")
    if matrix is None or matrix.generation != generation:
        matrix = bank.memo["vectors"] = _Matrix(generation)
    missing = [id_ for id_ in ids if id_ not in matrix.place]
    if missing:
        matrix.place.update(dict.fromkeys(missing))
        stored = bank.connection.execute(
            "SELECT memory_id, embedding_json FROM memory_embeddings"
            " WHERE memory_id IN (SELECT value FROM json_each(?))",
            (json.dumps(missing),),
        )
        matrix.add([(id_, vector) for id_, text in stored if (vector := _vector(text)) is not None])
    places = [(id_, place) for id_ in ids if (place := matrix.place[id_]) is not None]
    if not places or not query:
        return {id_: 0.0 for id_, _ in places}
    return dict(zip((id_ for id_, _ in places), matrix.compare([place for _, place in places], query), strict=True))


def _vector(text: object) -> list[float] | None:
    try:
        vector = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if not isinstance(vector, list) or not all(isinstance(part, int | float) for part in vector):
        return None
    return vector
