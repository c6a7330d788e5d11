"""Our engine behind the line protocol of ``tests/interop/driver.js``: a process that does what the real one's does."""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.single_bank import RecallOptions, recall_enhanced, touch
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.clock import SystemClock
from ipy_memory.model import RetainItem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Worker:
    """One bank and what is asked of it."""

    bank: Bank

    def open(self, path: str, name: str, vector_size: int = 0) -> None:
        """Open the bank."""
        embedder = None
        if vector_size:
            from tests.interop.vectors import WordCounts

            embedder = WordCounts(vector_size)
        self.bank = Bank.open(Path(path), name, clock=SystemClock(), embedder=embedder, create=False)

    def recall(self, query: str, k: int) -> int:
        """Recall as the tool does, and count what came back."""
        hits = recall_enhanced(self.bank, query, k, RecallOptions(channel_id=self.bank.name))
        touch(self.bank, {(hit.tier or "", hit.id or ""): 1 for hit in hits})
        return len(hits)

    def retain(self, *contents: str) -> None:
        """Write memories in one call."""
        items = [RetainItem(content) for content in contents]
        assert not retain_items(self.bank, items, session_id="bench", cwd="/proj/bench").failures
        drain(self.bank)

    def timed(self, method: str, calls: Sequence[Sequence[Any]]) -> list[float]:
        """Return the milliseconds that each of several calls took."""
        call: Callable[..., object] = getattr(self, method)
        found = []
        for args in calls:
            start = time.perf_counter()
            call(*args)
            found.append((time.perf_counter() - start) * 1000)
        return found

    def memory(self) -> int:
        """Return the bytes that the process holds."""
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def close(self) -> None:
        """Close the bank."""
        self.bank.close()


def main() -> None:
    """Answer requests until there are no more."""
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        value = getattr(worker, request.pop("op"))(**request)
        print(json.dumps({"value": value}), flush=True)


if __name__ == "__main__":
    main()
