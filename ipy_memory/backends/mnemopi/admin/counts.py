"""How much a bank holds and where it came from, counted without changing a byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.bank import Bank, within_limits
from ipy_memory.backends.mnemopi.db.rows import as_text
from ipy_memory.backends.mnemopi.db.schema import columns
from ipy_memory.backends.mnemopi.db.visibility import names_of

if TYPE_CHECKING:
    from ipy_memory.clock import Clock

COUNTED = {
    "working": "working_memory",
    "episodic": "episodic_memory",
    "facts": "facts",
    "triples": "triples",
    "vectors": "memory_embeddings",
}
"""What is counted, and in which table."""

_DATED = ("working_memory", "episodic_memory")


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of a bank by kind, the folders they came from, and the newest time stamp."""

    working: int = 0
    episodic: int = 0
    facts: int = 0
    triples: int = 0
    vectors: int = 0
    cwds: tuple[str, ...] = ()
    last_memory: str | None = None


def tally(path: Path, name: str, clock: Clock) -> Tally:
    """Return what a bank file holds; a table that an older bank lacks counts as empty."""
    with Bank.open_readonly(path, name, clock=clock) as bank:
        return _counted(bank)


@within_limits
def _counted(bank: Bank) -> Tally:
    with bank.reading() as connection:
        there = {table for table in COUNTED.values() if columns(connection, table)}
        counts: dict[str, Any] = {
            field: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] if table in there else 0
            for field, table in COUNTED.items()
        }
        metadata = names_of(bank, "working_memory")["metadata_json"]
        cwds = connection.execute(
            f"SELECT DISTINCT CASE WHEN json_valid({metadata}) THEN json_extract({metadata}, '$.cwd') END"
            " FROM working_memory"
        ).fetchall()
        newest = [
            as_text(connection.execute(f"SELECT max(timestamp) FROM {table}").fetchone()[0])
            for table in _DATED
            if table in there
        ]
    folders = sorted(cwd for (cwd,) in cwds if isinstance(cwd, str))
    return Tally(**counts, cwds=tuple(folders), last_memory=max(filter(None, newest), default=None))


def size(path: Path) -> int | None:
    """Return how many bytes a bank takes, its -wal file included; ``None`` if there is none."""
    try:
        whole = path.stat().st_size
    except OSError:
        return None
    try:
        return whole + Path(f"{path}-wal").stat().st_size
    except OSError:
        return whole
