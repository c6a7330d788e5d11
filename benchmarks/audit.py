"""How well the audit finds what is labelled, how often it is wrong, and how long it takes."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from benchmarks.audit_notes import Notes, make
from ipy_memory.audit.rules import RULES, audit
from ipy_memory.model import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ipy_memory.audit.findings import Finding

NOW_MS = 1_780_315_200_000.0
BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"


def measure(sizes: Sequence[int]) -> list[str]:
    """Return the rows of a table: for each size and kind what was found, what was wrong, and the seconds it took."""
    rows = []
    for size in sizes:
        notes = make(size)
        whole = 0.0
        for kind in RULES:
            begun = time.perf_counter()
            found = audit(notes.memories, [kind], now_ms=NOW_MS)
            took = time.perf_counter() - begun
            whole += took
            if kind in notes.held or kind in notes.pairs:
                recall, precision, false = judged(kind, found, notes)
                rows.append(f"| {size:,} | `{kind}` | {recall:.1%} | {precision:.1%} | {false:.2f} | {took:.1f} |")
        rows.append(f"| {size:,} | all nine | | | | {whole:.1f} |")
    return rows


def judged(kind: str, found: Sequence[Finding], notes: Notes) -> tuple[float, float, float]:
    """Return recall and precision of a kind, and how many of 1,000 other memories were named wrongly."""
    if kind in notes.held:
        right, named = notes.held[kind], {one.id for one in found}
        others = len(notes.memories) - len(right)
    else:
        right = {frozenset(pair) for pair in notes.pairs[kind]}
        named = {frozenset((one.id, other)) for one in found for other in one.other}
        others = len(notes.memories) - 2 * len(right)
    hits = len(right & named)
    return hits / max(1, len(right)), hits / max(1, len(named)), 1000 * len(named - right) / max(1, others)


def table(rows: Sequence[str]) -> str:
    """Return the rows as a table."""
    head = "| memories | kind | recall | precision | wrong of 1,000 others | seconds |"
    return "\n".join([head, "| ---: | --- | ---: | ---: | ---: | ---: |", *rows])


def of_items(path: Path) -> str:
    """Return how many findings of each kind there are among the items of a file, and one in words of each."""
    items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    memories = [
        Memory(str(one["id"]), str(one["bank"]), "working", one["text"], timestamp=one["date"], state="live")
        for one in items
    ]
    lines = [f"{len(memories)} items of {path.name}:"]
    for kind in RULES:
        found = audit(memories, [kind], now_ms=NOW_MS)
        named = {name for one in found for name in (one.id, *(one.other if kind == "duplicates" else ()))}
        lines.append(f"- {kind}: {len(found)} findings in {len(named)} items ({len(named) / max(1, len(items)):.2%})")
    return "\n".join(lines)


def with_table(page: str, text: str) -> str:
    """Return the page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}\n{after.lstrip()}"
