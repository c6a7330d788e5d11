"""The data that floors of the house hand to each other: frozen, slotted, without behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """The parts of a hit's score; ``None`` where the backend has no such part.

    The local engine fills keyword, dense, fts, importance, recency and temporal (each rounded to four
    digits, as the real system reports them); Hindsight fills semantic, keyword and reranker.
    """

    keyword: float | None = None
    dense: float | None = None
    fts: float | None = None
    importance: float | None = None
    recency: float | None = None
    temporal: float | None = None
    semantic: float | None = None
    reranker: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled memory: the one currency between backends and faces.

    ``content`` is what the agent would see (a preview for the local engine, see ``truncated`` and
    ``full_length``); ``timestamp`` is the stored text, unparsed; ``rank`` the raw full-text rank score;
    ``mentioned_at`` the time that a Hindsight bullet shows, where ``timestamp`` is when the thing happened.
    Lengths are UTF-16 units.
    """

    id: str | None
    content: str
    source: str | None = None
    timestamp: str | None = None
    score: float | None = None
    bank: str | None = None
    tier: str | None = None
    type: str | None = None
    importance: float | None = None
    veracity: str | None = None
    truncated: bool = False
    full_length: int | None = None
    session_id: str | None = None
    scope: str | None = None
    recall_count: int | None = None
    last_recalled: str | None = None
    rank: float | None = None
    parts: ScoreParts = ScoreParts()
    explanation: str | None = None
    fact: tuple[str, str] | None = None
    tags: tuple[str, ...] = ()
    document: str | None = None
    metadata: Mapping[str, Any] | None = None
    degradation_tier: float | None = None
    mentioned_at: str | None = None


@dataclass(frozen=True, slots=True)
class RetainItem:
    """One thing to store: the text and, optionally, where it comes from (an empty context counts as given)."""

    content: str
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """One item that was not stored: its position in the request, its text and the error."""

    index: int
    content: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a backend did with a retain: ids in item order (``None``: not stored or not known yet) and notes on it.

    ``new_bank`` says that there was no bank of this name before.
    """

    count: int
    bank: str
    state: str
    ids: tuple[str | None, ...] = ()
    failures: tuple[Failure, ...] = ()
    redacted: int = 0
    duplicates: int = 0
    notes: tuple[str, ...] = ()
    new_bank: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a backend gives for a query.

    ``text`` is a synthesis (reflect); ``None`` for a recall or when there is none. ``banks`` are those that were
    asked, in order; ``notes`` sentences for the user.
    """

    hits: tuple[Hit, ...] = ()
    text: str | None = None
    banks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored memory in full, as ``memory://<id>`` and browsing show it.

    ``state`` is ``live``, ``superseded`` or ``expired``; ``cwd`` the folder it was stored from; ``about`` the ids of
    the memories that it was made from.
    """

    id: str
    bank: str
    store: str
    content: str
    source: str | None = None
    timestamp: str | None = None
    created_at: str | None = None
    importance: float | None = None
    veracity: str | None = None
    type: str | None = None
    session_id: str | None = None
    scope: str | None = None
    metadata: str | None = None
    valid_until: str | None = None
    superseded_by: str | None = None
    recall_count: int | None = None
    last_recalled: str | None = None
    tags: tuple[str, ...] = ()
    document: str | None = None
    state: str | None = None
    cwd: str | None = None
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call gives: the exact text the agent sees, and what it never sees.

    ``text``, ``details`` and ``useless`` are the real tool's answer. ``hits`` are the entries behind the
    text, ``notes`` sentences for the user (never part of the text), ``attrs`` provenance for frames.
    """

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    useless: bool = False
    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    receipt: Receipt | None = None

    def with_notes(self, notes: Iterable[str]) -> ToolResult:
        """Return the same answer with further notes."""
        every = [*self.notes, *notes]
        return replace(self, notes=tuple(every), attrs={**self.attrs, "notes": every})

    def frame(self) -> Any:
        """Return the hits as a pandas DataFrame (see :mod:`ipy_memory.frames.build` for columns and dtypes)."""
        from ipy_memory.frames.build import hits_frame

        return hits_frame(self.hits, attrs=self.attrs, notes=self.notes)


Vector = list[float]


class Embedder(Protocol):
    """Computes vectors. ``None`` stands for a vector that could not be computed; nothing is raised for it."""

    @property
    def model(self) -> str:
        """The name that is stored beside the vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vectors of memories, in order."""
        ...

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query."""
        ...
