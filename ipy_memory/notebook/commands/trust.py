"""``%memory trust``: which project folders may decide where memories go, and which keys and files are used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed
from ipy_memory.errors import MagicError
from ipy_memory.mnemopi.reports import shown_path
from ipy_memory.notebook.commands import handles
from ipy_memory.paths import check_path, typed_path

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult, TextResult


@handles("trust")
def trust(magics: MemoryMagics, parsed: Parsed) -> TableResult | TextResult:
    """Trust a folder for what its files say now, list the trusted folders, or end the trust of one."""
    from ipy_memory.notebook.result import TextResult

    named, session = parsed.text.strip(), magics.session
    home = session.env.get("HOME", "")
    if "list" in parsed.flags:
        if named or "revoke" in parsed.flags:
            raise MagicError("--list takes nothing more", hint="see %memory trust -h")
        return _listed(magics, home)
    folder = check_path(typed_path(named, session.env) if named else session.cwd, "the folder")
    shown = shown_path(Path(folder), home)
    magics.end_recording()
    if "revoke" in parsed.flags:
        if session.revoke_trust(folder):
            return TextResult(f"{shown} is no longer trusted: guarded settings of its files are not used.")
        return TextResult(f"{shown} was not trusted.")
    if not Path(folder).is_dir():
        raise MagicError(f"there is no folder {folder}", hint="check the path")
    return _trusted(magics, folder, shown)


def _trusted(magics: MemoryMagics, folder: str, shown: str) -> TableResult | TextResult:
    from ipy_memory.notebook.result import TableResult, TextResult
    from ipy_memory.settings import shown_value

    standing = magics.session.trust_folder(folder)
    if not standing.guarded:
        return TextResult(f"The files of {shown} set nothing that needs trust.")
    rows = [(each.name, shown_value(each.name, each.value), each.file) for each in standing.guarded]
    note = f"{shown} is trusted: these settings count until one of them changes. To end it: %memory trust --revoke"
    return TableResult(("setting", "value", "from"), rows, notes=[note])


def _listed(magics: MemoryMagics, home: str) -> TableResult | TextResult:
    from ipy_memory.notebook.result import TableResult, TextResult
    from ipy_memory.trust import trusted_folders

    folders = trusted_folders(magics.session.agent_dir).values()
    if not folders:
        return TextResult("No folder is trusted.")
    rows = [(shown_path(Path(one.folder), home), one.since[:10], ", ".join(one.settings)) for one in folders]
    return TableResult(("folder", "since", "settings"), rows)
