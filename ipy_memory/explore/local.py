"""The backend behind a session: the local engine with its bank files, for reading, a server, or a registered one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.backends import registry
from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.hindsight.backend import HindsightBackend
from ipy_memory.backends.hindsight.subagent import HindsightAlias
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.pool import READ, Target
from ipy_memory.errors import BankError, MagicError, MemoryToolkitError
from ipy_memory.jscompat.dates import covered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ipy_memory.backends.base import Backend
    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.model import Memory
    from ipy_memory.session import MemorySession

_FIELDS = {"session": "session_id"}
_FAR = (float("-inf"), float("inf"))
EVERY_BANK = "*"
"""Stands for all banks under the database folder."""


def local_backend(session: MemorySession, what: str) -> MnemopiBackend:
    """Return the local engine of a session, or raise an error that names what needs it."""
    backend = session.live_backend()
    if isinstance(backend, MnemopiBackend):
        return backend
    raise MemoryToolkitError(
        f"{registry.title(backend.name)} keeps no local banks, which {what} needs.",
        hint="choose the local engine with `%memory use mnemopi`",
    )


def server_backend(session: MemorySession) -> HindsightBackend | None:
    """Return the server's side of a session, for a sub-agent its parent's; ``None`` where another backend is in use."""
    backend = session.live_backend()
    if isinstance(backend, HindsightAlias):
        return backend.parent
    return backend if isinstance(backend, HindsightBackend) else None


def needed_server(session: MemorySession, what: str) -> HindsightBackend:
    """Return the server's side of a session, or raise an error that says what has none."""
    found = server_backend(session)
    if found is None:
        raise MagicError(
            f"{what}: only a Hindsight session has that; the backend is {session.chosen}",
            hint="choose a server with %memory use hindsight",
        )
    return found


def chosen_targets(backend: MnemopiBackend, bank: str | None) -> list[Target]:
    """Return the banks that a name stands for: those that a recall asks, one, or all of the folder."""
    if bank is None:
        return backend.recall_targets()
    names = backend.bank_names() if bank == EVERY_BANK else [bank]
    return [backend.named_target(name) for name in names]


def readable(backend: MnemopiBackend, targets: Sequence[Target]) -> Iterator[tuple[Target, Bank | BankError]]:
    """Open banks for reading, those that have a file; in place of one that cannot be read its error.

    A bank that the session does not work on is closed before the next one is opened: a folder may hold more banks than
    a process may open files. Between the banks no other thread works on them, and a fork waits.
    """
    with backend.banks.lock:
        own = {target.path for target in backend.edit_targets()}
        for target in targets:
            try:
                bank = backend.banks.get(target, READ)
            except BankError as error:
                yield target, error
                continue
            if bank is not None:
                yield target, bank
                if target.path not in own:
                    backend.banks.release(target)


def open_banks(backend: MnemopiBackend, targets: Sequence[Target]) -> Iterator[Bank]:
    """Open banks for reading, each until the next; one that cannot be read is an error, one without a file is none."""
    for _, bank in readable(backend, targets):
        if isinstance(bank, BankError):
            raise bank
        yield bank


def plain_backend(session: MemorySession) -> Backend | None:
    """Return the session's backend if it is a registered one; ``None`` for the local engine and for a server."""
    backend = session.live_backend()
    return None if backend.name in {"mnemopi", "hindsight"} else backend


def stored(backend: Backend, bank: str | None, where: Mapping[str, str]) -> list[Memory]:
    """Return the stored memories that pass every filter, newest first.

    Parameters
    ----------
    backend
        A registered one.
    bank
        One bank by name; by default those in scope.
    where
        Filters by the names that browsing has; ``since`` and ``until`` are instants, both included.
    """
    return [memory for memory in backend.stored(bank) if all(_passes(memory, *one) for one in where.items())]


def _passes(memory: Memory, name: str, value: str) -> bool:
    if name == "text":
        return value.casefold() in memory.content.casefold()
    if name == "about":
        return value in memory.about
    if name == "tag":
        return set(value.split(",")) <= set(memory.tags)
    if name in {"since", "until"}:
        made, asked = covered(memory.timestamp or "") or _FAR, covered(value) or _FAR
        return made[0] >= asked[0] if name == "since" else made[0] <= asked[1]
    return bool(getattr(memory, _FIELDS.get(name, name)) == value)


def verdict(backend: Backend, memory_id: str, query: str) -> dict[str, Any]:
    """Return whether a memory is among the hits of a query; a registered backend gives no further reasons.

    Raises
    ------
    MemoryNotFoundError
        There is no memory of this id.
    """
    hits = backend.recall(RecallRequest(query, count=False)).hits
    memory = backend.memory(memory_id)
    known = {"id": memory.id, "bank": memory.bank, "store": memory.store, "content": memory.content}
    for place, hit in enumerate(hits, 1):
        if hit.id == memory.id:
            return known | {
                "verdict": "returned",
                "reason": f"hit {place} of {len(hits)}",
                "place": place,
                "score": hit.score,
            }
    return known | {"verdict": "not returned", "reason": f"not among the {len(hits)} hits for this query"}


def names(backend: Backend) -> Sequence[str]:
    """Return the banks of a registered backend: what its status lists, or the one that is written."""
    listed = backend.status().get("banks")
    return [str(name) for name in listed] if isinstance(listed, list | tuple) else [backend.retain_bank]
