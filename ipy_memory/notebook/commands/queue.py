"""``%memory queue``, ``flush`` and ``operations``: what is on its way to a Hindsight server, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed
from ipy_memory.errors import HindsightError, MagicError, safe_line
from ipy_memory.notebook.commands import handles
from ipy_memory.notebook.remote import remote, remote_if_any

if TYPE_CHECKING:
    from ipy_memory.hindsight.backend import HindsightBackend
    from ipy_memory.hindsight.overview import Operation
    from ipy_memory.hindsight.queue import FlushReport
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult, TextResult


@handles("queue")
def queue(magics: MemoryMagics, _: Parsed) -> TableResult:
    """Show one row an item; the frame of the result has the same rows."""
    from ipy_memory.notebook.result import TableResult

    rows = remote(magics, "a queue").queue_rows()
    states = {row.state for row in rows}
    notes = [] if rows else ["Nothing waits: everything was sent."]
    if "failed" in states:
        notes.append("failed: not stored; %memory flush --resend sends it again.")
    if "unknown" in states:
        notes.append("unknown: may have arrived; %memory flush --resend --unknown sends it again, maybe twice.")
    return TableResult(
        ("state", "queued at", "text", "error"),
        [(row.state, row.queued_at, row.text, safe_line(row.error or "")) for row in rows],
        dates=("queued at",),
        notes=notes,
    )


@handles("flush")
def flush(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Send, and say what the server made of it so far: sent is not yet stored."""
    from ipy_memory.notebook.result import TextResult

    if "unknown" in parsed.flags and "resend" not in parsed.flags:
        raise MagicError("--unknown goes with --resend", hint="as in: %memory flush --resend --unknown")
    backend = remote_if_any(magics)
    if backend is None:
        left = magics.session.flush()
        waits = f"{left} pieces of work still wait" if left else "Nothing waits any more"
        return TextResult(f"{waits}: every item is in its bank.")
    report = backend.flush()
    if "resend" in parsed.flags:
        report += backend.resend(unknown="unknown" in parsed.flags)
    return TextResult("\n".join(_told(backend, report)))


def _told(backend: HindsightBackend, report: FlushReport) -> list[str]:
    from ipy_memory.hindsight import overview

    lines = [f"{_count(report.sent)} sent to bank {backend.retain_bank}."]
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
