"""``%memory record``: cells as turns, only while it is on, and nothing of what memory itself gave."""

from __future__ import annotations

import sqlite3
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MagicError, NoBackendError
from ipy_memory.notebook.recorder import OUTPUT_UNITS, answered, said
from tests.notebook.test_loading import traces

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook.conftest import Notebook


@pytest.fixture
def real(bare: Notebook, tmp_path: Path) -> Notebook:
    """A notebook on an empty database, in which every cell is a turn to retain."""
    magics = bare.magics
    magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock("2026-06-01T12:00:00.000Z"), "ids": FixedIds()}
    magics.cwd, magics.agent_dir, magics.database = "/proj/shop", str(tmp_path), str(tmp_path / "mem" / "mnemopi.db")
    (tmp_path / "config.yml").write_text("mnemopi:\n  retainEveryNTurns: 1\n")
    bare.run("%memory use mnemopi")
    return bare


def transcripts(folder: Path) -> list[str]:
    found = []
    for path in sorted((folder / "mem").rglob("mnemopi.db")):
        connection = sqlite3.connect(path)
        query = "SELECT content FROM working_memory WHERE source = 'coding-agent-transcript' ORDER BY rowid"
        found += [content for (content,) in connection.execute(query)]
        connection.close()
    return found


def shown(notebook: Notebook, cell: str) -> str:
    ran = notebook.run(cell)
    assert ran.error is None, ran.stdout
    return ran.outputs[0]["text/plain"]


# ---- what a cell says


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("x = 1\nx + 1", "x = 1\nx + 1"),
        ("%recall deploy target", ""),
        ("%%retain --lines\nThe pin is 1234.\nMore.", ""),
        ("\n\n%%recall\nquery", ""),
        ("before = 1\n%memory record status\ndf = %recall x\n  %reflect y\nafter = 2", "before = 1\nafter = 2"),
        ("%load_ext ipy_memory\n%matplotlib inline", "%matplotlib inline"),
        ("text = '%recall is a magic'", "text = '%recall is a magic'"),
        ("prompt = '<memories>\nold\n</memories>\nnew'", "prompt = '\nnew'"),
        ("share = 10 %memory_total", "share = 10 %memory_total"),
    ],
)
def test_of_a_source_all_but_our_magics_is_said(source: str, kept: str) -> None:
    assert said(source) == kept


@pytest.mark.parametrize(
    ("outputs", "kept"),
    [
        (["printed\n", "value"], "printed\nvalue"),
        (["a\n<memories>\n- old\n</memories>\nb", ""], "a\n\nb"),
        (["see:\nFound 2 relevant memories (as of 2026-06-01 12:00 UTC):\n\n- one\n\n- two", "7"], "see:\n7"),
        (["Based on recalled memories:\n\n- one"], ""),
        (["x" * (OUTPUT_UNITS + 5)], "x" * (OUTPUT_UNITS - 1) + "…"),
    ],
)
def test_of_the_outputs_all_but_recalled_memory_is_the_answer(outputs: list[str], kept: str) -> None:
    assert answered(outputs) == kept


# ---- in a shell


@pytest.mark.claim("A-09", "T-10")
def test_cells_become_turns_only_while_recording_is_on(real: Notebook, tmp_path: Path) -> None:
    real.run("before = 'not recorded'")
    told = shown(real, "%memory record on")
    assert "shop-" in told
    assert "~/mem/banks/" in told
    assert "4,000 characters" in told
    assert "redacted" in told
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    real.run(f"token = '{secret}'\nprint('printed', 1)\n40 + 2")
    assert shown(real, "%memory record status") == "Recording is on; 1 cell taken so far."
    real.run("1 / 0")
    assert "2 cells taken" in shown(real, "%memory record off")
    real.run("after = 'not recorded'")
    first, second = transcripts(tmp_path)
    assert first == (
        "[role: user]\ntoken = '[REDACTED]'\nprint('printed', 1)\n40 + 2\n[user:end]\n\n"
        "[role: assistant]\nprinted 1\n42\n[assistant:end]"
    )
    assert "ZeroDivisionError: division by zero" in second
    assert "not recorded" not in first + second
    assert shown(real, "%memory record status") == "Recording is off."


def test_b058_nothing_that_memory_gave_is_recorded(real: Notebook, tmp_path: Path) -> None:
    real.run("%retain The deploy target of the shop is fly.io.")
    real.run("%memory record on")
    for cell in (
        "%recall deploy target",
        "frame = %recall deploy target\nframe",
        "frame[['content']]",
        "print(frame.attrs['text'])",
        "import ipy_memory\n%memory view",
        "%%retain\nAnother secret plan.",
    ):
        real.run(cell)
    real.run("done = True")
    real.run("%memory record off")
    stored = "\n".join(transcripts(tmp_path))
    assert "done = True" in stored
    for memory in ("fly.io", "secret plan", "<memories>", "Found 1"):
        assert memory not in stored


