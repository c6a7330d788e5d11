"""One run: every measure once, in fresh processes, ours and the real engine's in turn on the same banks."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks import banks
from benchmarks.texts import Texts
from tests.interop import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Result = dict[str, dict[str, float]]
"""Name of a measure -> who -> number."""

ROOT = Path(__file__).parents[1]
MEBIBYTE = 1024 * 1024
K = 8


class Side(Protocol):
    """Either engine in a fresh process; ``before`` is the memory it held before the bank was open."""

    name: str
    before: int

    def open(self, path: Path, *, vectors: bool) -> None:
        """Open a bank."""

    def recalls(self, queries: Sequence[str]) -> list[float]:
        """Return the milliseconds of each recall."""

    def retains(self, texts: Sequence[str]) -> list[float]:
        """Return the milliseconds of each write of one memory."""

    def batch(self, texts: Sequence[str]) -> float:
        """Return the milliseconds of writing many memories."""

    def memory(self) -> int:
        """Return the bytes that the process holds."""


class Ours:
    """Our engine."""

    name = "ours"
    before = 0

    def __init__(self, home: Path) -> None:
        self.process = engine.Process([sys.executable, "-m", "benchmarks.worker"], home, {"PYTHONPATH": str(ROOT)})

    def open(self, path: Path, *, vectors: bool) -> None:
        size = banks.VECTOR_SIZE if vectors else 0
        self.process.ask("open", path=str(path), name=banks.BANK, vector_size=size)

    def recalls(self, queries: Sequence[str]) -> list[float]:
        return list(self.process.ask("timed", method="recall", calls=[[query, K] for query in queries]))

    def retains(self, texts: Sequence[str]) -> list[float]:
        return list(self.process.ask("timed", method="retain", calls=[[text] for text in texts]))

    def batch(self, texts: Sequence[str]) -> float:
        return float(sum(self.process.ask("timed", method="retain", calls=[texts])))

    def memory(self) -> int:
        return int(self.process.ask("memory"))


class Real:
    """The real engine."""

    name = "real"
    before = 0

    def __init__(self, home: Path, program: Path) -> None:
        self.process = engine.Engine(program, home, {"VECTOR_SIZE": str(banks.VECTOR_SIZE)})

    def open(self, path: Path, *, vectors: bool) -> None:
        embedding = {"noEmbeddings": False, "embeddingModel": banks.MODEL} if vectors else {}
        self.bank = self.process.open(path, banks.BANK, **embedding)
        self.bank.drain()

    def recalls(self, queries: Sequence[str]) -> list[float]:
        options = {"includeFacts": True, "channelId": banks.BANK}
        return self._timed("recallEnhanced", [[query, K, options] for query in queries])

    def retains(self, texts: Sequence[str]) -> list[float]:
        options = {
            "source": "coding-agent-retain",
            "importance": 0.75,
            "scope": "bank",
            "veracity": "tool",
            "memoryType": "fact",
            "extract": True,
            "extractEntities": True,
            "metadata": {"session_id": "bench", "cwd": "/proj/bench", "context": None, "tool": "retain"},
        }
        return self._timed("remember", [[text, options] for text in texts])

    def batch(self, texts: Sequence[str]) -> float:
        return sum(self.retains(texts))

    def memory(self) -> int:
        return int(self.process.ask("memory"))

    def _timed(self, method: str, calls: list[Any]) -> list[float]:
        return list(self.process.ask("timed", path=str(self.bank.path), method=method, calls=calls))


class Run:
    """Takes the measures; progress goes to ``tell``."""

    def __init__(self, folder: Path, number: int, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.number = number
        self.tell = tell
        self.program = engine.install()
        self.found: Result = {}

    def all(self, sizes: Sequence[int]) -> Result:
        """Return every measure."""
        for size in sizes:
            for vectors in (False, True):
                self._recall(size, vectors=vectors)
            self._write(size)
        self._first(sizes[0])
        self._session(sizes[-1])
        return self.found

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        scratch = self.folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch)

    def _note(self, measure: str, who: str, number: float) -> None:
        self.found.setdefault(measure, {})[who] = number
        self.tell(f"run {self.number}: {measure}: {who} {number:.2f}")

    @contextmanager
    def _sides(self, source: Path, *, vectors: bool) -> Iterator[tuple[Ours, Real]]:
        """Give both sides, each with a copy of the bank open."""
        with self._scratch() as scratch:
            ours, real = Ours(scratch / "ours"), Real(scratch / "real", self.program)
            with ours.process, real.process:
                for side in (ours, real):
                    side.before = side.memory()
                    side.open(banks.copied(source, scratch / side.name), vectors=vectors)
                yield ours, real

    def _in_turn(self, sides: Sequence[Side], inputs: Sequence[str], work: str) -> Iterator[tuple[Side, list[float]]]:
        """Give the times of each side, which took turns, so that what else the machine does falls on both."""
        times: dict[str, list[float]] = {side.name: [] for side in sides}
        for number, text in enumerate(inputs):
            for side in sides if (number + self.number) % 2 else reversed(sides):
                times[side.name] += getattr(side, work)([text])
        return ((side, times[side.name]) for side in sides)

    def _recall(self, size: int, *, vectors: bool) -> None:
        how = "vectors" if vectors else "text"
        queries = list(Texts(self.number * 1000 + size).queries(200 if size < 100_000 else 80))
        with self._sides(banks.make(self.folder, size, vectors=vectors), vectors=vectors) as sides:
            for side, times in self._in_turn(sides, queries, "recalls"):
                self._note(f"recall, {how}, {size} rows, p50", side.name, statistics.median(times))
                self._note(f"recall, {how}, {size} rows, p95", side.name, percentile(times, 95))
                self._note(f"added memory, {how}, {size} rows", side.name, (side.memory() - side.before) / MEBIBYTE)

    def _write(self, size: int) -> None:
        source = Texts(self.number * 1000 + size + 1)
        one, many = [source.memory() for _ in range(60)], [source.memory() for _ in range(1000)]
        with self._sides(banks.make(self.folder, size, vectors=False), vectors=False) as sides:
            for side, times in self._in_turn(sides, one, "retains"):
                self._note(f"retain one, {size} rows, p50", side.name, statistics.median(times))
                self._note(f"retain one, {size} rows, p95", side.name, percentile(times, 95))
            for side in sides:
                # The real engine needs minutes for as many.
                texts = many if side is sides[0] else many[:100]
                self._note(f"retain 1000, {size} rows, a second", side.name, len(texts) / side.batch(texts) * 1000)

    def _first(self, size: int) -> None:
        source = banks.make(self.folder, size, vectors=False)
        script = Path(shutil.copy(Path(__file__).with_name("first.js"), engine.folder() / "first.js"))
        commands = {
            "ours": ([sys.executable, "-m", "benchmarks.first"], ROOT),
            "real": ([str(self.program), str(script)], engine.folder()),
        }
        times: dict[str, list[float]] = {who: [] for who in commands}
        for query in Texts(self.number).queries(15):
            for who, (command, place) in commands.items():
                with self._scratch() as scratch:
                    path = banks.copied(source, scratch)
                    start = time.perf_counter()
                    with subprocess.Popen(
                        [*command, str(path), banks.BANK, query], cwd=place, stdout=subprocess.PIPE
                    ) as process:
                        assert process.stdout is not None
                        assert process.stdout.readline()
                        times[who].append((time.perf_counter() - start) * 1000)
        for who, taken in times.items():
            self._note(f"process start to first result, {size} rows", who, statistics.median(taken))

    def _session(self, size: int) -> None:
        from benchmarks import sessions

        with self._scratch() as scratch:
            path = banks.copied(banks.make(self.folder, size, vectors=False), scratch)
            for measure, times in sessions.measure(path, Texts(self.number * 1000 + 3)).items():
                self._note(f"session: {measure}, {size} rows, p50", "ours", statistics.median(times))
                self._note(f"session: {measure}, {size} rows, p95", "ours", percentile(times, 95))
        self._note("list 1000 banks", "ours", sessions.list_banks(banks.many(self.folder, 1000)))


def percentile(numbers: Sequence[float], percent: int) -> float:
    """Return the smallest number that at least so many percent do not exceed."""
    ordered = sorted(numbers)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
