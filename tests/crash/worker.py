"""One of several processes on one bank: ``python -m tests.crash.worker BANK NUMBER OPERATIONS`` prints its ledger."""

from __future__ import annotations

import json
import random
import sys

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.multi_bank import scoped_recall
from ipy_memory.backends.mnemopi.store.memories import find, forget, invalidate, update
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.clock import ProcessIds, SystemClock
from ipy_memory.model import RetainItem

SHARED = "shared counter row"


def main(path: str, number: str, operations: str) -> None:
    """Mix writes, edits and recalls; the ledger holds the text that each row of this process should have."""
    draw = random.Random(int(number))
    ledger: dict[str, str] = {}
    appended = 0
    with Bank.open(path, "busy", clock=SystemClock(), ids=ProcessIds()) as bank:
        [(shared,)] = bank.connection.execute("SELECT id FROM working_memory WHERE source = ?", (SHARED,)).fetchall()
        for step in range(int(operations)):
            operation = draw.choice(["retain", "retain", "append", "update", "invalidate", "forget", "recall"])
            if operation == "retain" or (operation != "recall" and not ledger):
                receipt = retain_items(bank, [RetainItem(f"Worker {number} note {step}.")], session_id="s", cwd="/p")
                ledger[str(receipt.ids[0])] = f"Worker {number} note {step}."
            elif operation == "append":
                # A read and the write that rests on it are one transaction: no other process comes between.
                with bank.transaction():
                    memory = find(bank, shared)
                    assert memory
                    assert update(bank, shared, content=memory.content + number)
                appended += 1
            elif operation == "update":
                chosen = draw.choice(sorted(ledger))
                ledger[chosen] = f"Worker {number} changed {step}."
                assert update(bank, chosen, content=ledger[chosen])
            elif operation == "invalidate":
                assert invalidate(bank, draw.choice(sorted(ledger)))
            elif operation == "forget":
                chosen = draw.choice(sorted(ledger))
                del ledger[chosen]
                assert forget(bank, chosen)
            else:
                scoped_recall([bank], f"worker {number} note", 8)
    json.dump({"ledger": ledger, "appended": appended}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
