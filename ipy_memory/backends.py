"""What a memory backend is: the verbs that every tool needs, and what only a session's life needs.

A further backend implements :class:`Backend` in a folder of its own and gets a line in :func:`resolve_backend`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from threading import Event

    from ipy_memory.model import Answer, Hit, Receipt, RetainItem
    from ipy_memory.turns import Message

SUPPORTED = ("hindsight", "mnemopi")
"""The values of ``memory.backend`` for which the tools exist (R-02)."""

TITLES: Mapping[str, str] = {"mnemopi": "Mnemopi", "hindsight": "Hindsight"}


class Backend(Protocol):
    """One session's way to its memory: about seven verbs."""

    name: str

    @property
    def retain_bank(self) -> str:
        """Name of the bank that is written."""
        ...

    def recall(
        self, query: str, *, limit: int | None = None, touch: bool = True, cancel: Event | None = None
    ) -> Answer:
        """Return the hits for a query, best first; ``limit`` overrides the configured one."""
        ...

    def reflect(self, query: str, context: str | None = None, *, touch: bool = True) -> Answer:
        """Return a synthesis; ``text`` is ``None`` where there is nothing to say."""
        ...

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Store or queue items; never raises for a single failing item, the receipt names it."""
        ...

    def bullet(self, hit: Hit) -> str:
        """Return the exact entry of a hit in the recall text."""
        ...

    def flush(self) -> None:
        """Wait for everything that is under way or waiting."""
        ...

    def status(self) -> Mapping[str, Any]:
        """Return what a person wants to know: scope, banks, place, vectors; never a secret."""
        ...

    def close(self) -> None:
        """Finish what is under way and let go of every file, thread and connection."""
        ...


class Prepared(Protocol):
    """A first turn's block, prepared but not yet taken as done (A-03)."""

    @property
    def context(self) -> str | None:
        """The block for the developer instructions."""
        ...

    def commit(self) -> bool:
        """Take it as done; ``False`` when the session has moved on meanwhile."""
        ...


@runtime_checkable
class SessionHooks(Protocol):
    """What a backend does in the life of a session beside its tools."""

    def start(self) -> None:
        """Begin the session: what must happen before its first turn."""
        ...

    def prepare_first_turn(self, prompt: str, messages: Sequence[Message]) -> Prepared | None:
        """Recall for the first turn, or ``None`` when there is nothing to do."""
        ...

    def end_turn(self, messages: Sequence[Message]) -> None:
        """Apply the retention cadence at the end of a turn; never raises."""
        ...

    def force_retain(self, messages: Sequence[Message]) -> None:
        """Retain what is not yet retained, whatever the cadence."""
        ...

    def instructions(self) -> str:
        """Return the developer instructions with the cached blocks."""
        ...

    def compaction(self, messages: Sequence[Message]) -> str | None:
        """Return the text to add before a compaction."""
        ...

    def enqueue(self, messages: Sequence[Message]) -> None:
        """Force retention and consolidation (A-12)."""
        ...
