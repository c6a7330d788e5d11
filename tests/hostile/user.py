"""A user who works in a folder, with every file, connection and look-up of the process written down.

Run as a program: it reads cases from standard input and prints, for each, what the process touched.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ipy_memory import open_session
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.explore.scopes import scope_rows
from ipy_memory.explore.status import report_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ipy_memory.session import MemorySession

FILES = {"open", "sqlite3.connect", "os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate"}
NETWORK = {"socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}
touched: dict[str, list[str]] = {"files": [], "network": []}


def note(event: str, given: tuple[Any, ...]) -> None:
    """Write down what the interpreter is about to do."""
    if event in FILES:
        touched["files"].append(os.fsdecode(given[0]) if isinstance(given[0], str | bytes) else str(given[0]))
    elif event in NETWORK:
        touched["network"].append(f"{event} {given[1] if event == 'socket.connect' else given[0]}")


def work(session: MemorySession) -> None:
    """Do what users do, and go on after an error of ours."""
    steps: tuple[Callable[[], object], ...] = (
        session.start,
        lambda: turn(session, "Where is the harbour?"),
        lambda: session.recall("harbour"),
        lambda: session.retain("The harbour opens at six.", "a note of the user"),
        lambda: session.reflect("When does the harbour open?"),
        lambda: [session.add_turn(f"Question {number}", f"Answer {number}") for number in range(4)],
        session.flush,
        session.status,
        lambda: report_text(session),
        lambda: scope_rows(session),
        session.enqueue,
        session.flush,
    )
    for step in steps:
        try:
            step()
        except MemoryToolkitError:
            continue


def turn(session: MemorySession, prompt: str) -> None:
    with session.turn(prompt) as given:
        given.answer("At the quay.")


def run(case: Mapping[str, Any]) -> dict[str, Any]:
    for kind in touched.values():
        kind.clear()
    session = open_session(
        cwd=case["project"], agent_dir=case["agent"], env=case["env"], trust=case["trust"], session_id="s"
    )
    notes = [notice.text for notice in session.notices]
    work(session)
    session.close()
    return {"notes": notes, **{kind: sorted(set(seen)) for kind, seen in touched.items()}}


if __name__ == "__main__":
    sys.addaudithook(note)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()
