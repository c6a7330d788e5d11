"""The real local engine in a process of its own, for tests and benchmarks: installed once, asked line by line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION = "18.2.3"
"""The release that the tests compare with."""
PACKAGE = "@oh-my-pi/pi-mnemopi"
RUNTIME = "bun@1.4.5"
DRIVER = Path(__file__).with_name("driver.js")
ROOT = Path(__file__).parents[2]


class EngineError(Exception):
    """The real engine threw, or its process ended."""


def folder(version: str = VERSION) -> Path:
    """Return where a release is installed: ``IPY_MEMORY_INTEROP_DIR``, else ``.interop``; another one beside it."""
    usual = Path(os.environ.get("IPY_MEMORY_INTEROP_DIR") or ROOT / ".interop").absolute()
    return usual if version == VERSION else usual.with_name(f"{usual.name}-{version}")


def install(version: str = VERSION) -> Path:
    """Install a release and Bun where they are not there yet; return the program that runs the driver."""
    target = folder(version)
    if not (target / "node_modules" / "@oh-my-pi" / "pi-mnemopi").exists():
        npm = shutil.which("npm")
        if npm is None:
            raise EngineError("npm is needed to install the real engine.")
        target.mkdir(parents=True, exist_ok=True)
        wanted = (RUNTIME, f"{PACKAGE}@{version}")
        options = ("--silent", "--no-audit", "--no-fund", "--prefix", str(target))
        if subprocess.run([npm, "install", *options, *wanted], check=False).returncode:
            raise EngineError(f"npm could not install {' and '.join(wanted)}: is there such a release?")
    shutil.copy(DRIVER, target / DRIVER.name)  # modules are found from where the driver lies
    # The program is moved into place by an install script; where those are off it lies with its platform.
    programs = [*target.glob("node_modules/bun/bin/bun.exe"), *target.glob("node_modules/@oven/bun-*/bin/bun")]
    return max(programs, key=lambda program: program.stat().st_size)


class Process:
    """A program that answers requests line by line."""

    def __init__(self, command: Sequence[str], home: Path, env: Mapping[str, str] | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._log = (home / "errors.log").open("w+b")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(home), "TZ": "UTC", "LANG": "C.UTF-8", **(env or {})},
            cwd=home,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, op: str, **given: Any) -> Any:
        """Return the answer to one request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"op": op, **given}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EngineError(f"The process ended: {self._errors()}") from None
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"The process ended: {self._errors()}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer["value"]

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()
        self._log.close()

    def _errors(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-2000:]


class Engine(Process):
    """The real engine; every method is one request."""

    def __init__(
        self, program: Path, home: Path, env: Mapping[str, str] | None = None, *, version: str = VERSION
    ) -> None:
        super().__init__([str(program), str(folder(version) / DRIVER.name)], home, env)

    def clock(self, now: str | None) -> None:
        """Stop the clock at an instant; ``None`` lets it run."""
        self.ask("clock", now=now)

    def open(self, path: Path, name: str, **options: Any) -> EngineBank:
        """Open a bank."""
        self.ask("open", path=str(path), name=name, options=options)
        return EngineBank(self, path)

    def diagnose(self, path: Path) -> dict[str, Any]:
        """Return the engine's own diagnosis of a file."""
        found: dict[str, Any] = self.ask("diagnose", path=str(path))
        return found

    def characters(self, pattern: str) -> set[str]:
        """Return the characters that match a pattern of the runtime."""
        runs = self.ask("characters", pattern=pattern)
        return {chr(code) for first, last in runs for code in range(first, last + 1)}

    def lower(self, texts: Sequence[str]) -> list[str]:
        """Return texts in small letters."""
        found: list[str] = self.ask("lower", texts=texts)
        return found

    def order(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how the runtime orders pairs of texts."""
        found: list[int] = self.ask("order", pairs=pairs)
        return found


class EngineBank:
    """One bank that the engine holds open."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self.engine = engine
        self.path = path

    def call(self, method: str, *args: Any) -> Any:
        """Return what a method of the bank answers."""
        return self.engine.ask("call", path=str(self.path), method=method, args=args)

    def drain(self) -> None:
        """Wait for what the engine does in the background."""
        self.engine.ask("drain", path=str(self.path))

    def close(self) -> None:
        """Close the bank."""
        self.engine.ask("close", path=str(self.path))
