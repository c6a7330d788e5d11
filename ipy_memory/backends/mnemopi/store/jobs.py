"""Work that may be done after a write has returned: vectors, and facts read by a language model."""

from __future__ import annotations

import logging
from itertools import takewhile
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.embeddings.index import store_vectors
from ipy_memory.backends.mnemopi.store.extraction import (
    Extracted,
    FactRows,
    heuristic_facts,
    parse_answer,
    plain_answer,
)
from ipy_memory.errors import BankError, MemoryToolkitError
from ipy_memory.jscompat.dates import iso
from ipy_memory.jscompat.strings import trim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank, Pending

_log = logging.getLogger("ipy_memory.backends.mnemopi")

_PROMPT = """Read the text between the lines of dashes and list what is worth remembering about it.
Answer with one JSON object and nothing else. Its keys, each a list of at most five entries:
"facts": statements that hold; "instructions": what must always or never be done; "preferences": likes and dislikes;
"timelines": {{"date": "YYYY-MM-DD", "description": "what happens"}}; "kg": [subject, predicate, object].
Leave out what the text does not say. If there is nothing, answer NO_FACTS.
-----
{text}
-----
"""


def drain(bank: Bank) -> int:
    """Do all work that waits; return how much could not be done and waits on.

    Failures are logged and never raised. What the bank could not take is kept for the next time.
    """
    stuck: list[Pending] = []
    try:
        while bank.pending:
            jobs = _together(bank.pending)
            if not (_embed(bank, jobs) if jobs[0].kind == "embed" else _extract(bank, jobs[0])):
                stuck += jobs
            del bank.pending[: len(jobs)]
    finally:
        bank.pending[:0] = stuck
    return len(bank.pending)


def _together(waiting: Sequence[Pending]) -> Sequence[Pending]:
    if waiting[0].kind == "extract":
        return waiting[:1]
    return list(takewhile(lambda job: job.kind == "embed", waiting))


def _extract(bank: Bank, job: Pending) -> bool:
    try:
        extracted = read_facts(bank, job.text)
    except Exception as error:  # noqa: BLE001  whatever a caller's function raises, the memory itself is stored
        reason = error.message if isinstance(error, MemoryToolkitError) else type(error).__name__
        _log.warning("Mnemopi: fact extraction failed: bank=%s error=%s", bank.name, reason)
        return True
    try:
        with bank.transaction() as connection:
            if _exists(bank, job.memory_id):
                FactRows(connection, bank.name, job.memory_id, iso(bank.clock.now_ms())).add_extracted(extracted)
    except BankError as error:
        _log.warning("Mnemopi: extracted facts not stored: bank=%s error=%s", bank.name, error)
        return False
    return True


def _exists(bank: Bank, memory_id: str) -> bool:
    found = bank.connection.execute(
        "SELECT 1 FROM working_memory WHERE id = :id UNION ALL SELECT 1 FROM episodic_memory WHERE id = :id LIMIT 1",
        {"id": memory_id},
    )
    return found.fetchone() is not None


def read_facts(bank: Bank, text: str) -> Extracted:
    """Return the facts of a text: from the bank's language model if it has one and it answers, else by patterns."""
    answered = Extracted()
    if bank.completion is not None:
        answered = parse_answer(plain_answer(bank.completion(_PROMPT.format(text=text))))
    return answered or Extracted(facts=tuple(heuristic_facts(text)))


def _embed(bank: Bank, jobs: Sequence[Pending]) -> bool:
    texts = {job.memory_id: job.text for job in jobs if trim(job.text) and _exists(bank, job.memory_id)}
    if not texts or bank.embedder is None:
        return True
    try:
        store_vectors(bank, texts)
    except BankError as error:
        _log.warning("Mnemopi: vectors not stored: bank=%s error=%s", bank.name, error)
        return False
    return True
