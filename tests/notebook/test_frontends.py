"""The magics in a real kernel, in a terminal, and through nbconvert."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pexpect
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebook.pages import Reader
from tests.services.kernel import running

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
    for output, *notes in (recall, retain, again, status):
        assert all((note.output_type, note.name) == ("stream", "stderr") for note in notes)
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


NOTE = "Note: 1 credential was replaced by [REDACTED]."
CONSOLE: dict[str, Any] = {}
"""What jupyter console adds to a request."""
RETAIN = "%retain the api_key=sk-abcdefghijklmnopqrstuvwxyz012345 of\r the shop"


def test_a_note_follows_the_text_where_no_html_is_shown(env: dict[str, str], tmp_path: Path) -> None:
    """C01: a request that names no cell (nbclient, nbconvert, nbval, jupyter console) gets the note on stderr."""
    made = new_notebook(cells=[new_code_cell(START), new_code_cell(RETAIN), new_code_cell("x = " + RETAIN)])
    NotebookClient(made, kernel_name="python3", timeout=60).execute(cwd=str(tmp_path), env=env)
    _, (shown, note), assigned = [cell.outputs for cell in made.cells]
    assert (shown.output_type, note.output_type, note.name) == ("execute_result", "stream", "stderr")
    assert note.text == f"{NOTE}\n"
    assert assigned == []


@pytest.mark.parametrize("front", [{"cellId": "c1"}, {"cellId": "c1", "deletedCells": []}])
def test_where_html_is_shown_the_note_stands_in_it_alone(
    front: dict[str, Any], env: dict[str, str], tmp_path: Path
) -> None:
    """C01: JupyterLab, Notebook 7 and VS Code name the cell, and show the notes below the table."""
    with running(tmp_path, env) as kernel:
        kernel.cell(START)
        (shown,) = kernel.end(kernel.begin(RETAIN, metadata=front)).outputs
        assert "1 credential was replaced by [REDACTED]." in Reader(shown["data"]["text/html"]).text
        below = kernel.end(kernel.begin(RETAIN.replace("shop", "bar"), metadata=CONSOLE)).outputs
        assert [one["output_type"] for one in below] == ["execute_result", "stream"]


def test_steering_characters_are_shown_where_plain_text_meets_a_terminal(env: dict[str, str], tmp_path: Path) -> None:
    """A10: jupyter console and nbconvert name no cell; a page gets the exact text."""
    text = "steer \x1b[31m\u202e\u200b end"
    with running(tmp_path, env) as kernel:
        kernel.cell(START)
        kernel.cell(f"home.session().retain([{text!r}])")
        console = kernel.end(kernel.begin("%recall steer end", metadata=CONSOLE)).text
        assert not {"\x1b", "\u202e", "\u200b"} & set(console)
        assert "⟨U+001B⟩[31m⟨U+202E⟩⟨U+200B⟩" in console
        assert text in kernel.end(kernel.begin("%recall steer end")).text
        converted = kernel.end(kernel.begin("%recall steer end", person=False, metadata=CONSOLE)).text
        assert not {"\x1b", "\u202e", "\u200b"} & set(converted)


def test_a_terminal_shows_the_note_below_the_text(env: dict[str, str], tmp_path: Path) -> None:
    """C01: in a real terminal of IPython."""
    shown = typed(
        [sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt", "--colors=NoColor"], env, tmp_path
    )
    assert shown.index("1 memory stored.") < shown.index(NOTE)


def test_jupyter_console_shows_the_note_below_the_text(env: dict[str, str], tmp_path: Path) -> None:
    """C01: in a real jupyter console."""
    shown = typed([sys.executable, "-m", "jupyter_console", "--simple-prompt"], env, tmp_path)
    assert shown.index("1 memory stored.") < shown.index(NOTE)
    assert "working" not in shown


def typed(command: list[str], env: dict[str, str], cwd: Path) -> str:
    """Type a retain into a program in a terminal of its own; return all that the terminal showed."""
    program = pexpect.spawn(command[0], command[1:], env={**env, "COLUMNS": "120"}, cwd=str(cwd), encoding="utf-8")
    program.setwinsize(40, 120)
    shown = []
    for line in (*START.splitlines(), RETAIN.replace("\r", "")):
        program.expect(r"In ?\[\d+\]: ", timeout=60)
        shown.append(program.before or "")
        program.sendline(line)
    program.expect(r"In ?\[\d+\]: ", timeout=60)
    shown.append(program.before or "")
    program.sendline("exit")
    program.expect([pexpect.EOF, "y/n"], timeout=60)
    program.close(force=True)
    return "".join(shown)


@pytest.mark.parametrize(("form", "ending"), [("markdown", "md"), ("rst", "rst")])
def test_a_converted_notebook_has_the_note_and_no_live_memory_text(
    form: str, ending: str, env: dict[str, str], tmp_path: Path
) -> None:
    """A17, C01: in Markdown neither images, links nor elements of memory text are live, whatever reads it."""
    memory = "![image](http://x/y.png) [link](http://x/) <http://x/> www.x.org <b>bold</b> `code` $x$ deploy"
    made = new_notebook(
        cells=[
            new_code_cell(START),
            new_code_cell(f"_ = home.session().retain([{memory!r}, {memory!r} + '\\n\\n' + {memory!r}])"),
            new_code_cell("%recall image link deploy"),
            new_code_cell("%memory browse image"),
            new_code_cell("%recall --explain image"),
            new_code_cell(RETAIN),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}},
    )
    nbformat.write(made, tmp_path / "page.ipynb")
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", form, "--execute", "page.ipynb"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"page.{ending}").read_text(encoding="utf-8")
    assert NOTE in page
    if form == "markdown":
        outputs = [part.partition("```")[2] for part in page.split("```python")[1:]]
        for output in outputs:
            assert "](" not in output
            assert "<b>" not in output
            assert "://x" not in output
            assert "www.x" not in output
