"""``ipy-memory demo``: demonstration banks, one recall from them, and the quickstart notebook."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory import demo
from ipy_memory.errors import MagicError, MissingFeatureError
from ipy_memory.shell import output

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from ipy_memory.demo import Demo

NOTEBOOK = "00_quickstart.ipynb"
_CELL_SECONDS = 120
_ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a process to end; Windows has only the first."""


def demonstrate(flags: Mapping[str, Any]) -> int:
    """Make the banks and show them; a folder that nobody named is removed at the end."""
    if {"no-lab", "execute"} <= set(flags):
        raise MagicError("--no-lab and --execute exclude each other", hint="leave one of the two out")
    if "folder" in flags:
        return _show(demo.make(flags["folder"]), flags, "")
    with tempfile.TemporaryDirectory(prefix="ipy-memory-demo-") as passing:
        return _show(demo.make(Path(passing, "home")), flags, " (removed at the end; --folder PATH keeps them)")


def _show(shown: Demo, flags: Mapping[str, Any], kept: str) -> int:
    _say(overview(shown, kept))
    if "execute" in flags:
        return _execute(shown)
    return output.DONE if "no-lab" in flags else _lab(shown)


def overview(shown: Demo, kept: str = "") -> str:
    """Return what there is, and one recall exactly as the notebook shows it."""
    with shown.session() as session:
        status = {row.name: row.value for row in session.status()}
        found = session.recall(demo.QUERY)
    return "\n".join(
        (
            f"Demonstration banks in {shown.folder}{kept}",
            f"  written: {status['retain bank']}",
            f"  read:    {status['recall banks']}",
            "",
            f"%recall {demo.QUERY}",
            "",
            found.text,
            "",
        )
    )


def notebook_path() -> Path:
    """Return the quickstart notebook: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for path in (package / "notebooks" / NOTEBOOK, package.parent / "notebooks" / NOTEBOOK):
        if path.is_file():
            return path
    raise MissingFeatureError("The quickstart notebook is not there.", where=str(package), hint="install it again")


def _need(module: str) -> None:
    if find_spec(module) is None:
        raise MissingFeatureError(
            f"{module} is not installed.", hint="run: pip install 'ipy_memory[lab]' (or use --no-lab)"
        )


def _environment(shown: Demo) -> dict[str, str]:
    return {**os.environ, demo.FOLDER_VARIABLE: str(shown.folder)}


def _lab(shown: Demo) -> int:
    _need("jupyterlab")
    for notebook in notebook_path().parent.glob("*.ipynb"):
        if not (shown.folder / notebook.name).exists():
            shutil.copyfile(notebook, shown.folder / notebook.name)
    _say(f"Starting JupyterLab on {shown.folder / NOTEBOOK}; Ctrl-C twice ends it.")
    # Not the notebook's path: the addresses that the server prints would then lead to an empty launcher.
    first = f"/lab/tree/{NOTEBOOK}"
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={shown.folder}",
        f"--LabApp.default_url={first}",
    ]
    if os.name == "posix" and os.geteuid() == 0:
        command.append("--allow-root")
    return _wait_for(command, _environment(shown))


def _wait_for(command: list[str], env: Mapping[str, str]) -> int:
    """Run a server until it ends.  Ctrl-C reaches it directly, since it belongs to the same terminal."""
    server: subprocess.Popen[bytes] | None = None

    def hand_on(number: int, _frame: FrameType | None) -> None:
        if server is not None:
            server.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in _ENDS}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        server = subprocess.Popen(command, env=dict(env))  # noqa: S603  our own command
        return server.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _execute(shown: Demo) -> int:
    for module in ("nbclient", "ipykernel"):
        _need(module)
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(notebook_path(), as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=_CELL_SECONDS, kernel_name="python3")
    code = 0
    try:
        client.execute(env=_environment(shown))
    except CellExecutionError:
        code = 1
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.get("execution_count"):
            _say(f"In [{cell.execution_count}]: {cell.source}")
            for output in cell.outputs:
                _say(_text_of(output))
            _say("")
    return code


def _text_of(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text).rstrip("\n")
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return str(output.data.get("text/plain", ""))


def _say(text: str) -> None:
    output.write_result(text)
