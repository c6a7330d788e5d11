"""Memories made of texts, for the rules of the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.audit.findings import Rows
from ipy_memory.model import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ipy_memory.audit.findings import Finding

NOW_MS = 1_780_315_200_000.0  # 2026-06-01T12:00Z


def memory(number: int, content: str, **fields: Any) -> Memory:
    """Return a memory; a later number was stored later."""
    return Memory(
        **{
            "id": f"m{number}",
            "bank": "bank",
            "store": "working",
            "content": content,
            "timestamp": f"2026-05-{1 + number % 28:02d}T10:00:00.000Z",
            "state": "live",
            **fields,
        }
    )


def found(rule: Callable[..., Iterable[Finding]], *texts: str | Memory) -> list[Finding]:
    """Return what a rule finds in texts, or in memories as they are."""
    rows = [text if isinstance(text, Memory) else memory(place, text) for place, text in enumerate(texts)]
    return list(rule(Rows(rows, NOW_MS), lambda: None))
