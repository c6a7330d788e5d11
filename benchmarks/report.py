"""From several runs to one table: medians, spread, ratios, and which targets are met."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Result

# Name of a measure -> (what is judged, bound): "ratio" is real / ours and must reach the bound, as "rate" must;
# "ours" must not exceed it.
TARGETS: dict[str, tuple[str, float]] = {
    "recall, text, 1000 rows, p50": ("ratio", 2.5),
    "recall, text, 10000 rows, p50": ("ratio", 4),
    "recall, text, 100000 rows, p50": ("ratio", 3),
    "recall, vectors, 1000 rows, p50": ("ratio", 8),
    "recall, vectors, 10000 rows, p50": ("ratio", 8),
    "recall, vectors, 100000 rows, p50": ("ratio", 8),
    "retain one, 1000 rows, p50": ("ratio", 1.5),
    "retain one, 10000 rows, p50": ("ratio", 6),
    "retain 1000, 1000 rows, a second": ("rate", 5000),
    "retain 1000, 10000 rows, a second": ("rate", 5000),
    "retain 1000, 100000 rows, a second": ("rate", 5000),
    "process start to first result, 1000 rows": ("ratio", 4),
    "added memory, text, 100000 rows": ("ours", 60),
    "session: browse a page, 100000 rows, p95": ("ours", 300),
    "session: recall, 100000 rows, p95": ("ours", 300),
    "session: retain, 100000 rows, p95": ("ours", 300),
    "list 1000 banks": ("ours", 5000),
}


def table(runs: Sequence[Result]) -> str:
    """Return the measures of all runs as a Markdown table."""
    lines = [
        "| measure | ours | real engine | real / ours | target | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for measure in runs[0]:
        sides = {who: [run[measure][who] for run in runs if who in run[measure]] for who in ("ours", "real")}
        ratios = [real / ours for ours, real in zip(sides["ours"], sides["real"], strict=False)]
        if measure.endswith("a second"):
            ratios = [1 / ratio for ratio in ratios]
        wanted, met = _judged(measure, sides["ours"], ratios)
        cells = (measure + _unit(measure), _spread(sides["ours"]), _spread(sides["real"]), _spread(ratios), wanted, met)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _unit(measure: str) -> str:
    if measure.endswith("a second"):
        return " (memories)"
    return " (MiB)" if measure.startswith("added memory") else " (ms)"


def _spread(numbers: Sequence[float]) -> str:
    if not numbers:
        return ""
    low, middle, high = min(numbers), statistics.median(numbers), max(numbers)
    return f"**{_short(middle)}** ({_short(low)}–{_short(high)})"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def _judged(measure: str, ours: Sequence[float], ratios: Sequence[float]) -> tuple[str, str]:
    if measure not in TARGETS:
        return "", ""
    kind, bound = TARGETS[measure]
    reached = statistics.median(ratios if kind == "ratio" else ours)
    met = reached <= bound if kind == "ours" else reached >= bound
    return (
        f"{'≤' if kind == 'ours' else '≥'} {bound:g}{' ×' if kind == 'ratio' else ''}",
        "met" if met else "**missed**",
    )


def page(runs: Sequence[Result]) -> str:
    """Return docs/performance.md."""
    return f"""# Performance

Written by `python -m benchmarks --write`. Both engines worked on copies of the same banks in one run, each in a process
of its own, in turn; which came first changed from run to run. Each cell is the **median** (lowest–highest) of
{len(runs)} runs. Every run asks questions that were never asked before, each once, of a bank that was just opened, so
nothing can be answered from what an earlier question left. A recall includes writing the counters of what came back; a
retain of ours includes reading the facts in the text, which the real engine does after its call has returned.

{table(runs)}

The machine: {os.cpu_count()} processor cores with a load of {os.getloadavg()[2]:.1f} (what else it does falls on both
engines alike, but a number of ours alone suffers from it), {platform.system()}, Python {platform.python_version()},
SQLite {sqlite3.sqlite_version}. Texts have a median of about 120 and up to several thousand characters; the vectors
have 768 components, as those of the default model. The banks hold two years of memories, all but the newest hundred of
them consolidated, and one summary for every fifty. "Added memory" is what the process holds more after opening the bank
and asking all questions.

## Where the time goes

* **Full text.** A fifth of a recall from 10,000 memories and half of one from 100,000 is SQLite's `bm25`, which looks
  up the length of every row that has a word of the question. Both engines must ask for the same ranks, so this part
  cannot be faster; ours lets SQLite keep the best rows alone instead of sorting all. The rest is spread evenly: scores
  of the candidates, choosing for variety, reading the rows, writing the counters.
* **Vectors.** Those of the newest rows are read once and kept until the bank changes; a question then costs one to
  three milliseconds of processor time more than without them. What remains is the full-text part above.
* **Writes** wait for the disk once a call, the real engine's as well: that is most of a small retain. In a batch it is
  the insert into the table, its indexes and the full-text index. Counting processor time alone, a batch of 1,000 runs
  at about 5,000 a second in a small bank and at 2,800 in one of 100,000.
* **Process start.** Half of it is Python and its own library; another third is this package's modules (regular
  expressions and data classes made at import), the rest the first recall.
"""


def with_section(page: str, section: str) -> str:
    """Return a page with a section in place of the one with the same heading, or at its end."""
    heading = section.partition("\n")[0]
    before, _, after = page.partition(f"\n{heading}\n")
    _, following, rest = after.partition("\n## ")
    return f"{before.rstrip()}\n\n{section.rstrip()}\n" + (f"{following}{rest}" if following else "")
