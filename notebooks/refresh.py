"""Run the notebooks and write their outputs: ``python -m notebooks.refresh [NAME ...]``.

Outputs are written by this command only, never by hand or from a browser, so that two runs give the same bytes: each
notebook runs from top to bottom in a fresh kernel with a fixed environment and an empty home, and what varies without
meaning (cell ids, kernel metadata, ids of widgets) is made the same.  The notebooks themselves take time and ids from
the demo's fixed clock.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbclient import NotebookClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
CELL_SECONDS = 60
FIXED = {"PYTHONHASHSEED": "0", "TZ": "UTC", "COLUMNS": "100", "NO_COLOR": "1"}
FOREIGN = ("HINDSIGHT_", "MNEMOPI_", "PI_", "IPYTHON", "JUPYTER_CONFIG", "JUPYTER_DATA", "JUPYTER_RUNTIME")
"""Beginnings of the variables by which the user's own settings would show in the outputs."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
PASSING = (
    (re.compile(r"(?<=http://127\.0\.0\.1):\d{4,}"), ":8888"),  # the port of recorded exchanges is a free one
    (re.compile(rf"{re.escape(tempfile.gettempdir())}/ipy-memory-demo-\w+"), "~"),  # and the made-up home a new folder
)
"""What the line of an error may hold that is another thing each time; checks compare the error, not its line."""
WIDGET = "application/vnd.jupyter.widget-view+json"


def notebooks() -> list[Path]:
    """Return every notebook, in order of name."""
    return sorted(HERE.glob("*.ipynb"))


def environment(home: Path) -> dict[str, str]:
    """Return the variables that a kernel gets; ``home`` is an empty folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, **FIXED, "HOME": str(home)}


def run(path: Path, variables: Mapping[str, str] | None = None) -> NotebookNode:
    """Run a notebook in a fresh kernel and return it with its outputs, in normal form; the file is left alone.

    ``variables`` are added to the kernel's environment. A cell that fails without the tag ``raises-exception`` ends
    the run with nbclient's error.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-") as home:
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            coalesce_streams=True,
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": str(path.parent)}},
        )
        client.execute(env={**environment(Path(home)), **(variables or {})})
    return normal(notebook)


def normal(notebook: NotebookNode) -> NotebookNode:
    """Take out of a notebook, in place, what varies without meaning."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat_minor = 5
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata = nbformat.from_dict({"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {})
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)  # the static form beside it stays
            if output.output_type == "error":
                output.traceback = [_without_passing(line) for line in output.traceback]
    nbformat.validate(notebook)
    return notebook


def _without_passing(line: str) -> str:
    for pattern, stands_for in PASSING:
        line = pattern.sub(stands_for, line)
    return line


def chosen(names: Sequence[str]) -> Iterator[Path]:
    """Yield the notebooks that are meant: by the beginning of their names, or all."""
    for name in names:
        if not any(path.name.startswith(name) for path in notebooks()):
            raise SystemExit(f"no notebook begins with {name}: there are {', '.join(p.stem for p in notebooks())}")
    yield from (path for path in notebooks() if not names or path.name.startswith(tuple(names)))


def main(names: Sequence[str]) -> int:
    """Run the notebooks and write those whose outputs have changed."""
    for path in chosen([Path(name).name for name in names]):
        text = nbformat.writes(run(path)).rstrip("\n") + "\n"
        changed = text != path.read_text(encoding="utf-8")
        if changed:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {'written' if changed else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
