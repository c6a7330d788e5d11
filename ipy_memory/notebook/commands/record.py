"""``%memory record``: the notebook as a session, while a person wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.errors import MagicError
from ipy_memory.jscompat import strings as js
from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.recorder import Recorder
    from ipy_memory.notebook.result import TextResult
    from ipy_memory.session import MemorySession

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
