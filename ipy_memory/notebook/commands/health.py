"""``%memory stats|diagnose|doctor|audit|consolidate``: how the banks are, and repairing them on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame, TextResult


@handles("stats")
def stats(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Show the agent's own table, and below it the rule by which memories age."""
    from ipy_memory.explore.aging import stats_text
    from ipy_memory.notebook.result import TextResult

    return TextResult(stats_text(magics.session))


@handles("diagnose")
def diagnose(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Show the agent's own table of checks."""
    from ipy_memory.notebook.result import TextResult

    return TextResult(magics.session.diagnose())


@handles("doctor")
def doctor(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Look at every bank in scope, or one; without --repair nothing is written."""
    from ipy_memory.explore import health
    from ipy_memory.notebook.result import ListFrame

    mend = "repair" in parsed.flags
    found = health.examined(magics.session, parsed.flags.get("bank"), mend=mend, progress=magics.progress("parts"))
    return ListFrame(
        health.findings_frame(found), health.COLUMNS, notes=found.notes, empty=health.NO_FILE, quiet=parsed.quiet
    )


@handles("audit")
def audit(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Show what there is to clean up, a summary first; memories are neither changed nor counted."""
    from ipy_memory.explore import audit as auditing
    from ipy_memory.notebook.result import ListFrame

    found = auditing.audited(
        magics.session, **auditing.asked(parsed.text, parsed.flags), progress=magics.progress("steps")
    )
    frame = found.frame()
    shown = ListFrame(
        frame, auditing.SHOWN, notes=found.notes, empty=auditing.NOTHING, quiet=parsed.quiet, summary=found.summary
    )
    shown.attrs["summary"] = found.summary
    if "out" in parsed.flags:
        magics.shell.user_ns[parsed.flags["out"]] = shown
    return shown


@handles("consolidate")
def consolidate(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Consolidate the session's own banks as a whole, and say how many memories it was or why none."""
    from ipy_memory.explore.aging import consolidate_now
    from ipy_memory.notebook.result import TextResult

    return TextResult("\n".join(consolidate_now(magics.session, dry_run="dry-run" in parsed.flags)))


@handles("report")
def report(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Print it all as text, without a secret."""
    from ipy_memory.explore.status import report_text
    from ipy_memory.notebook.result import TextResult

    return TextResult(report_text(magics.session, magics.progress("banks")))
