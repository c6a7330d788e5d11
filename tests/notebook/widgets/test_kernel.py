"""Panels in a notebook that a program runs, and in the pages that are made of it."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from ipy_memory.notebook.widgets.display import WIDGET_VIEW
from tests.notebook.pages import Reader

if TYPE_CHECKING:
    import nbformat

ROOT = Path(__file__).resolve().parents[3]
CELLS = [
    "%load_ext ipy_memory",
    "from ipy_memory import demo\nhome = demo.start()",
    "%memory panel recall deploy target",
    "%memory panel banks",
    "%memory panel --live recall deploy target",
    "%memory panel recall deploy target",
]
HETZNER = "Deploy target of the shop: Hetzner, region fra."


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    home = tmp_path_factory.mktemp("kernel")
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
    env = kept | {"HOME": str(home), "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(home / "ipython")}
    notebook = new_notebook(cells=[new_code_cell(source=source) for source in CELLS])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute(cwd=str(home), env=env)
    return notebook


@pytest.mark.claim("N-04")
def test_each_panel_is_one_output_and_loading_shows_none(run: nbformat.NotebookNode) -> None:
    """B108, B110."""
    load, start, recall, banks, live, again = [cell.outputs for cell in run.cells]
    assert load == start == []
    for (output,) in (recall, banks, again):
        assert output.output_type == "execute_result"
        assert set(output.data) == {"text/plain", "text/html"}
    assert recall[0].data == again[0].data
    (output,) = live
    assert set(output.data) == {"text/plain", "text/html", WIDGET_VIEW}
    assert output.data["text/plain"] == recall[0].data["text/plain"]


@pytest.mark.parametrize("stripped", [False, True])
def test_the_page_made_of_a_notebook_shows_the_memories(run: nbformat.NotebookNode, stripped: bool) -> None:
    """B106."""
    notebook = copy.deepcopy(run)
    assert notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    if stripped:
        del notebook.metadata["widgets"]
    html, _ = HTMLExporter().from_notebook_node(notebook)
    # The script of a page is data of elements without text.
    assert Reader(html).text.count(HETZNER) >= 2


def test_the_stored_outputs_hold_no_trace_of_a_machine(run: nbformat.NotebookNode) -> None:
    for cell in run.cells[2:4]:
        for shown in cell.outputs[0].data.values():
            assert "/tmp" not in shown
            assert "0x" not in shown
