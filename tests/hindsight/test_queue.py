"""The queue: when it sends, what becomes of what was not sent, and what is sent again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.clock import FixedClock, FixedIds, ManualTimers, SystemTimers
from ipy_memory.errors import HindsightError, MemoryToolkitError
from ipy_memory.hindsight.queue import (
    CLOSED,
    RETAIN_FLUSH_BATCH_SIZE,
    RETAIN_FLUSH_INTERVAL_MS,
    Queued,
    RetainQueue,
    TimeLeft,
)
from tests.hindsight.stub import until


class Wire:
    """Takes batches; ``faults`` are raised by the next sends in turn."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.operations: list[str | None] = []
        self.faults: list[BaseException | None] = []
        self.during: Any = None

    def __call__(self, items: Sequence[Queued], operation_id: str | None, left: TimeLeft) -> str | None:
        if self.during is not None:
            self.during()
        fault = self.faults.pop(0) if self.faults else None
        self.operations.append(operation_id)
        if fault is not None:
            raise fault
        self.batches.append([item.content for item in items])
        return f"op{len(self.batches)}"


class Bench:
    def __init__(self, *, safe: bool = False, timers: Any = None) -> None:
        self.wire, self.timers = Wire(), timers or ManualTimers()
        self.clock = FixedClock("2026-06-01T12:00:00.000Z")
        self.notices: list[tuple[int, Exception]] = []
        self.owned = True
        self.queue = RetainQueue(
            self.wire,
            clock=self.clock,
            ids=FixedIds(),
            timers=self.timers,
            owned=lambda: self.owned,
            failed=lambda *notice: self.notices.append(notice),
            safe=safe,
        )

    def add(self, count: int, start: int = 0) -> None:
        self.queue.add([(f"item {index}", None) for index in range(start, start + count)], "s")

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.wire.batches]

    @property
    def states(self) -> list[str]:
        return [row.state for row in self.queue.rows()]


LOST = HindsightError("retainBatch request failed: the connection was lost", unknown=True)
REFUSED = HindsightError("retainBatch failed: no", status_code=503)


@pytest.mark.claim("T-04", "Q-01")
def test_fifteen_wait_and_the_sixteenth_sends() -> None:
    bench = Bench()
    bench.add(RETAIN_FLUSH_BATCH_SIZE - 1)
    bench.timers.advance(0)
    assert (bench.sizes, len(bench.queue)) == ([], 15)
    bench.add(1, 15)
    bench.timers.advance(0)
    assert (bench.sizes, len(bench.queue)) == ([16], 0)


@pytest.mark.claim("Q-02")
def test_the_timer_runs_from_the_first_item() -> None:
    bench = Bench()
    bench.add(1)
    bench.timers.advance(RETAIN_FLUSH_INTERVAL_MS - 1)
    bench.add(1, 1)
    assert bench.sizes == []
    bench.timers.advance(1)
    assert bench.sizes == [2]
    bench.add(1, 2)
    bench.timers.advance(RETAIN_FLUSH_INTERVAL_MS)
    assert bench.sizes == [2, 1]


@pytest.mark.claim("Q-02")
def test_a_waiting_timer_does_not_hold_the_process() -> None:
    bench = Bench(timers=SystemTimers())
    bench.add(1)
    waiting = [thread for thread in threading.enumerate() if thread.name == "ipy-memory-timer"]
    assert waiting
    assert all(thread.daemon for thread in waiting)
    bench.queue.close()
    for thread in waiting:
        thread.join(10)
    assert not any(thread.is_alive() for thread in waiting)


@pytest.mark.claim("Q-04")
def test_forty_items_in_one_call_travel_as_sixteen_and_twenty_four() -> None:
    bench = Bench()
    bench.add(40)
    bench.timers.advance(0)
    assert bench.sizes == [16, 24]


@pytest.mark.claim("Q-04")
def test_seventeen_items_leave_one_to_the_timer() -> None:
    bench = Bench()
    bench.add(17)
    bench.timers.advance(0)
    assert (bench.sizes, len(bench.queue)) == ([16], 1)
    bench.timers.advance(RETAIN_FLUSH_INTERVAL_MS)
    assert bench.sizes == [16, 1]


@pytest.mark.claim("Q-04")
def test_a_flush_during_a_flush_waits_and_sends_the_rest_once() -> None:
    bench = Bench(timers=SystemTimers())
    inside, go = threading.Event(), threading.Event()
    bench.wire.during = lambda: (inside.set(), go.wait(10))
    bench.add(16)
    assert inside.wait(10)
    bench.add(3, 16)
    flusher = threading.Thread(target=bench.queue.flush)
    flusher.start()
    go.set()
    flusher.join(10)
    assert bench.sizes == [16, 3]
    assert bench.states == []


