"""Replay the recorded cases on another release of the real engine, and print what changed.

``python -m benchmarks.upstream VERSION`` installs that release beside the tested one, asks both the recorded questions
on fresh copies of the recorded banks, lets both live one story of writes, edits and consolidations, and compares their
answers and stored rows.  The exit code is 1 where anything differs, and 2 where the release cannot be asked.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.clock import FixedClock
from tests.conformance.kinds.recall import unpack
from tests.interop.corpus import Source
from tests.interop.engine import ROOT, VERSION, Engine, EngineError, install
from tests.interop.players import START, Theirs, plain, play, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GOLDEN = ROOT / "tests" / "golden"
CASES = "engine_recall.json"
SEED, MEMORIES, QUERIES = 20260601, 120, 60
SHOWN = 20
"""So many differences are printed in full."""


@dataclass(frozen=True, slots=True)
class Question:
    """A recorded question: the bank by its set and name, and the call."""

    name: str
    bankset: str
    bank: str
    method: str
    arguments: tuple[Any, ...]


def recorded_questions(golden: Path = GOLDEN) -> tuple[str, list[Question]]:
    """Return the instant at which the clock stood, and the questions of the recorded cases."""
    recorded = json.loads((golden / CASES).read_text(encoding="utf-8"))
    questions = []
    for case in recorded["cases"]:
        asked = case["input"]
        if "bankset" not in asked:
            continue
        method = asked["fn"] if asked["fn"] in {"recallEnhanced", "beam.factRecall"} else "recall"
        options = () if method == "beam.factRecall" else (asked.get("options", {}),)
        arguments = (asked["query"], asked["topK"], *options)
        questions.append(Question(case["name"], asked["bankset"], asked["bank"], method, arguments))
    return recorded["now"], questions


def answers(engine: Engine, questions: list[Question], now: str, folder: Path) -> dict[str, Any]:
    """Return what a release answers to each recorded question, on a fresh copy of its banks each."""
    found: dict[str, Any] = {}
    engine.clock(now)
    for number, question in enumerate(questions):
        place = folder / str(number)
        unpack(GOLDEN, question.bankset, place)
        own = place / "banks" / question.bank / "mnemopi.db"
        bank = engine.open(own if own.exists() else place / "mnemopi.db", question.bank)
        try:
            found[question.name] = plain(bank.call(question.method, *question.arguments))
        finally:
            bank.close()
    return found


def life(engine: Engine, folder: Path) -> dict[str, Any]:
    """Return what a release answers and stores in one story, drawn from a seed."""
    source = Source(SEED)
    story = source.story(MEMORIES)
    player = Theirs(engine, folder / "life.db", FixedClock(START))
    found: dict[str, Any] = {"story: answers": plain(play(player, story, []))}
    texts = [step["content"] for step in story if step["op"] == "remember"]
    options = {"includeFacts": True}
    for number in range(QUERIES):
        query = source.query(texts)
        found[f"story: recall {number} {query!r}"] = plain(player.ask("recallEnhanced", query, 8, options))
    player.close()
    rows = {f"story: rows of {name}": plain(values) for name, values in tables(folder / "life.db").items()}
    return found | rows


def record(version: str) -> dict[str, Any]:
    """Return all that one release answers and stores."""
    program = install(version)
    now, questions = recorded_questions()
    with tempfile.TemporaryDirectory(prefix="ipy-memory-upstream-") as passing:
        folder = Path(passing)
        with Engine(program, folder / "home", version=version) as engine:
            return answers(engine, questions, now, folder / "cases") | life(engine, folder)


def changed(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield in words where two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            where = f"{path}.{name}" if path else str(name)
            if name not in before:
                yield f"{where}: new, {_short(after[name])}"
            elif name not in after:
                yield f"{where}: gone, was {_short(before[name])}"
            else:
                yield from changed(before[name], after[name], where)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{path}: {len(before)} entries before, {len(after)} now"
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from changed(one, other, f"{path}[{number}]")
    elif before != after:
        yield f"{path}: {_short(before)} before, {_short(after)} now"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def report(before: Mapping[str, Any], after: Mapping[str, Any], version: str) -> tuple[str, bool]:
    """Return what to print, and whether anything changed."""
    names = [*before, *(name for name in after if name not in before)]
    found = {name: list(changed(before.get(name), after.get(name), name)) for name in names}
    differing = {name: lines for name, lines in found.items() if lines}
    lines = [line for lines in differing.values() for line in lines]
    head = f"{VERSION} -> {version}: {len(differing)} of {len(found)} answers and tables differ"
    more = [f"… and {len(lines) - SHOWN} further differences"] if len(lines) > SHOWN else []
    return "\n".join([head, *lines[:SHOWN], *more]), bool(differing)


def main() -> int:
    """Record both releases and print what changed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.upstream", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="the release to compare with, such as 18.3.0")
    given = parser.parse_args()
    try:
        text, differs = report(record(VERSION), record(given.version), given.version)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    print(text)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
