"""Sessions in forked and spawned processes: each has its own files, locks and work, and loses nothing of the others."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.forking import ITEMS

if TYPE_CHECKING:
    from pathlib import Path

STORED = "1 memory stored."


def ran(name: str, folder: Path) -> Any:
    """Run a program of :mod:`tests.forking`; return its answer. No process may hang or say anything else."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.forking", name, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def contents(folder: Path) -> list[str]:
    """Return the memories of the only bank, which must be whole."""
    [path] = folder.glob("banks/*/mnemopi.db")
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = [row[0] for row in connection.execute("SELECT content FROM working_memory")]
    connection.close()
    return found


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_pool_store_what_they_acknowledge(method: str, tmp_path: Path) -> None:
    """B01: a session can be given to workers, and goes on in the parent."""
    answers, afterwards = ran(method, tmp_path)
    assert answers == [STORED] * ITEMS
    assert afterwards == STORED
    assert len(contents(tmp_path)) == ITEMS + 2


def test_workers_go_on_when_the_parent_has_closed_its_session(tmp_path: Path) -> None:
    """B01: the end of the parent's session takes no file from its children."""
    answers, _ = ran("closed", tmp_path)
    assert answers == [STORED] * ITEMS
    assert len(contents(tmp_path)) == ITEMS + 1


def test_an_executor_recalls_and_retains(tmp_path: Path) -> None:
    found, answers = ran("executor", tmp_path)
    assert found == [1, 1]
    assert answers == [STORED] * 10
    assert len(contents(tmp_path)) == 11


def test_what_was_given_in_code_is_in_a_fork_and_refused_elsewhere(tmp_path: Path) -> None:
    forked, spawned = ran("only_copied", tmp_path)
    assert forked == STORED
    assert spawned.startswith("MemoryToolkitError: The session cannot be opened again in this process")
    assert contents(tmp_path) == ["by fork"]


def test_a_worker_finishes_its_own_work_and_none_of_the_parent(tmp_path: Path) -> None:
    """B01: what was left to do before the fork is done once, by the parent."""
    by_the_worker, left, calls = ran("work_left_over", tmp_path)
    assert by_the_worker is True
    assert (left, calls) == (0, 2)


def test_parent_and_children_write_at_the_same_time(tmp_path: Path) -> None:
    assert ran("both_write", tmp_path) == [[STORED] * ITEMS] * 3
    assert len(contents(tmp_path)) == 3 * ITEMS + 1


def test_a_child_of_a_child_stores_too(tmp_path: Path) -> None:
    assert ran("nested", tmp_path) == [STORED] * 4
    assert len(contents(tmp_path)) == 5


def test_a_fork_with_an_open_read_disturbs_neither_side(tmp_path: Path) -> None:
    child, rows, afterwards = ran("open_read", tmp_path)
    assert (child, rows, afterwards) == (STORED, 300, STORED)
    assert len(contents(tmp_path)) == 302


def test_a_call_of_another_thread_locks_the_parent_only(tmp_path: Path) -> None:
    child, afterwards = ran("held_lock", tmp_path)
    assert child == [STORED, 1]
    assert afterwards == STORED
    assert len(contents(tmp_path)) == 3


def test_a_write_of_another_thread_is_refused_to_the_child_and_stays_whole(tmp_path: Path) -> None:
    """B01: a child that cannot use a bank safely says so, and acknowledges nothing."""
    refused, afterwards = ran("write_of_another_thread", tmp_path)
    assert all("in use by another thread when this process was forked" in answer for answer in refused)
    assert afterwards == STORED
    assert sorted(contents(tmp_path)) == ["after the fork", "changed by the thread"]


def test_forks_do_not_disturb_a_thread_that_recalls(tmp_path: Path) -> None:
    children, failed, complete = ran("recalling_thread", tmp_path)
    assert children == [STORED] * 8
    assert failed == []
    assert complete is True
    assert len(contents(tmp_path)) == 58


def test_a_child_draws_ids_of_its_own(tmp_path: Path) -> None:
    another_prefix, different = ran("ids", tmp_path)
    assert another_prefix is True
    assert different == 3
