"""The stop button in a real kernel, in every action that can take long: one line, and the bank is as it was."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.clock import FixedIds, SystemClock
from ipy_memory.model import RetainItem
from ipy_memory.notebook.magics import INTERRUPTED
from tests.backends.hindsight.stub import StubServer, until
from tests.services.kernel import Done, Kernel, running
from tests.services.openai_stub import OpenAIStub

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
ROWS = 30_000
FILES = 1_500
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "st", "lk")]
QUESTION = " ".join(WORDS[:60:5])
LIGHTHOUSE = "The lighthouse keeper orders oil in March."


def home(folder: Path, settings: Mapping[str, Any]) -> Mapping[str, str]:
    """Make a home with settings, and return the environment of a kernel in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yml").write_text(json.dumps(settings))
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
    places = {"HOME": str(folder), "IPYTHONDIR": str(folder / "ipython"), "PI_CODING_AGENT_DIR": str(folder)}
    return {**kept, **places, "PYTHONPATH": str(ROOT)}


def local(database: Path, **more: Any) -> Mapping[str, Any]:
    own = {"dbPath": str(database), "scoping": "global", "bank": "big"}
    return {"memory": {"backend": "mnemopi"}, "mnemopi": {**own, **more}}


def filled(path: Path, rows: int) -> None:
    """Write a bank with one memory to be found, and many others."""
    draw = random.Random(1)
    with Bank.open(path, "big", clock=SystemClock(), ids=FixedIds()) as bank:
        retain_items(bank, [RetainItem(LIGHTHOUSE)], session_id="s", cwd="/p")
        with bank.transaction() as connection:
            connection.executemany(
                "INSERT INTO working_memory (id, content, source, timestamp, session_id, channel_id, scope)"
                " VALUES (?, ?, 'test', ?, 'big', 'big', 'bank')",
                (
                    (f"{number:016x}", " ".join(draw.choices(WORDS, k=60)), f"2026-01-01T00:00:00.{number % 1000:03}Z")
                    for number in range(rows)
                ),
            )


def contents(path: Path) -> tuple[object, ...]:
    """Return a sound bank's rows with all their counters, as one comparable value."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return tuple(
            connection.execute(
                "SELECT count(*), sum(length(content)), sum(recall_count), max(timestamp) FROM working_memory"
            ).fetchone()
        ) + tuple(connection.execute("SELECT count(*) FROM memory_embeddings").fetchone())
    finally:
        connection.close()


def stopped(kernel: Kernel, cell: str) -> Done:
    """Run a cell, and stop it when a sign of life shows that it is at work."""
    done = kernel.begin(cell)
    kernel.sign(done)
    kernel.interrupt()
    return kernel.end(done)


def check(done: Done) -> None:
    """See that an interrupted cell shows one line and nothing else."""
    (output,) = done.outputs
    assert (output["ename"], output["traceback"]) == ("KeyboardInterrupt", [INTERRUPTED])


def found(kernel: Kernel) -> str:
    """Return what the next cell finds, without the time of the question."""
    return kernel.cell("%recall --no-touch lighthouse keeper oil").text.partition("\n")[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database folder with a big bank and many files."""
    data = tmp_path_factory.mktemp("big") / "data"
    data.mkdir()
    filled(data / "mnemopi.db", ROWS)
    filled(data / "small.db", 1)
    for number in range(FILES):
        other = data / "banks" / f"p{number}"
        other.mkdir(parents=True)
        os.link(data / "small.db", other / "mnemopi.db")
    return data


@pytest.fixture(scope="module")
def big(folder: Path) -> Iterator[Kernel]:
    """A kernel on the big bank."""
    where = folder.parent / "home"
    with running(folder.parent, home(where, local(folder / "mnemopi.db", noEmbeddings=True))) as kernel:
        kernel.cell("%load_ext ipy_memory")
        kernel.cell("%recall --no-touch lighthouse")
        kernel.cell("%memory use mnemopi")
        yield kernel


