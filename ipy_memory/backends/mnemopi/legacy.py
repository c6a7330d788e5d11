"""Banks of the same directory under an older name: found by what their rows say, read only.

A bank belongs to a directory when every one of its rows does. Looking changes no byte of a bank; SQLite's own
``-wal`` and ``-shm`` files may appear beside one that is in WAL mode.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from ipy_memory.errors import BankNameError
from ipy_memory.jscompat.strings import well_formed
from ipy_memory.scoping.modes import BANK_FILE, bank_path, banks_folder
from ipy_memory.scoping.project import resolve_path
from ipy_memory.sqlite_files import unsafe_neighbour

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

log = logging.getLogger(__name__)

LEGACY_BANK_SCAN_LIMIT = 64
"""How many candidate directories are looked into."""

_WAIT_SECONDS = 0.2
_STEPS_PER_CHECK = 20_000
_CHECKS_PER_BANK = 2_000
_VALUE_LIMIT = 64 << 20
_COUNTS = """
SELECT count(*), coalesce(sum(cwd = ?), 0)
FROM (SELECT json_extract(metadata_json, '$.cwd') AS cwd FROM working_memory)
"""
_REASONS = {
    sqlite3.SQLITE_BUSY: "held by another process",
    sqlite3.SQLITE_LOCKED: "held by another process",
    sqlite3.SQLITE_NOTADB: "not a SQLite database",
    sqlite3.SQLITE_CORRUPT: "damaged database",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened for reading",
    sqlite3.SQLITE_PERM: "cannot be opened for reading",
    sqlite3.SQLITE_READONLY: "needs recovery, which only a writer may do",
    sqlite3.SQLITE_TOOBIG: "oversized values",
    sqlite3.SQLITE_INTERRUPT: "takes too long to read",
}


@dataclass(frozen=True, slots=True)
class LegacyVerdict:
    """One candidate directory, and why it joins the banks that are read or does not.

    ``path`` is the bank's file. ``by_path`` marks a rescued one that its name does not lead to: no bank can have
    the name, or the file is a link. It is read by its path.
    """

    name: str
    path: Path
    rescued: bool
    reason: str
    by_path: bool = False


def legacy_banks(db_path: str | Path, cwd: str, known: Collection[str]) -> list[LegacyVerdict]:
    """Return the verdict on every candidate beside the banks in ``known``, in directory order.

    Parameters
    ----------
    db_path
        The configured database; its folder holds ``banks``.
    cwd
        The session's directory.
    known
        Names already in the recall set: no candidates, and not counted against the limit.
    """
    folder, looked_at = banks_folder(db_path), 0
    owner = well_formed(resolve_path(cwd))
    verdicts = []
    for name, is_link in _directories(folder):
        if name in known:
            continue
        path = folder / name / BANK_FILE
        if is_link:
            verdict = _verdict(path, "symbolic link")
        elif looked_at == LEGACY_BANK_SCAN_LIMIT:
            verdict = _verdict(path, f"not looked at: only the first {LEGACY_BANK_SCAN_LIMIT} folders are")
        else:
            looked_at += 1
            verdict = _probe(path, owner)
        log.debug("legacy bank %r: %s", verdict.name, verdict.reason)
        verdicts.append(verdict)
    return verdicts


def _directories(folder: Path) -> list[tuple[str, bool]]:
    """Return the names of directories in directory order, and whether each is a symbolic link to one."""
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_symlink()) for entry in entries if _is_directory(entry)]
    except OSError as error:
        log.debug("legacy banks: %s", error.strerror)
        return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _verdict(path: Path, reason: str, *, rescued: bool = False, by_path: bool = False) -> LegacyVerdict:
    return LegacyVerdict(well_formed(path.parent.name), path, rescued, reason, by_path)


def _probe(path: Path, owner: str) -> LegacyVerdict:
    try:
        status = path.stat()
    except FileNotFoundError:
        return _verdict(path, "no database")
    except OSError:
        return _verdict(path, "cannot be opened for reading")
    if not stat.S_ISREG(status.st_mode):
        return _verdict(path, "not a regular file")
    if not status.st_size:
        return _verdict(path, "empty file")
    if found := unsafe_neighbour(path):
        return _verdict(path, f"{found.path.name} beside it {found.problem}")
    try:
        rows, owned = _count(path, owner)
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        return _verdict(path, _reason(error))
    if not rows:
        return _verdict(path, "no rows")
    if owned < rows:
        return _verdict(path, f"{rows - owned} of {rows} rows come from another directory or name none")
    reason = f"all rows ({rows}) come from this directory"
    if by_path := not _is_named(path):
        reason += "; read by its path, since no bank can have this name or place"
    return _verdict(path, reason, rescued=True, by_path=by_path)


def _is_named(path: Path) -> bool:
    """Return whether the bank's name leads to its file."""
    try:
        return bank_path(path.parents[2] / BANK_FILE, path.parent.name) == path
    except BankNameError:
        return False


def _count(path: Path, owner: str) -> tuple[int, int]:
    """Return how many rows a bank has, and how many of them come from a directory."""
    # An absolute path with each byte quoted: no part of a hostile name is taken for a parameter of the address.
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
        patience = _Patience()
        connection.set_progress_handler(patience.is_over, _STEPS_PER_CHECK)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_LIMIT)
        try:
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "query_only=ON", "mmap_size=0"):
                connection.execute(f"PRAGMA {pragma}")
            rows, owned = connection.execute(_COUNTS, (owner,)).fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT and not patience.spent:
                raise KeyboardInterrupt from error
            raise
        return int(rows), int(owned)


class _Patience:
    """Ends a statement that takes too long; a Ctrl-C that arrives meanwhile ends it too."""

    def __init__(self) -> None:
        self.spent = False
        self._left = _CHECKS_PER_BANK

    def is_over(self) -> bool:
        """Return whether to stop now (SQLite asks every so many steps)."""
        self._left -= 1
        self.spent = self._left <= 0
        return self.spent


def _reason(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _REASONS:
        return _REASONS[code]
    text = str(error)
    if text.startswith("no such"):
        return "no memories: the table working_memory or its metadata is missing"
    return "metadata that is not JSON" if "JSON" in text else "cannot be read"
