"""Signs of life: how long the kernel shows the user nothing while it works on a bank of 10,000 memories.

Each magic and each action of a panel is carried out in a real kernel with a real bank; what a front end would send is
sent, and what the kernel sends back is timed by the clock of the kernel.

The *silence* of an action is the longest time in which nothing happens that the user could see: from the moment the
kernel is busy to the first output, display, change of a widget or clearing of an output, between any two of these, and
from the last of them until the kernel is idle. That it is busy, and the echo of the code, are no signs of life.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import banks
from benchmarks.texts import Texts
from ipy_memory.clock import SystemClock
from ipy_memory.jscompat.dates import iso
from tests.services.kernel import Done, Kernel, running
from tests.services.openai_stub import OpenAIStub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROWS = 10_000
BOUND = 100
"""So many milliseconds may pass without a sign of life."""

_OTHERS = 200
"""How many other small banks the database folder has."""

_KEPT = ("PATH", "LANG", "TMPDIR")

Silences = dict[str, tuple[float, float]]
"""Name of an action -> milliseconds in all, and the longest silence."""


def measure(folder: Path, number: int, tell: Callable[[str], None]) -> Silences:
    """Carry out every action once, on a fresh copy of the bank in a fresh kernel."""
    home = folder / "silence"
    shutil.rmtree(home, ignore_errors=True)
    env = _home(folder, home)
    found: Silences = {}
    try:
        with running(home, env) as kernel, OpenAIStub() as endpoint:
            for name, done in _actions(kernel, home, Texts(number * 1000 + 7), endpoint.url):
                found[name] = (done.total, done.silence)
                tell(f"run {number}: {name}: {done.total:.0f} ms, silent {done.silence:.0f} ms")
    finally:
        shutil.rmtree(home)
    return found


def table(runs: Sequence[Silences]) -> str:
    """Return the actions of all runs as a Markdown table."""
    lines = ["| action | in all (ms) | longest silence (ms) | ≤ 100 ms |", "|---|---:|---:|---|"]
    for name in runs[0]:
        totals, silences = zip(*(run[name] for run in runs), strict=True)
        met = "met" if statistics.median(silences) <= BOUND else "**missed**"
        lines.append(f"| {name} | {_spread(totals)} | {_spread(silences)} | {met} |")
    return "\n".join(lines)


def section(runs: Sequence[Silences]) -> str:
    """Return the section of docs/performance.md."""
    return f"""## Signs of life

Written by `python -m benchmarks silence --write`. Every magic and every action of a panel, each in a real kernel on a
bank of {ROWS:,} memories beside {_OTHERS} small ones. The *silence* of an action is the longest time in which the
kernel sends nothing that the user could see: from the moment it is busy to the first output, display, change of a
widget or clearing, between any two of these, and from the last one until it is idle. No silence is to be longer than
{BOUND} ms. Each cell is the **median** (highest) of {len(runs)} runs, each in a fresh kernel on a fresh copy of the
bank; the load of the machine was {os.getloadavg()[2]:.1f} on {os.cpu_count()} processor cores.

{table(runs)}

