"""``%memory stats|diagnose|doctor|consolidate``: how the banks are, and mending them on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import command
from ipy_memory.notebook.parse import Flag, Parsed
from ipy_memory.notebook.remote import remote_if_any

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame, TextResult

DOCTOR_COLUMNS = ("bank", "part", "what", "state", "detail")
_BANK = Flag("bank", "this one bank of the database folder", "NAME")


@command("stats", "", "Show how much each bank in scope holds, and what happens to it when.")
def stats(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show the agent's own table (M-08), and below it the rule by which memories age."""
    from ipy_memory.inspect.ageing import ageing_notes
    from ipy_memory.notebook.result import TextResult

    _alone(parsed, "stats")
    shown = magics.session.stats()
    if remote_if_any(magics) is None:
        shown = "\n".join([shown, "", *ageing_notes(magics.session)])
    return TextResult(shown)


@command("diagnose", "", "Check the banks in scope as the agent's own command does, or the way to a Hindsight bank.")
def diagnose(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show the agent's own table of checks (M-08)."""
    from ipy_memory.notebook.result import TextResult

    _alone(parsed, "diagnose")
    return TextResult(magics.session.diagnose())


@command(
    "doctor",
    "",
    "Look the banks over: file, schema, full-text indexes, vectors, rows without a memory; mend them on request.",
    flags=(_BANK, Flag("repair", "mend what can be mended, after a copy of the bank")),
)
def doctor(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Look at every bank in scope, or one; without --repair nothing is written."""
    from ipy_memory.inspect import health
    from ipy_memory.notebook.result import ListFrame

    _alone(parsed, "doctor")
    mend = "repair" in parsed.flags
    found = health.look_over(magics.session, parsed.flags.get("bank"), mend=mend, progress=magics.progress("parts"))
    return ListFrame(
        found.frame(), DOCTOR_COLUMNS, notes=found.notes, empty="There is no bank file yet.", quiet=parsed.quiet
    )


@command(
    "consolidate",
    "",
    "Sum up memories of twelve hours and more into episodes, and let old episodes age.",
    flags=(Flag("dry-run", "only say how many there are"),),
)
def consolidate(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Consolidate the session's own banks as a whole, and say how many memories it was or why none."""
    from ipy_memory.inspect.ageing import consolidate_now
    from ipy_memory.notebook.result import TextResult

    _alone(parsed, "consolidate")
    return TextResult("\n".join(consolidate_now(magics.session, dry_run="dry-run" in parsed.flags)))


@command("report", "", "Print what to compare when the agent's recall differs: backend, banks, settings, vectors.")
def report(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Print it all as text, without a secret."""
    from ipy_memory.inspect.report import report_text
    from ipy_memory.notebook.result import TextResult

    _alone(parsed, "report")
    return TextResult(report_text(magics.session, magics.progress("banks")))


def _alone(parsed: Parsed, name: str) -> None:
    if parsed.text.strip():
        raise MagicError(f"%memory {name} takes nothing more", hint=f"see %memory {name} -h")
