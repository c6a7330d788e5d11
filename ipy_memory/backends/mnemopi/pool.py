"""The open bank files of a session: opened when first needed, as little as needed, and kept open."""

from __future__ import annotations

import functools
import logging
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ipy_memory import process
from ipy_memory.backends.mnemopi.db.bank import Bank, within_limits
from ipy_memory.backends.mnemopi.db.connection import BUSY_MS, file_of
from ipy_memory.backends.mnemopi.db.copies import sweep
from ipy_memory.backends.mnemopi.embeddings.selection import Choice
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.llm import RemoteCompletion
from ipy_memory.errors import BankError, BankNotFoundError, MemoryToolkitError
from ipy_memory.paths import exists
from ipy_memory.scoping.modes import DEFAULT_BANK, name_by_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ipy_memory.backends.mnemopi.config import EngineConfig
    from ipy_memory.backends.mnemopi.db.bank import Counts, Pending
    from ipy_memory.clock import Clock, IdSource

_log = logging.getLogger("ipy_memory.backends.mnemopi")

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")

READ, TOUCH, WRITE = 0, 1, 2
"""How a bank is needed: to read, to count recalls as well, to write (which makes it if it is not there)."""


IMPATIENT_MS = 50
"""How long writes in :meth:`OpenBanks.impatient` wait for another writer."""

FORK_PATIENCE_SECONDS = 2.0
"""So long a fork waits for another thread's work on the banks to end."""


@dataclass(frozen=True, slots=True)
class Target:
    """A bank by name and file; ``rescued`` for a legacy bank found beside the session's own."""

    name: str
    path: Path
    rescued: bool = False


@dataclass(slots=True)
class _Open:
    bank: Bank
    need: int
    file: tuple[int, int]