What takes longer than a moment says so from a thread of its own: a magic in place of its result, a panel beside its
status line. That is gone when the result is there. Where nobody is in front of the notebook (nbconvert, nbval) nothing
is said. What stays near the bound holds Python's one lock for long, such as the garbage collector and imports.
"""


def _spread(numbers: Sequence[float]) -> str:
    return f"**{statistics.median(numbers):.0f}** ({max(numbers):.0f})"


def _home(folder: Path, home: Path) -> Mapping[str, str]:
    """Make a home with the bank in it, and return the environment of its kernel."""
    data = home / "data"
    data.mkdir(parents=True)
    shutil.copy(banks.make(folder, ROWS, vectors=True), data / "mnemopi.db")
    shutil.copytree(banks.many(folder, _OTHERS) / "banks", data / "banks")
    bank = sqlite3.connect(data / "mnemopi.db")
    with bank:
        # Yesterday's memories are due to be summed up, and some of a year ago have no vector.
        bank.execute("UPDATE working_memory SET timestamp = ? WHERE consolidated_at IS NULL", (iso(_yesterday()),))
        bank.execute("DELETE FROM memory_embeddings WHERE rowid IN (SELECT rowid FROM memory_embeddings LIMIT 300)")
    bank.close()
    _configure(home, noEmbeddings=True)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    root = str(Path(__file__).parents[1])
    places = {"HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "JUPYTER_RUNTIME_DIR": str(home / "runtime")}
    return {**kept, **places, "PYTHONPATH": root, "PI_CODING_AGENT_DIR": str(home)}


def _configure(home: Path, **more: Any) -> None:
    own = {"dbPath": str(home / "data" / "mnemopi.db"), "scoping": "global", "bank": banks.BANK}
    settings = {"memory": {"backend": "mnemopi"}, "mnemopi": {**own, **more}}
    (home / "config.yml").write_text(json.dumps(settings), encoding="utf-8")


def _yesterday() -> int:
    return round(SystemClock().now_ms()) - 86_400_000


def _actions(kernel: Kernel, home: Path, source: Texts, endpoint: str) -> Iterator[tuple[str, Done]]:
    bank = sqlite3.connect(home / "data" / "mnemopi.db")
    ids = [row[0] for row in bank.execute("SELECT id FROM working_memory ORDER BY timestamp DESC LIMIT 500")]
    bank.close()
    queries = source.queries(100)
    yield "%load_ext ipy_memory", kernel.cell("%load_ext ipy_memory")
    yield "%recall, the first of a kernel", kernel.cell(f"%recall {next(queries)}")
    yield from _magics(kernel, ids, queries, source)
    yield from _panels(kernel, ids, queries, source)
    _configure(home, embeddingApiUrl=endpoint, embeddingModel=banks.MODEL)
    kernel.cell("%memory use mnemopi")
    yield "%memory embeddings --missing reindex, 300", kernel.cell("%memory embeddings --missing reindex")
    kernel.cell("%memory use mnemopi")
    yield "%memory open", kernel.cell(f"%memory open {home / 'data' / 'mnemopi.db'}")
    kernel.cell("%memory use mnemopi")
    yield "%memory clear --yes", kernel.cell("%memory clear --yes")


def _magics(kernel: Kernel, ids: list[str], queries: Iterator[str], source: Texts) -> Iterator[tuple[str, Done]]:
    reading = {
        "%recall": "%recall {query}",
        "%recall --limit 100": "%recall --limit 100 {query}",
        "%recall --explain": "%recall --explain {query}",
        "%recall --bank": f"%recall --bank {banks.BANK} {{query}}",
        "%reflect": "%reflect {query}",
        "%memory": "%memory",
        "%memory show": "%memory show {id}",
        "%memory why": "%memory why {id} {query}",
        "%memory why --all": "%memory why --all {query}",
        "%memory why --all --everywhere": "%memory why --all --everywhere {query}",
        "%memory browse": "%memory browse",
        "%memory browse, a word": "%memory browse deploy",
        "%memory browse --store all": "%memory browse --store all",
        f"%memory browse --limit {ROWS}": f"%memory browse --limit {ROWS}",
        "%memory browse --bank '*'": "%memory browse --bank *",
        "%memory chain": "%memory chain {id}",
        "%memory banks": "%memory banks",
        "%memory scopes": "%memory scopes",
        "%memory scopes, a query": "%memory scopes {query}",
        "%memory stats": "%memory stats",
        "%memory diagnose": "%memory diagnose",
        "%memory doctor": "%memory doctor",
        "%memory report": "%memory report",
        "%memory embeddings": "%memory embeddings",
        "%memory view": "%memory view",
        "%memory record preview": "%memory record preview",
        "%memory update --dry-run": "%memory update --dry-run {id} {text}",
        "%memory forget --dry-run": "%memory forget --dry-run {id}",
        "%memory consolidate --dry-run": "%memory consolidate --dry-run",
    }
    writing = {
        "%retain": "%retain {text}",
        "%%retain --lines, 1000 lines": "%%retain --lines\n{lines}",
        "%memory update": "%memory update {id} {text}",
        "%memory invalidate": "%memory invalidate {id}",
        "%memory undo": "%memory undo",
        "%memory invalidate --frame, 1000 rows": "%memory invalidate --frame rows --yes",
        "%memory forget": "%memory forget {id}",
        "%memory forget --purge": "%memory forget --purge {id}",
        "%memory flush": "%memory flush",
        "%memory enqueue": "%memory enqueue",
        "%memory consolidate": "%memory consolidate",
        "%memory doctor --repair": "%memory doctor --repair",
        "%memory scope": "%memory scope per-project",
        "%memory use": "%memory use mnemopi",
        "%memory rebind": "%memory rebind",
    }
    for name, form in {**reading, **writing}.items():
        if "--frame" in name:
            kernel.cell("rows = get_ipython().magics_manager.registry['MemoryMagics'].session.memories(limit=1000)")
        lines = "\n".join(source.memory() for _ in range(1000)) if "{lines}" in form else ""
        yield (
            name,
            kernel.cell(form.format(query=next(queries), id=ids.pop(), text=source.memory(), lines=lines)),
        )
    kernel.cell("%memory scope global")


def _panels(kernel: Kernel, ids: list[str], queries: Iterator[str], source: Texts) -> Iterator[tuple[str, Done]]:
    yield "recall panel: open", kernel.cell(f"%memory panel --live recall {next(queries)}")
    yield "recall panel: search", kernel.set("TextModel", "Query", value="deploy target staging database")
    rows = kernel.state("HitTable")["rows"]
    yield "recall panel: pick a hit", kernel.set("HitTable", "", selected=rows[0]["key"])
    yield "recall panel: mark hits", kernel.set("HitTable", "", marked=[row["key"] for row in rows])
    yield "recall panel: invalidate marked", kernel.press("Invalidate marked…")
    yes = _counted(kernel)
    yield "recall panel: yes", kernel.press(yes)
    yield "banks panel: open", kernel.cell("%memory panel --live banks")
    yield "banks panel: refresh", kernel.press("Refresh")
    yield "banks panel: another scope", kernel.set("DropdownModel", "Scope", index=1)
    yield "banks panel: the first scope again", kernel.set("DropdownModel", "Scope", index=0)
    yield "memory panel: open", kernel.cell(f"%memory panel --live memory {ids.pop()}")
    yield "memory panel: another id", kernel.set("TextModel", "Id", value=ids.pop())
    yield "memory panel: edit", kernel.set("TextareaModel", "Text", value=source.memory())
    yield "memory panel: review", kernel.press("Save…")
    yield "memory panel: save", kernel.press("Save")
    yield "memory panel: undo", kernel.press("Undo")
    yield "memory panel: invalidate", _confirmed(kernel, "Invalidate…", "Invalidate")
    yield "memory panel: forget", _confirmed(kernel, "Forget…", "Forget for good")
    yield "retain panel: open", kernel.cell("%memory panel --live retain")
    kernel.set("TextareaModel", "Text", value=source.memory())
    yield "retain panel: retain", kernel.press("Retain")
    yield "reflect panel: open", kernel.cell("%memory panel --live reflect")
    kernel.set("TextModel", "Question", value=next(queries))
    yield "reflect panel: reflect", kernel.press("Reflect")


def _confirmed(kernel: Kernel, label: str, yes: str) -> Done:
    kernel.press(label)
    return kernel.press(yes)


def _counted(kernel: Kernel) -> str:
    """Return the label of the button that names how many memories it ends."""
    labels = (str(state.get("description", "")) for state in kernel.widgets.values())
    return next(label for label in labels if label.removeprefix("Invalidate ").isdigit())
