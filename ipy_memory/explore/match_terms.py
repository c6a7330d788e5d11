"""Which words of a query a memory matched, and through which other word where it has not the word itself."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.recall import query_terms
from ipy_memory.backends.mnemopi.recall.scoring import Document, Group
from ipy_memory.jscompat.strings import well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable


def through(matched: Iterable[str], text: str) -> dict[str, str]:
    """Return for each word of a query that a text has only another word for: that word."""
    document = Document(text)
    found = {}
    for word in matched:
        first = next((variant for variant, group in _variants(word) if group.matches(document)), word)
        if first != word:
            found[word] = first
    return found


@lru_cache(maxsize=256)
def _variants(word: str) -> list[tuple[str, Group]]:
    """Return the word and what stands for it, the word itself first, each to be looked for alone."""
    others = (other for group in query_terms.groups(word) for other in group)
    return [(one, Group((one,))) for one in dict.fromkeys((word, *others))]


def words_of(matched: Iterable[str], text: str) -> str:
    """Return matched words as they were typed, each with the word that it matched through."""
    other = through(matched, text)
    return well_formed(", ".join(f"{word} (through {other[word]})" if word in other else word for word in matched))
