"""The program's commands that move banks: ``export`` and ``import``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.shell.output import Result

if TYPE_CHECKING:
    from collections import Counter

    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.session import MemorySession


def export(session: MemorySession, parsed: Parsed) -> Result:
    """Write banks to a new file."""
    from ipy_memory.explore import transfer

    done = transfer.export(
        session,
        parsed.text.strip(),
        bank=parsed.flags.get("bank"),
        form=parsed.flags.get("format"),
        vectors="vectors" in parsed.flags,
        redacted="redact" in parsed.flags,
    )
    return Result(str(done), {"path": str(done.path), "rows": done.rows}, list(done.notes))


def take_in(session: MemorySession, parsed: Parsed) -> Result:
    """Take banks in from an archive, or say what would be taken in."""
    from ipy_memory.explore import transfer

    session.check_not_paused()
    done = transfer.import_archive(
        session,
        parsed.text.strip(),
        into=parsed.flags.get("into"),
        dry_run="dry-run" in parsed.flags,
        conflict=parsed.flags.get("on-conflict", "skip"),
    )
    banks = {
        name: {"added": _counts(each.added), "known": _counts(each.known), "replaced": _counts(each.replaced)}
        for name, each in done.banks.items()
    }
    return Result(str(done), {"done": done.done, "banks": banks}, list(done.notes))


def _counts(counted: Counter[str]) -> dict[str, int]:
    return {table: count for table, count in sorted(counted.items()) if count}
