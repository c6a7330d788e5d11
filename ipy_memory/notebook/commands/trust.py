"""``%memory trust``: which project folders may decide where memories go, and which keys and files are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult, TextResult


@handles("trust")
def trust(magics: MemoryMagics, parsed: Parsed) -> TableResult | TextResult:
    """Trust a folder for what its files say now, list the trusted folders, or end the trust of one."""
    from ipy_memory.explore.trusting import trust_answer
    from ipy_memory.notebook.result import TableResult, TextResult

    listing = "list" in parsed.flags
    if not listing:
        magics.end_recording()
    found = trust_answer(magics.session, parsed.word, listing=listing, revoke="revoke" in parsed.flags)
    return TableResult(found.headers, found.rows, notes=found.notes) if found.headers else TextResult(found.text)
