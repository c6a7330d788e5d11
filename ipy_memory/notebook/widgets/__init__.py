"""Panels: search, look, repair, store and ask in a notebook, with the mouse or the keyboard.

Everything a panel shows is also there as plain text and as HTML, wherever no widget can live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.table import PANELS
from ipy_memory.errors import MagicError

if TYPE_CHECKING:
    from ipy_memory.notebook.widgets.display import Panel
    from ipy_memory.notebook.widgets.session_hub import Desk
    from ipy_memory.session import MemorySession


def panel(session: MemorySession, kind: str = "recall", text: str = "", *, static: bool | None = None) -> Panel:
    """Return a panel on a session; as a cell's value it shows itself.

    Parameters
    ----------
    session
        Panels on the same session tell each other of every change.
    kind
        ``"recall"``, ``"banks"``, ``"memory"``, ``"retain"`` or ``"reflect"``.
    text
        What it starts with: a query, the id of a memory, or a question.
    static
        ``True``: text and HTML alone; ``False``: the widget wherever its libraries are there; by default the widget
        is shown where the user can answer it (environment variable ``IPY_MEMORY_STATIC`` switches it off).

    Raises
    ------
    MagicError
        There is no panel of this kind, or it takes no text.
    """
    from ipy_memory.notebook.widgets.session_hub import Desk

    if session.panels is None:
        session.panels = Desk(lambda: session, session.rescope)
    return panel_on(session.panels, kind, text, static=static)


def panel_on(desk: Desk, kind: str, text: str = "", *, static: bool | None = None) -> Panel:
    """Return a panel on a desk, already filled with what its text asks for."""
    from ipy_memory.notebook.widgets.display import Panel
    from ipy_memory.notebook.widgets.memory import MemoryState
    from ipy_memory.notebook.widgets.recall import BanksState, RecallState
    from ipy_memory.notebook.widgets.retain import ReflectState, RetainState

    if kind not in PANELS:
        raise MagicError(f"there is no {kind!r} panel", hint=f"there are {', '.join(PANELS)}")
    if kind in {"banks", "retain"} and text.strip():
        raise MagicError(f"the {kind} panel takes nothing more", hint=f"as in: %memory panel {kind}")
    desk.session.live_backend()
    if kind == "banks":
        return Panel(BanksState(desk), static=static)
    if kind == "retain":
        return Panel(RetainState(desk), static=static)
    if kind == "memory":
        memory = MemoryState(desk)
        if text.strip():
            memory.attempt(lambda: memory.open(text))
        return Panel(memory, static=static)
    if kind == "reflect":
        answer = ReflectState(desk)
        if text.strip():
            answer.attempt(lambda: answer.reflect(text))
        return Panel(answer, static=static)
    found = RecallState(desk)
    if text.strip():
        found.attempt(lambda: found.typed(text))
    return Panel(found, static=static)
