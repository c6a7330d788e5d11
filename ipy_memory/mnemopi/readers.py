"""The open bank files of a session: opened when first needed, as little as needed, and kept open."""

from __future__ import annotations

import atexit
import functools
import logging
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from ipy_memory.errors import BankError, BankNotFoundError, MemoryToolkitError
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.completion import RemoteCompletion
from ipy_memory.mnemopi.pending import drain
from ipy_memory.mnemopi.session_embedder import Choice
from ipy_memory.scoping.mnemopi import DEFAULT_BANK, name_by_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.clock import Clock, IdSource
    from ipy_memory.mnemopi.config import EngineConfig

_log = logging.getLogger("ipy_memory.mnemopi")

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")

READ, TOUCH, WRITE = 0, 1, 2
"""How a bank is needed: to read, to count recalls as well, to write (which makes it if it is not there)."""


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

    A file that was replaced or deleted since (another process cleared it) is opened anew. Where a write can leave
    work behind (vectors, facts read by a language model), the end of the process finishes it too (T-13, B023).
    Hold ``lock`` for as long as banks are worked on: a session may be called from several threads.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        choice: Choice | None = None,
        completion: Callable[[str], str | None] | None = None,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.config = config
        self.choice = choice or Choice(None, "no embedder is known here", "open a session", off=True)
        self.completion = completion
        self.lock = threading.RLock()
        self._open: dict[Path, _Open] = {}
        self._promised = False

    def get(self, target: Target, need: int) -> Bank | None:
        """Return the open bank, or ``None`` where there is no file and none is to be made.

        Raises
        ------
        BankError
            The file is there and cannot be used.
        """
        held = self._open.get(target.path)
        if held and held.need >= need and held.bank.name == target.name and _identity(target.path) == held.file:
            return held.bank
        if held:
            pending = held.bank.pending
            held.bank.close()
            del self._open[target.path]
        try:
            bank = self._opened(target, need)
        except BankNotFoundError:
            return None
        if held:
            bank.pending += pending
        self._open[target.path] = _Open(bank, need, _identity(target.path) or (0, 0))
        return bank

    def all(self) -> list[Bank]:
        """Return every bank that is open now."""
        return [held.bank for held in self._open.values()]

    @property
    def waiting(self) -> int:
        """How much work waits: texts to embed, texts for a language model."""
        return sum(len(bank.pending) for bank in self.all())

    def drain(self) -> int:
        """Do the work that waits; return how much could not be done and waits on (T-13)."""
        for bank in self.all():
            if bank.writable and bank.pending:
                drain(bank)
        return self.waiting

    def close(self) -> None:
        """Close every file; work that still waits is counted in the log (B023)."""
        atexit.unregister(self._at_exit)
        self._promised = False
        held, self._open = self._open, {}
        for one in held.values():
            if one.bank.pending:
                _log.warning("Mnemopi: closed with work undone: bank=%s left=%d", one.bank.name, len(one.bank.pending))
            one.bank.close()
        if self.choice.embedder is not None:
            self.choice.embedder.close()
        if isinstance(self.completion, RemoteCompletion):
            self.completion.close()

    def _at_exit(self) -> None:
        with suppress(MemoryToolkitError):
            self.drain()
        self.close()

    def _opened(self, target: Target, need: int) -> Bank:
        embedder = self.choice.embedder
        if need == WRITE:
            if not self._promised and (embedder is not None or self.completion is not None):
                atexit.register(self._at_exit)
                self._promised = True
            return Bank.open(
                target.path,
                target.name,
                clock=self.clock,
                ids=self.ids,
                config=self.config,
                embedder=embedder,
                completion=self.completion,
            )
        opener = Bank.open_for_recall if need == TOUCH else Bank.open_readonly
        return opener(target.path, target.name, clock=self.clock, config=self.config, embedder=embedder)


class _HasBanks(Protocol):
    banks: OpenBanks


_Owner = TypeVar("_Owner", bound=_HasBanks)


def alone(
    work: Callable[Concatenate[_Owner, _Given], _Found],
) -> Callable[Concatenate[_Owner, _Given], _Found]:
    """Let one thread at a time carry out such methods on the same open banks."""

    @functools.wraps(work)
    def call(owner: _Owner, /, *given: _Given.args, **named: _Given.kwargs) -> _Found:
        with owner.banks.lock:
            return work(owner, *given, **named)

    return call


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def name_in_file(path: Path, clock: Clock) -> str:
    """Return the name under which a bank file's rows were written: its folder's, or what most of its rows say."""
    folder = name_by_folder(path)
    try:
        with Bank.open_readonly(path, path.stem, clock=clock) as bank, bank.reading() as connection:
            rows = connection.execute(
                "SELECT session_id, count(*) FROM working_memory WHERE session_id IS NOT NULL GROUP BY session_id"
            ).fetchall()
    except BankError:
        rows = []
    counts = Counter({str(name): number for name, number in rows})
    if folder is not None and (folder in counts or not counts):
        return folder
    return counts.most_common(1)[0][0] if counts else DEFAULT_BANK
