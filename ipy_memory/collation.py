"""ICU's root collation, as JavaScript's ``localeCompare`` uses it."""

from __future__ import annotations

import unicodedata


def key(text: str) -> tuple[str, str, str]:
    """Return a sort key that orders texts as :func:`compare` does."""
    plain = unicodedata.normalize("NFD", text)
    return plain.lower(), plain.swapcase(), ""


def compare(ours: str, theirs: str) -> int:
    """Return -1, 0 or 1: the order of two texts (R-20)."""
    left, right = key(ours), key(theirs)
    return (left > right) - (left < right)
