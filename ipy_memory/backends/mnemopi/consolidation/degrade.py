"""How episodes age: after a month they are shortened, after half a year only their key sentences stay."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.db.rows import as_text
from ipy_memory.jscompat import dates
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from ipy_memory.backends.mnemopi.db.bank import Bank

DAY_MS = 24 * 3_600_000
TIER2_LENGTH = 800

_LATEST_MS = 8.64e15
_MARK = " [...]"
_SENTENCE_GAP = re.compile(rf"(?<=[.!?])[{js.WHITESPACE}]+")
_CAPITALISED = re.compile(r"\b[A-Z]\w+", re.ASCII)
_WEIGHTY = re.compile(
    r"\b(?:prefer|always|never|deadline|release|version|decided|important|must|should)\b", re.ASCII | re.IGNORECASE
)


def degrade(bank: Bank, *, dry_run: bool = False) -> dict[str, Any]:
    """Let the oldest episodes of a bank age, and return how many did.

    Parameters
    ----------
    bank
        The bank.
    dry_run
        Only count.
    """
    config, now_ms = bank.config, bank.clock.now_ms()
    first = _older(bank, 1, config.tier2_days, now_ms, config.degrade_batch)
    second = _older(bank, 2, config.tier3_days, now_ms, max(1, config.degrade_batch // 2))
    if not dry_run:
        now = dates.iso(now_ms)
        with bank.transaction():
            for memory_id, content in first:
                _set_tier(bank, memory_id, content, js.cut(content, 0, TIER2_LENGTH), 2, now)
            for memory_id, content in second:
                _set_tier(bank, memory_id, content, key_sentences(content, config.tier3_max_chars), 3, now)
    return {
        "status": "dry_run" if dry_run else "degraded",
        "tier1_to_tier2": len(first),
        "tier2_to_tier3": len(second),
    }


def key_sentences(text: str, limit: int) -> str:
    """Return a text, or its weightiest sentences that fit into ``limit`` units, in their order."""
    if js.units(text) <= limit:
        return text
    sentences = [sentence for part in _SENTENCE_GAP.split(text) if (sentence := js.trim(part))]
    best = sorted(range(len(sentences)), key=lambda at: -_weight(sentences[at]))
    kept: list[int] = []
    used = 0
    for at in best:
        size = js.units(sentences[at]) + 1
        if not kept or used + size <= limit:
            kept.append(at)
            used += size
    short = " ".join(sentences[at] for at in sorted(kept))
    if js.units(short) <= limit:
        return short
    return js.trim(js.cut(short, 0, max(0, limit - len(_MARK)))) + _MARK


def _weight(sentence: str) -> int:
    return 2 * len(_CAPITALISED.findall(sentence)) + len(_WEIGHTY.findall(sentence))


@within_limits
def _older(bank: Bank, tier: int, days: float, now_ms: int, limit: int) -> list[tuple[str, str]]:
    with bank.reading() as connection:
        rows = connection.execute(
            "SELECT id, content FROM episodic_memory WHERE tier = ? AND created_at < ?"
            " ORDER BY created_at, rowid LIMIT ?",
            (tier, dates.iso(min(max(0.0, now_ms - days * DAY_MS), _LATEST_MS)), limit),
        )
        return [(memory_id, as_text(content) or "") for memory_id, content in rows]


def _set_tier(bank: Bank, memory_id: str, old: str, new: str, tier: int, now: str) -> None:
    new = js.well_formed(new)
    bank.connection.execute(
        "UPDATE OR ABORT episodic_memory SET content = ?, tier = ?, degraded_at = ? WHERE id = ?",
        (new, tier, now, memory_id),
    )
    if new != old:
        bank.connection.execute("UPDATE OR ABORT episodic_memory SET binary_vector = NULL WHERE id = ?", (memory_id,))
        bank.connection.execute("DELETE FROM memory_embeddings WHERE memory_id = ?", (memory_id,))
