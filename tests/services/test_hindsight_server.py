"""The launcher of the real server: it leaves nothing behind, however it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.services.hindsight_server import PROJECT, VENV_VARIABLE, default_venv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMAND = [sys.executable, "-m", "tests.services.hindsight_server"]


def refused(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that the database's user can pass through, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.mark.hindsight
@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_its_launcher(ending: object, open_directory: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(open_directory), VENV_VARIABLE: str(default_venv())}
    launcher = subprocess.Popen(
        COMMAND, cwd=PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with launcher:
        facts = json.loads(launcher.stdout.readline())
        port = urlsplit(facts["base_url"]).port
        assert not refused(port)
        assert facts["version"].startswith("1.")
        if isinstance(ending, signal.Signals):
            launcher.send_signal(ending)
        else:
            launcher.stdin.close()
        launcher.wait(30)
    assert wait_until(lambda: refused(port))
    assert wait_until(lambda: list(open_directory.iterdir()) == [])
