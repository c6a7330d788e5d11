"""Looking a bank over to the last index, and repairing it on request. Looking works on a copy and writes nothing."""

from __future__ import annotations

import re
import sqlite3
import stat
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db import triggers
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.connection import (
    STEPS_BETWEEN_CHECKS,
    bank_errors,
    empty_connection,
    was_interrupted,
)
from ipy_memory.backends.mnemopi.db.copies import copy_bank
from ipy_memory.backends.mnemopi.db.schema import (
    FULL_TEXT_TABLES,
    REPLACED_TRIGGERS,
    TABLES,
    columns,
    create_schema,
    is_own_index,
    quoted,
)
from ipy_memory.backends.mnemopi.db.triggers import foreign_triggers, set_aside
from ipy_memory.backends.mnemopi.recall.similarity import stored_vector
from ipy_memory.backends.mnemopi.store import delete
from ipy_memory.errors import BankError, CorruptBankError
from ipy_memory.jscompat.dates import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.triggers import Trigger
    from ipy_memory.clock import Clock

FILE, SCHEMA, INDEX, VECTORS, ORPHANS = "file", "schema", "index", "vectors", "orphans"
PERMISSIONS = "permissions"
PARTS = (FILE, SCHEMA, INDEX, VECTORS, ORPHANS)
"""What is looked at."""

REPAIRABLE = frozenset({SCHEMA, INDEX, ORPHANS})
"""What :func:`repair` repairs. Vectors are computed again by a reindex; a damaged file comes back from a copy."""

