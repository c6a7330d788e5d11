"""``%memory open``: look into any bank file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@handles("open")
def open_file(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Let the magics read just this file; the path is the rest of the line, blanks and all."""
    from ipy_memory.explore.banks import open_bank_file
    from ipy_memory.notebook.result import TextResult

    session = open_bank_file(parsed.word, **magics.surroundings())
    magics.adopt(session)
    return TextResult(f"Reading bank {session.live_backend().retain_bank} only; %memory use mnemopi ends it.")
