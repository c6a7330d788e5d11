"""The program as a user runs it: a process of its own, on a home with demonstration banks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory import demo

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
DEPLOY_TARGET = "a976218f7ebea1ed"
"""Id of the memory that the shop is deployed to Hetzner."""

NO_FOLDER = f"Note: There is no folder {demo.PROJECT}; the names of its banks follow from the path alone.\n"


@dataclass(frozen=True)
class Ended:
    """What a process wrote, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON object that was written, and nothing else."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


class Program:
    """Runs ``ipy-memory`` in a home."""

    def __init__(self, home: demo.Demo) -> None:
        self.home = home
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home.folder), "PYTHONPATH": str(ROOT), "TZ": "UTC"}

    def __call__(
        self,
        *words: str | bytes,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = demo.PROJECT,
        code: int = 0,
    ) -> Ended:
        """Run the program in the demonstration's project; the exit code must be the one expected."""
        done = subprocess.run(
            [*self.command(), *([] if cwd is None else ["--cwd", cwd]), *words],
            input=stdin if stdin is not None else b"",
            env={**self.env, **(env or {})},
            cwd=self.home.folder,
            capture_output=True,
            check=False,
            timeout=120,
        )
        # The demonstration's project is not a folder of this machine.
        err = done.stderr.decode().replace(NO_FOLDER, "")
        ended = Ended(done.returncode, done.stdout.decode(), err)
        assert ended.code == code, ended
        assert "Traceback" not in ended.err
        return ended

    @staticmethod
    def command() -> list[str]:
        """Return how the program is called."""
        return [sys.executable, "-m", "ipy_memory"]


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> demo.Demo:
    """A home that tests only read."""
    return demo.make(tmp_path_factory.mktemp("shell") / "home")


@pytest.fixture
def program(shared_home: demo.Demo) -> Program:
    """The program in a home that tests only read."""
    return Program(shared_home)


@pytest.fixture
def own(tmp_path: Path) -> Program:
    """The program in a home of this test."""
    return Program(demo.make(tmp_path / "home"))
