"""A sub-agent's session on its parent's Hindsight state."""

from __future__ import annotations

import difflib
from copy import copy
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.base import Backend, FlushReport, RecallRequest
from ipy_memory.backends.hindsight.bank import FILTERS
from ipy_memory.backends.hindsight.client import listed
from ipy_memory.backends.hindsight.prompts import INSTRUCTIONS
from ipy_memory.errors import BankNotFoundError, HindsightError, ReadOnlyBankError
from ipy_memory.scoping.modes import HindsightScope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.backends.base import FlushReport
    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.backends.hindsight.bank import Service
    from ipy_memory.conversation import Message
    from ipy_memory.model import Answer, Hit, Receipt, RetainItem


class HindsightAlias(Backend):
    """The parent's bank, client and queue under the sub-agent's own session id.

    It recalls and retains nothing by itself, loads no mental models and closes nothing of the parent's.
    """

    name, title, movable = "hindsight", "Hindsight", False
    filters = FILTERS

    def __init__(self, parent: HindsightBackend, session_id: str, cwd: str) -> None:
        self.parent = parent
        self.session_id = session_id
        self.cwd = cwd

    @property
    def retain_bank(self) -> str:
        """Id of the parent's bank."""
        return self.parent.retain_bank

    def recall(self, request: RecallRequest) -> Answer:
        """Recall as the parent would."""
        return self.parent.recall(request)

    def reflect(self, query: str, context: str | None = None, *, count: bool = True) -> Answer:
        """Reflect as the parent would."""
        return self.parent.reflect(query, context, count=count)

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Queue items in the parent's queue, under this session's id."""
        return self.parent.queue_items(items, self.session_id)

    def bullet(self, hit: Hit) -> str:
        """Return the exact entry of a hit."""
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


MAX_BANKS = 10_000
"""So many names of banks are looked through."""

NEAR_NAMES = 3
"""So many names like the one that was asked for are shown."""


class OneBank(Backend):
    """A session's server, but another bank and no tags."""

    name, title, movable = "hindsight", "Hindsight", False

    def __init__(self, parent: HindsightBackend, bank: str) -> None:
        self._parent = parent
        self.service = copy(parent.service)
        self.service.scope = HindsightScope(bank)

    @property
    def retain_bank(self) -> str:
        """Name of the bank."""
        return self.service.bank

    def recall(self, request: RecallRequest) -> Answer:
        """Return the server's hits in its order.

        Raises
        ------
        BankNotFoundError
            The server has no bank of this name; the message names those that are near.
        """
        try:
            stop = None if request.cancel is None else request.cancel.is_set
            answer = self.service.recall(request.query, stop, limit=request.limit, where=request.where)
        except HindsightError as error:
            if error.status_code == 404:
                require(self.service)
            raise
        if not answer.hits:
            require(self.service)  # older servers give no hits where there is no bank
        return answer

    def reflect(self, query: str, context: str | None = None, *, count: bool = True) -> Answer:  # noqa: ARG002
        """Return the server's synthesis; a bank that is not there would be made by asking, and is an error."""
        require(self.service)
        return self.service.reflect(query, context, ensure=False)

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Refuse: a bank that is only looked at is not written."""
        raise ReadOnlyBankError(
            f"Bank {self.retain_bank} is only read here; nothing of {len(items)} items was queued.",
            hint="store without naming a bank, which writes to the session's own",
        )

    def bullet(self, hit: Hit) -> str:
        """Return the exact entry of a hit."""
        return self._parent.bullet(hit)

    def flush(self) -> FlushReport:
        """Do nothing: nothing waits."""
        return FlushReport()

    def status(self) -> Mapping[str, Any]:
        """Return the parent's status."""
        return self._parent.status()

    def close(self) -> None:
        """Close nothing: the connection is the parent's."""


def require(service: Service) -> None:
    """See to it that the server has the service's bank.

    Raises
    ------
    BankNotFoundError
        It has not; the message names those that are near.
    """
    entries = listed("listBanks", service.client.list_banks(limit=MAX_BANKS), service.client.origin, "banks")
    names = [str(entry.get("bank_id")) for entry in entries if isinstance(entry, dict)]
    if service.bank in names:
        return
    near = difflib.get_close_matches(service.bank, names, NEAR_NAMES) or sorted(names)[:NEAR_NAMES]
    hint = f"there are {', '.join(near)}; " if near else ""
    raise BankNotFoundError(
        f"The server has no bank {service.bank!r}.",
        where=service.client.origin,
        hint=f"{hint}%memory banks lists all",
    )
