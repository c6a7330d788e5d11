"""The queue in front of a Hindsight bank: what waits, when it is sent, and what became of it (Q-01 to Q-10).

A batch is *sealed* when it is full or when somebody flushes; a sealed batch is sent by whoever comes first, the timer's
thread or the caller that flushes. At most one batch is on its way at any time, so none is sent twice or left behind.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ipy_memory import jsdate
from ipy_memory.errors import HindsightError, MemoryToolkitError
from ipy_memory.js import clip

if TYPE_CHECKING:
    from ipy_memory.clock import Clock, IdSource, Timers

RETAIN_FLUSH_BATCH_SIZE = 16
"""So many waiting items are sent at once (Q-01)."""

RETAIN_FLUSH_INTERVAL_MS = 5_000
"""Fewer than that wait this long, counted from the first (Q-02)."""

PREVIEW_UNITS = 80
"""Length of the text that a queue's row shows."""

_KEPT = {"failed", "unknown"}
_ENDED = {"sent", "dropped", *_KEPT}

CLOSED = "Hindsight retain queue is closed."

log = logging.getLogger("ipy_memory.hindsight")


@dataclass(frozen=True, slots=True)
class Queued:
    """One item that was handed in: what to store, for which session, and when it came (Q-03)."""

    content: str
    context: str | None
    session_id: str
    at_ms: int


@dataclass(slots=True, eq=False)
class Batch:
    """Items that travel in one request; the operation id stays the same however often they are sent."""

    items: Sequence[Queued]
    operation_id: str | None = None
    state: str = "waiting"
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One item as a person may see it: ``state`` is waiting, sending, failed or unknown."""

    state: str
    queued_at: str
    text: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FlushReport:
    """What one flush did: ``operations`` are the server's ids for the work that it took on."""

    sent: int = 0
    failed: int = 0
    operations: tuple[str, ...] = ()

    def __add__(self, other: FlushReport) -> FlushReport:
        return FlushReport(self.sent + other.sent, self.failed + other.failed, self.operations + other.operations)


TimeLeft = Callable[[], float | None]
"""How many milliseconds are left just now; ``None`` for as many as a call may take."""


class Sender(Protocol):
    """What carries a batch to the server."""

    def __call__(self, items: Sequence[Queued], operation_id: str | None, left: TimeLeft) -> str | None:
        """Send the items and return the server's operation id, if it names one."""
        ...


@dataclass(slots=True)
class _State:
    open: list[Queued] = field(default_factory=list)
    sealed: Batch | None = None
    more: bool = False
    stop_timer: Callable[[], None] | None = None
    closed: bool = False
    unsent: list[Batch] = field(default_factory=list)


