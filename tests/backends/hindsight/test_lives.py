"""Processes that end in every way, fork, or run beside each other: nothing acknowledged is lost or sent twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends.hindsight.lives import ITEMS
from tests.backends.hindsight.stub import StubServer, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
QUEUED = "1 memory queued."


def begun(name: str, folder: Path, stub: StubServer, *more: str) -> subprocess.Popen[str]:
    """Start a program of :mod:`tests.backends.hindsight.lives`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.backends.hindsight.lives", name, folder, stub.url, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def ended(process: subprocess.Popen[str], said: str = "") -> list[Any]:
    """Wait for a program; return the lines that it printed. It may neither hang nor say anything else."""
    out, error = process.communicate(said, timeout=300)
    assert (process.returncode, error) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def ran(name: str, folder: Path, stub: StubServer, *more: str) -> Any:
    return ended(begun(name, folder, stub, *more))[-1]


def arrived(stub: StubServer) -> Counter[str]:
    """Return how often each content came to the server."""
    batches = [request["body"]["items"] for request in stub.requests if request["url"].endswith("/memories")]
    return Counter(item["content"] for batch in batches for item in batch)


# ---- forks and workers


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_what_workers_of_a_pool_acknowledge_arrives_once(method: str, tmp_path: Path, stub: StubServer) -> None:
    """B01: the end of a worker sends what it queued, and nothing of its parent's."""
    found = ran(method, tmp_path, stub)
    assert found["answers"] == [QUEUED] * (ITEMS + 1)
    assert [text for text, _ in found["left"]] in (["before the fork"], [])
    assert found["then"] == []
    assert arrived(stub) == dict.fromkeys(["before the fork", *(f"memory number {n}" for n in range(ITEMS))], 1)


def test_what_terminated_workers_left_is_seen_and_sent_by_the_parent(tmp_path: Path, stub: StubServer) -> None:
    """B01: a worker that is terminated runs no code at its end."""
    found = ran("terminated", tmp_path, stub)
    assert found["answers"] == [QUEUED] * (ITEMS + 1)
    assert {state for _, state in found["left"]} <= {"waiting", "unknown"}
    unknown = {text for text, state in found["left"] if state == "unknown"}
    assert {text for text, _ in found["then"]} == unknown
    came = arrived(stub)
    assert set(came.values()) == {1}
    assert {*came, *unknown} == {"before the fork", *(f"memory number {n}" for n in range(ITEMS))}


def test_a_child_that_is_gone_without_a_word_leaves_its_items_to_the_parent(tmp_path: Path, stub: StubServer) -> None:
    """B01: the child begins with an empty queue of its own."""
    answer, left, then = ran("child_ends_without_a_word", tmp_path, stub)
    assert answer == [QUEUED, 1]
    assert left == [["of the parent", "waiting"], ["of the child", "waiting"]]
    assert then == []
    assert arrived(stub) == {"of the parent": 1, "of the child": 1}


def test_a_child_that_exits_sends_its_own_items_only(tmp_path: Path, stub: StubServer) -> None:
    """B01: a child's exit sends nothing of the parent's queue."""
    assert ran("child_exits", tmp_path, stub) == [["of the parent", "waiting"]]
    assert arrived(stub) == {"of the child": 1, "of the parent": 1}


def test_a_fork_during_a_send_gives_the_child_locks_and_connections_of_its_own(
    tmp_path: Path, stub: StubServer
) -> None:
    stub.answer_with([{"method": "POST", "times": 1, "delay_ms": 600_000}])
    process = begun("child_of_a_thread_that_sends", tmp_path, stub)
    until(lambda: any(request["method"] == "POST" for request in stub.requests), 60)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("it has come\n")
    process.stdin.flush()
    child = json.loads(process.stdout.readline())
    stub.released.set()
    assert child == [QUEUED, 1, [["of the parent", "sending"]]]
    assert ended(process) == [[]]
    assert arrived(stub) == {"of the parent": 1, "of the child": 1}


def test_what_a_parent_left_is_sent_by_the_child_that_outlives_it(tmp_path: Path, stub: StubServer) -> None:
    assert ran("parent_ends_first", tmp_path, stub) == [1, []]
    assert arrived(stub) == {"of the parent": 1}


def test_forks_among_threads_that_retain_lose_nothing(tmp_path: Path, stub: StubServer) -> None:
    acknowledged, children, left = ran("forks_of_many_threads", tmp_path, stub)
    assert children == [QUEUED] * 6
    assert left == []
    assert arrived(stub) == dict.fromkeys([*acknowledged, *(f"child {n}" for n in range(6))], 1)