@pytest.mark.claim("R-25", "N-06")
@pytest.mark.parametrize(
    "cell",
    [
        f"%recall --limit {ROWS} {QUESTION}",
        f"%memory why --all {QUESTION}",
        f"%memory why --all --everywhere {QUESTION}",
        f"%memory browse --limit {ROWS}",
        "%memory browse --bank *",
        "%memory banks",
        "%memory report",
        "%memory doctor",
        "%%retain --lines\n" + "\n".join(f"line {number} about the harbour" for number in range(10_000)),
    ],
    ids=lambda cell: cell.split("\n")[0][:36],
)
def test_an_interrupt_ends_a_long_action_and_leaves_the_bank(big: Kernel, folder: Path, cell: str) -> None:
    before, answer = contents(folder / "mnemopi.db"), found(big)
    assert "lighthouse" in answer
    check(stopped(big, cell))
    assert found(big) == answer
    assert contents(folder / "mnemopi.db") == before


@pytest.mark.claim("R-25")
@pytest.mark.parametrize("cell", ["%retain the harbour closes at noon", "%memory doctor --repair"])
def test_waiting_for_another_writer_can_be_interrupted(big: Kernel, folder: Path, cell: str) -> None:
    before = contents(folder / "mnemopi.db")
    big.cell(
        "from ipy_memory.backends.mnemopi.db import connection as waiting\n"
        "patience, waiting.BUSY_MS = waiting.BUSY_MS, 600_000"
    )
    other = sqlite3.connect(folder / "mnemopi.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    check(stopped(big, cell))
    other.close()
    big.cell("waiting.BUSY_MS = patience")
    assert contents(folder / "mnemopi.db") == before
    assert "lighthouse" in found(big)


@pytest.mark.claim("N-04")
def test_a_panel_that_is_interrupted_says_so_and_goes_on(big: Kernel) -> None:
    big.cell("%memory panel --live banks")
    done = big.begin_press("Refresh")
    while not any(state.get("clock") for state in big.widgets.values()):
        big.step(done)
    big.interrupt()
    big.end(done)
    status = big.state("StatusLine")
    assert (status["failed"], status["clock"]) == (True, "")
    assert status["text"].startswith("Interrupted")
    big.press("Refresh")
    assert len(big.state("HitTable")["rows"]) == FILES + 1


@pytest.mark.claim("R-25")
def test_a_reindex_is_interrupted_while_the_endpoint_is_silent(tmp_path: Path) -> None:
    filled(tmp_path / "mnemopi.db", 5)
    with OpenAIStub() as stub:
        settings = local(tmp_path / "mnemopi.db", embeddingApiUrl=stub.url, embeddingModel="stub")
        with running(tmp_path, home(tmp_path / "home", settings)) as kernel:
            kernel.cell("%load_ext ipy_memory")
            kernel.cell("%memory embeddings reindex")
            before, answer = contents(tmp_path / "mnemopi.db"), found(kernel)
            with stub.fault("/embeddings", hold=True) as silent:
                done = kernel.begin("%memory embeddings reindex")
                assert silent.reached.wait(60)
                kernel.interrupt()
                check(kernel.end(done))
            assert found(kernel) == answer
            assert contents(tmp_path / "mnemopi.db") == before
            assert "6 vectors computed" in kernel.cell("%memory embeddings reindex").text


@pytest.mark.claim("R-25")
@pytest.mark.parametrize("cell", ["%recall deploy", "%reflect deploy", "%memory browse", "%memory banks"])
def test_a_call_to_a_silent_server_is_interrupted(tmp_path: Path, cell: str) -> None:
    with StubServer([{"delay_ms": 600_000, "times": 1}]) as stub:
        settings = {"memory": {"backend": "hindsight"}, "hindsight": {"apiUrl": stub.url, "mentalModelsEnabled": False}}
        with running(tmp_path, home(tmp_path / "home", settings)) as kernel:
            kernel.cell("%load_ext ipy_memory")
            done = kernel.begin(cell)
            until(lambda: stub.requests, 60)
            kernel.interrupt()
            check(kernel.end(done))
            stub.answer_with([{"body": {"results": [{"text": "alpha"}], "text": "alpha", "items": [], "banks": []}}])
            assert kernel.cell("%recall deploy").error is None