def test_a_preview_shows_what_would_be_written_and_writes_nothing(real: Notebook, tmp_path: Path) -> None:
    shell: Any = real.shell
    shell.run_cell("x = 1", store_history=True)
    shell.run_cell("x + 41", store_history=True)
    ran = shell.run_cell("preview = get_ipython().run_line_magic('memory', 'record preview')", store_history=True)
    assert ran.success
    text = str(real.shell.user_ns["preview"])
    assert text.startswith("With recording on, each cell's source")
    assert "[role: user]\nx + 41\n[user:end]\n\n[role: assistant]\n42\n[assistant:end]" in text
    assert not (tmp_path / "mem").exists()
    real.run("%memory record on")
    real.run("y = 'taken'")
    assert "y = 'taken'" in shown(real, "%memory record preview")


def test_results_shown_in_a_terminal_are_not_recorded(
    real: Notebook, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C10: a terminal prints what is shown in loops; that is memory text, not an answer."""
    real.run("%retain Tea is preferred.")
    real.run("%memory record on")
    real.shell.run_cell("for word in ('tea', 'Tea'):\n    print('looked for', word)\n    %memory browse tea")
    assert capsys.readouterr().out.count("Tea is preferred.") == 2
    real.run("%memory record off")
    [text] = transcripts(tmp_path)
    assert "looked for tea\n\nlooked for Tea" in text
    assert "is preferred" not in text


def test_a_value_that_shows_itself_is_shown_once(real: Notebook) -> None:
    real.run("%memory record on")
    ran = real.run("class Loud:\n    def _ipython_display_(self):\n        print('shown')\nLoud()")
    assert ran.stdout.count("shown") == 1
    ran = real.run("from IPython.display import HTML\nHTML('<b>x</b>')")
    assert len(ran.outputs) == 1


@pytest.mark.claim("A-09", "A-06")
@pytest.mark.parametrize("backend", ["mnemopi", "hindsight"])
def test_recording_is_refused_where_nothing_would_be_written(real: Notebook, tmp_path: Path, backend: str) -> None:
    ran = real.run("%memory use off\n%memory record on")
    assert isinstance(ran.error, NoBackendError)
    (tmp_path / "config.yml").write_text(f"{backend}:\n  autoRetain: false\n")
    real.run(f"%memory use {backend}")
    ran = real.run("%memory record on")
    assert isinstance(ran.error, MagicError)
    assert f"{backend}.autoRetain is false" in ran.stdout


@pytest.mark.parametrize("cell", ["%memory use mnemopi", "%memory scope global", "%config MemoryMagics.cwd = '/else'"])
def test_another_bank_ends_the_recording(real: Notebook, tmp_path: Path, cell: str) -> None:
    real.run("%memory record on")
    real.run("x = 'taken'")
    real.run(cell)
    real.run("y = 'not taken'")
    assert "Recording is off" in shown(real, "%memory record status")
    [text] = transcripts(tmp_path)
    assert "x = 'taken'" in text


@pytest.mark.claim("N-06")
def test_b094_loading_and_recording_again_leave_one_of_each_and_unloading_none(real: Notebook, tmp_path: Path) -> None:
    stdout, before = sys.stdout, traces(real)
    real.run("%memory record on")
    real.run("%memory record on")
    recording = traces(real)
    for _ in range(3):
        real.run("%reload_ext ipy_memory")
        assert traces(real) == before
    magics = real.magics
    magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock("2026-06-01T12:00:00.000Z"), "ids": FixedIds()}
    magics.cwd, magics.agent_dir, magics.database = "/proj/shop", str(tmp_path), str(tmp_path / "mem" / "mnemopi.db")
    real.run("%memory use mnemopi")
    real.run("%memory record on")
    assert traces(real) == recording
    real.run("print('once')")
    real.run("%unload_ext ipy_memory\nprint('unloaded')")
    real.run("print('afterwards')")
    assert [text.count("print('once')") for text in transcripts(tmp_path)] == [1]
    left = {event: len(calls) for event, calls in real.shell.events.callbacks.items()}
    loaded: Any = before["callbacks"]
    assert left == {**loaded, "post_execute": loaded["post_execute"] - 1}  # the one that writes notes
    assert sys.stdout is stdout
    assert threading.active_count() == before["threads"]


def test_a_stream_that_somebody_else_took_is_left_to_them(real: Notebook) -> None:
    real.run("%memory record on")
    mine = sys.stdout
    try:
        shell: Any = real.shell
        shell.run_cell("import sys, io\nsys.stdout = taken = io.StringIO()\nprint('to mine')")
        assert sys.stdout is real.shell.user_ns["taken"]
    finally:
        sys.stdout = mine
