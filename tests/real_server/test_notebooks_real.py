"""The notebooks that play recorded exchanges, run against the real server: the same shape, cell by cell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from ipy_memory.demo import SERVER_VARIABLE
from ipy_memory.replay import load
from notebooks.record import ANSWER, Recorder, recorder, recording_of
from notebooks.refresh import notebooks, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.hindsight_server import HindsightServer

pytestmark = pytest.mark.hindsight

RECORDED = [pytest.param(path, id=path.stem) for path in notebooks() if recording_of(path)]

VARYING = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\d.]+")
"""Ids that the server draws, and numbers: scores depend on the time that has passed."""


def cells(notebook: nbformat.NotebookNode) -> list[tuple[str, list[Any]]]:
    """Return each code cell with the shape of what it shows: kinds of output, errors, lines of text."""
    return [
        (cell.source, [_shape(output) for output in cell.outputs])
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _shape(output: nbformat.NotebookNode) -> Any:
    if output.output_type == "error":
        return "error", output.ename
    if output.output_type == "stream":
        return output.name, output.text.count("\n")
    text = output.data.get("text/plain", "")
    return output.output_type, sorted(output.data), sorted(VARYING.sub("0", line) for line in text.splitlines())


def requests(exchanges: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (one["method"], VARYING.sub("0", one["path"]), one["body"], one["status"], _keys(one["answer"]))
        for one in exchanges
    ]


def _keys(value: Any) -> Any:
    """Return the names in an answer, at any depth; of a list, those of its first item."""
    if isinstance(value, dict):
        return {name: _keys(inner) for name, inner in value.items()}
    return [_keys(item) for item in value[:1]] if isinstance(value, list) else type(value).__name__


@pytest.mark.claim("N-05")
@pytest.mark.parametrize("path", RECORDED)
def test_the_recorded_exchanges_are_those_of_a_real_server(path: Path, hindsight_server: HindsightServer) -> None:
    name = recording_of(path)
    assert name is not None
    said, hindsight_server.stub.answer = hindsight_server.stub.answer, ANSWER
    made: Recorder
    try:
        with recorder(hindsight_server) as made:
            real = run(path, {SERVER_VARIABLE: made.url})
    finally:
        hindsight_server.stub.answer = said
    assert cells(real) == cells(nbformat.read(path, as_version=4))
    assert requests(made.exchanges) == requests(load(name))
