"""Reports of what went wrong for others in notebooks, each as a test by the number of its row."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from ipy_memory.errors import HindsightError
from tests.notebook.test_loading import traces

if TYPE_CHECKING:
    from tests.backends.hindsight.stub import StubServer
    from tests.notebook.conftest import Notebook
    from tests.notebook.fakes import FakeSession

ROOT = Path(__file__).resolve().parents[2]
DEMO = "%load_ext ipy_memory\nfrom ipy_memory import demo\nhome = demo.start()"
AS_TYPED = (
    "what's Bob's \"favourite",
    "' padded '",
    'set {x} and $x and {8} and {"a":1}',
    "{__import__('os').getpid()}",
    "{1+1} {{b}} $HOME !ls \\",
    '{"name": "Duck"}',
    "-swarm --- a -h b",
    "%recall ?",
)


@pytest.fixture
def served(bare: Notebook, stub: StubServer, tmp_path: Path) -> Notebook:
    """A notebook on a stand-in Hindsight server."""
    (tmp_path / "config.yml").write_text(f"hindsight:\n  apiUrl: {stub.url}\n  mentalModelsEnabled: false\n")
    bare.magics.world = {"env": {"HOME": str(tmp_path)}}
    bare.magics.cwd = bare.magics.agent_dir = str(tmp_path)
    bare.run("%memory use hindsight")
    return bare


def in_a_kernel(cells: list[str], folder: Path, source: Path = ROOT) -> list[list[Any]]:
    """Run cells in a real kernel and return their outputs."""
    made = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
    env = {**kept, "HOME": str(folder), "PYTHONPATH": str(source), "TZ": "UTC", "IPY_MEMORY_DEMO": str(folder / "demo")}
    NotebookClient(made, kernel_name="python3", timeout=60).execute(cwd=str(folder), env=env)
    return [cell.outputs for cell in made.cells]


def plain(outputs: list[Any]) -> str:
    (one,) = (output for output in outputs if output["output_type"] != "stream")
    return str(one.data["text/plain"])


@pytest.mark.claim("N-07")
@pytest.mark.parametrize("text", AS_TYPED)
def test_b088_b089_g17_the_query_is_what_was_typed_and_runs_nothing(
    notebook: Notebook, session: FakeSession, text: str
) -> None:
    notebook.run("x = 5")
    notebook.run(f"%recall {text}")
    notebook.run(f"df = %recall {text}")
    assert [call[1] for call in session.calls] == [text, text]


@pytest.mark.claim("N-03", "N-07")
@pytest.mark.parametrize("text", AS_TYPED)
def test_b091_line_and_cell_store_the_same(notebook: Notebook, session: FakeSession, text: str) -> None:
    notebook.run(f"%retain {text}")
    notebook.run(f"%%retain\n{text}\n")
    (line, cell) = [call[1][0].content for call in session.calls]
    assert line == cell == text


@pytest.mark.claim("N-06")
def test_b094_b110_loading_again_and_again_leaves_one_of_each_and_shows_nothing(notebook: Notebook) -> None:
    before = traces(notebook)
    shown = [notebook.run("%load_ext ipy_memory")] + [notebook.run("%reload_ext ipy_memory") for _ in range(3)]
    assert [one.outputs for one in shown] == [[], [], [], []]
    assert traces(notebook) == before


def test_b096_the_one_api_works_under_a_running_loop_and_on_threads(tmp_path: Path) -> None:
    asked = "session.recall, 'deploy target', touch=False"
    cells = [
        DEMO,
        "%recall deploy target",
        """
import asyncio, threading
session = get_ipython().magics_manager.registry["MemoryMagics"].session
""",
        "print(session.recall('deploy target', touch=False).text)",
        f"print((await asyncio.to_thread({asked})).text)",
        f"print({{one.text for one in await asyncio.gather(*[asyncio.to_thread({asked}) for _ in range(4)])}}.pop())",
        """