class OpenBanks:
    """Bank files by path, each opened once for the most that was needed of it.

    A file that was replaced or deleted since is opened again. The end of the process finishes what a write has left
    behind (vectors, facts read by a language model) and closes the files, so that nothing stays in a -wal file.
    Hold ``lock`` for as long as banks are worked on: a session may be called from several threads.
    ``copies`` is the folder for copies of banks; ``notify`` tells the user something (level, message, source).

    SQLite forbids a forked child to use or to close what its parent has opened. So the files are closed before a
    fork, and parent and child each open them again at their next call. Work that is left to do stays the parent's.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        copies: Path,
        choice: Choice | None = None,
        completion: Callable[[str], str | None] | None = None,
        notify: Callable[[str, str, str], object] = lambda *_: None,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.config = config
        self.copies = copies
        self.choice = choice or Choice(None, "no embedder is known here", "open a session", off=True)
        self.completion = completion
        self.notify = notify
        self.counting = True
        self.lock = threading.RLock()
        self._patience_ms = BUSY_MS
        self._open: dict[Path, _Open] = {}
        self._jobs: dict[Path, tuple[Target, list[Pending]]] = {}
        self._uncounted: dict[Path, list[tuple[str, Counts]]] = {}
        self._cancel_exit: Callable[[], None] | None = None
        self._mid_call = False
        process.before_fork(self._before_fork)
        process.after_fork_in_parent(self._after_fork_in_parent)
        process.after_fork_in_child(self._after_fork_in_child)

    def get(self, target: Target, need: int) -> Bank | None:
        """Return the open bank, or ``None`` where there is no file and none is to be made.

        Raises
        ------
        BankError
            The file is there and cannot be used.
        """
        held = self._open.get(target.path)
        if held and held.need >= need and held.bank.name == target.name and file_of(target.path) == held.file:
            held.bank.patience_ms = self._patience_ms
            return held.bank
        if held:
            self._close_one(target.path)
        try:
            bank = self._opened(target, need)
        except BankNotFoundError:
            return None
        _, bank.pending = self._jobs.setdefault(target.path, (target, []))
        bank.uncounted = self._uncounted.pop(target.path, [])
        self._open[target.path] = _Open(bank, need, file_of(target.path) or (0, 0))
        return bank

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Let writes in this block wait for another writer for a moment only; the lock must be held."""
        self._patience_ms = IMPATIENT_MS
        try:
            yield
        finally:
            self._patience_ms = BUSY_MS
            for bank in self.all():
                bank.patience_ms = BUSY_MS

    def change_engine(self, fresh: OpenBanks) -> None:
        """Work with the numbers, the embedder and the language model of another set from the next call on.

        Work that is left to do stays, and is done by the new ones.
        """
        for path in list(self._open):
            self._close_one(path)
        self._close_endpoints()
        self.config, self.choice, self.completion = fresh.config, fresh.choice, fresh.completion

    def release(self, target: Target) -> None:
        """Close a bank that is open for reading only; another use opens it again."""
        held = self._open.get(target.path)
        if held and held.need == READ and held.bank.idle:
            self._close_one(target.path)

    def all(self) -> list[Bank]:
        """Return every bank that is open now."""
        return [held.bank for held in self._open.values()]

    @property
    def waiting(self) -> int:
        """How much work waits: texts to embed, texts for a language model."""
        return sum(len(jobs) for _, jobs in self._jobs.values())

    def drain(self) -> int:
        """Do the work that waits; return how much could not be done and waits on."""
        for target, jobs in list(self._jobs.values()):
            if jobs and exists(target.path):
                try:
                    bank = self.get(target, WRITE)
                except BankError as error:
                    _log.warning("Mnemopi: work left undone: bank=%s error=%s", target.name, error)
                    continue
                if bank is not None:
                    drain(bank)
        return self.waiting

    def close(self) -> None:
        """Close every file; work that still waits is counted in the log."""
        if self._cancel_exit is not None:
            self._cancel_exit()
            self._cancel_exit = None
        jobs, self._jobs = self._jobs, {}
        for target, left in jobs.values():
            if left:
                _log.warning("Mnemopi: closed with work undone: bank=%s left=%d", target.name, len(left))
        held, self._open = self._open, {}
        for one in held.values():
            one.bank.close()
        self._close_endpoints()

    def _close_endpoints(self) -> None:
        if self.choice.embedder is not None:
            self.choice.embedder.close()
        if isinstance(self.completion, RemoteCompletion):
            self.completion.close()

    def _close_one(self, path: Path) -> None:
        bank = self._open.pop(path).bank
        if bank.uncounted:
            self._uncounted[path] = bank.uncounted
        bank.close()

    def _end(self) -> None:
        with suppress(MemoryToolkitError):
            self.drain()
        self.close()

    def _before_fork(self) -> None:
        # In the middle of a call of this thread the files are in use; then the child gives them up.
        self._mid_call = _is_held(self.lock)
        if not self._mid_call and self.lock.acquire(timeout=FORK_PATIENCE_SECONDS):
            for path, one in list(self._open.items()):
                if one.bank.idle:
                    self._close_one(path)

    def _after_fork_in_parent(self) -> None:
        # Asking the lock itself leaves no gap for an interrupt.
        if not self._mid_call and _is_held(self.lock):
            self.lock.release()

    def _after_fork_in_child(self) -> None:
        self.lock = threading.RLock()
        self._mid_call = False
        self._jobs.clear()
        self._uncounted.clear()
        inherited, self._open = self._open, {}
        for one in inherited.values():
            one.bank.give_up()

    def _opened(self, target: Target, need: int) -> Bank:
        embedder = self.choice.embedder
        if need != READ and self._cancel_exit is None:
            self._cancel_exit = process.at_exit(self._end)
        if need == WRITE:
            sweep(self.copies, target.path)
            return Bank.open(
                target.path,
                target.name,
                clock=self.clock,
                ids=self.ids,
                config=self.config,
                embedder=embedder,
                completion=self.completion,
                patience_ms=self._patience_ms,
            )
        opener = Bank.open_for_recall if need == TOUCH else Bank.open_readonly
        return opener(target.path, target.name, clock=self.clock, config=self.config, embedder=embedder)


def _is_held(lock: threading.RLock) -> bool:
    """Return whether this thread holds a lock; only a condition may ask that."""
    try:
        threading.Condition(lock).notify(0)
    except RuntimeError:
        return False
    return True


_Owner = TypeVar("_Owner")


def _lock(owner: Any) -> threading.RLock:
    """Return the lock of an owner's banks."""
    return owner.banks.lock  # type: ignore[no-any-return]


def alone(
    work: Callable[Concatenate[_Owner, _Given], _Found],
) -> Callable[Concatenate[_Owner, _Given], _Found]:
    """Let one thread at a time carry out such methods of an owner of ``banks``."""

    @functools.wraps(work)
    def call(owner: _Owner, /, *given: _Given.args, **named: _Given.kwargs) -> _Found:
        with _lock(owner):
            return work(owner, *given, **named)

    return call


def name_in_file(path: Path, clock: Clock) -> str:
    """Return the name under which a bank file's rows were written: its folder's, or what most of its rows say."""
    folder = name_by_folder(path)
    try:
        with Bank.open_readonly(path, path.stem, clock=clock) as bank:
            counts = _names_in_rows(bank)
    except BankError:
        counts = Counter()
    if folder is not None and (folder in counts or not counts):
        return folder
    return counts.most_common(1)[0][0] if counts else DEFAULT_BANK


@within_limits
def _names_in_rows(bank: Bank) -> Counter[str]:
    with bank.reading() as connection:
        rows = connection.execute(
            "SELECT session_id, count(*) FROM working_memory WHERE session_id IS NOT NULL GROUP BY session_id"
        )
        return Counter({str(name): number for name, number in rows})
