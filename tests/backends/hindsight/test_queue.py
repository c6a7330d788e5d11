"""The queue: when it sends, what becomes of what was not sent, and what is sent again."""

from __future__ import annotations

import tempfile
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipy_memory.backends.base import FlushReport
from ipy_memory.backends.hindsight.outbox import Outbox, Queued
from ipy_memory.backends.hindsight.queue import (
    CLOSED,
    RETAIN_FLUSH_BATCH_SIZE,
    RETAIN_FLUSH_INTERVAL_MS,
    RetainQueue,
    TimeLeft,
)
from ipy_memory.clock import FixedClock, FixedIds, ManualTimers, SystemTimers
from ipy_memory.errors import HindsightError, MemoryToolkitError, OutboxError
from tests.backends.hindsight.stub import until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Wire:
    """Takes batches; ``faults`` are raised by the next sends in turn."""

    address, bank = "http://server", "omp"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.items: list[Queued] = []
        self.operations: list[str | None] = []
        self.faults: list[BaseException | None] = []
        self.during: Any = None

    def prepare(self, bank: str, left: TimeLeft) -> None:
        pass

    def send(self, bank: str, items: Sequence[Queued], operation_id: str | None, left: TimeLeft) -> str | None:
        self.items += items
        if self.during is not None:
            self.during()
        fault = self.faults.pop(0) if self.faults else None
        self.operations.append(operation_id)
        if fault is not None:
            raise fault
        self.batches.append([item.content for item in items])
        return f"op{len(self.batches)}"


@pytest.fixture(scope="module", autouse=True)
def _root(tmp_path_factory: pytest.TempPathFactory) -> None:
    Bench.root = tmp_path_factory.mktemp("queues")


