"""Signs of life: what the user sees while an action takes longer than a moment; gone when the result is there.

A quick action shows nothing, and neither does one that nobody waits for (nbconvert, nbval, a pipe).
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Self

from ipy_memory.notebook.frontend import request, shows_html, somebody_there

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

PATIENCE = 0.05
"""Seconds before the first sign."""

BETWEEN = 0.04
"""Seconds between two signs."""

_BAR = 20
_MARKS = "◐◓◑◒"
_FIRST = re.compile(r"(?:\s*\n|\s*#[^\n]*\n)*")
_ALONE = re.compile(r"%%(?:recall|retain|reflect)\b|(?:\w+ *= *)?%[^%\n][^\n]*\s*\Z")


class Pulse:
    """Calls a function with the seconds gone by, from a thread of its own, until it is left.

    Parameters
    ----------
    beat
        Called after :data:`PATIENCE`, then every :data:`BETWEEN` seconds.
    """

    def __init__(self, beat: Callable[[float], object]) -> None:
        self._beat = beat
        self._over = threading.Event()
        self._begun = time.monotonic()
        # What is shown belongs to the cell, which the thread knows by the context.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="ipy-memory-pulse", daemon=True
        )

    def __enter__(self) -> Self:
        try:
            self._thread.start()
        except BaseException:  # Ctrl-C: a thread that nobody ends would beat for ever
            self._over.set()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        wait = PATIENCE
        while not self._over.wait(wait):
            self._beat(time.monotonic() - self._begun)
            wait = BETWEEN


class Progress:
    """Says how far an action is: for how long, and how many of how many are done where that is known.

    Parameters
    ----------
    line
        Where it is said; ``None`` where nobody waits.
    """

    def __init__(self, line: OutputLine | TerminalLine | None) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._stage: tuple[str, int, int] | None = None
        self._pulse: Pulse | None = None

    def __enter__(self) -> Self:
        if self._line is not None:
            self._pulse = Pulse(self._beat).__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def of(self, what: str) -> Callable[[int, int], None]:
        """Return what takes note of how many of how many are done."""
        return functools.partial(self._note, what)

    def end(self) -> None:
        """Say no more, and take back what was said; anything that is to stay is shown after this."""
        pulse, self._pulse = self._pulse, None
        line, self._line = self._line, None
        try:
            if pulse is not None:
                pulse.__exit__()
        finally:
            if line is not None:
                with self._lock:
                    line.hide()

    def _note(self, what: str, done: int, total: int) -> None:
        self._stage = (what, done, total)

    def _beat(self, seconds: float) -> None:
        with self._lock:
            if self._line is not None:
                self._line.show(word(self._stage, seconds))


def word(stage: tuple[str, int, int] | None, seconds: float) -> str:
    """Return how far an action is, as one line."""
    if stage is None or stage[2] < 2:  # a bar of one step would only stand still
        return f"working… {clock(seconds)}"
    what, done, total = stage
    full = _BAR * done // total
    return f"[{'#' * full}{'.' * (_BAR - full)}] {what}: {done} of {total} {clock(seconds)}"


def clock(seconds: float) -> str:
    """Return how long an action has taken, with a mark that turns at each beat."""
    return f"{seconds:.1f} s {_MARKS[int(seconds / BETWEEN) % len(_MARKS)]}"


def progress(shell: InteractiveShell) -> Progress:
    """Return the progress of the magic that runs now."""
    return Progress(_line(shell))


def _line(shell: InteractiveShell) -> OutputLine | TerminalLine | None:
    if hasattr(shell, "simple_prompt"):
        return TerminalLine(sys.stderr) if sys.stderr.isatty() else None
    asked = request()
    publisher = shell.display_pub
    # Within %%capture there is another publisher, which would keep every sign.
    if asked is None or not hasattr(publisher, "pub_socket") or not (somebody_there() and shows_html()):
        return None
    return OutputLine(publisher, alone=is_alone(str(asked.get("content", {}).get("code", ""))))


def is_alone(cell: str) -> bool:
    """Return whether a cell is one magic and nothing else, so that no output can stand before that of the magic."""
    first = _FIRST.match(cell)
    return _ALONE.match(cell, first.end() if first else 0) is not None


class OutputLine:
    """A line among the outputs of a cell.

    Parameters
    ----------
    publisher
        What the shell shows outputs with.
    alone
        Whether no other output stands there. Only then can the line be cleared away; otherwise it becomes empty.
    """

    def __init__(self, publisher: Any, *, alone: bool) -> None:
        self._publisher = publisher
        self._alone = alone
        self._id = ""

    def show(self, text: str) -> None:
        """Show a text in place of the last one."""
        again, self._id = bool(self._id), self._id or f"ipy-memory-{os.urandom(8).hex()}"
        self._publish({"text/plain": text}, again=again)

    def hide(self) -> None:
        """Take the line away."""
        if not self._id:
            return
        if self._alone:
            self._publisher.clear_output(wait=False)
        else:
            self._publish({}, again=True)
        self._id = ""

    def _publish(self, data: dict[str, str], *, again: bool) -> None:
        self._publisher.publish(data, {}, transient={"display_id": self._id}, update=again)


class TerminalLine:
    """The line of a terminal on which the cursor stands."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._shown = False

    def show(self, text: str) -> None:
        """Write a text over the last one."""
        self._shown = True
        self._write(f"\r\x1b[K{text}")

    def hide(self) -> None:
        """Leave the line as it was: empty."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
