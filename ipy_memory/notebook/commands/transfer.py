"""``%memory export`` and ``%memory import``: banks to a file and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@handles("export")
def export(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Write banks to a new file."""
    from ipy_memory.explore import transfer
    from ipy_memory.notebook.result import TextResult

    done = transfer.export(
        magics.session,
        parsed.text.strip(),
        bank=parsed.flags.get("bank"),
        form=parsed.flags.get("format"),
        vectors="vectors" in parsed.flags,
        redacted="redact" in parsed.flags,
        progress=magics.progress("rows"),
    )
    return TextResult(str(done), notes=done.notes)


@handles("import")
def take_in(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Take banks in from an archive, or say what would be taken in."""
    from ipy_memory.explore import transfer
    from ipy_memory.notebook.result import TextResult

    magics.session.check_not_paused()
    done = transfer.import_archive(
        magics.session,
        parsed.text.strip(),
        into=parsed.flags.get("into"),
        dry_run="dry-run" in parsed.flags,
        conflict=parsed.flags.get("on-conflict", "skip"),
        progress=magics.progress("rows"),
    )
    if magics.panels is not None:
        magics.panels.changed()
    return TextResult(str(done), notes=done.notes)
