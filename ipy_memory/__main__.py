"""``ipy-memory``: the demonstration from a terminal."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ipy_memory import __version__, demo
from ipy_memory.errors import MemoryToolkitError, MissingFeatureError

if TYPE_CHECKING:
    from ipy_memory.demo import Demo

NOTEBOOK = "00_quickstart.ipynb"
_CELL_SECONDS = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        shown = demo.make(options.folder or tempfile.mkdtemp(prefix="ipy-memory-demo-"))
        _say(overview(shown))
        if options.execute:
            return _execute(shown)
        return 0 if options.no_lab else _lab(shown)
    except MemoryToolkitError as error:
        sys.stderr.write(error.one_line() + "\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ipy-memory", description="An AI agent's long-term memory in notebooks.")
    parser.add_argument("--version", action="version", version=f"ipy-memory {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "demo",
        help="make demonstration banks, recall from them, and open the quickstart notebook",
        description="Make real bank files in a folder, recall from them, and open the quickstart notebook on them. "
        "Needs no network and no key.",
    )
    command.add_argument("--folder", metavar="PATH", help="where to make the banks; a new temporary folder by default")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--no-lab", action="store_true", help="stop before JupyterLab is started")
    how.add_argument("--execute", action="store_true", help="run the notebook without a browser and print its outputs")
    return parser


def overview(shown: Demo) -> str:
    """Return what there is, and one recall exactly as the notebook shows it."""
    with shown.session() as session:
        status = {row.name: row.value for row in session.status()}
        found = session.recall(demo.QUERY)
    return "\n".join(
        (
            f"Demonstration banks in {shown.folder}",
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
    package = Path(__file__).resolve().parent
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


def _lab(shown: Demo) -> NoReturn:
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
    # In place of this process: signals reach the server, and none is left behind.
    os.execve(sys.executable, command, _environment(shown))  # noqa: S606  our own command


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
    sys.stdout.write(text.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8"))
    sys.stdout.write("\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
