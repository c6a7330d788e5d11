"""``%memory status``: what the magics use, and where each setting comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult


@handles("status")
def status(magics: MemoryMagics, _: Parsed) -> TableResult:
    """Show the session, then every setting that is not at its default."""
    from ipy_memory.explore.status import status_notes, status_rows
    from ipy_memory.notebook.result import TableResult

    session = magics.session
    rows = [(row.name, row.value, row.origin) for row in status_rows(session, folder_chosen=bool(magics.cwd))]
    return TableResult(("what", "value", "from"), rows, notes=status_notes(session))
