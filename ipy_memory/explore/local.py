"""The backend behind a session: the local engine with its bank files, for reading, or a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.backends import registry
from ipy_memory.backends.hindsight.backend import HindsightBackend
from ipy_memory.backends.hindsight.subagent import HindsightAlias
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.pool import READ, Target
from ipy_memory.errors import BankError, MagicError, MemoryToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.session import MemorySession

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
