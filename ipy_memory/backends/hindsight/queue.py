"""The queue in front of a Hindsight bank: when waiting items are sent, and what became of them.

The items themselves are in the outbox; the queue decides when they travel. A batch is *sealed* when it is full or when
somebody flushes. A sealed batch is sent by the first to come, the timer's thread or the caller that flushes. At most
one batch is on its way at any time, so none is sent twice or left behind.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from ipy_memory import process
from ipy_memory.backends.base import FlushReport, QueueRow
from ipy_memory.backends.hindsight.outbox import FAILED, UNKNOWN, WAITING, Item, Outbox, Owner, Queued
from ipy_memory.errors import HindsightError, MemoryToolkitError, OutboxError
from ipy_memory.jscompat import dates
from ipy_memory.jscompat.strings import clip

if TYPE_CHECKING:
    from ipy_memory.clock import Clock, IdSource, Timers

RETAIN_FLUSH_BATCH_SIZE = 16
"""So many waiting items are sent at once."""

RETAIN_FLUSH_INTERVAL_MS = 5_000
"""Fewer than that wait this long, counted from the first."""

PREVIEW_UNITS = 80
"""Length of the text that a queue's row shows."""

CLOSED = "Hindsight retain queue is closed."

_SENT, _LEFT = "sent", "left"
_OVER = {_SENT, _LEFT, FAILED, UNKNOWN}
_Any = TypeVar("_Any")

log = logging.getLogger("ipy_memory.backends.hindsight")


@dataclass(slots=True, eq=False)
class Batch:
    """Items that travel in one request; the operation id stays the same however often they are sent."""

    bank: str
    ids: Sequence[int]
    name: str
    states: frozenset[str]
    operation_id: str | None
    state: str = WAITING
    error: str | None = None


TimeLeft = Callable[[], float | None]
"""How many milliseconds are left just now; ``None`` for as many as a call may take."""


class Sender(Protocol):
    """What carries batches to one server."""

    @property
    def address(self) -> str:
        """The server that items are bound to."""
        ...

    @property
    def bank(self) -> str:
        """The bank that new items are bound to."""
        ...

    def prepare(self, bank: str, left: TimeLeft) -> None:
        """Do what must come first; nothing of the items is sent."""
        ...

    def send(self, bank: str, items: Sequence[Queued], operation_id: str | None, left: TimeLeft) -> str | None:
        """Send the items and return the server's operation id, if it names one."""
        ...


class UnconfirmedError(HindsightError):
    """The server answered a retain with a success that does not say that it took the items on."""


@dataclass(slots=True)
class _State:
    open: list[int] = field(default_factory=list)
    sealed: Batch | None = None
    more: bool = False
    stop_timer: Callable[[], None] | None = None
    closed: bool = False
    over: list[Batch] = field(default_factory=list)


