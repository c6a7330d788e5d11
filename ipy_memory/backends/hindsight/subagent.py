"""A sub-agent's session on its parent's Hindsight state (S-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.backends.hindsight.prompts import INSTRUCTIONS
from ipy_memory.backends.no_hooks import Bystander

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import Event

    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.backends.hindsight.queue import FlushReport
    from ipy_memory.conversation import Message
    from ipy_memory.model import Answer, Hit, Receipt, RetainItem


class HindsightAlias(Bystander):
    """The parent's bank, client and queue under the sub-agent's own session id.

    It recalls and retains nothing by itself, loads no mental models and closes nothing of the parent's.
    """

    name = "hindsight"

    def __init__(self, parent: HindsightBackend, session_id: str, cwd: str) -> None:
        self.parent = parent
        self.session_id = session_id
        self.cwd = cwd

    @property
    def retain_bank(self) -> str:
        """Id of the parent's bank."""
        return self.parent.retain_bank

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        touch: bool = True,
        cancel: Event | None = None,
        traces: object = None,  # noqa: ARG002  the server gives no account
    ) -> Answer:
        """Recall as the parent would."""
        return self.parent.recall(query, limit=limit, touch=touch, cancel=cancel)

    def reflect(self, query: str, context: str | None = None, *, touch: bool = True) -> Answer:
        """Reflect as the parent would."""
        return self.parent.reflect(query, context, touch=touch)

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Queue items in the parent's queue, under this session's id."""
        return self.parent.queue_items(items, self.session_id)

    def bullet(self, hit: Hit) -> str:
        """Return the exact entry of a hit (R-08)."""
        return self.parent.bullet(hit)

    def flush(self) -> FlushReport:
        """Send the shared queue."""
        return self.parent.flush()

    def status(self) -> Mapping[str, Any]:
        """Return the parent's status."""
        return self.parent.status()

    def finish(self, messages: Sequence[Message]) -> None:
        """Close nothing: all belongs to the parent."""

    def close(self) -> None:
        """Close nothing: all belongs to the parent."""

    def instructions(self, recalled: str | None = None) -> str:  # noqa: ARG002
        """Return the developer instructions without blocks: those are the parent's."""
        return INSTRUCTIONS
