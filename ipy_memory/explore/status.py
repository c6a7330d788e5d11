"""What a session uses, and where each of its settings comes from."""

from __future__ import annotations

import json
import platform
import re
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory import __version__
from ipy_memory.backends import registry
from ipy_memory.backends.mnemopi.admin import stats as reports
from ipy_memory.backends.mnemopi.admin.stats import homely
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.explore.banks import NOT_READ, bank_rows
from ipy_memory.jscompat.dates import minute_stamp
from ipy_memory.session.reports import StatusRow
from ipy_memory.settings.table import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ipy_memory.explore.banks import Progress
    from ipy_memory.session import MemorySession


NOT_CHOSEN = "No memory backend is chosen: choose one with %memory use mnemopi (or hindsight)."


def status_rows(session: MemorySession, *, folder_chosen: bool = False, whole_paths: bool = False) -> list[StatusRow]:
    """Return the session in rows, then every setting that is not at its default; credentials are masked.

    Parameters
    ----------
    session
        On any backend, or on none.
    folder_chosen
        Whether the user named the project folder, so that the working directory does not matter.
    whole_paths
        Whether paths are written in full; otherwise the home folder is ``~``.
    """
    behind = {"scope": f"{session.chosen}.scoping", "database": "mnemopi.dbPath"}
    behind = {name: setting for name, setting in behind.items() if setting in SETTINGS}
    home = session.env.get("HOME") or str(Path.home())

    def shown(text: str) -> str:
        if whole_paths:
            return f"{home}{text[1:]}" if text.startswith("~/") else text
        return homely(text, home)

    rows = [
        StatusRow(
            row.name,
            shown(row.value),
            shown(row.origin or (session.settings.origin(behind[row.name]) if row.name in behind else "")),
        )
        for row in (*session.status(), *version_rows(session))
        if not (row.name == "note" and folder_chosen)
    ]
    return rows + [
        StatusRow(row.name, shown(row.words), shown(row.origin))
        for row in session.settings.table()
        if row.origin != "default" and row.name not in {"memory.backend", *behind.values()}
    ]


def status_notes(session: MemorySession) -> list[str]:
    """Return what the user should know or do."""
    return [] if is_chosen(session) else [NOT_CHOSEN]


def is_chosen(session: MemorySession) -> bool:
    """Return whether a backend is chosen that has tools."""
    return session.chosen in registry.names()


_REASONS = (
    "The agent's recall can differ from this one where the agent",
    "- works in another folder, or under another scope (compare scope and banks above, and %memory scopes);",
    "- has vectors on, or another embedding model (see vectors);",
    "- reads other settings, such as the recall limit (compare the settings above);",
    "- has written or recalled since: recall counts, times and new memories change the order.",
)


def report_text(session: MemorySession, progress: Progress | None = None) -> str:
    """Return backend, scope, banks, vectors and settings with their origins, as text to copy."""
    home = session.env.get("HOME") or str(Path.home())
    return reports.homely("\n".join(_lines(session, progress)), home)


def _lines(session: MemorySession, progress: Progress | None) -> Iterator[str]:
    yield f"ipy_memory {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield f"as of {minute_stamp(session.clock.now_ms())} UTC"
    yield ""
    yield from (f"{row.name}: {row.value}{f' ({row.origin})' if row.origin else ''}" for row in session.status())
    if isinstance(session.backend, MnemopiBackend):
        yield ""
        yield from _banks(session, session.backend, progress)
    yield ""
    yield "settings that are not at their default:"
    changed = [row for row in session.settings.table() if row.origin != "default"]
    yield from (f"  {row.name} = {row.words} ({row.origin})" for row in changed)
    if not changed:
        yield "  none"
    yield ""
    yield from _REASONS


def _banks(session: MemorySession, backend: MnemopiBackend, progress: Progress | None) -> Iterator[str]:
    rows = bank_rows(session, progress)
    yield "banks:"
    for row in rows:
        if row.use == NOT_READ:
            continue
        held = row.tally
        counts = f"{held.working} working, {held.episodic} episodic, {held.facts} facts, {held.vectors} vectors"
        about = row.error or ("no file yet" if row.size is None else counts)
        yield f"  {row.name} ({row.use}): {about}; {reports.shown_path(row.path, backend.home)}"
    others = sum(row.use == NOT_READ for row in rows)
    yield f"  {others} other banks are not read (%memory banks says why)" if others else "  no other banks"
    vectors = sum(row.tally.vectors for row in rows if row.use != NOT_READ)
    yield f"  {vectors} vectors are stored in the banks that are read; here they are {backend.status()['vectors']}"


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
