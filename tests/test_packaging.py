"""Wheel and sdist: built once, installed alone in fresh environments, and used as a new user would."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipy_memory import demo

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

pytestmark = pytest.mark.packaging


def run(command: Sequence[object], folder: Path) -> str:
    """Run a command with an empty home in a folder; what it prints, or a failure that shows it."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def pythons() -> list[str]:
    """Return the interpreters of this machine that the package supports, this one first."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in (11, 12, 13):
        for candidate in (
            shutil.which(f"python3.{minor}"),
            *map(str, sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))),
        ):
            works = candidate and subprocess.run(
                [candidate, "-c", "import ssl, sqlite3"], capture_output=True, check=False
            )
            if works and works.returncode == 0:
                found.setdefault((3, minor), str(candidate))
    return list(found.values())


def fresh(python: str, folder: Path, *wanted: object) -> Path:
    """Make an environment with what is wanted in it; its folder of programs."""
    run([python, "-m", "venv", folder / "venv"], folder)
    run([folder / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", *wanted], folder)
    return folder / "venv/bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, made from the sdist, and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def first_recall(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo's recall gives from the source tree."""
    with demo.make(tmp_path_factory.mktemp("source") / "demo").session() as session:
        return session.recall(demo.QUERY).text


@pytest.mark.parametrize("python", pythons(), ids=lambda path: Path(path).resolve().parents[1].name)
def test_the_wheel_alone_passes_the_quickstart(
    python: str, built: tuple[Path, Path], first_recall: str, tmp_path: Path
) -> None:
    programs = fresh(python, tmp_path, built[0])
    assert first_recall in run([programs / "ipy-memory", "demo", "--no-lab"], tmp_path)
    shell = "from IPython.terminal.interactiveshell import TerminalInteractiveShell as S\nshell = S.instance()\n"
    cells = f"shell.run_cell('from ipy_memory import demo; demo.start()')\nshell.run_cell('%recall {demo.QUERY}')"
    script = shell + cells
    assert first_recall in run([programs / "python", "-c", script], tmp_path)


def test_the_oldest_allowed_dependencies_pass_the_quickstart(
    built: tuple[Path, Path], first_recall: str, tmp_path: Path
) -> None:
    oldest = [wanted.replace(">=", "==") for wanted in PROJECT["dependencies"]]
    assert all("==" in wanted for wanted in oldest)
    programs = fresh(sys.executable, tmp_path, built[0], *oldest)
    assert first_recall in run([programs / "ipy-memory", "demo", "--no-lab"], tmp_path)


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(built[0]).namelist()
    assert {name.split("/")[0] for name in names} == {"ipy_memory", f"ipy_memory-{PROJECT['version']}.dist-info"}
    in_tree = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "ipy_memory").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert in_tree <= set(names)
    assert "ipy_memory/py.typed" in names


def test_the_sdist_can_be_tested(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "pyproject.toml",
        "tests/test_golden.py",
        "docs/behaviour.md",
    } <= names


def test_binder_does_what_it_says(first_recall: str, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", ROOT, tmp_path / "clone"], check=True)
    programs = fresh(sys.executable, tmp_path, "-r", tmp_path / "clone/binder/requirements.txt")
    path = f"{programs}:/usr/bin:/bin"
    said = run(["env", f"PATH={path}", "bash", "binder/postBuild"], tmp_path / "clone")
    assert first_recall in said
