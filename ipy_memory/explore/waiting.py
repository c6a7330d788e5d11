"""What waits for a Hindsight server: seen from any session of this agent folder, sent again or dropped by hand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ipy_memory.backends.hindsight.outbox import Outbox
from ipy_memory.backends.hindsight.queue import FlushReport, QueueRow, rows
from ipy_memory.backends.hindsight.request import address
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.explore.local import server_backend

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.session import MemorySession

EVERY_ITEM = "all"
"""Stands for all items when some are dropped."""


def queued(session: MemorySession) -> list[QueueRow]:
    """Return every memory that no server is known to have, oldest first, of other sessions and kernels too.

    The backend in use does not matter.

    Raises
    ------
    OutboxError
        The outbox cannot be read.
    """
    return rows(Outbox(session.agent_dir), session.clock.now_ms())


def queue_notes(session: MemorySession, found: Sequence[QueueRow]) -> list[str]:
    """Return what can be done about queued memories, one line each."""
    if not found:
        return ["Nothing waits: everything was sent or dropped."]
    states = {row.state for row in found}
    notes = []
    if "failed" in states:
        notes.append("failed: not stored; %memory queue --resend sends it again.")
    if "unknown" in states:
        notes.append("unknown: may have arrived; %memory queue --resend --unknown sends it again, maybe twice.")
    backend = server_backend(session) if session.active_backend else None
    if backend is None:
        return [*notes, "No server is in use here: choose it with %memory use hindsight, then send."]
    here = backend.service.address
    return notes + [
        f"{_count(number)} for {server}, while this session's server is {here}:"
        f" %memory queue --resend --moved-from {server} sends to the present one."
        for server, number in Counter(row.server for row in found if row.server != here).items()
    ]


def send_queued(
    session: MemorySession, *, resend: bool = False, unknown: bool = False, moved_from: str | None = None
) -> tuple[HindsightBackend, FlushReport]:
    """Send what waits, with the address and the key that the settings give now.

    Parameters
    ----------
    session
        On a Hindsight server.
    resend
        Also what failed, and what ended sessions have left, each item to its own bank.
    unknown
        With ``resend``: also what may have arrived already, at the risk of storing it twice.
    moved_from
        With ``resend``: send what was queued for this server to the present one.

    Raises
    ------
    MemoryToolkitError
        The session has no server, or nothing is queued for ``moved_from``.
    """
    backend = _server(session)
    if not resend:
        return backend, backend.flush()
    settings = session.read_settings()
    if settings.get("memory.backend") == session.chosen:
        backend.reconnect(settings)
    report = backend.flush()
    server = None if moved_from is None else _known(session, moved_from)
    return backend, report + backend.resend(unknown=unknown, moved_from=server)


def chosen_items(session: MemorySession, which: str) -> list[QueueRow]:
    """Return the items that a text names: their numbers separated by commas, or ``all``.

    Raises
    ------
    MemoryToolkitError
        One of them is not there.
    """
    found = queued(session)
    if which == EVERY_ITEM:
        return found
    wanted = {part.strip() for part in which.split(",")}
    chosen = [row for row in found if str(row.item) in wanted]
    if missing := wanted - {str(row.item) for row in chosen}:
        raise MemoryToolkitError(
            f"The queue has no item {', '.join(sorted(missing))}.", hint="%memory queue shows their numbers"
        )
    return chosen


def drop(session: MemorySession, items: Collection[QueueRow]) -> int:
    """Delete items from the outbox for good; return how many, since one that is on its way stays."""
    return len(Outbox(session.agent_dir).drop([row.item for row in items], session.clock.now_ms()))


def _server(session: MemorySession) -> HindsightBackend:
    backend = server_backend(session)
    if backend is None:
        raise MemoryToolkitError("This session has no Hindsight server.", hint="choose it: %memory use hindsight")
    return backend


def _known(session: MemorySession, server: str) -> str:
    servers = {row.server for row in queued(session)}
    for name in (server, address(server)):
        if name in servers:
            return name
    raise MemoryToolkitError(
        "Nothing is queued for that server.",
        hint=f"there is something for {', '.join(sorted(servers))}" if servers else "the queue is empty",
    )


def _count(count: int) -> str:
    return "1 memory was queued" if count == 1 else f"{count} memories were queued"
