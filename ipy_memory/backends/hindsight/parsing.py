"""A Hindsight server's answers as hits; entries of another shape than agreed are passed over, never fatal (pure)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ipy_memory.jscompat import strings as js
from ipy_memory.model import Hit, ScoreParts

if TYPE_CHECKING:
    from collections.abc import Sequence


def hits_of(results: Any, bank: str) -> tuple[tuple[Hit, ...], int]:
    """Return the hits of a result list in the server's order, and how many entries had no text."""
    entries = results if isinstance(results, list) else []
    hits = [hit(entry, bank) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("text"), str)]
    return tuple(hits), len(entries) - len(hits)


def hit(entry: dict[str, Any], bank: str) -> Hit:
    """Return one recalled entry; a missing or odd value is ``None``."""
    metadata = entry.get("metadata") if isinstance(entry.get("metadata"), dict) else None
    document, context = _text(entry.get("document_id")), _text(entry.get("context"))
    scores = entry.get("scores") if isinstance(entry.get("scores"), dict) else {}
    mentioned = _text(entry.get("mentioned_at"))
    return Hit(
        id=_text(entry.get("id")),
        content=entry["text"],
        source=_text((metadata or {}).get("source")) or document or context or bank,
        timestamp=_text(entry.get("occurred_start")) or mentioned,
        mentioned_at=mentioned,
        score=_number(scores, "final"),
        bank=bank,
        type=_text(entry.get("type")),
        parts=ScoreParts(
            semantic=_number(scores, "semantic"),
            keyword=_number(scores, "keyword"),
            reranker=_number(scores, "reranker"),
        ),
        tags=_texts(entry.get("tags")),
        document=document,
        metadata=metadata,
    )


def reflected(answer: Any) -> Any:
    """Return the memories that a synthesis says it is based on (only some servers say)."""
    based_on = answer.get("based_on") if isinstance(answer, dict) else None
    return based_on.get("memories") if isinstance(based_on, dict) else None


def unconfirmed(answer: Any, bank: str, sent: int) -> str | None:
    """Return why an answer to a retain does not confirm that all items were taken on; ``None`` where it does.

    The documented form says ``success``, ``bank_id``, ``items_count`` and ``async``. What an intermediary answers in
    the server's place (a page of HTML, an empty body) says none of it.
    """
    if not isinstance(answer, dict) or answer.get("success") is not True:
        return "the answer is not what a Hindsight server gives"
    count = answer.get("items_count")
    if not isinstance(count, int) or isinstance(count, bool):
        return "the answer does not say how many memories the server took on"
    if count != sent:
        return f"{'partial: ' if 0 < count < sent else ''}the server took on {count} of {sent} memories"
    if answer.get("bank_id") not in (None, bank, js.well_formed(bank)):
        return "the answer is about another bank"
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: Any) -> tuple[str, ...]:
    found: Sequence[Any] = value if isinstance(value, list) else ()
    return tuple(text for text in found if isinstance(text, str))


def _number(scores: Any, name: str) -> float | None:
    value = scores.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
