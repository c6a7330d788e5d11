"""Which versions of the agent and of a server are there, and how they stand to those that were tested.

Nothing is run: the agent's version is read from its package file.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.session import StatusRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ipy_memory.session import MemorySession

TESTED_AGENT = "18.2.3"
TESTED_SERVER = "1.1.0"
"""The releases that the tests compare with."""

SERVER_LIMIT_MS = 2_000
"""How long a server may take to name its version."""

_PROGRAM = "omp"
_PACKAGE = Path("@oh-my-pi", "pi-coding-agent", "package.json")
_NAME = "@oh-my-pi/pi-coding-agent"
_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){1,3}(-[0-9A-Za-z.-]{1,40})?", re.ASCII)
_LARGEST = 1 << 20


def compared(version: str, tested: str) -> str:
    """Return ``tested``, ``newer than the tested …`` or ``older than the tested …``."""
    if version == tested:
        return "tested"
    mine, theirs = _order(version), _order(tested)
    return f"{'newer' if mine > theirs else 'older'} than the tested {tested}"


def _order(version: str) -> tuple[tuple[int, ...], bool]:
    numbers, _, early = version.partition("-")
    return tuple(int(part) for part in numbers.split(".")), not early


def agent_package(env: Mapping[str, str]) -> tuple[str, Path] | None:
    """Return the version of the installed agent and the file that says so; ``None`` where none is found.

    Parameters
    ----------
    env
        ``PATH``, ``HOME`` and ``BUN_INSTALL`` say where to look.
    """
    for path in _package_files(env):
        if version := _version_in(path):
            return version, path
    return None


def _package_files(env: Mapping[str, str]) -> Iterator[Path]:
    if program := shutil.which(_PROGRAM, path=env.get("PATH", "")):
        yield from (folder / "package.json" for folder in Path(program).resolve().parents)
        yield Path(program).absolute().parent.parent / "lib" / "node_modules" / _PACKAGE
    home = env.get("HOME")
    if bun := env.get("BUN_INSTALL") or (home and f"{home}/.bun"):
        yield Path(bun, "install", "global", "node_modules") / _PACKAGE


def _version_in(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("name") != _NAME:
        return None
    return _valid(found.get("version"))


def _valid(version: Any) -> str | None:
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else None


def version_rows(session: MemorySession) -> list[StatusRow]:
    """Return a row for the agent and one for the server in use, where they are found."""
    rows = []
    if found := agent_package(session.env):
        version, path = found
        rows.append(StatusRow("agent", f"oh-my-pi {version} ({compared(version, TESTED_AGENT)})", str(path)))
    if session.chosen == "hindsight" and session.backend is not None:
        rows.append(StatusRow("server version", _server(session)))
    return rows


def _server(session: MemorySession) -> str:
    from ipy_memory.explore.local import server_backend

    backend = server_backend(session)
    if backend is None:
        return "unknown"
    try:
        answer = backend.service.client.version(SERVER_LIMIT_MS)
    except MemoryToolkitError as error:
        return f"unknown: {error.message}"
    version = _valid(answer.get("api_version")) if isinstance(answer, dict) else None
    return "unknown" if version is None else f"{version} ({compared(version, TESTED_SERVER)})"
