"""The notebook as a session, while the user wants it: cells become turns of the conversation that memory retains.

The source is what the user said, the textual results are the answer. This extension's own magics, what they show,
and recalled memories are left out; credentials are taken out by the retention, as everywhere.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TextIO, cast

from ipy_memory import conversation, process
from ipy_memory.conversation import Message
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import iso
from ipy_memory.notebook import ipython_compat
from ipy_memory.notebook.frontend import is_displayed
from ipy_memory.redact import redact
from ipy_memory.session.turns import turn_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

    from ipy_memory.session import MemorySession

OUTPUT_UNITS = 4_000
"""A cell's textual results are cut at this length."""

_NAMES = "|".join(ipython_compat.NAMES)
_CELL_MAGIC = re.compile(rf"\s*%%(?:{_NAMES})\b")
_LINE_MAGIC = re.compile(rf"(?:[^#'\"%]*=)?\s*%(?:{_NAMES})\b")
_EXTENSION = re.compile(r"\s*%(?:load_ext|unload_ext|reload_ext)\s+ipy_memory\b")
_RECALLED = re.compile(
    r"(?:Found [0-9]+ relevant memor(?:y|ies) \(as of [^)]*\):|Based on recalled memories:)\n\n.*", re.DOTALL
)


def said(source: str) -> str:
    """Return a cell's source as what the user said: without this extension's magics and recalled blocks (pure)."""
    if _CELL_MAGIC.match(source):
        return ""
    kept = [line for line in source.split("\n") if not _LINE_MAGIC.match(line) and not _EXTENSION.match(line)]
    return js.trim(conversation.strip_tags("\n".join(kept)))


def answered(outputs: Sequence[str]) -> str:
    """Return a cell's textual results as the answer: without what memory gave, and cut at a stated length (pure)."""
    kept = [js.trim(conversation.strip_tags(_RECALLED.sub("", text))) for text in outputs]
    return js.clip("\n".join(filter(None, kept)), OUTPUT_UNITS)


def is_ours(value: object) -> bool:
    """Return whether a value shows what memory gave: a result of this extension, or a frame made from one."""
    module = type(value).__module__
    attrs = getattr(value, "attrs", None)
    return module.split(".")[0] == "ipy_memory" or (isinstance(attrs, dict) and {"query", "backend"} <= attrs.keys())


def shown_text(shell: InteractiveShell, value: object) -> str:
    """Return a value as it shows in plain text; nothing of what is ours."""
    if value is None or is_ours(value):
        return ""
    # Only the text: the whole formatter would display some values a second time.
    return str(cast("Any", shell.display_formatter).formatters["text/plain"](value) or "")


def preview(messages: Sequence[Message]) -> str:
    """Return what the retention would store of a conversation, credentials taken out (pure)."""
    return redact(conversation.transcript(messages, full=True).text or "")


def latest_cells(shell: InteractiveShell, count: int) -> list[Message]:
    """Return the latest cells that have run, as they would be taken."""
    ran, values = shell.user_ns.get("In", []), shell.user_ns.get("Out", {})
    found: list[Message] = []
    for number in range(1, len(ran) - 1):  # the last one is the cell that asks
        if source := said(ran[number]):
            found.append(Message("user", source))
            if number in values and (answer := answered([shown_text(shell, values[number])])):
                found.append(Message("assistant", answer))
    return list(conversation.last_turns(found, count))


