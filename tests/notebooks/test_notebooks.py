"""The notebooks are documentation that runs: their stored outputs are what they give today."""

from __future__ import annotations

import configparser
import subprocess
import sys
from typing import TYPE_CHECKING

import nbformat
import pytest

from ipy_memory.settings.table import SCOPINGS
from notebooks.refresh import CELL_SECONDS, HERE, environment, normal, notebooks, run

if TYPE_CHECKING:
    from pathlib import Path

RULES = HERE / "sanitize.cfg"
NOTEBOOKS = [pytest.param(path, id=path.stem) for path in notebooks()]


def _may_fail(cell: nbformat.NotebookNode) -> bool:
    return "raises-exception" in cell.metadata.get("tags", ())


@pytest.mark.claim("N-05")
def test_nbval_finds_every_output_as_it_is_stored(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", HERE, "-p", "no:cacheprovider", "-q"]
    command += ["-p", "nbval.plugin", "--nbval", "--nbval-current-env", "--nbval-sanitize-with", RULES]
    command += ["--nbval-cell-timeout", str(CELL_SECONDS), *notebooks()]
    # No other plugin: one that shuffles tests would shuffle cells.
    # Its kernels are killed, and leave their temporary files.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment(tmp_path), "TMPDIR": str(tmp_path)}
    ended = subprocess.run(command, env=alone, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    counts = ended.stdout.splitlines()[-1]
    assert " passed" in counts
    assert "skipped" not in counts
    assert "xfailed" not in counts


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_runs_clean(path: Path) -> None:
    for number, cell in enumerate(run(path).cells):
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":  # notes of a result are the only lines there
                lines = output.text.splitlines()
                assert all(line.startswith("Note: ") for line in lines), f"cell {number} wrote to stderr: {output.text}"
            assert output.output_type != "error" or _may_fail(cell), f"cell {number}: {output.evalue}"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_is_in_normal_form_and_has_been_run(path: Path) -> None:
    stored = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(stored, as_version=4)
    assert nbformat.writes(normal(notebook)).rstrip("\n") + "\n" == stored, (
        f"run: python -m notebooks.refresh {path.stem}"
    )
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    tags = [tag for cell in code for tag in cell.metadata.get("tags", ())]
    assert [tag for tag in tags if tag.lower().startswith("nbval")] == [], "every output is compared"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_cell_that_may_fail_does_fail(path: Path) -> None:
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if _may_fail(cell):
            errors = [output for output in cell.outputs if output.output_type == "error"]
            assert errors, f"cell {number} is tagged and does not fail"
            assert [len(error.traceback) for error in errors] == [1], f"cell {number} shows more than one line"


@pytest.mark.claim("N-05")
@pytest.mark.parametrize("backend", ["mnemopi", "hindsight"])
@pytest.mark.parametrize("mode", SCOPINGS)
def test_every_scoping_mode_is_exercised_and_recalled_from(backend: str, mode: str) -> None:
    (path,) = HERE.glob(f"*_scoping_{backend}.ipynb")
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    at = cells.index(f"%memory scope {mode}")
    assert any(cell.startswith(("%retain", "%recall")) for cell in cells[at + 1 : at + 2])
    assert any("recall" in cell for cell in cells[at + 1 :])


@pytest.mark.claim("N-05")
def test_the_legacy_rescue_is_exercised() -> None:
    (path,) = HERE.glob("*_legacy_rescue.ipynb")
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    tags = {tag for cell in cells for tag in cell.metadata.get("tags", ())}
    assert {"claim:L-01", "claim:L-02"} <= tags


def test_there_are_at_most_five_sanitize_rules_each_with_its_reason() -> None:
    rules = configparser.ConfigParser()
    rules.read_string(RULES.read_text(encoding="utf-8"))
    assert 0 < len(rules.sections()) <= 5
    for line, below in zip(lines := RULES.read_text(encoding="utf-8").splitlines(), lines[1:], strict=False):
        assert not line.startswith("[") or below.startswith("#"), f"{line} has no reason"
