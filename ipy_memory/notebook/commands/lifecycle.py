"""``%memory view``, ``enqueue``, ``clear`` and ``rebind``: what memory adds to a prompt, and turning points."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.errors import MagicError
from ipy_memory.jscompat import strings as js
from ipy_memory.notebook.commands import handles
from ipy_memory.paths import check_path, here, typed_path
from ipy_memory.settings.table import SETTINGS

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.explore.queue import Listing
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.recorder import Recorder
    from ipy_memory.notebook.result import TableResult, TextResult
    from ipy_memory.session import MemorySession


@handles("view")
def view(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Show the injection payload: the instructions with the cached blocks."""
    from ipy_memory.notebook.result import TextResult

    magics.session.live_backend()
    return TextResult(magics.session.developer_instructions())


@handles("enqueue")
def enqueue(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Force retention and consolidation."""
    from ipy_memory.notebook.result import TextResult

    bank = magics.session.live_backend().retain_bank
    magics.session.enqueue()
    return TextResult(f"Retention of this session was forced, to bank {bank}.")


@handles("clear")
def clear(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Name what will go; with ``--yes`` copy it and let it go."""
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
        raise MagicError(f"there is no folder {folder}", hint="make it first, or repair the path")
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


@handles("pause")
def pause(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Pause memory; further sessions of this notebook are paused too."""
    return _switched(magics, on=True)


@handles("resume")
def resume(magics: MemoryMagics, _: Parsed) -> TextResult:
    """Go on; what was said or run during the pause is never retained."""
    return _switched(magics, on=False)


def _switched(magics: MemoryMagics, *, on: bool) -> TextResult:
    from ipy_memory.notebook.result import TextResult

    was = magics.paused
    magics.set_paused(on)
    if on:
        line = "Memory is paused: nothing is recorded, retained or counted until %memory resume. Recall goes on."
        if magics.recorder is not None:
            line += " Cells that are run meanwhile are not recorded, and never will be."
    else:
        line = "Memory goes on." if was else "Memory was not paused."
    return TextResult(line)


PREVIEW_CELLS = 3
"""So many of the latest cells are shown while recording is off."""


@handles("record")
def record(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Switch recording on or off, say whether it is on, or show what would be written."""
    from ipy_memory.notebook import recorder as recording
    from ipy_memory.notebook.result import TextResult

    action = parsed.word
    session = magics.session
    recorder = magics.recorder
    if action == "on":
        where = destination(session)
        if recorder is None:
            magics.recorder = recording.Recorder(magics.shell, session)
            magics.recorder.begin()
        return TextResult(f"From the next cell on, {where}\n`%memory record off` ends it.")
    if action == "off":
        magics.end_recording(told=True)
        if recorder is None:
            return TextResult("Recording is off.")
        return TextResult(f"Recording is off; {_taken(recorder.cells)}.{_missing(recorder)}")
    if action == "status":
        state = "Recording is off."
        if recorder is not None:
            state = f"Recording is on; {_taken(recorder.cells)} so far.{_missing(recorder)}"
        return TextResult(f"{state} Memory is paused: no cell is taken." if session.paused else state)
    messages = session.messages if recorder else recording.latest_cells(magics.shell, PREVIEW_CELLS)
    shown = recording.preview(messages) or "(nothing yet)"
    head = "With recording on, " if recorder is None else "While recording is on, "
    return TextResult(f"{head}{destination(session)}\nAs it would be written:\n\n{shown}")


def destination(session: MemorySession) -> str:
    """Return what recording writes, and where.

    Raises
    ------
    MagicError
        Nothing would be written, since automatic retention is off.
    """
    from ipy_memory.notebook.recorder import OUTPUT_UNITS

    backend = session.live_backend()
    switch = f"{backend.name}.autoRetain"
    if switch not in SETTINGS:
        raise backend.refusal("recording", "it retains nothing by itself")
    if not session.settings.get(switch):
        raise MagicError(f"nothing would be written: {switch} is false", hint=f"set {switch} to true and try again")
    status = backend.status()
    place = status.get("database") or status.get("server")
    every = js.number_text(float(session.settings.get(f"{backend.name}.retainEveryNTurns")))
    return (
        f"each cell's source and its textual results, cut at {OUTPUT_UNITS:,} characters, are a turn of session "
        f"{session.session_id};\nevery {every} turns, and at the end, they are written to bank {backend.retain_bank} "
        f"({place}).\nThis extension's magics, what they show and recalled memories are left out; credentials are "
        "redacted."
    )


def _missing(recorder: Recorder) -> str:
    """Return what to add where the latest cells were not stored."""
    return f" The last of them were not stored: {recorder.problem}" if recorder.problem else ""


def _taken(cells: int) -> str:
    return f"{cells} {'cell' if cells == 1 else 'cells'} taken"


@handles("queue")
def queue(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show one row an item; the frame of the result has the same rows."""
    from ipy_memory.explore import queue
    from ipy_memory.notebook.result import TextResult

    if "drop" in parsed.flags:
        return TextResult(queue.drop_pending(magics.session, parsed.flags))
    if queue.asks_to_send(parsed.flags):
        return TextResult(queue.send(magics.session, parsed.flags).text)
    return _table(queue.queue_listing(magics.session), dates=("queued at",))


@handles("flush")
def flush(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Send, and say what the server made of it so far: sent is not yet stored."""
    from ipy_memory.explore import queue
    from ipy_memory.notebook.result import TextResult

    return TextResult(queue.flush(magics.session, parsed.flags).text)


@handles("operations")
def operations(magics: MemoryMagics, parsed: Parsed) -> TableResult:
    """Show one row an operation, newest first; documents that gave no memory are named below."""
    from ipy_memory.explore import queue

    return _table(queue.operations(magics.session, parsed.flags.get("page", 1)), dates=("since",))


def _table(found: Listing, *, dates: tuple[str, ...]) -> TableResult:
    from ipy_memory.notebook.result import TableResult

    return TableResult(found.headers, found.rows, dates=dates, notes=found.notes)
