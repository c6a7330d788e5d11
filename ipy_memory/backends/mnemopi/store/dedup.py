"""Which texts a bank holds already, kept from one write to the next: without it each write would read every row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ipy_memory.jscompat.strings import well_formed

if TYPE_CHECKING:
    from ipy_memory.backends.mnemopi.db.bank import Bank

_TRIGGERS = ("INSERT", "UPDATE OF content")


@dataclass(slots=True)
class _Known:
    """Hashes of at least all texts in the bank, as of a state of the file."""

    state: tuple[int, int]
    hashes: set[int] = field(default_factory=set)

    def note(self, content: bytes | None) -> None:
        self.hashes.add(hash(content))


def may_hold(bank: Bank, content: str) -> bool:
    """Return whether a row of the bank may have this very text; ``False`` is certain.

    Another process's commit, or a step taken back, makes the texts be read anew. What this connection writes is noted
    by triggers of its own, which are no part of the file.
    """
    version: int = bank.connection.execute("PRAGMA data_version").fetchone()[0]
    state = (version, bank.taken_back)
    known: _Known | None = bank.memo.get("contents")
    if known is None or known.state != state:
        known = bank.memo["contents"] = _read(bank, state)
    return hash(well_formed(content).encode()) in known.hashes


def _read(bank: Bank, state: tuple[int, int]) -> _Known:
    known = _Known(state)
    bank.connection.create_function("note_content", 1, known.note)
    for number, event in enumerate(_TRIGGERS):
        bank.connection.execute(
            f"CREATE TEMP TRIGGER IF NOT EXISTS note_content_{number} AFTER {event} ON main.working_memory"
            " BEGIN SELECT note_content(CAST(NEW.content AS BLOB)); END"
        )
    known.hashes.update(
        hash(content)
        for (content,) in bank.connection.execute(
            "SELECT CAST(content AS BLOB) FROM working_memory WHERE session_id = ?", (bank.name,)
        )
    )
    return known
