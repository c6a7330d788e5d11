"""One open bank: its connection, transactions, and what is remembered of it while it is open."""

from __future__ import annotations

import functools
import logging
import os
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from ipy_memory import own_files
from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.db.connection import (
    BUSY_MS,
    STEPS_BETWEEN_CHECKS,
    Connection,
    bank_errors,
    cannot_open,
    check_file,
    connect,
    is_oversized,
    reading_mode,
    where_of,
)
from ipy_memory.backends.mnemopi.db.schema import check_kinds, check_schema, create_schema, is_blank
from ipy_memory.backends.mnemopi.db.stand_ins import add_missing, cut_large, drop_cut, drop_missing
from ipy_memory.backends.mnemopi.db.triggers import foreign_triggers, put_back, set_aside
from ipy_memory.clock import ProcessIds
from ipy_memory.errors import (
    ASK_AGAIN,
    BankError,
    BankNotFoundError,
    MemoryToolkitError,
    ReadOnlyBankError,
    RecallCancelled,
)
from ipy_memory.jscompat.dates import iso
from ipy_memory.paths import exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ipy_memory.backends.mnemopi.db.triggers import Trigger
    from ipy_memory.clock import Clock, IdSource
    from ipy_memory.model import Embedder

_log = logging.getLogger("ipy_memory.backends.mnemopi")

COUNT_PATIENCE_MS = 50
"""Recall counters wait this long for another writer; they can be written later."""

Counts = Mapping[tuple[str, str], int]
"""How often which memory, by tier and id."""

AUTHOR_ID = "coding-agent"
AUTHOR_TYPE = "agent"
"""Who writes: every row of ours carries this author."""


_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def within_limits(
    work: Callable[Concatenate[Bank, _Given], _Found],
) -> Callable[Concatenate[Bank, _Given], _Found]:
    """Let a function that reads a bank come upon cells that are too large: it then reads their beginning only."""

    @functools.wraps(work)
    def call(bank: Bank, /, *given: _Given.args, **named: _Given.kwargs) -> _Found:
        bank.forget_large_cells()
        try:
            return work(bank, *given, **named)
        except BankError as error:
            if not is_oversized(error):
                raise
        bank.cut_large_cells()
        return work(bank, *given, **named)

    return call


@dataclass(frozen=True, slots=True)
class Pending:
    """One piece of work that waits: embed a text of a memory, or extract facts from it."""

    kind: Literal["embed", "extract"]
    memory_id: str
    text: str


