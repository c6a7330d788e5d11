"""What the user asks of banks: counts, checks, the exact stats and diagnostics tables (read-only throughout)."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.bank import Bank, within_limits
from ipy_memory.backends.mnemopi.db.connection import (
    bank_errors,
    connect_readonly,
    empty_connection,
    was_interrupted,
    where_of,
)
from ipy_memory.backends.mnemopi.db.rows import as_text
from ipy_memory.backends.mnemopi.db.schema import check_kinds, columns, create_schema
from ipy_memory.backends.mnemopi.db.visibility import names_of
from ipy_memory.errors import BankError, BankNotFoundError
from ipy_memory.jscompat.dates import iso
from ipy_memory.paths import exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ipy_memory.clock import Clock

TABLES = (
    "working_memory",
    "episodic_memory",
    "scratchpad",
    "fts_working",
    "fts_episodes",
    "memoria_facts",
    "memoria_timelines",
    "memoria_kg",
    "memoria_instructions",
    "memoria_preferences",
    "consolidation_log",
    "annotations",
    "triples",
)
"""The tables that every bank has, in the order of the diagnostics."""

COUNTED = ("working_memory", "episodic_memory", "scratchpad", "triples", "annotations")
"""The tables whose rows the diagnostics count."""

_SURROUNDINGS = ("runtime", "platform", "embeddings", "language model")
_BEFORE_OPENING = ("path", "folder", "library")

PASSED, FAILED, NEUTRAL = "passed", "failed", "neutral"

_ORPHANS = {
    "facts of forgotten memories": (
        "SELECT count(*) FROM facts WHERE source_msg_id IS NOT NULL AND source_msg_id <> ''"
        " AND source_msg_id NOT IN (SELECT id FROM working_memory)"
        " AND source_msg_id NOT IN (SELECT id FROM episodic_memory)"
    ),
    "vectors of forgotten memories": (
        "SELECT count(*) FROM memory_embeddings WHERE memory_id NOT IN (SELECT id FROM working_memory)"
        " AND memory_id NOT IN (SELECT id FROM episodic_memory)"
    ),
}
_INDEXES = {
    "fts_working": "SELECT (SELECT count(*) FROM fts_working) = (SELECT count(*) FROM working_memory)",
    "fts_episodes": None,
    "fts_facts": None,
}


@dataclass(frozen=True, slots=True)
class BankStats:
    """The counts of one bank; ``last_memory`` is the newest stored time stamp, or ``None``."""

    name: str
    path: Path
    working: int = 0
    episodic: int = 0
    triples: int = 0
    last_memory: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: its name, how it went, and a finding in words where it failed."""

    name: str
    state: str
    finding: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All checks of one bank, and whether SQLite finds the file whole."""

    name: str
    path: Path
    checks: tuple[Check, ...]
    integrity: str

    def count(self, state: str) -> int:
        """Return how many checks went this way."""
        return sum(check.state == state for check in self.checks)


def bank_stats(path: Path, name: str, clock: Clock) -> BankStats:
    """Return the counts of a bank; of one that has no file yet, zeros (no file is made)."""
    try:
        with Bank.open_readonly(path, name, clock=clock) as bank:
            return BankStats(name, path, *_counts(bank))
    except BankNotFoundError:
        return BankStats(name, path)


@within_limits
def _counts(bank: Bank) -> tuple[int, int, int, str | None]:
    with bank.reading() as connection:
        *counts, last = connection.execute(
            "SELECT (SELECT count(*) FROM working_memory), (SELECT count(*) FROM episodic_memory),"
            " (SELECT count(*) FROM triples), (SELECT max(timestamp) FROM working_memory)"
        ).fetchone()
    return counts[0], counts[1], counts[2], as_text(last)


def stats_text(rows: Sequence[BankStats], home: str) -> str:
    """Return the exact stats table."""
    lines = [
        "# Mnemopi Memory Stats",
        "",
        "| Bank | Working | Episodic | Triples | Last memory | Database |",
        "|---|---:|---:|---:|---|---|",
    ]
    lines += [
        f"| {row.name} | {row.working} | {row.episodic} | {row.triples} | {row.last_memory or 'never'} |"
        f" {shown_path(row.path, home)} |"
        for row in rows
    ]
    return "\n".join(lines)


def diagnose_text(diagnoses: Sequence[Diagnosis], home: str) -> str:
    """Return the exact diagnostics table."""
    lines = [
        "# Mnemopi Memory Diagnostics",
        "",
        "| Bank | Passed | Failed | Integrity | Database |",
        "|---|---:|---:|---|---|",
    ]
    lines += [
        f"| {d.name} | {d.count(PASSED)}/{len(d.checks)} | {d.count(FAILED)} | {d.integrity} |"
        f" {shown_path(d.path, home)} |"
        for d in diagnoses
    ]
    findings = [f"- {d.name}: {c.finding}" for d in diagnoses for c in d.checks if c.state == FAILED]
    return "\n".join([*lines, "", "## Key Findings", *(findings or ["- none"])])


def diagnose(path: Path, name: str, clock: Clock, *, missing_is_fresh: bool = False) -> Diagnosis:
    """Look a bank over without changing a byte of it.

    Parameters
    ----------
    path, name
        The bank.
    clock
        For a fresh bank in memory.
    missing_is_fresh
        Whether a bank without a file counts as a fresh bank rather than as an empty database.
    """
    try:
        with _connected(path, name, clock, missing_is_fresh=missing_is_fresh) as connection:
            integrity = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            checks = tuple(_checks(connection))
    except BankError as error:
        # As the real report counts it: what was told and what held before the file was opened.
        before = [Check(name, NEUTRAL) for name in _SURROUNDINGS] + [Check(name, PASSED) for name in _BEFORE_OPENING]
        failed = Check("open", FAILED, f"open_or_inspect: {error.message}")
        return Diagnosis(name, path, (*before, failed), "unknown")
    return Diagnosis(name, path, checks, "OK" if integrity == "ok" else integrity)


@contextmanager
def _connected(path: Path, name: str, clock: Clock, *, missing_is_fresh: bool) -> Iterator[sqlite3.Connection]:
    with bank_errors(path, name):
        connection = connect_readonly(path, name) if exists(path) else empty_connection()
    try:
        with bank_errors(path, name, connection=connection):
            if missing_is_fresh and not exists(path):
                create_schema(connection, iso(clock.now_ms()))
            check_kinds(connection, where_of(path, name))
            yield connection
    finally:
        connection.close()


def _checks(connection: sqlite3.Connection) -> Iterator[Check]:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")}
    # What the surroundings are is told, not judged.
    yield from (Check(name, NEUTRAL) for name in _SURROUNDINGS)
    yield Check("opened", PASSED)
    yield _test("readable", lambda: connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() is not None)
    yield _test("whole", lambda: connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    yield _test("references", lambda: connection.execute("PRAGMA foreign_key_check").fetchone() is None)
    for table in TABLES:
        yield _present(f"table:{table}", table in tables)
    for table in COUNTED:
        yield _present(f"{table}_count", table in tables)
    if tables.issuperset((*TABLES, "facts", "memory_embeddings", "fts_facts")):
        yield from (_index(connection, name, count) for name, count in _INDEXES.items())
        yield from (_orphans(connection, name, query) for name, query in _ORPHANS.items())


def _present(name: str, there: bool) -> Check:
    return Check(name, PASSED) if there else Check(name, FAILED, f"{name} missing")


def _test(name: str, holds: Callable[[], bool], finding: str = "") -> Check:
    try:
        good = holds()
    except sqlite3.DatabaseError as error:
        if was_interrupted(error):
            raise
        return Check(name, FAILED, f"{name}: {error}")
    return Check(name, PASSED) if good else Check(name, FAILED, finding or f"not {name}")


def _index(connection: sqlite3.Connection, name: str, count: str | None) -> Check:
    def holds() -> bool:
        connection.execute(f"SELECT count(*) FROM {name} WHERE {name} MATCH '\"a\"'").fetchone()
        return count is None or bool(connection.execute(count).fetchone()[0])

    return _test(f"index:{name}", holds, f"index:{name} does not match its rows")


def _orphans(connection: sqlite3.Connection, name: str, query: str) -> Check:
    number = connection.execute(query).fetchone()[0]
    return Check(name, PASSED) if not number else Check(name, FAILED, f"{number} {name}")


def homely(text: str, home: str) -> str:
    """Return a text in which every path below the home folder begins with ``~``."""
    at_home = rf"(?<![\w./-]){re.escape(home.rstrip('/'))}(?![\w.-])"
    return re.sub(at_home, "~", text) if len(home) > 1 else text


def shown_path(path: str | os.PathLike[str], home: str) -> str:
    """Return a path as the user reads it: below the home folder with ``~``."""
    shown = os.fspath(path)
    return f"~{shown[len(home) :]}" if home and (shown == home or shown.startswith(home.rstrip("/") + "/")) else shown


_COUNTED_FIELDS = {
    "working": "working_memory",
    "episodic": "episodic_memory",
    "facts": "facts",
    "triples": "triples",
    "vectors": "memory_embeddings",
}
"""What is counted, and in which table."""

_DATED = ("working_memory", "episodic_memory")


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of a bank by kind, the folders they came from, and the newest time stamp."""

    working: int = 0
    episodic: int = 0
    facts: int = 0
    triples: int = 0
    vectors: int = 0
    cwds: tuple[str, ...] = ()
    last_memory: str | None = None


