"""``%memory status``: what the magics use, and where each setting comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed
from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult


@handles("status")
def status(magics: MemoryMagics, _: Parsed) -> TableResult:
    """Show the session, then every setting that is not at its default; credentials are masked (E-03)."""
    from ipy_memory.backends import SUPPORTED
    from ipy_memory.mnemopi.reports import homely
    from ipy_memory.notebook.result import TableResult

    session = magics.session
    chosen = session.chosen in SUPPORTED
    behind = {"scope": f"{session.chosen}.scoping", "database": "mnemopi.dbPath"} if chosen else {}
    rows = []
    home = session.env.get("HOME") or str(Path.home())
    for row in session.status():
        if row.name == "note" and magics.cwd:
            continue  # a project folder that was named stays, wherever the process goes
        origin = row.origin or (session.settings.origin(behind[row.name]) if row.name in behind else "")
        rows.append((row.name, homely(row.value, home), homely(origin, home)))
    rows += [
        (row.name, homely(row.words, home), homely(row.origin, home))
        for row in session.settings.table()
        if row.origin != "default" and row.name not in {"memory.backend", *behind.values()}
    ]
    notes = [] if chosen else ["No memory backend is chosen: choose one with %memory use mnemopi (or hindsight)."]
    return TableResult(("what", "value", "from"), rows, notes=notes)
