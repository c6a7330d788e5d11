"""What the user does in a notebook, measured on a session: browse, recall, retain, list banks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.banks import BANK
from ipy_memory import MemorySession, open_session
from ipy_memory.explore.banks import banks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.texts import Texts

_PAGE = 1000
_CALLS = 40


def measure(path: Path, source: Texts) -> dict[str, list[float]]:
    """Return the milliseconds of browsing a page, of a recall and of a retain on one bank."""
    with _session(path) as session:
        session.recall("warm up")
        queries = list(source.queries(_CALLS))
        texts = [source.memory() for _ in range(_CALLS)]
        return {
            "browse a page": [
                _timed(lambda page=page: session.memories(limit=_PAGE, offset=_PAGE * page)) for page in range(_CALLS)
            ],
            "recall": [_timed(lambda query=query: session.recall(query)) for query in queries],
            "retain": [_timed(lambda text=text: session.retain(text)) for text in texts],
        }


def list_banks(folder: Path) -> float:
    """Return the milliseconds of listing all banks under a database folder."""
    with _session(folder / "mnemopi.db") as session:
        start = time.perf_counter()
        found = banks(session)
        took = (time.perf_counter() - start) * 1000
    assert len(found) > 1000
    return took


def _session(path: Path) -> MemorySession:
    settings = {"mnemopi.scoping": "global", "mnemopi.bank": BANK, "mnemopi.noEmbeddings": True}
    return open_session("mnemopi", path.parent, path, settings, agent_dir=path.parent, env={})


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000
