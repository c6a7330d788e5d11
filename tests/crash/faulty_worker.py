"""One action on a bank whose n-th write fails, for every n.

``python -m tests.crash.faulty_worker FOLDER ACTION ERROR``

Runs with the preloaded ``faulty.c``. Prints for each n what came of the action and what the bank held afterwards.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from ipy_memory.backends.mnemopi.admin.doctor import repair
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.session import MemorySession, open_session

NOW = "2026-06-01T12:00:00.000Z"
MOST = 400


LATER = "2026-06-02T12:00:00.000Z"
"""When the first memories are old enough to be consolidated."""


def opened(path: Path, now: str = NOW) -> MemorySession:
    return open_session(
        "mnemopi",
        "/w",
        path,
        {"mnemopi.scoping": "global"},
        agent_dir=path.parent / "agent",
        env={"HOME": str(path.parent)},
        clock=FixedClock(now),
        ids=FixedIds(100),
    )


def act(session: MemorySession, action: str, memory_id: str) -> object:
    """Carry out one action; the answer says what it acknowledged."""
    match action:
        case "retain":
            receipt = session.tools["retain"](items=[{"content": f"I prefer harbour {n}"} for n in range(3)]).receipt
            assert receipt is not None
            for failure in receipt.failures:
                if not isinstance(failure.error, MemoryToolkitError):
                    raise failure.error
            return list(receipt.ids)
        case "recall":
            return len(session.recall("harbour").hits)
        case "update":
            return session.change("update", memory_id, content="changed").status
        case "forget":
            return session.change("forget", memory_id, purge=True).status
        case "clear":
            return len(session.clear().copies)
        case "repair":
            path = session.clear_files()[0]
            return repair(path, "default", FixedClock(NOW), path.parent / "agent" / "ipy_memory" / "copies").done
        case "enqueue":
            return session.enqueue()
    raise ValueError(action)


def main(folder: str, action: str, error: str) -> None:
    """Let the first, the second, the third ... write fail, until one run needs fewer."""
    disk = ctypes.CDLL(None)
    whole = Path(folder, "whole.db")
    with opened(whole) as session:
        receipt = session.retain(["I prefer harbour tea", "Mira uses Redis"]).receipt
        assert receipt is not None
        memory_id = str(receipt.ids[0])
    if action == "repair":
        with Bank.open(whole, "default", clock=FixedClock(NOW)) as bank:
            bank.connection.execute("DELETE FROM fts_working_config")
    for number in range(1, MOST):
        place = Path(folder, "faulty", str(number))
        place.mkdir(parents=True)
        path = place / "mnemopi.db"
        shutil.copy(whole, path)
        told: dict[str, object] = {"n": number, "path": str(path)}
        session = opened(path, LATER if action == "enqueue" else NOW)
        disk.faulty_arm(ctypes.c_long(number), number % 2, int(error))
        try:
            told["done"] = act(session, action, memory_id)
        except MemoryToolkitError as caught:
            told["error"] = caught.one_line()
        except BaseException as caught:  # noqa: BLE001  the test says what it was
            told["raw"] = f"{type(caught).__name__}: {caught}"
        reached = int(ctypes.c_long(disk.faulty_calls()).value)
        try:
            session.close()
        except MemoryToolkitError as caught:
            told["closing"] = caught.one_line()
        except BaseException as caught:  # noqa: BLE001  the test says what it was
            told["raw"] = f"closing: {type(caught).__name__}: {caught}"
        disk.faulty_arm(ctypes.c_long(-1), 0, 0)
        with suppress(OSError):
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
        if reached < number:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
