"""What the ends of a recording's turns do, on a thread of its own: a slow server or a locked bank delays no cell.

The conversation itself is in the session, so the queue only says how far it went at the end of each turn. A later end
includes the earlier ones; that is why a queue that is full may skip one without losing a turn.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING

from ipy_memory import process

if TYPE_CHECKING:
    from ipy_memory.session import MemorySession

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
        """Retain what is not yet retained and take no more; tell whether that was over within the seconds."""
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