class _Listener:
    """Stands in for a stream: passes everything on and keeps the beginning of it, without what memory gave."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._kept: list[str] = []
        self._room = OUTPUT_UNITS + 1

    def write(self, text: str) -> int:
        # A terminal prints what a kernel would send as a display.
        if self._room > 0 and not is_displayed(text):
            self._kept.append(text[: self._room])
            self._room -= len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def text(self) -> str:
        return "".join(self._kept)

    def leave(self) -> None:
        """Give the stream back, unless somebody else stands there now."""
        if sys.stdout is cast("TextIO", self):
            sys.stdout = self._stream


class Recorder:
    """Takes the cells of one shell as turns of one session, from :meth:`begin` to :meth:`end`.

    Parameters
    ----------
    shell
        Its cells are taken.
    session
        Gets them.
    """

    def __init__(self, shell: InteractiveShell, session: MemorySession) -> None:
        self.session = session
        self.cells = 0
        self._shell = shell
        self._listener: _Listener | None = None
        self._source: str | None = None
        self._on = False
        self._writer = TurnWriter(session)

    def begin(self) -> None:
        """Take the cells from the next one on."""
        if not self._on:
            self._shell.events.register("pre_run_cell", self._before)
            self._shell.events.register("post_run_cell", self._after)
            self._on = True

    @property
    def problem(self) -> str | None:
        """Why the latest of the cells were not stored; ``None`` where they were."""
        return self._writer.problem

    def end(self) -> None:
        """Take no further cell, and retain what is not yet retained; harmless when repeated."""
        if self._on:
            self._on = False
            self._shell.events.unregister("pre_run_cell", self._before)
            self._shell.events.unregister("post_run_cell", self._after)
            self._stop_listening()
            self._writer.finish()

    def _before(self, info: ExecutionInfo) -> None:
        self._stop_listening()
        self._source = None if info.silent or self.session.paused else said(str(info.raw_cell))
        if self._source:
            self._listener = _Listener(cast("TextIO", sys.stdout))
            sys.stdout = cast("TextIO", self._listener)

    def _after(self, result: ExecutionResult) -> None:
        source, self._source = self._source, None
        printed = self._stop_listening()
        if source and not self.session.paused:
            answer = answered([printed, "" if source.endswith(";") else self._shown(result)])
            self.cells += 1
            now = iso(self.session.clock.now_ms())
            self.session.messages += turn_messages(source, [answer] if answer else [], now)
            self._writer.end_turn()

    def _stop_listening(self) -> str:
        listener, self._listener = self._listener, None
        if listener is None:
            return ""
        listener.leave()
        return listener.text

    def _shown(self, result: ExecutionResult) -> str:
        """Return a cell's value as it shows in plain text, or the line of its error; nothing of what is ours."""
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            return "" if isinstance(error, MemoryToolkitError) else f"{type(error).__name__}: {error}"
        return shown_text(self._shell, result.result)


MOST_WAITING = 1_000
"""So many ends of turns wait at most."""

EXIT_SECONDS = 2.0
"""The end of the process waits this long: a front end that restarts a kernel kills it soon after."""

_log = logging.getLogger("ipy_memory")


class TurnWriter:
    """Retains the turns of one session in their order.

    Parameters
    ----------
    session
        Its conversation is retained.

    Attributes
    ----------
    problem : str or None
        Why the latest end of a turn was not retained; a retention that succeeds later includes it.
    """

    def __init__(self, session: MemorySession) -> None:
        self._session = session
        self.problem: str | None = None
        self._cancels = (
            process.at_exit(self._at_exit, early=True),
            process.after_fork_in_child(self._begin),
        )
        self._begin()

    def _begin(self) -> None:
        # A forked child has no thread of the parent's, and what waits is the parent's to write.
        self._waiting: deque[int] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._over = threading.Event()

    def end_turn(self) -> None:
        """Retain the conversation as it is now when it is due; returns at once."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.pop()
            self._waiting.append(len(self._session.messages))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ipy-memory-turns", daemon=True)
                self._thread.start()
            self._changed.notify()

    def finish(self, seconds: float | None = None) -> bool:
        """Retain what is not yet retained and take no more; return whether that was over within the seconds."""
        for cancel in self._cancels:
            cancel()
        if self._thread is None:
            return True
        with self._changed:
            self._ending = True
            self._changed.notify()
        return self._over.wait(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                count = self._waiting.popleft() if self._waiting else None
            try:
                if count is not None:
                    self._session.end_turn(self._session.messages[:count])
                elif self._session.settings.get(f"{self._session.chosen}.autoRetain"):
                    self._session.force_retain()
                self.problem = self._session.unretained
            except Exception as error:  # noqa: BLE001  the next turn tries again
                self.problem = type(error).__name__
                _log.warning("recorded turns were not retained: %s", type(error).__name__)
            if count is None:
                self._over.set()
                return

    def _at_exit(self) -> None:
        if not self.finish(EXIT_SECONDS):
            # A kernel's own stderr has lost its thread by now.
            stderr = sys.__stderr__ or sys.stderr
            stderr.write("ipy_memory: the last recorded cells may not have been stored; there was no answer in time\n")
