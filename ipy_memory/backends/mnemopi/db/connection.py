"""A SQLite connection to a bank's file, and the border where SQLite's errors become ours."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakSet

from ipy_memory import process
from ipy_memory.errors import (
    ASK_AGAIN,
    BankError,
    BankNotFoundError,
    BusyBankError,
    CorruptBankError,
    DiskFullError,
    MissingFeatureError,
    NotABankError,
    ReadOnlyBankError,
    RecallCancelled,
)
from ipy_memory.sqlite_files import unsafe_neighbour

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

BUSY_MS = 5000
_BUSY_STEP_MS = 100
"""SQLite waits this long for another writer at a stretch: only between two such waits can Ctrl-C end the waiting."""

STEPS_BETWEEN_CHECKS = 20_000
"""How many of SQLite's own steps pass before it is asked whether to go on."""

READ_SECONDS = 60.0
"""One statement that reads may take this long."""

VALUE_BYTES = 16 << 20
"""No statement that reads takes a longer value: one of 200 MB would cost a minute and gigabytes."""

_LONGEST = 1_000_000_000
"""SQLite's own limit for one value."""

_CACHE_KIB = 16 * 1024
"""SQLite's own 2 MiB make a large transaction, or a search of a large bank, read the same pages again and again."""

FROZEN = "ro&immutable=1"
"""How to open a file that nobody can write beside: as it lies, without any file beside it."""

_WORTH_WAITING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY}
_TEXT = partial(str, encoding="utf-8", errors="replace")


class Connection(sqlite3.Connection):
    """A connection that can end what it has begun to read, and whose reading is bounded in time and size.

    A statement whose reader was interrupted stays open as long as somebody keeps the traceback; it would hold the
    file as it was, against every later look at it. ``late`` says that a statement was stopped because it took too
    long; whoever reads next resets it.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()
        self.file: tuple[int, int] | None = None
        self.late = False
        self._began = 0.0
        self._bounded = False
        _OPEN.connections.add(self)

    def execute(self, *given: Any) -> sqlite3.Cursor:
        """Carry out a statement, and remember its cursor while it lives."""
        cursor = self.cursor()
        self._cursors.add(cursor)
        self._began = time.monotonic()
        return cursor.execute(*given)

    def bound(self, on: bool = True) -> None:
        """Bound what the next statements read, or let them take what they need, as a write must."""
        self._bounded = on
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES if on else _LONGEST)

    @contextmanager
    def unbounded(self) -> Iterator[None]:
        """Let the statements of a block take what they need."""
        before = self._bounded
        self.bound(False)
        try:
            yield
        finally:
            self.bound(before)

    def is_late(self) -> bool:
        """Return whether the statement at work has had its time; for SQLite's progress handler."""
        over = self._bounded and time.monotonic() - self._began > READ_SECONDS
        self.late = self.late or over
        return over

    def begin(self, patience_ms: int = BUSY_MS) -> None:
        """Begin to write, once whoever else writes is done; give up after ``patience_ms``."""
        end = time.monotonic() + patience_ms / 1000
        self.execute(f"PRAGMA busy_timeout = {min(_BUSY_STEP_MS, patience_ms)}")
        try:
            while True:
                try:
                    self.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode not in _WORTH_WAITING or time.monotonic() >= end:
                        raise
                else:
                    return
        finally:
            self.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    def end_reading(self) -> None:
        """Close every cursor there is."""
        for cursor in list(self._cursors):
            cursor.close()
        self._cursors.clear()

    def close(self) -> None:
        """Close the connection; harmless when repeated."""
        super().close()
        _OPEN.connections.discard(self)


class _OpenConnections:
    """The connections of this process, and those that a fork copied while they were in use.

    SQLite takes the locks of such a copy for this process's own. So neither is the copy used or closed, nor its file
    opened again in this process: what is written beside it could be lost.
    """

    def __init__(self) -> None:
        self.connections: WeakSet[Connection] = WeakSet()
        self._left: list[Connection] = []
        process.after_fork_in_child(self._leave_all)

    def check(self, path: Path) -> None:
        """Raise if a file cannot be opened in this forked process."""
        if self._left and file_of(path) in [connection.file for connection in self._left]:
            raise BankError(
                "The bank was in use by another thread when this process was forked from it.",
                where=str(path),
                hint="fork while no memory call is running, or start processes by spawn",
            )

    def _leave_all(self) -> None:
        import ctypes

        for connection in self.connections:
            self._left.append(connection)
            # Not even the end of the process may close it: that could undo what the parent is writing.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self.connections = WeakSet()


