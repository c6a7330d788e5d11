"""Clean up after a test run that died: end what it started, remove its directory.

Run as a process of its own, ``python -I guardian.py DIRECTORY``, with a pipe as standard
input.  When the pipe closes, however the other end died, every process that has left a
``*.pid`` file under the directory is ended.  After a tidy end there is no directory any more
and nothing to do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path


def end_by_file(pid_file: Path, number: signal.Signals, patience: float) -> None:
    """Signal the process named in a pid file; kill it if the file (which it removes itself) is still there later."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError, IndexError):
        pid = int(pid_file.read_text().split()[0])
        os.kill(pid, number)
        deadline = time.monotonic() + patience
        while pid_file.exists() and time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(0.02)
        if pid_file.exists():
            os.kill(pid, signal.SIGKILL)


def main(directory: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for pid_file in sorted(directory.rglob("*.pid")):
        # SIGQUIT is PostgreSQL's shutdown at once; the server is not asked, for nothing of it is kept.
        database = pid_file.name == "postmaster.pid"
        end_by_file(pid_file, signal.SIGQUIT if database else signal.SIGKILL, 5 if database else 0)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