@pytest.mark.claim("Q-04")
@given(st.lists(st.one_of(st.integers(1, 20), st.just(0), st.just(-1)), max_size=12))
def test_no_item_is_stranded_or_sent_twice(steps: list[int]) -> None:
    bench, count = Bench(), 0
    for step in steps:
        if step > 0:
            bench.add(step, count)
            count += step
        elif step == 0:
            bench.queue.flush()
        else:
            bench.timers.advance(RETAIN_FLUSH_INTERVAL_MS)
    bench.timers.advance(RETAIN_FLUSH_INTERVAL_MS)
    assert [item for batch in bench.wire.batches for item in batch] == [f"item {index}" for index in range(count)]
    assert not len(bench.queue)


@pytest.mark.claim("Q-05")
def test_a_closed_queue_sends_what_waits_and_refuses_more() -> None:
    bench = Bench()
    bench.add(2)
    bench.queue.close()
    assert bench.sizes == [2]
    with pytest.raises(MemoryToolkitError, match=f"^{CLOSED}$"):
        bench.add(1)
    assert CLOSED == "Hindsight retain queue is closed."


@pytest.mark.claim("Q-06")
def test_a_session_that_moved_on_drops_its_batch(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.add(2)
    bench.owned = False
    bench.queue.flush()
    assert (bench.sizes, bench.notices, bench.states) == ([], [], [])
    assert "dropped 2 queued items" in caplog.text


@pytest.mark.claim("Q-09")
def test_a_failed_batch_is_one_notice_and_stays_to_be_sent_by_hand() -> None:
    bench = Bench()
    bench.wire.faults = [REFUSED]
    bench.add(2)
    assert bench.queue.flush().failed == 2
    bench.queue.flush()
    bench.timers.advance(60_000)
    assert bench.notices == [(2, REFUSED)]
    assert [(row.state, row.text, row.error) for row in bench.queue.rows()] == [
        ("failed", "item 0", str(REFUSED)),
        ("failed", "item 1", str(REFUSED)),
    ]
    assert bench.queue.resend().sent == 2
    assert (bench.sizes, bench.states) == ([2], [])


@pytest.mark.claim("Q-09", "Q-10", "E-05")
def test_a_batch_of_unknown_outcome_is_never_sent_again_by_itself() -> None:
    bench = Bench()
    bench.wire.faults = [LOST]
    bench.add(1)
    bench.queue.flush()
    assert bench.states == ["unknown"]
    assert bench.queue.resend().sent == 0
    assert bench.wire.operations == [None]
    assert bench.queue.resend(unknown=True).sent == 1


def test_safe_retain_repeats_once_under_the_same_operation() -> None:
    bench = Bench(safe=True)
    bench.wire.faults = [LOST]
    bench.add(1)
    report = bench.queue.flush()
    assert (report.sent, report.operations) == (1, ("op1",))
    first, second = bench.wire.operations
    assert first == second != None  # noqa: E711
    bench.wire.faults = [LOST, LOST]
    bench.add(1, 1)
    bench.queue.flush()
    assert bench.states == ["unknown"]
    assert bench.queue.resend().sent == 1
    assert len(set(bench.wire.operations[2:])) == 1


def test_safe_retain_does_not_repeat_a_refusal() -> None:
    bench = Bench(safe=True)
    bench.wire.faults = [REFUSED]
    bench.add(1)
    bench.queue.flush()
    assert len(bench.wire.operations) == 1


@pytest.mark.claim("R-25", "Q-04")
def test_an_interrupt_leaves_the_batch_visible_and_the_rest_going() -> None:
    bench = Bench()
    bench.wire.faults = [KeyboardInterrupt()]
    bench.wire.during = lambda: bench.add(1, 1) if not bench.wire.operations else None
    bench.add(1)
    with pytest.raises(KeyboardInterrupt):
        bench.queue.flush()
    assert bench.states == ["unknown", "waiting"]
    bench.timers.advance(RETAIN_FLUSH_INTERVAL_MS)
    assert (bench.wire.batches, bench.states) == ([["item 1"]], ["unknown"])


@pytest.mark.claim("Q-10")
def test_closing_keeps_to_its_time() -> None:
    bench = Bench()
    bench.wire.during = lambda: bench.clock.advance(600)
    bench.add(17)
    bench.queue.close(500)
    assert bench.sizes == [16]
    assert (bench.states, bench.queue.unsent()) == (["waiting"], 1)


def test_rows_show_a_clipped_text_and_the_time() -> None:
    bench = Bench()
    bench.queue.add([("x" * 500, None)], "s")
    row = bench.queue.rows()[0]
    assert (row.state, row.queued_at, len(row.text), row.error) == ("waiting", "2026-06-01T12:00:00.000Z", 80, None)


@pytest.mark.claim("Q-01")
def test_many_threads_lose_nothing() -> None:
    bench = Bench(timers=SystemTimers())
    threads = [threading.Thread(target=bench.add, args=(25, 25 * index)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.queue.close()
    until(lambda: not bench.states)
    assert sorted(item for batch in bench.wire.batches for item in batch) == sorted(f"item {i}" for i in range(200))
