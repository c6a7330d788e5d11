"""``%memory queue``, ``flush`` and ``operations``: what is on its way to a Hindsight server, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.explore.sending import Listing
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult, TextResult


@handles("queue")
def queue(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show one row an item; the frame of the result has the same rows."""
    from ipy_memory.explore import sending
    from ipy_memory.notebook.result import TextResult

    if "drop" in parsed.flags:
        return TextResult(sending.drop(magics.session, parsed.flags))
    if sending.asks_to_send(parsed.flags):
        return TextResult(sending.send(magics.session, parsed.flags).text)
    return _table(sending.queue_listing(magics.session), dates=("queued at",))


@handles("flush")
def flush(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Send, and say what the server made of it so far: sent is not yet stored."""
    from ipy_memory.explore import sending
    from ipy_memory.notebook.result import TextResult

    return TextResult(sending.flush(magics.session, parsed.flags).text)


@handles("operations")
def operations(magics: MemoryMagics, parsed: Parsed) -> TableResult:
    """Show one row an operation, newest first; documents that gave no memory are named below."""
    from ipy_memory.explore import sending

    return _table(sending.operations(magics.session, parsed.flags.get("page", 1)), dates=("since",))


def _table(found: Listing, *, dates: tuple[str, ...]) -> TableResult:
    from ipy_memory.notebook.result import TableResult

    return TableResult(found.headers, found.rows, dates=dates, notes=found.notes)