class RetainQueue:
    """Items on their way to one bank.

    Parameters
    ----------
    sender
        Carries batches to the server.
    outbox
        Keeps the items until they are sent.
    clock, ids, timers
        Time, the ids of repeatable batches, and what sends a batch that has waited long enough.
    owned
        Whether the session still has this state; what a state waits with that it gave up is not sent by it.
    failed
        Called for every batch that was not sent: number of items and error.
    safe
        Give each batch an operation id and allow one repeat where the outcome is unknown.
    """

    def __init__(
        self,
        sender: Sender,
        outbox: Outbox,
        *,
        clock: Clock,
        ids: IdSource,
        timers: Timers,
        owned: Callable[[], bool],
        failed: Callable[[int, Exception], None],
        safe: bool = False,
    ) -> None:
        self._sender = sender
        self._outbox = outbox
        self._clock = clock
        self._ids = ids
        self._timers = timers
        self._owned = owned
        self._failed = failed
        self._safe = safe
        self._begin()
        process.after_fork_in_child(self._begin_child)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._state = _State()
        self._owner = Owner(self._sending.locked)
        self._own: set[int] = set()
        self._numbers = itertools.count(1)

    def _begin_child(self) -> None:
        """Begin with nothing in a forked child: what waits is the parent's."""
        closed = self._state.closed
        self._begin()
        self._state.closed = closed

    def __len__(self) -> int:
        with self._lock:
            sealed = self._state.sealed
            return len(self._state.open) + (len(sealed.ids) if sealed is not None and sealed.state == WAITING else 0)

    def add(self, items: Sequence[tuple[str, str | None]], session_id: str, tags: Sequence[str] | None = None) -> None:
        """Queue contents with their contexts; all or, when the queue is closed or the outbox refuses, none."""
        with self._lock:
            if self._state.closed:
                raise MemoryToolkitError(CLOSED, hint="the session has ended; open another one")
            now = self._clock.now_ms()
            marks = None if tags is None else tuple(tags)
            queued = [Queued(content, context, session_id, now, marks) for content, context in items]
            added = self._outbox.add(self._sender.address, self._sender.bank, queued, self._owner, now)
            self._own.update(added)
            for id_ in added:
                self._state.open.append(id_)
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
            sealed = self._batch(self._sender.bank, state.open)
            state.open, state.sealed = [], sealed  # in one step: an interrupt leaves each item in one place

    def _batch(
        self, bank: str, ids: Sequence[int], states: Iterable[str] = (WAITING,), operation_id: str | None = None
    ) -> Batch:
        name = f"{self._owner.token.rpartition('/')[2]}-{next(self._numbers)}"
        if operation_id is None and self._safe:
            operation_id = self._ids.uuid()
        return Batch(bank, tuple(ids), name, frozenset(states), operation_id)

    def _on_timer(self) -> None:
        with self._lock:
            self._state.stop_timer = None
            self._state.more = True
        self._run()

    def _run(self) -> None:
        """Send what is due, on the timer's thread."""
        report = FlushReport()
        with self._sending:
            while batch := self._next(everything=False):
                report += self._deliver(batch, _no_end)
            if report.sent and not report.failed:
                self._deliver_left_over(_no_end)

    def flush(self, limit_ms: float | None = None) -> FlushReport:
        """Send everything that waits, and wait for what is on its way.

        What an ended session of the same bank has left untried is sent too. ``limit_ms`` bounds the whole; what does
        not fit stays, can be seen, and can be sent later.
        """
        return self._flush_all(limit_ms, left_over=True)

    def _flush_all(self, limit_ms: float | None, *, left_over: bool) -> FlushReport:
        if limit_ms is None:
            # A plain ``with``, so that an interrupt at any point gives the lock back.
            with self._sending:
                return self._flush(_no_end, left_over=left_over)
        left = self._until(self._clock.now_ms() + limit_ms)
        if not self._sending.acquire(timeout=min(max(0.0, limit_ms / 1000), threading.TIMEOUT_MAX)):
            return FlushReport()
        try:
            return self._flush(left, left_over=left_over)
        finally:
            self._sending.release()

    def _flush(self, left: TimeLeft, *, left_over: bool) -> FlushReport:
        report = FlushReport()
        try:
            while _is_time(left):
                batch = self._next(everything=True)
                if batch is None:
                    break
                report += self._deliver(batch, left)
            if not report.failed and (left_over or report.sent):
                report += self._deliver_left_over(left)
        finally:
            self._resume()
        return report

    def _until(self, end_ms: float) -> TimeLeft:
        return lambda: end_ms - self._clock.now_ms()

    def _resume(self) -> None:
        """Have what an interrupted flush left behind sent in its time."""
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
            if state.sealed is not None:
                self._settle(state.sealed)
            self._record()
            if state.sealed is None and (everything or state.more):
                self._seal()
            state.more = state.more and bool(state.open)
            return state.sealed

    def _deliver_left_over(self, left: TimeLeft) -> FlushReport:
        """Send what waits for this bank and belongs to no living queue; the first failure ends it."""
        report = FlushReport()
        if not self._owned():
            return report
        try:
            ids = self._outbox.waiting(self._sender.address, self._sender.bank, self._clock.now_ms(), self._owner)
        except OutboxError as error:
            log.warning("Hindsight: %s", error)
            return report
        held = self._held()
        for part in _parts([id_ for id_ in ids if id_ not in held]):
            if report.failed or not _is_time(left):
                break
            report += self._deliver(self._batch(self._sender.bank, part), left)
        return report

    def _held(self) -> set[int]:
        """Return the ids of the items whose turn comes by itself."""
        with self._lock:
            state = self._state
            return {*state.open, *(state.sealed.ids if state.sealed is not None else ())}

    def _deliver(self, batch: Batch, left: TimeLeft) -> FlushReport:
        """Send one batch; in the end it is done, its fate is in the outbox, or it waits on there."""
        count = len(batch.ids)
        try:
            if not self._owned():
                log.warning("Hindsight: dropped %d queued items of a session that moved on", count)
                batch.state = _LEFT
                self.release()
                return FlushReport()
            self._sender.prepare(batch.bank, left)
            # From here on a crash leaves items that may have arrived.
            items = self._claimed(batch)
            count = len(items)
            operation = self._attempt(batch, [item.queued for item in items], left) if items else None
            batch.state = _SENT
            named = (operation,) if operation and batch.bank == self._sender.bank else ()
            return FlushReport(count, 0, named, (batch.bank,) if count else ())
        except Exception as error:  # noqa: BLE001  every failure becomes one notice; the items stay to be seen
            batch.error = _in_full(error)
            if batch.state == WAITING:
                batch.state = _LEFT
            else:
                batch.state = UNKNOWN if getattr(error, "unknown", False) else FAILED
            self._failed(count, error)
            return FlushReport(0, count)
        except BaseException:
            if batch.state not in {WAITING, *_OVER}:
                batch.state = UNKNOWN
            raise
        finally:
            with self._lock:
                self._settle(batch)

    def _claimed(self, batch: Batch) -> list[Item]:
        items = self._outbox.claim(
            batch.ids,
            batch.states,
            self._owner,
            server=self._sender.address,
            batch=batch.name,
            operation_id=batch.operation_id,
            now_ms=self._clock.now_ms(),
        )
        batch.ids, batch.state = tuple(item.id for item in items), "sending"
        return items

    def _attempt(self, batch: Batch, items: Sequence[Queued], left: TimeLeft) -> str | None:
        try:
            return self._sender.send(batch.bank, items, batch.operation_id, left)
        except UnconfirmedError:
            raise
        except HindsightError as error:
            if batch.operation_id is None or not error.unknown:
                raise
            return self._sender.send(batch.bank, items, batch.operation_id, left)

    def _settle(self, batch: Batch) -> None:
        """Take a batch that is over out of the queue and note its end; may be repeated after an interrupt."""
        if batch.state not in _OVER:
            return
        if batch.state != _LEFT and batch not in self._state.over:
            end = (None if batch.state == _SENT else batch.state, batch.error)
            self._owner.ended.update(dict.fromkeys(batch.ids, end))
            self._state.over.append(batch)
        if self._state.sealed is batch:
            self._state.sealed = None
        self._record()

    def _record(self) -> None:
        """Write down what the outbox does not say yet."""
        for batch in tuple(self._state.over):
            try:
                if batch.state == _SENT:
                    self._outbox.delete(batch.ids)
                else:
                    self._outbox.end(batch.ids, batch.state, batch.error)
            except OutboxError as error:
                # It is tried again with the next batch; until then this process knows.
                log.warning("Hindsight: %s", error)
                return
            if batch.state == _SENT:
                self._own.difference_update(batch.ids)
            for id_ in batch.ids:
                self._owner.ended.pop(id_, None)
            self._state.over.remove(batch)

    def resend(self, *, unknown: bool = False, moved_from: str | None = None) -> FlushReport:
        """Send again what failed and what nobody sends, each item to its own bank.

        Parameters
        ----------
        unknown
            Also what may have arrived already.
        moved_from
            Send what was queued for this server to the present one.

        Raises
        ------
        OutboxError
            The outbox cannot be used.
        """
        report = FlushReport()
        with self._sending:
            if not self._owned():
                return report
            items = self._outbox.items(self._clock.now_ms(), own=self._owner, server=moved_from or self._sender.address)
            held = self._held()
            groups: dict[tuple[str, str | None], list[Item]] = {}
            for item in items:
                if item.id not in held and _is_repeatable(item, unknown=unknown):
                    groups.setdefault((item.bank, item.batch), []).append(item)
            for (bank, name), group in groups.items():
                for part in _parts(group) if name is None else [group]:
                    ids, states = [item.id for item in part], [item.state for item in part]
                    report += self._deliver(self._batch(bank, ids, states, part[0].operation_id), _no_end)
        return report

    def rows(self) -> list[QueueRow]:
        """Return every item of the outbox, oldest first: those of other sessions too."""
        return rows(self._outbox, self._clock.now_ms())

    def unsent(self) -> Counter[str]:
        """Return how many of the items that were taken here are not known to have arrived, by state."""
        try:
            return Counter(row.state for row in self.rows() if row.item in self._own) if self._own else Counter()
        except OutboxError:
            return Counter({UNKNOWN: len(self._own)})

    def close(self, limit_ms: float | None = None) -> FlushReport:
        """Refuse further items, send what waits, and leave the rest to others."""
        with self._lock:
            self._state.closed = True
        try:
            return self._flush_all(limit_ms, left_over=False)
        finally:
            with self._lock:
                if self._state.stop_timer is not None:
                    self._state.stop_timer()
                    self._state.stop_timer = None
            self.release()

    def release(self) -> None:
        """Leave what is not sent to other sessions."""
        try:
            self._outbox.release(self._owner)
        except OutboxError as error:
            log.warning("Hindsight: %s", error)

    def reopen(self) -> None:
        """Take items again; what still waits is sent in its time."""
        with self._lock:
            self._state.closed = False
        self._resume()


