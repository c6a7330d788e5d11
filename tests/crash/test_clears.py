"""Two processes that store memories while a third clears the bank: each acknowledged memory is somewhere."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.admin.doctor import examine
from ipy_memory.clock import SystemClock
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.crash

CLEARS, WRITERS = 28, 2


def opened(path: Path) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/work/shop",
        database=path,
        settings={"mnemopi.scoping": "global"},
        agent_dir=path.parent / "agent",
        env={"HOME": str(path.parent)},
    )


_WRITER = """
import json, sys
from ipy_memory.session import open_session

path, number = sys.argv[1:]
with open_session("mnemopi", cwd="/work/agent", database=path, settings={"mnemopi.scoping": "global"},
                  agent_dir=path + ".agent" + number, env={"HOME": "/nowhere"}) as session:
    for step in range(100_000):
        text = f"I prefer harbour {number} {step}"
        receipt = session.tools["retain"](items=[{"content": text}]).receipt
        if receipt.ids[0]:
            print(json.dumps([receipt.ids[0], text]), flush=True)
        else:
            print(json.dumps([None, str(receipt.failures[0].error)]), flush=True)
"""


def heard(log: Path) -> list[tuple[str | None, str]]:
    return [tuple(json.loads(line)) for line in log.read_text().splitlines() if line.endswith("]")]


@pytest.mark.claim("A-11")
def test_two_writers_beside_many_clears_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """B06: each memory is in the bank or in one of the copies; deleting the file lost one in forty."""
    path = tmp_path / "mnemopi.db"
    with opened(path) as session:
        session.retain("The first")
    logs = [tmp_path / f"writer-{number}.log" for number in range(WRITERS)]
    writers = []
    for number, log in enumerate(logs):
        with log.open("w") as out:
            writers.append(subprocess.Popen([sys.executable, "-c", _WRITER, path, str(number)], stdout=out))
    copies: list[Path] = []
    try:
        while not all(log.stat().st_size for log in logs):
            assert [writer.poll() for writer in writers] == [None] * WRITERS
        with opened(path) as session:
            for _ in range(CLEARS):
                copies += session.clear().copies
                session.recall("harbour")
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    told = [line for log in logs for line in heard(log)]
    acknowledged = {id_: text for id_, text in told if id_}
    assert len(copies) == CLEARS
    held: dict[str, str] = {}
    for file in (path, *copies):
        with closing(sqlite3.connect(file)) as connection:
            held |= connection.execute("SELECT id, content FROM working_memory").fetchall()
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    lost = {id_ for id_, text in acknowledged.items() if held.get(id_) != text}
    assert (len(lost), len(acknowledged) > CLEARS) == (0, True)
    assert [error for id_, error in told if id_ is None] == []
    assert examine(path, "default", SystemClock()).faults == ()