def tally(path: Path, name: str, clock: Clock) -> Tally:
    """Return what a bank file holds; a table that an older bank lacks counts as empty."""
    with Bank.open_readonly(path, name, clock=clock) as bank:
        return _counted(bank)


@within_limits
def _counted(bank: Bank) -> Tally:
    with bank.reading() as connection:
        there = {table for table in _COUNTED_FIELDS.values() if columns(connection, table)}
        counts: dict[str, Any] = {
            field: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] if table in there else 0
            for field, table in _COUNTED_FIELDS.items()
        }
        metadata = names_of(bank, "working_memory")["metadata_json"]
        cwds = connection.execute(
            f"SELECT DISTINCT CASE WHEN json_valid({metadata}) THEN json_extract({metadata}, '$.cwd') END"
            " FROM working_memory"
        ).fetchall()
        newest = [
            as_text(connection.execute(f"SELECT max(timestamp) FROM {table}").fetchone()[0])
            for table in _DATED
            if table in there
        ]
    folders = sorted(cwd for (cwd,) in cwds if isinstance(cwd, str))
    return Tally(**counts, cwds=tuple(folders), last_memory=max(filter(None, newest), default=None))


def size(path: Path) -> int | None:
    """Return how many bytes a bank takes, its -wal file included; ``None`` if there is none."""
    try:
        whole = path.stat().st_size
    except OSError:
        return None
    try:
        return whole + Path(f"{path}-wal").stat().st_size
    except OSError:
        return whole
