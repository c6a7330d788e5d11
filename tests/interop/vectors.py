"""A made-up embedder that both engines have: counts of words, in whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.embeddings.index import clipped
from ipy_memory.jscompat.strings import well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE = 24
MODEL = "word-counts"


def vector_of(text: str, size: int = SIZE) -> list[float]:
    """Return the vector of a text (``vectorOf`` of driver.js computes the same)."""
    counts = [0.0] * size
    for word in text.lower().split(" "):
        hashed = 2166136261
        for byte in well_formed(word).encode():
            hashed = ((hashed ^ byte) * 16777619) & 0xFFFFFFFF
        counts[hashed % size] += 1 + (hashed >> 8) % 7
    return counts


class WordCounts:
    """The embedder, as a bank takes one."""

    model = MODEL

    def __init__(self, size: int = SIZE) -> None:
        self.size = size

    def embed(self, texts: Sequence[str]) -> list[list[float] | None]:
        """Return the vectors of memories."""
        return [vector_of(clipped(text), self.size) for text in texts]

    def embed_query(self, text: str) -> list[float] | None:
        """Return the vector of a query."""
        return vector_of(clipped(text), self.size)
