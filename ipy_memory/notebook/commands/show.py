"""``%memory show``: one stored memory in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@handles("show")
def show(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show the page of one memory (M-05)."""
    from ipy_memory.notebook.result import TextResult

    return TextResult(magics.session.show(parsed.word, bank=parsed.flags.get("bank")))
