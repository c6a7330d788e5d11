"""Notes as the tests of the ranking write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ipy_memory.ranking.postings import Postings, Row, Texts, asks
from ipy_memory.ranking.words import Stems

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Note(NamedTuple):
    """A key, a text and the seconds at which it was written."""

    key: Hashable
    text: str
    time: float


def index(notes: Sequence[Note], stems: Stems | None = None) -> Postings:
    """Return the index of some notes."""
    texts = Texts(stems or Stems())
    texts.update((place, note.text) for place, note in enumerate(notes))
    return Postings(texts, [Row(note.key, note.time, asks=asks(note.text)) for note in notes])