def rows(outbox: Outbox, now_ms: int) -> list[QueueRow]:
    """Return every item of an outbox as the user sees it, oldest first."""
    return [
        QueueRow(
            item.state,
            dates.iso(item.queued.at_ms),
            clip(item.queued.content, PREVIEW_UNITS),
            item.error,
            item.id,
            item.bank,
            item.server,
        )
        for item in outbox.items(now_ms)
    ]


def reasons(error: Exception) -> list[str]:
    """Return what an error says beside its exact message: the HTTP status, and what to do."""
    status, hint = getattr(error, "status_code", None), getattr(error, "hint", None)
    return [*([f"HTTP {status}"] if status is not None else []), *([hint] if hint else [])]


def _in_full(error: Exception) -> str:
    more = "; ".join(reasons(error))
    return f"{error} ({more})" if more else str(error)


def _no_end() -> None:
    return None


def _is_time(left: TimeLeft) -> bool:
    rest = left()
    return rest is None or rest > 0


def _parts(found: Sequence[_Any]) -> list[Sequence[_Any]]:
    return [found[at : at + RETAIN_FLUSH_BATCH_SIZE] for at in range(0, len(found), RETAIN_FLUSH_BATCH_SIZE)]


def _is_repeatable(item: Item, *, unknown: bool) -> bool:
    """Return whether an item is sent again by hand; with an operation id a repeat does no harm."""
    if item.state == UNKNOWN:
        return unknown or item.operation_id is not None
    return item.state == FAILED or (item.state == WAITING and item.free)
