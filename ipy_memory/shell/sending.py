"""The program's commands about a Hindsight server's work: ``queue``, ``flush`` and ``operations``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.shell.output import DONE, NO, Result, in_shell_words, table

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.explore.sending import Listing, Sent
    from ipy_memory.session import MemorySession


def queue(session: MemorySession, parsed: Parsed) -> Result:
    """List what no server is known to have, or send it again, or drop it."""
    from ipy_memory.explore import sending

    if "drop" in parsed.flags:
        said = sending.drop(session, parsed.flags)
        return Result(said, {"text": said})
    if sending.asks_to_send(parsed.flags):
        return _sent(sending.send(session, parsed.flags))
    return _listed("items", sending.queue_listing(session), "Nothing waits.")


def flush(session: MemorySession, parsed: Parsed) -> Result:
    """Send what waits now, or finish the work on local banks."""
    from ipy_memory.explore import sending

    return _sent(sending.flush(session, parsed.flags))


def operations(session: MemorySession, parsed: Parsed) -> Result:
    """List the work that the server took on."""
    from ipy_memory.explore import sending

    return _listed("operations", sending.operations(session, parsed.flags.get("page", 1)), "No operations.")


def _sent(done: Sent) -> Result:
    """Return what was sent; what is not known to have arrived is an answer of no."""
    said = in_shell_words(done.text)
    return Result(said, {"text": said, "left": done.left}, code=NO if done.left else DONE)


def _listed(name: str, found: Listing, empty: str) -> Result:
    keys = [header.replace(" ", "_") for header in found.headers]
    rows = [dict(zip(keys, row, strict=True)) for row in found.rows]
    return Result(table(found.headers, found.rows, empty), {name: rows}, found.notes)
