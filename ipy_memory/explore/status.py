"""What a session uses, and where each of its settings comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.base import SUPPORTED
from ipy_memory.backends.mnemopi.admin.stats import homely
from ipy_memory.explore.versions import version_rows
from ipy_memory.session import StatusRow

if TYPE_CHECKING:
    from ipy_memory.session import MemorySession

NOT_CHOSEN = "No memory backend is chosen: choose one with %memory use mnemopi (or hindsight)."


def status_rows(session: MemorySession, *, folder_chosen: bool = False, whole_paths: bool = False) -> list[StatusRow]:
    """Return the session in rows, then every setting that is not at its default; credentials are masked.

    Parameters
    ----------
    session
        On any backend, or on none.
    folder_chosen
        Whether the user named the project folder, so that the working directory does not matter.
    whole_paths
        Whether paths are written in full; otherwise the home folder is ``~``.
    """
    behind = {"scope": f"{session.chosen}.scoping", "database": "mnemopi.dbPath"} if is_chosen(session) else {}
    home = session.env.get("HOME") or str(Path.home())

    def shown(text: str) -> str:
        if whole_paths:
            return f"{home}{text[1:]}" if text.startswith("~/") else text
        return homely(text, home)

    rows = [
        StatusRow(
            row.name,
            shown(row.value),
            shown(row.origin or (session.settings.origin(behind[row.name]) if row.name in behind else "")),
        )
        for row in (*session.status(), *version_rows(session))
        if not (row.name == "note" and folder_chosen)
    ]
    return rows + [
        StatusRow(row.name, shown(row.words), shown(row.origin))
        for row in session.settings.table()
        if row.origin != "default" and row.name not in {"memory.backend", *behind.values()}
    ]


def status_notes(session: MemorySession) -> list[str]:
    """Return what the user should know or do."""
    return [] if is_chosen(session) else [NOT_CHOSEN]


def is_chosen(session: MemorySession) -> bool:
    """Return whether a backend is chosen that has tools."""
    return session.chosen in SUPPORTED