class Bench:
    """A queue in front of a made-up server; ``beside`` shares the outbox of another."""

    root: Path

    def __init__(
        self, *, safe: bool = False, timers: Any = None, beside: Bench | None = None, outbox: Outbox | None = None
    ) -> None:
        shared = outbox or (beside.outbox if beside else None)
        self.outbox = shared or Outbox(tempfile.mkdtemp(dir=self.root))
        self.wire, self.timers = Wire(), timers or ManualTimers()
        self.clock = FixedClock("2026-06-01T12:00:00.000Z")
        self.notices: list[tuple[int, Exception]] = []
        self.owned = True
        self.queue = RetainQueue(
            self.wire,
            self.outbox,
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
@settings(max_examples=30)  # each writes real files
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
    assert (bench.sizes, bench.notices, bench.states) == ([], [], ["waiting"] * 2)
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
        ("failed", "item 0", f"{REFUSED} (HTTP 503)"),
        ("failed", "item 1", f"{REFUSED} (HTTP 503)"),
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


# ---- beyond one queue: what others left, and what by hand


@pytest.mark.claim("Q-06", "Q-10")
def test_what_an_ended_session_left_is_sent_by_the_next_one_apart() -> None:
    first = Bench()
    first.owned = False
    first.add(20)
    first.queue.close()
    assert (first.sizes, first.states) == ([], ["waiting"] * 20)
    second = Bench(beside=first)
    second.add(2, 20)
    second.timers.advance(RETAIN_FLUSH_INTERVAL_MS)
    assert second.wire.batches == [
        ["item 20", "item 21"],
        [f"item {index}" for index in range(16)],
        [f"item {index}" for index in range(16, 20)],
    ]
    assert second.states == []


def test_what_a_living_session_waits_with_is_its_own() -> None:
    first = Bench()
    first.add(2)
    second = Bench(beside=first)
    assert second.queue.flush().sent == 0
    assert second.queue.resend(unknown=True).sent == 0
    assert first.queue.flush().sent == 2
    assert (first.sizes, second.sizes) == ([2], [])


def test_a_session_that_did_nothing_tries_nothing_for_others_at_its_end() -> None:
    first = Bench()
    first.owned = False
    first.add(1)
    first.queue.close()
    second = Bench(beside=first)
    second.queue.close()
    assert (second.sizes, second.states) == ([], ["waiting"])
    third = Bench(beside=first)
    third.add(1, 1)
    third.queue.close()
    assert third.wire.batches == [["item 1"], ["item 0"]]


def test_a_server_that_fails_is_not_tried_again_for_others() -> None:
    first = Bench()
    first.owned = False
    first.add(40)
    first.queue.close()
    second = Bench(beside=first)
    second.add(1, 40)
    second.wire.faults = [REFUSED]
    assert second.queue.flush().failed == 1
    assert second.states == ["waiting"] * 40 + ["failed"]
    second.wire.faults = [None, REFUSED]
    assert second.queue.flush().failed == 16
    assert [second.states.count(state) for state in ("waiting", "failed")] == [8, 17]


def test_another_session_sends_again_what_failed_each_item_with_its_own_tags() -> None:
    first = Bench()
    first.wire.faults = [REFUSED]
    first.queue.add([("a", "from here")], "sess-a", ["project:a"])
    first.queue.close()
    second = Bench(beside=first)
    assert second.queue.resend().sent == 1
    assert second.wire.items[-1] == Queued("a", "from here", "sess-a", first.clock.now_ms(), ("project:a",))
    assert first.states == second.states == []


@pytest.mark.claim("Q-06")
def test_a_session_that_moved_on_sends_nothing_again() -> None:
    bench = Bench()
    bench.wire.faults = [REFUSED]
    bench.add(1)
    bench.queue.flush()
    bench.owned = False
    assert bench.queue.resend(unknown=True) == FlushReport()
    assert bench.states == ["failed"]


def test_an_item_that_was_dropped_is_not_sent() -> None:
    bench = Bench()
    bench.add(3)
    bench.outbox.drop([bench.queue.rows()[1].item], bench.clock.now_ms())
    assert bench.queue.flush().sent == 2
    assert bench.wire.batches == [["item 0", "item 2"]]
    bench.add(1)
    bench.outbox.drop([row.item for row in bench.queue.rows()], bench.clock.now_ms())
    assert bench.queue.flush().sent == 0
    assert bench.sizes == [2]


def test_what_was_queued_for_another_server_waits_for_a_clear_word() -> None:
    first = Bench()
    first.wire.faults = [REFUSED]
    first.add(2)
    first.queue.close()
    second = Bench(beside=first)
    second.wire.address = "http://new"  # type: ignore[misc]
    second.add(1, 2)
    assert second.queue.flush().sent == 1
    assert second.queue.resend(unknown=True).sent == 0
    second.wire.faults = [REFUSED]
    assert second.queue.resend(moved_from="http://server").failed == 2
    assert {row.server for row in second.queue.rows()} == {"http://new"}
    assert second.queue.resend().sent == 2


def test_two_sessions_that_send_again_at_once_send_each_item_once() -> None:
    first = Bench(timers=SystemTimers())
    first.wire.faults = [REFUSED] * 3
    for start in (0, 2, 4):
        first.add(2, start)
        first.queue.flush()
    benches = [Bench(beside=first, timers=SystemTimers()) for _ in range(4)]
    threads = [threading.Thread(target=bench.queue.resend) for bench in benches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent = [item for bench in benches for batch in bench.wire.batches for item in batch]
    assert sorted(sent) == [f"item {index}" for index in range(6)]
    assert first.states == []


class Refusing(Outbox):
    """An outbox on a disk that takes nothing any more: ``refused`` names the methods that fail."""

    refused: tuple[str, ...] = ()

    def _refuse(self, name: str) -> None:
        if name in self.refused:
            raise OutboxError("the disk is full")

    def add(self, *given: Any) -> Any:
        self._refuse("add")
        return super().add(*given)

    def claim(self, *given: Any, **named: Any) -> Any:
        self._refuse("claim")
        return super().claim(*given, **named)

    def end(self, *given: Any) -> None:
        self._refuse("end")
        super().end(*given)

    def delete(self, *given: Any) -> None:
        self._refuse("delete")
        super().delete(*given)


def on_a_bad_disk(*refused: str) -> tuple[Bench, Refusing]:
    outbox = Refusing(tempfile.mkdtemp(dir=Bench.root))
    bench = Bench(outbox=outbox)
    outbox.refused = refused
    return bench, outbox


@pytest.mark.claim("Q-11")
def test_what_cannot_be_kept_is_not_acknowledged() -> None:
    bench, outbox = on_a_bad_disk("add")
    with pytest.raises(OutboxError):
        bench.add(2)
    assert (len(bench.queue), bench.queue.flush().sent) == (0, 0)
    outbox.refused = ()
    bench.add(1)
    assert bench.queue.flush().sent == 1


def test_what_cannot_be_noted_as_on_its_way_is_not_sent_and_waits() -> None:
    bench, outbox = on_a_bad_disk("claim")
    bench.add(2)
    assert bench.queue.flush().failed == 2
    assert (bench.sizes, bench.states) == ([], ["waiting"] * 2)
    outbox.refused = ()
    assert bench.queue.flush().sent == 2
    assert bench.states == []


@pytest.mark.parametrize("fault", [None, REFUSED, LOST])
def test_what_became_of_items_is_known_here_until_it_can_be_noted(fault: HindsightError | None) -> None:
    bench, outbox = on_a_bad_disk("end", "delete")
    bench.wire.faults = [fault]
    bench.add(1)
    bench.queue.flush()
    known = {None: [], REFUSED: ["failed"], LOST: ["unknown"]}[fault]
    assert bench.states == known
    another = Bench(beside=bench)
    assert another.queue.flush().sent == 0
    outbox.refused = ()
    bench.queue.flush()
    assert [item.state for item in Outbox(outbox.path.parent.parent).items(bench.clock.now_ms())] == known
    assert bench.queue.unsent().total() == len(known)


@pytest.mark.claim("Q-10")
def test_closing_keeps_to_its_time() -> None:
    bench = Bench()
    bench.wire.during = lambda: bench.clock.advance(600)
    bench.add(17)
    bench.queue.close(500)
    assert bench.sizes == [16]
    assert (bench.states, bench.queue.unsent()) == (["waiting"], {"waiting": 1})


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