class Bank:
    """One open bank file (make it with :meth:`open`, :meth:`open_readonly` or :meth:`open_for_recall`).

    The session id and the channel id of its rows are the bank's name. ``generation`` changes whenever the file
    may have changed, so that what is computed from it can be kept.
    """

    def __init__(
        self,
        connection: Connection,
        path: Path,
        name: str,
        *,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        embedder: Embedder | None = None,
        completion: Callable[[str], str | None] | None = None,
        patience_ms: int = BUSY_MS,
        writable: bool,
    ) -> None:
        self.connection = connection
        self.path = path
        self.name = name
        self.clock = clock
        self.ids = ids
        self.config = config
        self.embedder = embedder
        self.completion = completion
        self.writable = writable
        self.cancel: threading.Event | None = None
        self.memo: dict[str, Any] = {}
        self.pending: list[Pending] = []
        self.uncounted: list[tuple[str, Counts]] = []
        self.patience_ms = patience_ms
        self._depth = 0
        self._borders = 0
        self._user = 0
        self._ended: Exception | None = None
        self.taken_back = 0
        self._counted = 0
        self._schema: tuple[int, bool] | None = None
        self._missing: tuple[str, ...] = ()
        self.large: dict[str, int] = {}
        self._is_cut = False
        self._closed = False
        connection.set_progress_handler(self._stop, STEPS_BETWEEN_CHECKS)

    @classmethod
    def open(
        cls,
        path: str | Path,
        name: str,
        *,
        clock: Clock,
        ids: IdSource | None = None,
        config: EngineConfig | None = None,
        embedder: Embedder | None = None,
        completion: Callable[[str], str | None] | None = None,
        patience_ms: int = BUSY_MS,
        create: bool = True,
    ) -> Self:
        """Open a bank for reading and writing, and create what it lacks.

        Parameters
        ----------
        path
            The file; its folder is made if ``create``. What is made is readable by the user alone.
        name
            The bank's name.
        clock, ids
            Time, and where ids of new rows come from.
        config
            The engine's numbers and switches; those of the real system by default.
        embedder, completion
            What computes vectors and reads facts, where anything does.
        patience_ms
            How long a write waits for another writer.
        create
            Whether a missing file is made; otherwise it is an error.

        Raises
        ------
        BankError
            One of its family, saying which file and what to do. Nothing was changed.
        """
        path, config = Path(path), config or EngineConfig()
        if not create or exists(path):
            check_file(path, name)
        with bank_errors(path, name):
            try:
                own_files.make_parents(path)
            except OSError as error:
                raise cannot_open(path, name, error.strerror) from error
            if not exists(path):
                # Made by us, it is the user's alone, and SQLite gives the files beside it the same mode. A link to
                # where nothing is yet is left to SQLite, which follows it as the agent does.
                with suppress(MemoryToolkitError):
                    os.close(own_files.create(path))
            return cls._opened(
                path,
                name,
                "rwc" if create else "rw",
                cls._prepare,
                clock=clock,
                ids=ids or ProcessIds(),
                config=config,
                embedder=embedder,
                completion=completion,
                patience_ms=patience_ms,
                writable=True,
            )

    @classmethod
    def open_readonly(
        cls,
        path: str | Path,
        name: str,
        *,
        clock: Clock,
        config: EngineConfig | None = None,
        embedder: Embedder | None = None,
    ) -> Self:
        """Open a bank that is only read: no byte of it is ever changed."""
        path = Path(path)
        check_file(path, name)
        with bank_errors(path, name):
            return cls._opened(
                path,
                name,
                reading_mode(path),
                cls._check,
                clock=clock,
                ids=ProcessIds(),
                config=config or EngineConfig(),
                embedder=embedder,
                writable=False,
            )

    @classmethod
    def open_for_recall(
        cls,
        path: str | Path,
        name: str,
        *,
        clock: Clock,
        config: EngineConfig | None = None,
        embedder: Embedder | None = None,
    ) -> Self:
        """Open an existing bank for recall: nothing but its recall counters is ever written.

        Where they cannot be written, or where a foreign trigger would run with them, it is only read.
        """
        path = Path(path)
        check_file(path, name)
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            return cls.open_readonly(path, name, clock=clock, config=config, embedder=embedder)
        with bank_errors(path, name):
            return cls._opened(
                path,
                name,
                "rw",
                cls._prepare_counting,
                clock=clock,
                ids=ProcessIds(),
                config=config or EngineConfig(),
                embedder=embedder,
                writable=True,
            )

    @classmethod
    def _opened(cls, path: Path, name: str, mode: str, prepare: Callable[[Self], None], **given: Any) -> Self:
        """Connect and prepare; what fails or is interrupted leaves no open file."""
        connection = connect(path, mode)
        try:
            bank = cls(connection, path, name, **given)
            prepare(bank)
        except BaseException:
            connection.close()
            raise
        return bank

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def where(self) -> str:
        """The bank and its file, for messages."""
        return where_of(self.path, self.name)

    @property
    def generation(self) -> tuple[int, int, int]:
        """A mark that differs after any change but that of counters, ours or another process's."""
        version: int = self.connection.execute("PRAGMA data_version").fetchone()[0]
        return version, self.connection.total_changes - self._counted, self.taken_back

    @property
    def idle(self) -> bool:
        """Whether nothing is being read or written just now."""
        return not self._borders

    @contextmanager
    def counting(self) -> Iterator[sqlite3.Connection]:
        """Hold a transaction that changes only recall counters, so that what was computed stays good.

        It does not wait for the disk: a power cut may lose counts, never a memory. Nor does it wait long for
        another writer. Where a foreign trigger would run, nothing is counted: setting it aside would change the
        schema at each recall.
        """
        with self.reading():
            alone = not self._depth and self.writable
            if alone:
                self.connection.execute("PRAGMA synchronous = NORMAL")
            try:
                with self.impatient(COUNT_PATIENCE_MS), self._writing(self._refuse_foreign) as connection:
                    before = connection.total_changes
                    yield connection
                    self._counted += connection.total_changes - before
            finally:
                if alone:
                    self.connection.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def impatient(self, patience_ms: int) -> Iterator[None]:
        """Let writes in this block wait only so long for another writer."""
        usual, self.patience_ms = self.patience_ms, patience_ms
        try:
            yield
        finally:
            self.patience_ms = usual

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold one write transaction; an inner one joins the outer one.

        If the block ends with an exception (Ctrl-C too), all of it is rolled back. No trigger runs in it but those of
        the schema.
        """
        with self._writing(self._set_aside) as connection:
            yield connection

    @contextmanager
    def _writing(self, keep_out: Callable[[], Sequence[Trigger]]) -> Iterator[sqlite3.Connection]:
        with self._border():
            if self._depth:
                self._check_transaction()
                yield self.connection
                return
            if not self.writable:
                raise ReadOnlyBankError(
                    "The bank was opened for reading only.", where=self.where, hint="Open it for writing."
                )
            self._show_whole()
            with self.connection.unbounded():
                try:  # BEGIN belongs inside: an interrupt may come just after it
                    self.connection.begin(self.patience_ms)
                    self._depth, self._ended = 1, None
                    foreign = keep_out()
                    yield self.connection
                    self._check_transaction()
                    put_back(self.connection, foreign)
                    self._depth = 0
                    self.connection.execute("COMMIT")
                except BaseException:
                    self._depth = 0
                    self.taken_back += 1
                    if self.connection.in_transaction:
                        self.connection.execute("ROLLBACK")
                    raise

    @contextmanager
    def rebuilding(self) -> Iterator[sqlite3.Connection]:
        """Hold a write transaction that makes the file again: what is not of the schema does not come back."""

        def drop() -> Sequence[Trigger]:
            self._set_aside()
            return ()

        with self._writing(drop) as connection:
            yield connection

    @contextmanager
    def rewriting(self) -> Iterator[sqlite3.Connection]:
        """Work on the whole file, outside of a transaction and without limits."""
        with self.reading() as connection, connection.unbounded():
            yield connection

    def _set_aside(self) -> Sequence[Trigger]:
        return set_aside(self.connection, self.where) if self._has_foreign_triggers() else ()

    def _refuse_foreign(self) -> Sequence[Trigger]:
        if self._has_foreign_triggers():
            raise ReadOnlyBankError(
                "A trigger that does not belong to the bank would run.",
                where=self.where,
                hint="%memory doctor names it",
            )
        return ()

    def _has_foreign_triggers(self) -> bool:
        """Return whether there are any now; the schema is read again only when somebody has changed it."""
        version: int = self.connection.execute("PRAGMA main.schema_version").fetchone()[0]
        if self._schema is None or self._schema[0] != version:
            check_kinds(self.connection, self.where)
            self._schema = version, bool(foreign_triggers(self.connection))
        return self._schema[1]

    @contextmanager
    def savepoint(self) -> Iterator[sqlite3.Connection]:
        """Hold one step of a transaction that can be taken back alone."""
        with self.transaction() as connection:
            self._depth += 1
            mark = f"step_{self._depth}"
            connection.execute(f"SAVEPOINT {mark}")
            try:
                yield connection
            except BaseException as error:
                self.taken_back += 1
                if connection.in_transaction:
                    connection.execute(f"ROLLBACK TO {mark}")
                    connection.execute(f"RELEASE {mark}")
                elif isinstance(error, Exception):
                    self._ended = self._ended or error
                raise
            else:
                connection.execute(f"RELEASE {mark}")
            finally:
                self._depth -= 1

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read under the bank's error border; statements in it can be interrupted and are bounded in time."""
        with self._border():
            if self._missing and not self._depth:
                self._missing = drop_missing(self.connection, self._missing)
            yield self.connection

    def cut_large_cells(self) -> None:
        """Let only the beginning of each cell that is too large be read until the next write; ``large`` counts them."""
        with self.reading() as connection:
            self.large = cut_large(connection)
            self._is_cut = bool(self.large)
        self.memo.clear()

    def forget_large_cells(self) -> None:
        """Forget those that an earlier read came upon, unless they are still cut."""
        if not self._is_cut:
            self.large = {}

    def _show_whole(self) -> None:
        if self._is_cut:
            drop_cut(self.connection)
            self._is_cut = False
            self.memo.clear()

    @contextmanager
    def _border(self) -> Iterator[None]:
        if not self._borders:
            self._user = threading.get_ident()
            self.connection.late = False
        self._borders += 1
        failed = True
        try:
            with bank_errors(self.path, self.name, self.cancel, self.connection):
                yield
            failed = False
        finally:
            self._borders -= 1
            if failed and not self._borders:
                self.connection.end_reading()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the file, whatever others write meanwhile; nothing may be written in it."""
        with self.reading() as connection:
            if connection.in_transaction:
                yield connection
                return
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def check_cancelled(self) -> None:
        """Raise if the work was cancelled; for loops outside SQLite."""
        if self.cancel is not None and self.cancel.is_set():
            raise RecallCancelled("The recall was cancelled.", where=self.where, hint=ASK_AGAIN)

    def close(self) -> None:
        """Move what was written into the file itself, as far as readers allow, and close it; harmless when repeated."""
        if self.writable and not self._closed:
            self._checkpoint()
        self._shut()

    def _checkpoint(self) -> None:
        # Passive: it waits for nobody. What cannot be moved stays in the -wal file, from where it is read as well.
        try:
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            _log.debug("The bank's log was not moved into its file (%s): %s", self.where, error)

    def _shut(self) -> None:
        self._closed = True
        self.memo.clear()
        self.connection.end_reading()  # a statement that is still open would keep the file open too
        self.connection.close()

    def give_up(self) -> None:
        """Part, in a forked child, with a connection that the fork copied while it was in use.

        One that is idle, or that this thread was reading from, can be closed here: the parent's locks keep this from
        writing anything. Of the others, one may be in a write, one inside SQLite: they stay as they are.
        """
        self.memo.clear()
        if self.idle or (self._user == threading.get_ident() and not self._depth):
            self._shut()  # a checkpoint would write beside the parent

    def _stop(self) -> int:
        # A pending Ctrl-C is raised as this function is entered, which ends the statement as well.
        return int((self.cancel is not None and self.cancel.is_set()) or self.connection.is_late())

    def _check_transaction(self) -> None:
        # SQLite ends a transaction by itself on some errors (a full disk); going on would commit piece by piece.
        if not self.connection.in_transaction:
            if isinstance(self._ended, sqlite3.Error | BankError):
                raise self._ended
            raise BankError(
                "The transaction was taken back by SQLite.",
                where=self.where,
                hint="Nothing of it was stored; try again.",
            )

    def _check(self) -> None:
        if is_blank(self.connection):  # the agent leaves such files where it only looked for a bank
            raise BankNotFoundError(
                "The file is empty: nothing has been retained in it yet.",
                where=self.where,
                hint="Retain something, or check the bank's name or path.",
            )
        check_schema(self.connection, self.where)
        self._missing = add_missing(self.connection)

    def _prepare_counting(self) -> None:
        self._check()
        self.connection.execute("PRAGMA synchronous = FULL")
        self.writable = not self._has_foreign_triggers()

    def _prepare(self) -> None:
        connection = self.connection
        if self.config.page_size is not None:
            connection.execute(f"PRAGMA page_size = {self.config.page_size}")
        if not is_blank(connection):
            check_schema(connection, self.where)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        with self.transaction():
            create_schema(connection, iso(self.clock.now_ms()))
