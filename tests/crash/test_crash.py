"""Kills, crowds and full disks: nothing acknowledged is lost, nothing is half-written, every error is clear."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.admin.stats import FAILED, diagnose
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember, retain_items
from ipy_memory.clock import ProcessIds, SystemClock
from ipy_memory.errors import DiskFullError
from ipy_memory.model import RetainItem
from tests.crash.worker import SHARED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.crash

SEED, KILLS = 20260601, 220


def opened(path: Path, name: str) -> Bank:
    return Bank.open(path, name, clock=SystemClock(), ids=ProcessIds())


def column(path: Path, query: str) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(query)]


def assert_whole(path: Path, name: str) -> None:
    assert column(path, "PRAGMA integrity_check") == ["ok"]
    with closing(sqlite3.connect(path)) as connection:
        for index in ("fts_working", "fts_episodes", "fts_facts"):
            connection.execute(f"INSERT INTO {index}({index}) VALUES ('integrity-check')")
    rows = "SELECT id || coalesce(embed_text, content) FROM working_memory ORDER BY id"
    assert column(path, rows) == column(path, "SELECT id || content FROM fts_working ORDER BY id")
    found = diagnose(path, name, SystemClock())
    assert [check.finding for check in found.checks if check.state == FAILED] == []


def test_writers_killed_at_any_moment_lose_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    opened(path, "crash").close()
    run = subprocess.run(
        [sys.executable, "-m", "tests.crash.nursery", path, str(SEED), str(KILLS)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(run.stdout)
    print(f"seed {SEED}: {KILLS} kills, {told['inside']} inside a write, {len(told['acknowledged'])} ids acknowledged")
    assert told["inside"] >= 20
    assert set(told["acknowledged"]) <= set(column(path, "SELECT id FROM working_memory"))
    assert_whole(path, "crash")
    # Each call wrote three items, each with its date, its source and its one fact: whole calls or nothing.
    calls = column(path, "SELECT count(*) FROM working_memory GROUP BY substr(content, 1, length(content) - 2)")
    assert set(calls) == {3}
    for table, key in (("facts", "source_msg_id"), ("memoria_facts", "source_memory_id")):
        assert column(path, f"SELECT {key} FROM {table} ORDER BY 1") == column(
            path, "SELECT id FROM working_memory ORDER BY 1"
        )
    assert column(path, "SELECT count(*) FROM annotations GROUP BY memory_id HAVING count(*) <> 2") == []


def test_four_processes_lose_no_update_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    with opened(path, "busy") as bank:
        shared = remember(bank, "count:", RememberOptions(source=SHARED))
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.worker", path, str(number), "250"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(1, 5)
    ]
    answers = [worker.communicate() for worker in workers]
    assert [(worker.returncode, error) for worker, (_, error) in zip(workers, answers, strict=True)] == [(0, "")] * 4
    told = [json.loads(out) for out, _ in answers]
    ledger = {id_: text for one in told for id_, text in one["ledger"].items()}
    with closing(sqlite3.connect(path)) as connection:
        stored = dict(connection.execute("SELECT id, content FROM working_memory").fetchall())
    counted = stored.pop(shared).removeprefix("count:")
    assert stored == ledger
    assert {n: counted.count(str(n)) for n in range(1, 5)} == {n: one["appended"] for n, one in enumerate(told, 1)}
    assert_whole(path, "busy")


def test_a_full_database_says_so_and_works_again_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    with opened(path, "full") as bank:
        kept = remember(bank, "Written before the disk was full.")
        pages = bank.connection.execute("PRAGMA page_count").fetchone()[0]
        bank.connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        receipt = retain_items(bank, [RetainItem("x" * 200_000)], session_id="s", cwd="/p")
        assert [type(failure.error) for failure in receipt.failures] == [DiskFullError]
        assert receipt.ids == (None,)
        bank.connection.execute("PRAGMA max_page_count = 1073741823")
        assert retain_items(bank, [RetainItem("x" * 200_000)], session_id="s", cwd="/p").failures == ()
    assert column(path, "SELECT count(*) FROM working_memory") == [2]
    assert kept in column(path, "SELECT id FROM working_memory")
    assert_whole(path, "full")


_LIMITED = """
import resource, signal, sys
from ipy_memory.clock import ProcessIds, SystemClock
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.model import RetainItem
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Bank.open(sys.argv[1], "limit", clock=SystemClock(), ids=ProcessIds()) as bank:
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
    receipt = retain_items(bank, [RetainItem("y" * 2_000_000)], session_id="s", cwd="/p")
    print(type(receipt.failures[0].error).__name__, receipt.ids)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(retain_items(bank, [RetainItem("z" * 1000)], session_id="s", cwd="/p").failures)
"""


def test_a_file_size_limit_leaves_what_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    with opened(path, "limit") as bank:
        remember(bank, "Written before the limit.")
    run = subprocess.run([sys.executable, "-c", _LIMITED, path], capture_output=True, text=True, check=True)
    refused, accepted = run.stdout.splitlines()
    assert refused.split(" ", 1)[0] in {"DiskFullError", "BankError"}
    assert refused.endswith("(None,)")
    assert accepted == "()"
    assert len(column(path, "SELECT id FROM working_memory")) == 2
    assert_whole(path, "limit")
