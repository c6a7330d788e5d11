"""``%memory use`` and ``%memory scope``: which backend and which banks, for this notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@handles("use")
def use(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Choose the backend; the next magic opens its session."""
    from ipy_memory.notebook.result import TextResult

    magics.close_session()
    magics.backend = parsed.word
    return TextResult(f"Memory backend of this notebook: {magics.backend}")


@handles("scope")
def scope(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Choose the scoping; what waits to be sent goes to the old bank first (S-13)."""
    from ipy_memory.explore.scopes import read, scope_in_force, written
    from ipy_memory.notebook.result import TextResult

    magics.scope = parsed.word
    lines = [f"Memory scope of this notebook: {magics.scope}"]
    if row := scope_in_force(magics.session):
        lines += [f"writes: {written(row)}", f"reads: {read(row)}"]
    return TextResult("\n".join(lines))