class RetainQueue:
    """Items on their way to one bank.

    Parameters
    ----------
    send
        Carries a batch to the server.
    clock, ids, timers
        Time, the ids of repeatable batches, and what sends a batch that has waited long enough.
    owned
        Whether the session still has this state; a batch of a state that it gave up is dropped (Q-06).
    failed
        Told of every batch that was not sent: number of items and error (Q-09).
    safe
        Give each batch an operation id and allow one repeat where the outcome is unknown.
    """

    def __init__(
        self,
        send: Sender,
        *,
        clock: Clock,
        ids: IdSource,
        timers: Timers,
        owned: Callable[[], bool],
        failed: Callable[[int, Exception], None],
        safe: bool = False,
    ) -> None:
        self._send = send
        self._clock = clock
        self._ids = ids
        self._timers = timers
        self._owned = owned
        self._failed = failed
        self._safe = safe
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._state = _State()

    def __len__(self) -> int:
        with self._lock:
            sealed = self._state.sealed
            waiting = len(sealed.items) if sealed is not None and sealed.state == "waiting" else 0
            return len(self._state.open) + waiting

    def add(self, items: Sequence[tuple[str, str | None]], session_id: str) -> None:
        """Queue contents with their contexts; all or, when the queue is closed, none (Q-05)."""
        with self._lock:
            if self._state.closed:
                raise MemoryToolkitError(CLOSED, hint="the session has ended; open another one")
            for content, context in items:
                self._state.open.append(Queued(content, context, session_id, self._clock.now_ms()))
                self._schedule()

    def _schedule(self) -> None:
        state = self._state
        if len(state.open) < RETAIN_FLUSH_BATCH_SIZE:
            if state.stop_timer is None:
                state.stop_timer = self._timers.call_later(RETAIN_FLUSH_INTERVAL_MS, self._on_timer)
        elif state.sealed is None:
            self._seal()
            self._timers.call_later(0, self._run)
        else:
            state.more = True

    def _seal(self) -> None:
        state = self._state
        if state.stop_timer is not None:
            state.stop_timer()
            state.stop_timer = None
        if state.open:
            sealed = Batch(tuple(state.open), self._ids.uuid() if self._safe else None)
            state.open, state.sealed = [], sealed  # in one step: an interrupt leaves each item in one place

    def _on_timer(self) -> None:
        with self._lock:
            self._state.stop_timer = None
            self._state.more = True
        self._run()

    def _run(self) -> None:
        """Send what is due, on the timer's thread."""
        with self._sending:
            while batch := self._next(everything=False):
                self._deliver(batch, _no_end)

    def flush(self, limit_ms: float | None = None) -> FlushReport:
        """Send everything that waits, and wait for what is on its way (Q-04).

        ``limit_ms`` bounds the whole; what does not fit stays, can be seen, and can be sent later.
        """
        if limit_ms is None:
            # A plain ``with``, so that an interrupt at any point gives the lock back.
            with self._sending:
                return self._flush(_no_end)
        left = self._until(self._clock.now_ms() + limit_ms)
        if not self._sending.acquire(timeout=min(max(0.0, limit_ms / 1000), threading.TIMEOUT_MAX)):
            return FlushReport()
        try:
            return self._flush(left)
        finally:
            self._sending.release()

    def _flush(self, left: TimeLeft) -> FlushReport:
        report = FlushReport()
        try:
            while (rest := left()) is None or rest > 0:
                batch = self._next(everything=True)
                if batch is None:
                    break
                report += self._deliver(batch, left)
        finally:
            self._resume()
        return report

    def _until(self, end_ms: float) -> TimeLeft:
        return lambda: end_ms - self._clock.now_ms()

    def _resume(self) -> None:
        """See to it that what an interrupted flush left behind is sent in its time."""
        with self._lock:
            state = self._state
            if state.closed:
                return
            if state.sealed is not None:
                self._timers.call_later(0, self._run)
            elif state.open and state.stop_timer is None:
                state.stop_timer = self._timers.call_later(RETAIN_FLUSH_INTERVAL_MS, self._on_timer)

    def _next(self, *, everything: bool) -> Batch | None:
        with self._lock:
            state = self._state
            if state.sealed is not None and state.sealed.state in _ENDED:
                self._settle(state.sealed)
            if state.sealed is None and (everything or state.more):
                self._seal()
            state.more = state.more and bool(state.open)
            if state.sealed is not None:
                state.sealed.state = "sending"
            return state.sealed

    def _deliver(self, batch: Batch, left: TimeLeft) -> FlushReport:
        """Send one batch; whatever happens, it is then either done or among the unsent."""
        batch.state, batch.error = "sending", None
        try:
            if not self._owned():
                log.warning("Hindsight: dropped %d queued items of a session that moved on", len(batch.items))
                batch.state = "dropped"
                return FlushReport()
            operation, batch.state = self._attempt(batch, left), "sent"
            return FlushReport(len(batch.items), 0, (operation,) if operation else ())
        except Exception as error:  # noqa: BLE001  every failure becomes one notice; the batch stays to be seen
            batch.error = error
            batch.state = "unknown" if getattr(error, "unknown", False) else "failed"
            self._failed(len(batch.items), error)
            return FlushReport(0, len(batch.items))
        except BaseException:
            if batch.state == "sending":
                batch.state = "unknown"
            raise
        finally:
            with self._lock:
                self._settle(batch)

    def _settle(self, batch: Batch) -> None:
        """Put a batch where its state belongs; may be repeated after an interrupt."""
        unsent = self._state.unsent
        if batch.state in _KEPT and batch not in unsent:
            unsent.append(batch)
        elif batch.state not in _KEPT and batch in unsent:
            unsent.remove(batch)
        if self._state.sealed is batch:
            self._state.sealed = None

    def _attempt(self, batch: Batch, left: TimeLeft) -> str | None:
        try:
            return self._send(batch.items, batch.operation_id, left)
        except HindsightError as error:
            if batch.operation_id is None or not error.unknown:
                raise
            return self._send(batch.items, batch.operation_id, left)

    def resend(self, *, unknown: bool = False) -> FlushReport:
        """Send again what failed, and on request also what may already have arrived."""
        states = _KEPT if unknown or self._safe else {"failed"}
        report = FlushReport()
        with self._sending:
            with self._lock:
                again = [batch for batch in self._state.unsent if batch.state in states]
            for batch in again:
                report += self._deliver(batch, _no_end)
        return report

    def rows(self) -> list[QueueRow]:
        """Return every item that is not known to have arrived, oldest first."""
        with self._lock:
            state = self._state
            sealed = [state.sealed] if state.sealed is not None and state.sealed not in state.unsent else []
            batches = [*state.unsent, *sealed, Batch(list(state.open))]
            return [_row(batch, item) for batch in batches for item in batch.items]

    def unsent(self) -> int:
        """Return how many items are not known to have arrived."""
        return len(self.rows())

    def close(self, limit_ms: float | None = None) -> FlushReport:
        """Refuse further items and send what waits."""
        with self._lock:
            self._state.closed = True
        report = self.flush(limit_ms)
        with self._lock:
            if self._state.stop_timer is not None:
                self._state.stop_timer()
                self._state.stop_timer = None
        return report

    def reopen(self) -> None:
        """Take items again; what still waits is sent in its time."""
        with self._lock:
            self._state.closed = False
        self._resume()


def _no_end() -> None:
    return None


def _row(batch: Batch, item: Queued) -> QueueRow:
    error = batch.error
    message = None if error is None else str(error)
    return QueueRow(batch.state, jsdate.iso(item.at_ms), clip(item.content, PREVIEW_UNITS), message)
