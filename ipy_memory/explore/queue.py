"""What waits for a Hindsight server: seen from any session of this agent folder, sent again or dropped by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.base import FlushReport, QueueRow
from ipy_memory.backends.hindsight import admin as overview
from ipy_memory.backends.hindsight.outbox import Outbox
from ipy_memory.backends.hindsight.queue import rows
from ipy_memory.backends.hindsight.request import address
from ipy_memory.errors import HindsightError, MagicError, MemoryToolkitError, safe_line
from ipy_memory.explore.local import needed_server, server_backend
from ipy_memory.explore.remote import pages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ipy_memory.backends.base import FlushReport
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


QUEUE_COLUMNS = ("item", "state", "queued at", "bank", "other server", "text", "error")
OPERATION_COLUMNS = ("id", "kind", "outcome", "items", "memories", "since")


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of texts below their headers, and what to say of them."""

    headers: Sequence[str]
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent, in words, and how many memories no server is known to have."""

    text: str
    left: int = 0


def asks_to_send(flags: Mapping[str, Any]) -> bool:
    """Return whether something is to be sent again; the other flags go with that one.

    Raises
    ------
    MagicError
        A flag is without the one that it goes with.
    """
    if "yes" in flags:
        raise MagicError("--yes goes with --drop", hint="as in: %memory queue --drop all --yes")
    for name in ("unknown", "moved-from"):
        if name in flags and "resend" not in flags:
            raise MagicError(f"--{name} goes with --resend", hint=f"as in: %memory queue --resend --{name}")
    return "resend" in flags


def queue_listing(session: MemorySession) -> Listing:
    """Return what waits, one row an item, whichever backend is in use; nothing waiting needs a server."""
    rows = queued(session)
    backend = server_backend(session) if rows and session.active_backend else None
    if not rows:
        backend = needed_server(session, "a queue")
    here = None if backend is None else backend.service.address
    shown = [
        (
            str(row.item),
            row.state,
            row.queued_at,
            row.bank,
            "" if row.server == here else row.server,
            row.text,
            safe_line(row.error or ""),
        )
        for row in rows
    ]
    return Listing(QUEUE_COLUMNS, shown, queue_notes(session, rows))


def drop_pending(session: MemorySession, flags: Mapping[str, Any]) -> str:
    """Drop the items that the flags name, after a yes; return what was done.

    Raises
    ------
    MagicError
        The yes is missing, or another flag is there.
    """
    if others := [name for name in flags if name not in {"drop", "yes"}]:
        raise MagicError(f"--drop and --{others[0]} exclude each other", hint="leave one of the two out")
    items = chosen_items(session, flags["drop"])
    if "yes" not in flags:
        raise MagicError(
            f"this would drop {_items_text(len(items))} for good, which no server is known to have",
            hint=f"to do it: %memory queue --drop {flags['drop']} --yes",
        )
    dropped = drop(session, items)
    moving = (
        f" {_items_text(len(items) - dropped)} on the way to the server left alone." if dropped < len(items) else ""
    )
    return f"{_items_text(dropped)} dropped.{moving}"


def send(session: MemorySession, flags: Mapping[str, Any]) -> Sent:
    """Send what the flags ask for; sent is not yet stored, so it says what the server made of it so far."""
    backend, report = send_queued(
        session,
        resend="resend" in flags,
        unknown="unknown" in flags,
        moved_from=flags.get("moved-from"),
    )
    left = len(backend.queue_rows())
    return Sent("\n".join(_told(backend, report, left)), left)


def flush(session: MemorySession, flags: Mapping[str, Any]) -> Sent:
    """Send the queue, or finish the background work on local banks."""
    asks_to_send(flags)
    if server_backend(session) is not None:
        return send(session, flags)
    left = session.flush()
    waits = f"{left} pieces of work still wait" if left else "Nothing waits any more"
    return Sent(f"{waits}: every item is in its bank.", left if isinstance(left, int) else 0)


def operations(session: MemorySession, page: int = 1) -> Listing:
    """Return one row an operation of the bank, newest first; documents that gave no memory are named below."""
    backend = needed_server(session, "operations")
    found, total = overview.operations(backend.service, page)
    rows = [
        (
            one.id,
            one.kind,
            one.outcome,
            *("" if n is None else str(n) for n in (one.items, one.facts)),
            one.created or "",
        )
        for one in found
    ]
    notes = [pages(page, len(rows), overview.OPERATIONS_A_PAGE, total), *_barren(backend)]
    return Listing(OPERATION_COLUMNS, rows, notes)


def _told(backend: HindsightBackend, report: FlushReport, left: int) -> list[str]:
    banks = ", ".join(report.banks) or backend.retain_bank
    lines = [f"{_items_text(report.sent)} sent to bank {banks}."]
    if report.sent and not report.operations:
        lines.append("The server named no work that it took on for them: see %memory operations.")
    done = [_outcome(backend, operation_id) for operation_id in report.operations]
    lines += [f"Operation {found.id}: {found.outcome}." for found in done]
    if any(found.outcome == overview.NOTHING_RECALLABLE for found in done):
        lines += _barren(backend)
    if left:
        lines.append(f"{_items_text(left)} not known to have arrived: see %memory queue.")
    return lines


def _outcome(backend: HindsightBackend, operation_id: str) -> overview.Operation:
    try:
        return overview.operation(backend.service, operation_id)
    except HindsightError:
        # What was sent is sent; that its fate cannot be told just now changes nothing.
        return overview.Operation(operation_id, "", "queued")


def _barren(backend: HindsightBackend) -> list[str]:
    return [f"Document {name}: {overview.NOTHING_RECALLABLE}." for name in overview.barren_documents(backend.service)]


def _items_text(count: int) -> str:
    return f"{count} {'memory' if count == 1 else 'memories'}"
