"""``%memory banks`` and ``%memory scopes``: where memories lie, and what each scope would read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles
from ipy_memory.notebook.remote import remote_banks, remote_if_any

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame, TableResult

BANK_COLUMNS = ("name", "use", "reason", "working", "episodic", "facts", "size", "last_memory", "cwds", "error")


@handles("banks")
def banks(magics: MemoryMagics, parsed: Parsed) -> ListFrame | TableResult:
    """List the banks (L-05); reads only."""
    from ipy_memory.explore import banks as listing
    from ipy_memory.notebook.result import ListFrame

    if server := remote_if_any(magics):
        return remote_banks(server, parsed.flags.get("page", 1))
    found = listing.banks(magics.session, magics.progress("banks"))
    return ListFrame(found, BANK_COLUMNS, notes=[listing.count_note(len(found))], quiet=parsed.quiet)


@handles("scopes")
def scopes(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Compare the modes of both backends; nothing is counted or written."""
    from ipy_memory.explore import scopes as comparing
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.notebook.result import ListFrame

    query = parsed.text if parsed.given else None
    folder, session = parsed.flags.get("folder"), magics.session
    rows = comparing.scope_rows(session, query, cwd=folder)
    columns, shown = comparing.shown_scopes(rows, query)
    return ListFrame(
        comparing.scopes_frame(rows, session, query, cwd=folder),
        columns,
        shown=DataFrame(shown, columns=columns, dtype="object"),
        notes=["The frame of this result also has files, ids of hits, tags and filters in columns of their own."],
        quiet=parsed.quiet,
    )
