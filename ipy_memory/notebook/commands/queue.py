"""``%memory queue``, ``flush`` and ``operations``: what is on its way to a Hindsight server, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed
from ipy_memory.errors import HindsightError, MagicError, safe_line
from ipy_memory.inspect import waiting
from ipy_memory.notebook.commands import handles
from ipy_memory.notebook.remote import remote, remote_if_any

if TYPE_CHECKING:
    from ipy_memory.hindsight.backend import HindsightBackend
    from ipy_memory.hindsight.overview import Operation
    from ipy_memory.hindsight.queue import FlushReport
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult, TextResult


@handles("queue")
def queue(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show one row an item; the frame of the result has the same rows."""
    from ipy_memory.notebook.result import TableResult

    if "drop" in parsed.flags:
        return _dropped(magics, parsed)
    if _resends(parsed):
        return _sent(magics, parsed)
    rows = waiting.queued(magics.session)
    backend = remote_if_any(magics) if rows and magics.session.active_backend else None
    if not rows:
        backend = remote(magics, "a queue")
    here = None if backend is None else backend.service.address
    return TableResult(
        ("item", "state", "queued at", "bank", "other server", "text", "error"),
        [
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
        ],
        dates=("queued at",),
        notes=waiting.queue_notes(magics.session, rows),
    )


def _dropped(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    from ipy_memory.notebook.result import TextResult

    if others := [name for name in parsed.flags if name not in {"drop", "yes"}]:
        raise MagicError(f"--drop and --{others[0]} exclude each other", hint="leave one of the two out")
    items = waiting.chosen_items(magics.session, parsed.flags["drop"])
    if "yes" not in parsed.flags:
        raise MagicError(
            f"this would drop {_count(len(items))} for good, which no server is known to have",
            hint=f"to do it: %memory queue --drop {parsed.flags['drop']} --yes",
        )
    dropped = waiting.drop(magics.session, items)
    moving = f" {_count(len(items) - dropped)} on the way to the server left alone." if dropped < len(items) else ""
    return TextResult(f"{_count(dropped)} dropped.{moving}")


def _resends(parsed: Parsed) -> bool:
    """Return whether something is to be sent again; the other flags go with that one."""
    if "yes" in parsed.flags:
        raise MagicError("--yes goes with --drop", hint="as in: %memory queue --drop all --yes")
    for name in ("unknown", "moved-from"):
        if name in parsed.flags and "resend" not in parsed.flags:
            raise MagicError(f"--{name} goes with --resend", hint=f"as in: %memory queue --resend --{name}")
    return "resend" in parsed.flags


def _sent(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    from ipy_memory.notebook.result import TextResult

    backend, report = waiting.send_queued(
        magics.session,
        resend="resend" in parsed.flags,
        unknown="unknown" in parsed.flags,
        moved_from=parsed.flags.get("moved-from"),
    )
    return TextResult("\n".join(_told(backend, report)))


@handles("flush")
def flush(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Send, and say what the server made of it so far: sent is not yet stored."""
    from ipy_memory.notebook.result import TextResult

    _resends(parsed)
    if remote_if_any(magics) is None:
        left = magics.session.flush()
        waits = f"{left} pieces of work still wait" if left else "Nothing waits any more"
        return TextResult(f"{waits}: every item is in its bank.")
    return _sent(magics, parsed)


def _told(backend: HindsightBackend, report: FlushReport) -> list[str]:
    from ipy_memory.hindsight import overview

    banks = ", ".join(report.banks) or backend.retain_bank
    lines = [f"{_count(report.sent)} sent to bank {banks}."]
    if report.sent and not report.operations:
        lines.append("The server named no work that it took on for them: see %memory operations.")
    done = [_outcome(backend, operation_id) for operation_id in report.operations]
    lines += [f"Operation {found.id}: {found.outcome}." for found in done]
    if any(found.outcome == overview.NOTHING_RECALLABLE for found in done):
        lines += _barren(backend)
    if left := len(backend.queue_rows()):
        lines.append(f"{_count(left)} not known to have arrived: see %memory queue.")
    return lines


def _outcome(backend: HindsightBackend, operation_id: str) -> Operation:
    from ipy_memory.hindsight import overview

    try:
        return overview.operation(backend.service, operation_id)
    except HindsightError:
        # What was sent is sent; that its fate cannot be told just now changes nothing.
        return overview.Operation(operation_id, "", "queued")


def _barren(backend: HindsightBackend) -> list[str]:
    from ipy_memory.hindsight import overview

    return [f"Document {name}: {overview.NOTHING_RECALLABLE}." for name in overview.barren_documents(backend.service)]


@handles("operations")
def operations(magics: MemoryMagics, parsed: Parsed) -> TableResult:
    """Show one row an operation, newest first; documents that gave no memory are named below."""
    from ipy_memory.hindsight import overview
    from ipy_memory.inspect.remote import pages
    from ipy_memory.notebook.result import TableResult

    backend = remote(magics, "operations")
    page = parsed.flags.get("page", 1)
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
    return TableResult(("id", "kind", "outcome", "items", "memories", "since"), rows, dates=("since",), notes=notes)


def _count(count: int) -> str:
    return f"{count} {'memory' if count == 1 else 'memories'}"
