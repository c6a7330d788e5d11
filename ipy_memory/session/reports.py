"""What a session says of itself: its status in rows, and the answers of the agent's memory command."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory import text
from ipy_memory.backends import registry
from ipy_memory.paths import here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlite_utils import Database

    from ipy_memory.session.memory_session import MemorySession


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One line of a status: what, its value as the user reads it, and where it comes from."""

    name: str
    value: str
    origin: str = ""


def session_rows(session: MemorySession) -> list[StatusRow]:
    """Return the session in rows: backend, scope, banks, place, vectors, settings with their origins."""
    rows = [
        StatusRow("backend", session.chosen, session.settings.origin("memory.backend")),
        StatusRow("session", session.session_id),
        StatusRow("folder", session.cwd),
    ]
    if session.paused:
        rows.append(StatusRow("paused", "nothing is recorded, retained or counted; %memory resume ends it"))
    with suppress(FileNotFoundError):
        if (now := here()) != session.cwd:
            rows.append(StatusRow("note", f"the working directory is now {now}; the scope is of {session.cwd}"))
    if session.backend is not None:
        known = dict(session.backend.status())
        if (vectors := session.backend.vectors()) is not None:
            known["vectors"] = vectors.summary
        rows += [
            StatusRow(name, ", ".join(value) if isinstance(value, list | tuple) else str(value))
            for name, value in known.items()
            if value is not None
        ]
    return [*rows, *_settings_rows(session)]


def _settings_rows(session: MemorySession) -> list[StatusRow]:
    """Return what the user should know of the settings: whether the folder is trusted, and what is ignored."""
    settings, standing = session.settings, session.settings.standing
    rows = []
    if standing.state != "nothing":
        since = f" since {standing.since[:10]}" if standing.since else " in this session"
        words = {"trusted": f"yes,{since}", "untrusted": "no", "changed": "no longer: its guarded settings changed"}
        rows.append(StatusRow("trusted folder", words[standing.state], standing.folder))
    return rows + [StatusRow("settings", note) for note in settings.notes()]


def database(session: MemorySession, bank: str | None = None) -> Database:
    """Return a bank as a read-only :class:`sqlite_utils.Database`, for SQL of one's own.

    Parameters
    ----------
    session
        On local banks.
    bank
        A bank by name; by default the one that is written.

    Returns
    -------
    sqlite_utils.Database
        With a connection of its own; close it with ``.close()``. Nothing can be written through it, triggers and views
        of the file run with SQLite's untrusted schema settings, and no plugin of sqlite-utils is loaded.

    Raises
    ------
    NotSupportedError
        The memory is on a server.
    BankError
        There is no such bank, or its file cannot be read.
    """
    from sqlite_utils import Database

    return Database(session.live_backend().connect(bank), recursive_triggers=False, execute_plugins=False)


def search(session: MemorySession, query: str, limit: float | None = None) -> Mapping[str, Any]:
    """Search as the command does: at most 50 items, 10 by default.

    Parameters
    ----------
    session
        On any backend, or on none.
    query
        Taken literally.
    limit
        The most items to give.

    Returns
    -------
    mapping
        ``backend``, ``query``, ``count`` and ``items``; with a ``message`` where there is nothing to search.
    """
    found = backend.search(query, limit) if (backend := session.active_backend) else None
    none = {"backend": session.chosen, "query": query, "count": 0, "items": []}
    return none | {"message": _not_there(session, "search")} if found is None else found


def save(session: MemorySession, content: str, **options: Any) -> Mapping[str, Any]:
    """Store one memory as the command does; ``options`` are its context, importance, source and veracity.

    Raises
    ------
    PausedError
        Memory is paused; nothing was stored.
    """
    session.check_not_paused()
    stored = backend.save(content, **options) if (backend := session.active_backend) else None
    none = {"backend": session.chosen, "stored": 0}
    return none | {"message": _not_there(session, "save")} if stored is None else stored


def describe(session: MemorySession) -> Mapping[str, Any]:
    """Return the answer of the command's status; reads only."""
    found = backend.describe() if (backend := session.active_backend) else None
    if found is not None:
        return found
    # Of a backend without a status of its own the agent says that it is active, whether it has a state or not.
    active = session.chosen not in ("off", "mnemopi")
    none = {"backend": session.chosen, "active": active, "writable": False, "searchable": False}
    return none | {"message": _not_there(session, "status")}


def _not_there(session: MemorySession, command: str) -> str:
    if session.chosen == "mnemopi":
        return text.not_initialised(registry.title(session.chosen))
    return text.command_unavailable(command, session.chosen)
