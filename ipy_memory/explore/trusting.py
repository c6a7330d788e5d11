"""Trusting a project folder, ending its trust, and the list of trusted folders: what every face shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.errors import MagicError
from ipy_memory.paths import check_path, typed_path
from ipy_memory.settings.resolve import shown_value
from ipy_memory.settings.trust import trusted_folders

if TYPE_CHECKING:
    from ipy_memory.session import MemorySession


@dataclass(frozen=True, slots=True)
class TrustAnswer:
    """What was done or found: a sentence, or rows below headers with notes."""

    text: str = ""
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def trust_answer(session: MemorySession, named: str, *, listing: bool = False, revoke: bool = False) -> TrustAnswer:
    """Trust a folder for what its files say now, list the trusted folders, or end the trust of one.

    Parameters
    ----------
    session
        The folder is its own where none is named.
    named
        The folder as the user types it.
    listing, revoke
        What to do instead of trusting; not both.
    """
    home = session.env.get("HOME", "")
    if listing:
        if named or revoke:
            raise MagicError("--list takes nothing more", hint="see %memory trust -h")
        return _listed(session, home)
    folder = check_path(typed_path(named, session.env) if named else session.cwd, "the folder")
    shown = shown_path(Path(folder), home)
    if revoke:
        if session.revoke_trust(folder):
            return TrustAnswer(f"{shown} is no longer trusted: guarded settings of its files are not used.")
        return TrustAnswer(f"{shown} was not trusted.")
    if not Path(folder).is_dir():
        raise MagicError(f"there is no folder {folder}", hint="check the path")
    standing = session.trust_folder(folder)
    if not standing.guarded:
        return TrustAnswer(f"The files of {shown} set nothing that needs trust.")
    rows = tuple((each.name, str(shown_value(each.name, each.value)), each.file) for each in standing.guarded)
    note = f"{shown} is trusted: these settings count until one of them changes. To end it: %memory trust --revoke"
    return TrustAnswer(headers=("setting", "value", "from"), rows=rows, notes=(note,))


def _listed(session: MemorySession, home: str) -> TrustAnswer:
    folders = trusted_folders(session.agent_dir).values()
    if not folders:
        return TrustAnswer("No folder is trusted.")
    rows = tuple((shown_path(Path(one.folder), home), one.since[:10], ", ".join(one.settings)) for one in folders)
    return TrustAnswer(headers=("folder", "since", "settings"), rows=rows)
