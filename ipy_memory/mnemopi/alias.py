"""A sub-agent's session on its parent's local banks (S-12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ipy_memory.bystander import Bystander
from ipy_memory.mnemopi.backend import MnemopiBackend

if TYPE_CHECKING:
    from ipy_memory.mnemopi.life import MnemopiSession
    from ipy_memory.model import Receipt, RetainItem
    from ipy_memory.turns import Message


class MnemopiChild(Bystander, MnemopiBackend):
    """A sub-agent's alias: the parent's banks and scope, its own id and folder in what it retains (S-12).

    It recalls and retains nothing by itself, and closes nothing of the parent's.
    """

    def __init__(self, parent: MnemopiSession, session_id: str, cwd: str) -> None:
        super().__init__(
            parent.config, parent.scope, parent.banks, cwd=parent.cwd, session_id=session_id, home=parent.home
        )
        self.parent: MnemopiSession = parent
        self.own_cwd = cwd

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Write items with the sub-agent's own id and folder."""
        return self.parent.retain_for(items, session_id=self.session_id, cwd=self.own_cwd)

    def context(self, recalled: str | None = None) -> str:
        """Return the parent's blocks."""
        return self.parent.context(recalled)

    def instructions(self, recalled: str | None = None) -> str:
        """Return the parent's instructions."""
        return self.parent.instructions(recalled)

    def finish(self, messages: Sequence[Message]) -> None:
        """Let go of nothing: the files are the parent's."""

    def close(self) -> None:
        """Let go of nothing: the files are the parent's."""
