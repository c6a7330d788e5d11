"""What a live session does when its settings, its folder or the trust of its folder change.

Other banks are gone over to in one order: what is pending, and what was said so far, goes to the old ones first, and
nothing of it to the new ones.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.jscompat.dates import iso
from ipy_memory.paths import check_path, here, typed_path
from ipy_memory.scoping.project import resolve_path
from ipy_memory.session.turns import SETTINGS_SOURCE
from ipy_memory.settings import trust
from ipy_memory.settings.resolve import Settings, load_settings
from ipy_memory.settings.table import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ipy_memory.session.memory_session import MemorySession
    from ipy_memory.settings.trust import Standing


def with_absolute_paths(changes: Mapping[str, object]) -> dict[str, object]:
    """Return settings that are given in code with paths that stay where they lead now.

    They are not otherwise read: a setting of the agent's knows no ``~`` and no variables.
    """
    path = changes.get("mnemopi.dbPath")
    relative = isinstance(path, str) and path.strip() and not path.startswith("/")
    return {**changes, "mnemopi.dbPath": os.path.join(here(), str(path))} if relative else dict(changes)  # noqa: PTH118


def trust_of(session: MemorySession, folder: str) -> bool | None:
    """Return what the caller said of a folder; a yes is for the folder that the session was opened in."""
    said = session.said_trust
    return said if not said or trust.real_folder(folder) == session.opened_in else None


def read_settings(session: MemorySession, folder: str) -> Settings:
    """Return the settings as files and environment give them now, for a folder, under what was given in code."""
    given = {name: entry.value for name, entry in session.settings.session.items()}
    return load_settings(session.agent_dir, folder, session.env, given, trust=trust_of(session, folder))


def change_settings(session: MemorySession, changes: Mapping[str, object]) -> None:
    """Change settings while the session lives; ``None`` undoes a change.

    They take effect at the next call. What is said while automatic retention is off is never retained by itself.

    Parameters
    ----------
    session
        On any backend, or on none.
    changes
        New values by dotted name.

    Raises
    ------
    SettingsError
        There is no such setting, it cannot have that value, or it cannot change while the session lives; nothing
        has changed.
    """
    settings = session.settings.with_overrides(with_absolute_paths(changes))
    said = () if session.paused else session.pauses.kept(session.messages)
    backend = session.backend
    if backend is not None and backend.name == settings.get("memory.backend"):
        session.begun &= not backend.follow(session._surroundings(settings), said)
    switch = f"{session.chosen}.autoRetain"
    if switch in SETTINGS and session.settings.get(switch) != settings.get(switch):
        session.pauses.mute(session.messages, on=not settings.get(switch))
    session.settings = settings


def rebind(session: MemorySession, cwd: str | os.PathLike[str] | None, changes: Mapping[str, object]) -> None:
    """Go on in another folder or another scope, with the project settings that belong to it.

    Parameters
    ----------
    session
        On any backend, or on none.
    cwd
        The folder; ``None`` for the same one.
    changes
        New settings by dotted name, as :func:`change_settings` takes them.

    Raises
    ------
    SettingsError
        There is no such setting, or it cannot have that value; nothing has changed.
    """
    folder = session.cwd
    if cwd is not None:
        folder = check_path(resolve_path(typed_path(os.fspath(cwd), session.env)), "the project folder")
    settings = read_settings(session, folder).with_overrides(with_absolute_paths(changes))
    if session.paused:
        session.pauses.leave(session.messages)
    said = session._kept()
    backend = session.backend
    same = backend is not None and backend.name == settings.get("memory.backend")
    same = same and settings.engine() == session.settings.engine()
    if backend is None or not same:
        session.close()
    else:
        session.begun &= not backend.move(session._surroundings(settings, folder), said)
    session.settings, session.cwd = settings, folder
    if not same:
        session.install_backend()
        if session.backend is not None:
            session.backend.begin_after(said)
    session.notices.tell_settings(settings.notes())


def rescope(session: MemorySession, mode: str) -> None:
    """Go on in another scoping mode, which decides which banks are written and read.

    Raises
    ------
    MemoryToolkitError
        The session is bound to its banks, or its backend has one scope only.
    """
    backend = session.live_backend()
    if not backend.movable:
        raise MemoryToolkitError("This session is bound to its banks.", hint="open another session")
    if f"{backend.name}.scoping" not in SETTINGS:
        raise backend.refusal("another scope", "it has one scope only")
    rebind(session, None, {f"{backend.name}.scoping": mode})


def trust_folder(session: MemorySession, folder: str | os.PathLike[str] | None = None) -> Standing:
    """Trust a folder to decide where memories go, as long as its guarded settings stay what they are.

    The folder is remembered, for other sessions too; this one follows at once if the folder is its own.

    Parameters
    ----------
    session
        On any backend, or on none.
    folder
        The folder; the session's own by default.

    Returns
    -------
    Standing
        Which settings of which files are trusted; none where the folder's files set nothing guarded.

    Raises
    ------
    MemoryToolkitError
        What the files say has changed since this session read them: look at it first. Or the list of trusted
        folders cannot be written.
    """
    named, own = _named_folder(session, folder)
    seen = session.settings.standing.guarded
    said = trust_of(session, session.cwd)
    if own and trust.read_sources(session.agent_dir, named, session.env, [], trust=said).standing.guarded != seen:
        session.rebind()
        raise MemoryToolkitError(
            "The folder's settings have changed since they were read; it is not trusted yet.",
            where=named,
            hint="look at them, and trust it again",
        )
    standing = trust.trust_folder(session.agent_dir, named, session.env, iso(session.clock.now_ms()))
    if own:
        session.said_trust = None
        session.notices.take(SETTINGS_SOURCE)  # not shown yet, and said of the folder before it was trusted
        session.rebind()
    return standing


def revoke_trust(session: MemorySession, folder: str | os.PathLike[str] | None = None) -> bool:
    """End the trust of a folder, by default the session's own; return whether it was trusted.

    Raises
    ------
    MemoryToolkitError
        The list of trusted folders cannot be read or written.
    """
    named, own = _named_folder(session, folder)
    revoked = trust.remove_trusted(session.agent_dir, named)
    if own:
        revoked |= trust_of(session, session.cwd) is True
        session.said_trust = None
        session.rebind()
    return revoked


def _named_folder(session: MemorySession, folder: str | os.PathLike[str] | None) -> tuple[str, bool]:
    """Return a folder that the user names, and whether it is the session's own."""
    named = session.cwd if folder is None else typed_path(os.fspath(folder), session.env)
    check_path(named, "the folder")
    return named, trust.real_folder(named) == trust.real_folder(session.cwd)
