"""A real shell without a front end, the extension loaded into it, and a session that answers from lists."""

from __future__ import annotations

import atexit
import gc
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import capture_output
from traitlets import Type
from traitlets.config import Config

import ipy_memory
import ipy_memory.session
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.notebook.magics import MemoryMagics
from tests.notebook.fakes import FakeSession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"


@dataclass
class Ran:
    """What a cell gave: its result, what it displayed and what it printed."""

    result: Any
    error: BaseException | None
    outputs: list[dict[str, str]]
    stdout: str
    stderr: str


class RecordingHook(DisplayHook):
    """Keeps what a cell's value shows, as a kernel would send it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.shown: list[dict[str, str]] = []

    def write_output_prompt(self) -> None:
        """Nothing: a kernel has no prompt."""

    def write_format_data(self, format_dict: dict[str, str], md_dict: object = None) -> None:
        self.shown.append(format_dict)

    def finish_displayhook(self) -> None:
        """Nothing: a kernel writes no newline."""


class RecordingShell(InteractiveShell):
    displayhook_class = Type(RecordingHook)


class Notebook:
    """Runs cells in a shell, as a front end would."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def run(self, cell: str) -> Ran:
        hook = self.shell.displayhook
        hook.shown.clear()
        with capture_output() as captured:
            done: ExecutionResult = self.shell.run_cell(cell)
        error = done.error_before_exec or done.error_in_exec
        outputs = [*(output.data for output in captured.outputs), *hook.shown]
        return Ran(done.result, error, outputs, captured.stdout, captured.stderr)

    @property
    def magics(self) -> MemoryMagics:
        magics = self.shell.magics_manager.registry["MemoryMagics"]
        assert isinstance(magics, MemoryMagics)
        return magics


def stored(notebook: Notebook, text: str) -> str:
    """Store a memory with the magic; return its id."""
    return str(notebook.run(f"%%retain\n{text}").result["id"].iloc[0])


def plain(notebook: Notebook, line: str) -> str:
    """Return the plain text of a line's only output."""
    ran = notebook.run(line)
    assert ran.error is None, ran.stdout
    (output,) = ran.outputs
    return output["text/plain"]


@pytest.fixture(scope="session", autouse=True)
def _settled() -> Iterator[None]:
    """Keep what is loaded once out of the collection with which each shell ends: it takes half a second otherwise."""
    import ipywidgets  # noqa: F401
    import pandas as pd  # noqa: F401

    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PI_CODING_AGENT_DIR", raising=False)
    config = Config()
    config.HistoryManager.enabled = False
    RecordingShell.clear_instance()
    hook = sys.displayhook
    shell = RecordingShell.instance(config=config)
    yield shell
    sys.displayhook = hook
    ipy_memory.unload_ipython_extension(shell)
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    RecordingShell.clear_instance()


@pytest.fixture
def bare(shell: InteractiveShell) -> Notebook:
    """A notebook with the extension loaded and nothing chosen."""
    notebook = Notebook(shell)
    loaded = notebook.run("%load_ext ipy_memory")
    assert loaded.error is None
    return notebook


@pytest.fixture
def real(bare: Notebook, tmp_path: Path) -> Notebook:
    """A notebook on an empty database, with the clock standing still."""
    magics = bare.magics
    magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock(NOW), "ids": FixedIds()}
    magics.cwd, magics.agent_dir, magics.database = "/proj/shop", str(tmp_path), str(tmp_path / "mem" / "mnemopi.db")
    bare.run("%memory use mnemopi")
    return bare


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def notebook(bare: Notebook, session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """A notebook whose session answers from lists."""

    def open_session(backend: str | None, **given: Any) -> FakeSession:
        session.opened = {"backend": backend, **given}
        return session

    monkeypatch.setattr(ipy_memory.session, "open_session", open_session, raising=False)
    return bare
