"""What to compare when an agent's recall differs from ours: one text, without a secret."""

from __future__ import annotations

import platform
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory import __version__
from ipy_memory.backends.mnemopi.admin import stats as reports
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.explore.banks import NOT_READ, bank_rows
from ipy_memory.jscompat.dates import minute_stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipy_memory.explore.banks import Progress
    from ipy_memory.session import MemorySession

_REASONS = (
    "The agent's recall can differ from this one where the agent",
    "- works in another folder, or under another scope (compare scope and banks above, and %memory scopes);",
    "- has vectors on, or another embedding model (see vectors);",
    "- reads other settings, such as the recall limit (compare the settings above);",
    "- has written or recalled since: recall counts, times and new memories change the order.",
)


def report_text(session: MemorySession, progress: Progress | None = None) -> str:
    """Return backend, scope, banks, vectors and settings with their origins, as text to copy."""
    home = session.env.get("HOME") or str(Path.home())
    return reports.homely("\n".join(_lines(session, progress)), home)


def _lines(session: MemorySession, progress: Progress | None) -> Iterator[str]:
    yield f"ipy_memory {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield f"as of {minute_stamp(session.clock.now_ms())} UTC"
    yield ""
    yield from (f"{row.name}: {row.value}{f' ({row.origin})' if row.origin else ''}" for row in session.status())
    if isinstance(session.backend, MnemopiBackend):
        yield ""
        yield from _banks(session, session.backend, progress)
    yield ""
    yield "settings that are not at their default:"
    changed = [row for row in session.settings.table() if row.origin != "default"]
    yield from (f"  {row.name} = {row.words} ({row.origin})" for row in changed)
    if not changed:
        yield "  none"
    yield ""
    yield from _REASONS


def _banks(session: MemorySession, backend: MnemopiBackend, progress: Progress | None) -> Iterator[str]:
    rows = bank_rows(session, progress)
    yield "banks:"
    for row in rows:
        if row.use == NOT_READ:
            continue
        held = row.tally
        counts = f"{held.working} working, {held.episodic} episodic, {held.facts} facts, {held.vectors} vectors"
        about = row.error or ("no file yet" if row.size is None else counts)
        yield f"  {row.name} ({row.use}): {about}; {reports.shown_path(row.path, backend.home)}"
    others = sum(row.use == NOT_READ for row in rows)
    yield f"  {others} other banks are not read (%memory banks says why)" if others else "  no other banks"
    vectors = sum(row.tally.vectors for row in rows if row.use != NOT_READ)
    yield f"  {vectors} vectors are stored in the banks that are read; here they are {backend.status()['vectors']}"
