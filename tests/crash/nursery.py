"""Raise writers and kill them: ``python -m tests.crash.nursery BANK SEED KILLS`` prints what became of them as JSON.

Runs as a process of its own with one thread, so that each writer is a cheap fork with everything imported. A writer
says ``B`` before each write and the ids after it; a kill between the two fell inside the write.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
from pathlib import Path

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.clock import ProcessIds, SystemClock
from ipy_memory.model import RetainItem

NAME = "crash"


def write_for_ever(path: Path, number: int, out: int) -> None:
    """Write call after call until killed; each item holds a fact, so that several tables are touched."""
    bank = Bank.open(path, NAME, clock=SystemClock(), ids=ProcessIds())
    call = 0
    while True:
        call += 1
        items = [RetainItem(f"I prefer harbour {number} {call} {part}") for part in range(3)]
        os.write(out, b"B\n")
        receipt = retain_items(bank, items, session_id="s", cwd="/proj")
        os.write(out, f"A {' '.join(map(str, receipt.ids))}\n".encode())


def raise_and_kill(path: Path, number: int, after: float) -> tuple[list[str], bool]:
    """Start a writer, kill it ``after`` seconds from its first word; return what it acknowledged and where it fell."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            write_for_ever(path, number, writing)
        finally:
            os._exit(1)
    os.close(writing)
    heard = os.read(reading, 4096)
    select.select([], [], [], after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 65536):
        heard += more
    os.close(reading)
    lines = heard.decode().splitlines()
    ids = [one for line in lines if line.startswith("A ") for one in line.split()[1:]]
    return ids, bool(lines) and lines[-1] == "B"


def main(path: str, seed: str, kills: str) -> None:
    """Kill ``kills`` writers of one bank, one after the other."""
    moments = random.Random(int(seed))
    acknowledged: list[str] = []
    inside = 0
    for number in range(int(kills)):
        ids, within = raise_and_kill(Path(path), number, moments.uniform(0, 0.03))
        acknowledged += ids
        inside += within
    json.dump({"acknowledged": acknowledged, "inside": inside}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
