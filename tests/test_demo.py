"""The demonstration: real banks, the same text every time, nothing outside its folder."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest

from ipy_memory import demo
from ipy_memory.__main__ import main
from ipy_memory.shell.demonstration import notebook_path

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def home(tmp_path: Path) -> demo.Demo:
    return demo.make(tmp_path / "home")


def test_two_homes_hold_the_same_memories(home: demo.Demo, tmp_path: Path) -> None:
    other = demo.make(tmp_path / "other")
    with home.session() as one, other.session() as two:
        assert one.recall(demo.QUERY).text == two.recall(demo.QUERY).text


def test_the_banks_were_written_by_retain_itself(home: demo.Demo) -> None:
    files = [home.database, *home.database.parent.glob("banks/*/mnemopi.db")]
    assert len(files) == 4
    for file in files:
        with sqlite3.connect(file) as connection:
            sources = connection.execute("SELECT DISTINCT source FROM working_memory").fetchall()
        connection.close()
        assert sources == [("coding-agent-retain",)]


@pytest.mark.claim("L-01", "L-02")
def test_the_older_bank_is_rescued_and_the_mixed_one_is_not(home: demo.Demo) -> None:
    with home.session() as session:
        text = session.recall(demo.QUERY).text
        read = {row.name: row.value for row in session.status()}["recall banks"].split(", ")
    assert "shop-before-move" in read
    assert "two-projects" not in read
    assert "Heroku" in text
    assert "static bucket" not in text


def test_a_folder_that_holds_other_things_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert main(["demo", "--folder", str(tmp_path), "--no-lab"]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_command_prints_what_the_notebook_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "home"
    assert main(["demo", "--folder", str(folder), "--no-lab"]) == 0
    printed = capsys.readouterr().out
    notebook = nbformat.read(notebook_path(), as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.source == f"%recall {demo.QUERY}"]
    assert cell.outputs[0].data["text/plain"] in printed
    assert str(folder) in printed


def test_the_command_runs_the_notebook_without_a_browser(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "ipy_memory", "demo", "--execute", "--folder", str(tmp_path / "home")]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    done = subprocess.run(arguments, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "The summer sale starts on 15 June 2026. (id: 7eeefdaafb6dbe63)" in done.stdout
    assert "MagicError: %recall has no flag --limt" in done.stdout
    assert not (tmp_path / ".omp").exists()


def test_the_end_of_a_forked_child_leaves_the_home_of_its_parent_alone(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance()\n"
        "from ipy_memory import demo\n"
        "home = demo.start(fresh=True)\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(home.database.exists(), home.folder)\n"
    )
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    there, folder = done.stdout.split()
    assert there == "True"
    assert not Path(folder).exists()


def test_every_notebook_is_in_the_wheel() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    shipped = build["targets"]["wheel"]["force-include"]
    there = {path.name for path in notebook_path().parent.glob("*.ipynb")}
    assert shipped == {f"notebooks/{name}": f"ipy_memory/notebooks/{name}" for name in there}


def test_what_would_spoil_the_banks_works_in_a_fresh_home(tmp_path: Path) -> None:
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "from ipy_memory import demo\n"
        "print(demo.start().folder)\n"
        "print(demo.start(fresh=True).folder)\n"
        "home = demo.start(hindsight='scoping')\n"
        "print(home.folder, home.server.rpartition(':')[0])\n"
    )
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    env[demo.FOLDER_VARIABLE] = str(tmp_path / "named")
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    named, fresh, played = done.stdout.splitlines()
    assert named == str(tmp_path / "named")
    assert str(tmp_path) not in fresh
    assert not Path(fresh).exists()
    assert played.endswith(" http://127.0.0.1")
    assert str(tmp_path) not in played