_FAULTS = 5
_AT_A_TIME = 500
_CONDITIONS = re.compile(r"\b(?:CHECK|ON\s+CONFLICT|GENERATED|FOREIGN\s+KEY|REFERENCES)\b|\bAS\s*\(", re.IGNORECASE)
"""What no table of the schema has in its definition."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: whether it is as it should be, and what was found."""

    part: str
    name: str
    good: bool
    detail: str = ""
    repairable: bool = True


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found in one bank."""

    name: str
    path: Path
    findings: tuple[Finding, ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What is not as it should be."""
        return tuple(finding for finding in self.findings if not finding.good)

    @property
    def readable_by_others(self) -> tuple[Finding, ...]:
        """What there is to say of the file's permissions, if other users can read it."""
        return tuple(finding for finding in self.findings if finding.name == PERMISSIONS)

    @property
    def repairable(self) -> tuple[Finding, ...]:
        """What :func:`repair` can repair."""
        if any(fault.part == FILE for fault in self.faults):
            return ()
        return tuple(fault for fault in self.faults if fault.part in REPAIRABLE and fault.repairable)


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did: the copy made first (``None``: there was nothing to repair), and how the bank is now."""

    before: Examination
    after: Examination
    backup: Path | None = None
    done: tuple[str, ...] = field(default=())


def examine(path: Path, name: str, clock: Clock, progress: Callable[[str], object] = lambda _: None) -> Examination:
    """Look a bank over: file, schema, the three full-text indexes, vectors, orphans.

    Nothing is opened for writing: the checks that have to write run on a copy that only this process sees.

    Parameters
    ----------
    path, name
        The bank.
    clock
        For tables that an older bank lacks.
    progress
        Told the name of each part before it is looked at.
    """
    findings: list[Finding] = []
    try:
        with Bank.open_readonly(path, name, clock=clock) as bank, _copied(bank) as copy:
            for part, look in (
                (FILE, _file),
                (SCHEMA, lambda copy: _schema(copy, iso(clock.now_ms()), bank.where)),
                (INDEX, _indexes),
                (VECTORS, _vectors),
                (ORPHANS, _orphans),
            ):
                progress(part)
                findings += look(copy)
                if part == FILE and not findings[-1].good:
                    break
                if part == FILE and (others := _seen_by_others(path)):
                    findings.append(Finding(FILE, PERMISSIONS, True, others))
    except BankError as error:
        findings.append(Finding(FILE, "opening", False, error.message))
    return Examination(name, path, tuple(findings))


def repair(path: Path, name: str, clock: Clock, copies: Path) -> Repair:
    """Repair what can be repaired without losing a memory, after a copy of the bank was made beside it.

    Full-text indexes are built again from the rows; missing tables, columns, triggers and indexes are added; rows that
    belong to memories which are gone are deleted. Memories themselves are not touched.

    Raises
    ------
    CorruptBankError
        The file itself is damaged or no bank of ours, which only a copy can make good.
    """
    before = examine(path, name, clock)
    if damage := next((fault for fault in before.faults if fault.part == FILE), None):
        raise CorruptBankError(
            f"The file itself cannot be repaired: {damage.detail.rstrip('.')}.",
            where=f"bank {name}, {path}",
            hint="It was not touched; put a copy in its place, or see what the file is.",
        )
    if not before.repairable:
        return Repair(before, before)
    with Bank.open_readonly(path, name, clock=clock) as bank:
        copy = copy_bank(bank, copies)
    broken = [fault.name for fault in before.repairable if fault.part == INDEX]
    done = []
    with Bank.open(path, name, clock=clock, create=False) as bank:  # opening adds what the schema lacks
        done += [f"added {fault.name}" for fault in before.repairable if fault.part == SCHEMA]
        with bank.transaction() as connection:
            for index in broken:
                triggers.rebuild(connection, index, iso(clock.now_ms()))
                done.append(f"rebuilt {index}")
            for table, number in delete.delete_orphans(connection).items():
                done.append(f"deleted {number} rows of {table} whose memory is gone")
    return Repair(before, examine(path, name, clock), copy, tuple(done))


@contextmanager
def _copied(bank: Bank) -> Iterator[sqlite3.Connection]:
    with closing(empty_connection()) as copy:
        copy.set_progress_handler(lambda: 0, STEPS_BETWEEN_CHECKS)  # so that Ctrl-C ends a statement
        with bank.snapshot() as connection:
            connection.backup(copy)
        with bank_errors(bank.path, bank.name):
            copy.execute("PRAGMA trusted_schema = OFF")
            yield copy


def _seen_by_others(path: Path) -> str:
    mode = stat.S_IMODE(path.stat().st_mode)
    if not mode & 0o077:
        return ""
    return f"other users of this machine can read it (mode {mode:04o}); to change that: chmod 600 {path.name}"


def _file(copy: sqlite3.Connection) -> list[Finding]:
    try:
        found = [str(row[0]) for row in copy.execute(f"PRAGMA integrity_check({_FAULTS})")]
    except sqlite3.DatabaseError as error:
        if was_interrupted(error):
            raise
        found = [str(error)]
    # Newer releases of SQLite look into full-text indexes here as well; those are looked at below.
    faults = [line for line in found if line != "ok" and "fts_" not in line and "inverted index" not in line]
    return [Finding(FILE, "integrity", not faults, "; ".join(faults))]


def _schema(copy: sqlite3.Connection, now: str, where: str) -> Iterator[Finding]:
    """Say what creating the schema would add, and what does not belong to it; the copy has only the schema's after."""
    foreign = [trigger for trigger in foreign_triggers(copy) if trigger.name not in REPLACED_TRIGGERS]
    before = _parts(copy)
    try:
        set_aside(copy, where)
        create_schema(copy, now)
    except (sqlite3.DatabaseError, BankError) as error:
        if isinstance(error, sqlite3.Error) and was_interrupted(error):
            raise
        yield Finding(SCHEMA, "schema", False, str(error), repairable=False)
        return
    names = {trigger.name for trigger in foreign}
    missing = sorted(part for part in _parts(copy) - before if part.split(" ")[1].rstrip(":") not in names)
    yield from (Finding(SCHEMA, name, False, f"{name} is missing or of an older form") for name in missing)
    yield from (_foreign(trigger) for trigger in foreign)
    yield from _odd_tables(copy)
    if not missing and not foreign:
        yield Finding(SCHEMA, "schema", True)