_OPEN = _OpenConnections()


def file_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from every other: device and number; ``None`` where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def bank_errors(
    path: str | Path,
    name: str,
    cancel: threading.Event | None = None,
    connection: Connection | None = None,
) -> Iterator[None]:
    """Turn SQLite's errors into ours, with the file they happened to and what to do.

    The message stays SQLite's own. An interrupted statement took too long on its connection, or was cancelled
    by a token; otherwise it was Ctrl-C.
    """
    where = where_of(Path(path), name)
    try:
        yield
    except sqlite3.Error as error:
        if connection is not None and connection.late:
            raise _too_slow(where) from error
        raise _translated(error, where, cancel) from error
    except (UnicodeError, OverflowError) as error:
        # The sqlite3 module itself fails on a name that is not valid text, and on a number that is too large.
        raise CorruptBankError(
            f"The bank holds what cannot be read: {_reason(error)}.",
            where=where,
            hint="The file was not touched; %memory doctor looks it over.",
        ) from error


def was_interrupted(error: sqlite3.Error) -> bool:
    """Return whether a statement was stopped from outside; that says nothing about the file."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # Our own functions raise nothing: when one did, Ctrl-C fell into it.
    return code == sqlite3.SQLITE_INTERRUPT or "user-defined function raised exception" in str(error)


def _too_slow(where: str) -> BankError:
    return BankError(
        f"Reading took longer than {READ_SECONDS:.0f} seconds and was stopped.",
        where=where,
        hint="Nothing was changed; %memory doctor looks the bank over.",
    )


def _reason(error: Exception) -> str:
    return "a name that is not valid UTF-8" if isinstance(error, UnicodeError) else "a number that is too large"


def is_oversized(error: BankError) -> bool:
    """Return whether a statement failed because it came upon a value that is too large to be read."""
    code: int = getattr(error.__cause__, "sqlite_errorcode", 0)
    return code == sqlite3.SQLITE_TOOBIG


_BY_CODE: dict[int, tuple[type[BankError], str]] = {
    sqlite3.SQLITE_CORRUPT: (CorruptBankError, "Restore the file from a copy; it was not touched."),
    sqlite3.SQLITE_NOTADB: (NotABankError, "Check the path of the bank; the file was not touched."),
    sqlite3.SQLITE_BUSY: (BusyBankError, "Another process is writing; try again when it is done."),
    sqlite3.SQLITE_LOCKED: (BusyBankError, "Another process is writing; try again when it is done."),
    sqlite3.SQLITE_READONLY: (ReadOnlyBankError, "Check the rights of the file and of its folder."),
    sqlite3.SQLITE_PERM: (ReadOnlyBankError, "Check the rights of the file and of its folder."),
    sqlite3.SQLITE_FULL: (DiskFullError, "Make room on the disk; what was stored before is untouched."),
    sqlite3.SQLITE_CANTOPEN: (BankError, "Check that the file exists and that its folder can be used."),
    sqlite3.SQLITE_IOERR: (BankError, "The disk failed to read or write; check it and its free space."),
    sqlite3.SQLITE_TOOBIG: (BankError, f"A value is larger than {VALUE_BYTES >> 20} MiB; nothing was changed."),
}


def _translated(error: sqlite3.Error, where: str, cancel: threading.Event | None) -> BaseException:
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    message = str(error)
    if was_interrupted(error):
        if cancel is not None and cancel.is_set():
            return RecallCancelled("The recall was cancelled.", where=where, hint=ASK_AGAIN)
        return KeyboardInterrupt()
    if "no such module: fts5" in message:
        return MissingFeatureError(message, where=where, hint="Use a Python whose SQLite has FTS5.")
    if extended == sqlite3.SQLITE_CORRUPT_VTAB:
        hint = "A full-text index is damaged; no memories are lost. To repair it: %memory doctor --repair"
        return CorruptBankError(message, where=where, hint=hint)
    if extended in {sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY}:
        return ReadOnlyBankError(
            "A program ended in the middle of a write, which only a writer can undo: its journal lies beside the bank.",
            where=where,
            hint="Retain something in this bank, or let the agent open it; both undo that write.",
        )
    if extended == sqlite3.SQLITE_READONLY_DBMOVED:
        hint = "Try again; nothing was written."
        return BankError("The bank's file was deleted or replaced meanwhile.", where=where, hint=hint)
    kind, hint = _BY_CODE.get(code, (BankError, "Look at the bank with %memory doctor."))
    return kind(message, where=where, hint=hint)


def check_file(path: Path, name: str) -> None:
    """Raise the error that says why a path is not a file to open, if it is none."""
    where = where_of(path, name)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    except NotADirectoryError:
        error = cannot_open(path, name, "a folder of its path is a file")
        error.hint = "Move that file away, or choose another database."
        raise error from None
    except OSError as error:
        raise cannot_open(path, name, error.strerror) from None
    if mode is None:
        raise BankNotFoundError("There is no such bank file.", where=where, hint="Check the bank's name or path.")
    if S_ISDIR(mode):
        raise NotABankError("This is a folder, not a bank file.", where=where, hint="Name the file in it.")
    if not S_ISREG(mode):
        raise NotABankError("This is a device, not a bank file.", where=where, hint="Name a file.")
    if not os.access(path, os.R_OK):
        raise cannot_open(path, name, "Permission denied")


def cannot_open(path: Path, name: str, reason: str | None) -> BankError:
    """Return the error for what the operating system refused."""
    return BankError(
        f"The bank cannot be opened: {reason or 'unknown reason'}.",
        where=where_of(path, name),
        hint="Check the rights of the file and of its folder.",
    )


def connect_readonly(path: Path, name: str) -> Connection:
    """Connect to an existing file, a bank or not; no byte of it is changed, and Ctrl-C ends each statement."""
    check_file(path, name)
    connection = connect(path, reading_mode(path))
    connection.set_progress_handler(connection.is_late, STEPS_BETWEEN_CHECKS)
    return connection


def empty_connection() -> Connection:
    """Connect to an empty database that only this connection sees."""
    connection = sqlite3.connect("", isolation_level=None, factory=Connection)
    connection.text_factory = _TEXT
    return connection


def reading_mode(path: Path) -> str:
    """Return how to open a file without changing it: one that nobody can write beside is taken as it lies."""
    return FROZEN if _is_frozen(path) else "ro"


def connect(path: Path, mode: str) -> Connection:
    """Connect to a file in a mode of SQLite's addresses (``rwc``, ``rw`` or that of :func:`reading_mode`).

    Raises
    ------
    BankError
        What lies beside the file would lead SQLite to other files.
    """
    _OPEN.check(path)
    if mode != FROZEN:
        _check_neighbours(path)
    address = f"file:{quote(os.fspath(path.absolute()), errors='surrogateescape')}?mode={mode}"
    connection = sqlite3.connect(
        address,
        uri=True,
        isolation_level=None,
        timeout=BUSY_MS / 1000,
        check_same_thread=False,
        cached_statements=256,
        factory=Connection,
    )
    connection.text_factory = _TEXT
    connection.file = file_of(path)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.bound()
        if mode.startswith("ro"):  # when writing, SQLite before 3.41 needs it on for full-text tables in triggers
            connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_neighbours(path: Path) -> None:
    if found := unsafe_neighbour(path):
        raise BankError(
            f"{found.path.name}, which SQLite uses beside the bank, {found.problem}.",
            where=str(path),
            hint="nothing was opened or changed; remove it, unless you know what it is",
        )


def _is_frozen(path: Path) -> bool:
    return not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()


def where_of(path: Path, name: str) -> str:
    """Return a bank and its file, for messages."""
    return f"bank {name}, {path}"
