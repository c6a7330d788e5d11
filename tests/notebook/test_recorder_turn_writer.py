"""Recording at the end of a process, and beside a server or a bank that lets one wait."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pexpect
import pytest
from jupyter_client.manager import KernelManager

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.conversation import Message
from ipy_memory.notebook import recorder
from ipy_memory.notebook.recorder import TurnWriter
from ipy_memory.settings.resolve import Settings
from tests.backends.hindsight.stub import StubServer, until
from tests.notebook.test_recorder import transcripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jupyter_client.blocking.client import BlockingKernelClient

    from tests.notebook.conftest import Notebook

ROOT = Path(__file__).resolve().parents[2]
CELLS = ("%load_ext ipy_memory", "%memory record on", "project = 'the shop of Mira'", "project.upper()")
FOREVER_MS = 600_000


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
    fixed = {"HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "dumb", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    return kept | fixed | {"PI_CODING_AGENT_DIR": str(home / "agent")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose agent works on local banks; a turn is retained with three others, or at the end."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "config.yml").write_text("memory:\n  backend: mnemopi\n")
    return tmp_path


def written(home: Path) -> str:
    [bank] = (home / "agent").rglob("mnemopi.db")
    with closing(sqlite3.connect(bank)) as connection:
        rows = connection.execute("SELECT content FROM working_memory").fetchall()
    assert len(rows) == 1
    return str(rows[0][0])


# ---- at the end of a process


@pytest.fixture
def kernel(home: Path) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager = KernelManager()
    manager.start_kernel(env=environment(home), cwd=str(home))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.claim("A-09")
@pytest.mark.parametrize("end", ["shutdown", "restart", "exit", "quit()"])
def test_the_last_cells_are_stored_at_the_end_of_a_kernel(
    kernel: tuple[KernelManager, BlockingKernelClient], home: Path, end: str
) -> None:
    """B07: restart and shutdown as a front end asks for them, and the words that end a kernel."""
    manager, client = kernel
    for cell in CELLS:
        done = client.execute_interactive(cell, timeout=60, output_hook=lambda _: None)
        assert done["content"]["status"] == "ok"
    if end == "shutdown":
        manager.shutdown_kernel()
    elif end == "restart":
        manager.restart_kernel()
    else:
        client.execute(end)
        until(lambda: not manager.is_alive(), 60)
    assert "project = 'the shop of Mira'" in written(home)
    assert "'THE SHOP OF MIRA'" in written(home)


@pytest.mark.parametrize("end", ["exit\n", "quit()\n", "\x04"])
def test_the_last_cells_are_stored_at_the_end_of_a_terminal(home: Path, end: str) -> None:
    """B07: a real terminal, left by a word or by Ctrl-D."""
    command = ["-m", "IPython", "--no-banner", "--simple-prompt", "--no-confirm-exit", "--colors=NoColor"]
    shell = pexpect.spawn(sys.executable, command, env=environment(home), cwd=str(home), timeout=60)  # type: ignore[arg-type]
    with closing(shell):
        for number, cell in enumerate(CELLS, 1):
            shell.expect_exact(f"In [{number}]: ")
            shell.sendline(cell)
        shell.expect_exact(f"In [{len(CELLS) + 1}]: ")
        shell.send(end)
        shell.expect(pexpect.EOF)
    assert "'THE SHOP OF MIRA'" in written(home)


def test_a_server_that_does_not_answer_delays_the_end_for_a_moment_only(home: Path, stub: StubServer) -> None:
    """B07: the time at the end is bounded, and what may be missing is said."""
    (home / "agent" / "config.yml").write_text(
        f"memory:\n  backend: hindsight\nhindsight:\n  apiUrl: {stub.url}\n  retainTimeoutMs: {FOREVER_MS}\n"
    )
    stub.answer_with([{"delay_ms": FOREVER_MS}])
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt", "--colors=NoColor"],
        input="\n".join(CELLS) + "\n",
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert "the last recorded cells may not have been stored" in done.stderr
    assert stub.requests


# ---- beside something slow


@pytest.fixture
def recording(bare: Notebook, stub: StubServer, tmp_path: Path) -> Notebook:
    """A notebook that is recorded on a server, each turn at once."""
    bare.magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock(0), "ids": FixedIds()}
    bare.magics.cwd, bare.magics.agent_dir = "/proj/shop", str(tmp_path)
    (tmp_path / "config.yml").write_text(f"hindsight:\n  apiUrl: {stub.url}\n  retainEveryNTurns: 1\n")
    bare.run("%memory use hindsight\n%memory record on")
    return bare


def documents(stub: StubServer) -> list[str]:
    return [
        item["content"]
        for request in stub.requests
        if request["method"] == "POST" and request["url"].endswith("/memories")
        for item in request["body"]["items"]
    ]


def test_cells_do_not_wait_for_the_server_and_their_order_is_kept(recording: Notebook, stub: StubServer) -> None:
    """C18: all cells are over while the server still holds the first turn."""
    stub.answer_with([{"method": "POST", "delay_ms": FOREVER_MS}])
    for number in range(5):
        assert recording.run(f"value = {number}").error is None
    until(lambda: documents(stub))
    assert len(documents(stub)) == 1
    stub.answer_with([])
    stub.released.set()
    assert "5 cells taken" in recording.run("%memory record off").outputs[0]["text/plain"]
    last = documents(stub)[-1]
    assert [last.index(f"value = {number}") for number in range(5)] == sorted(
        last.index(f"value = {number}") for number in range(5)
    )


def test_cells_do_not_wait_for_a_locked_bank(bare: Notebook, tmp_path: Path) -> None:
    """C18: a plain cell, a recall, and the next plain cell, while another process holds the write lock."""
    bare.magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock(0), "ids": FixedIds()}
    bare.magics.cwd, bare.magics.agent_dir = "/proj/shop", str(tmp_path)
    bare.magics.database = str(tmp_path / "mem" / "mnemopi.db")
    (tmp_path / "config.yml").write_text("mnemopi:\n  retainEveryNTurns: 1\n")
    bare.run("%memory use mnemopi\n%retain The deploy target is fly.io.\n%memory record on")
    [bank] = (tmp_path / "mem").rglob("mnemopi.db")
    cells = ["x = 1", "x + 1", "%recall deploy target", "x + 2"]
    with closing(sqlite3.connect(bank, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        ran = [bare.run(cell) for cell in cells]
        assert time.monotonic() - begun < 4  # a writer that waits to the end takes five seconds
        assert [one.error for one in ran] == [None] * len(cells)
        assert transcripts(tmp_path) == []
        other.execute("COMMIT")
    bare.run("%memory record off")
    assert "x + 2" in transcripts(tmp_path)[-1]


# ---- what was not stored


@pytest.mark.parametrize("end", ["record off", "use mnemopi", "unload"])
def test_the_end_says_when_a_server_did_not_take_the_last_cells(
    recording: Notebook, stub: StubServer, end: str
) -> None:
    stub.answer_with([{"method": "POST", "status": 503, "body": {"detail": "overloaded"}}])
    recording.run("secret = 'a word of the cell'")
    if end == "record off":
        shown = recording.run("%memory record off").outputs[0]["text/plain"]
        assert shown.startswith("Recording is off; 1 cell taken. The last of them were not stored: ")
    else:
        ran = recording.run("%unload_ext ipy_memory" if end == "unload" else f"%memory {end}")
        shown = ran.stderr
        assert "ipy_memory: The last recorded cells were not stored: " in shown
    assert "retain failed: overloaded" in shown
    assert "a word of the cell" not in shown


def test_a_later_success_includes_what_failed(recording: Notebook, stub: StubServer) -> None:
    stub.answer_with([{"method": "POST", "status": 503, "times": 1}])
    recording.run("first = 1")
    until(lambda: documents(stub))
    until(lambda: "not stored" in recording.run("%memory record status").outputs[0]["text/plain"])
    stub.answer_with([])
    recording.run("second = 2")
    assert recording.run("%memory record off").outputs[0]["text/plain"] == "Recording is off; 2 cells taken."
    assert "first = 1" in documents(stub)[-1]


def test_the_end_says_when_a_bank_did_not_take_the_last_cells(
    bare: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipy_memory.backends.mnemopi.session.BUSY_MS", 100)
    bare.magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock(0), "ids": FixedIds()}
    bare.magics.cwd, bare.magics.agent_dir = "/proj/shop", str(tmp_path)
    bare.magics.database = str(tmp_path / "mem" / "mnemopi.db")
    bare.run("%memory use mnemopi\n%retain The deploy target is fly.io.\n%memory record on")
    [bank] = (tmp_path / "mem").rglob("mnemopi.db")
    with closing(sqlite3.connect(bank, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        bare.run("x = 1")
        shown = bare.run("%memory record off").outputs[0]["text/plain"]
    assert shown.startswith("Recording is off; 1 cell taken. The last of them were not stored: ")
    assert shown.endswith("database is locked")
    assert transcripts(tmp_path) == []


# ---- the writer itself


class Conversation:
    """A session that notes how many messages each end of a turn had."""

    chosen = "mnemopi"
    unretained = None

    def __init__(self) -> None:
        self.settings = Settings()
        self.messages = [Message("user", "x")]
        self.ends: list[int] = []
        self.forced = 0
        self.go_on = threading.Event()

    def end_turn(self, messages: list[Message]) -> None:
        self.go_on.wait()
        self.ends.append(len(messages))
        if len(messages) == 2:
            raise OSError("no disk")

    def force_retain(self) -> None:
        self.forced += 1


def test_each_end_of_a_turn_has_the_conversation_of_its_time_and_a_failure_stops_no_other() -> None:
    session: Any = Conversation()
    writer = TurnWriter(session)
    for _ in range(3):
        writer.end_turn()
        session.messages.append(Message("user", "x"))
    session.go_on.set()
    assert writer.finish(30)
    assert session.ends == [1, 2, 3]
    assert session.forced == 1


def test_retention_that_was_switched_off_is_not_forced_at_the_end() -> None:
    """C03: the end of a recording writes nothing then."""
    session: Any = Conversation()
    writer = TurnWriter(session)
    writer.end_turn()
    session.settings = session.settings.with_overrides({"mnemopi.autoRetain": False})
    session.go_on.set()
    assert writer.finish(30)
    assert session.forced == 0


def test_a_full_queue_keeps_the_latest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_WAITING", 2)
    session: Any = Conversation()
    writer = TurnWriter(session)
    for _ in range(50):
        writer.end_turn()
        session.messages.append(Message("user", "x"))
    session.go_on.set()
    assert writer.finish(30)
    assert session.ends[-1] == 50
    assert len(session.ends) <= 4


def test_a_writer_without_a_turn_has_nothing_to_finish() -> None:
    session: Any = cast("Any", SimpleNamespace())
    assert TurnWriter(session).finish()
    assert [one for one in threading.enumerate() if one.name == "ipy-memory-turns"] == []
