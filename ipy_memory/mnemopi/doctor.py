"""Looking a bank over to the last index, and mending it on request. Looking works on a copy and writes nothing."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.errors import BankError, CorruptBankError
from ipy_memory.jsdate import iso
from ipy_memory.mnemopi import removal
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.cells import as_text
from ipy_memory.mnemopi.connection import bank_errors
from ipy_memory.mnemopi.copies import copy_bank
from ipy_memory.mnemopi.schema import FULL_TEXT_TABLES, columns, create_schema
from ipy_memory.mnemopi.vectors import stored_vector

if TYPE_CHECKING:
    from ipy_memory.clock import Clock

FILE, SCHEMA, INDEX, VECTORS, ORPHANS = "file", "schema", "index", "vectors", "orphans"
PARTS = (FILE, SCHEMA, INDEX, VECTORS, ORPHANS)
"""What is looked at."""

REPAIRABLE = frozenset({SCHEMA, INDEX, ORPHANS})
"""What :func:`repair` mends. Vectors are computed anew by a reindex; a damaged file comes back from a copy."""

_FAULTS = 5
_AT_A_TIME = 500
_EMPTY_INDEX = ((1, b""), (10, bytes(7)))
"""The totals and the structure of a full-text index without entries, as SQLite itself writes them."""

_OWN_ROWS = "SELECT id, COALESCE(embed_text, content) FROM working_memory"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: whether it is as it should be, and what was found."""

    part: str
    name: str
    good: bool
    detail: str = ""


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
    def repairable(self) -> tuple[Finding, ...]:
        """What :func:`repair` can mend."""
        if any(fault.part == FILE for fault in self.faults):
            return ()
        return tuple(fault for fault in self.faults if fault.part in REPAIRABLE)


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did: the copy made first (``None``: there was nothing to mend), and how the bank is now."""

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
                (SCHEMA, lambda copy: _schema(copy, iso(clock.now_ms()))),
                (INDEX, _indexes),
                (VECTORS, _vectors),
                (ORPHANS, _orphans),
            ):
                progress(part)
                findings += look(copy)
                if part == FILE and not findings[-1].good:
                    break
    except BankError as error:
        findings.append(Finding(FILE, "opening", False, error.message))
    return Examination(name, path, tuple(findings))


def repair(path: Path, name: str, clock: Clock, copies: Path) -> Repair:
    """Mend what can be mended without losing a memory, after a copy of the bank was made beside it.

    Full-text indexes are built anew from the rows; missing tables, columns, triggers and indexes are added; rows that
    belong to memories which are gone are deleted. Memories themselves are not touched.

    Raises
    ------
    CorruptBankError
        The file itself is damaged or no bank of ours, which only a copy can make good.
    """
    before = examine(path, name, clock)
    if damage := next((fault for fault in before.faults if fault.part == FILE), None):
        raise CorruptBankError(
            f"The file itself cannot be mended: {damage.detail.rstrip('.')}.",
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
                _rebuild(connection, index, iso(clock.now_ms()))
                done.append(f"built {index} anew")
            for table, number in removal.delete_orphans(connection).items():
                done.append(f"deleted {number} rows of {table} whose memory is gone")
    return Repair(before, examine(path, name, clock), copy, tuple(done))


@contextmanager
def _copied(bank: Bank) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect("", isolation_level=None)) as copy:
        copy.text_factory = as_text
        with bank.reading() as connection:
            connection.backup(copy)
        with bank_errors(bank.path, bank.name):
            copy.execute("PRAGMA trusted_schema = OFF")
            yield copy


def _file(copy: sqlite3.Connection) -> list[Finding]:
    try:
        found = [str(row[0]) for row in copy.execute(f"PRAGMA integrity_check({_FAULTS})")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    # Newer releases of SQLite look into full-text indexes here as well; those are looked at below.
    faults = [line for line in found if line != "ok" and "fts_" not in line and "inverted index" not in line]
    return [Finding(FILE, "integrity", not faults, "; ".join(faults))]


def _schema(copy: sqlite3.Connection, now: str) -> list[Finding]:
    """Say what creating the schema would add; the copy has it all afterwards."""
    before = _parts(copy)
    try:
        create_schema(copy, now)
    except sqlite3.DatabaseError as error:
        return [Finding(SCHEMA, "schema", False, str(error))]
    missing = sorted(_parts(copy) - before)
    return [Finding(SCHEMA, name, False, f"{name} is missing or of an older form") for name in missing] or [
        Finding(SCHEMA, "schema", True)
    ]


def _parts(copy: sqlite3.Connection) -> set[str]:
    found = copy.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall()
    parts = {f"trigger {name}: {sql}" if kind == "trigger" else f"{kind} {name}" for kind, name, sql in found}
    tables = [name for kind, name, _ in found if kind == "table" and not name.startswith("fts_")]
    return parts | {f"column {table}.{column}" for table in tables for column in columns(copy, table)}


def _indexes(copy: sqlite3.Connection) -> Iterator[Finding]:
    for name in FULL_TEXT_TABLES:
        try:
            copy.execute(f"INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)")
            detail = _own_rows(copy) if name == "fts_working" else ""
        except sqlite3.DatabaseError as error:
            detail = f"the full-text index is damaged: {error}"
        yield Finding(INDEX, name, not detail, detail)


def _own_rows(copy: sqlite3.Connection) -> str:
    """Say how the index over working memories, which keeps its own texts, differs from the rows."""
    indexed = Counter(copy.execute("SELECT id, content FROM fts_working"))
    stored = Counter(copy.execute(_OWN_ROWS))
    missing, surplus = (stored - indexed).total(), (indexed - stored).total()
    said = [(missing, "memories are not in it as they are stored"), (surplus, "entries belong to no memory of now")]
    return ", ".join(f"{number} {words}" for number, words in said if number)


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
    found = {table: number for table, number in removal.orphans(copy).items() if number}
    return [
        Finding(ORPHANS, table, False, f"{number} rows belong to memories that are gone")
        for table, number in found.items()
    ] or [Finding(ORPHANS, "rows without a memory", True)]


def _rebuild(connection: sqlite3.Connection, index: str, now: str) -> None:
    try:
        connection.execute(f"DROP TABLE IF EXISTS {index}")
    except sqlite3.DatabaseError:
        # An index without its own inner records can be neither opened nor dropped: give it those of an empty one.
        connection.executemany(f"INSERT OR REPLACE INTO {index}_data (id, block) VALUES (?, ?)", _EMPTY_INDEX)
        connection.execute(f"DROP TABLE {index}")
    create_schema(connection, now)
    if index == "fts_working":
        connection.execute(f"INSERT INTO fts_working (id, content) {_OWN_ROWS} ORDER BY rowid")
    else:
        connection.execute(f"INSERT INTO {index}({index}) VALUES ('rebuild')")
