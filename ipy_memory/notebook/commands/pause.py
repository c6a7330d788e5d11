"""``%memory pause`` and ``%memory resume``: a while of which nothing is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@handles("pause")
def pause(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Pause memory; further sessions of this notebook are paused too."""
    return _switched(magics, on=True)


@handles("resume")
def resume(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Go on; what was said or run during the pause is never retained."""
    return _switched(magics, on=False)


def _switched(magics: MemoryMagics, *, on: bool) -> TextResult:
    from ipy_memory.notebook.result import TextResult

    was = magics.paused
    magics.set_paused(on)
    if on:
        line = "Memory is paused: nothing is recorded, retained or counted until %memory resume. Recall goes on."
        if magics.recorder is not None:
            line += " Cells that are run meanwhile are not recorded, and never will be."
    else:
        line = "Memory goes on." if was else "Memory was not paused."
    return TextResult(line)
