"""The working directory of a notebook's memory: what happens when it changes.

A folder that nobody named follows the process; one that was named stays, and so does a session that is recorded. Both
are said in one line, once for each change.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.scoping.project import resolve_path

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.session import MemorySession

_OWN_CHOICE = ("open", "rebind", "use")
"""Commands that choose themselves what is read and written."""


def follow(magics: MemoryMagics, line: str = "") -> None:
    """Let the memory follow a change of the working directory since the last look, or say why it stays.

    Parameters
    ----------
    magics
        Of the notebook.
    line
        What was typed after the magic's name.
    """
    now, before = _here(), magics.directory
    magics.directory = now
    session = magics.open_session
    if session is None or now is None or resolve_path(now) == session.cwd:
        return
    if line.split()[:1] in ([word] for word in _OWN_CHOICE):
        return
    home = session.env.get("HOME", "")
    place = f"the working directory is now {shown_path(now, home)}"
    if magics.follows and magics.recorder is None:
        left = session.cwd
        session.rebind(now)
        back = f"to go back: %memory rebind {shown_path(left, home)}"
        session.notify("info", f"{place}, and memory follows: it {_written(session)}; {back}", "ipy_memory")
    elif before not in (None, now):
        why = "recording goes on there" if magics.follows else "this folder was chosen"
        stays = f"memory stays in the scope of {shown_path(session.cwd, home)} ({why}): it {_written(session)}"
        session.notify("info", f"{place}; {stays}; to move: %memory rebind", "ipy_memory")


def _written(session: MemorySession) -> str:
    try:
        return f"writes to bank {session.live_backend().retain_bank}"
    except MemoryToolkitError:
        return "writes nothing, since no backend is chosen"


def _here() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  links are not resolved
    except FileNotFoundError:
        return None