said = []
thread = threading.Thread(target=lambda: said.append(session.recall("deploy target", touch=False).text))
thread.start()
thread.join()
print(said[0])
""",
    ]
    _, magic, _, *others = in_a_kernel(cells, tmp_path)
    for (printed,) in others:
        assert printed.text.strip() == plain(magic).strip()


def test_b099_a_closing_semicolon_silences_and_is_not_asked_for(notebook: Notebook, session: FakeSession) -> None:
    assert notebook.run("%recall alpha;").outputs == []
    assert notebook.run("df = %recall alpha;").outputs == []
    assert [call[1] for call in session.calls] == ["alpha", "alpha"]


def test_b100_reloaded_modules_keep_the_session_and_its_queue(tmp_path: Path, stub: StubServer) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "ipy_memory", source / "ipy_memory", ignore=shutil.ignore_patterns("__pycache__"))
    stub.answer_with([{"url_contains": "/recall", "body": {"results": [{"text": "alpha"}]}}])
    touch = (
        "import os, pathlib, time\nlater = time.time() + 5\n"
        f"for path in pathlib.Path({str(source)!r}).rglob('*.py'):\n"
        "    path.write_text(path.read_text() + '\\n')\n    os.utime(path, (later, later))"
    )
    cells = [
        f"import os\nos.environ['HINDSIGHT_API_URL'] = {stub.url!r}",
        "%load_ext ipy_memory\n%load_ext autoreload\n%autoreload 2",
        "%memory use hindsight",
        "%retain one",
        touch,
        "%recall alpha",
        "%retain two",
        "%memory queue",
        "%memory flush",
    ]
    *_, recalled, _, queued, _ = in_a_kernel(cells, tmp_path, source)
    assert "- alpha" in plain(recalled)
    assert [line.split()[-1] for line in plain(queued).splitlines()[1:]] == ["one", "two"]
    batches = [
        [item["content"] for item in r["body"]["items"]] for r in stub.requests if r["url"].endswith("/memories")
    ]
    assert batches == [["one", "two"]]


@pytest.mark.claim("N-02")
def test_b102_b105_a_result_is_one_output_or_a_variable(notebook: Notebook) -> None:
    shown = notebook.run("%recall alpha")
    assert (len(shown.outputs), shown.stdout.count("Found")) == (1, 0)
    assigned = notebook.run("df = %recall alpha")
    assert (assigned.outputs, assigned.stdout, assigned.stderr) == ([], "", "")
    bound = notebook.run("%%recall --out named\nalpha")
    assert len(bound.outputs) == 1
    assert notebook.shell.user_ns["named"].equals(notebook.shell.user_ns["df"])


def test_b103_b108_a_panel_is_one_output_with_a_stable_text(tmp_path: Path) -> None:
    forms = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        panels = [f"%memory panel {name}" for name in ("recall", "banks", "memory", "retain", "reflect")]
        _, *shown = in_a_kernel([DEMO, *panels], tmp_path / run)
        forms.append([(output.data["text/plain"], output.data["text/html"]) for (output,) in shown])
    assert forms[0] == forms[1]
    assert str(tmp_path) not in str(forms)


def test_b106_a_page_is_made_without_the_state_of_widgets(tmp_path: Path) -> None:
    cells = [new_code_cell(DEMO), new_code_cell("%recall deploy target"), new_code_cell("%memory panel")]
    written = tmp_path / "page.ipynb"
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "IPY_MEMORY_DEMO": str(tmp_path / "demo")}
    make = [sys.executable, "-m", "nbconvert", "--log-level=ERROR"]
    nbformat.write(new_notebook(cells=cells), written)
    subprocess.run([*make, "--execute", "--to", "notebook", "--inplace", written], check=True, env=env, timeout=120)
    ran = nbformat.read(written, 4)
    ran.metadata.pop("widgets", None)
    nbformat.write(ran, written)
    subprocess.run([*make, "--to", "html", written], check=True, env=env, timeout=120)
    assert "relevant memories" in written.with_suffix(".html").read_text(encoding="utf-8")


# ---- the user at the keyboard


def interrupt_next_send(served: Notebook) -> None:
    """Break off the next send, as Ctrl-C does while an answer is awaited."""
    carrier = served.magics.session.backend.service  # type: ignore[union-attr]
    usual = carrier.send

    def send(*_: object) -> None:
        carrier.send = usual
        raise KeyboardInterrupt

    carrier.send = send


@pytest.mark.claim("N-06")
@pytest.mark.parametrize("cell", ["%unload_ext ipy_memory", "%reload_ext ipy_memory"])
def test_g5_ctrl_c_while_unloading_unloads_and_tells_what_is_lost(served: Notebook, cell: str) -> None:
    served.run("%retain one")
    interrupt_next_send(served)
    ran = served.run(cell)
    assert isinstance(ran.error, KeyboardInterrupt)
    assert "1 memory may or may not have arrived in the Hindsight bank omp" in ran.stderr
    again = served.run("%load_ext ipy_memory")
    assert "already loaded" not in again.stdout
    assert served.magics._session is None


def test_g5_ctrl_c_while_choosing_another_backend_tells_what_is_lost(served: Notebook) -> None:
    served.run("%retain one")
    interrupt_next_send(served)
    ran = served.run("%memory use mnemopi")
    assert isinstance(ran.error, KeyboardInterrupt)
    assert "1 memory may or may not have arrived" in ran.stderr


@pytest.mark.claim("S-13")
def test_g5_ctrl_c_while_changing_the_scope_leaves_the_old_one(served: Notebook, stub: StubServer) -> None:
    served.run("%retain one")
    session = served.magics.session
    interrupt_next_send(served)
    assert isinstance(served.run("%memory scope global").error, KeyboardInterrupt)
    assert (served.magics.session, served.magics.scope) == (session, "")
    assert session.backend.status()["tags"]  # type: ignore[union-attr]
    assert served.run("%memory scope global").error is None
    assert session.backend.status()["tags"] == []  # type: ignore[union-attr]


@pytest.mark.claim("E-02")
@pytest.mark.parametrize(
    "cell",
    [
        "%recall x",
        "%reflect x",
        "%recall --bank other x",
        *(f"%memory {name}" for name in ("banks", "operations", "browse", "stats", "mm list", "mm seed", "mm show x")),
        "%memory why id x",
    ],
)
@pytest.mark.parametrize("down", [False, True], ids=["an odd answer", "down"])
def test_g20_a_command_without_a_server_is_one_line_of_its_own_class(
    served: Notebook, stub: StubServer, cell: str, down: bool
) -> None:
    page = "<html><script>alert(1)</script>\x1b[31m" + "x" * 5_000
    stub.answer_with([{"status": 502 if down else 200, "text": page}])
    ran = served.run(cell)
    if cell in {"%recall x", "%reflect x"} and not down:
        assert ran.error is None
        assert any("hindsight.apiUrl" in note for note in ran.result.attrs["notes"])
        return
    assert type(ran.error) is HindsightError
    assert ran.stdout.count("\n") == 1
    assert len(ran.stdout) < 1_000
    assert "\x1b" not in ran.stdout


def test_g14_what_a_server_says_is_shown_and_not_obeyed(served: Notebook, stub: StubServer) -> None:
    evil = "<script>alert(1)</script> \x1b[31m \u202e"
    stub.answer_with([{"method": "PUT"}, {"status": 500, "body": {"detail": evil + "y" * 5_000}}])
    served.run("%retain one")
    flushed = served.run("%memory flush")
    assert flushed.stderr.count("\n") == 1
    assert len(flushed.stderr) < 1_000
    queued = served.run("%memory queue").outputs[0]
    stub.answer_with([{"body": {"banks": [{"bank_id": evil}], "operations": [{"operation_id": evil}], "items": []}}])
    banks = served.run("%memory banks").outputs[0]
    done = served.run("%memory operations").outputs[0]
    for text in (flushed.stderr, queued["text/plain"]):
        assert "\x1b" not in text
        assert "\u202e" not in text
    for page in (queued, banks, done):
        assert "<script" not in page["text/html"]
        assert "\x1b" not in page["text/html"]
