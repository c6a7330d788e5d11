"""``%memory pause`` and ``resume`` in a notebook."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from ipy_memory.errors import PausedError
from tests.notebook.conftest import Notebook, plain

if TYPE_CHECKING:
    from pathlib import Path


def contents(folder: Path) -> str:
    found = []
    for bank in (folder / "mem").rglob("mnemopi.db"):
        with closing(sqlite3.connect(bank)) as connection:
            found += [row[0] for row in connection.execute("SELECT content FROM working_memory")]
    return "\n".join(found)


def test_the_notebook_says_that_it_is_paused_and_records_nothing(real: Notebook, tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_text("mnemopi:\n  retainEveryNTurns: 1\n")
    real.run("%memory use mnemopi")
    assert plain(real, "%memory resume") == "Memory was not paused."
    real.run("%retain The deploy target is fly.io.")
    real.run("%memory record on")
    real.run("before = 'the pause'")
    assert "not recorded" in plain(real, "%memory pause")
    assert "paused" in {row[0] for row in real.run("%memory status").result.rows}
    real.run("secret = 'of the pause'")
    ran = real.run("%retain secret")
    assert isinstance(ran.error, PausedError)
    assert ran.stdout == "PausedError: Memory is paused: nothing was stored. – %memory resume ends the pause\n"
    assert "Memory is paused: no cell is taken." in plain(real, "%memory record status")
    assert len(real.run("%recall deploy").result) == 1
    real.run("%memory scope global")
    assert isinstance(real.run("%%retain\nsecret").error, PausedError)
    real.run("%memory use mnemopi")
    assert isinstance(real.run("%%retain\nsecret").error, PausedError)
    assert plain(real, "%memory resume") == "Memory goes on."
    assert "paused" not in {row[0] for row in real.run("%memory status").result.rows}
    assert real.run("%retain after").error is None
    assert "secret" not in contents(tmp_path)


def test_cells_of_a_pause_stay_out_of_the_recording(real: Notebook, tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_text("mnemopi:\n  retainEveryNTurns: 1\n")
    real.run("%memory use mnemopi\n%memory record on")
    for cell in (
        "x = 'first'",
        "y = 'secret'\n%memory pause",
        "z = 'secret'",
        "%memory resume\nu = 'secret'",
        "v = 'last'",
    ):
        assert real.run(cell).error is None
    assert "2 cells taken" in plain(real, "%memory record off")
    stored = contents(tmp_path)
    assert "x = 'first'" in stored
    assert "v = 'last'" in stored
    assert "secret" not in stored
