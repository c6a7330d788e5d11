"""``%memory panel``: search, look, mend, store and ask with the mouse or the keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed, one_of
from ipy_memory.commands.table import PANELS
from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.widgets.display import Panel
    from ipy_memory.session import MemorySession


@handles("panel")
def panel(magics: MemoryMagics, parsed: Parsed) -> Panel | None:
    """Open a panel on this notebook's memory; all of them follow ``%memory use`` and ``%memory scope``."""
    from ipy_memory.notebook import directory
    from ipy_memory.notebook.widgets import panel_on
    from ipy_memory.notebook.widgets.session_hub import Desk, desk_of

    if {"static", "live"} <= set(parsed.flags):
        raise MagicError("--static and --live exclude each other", hint="leave one of the two out")
    kind, _, text = parsed.word.partition(" ")
    kind = one_of("the panel", kind or PANELS[0], PANELS)

    def rescope(mode: str) -> None:
        magics.scope = mode

    def session_here() -> MemorySession:
        directory.follow(magics)
        return magics.session

    def make() -> Desk:
        desk = Desk(session_here, rescope, told=True)
        magics.observe(lambda _: desk.changed(), list(magics.trait_names(config=True)))
        return desk

    desk = desk_of(magics, make)
    static = True if "static" in parsed.flags else False if "live" in parsed.flags else None
    made = panel_on(desk, kind, text, static=static)
    if parsed.quiet:
        return None
    if made.live:
        made.widget  # noqa: B018  made while signs of life are shown: its libraries take long to import
    return made
