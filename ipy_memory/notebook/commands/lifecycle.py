"""``%memory view``, ``enqueue``, ``clear`` and ``rebind``: what memory adds to a prompt, and turning points."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import handles
from ipy_memory.paths import check_path, here, typed_path

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@handles("view")
def view(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Show the injection payload: the instructions with the cached blocks."""
    from ipy_memory.notebook.result import TextResult

    magics.session.live_backend()
    return TextResult(magics.session.developer_instructions())


@handles("enqueue")
def enqueue(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Force retention and consolidation (A-12)."""
    from ipy_memory.notebook.result import TextResult

    bank = magics.session.live_backend().retain_bank
    magics.session.enqueue()
    return TextResult(f"Retention of this session was forced, to bank {bank}.")


@handles("clear")
def clear(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Name what will go; with ``--yes`` copy it and let it go (A-11)."""
    from ipy_memory.notebook.result import TextResult

    session = magics.session
    backend = session.live_backend()
    rescued = [parsed.flags["rescued"]] if "rescued" in parsed.flags else []
    files = session.clear_files(rescued=rescued)
    home = session.env.get("HOME", "")
    if "yes" not in parsed.flags:
        what = ", ".join(shown_path(file, home) for file in files)
        if backend.name == "hindsight":
            what = f"the local state of bank {backend.retain_bank}; the bank on the server stays"
        raise MagicError(
            f"this would clear {what or 'nothing: no bank in scope has a file'}",
            hint="%memory clear --yes does it, and copies each file first unless --no-backup is given",
        )
    magics.end_recording()
    done = session.clear(rescued=rescued, backup="no-backup" not in parsed.flags)
    lines = [f"Cleared: {shown_path(file, home)}" for file in done.emptied]
    lines += [f"Copy made first: {shown_path(copy, home)}" for copy in done.copies]
    if done.warning:
        lines.append(done.warning)
    return TextResult("\n".join(lines) or "There was nothing to clear.")


@handles("rebind")
def rebind(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Hand over: what waits and what was said so far goes to the old banks, all that follows to the new ones."""
    from ipy_memory.notebook.result import TextResult

    named = parsed.word
    folder = check_path(typed_path(named, magics.session.env) if named else here(), "the folder")
    if not os.path.isdir(folder):  # noqa: PTH112  a folder that cannot be looked into is none
        raise MagicError(f"there is no folder {folder}", hint="make it first, or mend the path")
    session = magics.session
    magics.end_recording()
    session.rebind(folder)
    if named or magics.cwd:
        magics.cwd = session.cwd
    bank = session.live_backend().retain_bank
    home = session.env.get("HOME", "")
    return TextResult(
        f"The scope is now of {shown_path(Path(session.cwd), home)}: memories are written to bank {bank}."
    )
