"""What is due in a bank: how many memories wait for consolidation, since when, and the rule in words. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.consolidation.sleep import SLEEP_AGE_MS
from ipy_memory.backends.mnemopi.db.bank import Bank, within_limits
from ipy_memory.backends.mnemopi.db.rows import as_text
from ipy_memory.backends.mnemopi.store.delete import TRIM_AGE_MS, TRIM_ROWS
from ipy_memory.errors import BankNotFoundError
from ipy_memory.jscompat import dates

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.clock import Clock

_HOUR_MS = 3_600_000

RULE = (
    f"Working memories of {SLEEP_AGE_MS // _HOUR_MS} hours and more are summed up into episodes when a session starts,"
    " before a write that would trim them, on %memory enqueue and on %memory consolidate; they stay as well. A write"
    f" deletes working memories over {TRIM_AGE_MS // _HOUR_MS} hours old, or beyond the newest {TRIM_ROWS}, that were"
    " not summed up; this package sums them up first, other programs may not."
)
"""How memories age, in words."""


@dataclass(frozen=True, slots=True)
class Ageing:
    """What is due in one bank.

    Attributes
    ----------
    open
        Working memories that were not consolidated yet; ``due`` of them can be now.
    oldest
        Time of the oldest of them, or ``None``; ``next_due`` when the next one can be consolidated.
    tiers
        How many episodes are whole, shortened, and reduced to key sentences.
    last
        When something was consolidated last, or ``None``.
    """

    working: int = 0
    open: int = 0
    due: int = 0
    oldest: str | None = None
    next_due: str | None = None
    tiers: tuple[int, int, int] = (0, 0, 0)
    last: str | None = None


def ageing(path: Path, name: str, clock: Clock) -> Ageing:
    """Return what is due in a bank; in one that has no file yet, nothing."""
    try:
        with Bank.open_readonly(path, name, clock=clock) as bank:
            return _ageing(bank)
    except BankNotFoundError:
        return Ageing()


@within_limits
def _ageing(bank: Bank) -> Ageing:
    with bank.reading() as connection:
        working, unconsolidated, due, oldest, young = connection.execute(
            "SELECT count(*), COALESCE(sum(consolidated_at IS NULL), 0),"
            " COALESCE(sum(consolidated_at IS NULL AND timestamp < :cutoff), 0),"
            " min(CASE WHEN consolidated_at IS NULL THEN timestamp END),"
            " min(CASE WHEN consolidated_at IS NULL AND timestamp >= :cutoff THEN timestamp END)"
            " FROM working_memory",
            {"cutoff": dates.iso(bank.clock.now_ms() - SLEEP_AGE_MS)},
        ).fetchone()
        tiers = connection.execute(
            "SELECT COALESCE(sum(tier = 1), 0), COALESCE(sum(tier = 2), 0), COALESCE(sum(tier >= 3), 0)"
            " FROM episodic_memory"
        ).fetchone()
        last = connection.execute("SELECT max(created_at) FROM consolidation_log").fetchone()[0]
    young_ms = dates.parse_ms(young, bank.clock.tz) if isinstance(young, str) else None
    following = None if young_ms is None else dates.iso(young_ms + SLEEP_AGE_MS)
    return Ageing(working, unconsolidated, due, as_text(oldest), following, tiers, as_text(last))
