"""``%memory open``: look into any bank file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import command
from ipy_memory.notebook.parse import Parsed

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@command("open", "PATH", "Read one bank file, wherever it lies, until %memory use chooses again; nothing is written.")
def open_file(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Let the magics read just this file; the path is the rest of the line, blanks and all."""
    from ipy_memory.inspect.bank_file import open_bank_file
    from ipy_memory.notebook.result import TextResult

    path = parsed.text.strip()
    if not path:
        raise MagicError("%memory open takes the path of a bank file", hint="see %memory open -h")
    session = open_bank_file(path, **magics.surroundings())
    magics.adopt(session)
    return TextResult(f"Reading bank {session.live_backend().retain_bank} only; %memory use mnemopi ends it.")