# ---- ends


def test_what_a_killed_kernel_acknowledged_is_seen_by_the_next_and_sent(tmp_path: Path, stub: StubServer) -> None:
    """B02: an item is on the disk before it is acknowledged."""
    process = begun("killed", tmp_path, stub)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert ran("looks", tmp_path, stub) == [["acknowledged", "waiting"]]
    assert arrived(stub) == {}
    assert ran("flushes", tmp_path, stub) == [1, []]
    assert arrived(stub) == {"acknowledged": 1}


def test_what_was_on_its_way_when_a_kernel_was_killed_is_not_sent_again_unasked(
    tmp_path: Path, stub: StubServer
) -> None:
    """B02: it may have arrived."""
    stub.answer_with([{"method": "POST", "times": 1, "delay_ms": 600_000}])
    process = begun("killed_while_it_sends", tmp_path, stub)
    until(lambda: arrived(stub), 60)
    assert ran("looks", tmp_path, stub) == [["on its way", "sending"]]
    assert ran("flushes", tmp_path, stub) == [0, [["on its way", "sending"]]]
    process.kill()
    process.communicate(timeout=60)
    assert ran("flushes", tmp_path, stub) == [0, [["on its way", "unknown"]]]
    assert arrived(stub) == {"on its way": 1}


def fates(tmp_path: Path, stub: StubServer, step: int) -> Counter[tuple[bool, str, str, int]]:
    """Kill at every ``step``-th line; return how often: acknowledged, state found, state after a flush, arrivals."""
    told = ran("killed_at_every_line", tmp_path, stub, str(step))
    came = arrived(stub)
    return Counter((done, *there, *after, came[f"item {line}"]) for line, done, (*there,), (*after,) in told)


NOTHING, NOT_ACKNOWLEDGED = (False, 0), (False, "waiting", 1)
WAITED, ARRIVED = (True, "waiting", 1), (True, 1)
NOT_SENT, SENT = (True, "unknown", "unknown", 0), (True, "unknown", "unknown", 1)


def test_a_kill_at_any_line_loses_nothing_and_doubles_nothing(tmp_path: Path, stub: StubServer) -> None:
    """B02: acknowledged is in the outbox or on the server, and nothing that may have arrived is sent again."""
    assert set(fates(tmp_path, stub, 29)) == {NOTHING, NOT_ACKNOWLEDGED, WAITED, ARRIVED, NOT_SENT, SENT}


@pytest.mark.crash
def test_a_kill_at_every_line_loses_nothing_and_doubles_nothing(tmp_path: Path, stub: StubServer) -> None:
    found = fates(tmp_path, stub, 1)
    print(dict(found))
    assert set(found) == {NOTHING, NOT_ACKNOWLEDGED, WAITED, ARRIVED, NOT_SENT, SENT}


def test_a_thread_that_retains_at_the_end_of_the_program_loses_nothing(tmp_path: Path, stub: StubServer) -> None:
    process = begun("ends_with_a_thread_that_retains", tmp_path, stub)
    out, error = process.communicate(timeout=120)
    acknowledged = {said for line in out.splitlines() if (said := json.loads(line)) is not None}
    assert "Traceback" not in error
    left = {text for text, _ in ran("looks", tmp_path, stub)}
    came = arrived(stub)
    assert set(came.values()) == {1}
    assert acknowledged <= {*came, *left}


# ---- kernels beside each other


def test_many_kernels_that_flush_at_once_send_each_item_once(tmp_path: Path, stub: StubServer) -> None:
    """B02: what an ended kernel left is claimed by one of those that live."""
    for _ in range(3):
        begun("killed", tmp_path, stub).communicate(timeout=60)
    stub.answer_with([{"method": "POST", "delay_ms": 200}])
    processes = [begun("flushes", tmp_path, stub) for _ in range(4)]
    assert sum(ended(process)[-1][0] for process in processes) == 3
    assert arrived(stub) == {"acknowledged": 3}


# ---- disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.crash
def test_a_full_disk_refuses_and_what_was_kept_is_sent(small_disk: Path, stub: StubServer) -> None:
    answers, left = ran("on_a_full_disk", small_disk, stub)
    first, one, another, last = answers
    assert (first, last, left) == (QUEUED, QUEUED, [])
    for refused in (one, another):
        assert refused.startswith("OutboxError: The outbox")
        assert "full" in refused
        assert "more" not in refused
    assert arrived(stub) == {"while there was room": 1, "room again": 1}
