"""``%memory use`` and ``%memory scope``: which backend and which banks, for this notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed, one_of
from ipy_memory.commands.table import PANELS
from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult, TextResult
    from ipy_memory.notebook.widgets.display import Panel
    from ipy_memory.session import MemorySession


@handles("use")
def use(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Choose the backend; the next magic opens its session."""
    from ipy_memory.notebook.result import TextResult

    magics.close_session()
    magics.backend = parsed.word
    return TextResult(f"Memory backend of this notebook: {magics.backend}")


@handles("scope")
def scope(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Choose the scoping; what waits to be sent goes to the old bank first."""
    from ipy_memory.explore.scopes import read, scope_in_force, written
    from ipy_memory.notebook.result import TextResult

    magics.scope = parsed.word
    lines = [f"Memory scope of this notebook: {magics.scope}"]
    if row := scope_in_force(magics.session):
        lines += [f"writes: {written(row)}", f"reads: {read(row)}"]
    return TextResult("\n".join(lines))


@handles("status")
def status(magics: MemoryMagics, _: Parsed) -> TableResult:
    """Show the session, then every setting that is not at its default."""
    from ipy_memory.explore.status import status_notes, status_rows
    from ipy_memory.notebook.result import TableResult

    session = magics.session
    rows = [(row.name, row.value, row.origin) for row in status_rows(session, folder_chosen=bool(magics.cwd))]
    return TableResult(("what", "value", "from"), rows, notes=status_notes(session))


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


@handles("panel")
def panel(magics: MemoryMagics, parsed: Parsed) -> Panel | None:
    """Open a panel on this notebook's memory; all of them follow ``%memory use`` and ``%memory scope``."""
    from ipy_memory.notebook import directory
    from ipy_memory.notebook.widgets import panel_on
    from ipy_memory.notebook.widgets.session_hub import Desk

    if {"static", "live"} <= set(parsed.flags):
        raise MagicError("--static and --live exclude each other", hint="leave one of the two out")
    kind, _, text = parsed.word.partition(" ")
    kind = one_of("the panel", kind or PANELS[0], PANELS)

    def rescope(mode: str) -> None:
        magics.scope = mode

    def session_here() -> MemorySession:
        directory.follow(magics)
        return magics.session

    desk = magics.panels
    if desk is None:
        desk = magics.panels = Desk(session_here, rescope, told=True)
        magics.observe(lambda _: desk.changed(), list(magics.trait_names(config=True)))
    static = True if "static" in parsed.flags else False if "live" in parsed.flags else None
    made = panel_on(desk, kind, text, static=static)
    if parsed.quiet:
        return None
    if made.live:
        made.widget  # noqa: B018  made while signs of life are shown: its libraries take long to import
    return made