def _foreign(trigger: Trigger) -> Finding:
    return Finding(
        SCHEMA,
        f"trigger {trigger.name}",
        False,
        f"a trigger on {trigger.table} that does not belong to the bank: it never runs from here, but runs when another"
        f" program writes; to remove it: DROP TRIGGER {quoted(trigger.name)}",
        repairable=False,
    )


def _odd_tables(copy: sqlite3.Connection) -> Iterator[Finding]:
    """Name what else a file has that can keep memories out, and what nothing here can open."""
    for name, table in copy.execute("SELECT name, lower(tbl_name) FROM sqlite_master WHERE type = 'index'").fetchall():
        if table in TABLES and not is_own_index(name) and _is_unique(copy, table, name):
            detail = f"a unique index on {table} that does not belong to the bank: it keeps some memories out"
            yield Finding(SCHEMA, f"index {name}", False, detail, repairable=False)
    for name, sql in copy.execute("SELECT lower(name), sql FROM sqlite_master WHERE type = 'table'").fetchall():
        if name in TABLES and (found := _CONDITIONS.search(sql)):
            detail = f"the table has a condition of its own ({found[0].upper()}), which may keep memories out"
            yield Finding(SCHEMA, f"table {name}", False, detail, repairable=False)
    for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0").fetchall():
        if name.lower() in FULL_TEXT_TABLES:
            continue
        try:
            columns(copy, name)
        except sqlite3.DatabaseError as error:
            if was_interrupted(error):
                raise
            yield Finding(SCHEMA, f"table {name}", True, f"of another program, left alone: {error}")


def _is_unique(copy: sqlite3.Connection, table: str, index: str) -> bool:
    found = copy.execute("SELECT name, \"unique\" FROM pragma_index_list(?) WHERE origin = 'c'", (table,))
    return (index, 1) in found.fetchall()


def _parts(copy: sqlite3.Connection) -> set[str]:
    found = copy.execute(
        "SELECT type, name, sql, rootpage FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    parts = {f"trigger {name}: {sql}" if kind == "trigger" else f"{kind} {name}" for kind, name, sql, _ in found}
    tables = [name for kind, name, _, page in found if kind == "table" and page and not name.startswith("fts_")]
    return parts | {f"column {table}.{column}" for table in tables for column in columns(copy, table)}


def _indexes(copy: sqlite3.Connection) -> Iterator[Finding]:
    for name in FULL_TEXT_TABLES:
        detail = triggers.fault(copy, name)
        yield Finding(INDEX, name, not detail, detail)


def _vectors(copy: sqlite3.Connection) -> list[Finding]:
    unreadable, sizes = 0, Counter[tuple[str, int]]()
    stored = copy.execute("SELECT embedding_json, model FROM memory_embeddings")
    # Some at a time: with a row between each two vectors, no other thread would get a turn.
    while rows := stored.fetchmany(_AT_A_TIME):
        for text, model in rows:
            vector = stored_vector(text)
            if vector is None:
                unreadable += 1
            else:
                sizes[str(model or "unknown"), len(vector)] += 1
    uneven = [model for model, number in Counter(model for model, _ in sizes).items() if number > 1]
    told = ", ".join(f"{count} of {model} with {length} numbers" for (model, length), count in sorted(sizes.items()))
    found = [Finding(VECTORS, "readable", not unreadable, f"{unreadable} cannot be read" if unreadable else told)]
    if uneven:
        found.append(Finding(VECTORS, "one length a model", False, told))
    return found


def _orphans(copy: sqlite3.Connection) -> Sequence[Finding]:
    found = {table: number for table, number in delete.orphans(copy).items() if number}
    return [
        Finding(ORPHANS, table, False, f"{number} rows belong to memories that are gone")
        for table, number in found.items()
    ] or [Finding(ORPHANS, "rows without a memory", True)]
