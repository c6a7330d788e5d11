"""How like the stored vectors of some rows are to a query's vector. numpy is met only when there is one."""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.connection import was_interrupted
from ipy_memory.backends.mnemopi.db.rows import json_list
from ipy_memory.backends.mnemopi.embeddings.selection import SessionEmbedder
from ipy_memory.backends.mnemopi.recall import candidates, scoring
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.db.visibility import Visibility
    from ipy_memory.backends.mnemopi.recall.row_cache import Tier


class Window:
    """The newest visible rows of a tier that have a vector, in the order of their ids.

    ``places`` is rowid -> place in the arrays. The components lie one row each, for all memories side by side, so that
    a sum over them is taken component by component, as the real system takes it, and for all memories at once.
    """

    def __init__(self, found: Sequence[tuple[int, list[float]]]) -> None:
        import numpy as np

        self.rowids = [rowid for rowid, _ in found]
        self.places = {rowid: place for place, rowid in enumerate(self.rowids)}
        self._components = np.zeros((max((len(vector) for _, vector in found), default=0) or 1, len(found)))
        for place, (_, vector) in enumerate(found):
            self._components[: len(vector), place] = vector
        with np.errstate(all="ignore"):
            self._lengths = np.sqrt(_summed(self._components * self._components))

    def compare(self, query: Sequence[float]) -> list[float]:
        """Return max(0, cosine) of each row to a query's vector; what one of the two lacks counts as 0."""
        import numpy as np

        if not query or not self.rowids:
            return [0.0] * len(self.rowids)
        asked = np.asarray(query, dtype=np.float64)
        shared = min(len(asked), len(self._components))
        with np.errstate(all="ignore"):
            products = _summed(self._components[:shared] * asked[:shared, None])
            cosines = products / (self._lengths * np.sqrt(_summed((asked * asked)[:, None])[0]))
        found: list[float] = np.where(np.isfinite(cosines) & (cosines > 0), cosines, 0.0).tolist()
        return found


def _summed(parts: Any) -> Any:
    """Return the sum of the rows of a matrix, added in order (numpy sums a lone column in pairs)."""
    import numpy as np

    return np.add.reduce(parts, axis=0) if parts.shape[1] != 1 else np.cumsum(parts, axis=0)[-1]


@dataclass(slots=True)
class _Vectors:
    """What was read of a bank's vectors in one state of it.

    ``own`` is the only model whose vectors count, if any; ``others`` are the models passed over, ``sizes`` the lengths
    of the vectors, ``asked`` that of the latest query's. A window stands from its instant on until a row of it expires.
    """

    generation: tuple[int, int, int]
    own: str | None
    others: set[str] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)
    asked: int = 0
    windows: dict[tuple[object, ...], tuple[str, str | None, Window]] = field(default_factory=dict)

    def read(self, stored: Iterable[tuple[str, object, object]]) -> dict[str, list[float]]:
        """Return id -> vector of rows of id, vector as JSON, and model; what cannot be compared is passed over."""
        found = {}
        for id_, text, model in stored:
            if self.own is not None and model != self.own:
                self.others.add(str(model))
            elif (vector := stored_vector(text)) is not None:
                self.sizes.add(len(vector))
                found[id_] = vector
        return found


def window(bank: Bank, tier: Tier, visible: Visibility, query: Sequence[float]) -> Window:
    """Return the rows of a tier that a query's vector is compared with.

    In a session only vectors of its own model count: after a change of model the agent would compute all again, and
    we do so only when told to. The engine by itself compares whatever is there, as the real one does.
    """
    generation = bank.generation
    own = bank.embedder.model if isinstance(bank.embedder, SessionEmbedder) else None
    vectors: _Vectors | None = bank.memo.get("vectors")
    if vectors is None or (vectors.generation, vectors.own) != (generation, own):
        vectors = bank.memo["vectors"] = _Vectors(generation, own)
    vectors.asked = len(query)
    key = (tier.name, *visible.apart_from_now())
    since, until, known = vectors.windows.get(key, ("", "", None))
    if known is not None and since <= visible.now and (until is None or visible.now < until):
        return known
    rows = candidates.newest(bank, tier, visible, scoring.NEWEST)
    stored = vectors.read(
        bank.connection.execute(
            "SELECT memory_id, embedding_json, model FROM memory_embeddings"
            " WHERE memory_id IN (SELECT value FROM json_each(?))",
            (json_list(id_ for _, id_ in rows),),
        )
    )
    found = sorted((id_, rowid) for rowid, id_ in rows if id_ in stored)
    made = Window([(rowid, stored[id_]) for id_, rowid in found])
    vectors.windows[key] = (visible.now, candidates.first_end(bank, tier, (rowid for rowid, _ in rows)), made)
    return made


def has_vectors(bank: Bank) -> bool:
    """Return whether a bank holds any stored vector."""
    with bank.reading() as connection:
        try:
            return connection.execute("SELECT 1 FROM memory_embeddings LIMIT 1").fetchone() is not None
        except sqlite3.Error as error:  # a bank without the table has none
            if was_interrupted(error):
                raise
            return False


@dataclass(frozen=True, slots=True)
class Unlike:
    """What the latest recall of a bank could not compare: vectors of other models, and lengths unlike the query's."""

    models: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    asked: int = 0


def unlike(bank: Bank) -> Unlike:
    """Return what the latest recall of a bank could not compare."""
    vectors: _Vectors | None = bank.memo.get("vectors")
    if vectors is None:
        return Unlike()
    sizes = tuple(sorted(vectors.sizes - {vectors.asked})) if vectors.asked else ()
    return Unlike(tuple(sorted(vectors.others)), sizes, vectors.asked)


def stored_vector(text: object) -> list[float] | None:
    """Read a vector as it is stored; ``None`` if it is none, or one of its components is not a number."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    vector = list(map(_component, found)) if isinstance(found, list) else [math.nan]
    return vector if all(map(math.isfinite, vector)) else None


def _component(part: object) -> float:
    if part is None:
        return 0.0
    if isinstance(part, str):
        return js.to_number(part)
    return part if isinstance(part, int | float) else math.nan
