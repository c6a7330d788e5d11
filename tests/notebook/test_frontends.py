"""The magics in a real kernel, in a terminal, and through nbconvert."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebook.pages import Reader

ROOT = Path(__file__).resolve().parents[2]
PAYLOAD = "<img src=x onerror=alert(1)> {1+1} deploy target"
START = "%load_ext ipy_memory\nfrom ipy_memory import demo\nhome = demo.start()"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    fixed = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1"}
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
    return {**kept, **fixed, "IPY_MEMORY_DEMO": str(tmp_path / "demo")}


@pytest.fixture
def notebook() -> nbformat.NotebookNode:
    cells = [
        START,
        "%recall deploy target",
        "df = %recall what's the deploy target?",
        "%recall deploy target;",
        f"%retain {PAYLOAD}",
        "%recall alert deploy",
        "%memory",
        "%recall --limt 3 x",
    ]
    made = new_notebook(cells=[new_code_cell(source) for source in cells])
    made.cells[-1].metadata["tags"] = ["raises-exception"]
    return made


@pytest.mark.claim("N-01", "N-02", "N-07")
def test_in_a_kernel_each_magic_is_one_output(
    notebook: nbformat.NotebookNode, env: dict[str, str], tmp_path: Path
) -> None:
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute(cwd=str(tmp_path), env=env)
    load, recall, assigned, quiet, retain, again, status, wrong = [cell.outputs for cell in notebook.cells]
    assert load == assigned == quiet == []
    for (output,) in (recall, retain, again, status):
        assert output.output_type == "execute_result"
        assert set(output.data) == {"text/plain", "text/html"}
    assert recall[0].data["text/plain"].startswith("Found ")
    assert retain[0].data["text/plain"] == "1 memory stored."
    assert f"- {PAYLOAD} (id: " in again[0].data["text/plain"]
    assert "<img" not in again[0].data["text/html"]
    assert "&lt;img src=x" in again[0].data["text/html"]
    (error,) = wrong
    assert (error.output_type, error.ename) == ("error", "MagicError")
    assert len(error.traceback) == 1
    assert "did you mean --limit?" in error.traceback[0]


def test_in_a_terminal_the_text_is_the_whole_display(env: dict[str, str], tmp_path: Path) -> None:
    lines = [
        *START.splitlines(),
        "%recall deploy target",
        "%recall deploy;",
        "%recall --limt 3 x",
        "%%retain",
        "one",
        "",
        "",
        "%recall one",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt", "--colors=NoColor"],
        input="\n".join(lines) + "\n",
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    shown = done.stdout
    assert "Out[4]: Found " in shown or "Out[4]: \nFound " in shown
    assert "Out[5]" not in shown
    assert shown.count("MagicError: %recall has no flag --limt") == 1
    assert "Traceback" not in shown
    assert "1 memory stored." in shown
    assert "- one (id: " in shown
    assert "<table" not in shown


def test_nbconvert_runs_it_and_memory_text_stays_text(
    notebook: nbformat.NotebookNode, env: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "page.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", "--execute", str(path)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [name for name in page.names if name.startswith("on")] == []
    assert PAYLOAD in page.text
