"""``%memory show``: one stored memory in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import command, one_word
from ipy_memory.notebook.parse import Parsed

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@command("show", "ID", "Show one memory in full, by the id that recall shows.")
def show(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show what ``memory://<id>`` shows the agent (M-05)."""
    from ipy_memory.notebook.result import TextResult

    return TextResult(magics.session.read(one_word(parsed, "one id", "show").removeprefix("memory://")))
