"""The retain panel: one text to store, and what became of those that wait for the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.credentials import for_memory
from ipy_memory.errors import MagicError, MemoryToolkitError
from ipy_memory.model import RetainItem
from ipy_memory.notebook.widgets.state import PanelState, count, keyed

if TYPE_CHECKING:
    from ipy_memory.backends.base import QueueRow
    from ipy_memory.model import Hit
    from ipy_memory.notebook.widgets.session_hub import Desk

LOOK_AGAIN_MS = 500
"""So often the queue is looked at while something is on its way."""

_MOVING = {"waiting", "sending"}
_DOUBTFUL = "unknown"
_KEPT = {"failed", _DOUBTFUL}


class RetainState(PanelState):
    """The retain panel: stores one text at a time, as typed, and shows the queue where there is one."""

    title = "retain"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.rows: tuple[QueueRow, ...] = ()
        self.stored = 0
        self._looking = False
        self.attempt(self.reread)

    @property
    def bank(self) -> str:
        """The bank that is written."""
        return self.desk.session.live_backend().retain_bank

    @property
    def queues(self) -> bool:
        """Whether this memory has a queue."""
        backend = self.desk.session.backend
        return backend is not None and backend.queue_rows() is not None

    def retain(self, text: str, context: str = "") -> None:
        """Store a text as one item; raises if it was not stored."""
        if not text.strip():
            raise MagicError("there is no text yet", hint="type what to remember")
        items, left_out = for_memory([RetainItem(text, context.strip() or None)], {})
        result = self.desk.session.retain(items)
        self.stored += 1
        self.desk.changed()
        self.say(" ".join([result.text, *result.notes, *left_out]))

    def reread(self) -> None:
        """Look at the queue."""
        backend = self.desk.session.backend
        self.rows = tuple((backend.queue_rows() if backend is not None else None) or ())
        if any(row.state in _MOVING for row in self.rows) and not self._looking:
            self._looking = True
            self.desk.session.timers.call_later(LOOK_AGAIN_MS, self._look)

    def _look(self) -> None:
        # On a timer's thread: the session may have moved on meanwhile, which then shows as the status.
        self._looking = False
        before = len(self.rows)
        self.refresh()
        if before and not self.rows and self.desk.session.backend is not None:
            self.say("Everything was sent.")
            self.on_change()

    def send(self) -> None:
        """Send now what waits, and again what failed; what may have arrived is asked about first."""
        self.question = None
        self._resend()
        self.desk.session.flush()
        self.desk.changed()
        doubtful = sum(row.state == _DOUBTFUL for row in self.rows)
        if not doubtful or doubtful < len(self.rows):
            self._tell()
            return
        self.ask(
            f"{count(doubtful)} may have arrived already: no answer came. Sending again may store the same twice. "
            "Send again?",
            "Send again",
            self._send_doubtful,
        )

    def _send_doubtful(self) -> None:
        self._resend(unknown=True)
        self.desk.changed()
        self._tell()

    def _resend(self, *, unknown: bool = False) -> None:
        backend = self.desk.session.backend
        if backend is not None and any(row.state in _KEPT for row in backend.queue_rows() or ()):
            backend.resend(unknown=unknown)

    def _tell(self) -> None:
        if self.rows:
            left = f"{count(len(self.rows))} not sent."
            raise MemoryToolkitError(left, where=f"bank {self.bank}", hint="they are kept, each with its reason")
        self.say("Everything was sent.")


class ReflectState(PanelState):
    """The reflect panel: a question, the answer, and the hits it was made from."""

    title = "reflect"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.query = ""
        self.context = ""
        self.text = ""
        self.hits: dict[str, Hit] = {}

    def reflect(self, query: str, context: str = "") -> None:
        """Answer a question from memory as a whole."""
        if not query.strip():
            raise MagicError("there is no question yet", hint="type one")
        self.query, self.context, self.text, self.hits = query, context, "", {}
        result = self.desk.session.reflect(query, context or None, touch=False)
        self.text, self.hits = result.text, keyed(result.hits)
        self.say(f"Answered from {count(len(self.hits))}." if self.hits else "Answered.")
