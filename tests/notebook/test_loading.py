"""Loading reads nothing and imports nothing heavy; unloading leaves nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.notebook.conftest import Notebook

if TYPE_CHECKING:
    from tests.notebook.fakes import FakeSession

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pandas", "numpy", "ipywidgets", "anywidget", "httpx", "httpx2", "sqlite_utils", "yaml", "matplotlib")


def traces(notebook: Notebook) -> dict[str, object]:
    """Return everything in a shell that an extension can add to."""
    shell = notebook.shell
    manager = shell.input_transformer_manager
    return {
        "magics": {kind: set(table) for kind, table in shell.magics_manager.magics.items()},
        "registry": set(shell.magics_manager.registry),
        "configurables": sorted(type(one).__name__ for one in shell.configurables),
        "transforms": [
            list(manager.cleanup_transforms),
            list(manager.line_transforms),
            [one.__name__ for one in manager.token_transformers],
        ],
        "matchers": len(shell.Completer.custom_matchers),
        "callbacks": {event: len(calls) for event, calls in shell.events.callbacks.items()},
        "exceptions": shell.custom_exceptions,
        "threads": threading.active_count(),
    }


@pytest.mark.claim("N-01")
def test_loading_adds_the_magics_and_prints_nothing(shell: object) -> None:
    notebook = Notebook(shell)  # type: ignore[arg-type]
    ran = notebook.run("%load_ext ipy_memory")
    assert (ran.outputs, ran.stdout, ran.stderr, ran.error) == ([], "", "", None)
    assert {"memory", "recall", "retain", "reflect"} <= set(notebook.shell.magics_manager.magics["line"])
    assert {"recall", "retain", "reflect"} <= set(notebook.shell.magics_manager.magics["cell"])
    assert notebook.magics._session is None


@pytest.mark.claim("N-06")
def test_unloading_takes_everything_back(shell: object) -> None:
    notebook = Notebook(shell)  # type: ignore[arg-type]
    notebook.run("%unload_ext ipy_memory")  # the shell adds its own %load_ext and %unload_ext at their first use
    own_recall = notebook.shell.find_line_magic("recall")
    before = traces(notebook)
    notebook.run("%load_ext ipy_memory")
    assert traces(notebook) != before
    notebook.run("%unload_ext ipy_memory")
    assert traces(notebook) == before
    assert "not found" in notebook.run("%retain x").stderr
    assert notebook.shell.find_line_magic("recall") == own_recall


@pytest.mark.claim("N-06")
def test_a_session_of_an_unloaded_extension_is_closed(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("%recall x")
    notebook.run("%unload_ext ipy_memory")
    assert session.closed == 1


@pytest.mark.claim("N-06")
def test_loading_again_leaves_exactly_one_of_each(notebook: Notebook, session: FakeSession) -> None:
    once = traces(notebook)
    for cell in ("%load_ext ipy_memory", "%reload_ext ipy_memory", "%reload_ext ipy_memory"):
        notebook.run(cell)
        assert traces(notebook) == once
    notebook.run("%retain x")
    assert len(session.calls) == 1


@pytest.mark.claim("N-06")
def test_a_magic_of_somebody_else_is_left_alone(notebook: Notebook) -> None:
    notebook.shell.register_magic_function(lambda line: line, magic_name="recall")
    notebook.run("%unload_ext ipy_memory")
    assert notebook.run("%recall mine").result == "mine"


@pytest.mark.claim("N-01")
def test_loading_imports_nothing_heavy_and_touches_no_file(tmp_path: Path) -> None:
    script = f"""
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
config = Config(); config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
import ipy_memory
shell.run_cell("%load_ext ipy_memory")
heavy = [name for name in {HEAVY!r} if name in sys.modules]
assert not heavy, heavy
assert "ipy_memory.session" not in sys.modules
assert ipy_memory.open_session.__module__ == "ipy_memory.session.opening"
heavy = [name for name in {HEAVY!r} if name in sys.modules]
assert not heavy, heavy
"""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ip")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert not (tmp_path / ".omp").exists()


def test_the_package_offers_its_names_lazily() -> None:
    import ipy_memory

    assert "open_session" in dir(ipy_memory)
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = ipy_memory.nothing_such  # type: ignore[attr-defined]
