"""The commands about a Hindsight server's work: what waits for it, what is sent or dropped, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.hindsight import admin as overview
from ipy_memory.errors import HindsightError, MagicError, safe_line
from ipy_memory.explore import waiting
from ipy_memory.explore.local import needed_server, server_backend
from ipy_memory.explore.remote import pages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.backends.hindsight.queue import FlushReport
    from ipy_memory.session import MemorySession

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
    rows = waiting.queued(session)
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
    return Listing(QUEUE_COLUMNS, shown, waiting.queue_notes(session, rows))


def drop(session: MemorySession, flags: Mapping[str, Any]) -> str:
    """Drop the items that the flags name, after a yes; return what was done.

    Raises
    ------
    MagicError
        The yes is missing, or another flag is there.
    """
    if others := [name for name in flags if name not in {"drop", "yes"}]:
        raise MagicError(f"--drop and --{others[0]} exclude each other", hint="leave one of the two out")
    items = waiting.chosen_items(session, flags["drop"])
    if "yes" not in flags:
        raise MagicError(
            f"this would drop {_count(len(items))} for good, which no server is known to have",
            hint=f"to do it: %memory queue --drop {flags['drop']} --yes",
        )
    dropped = waiting.drop(session, items)
    moving = f" {_count(len(items) - dropped)} on the way to the server left alone." if dropped < len(items) else ""
    return f"{_count(dropped)} dropped.{moving}"


def send(session: MemorySession, flags: Mapping[str, Any]) -> Sent:
    """Send what the flags ask for; sent is not yet stored, so it says what the server made of it so far."""
    backend, report = waiting.send_queued(
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
    lines = [f"{_count(report.sent)} sent to bank {banks}."]
    if report.sent and not report.operations:
        lines.append("The server named no work that it took on for them: see %memory operations.")
    done = [_outcome(backend, operation_id) for operation_id in report.operations]
    lines += [f"Operation {found.id}: {found.outcome}." for found in done]
    if any(found.outcome == overview.NOTHING_RECALLABLE for found in done):
        lines += _barren(backend)
    if left:
        lines.append(f"{_count(left)} not known to have arrived: see %memory queue.")
    return lines


def _outcome(backend: HindsightBackend, operation_id: str) -> overview.Operation:
    try:
        return overview.operation(backend.service, operation_id)
    except HindsightError:
        # What was sent is sent; that its fate cannot be told just now changes nothing.
        return overview.Operation(operation_id, "", "queued")


def _barren(backend: HindsightBackend) -> list[str]:
    return [f"Document {name}: {overview.NOTHING_RECALLABLE}." for name in overview.barren_documents(backend.service)]


def _count(count: int) -> str:
    return f"{count} {'memory' if count == 1 else 'memories'}"
