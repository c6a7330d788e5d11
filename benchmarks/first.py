"""From nothing to the first answer: ``python -m benchmarks.first BANK NAME QUERY``."""

import sys

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.single_bank import RecallOptions, recall_enhanced, touch
from ipy_memory.clock import SystemClock

path, name, query = sys.argv[1:]
with Bank.open(path, name, clock=SystemClock(), create=False) as bank:
    hits = recall_enhanced(bank, query, 8, RecallOptions(channel_id=name))
    print(hits[0].id if hits else None, flush=True)
    touch(bank, {(hit.tier or "", hit.id or ""): 1 for hit in hits})
