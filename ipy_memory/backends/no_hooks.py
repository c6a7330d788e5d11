"""The life of a session that has none of its own: a sub-agent's, or one that only reads (S-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.conversation import Message


class Bystander:
    """Recalls and retains nothing by itself, and adds nothing to the instructions."""

    def start(self) -> None:
        """Begin nothing."""

    def prepare_first_turn(self, prompt: str, messages: Sequence[Message]) -> None:
        """Recall nothing by itself."""

    def end_turn(self, messages: Sequence[Message]) -> None:
        """Retain nothing by itself."""

    def force_retain(self, messages: Sequence[Message]) -> None:
        """Retain nothing by itself."""

    def enqueue(self, messages: Sequence[Message]) -> None:
        """Do nothing (A-12)."""

    def context(self, recalled: str | None = None) -> str:  # noqa: ARG002
        """Return nothing: there are no blocks."""
        return ""

    def instructions(self, recalled: str | None = None) -> str:
        """Return the developer instructions without blocks."""
        return self.context(recalled)

    def compaction(self, messages: Sequence[Message]) -> None:
        """Recall nothing by itself."""
