"""The open bank files of a session: opened when first needed, as little as needed, and kept open."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.errors import BankError, BankNotFoundError
from ipy_memory.mnemopi.bank import Bank

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.clock import Clock, IdSource
    from ipy_memory.mnemopi.config import EngineConfig
    from ipy_memory.mnemopi.embeddings import Embedder

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

    A file that was replaced or deleted since (another process cleared it) is opened anew.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        embedder: Embedder | None = None,
        completion: Callable[[str], str | None] | None = None,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.config = config
        self.embedder = embedder
        self.completion = completion
        self._open: dict[Path, _Open] = {}

    def get(self, target: Target, need: int) -> Bank | None:
        """Return the open bank, or ``None`` where there is no file and none is to be made.

        Raises
        ------
        BankError
            The file is there and cannot be used.
        """
        held = self._open.get(target.path)
        if held and held.need >= need and _identity(target.path) == held.file:
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

    def close(self) -> None:
        """Close every file."""
        held, self._open = self._open, {}
        for one in held.values():
            one.bank.close()

    def _opened(self, target: Target, need: int) -> Bank:
        if need == WRITE:
            return Bank.open(
                target.path,
                target.name,
                clock=self.clock,
                ids=self.ids,
                config=self.config,
                embedder=self.embedder,
                completion=self.completion,
            )
        opener = Bank.open_for_recall if need == TOUCH else Bank.open_readonly
        return opener(target.path, target.name, clock=self.clock, config=self.config, embedder=self.embedder)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def name_in_file(path: Path, clock: Clock) -> str:
    """Return the name under which a bank file's rows were written: its folder's, or what its rows say."""
    if path.parent.parent.name == "banks":
        return path.parent.name
    try:
        with Bank.open_readonly(path, path.stem, clock=clock) as bank, bank.reading() as connection:
            rows = connection.execute(
                "SELECT session_id, count(*) FROM working_memory WHERE session_id IS NOT NULL GROUP BY session_id"
            ).fetchall()
    except BankError:
        return "default"
    counts = Counter({str(name): number for name, number in rows})
    return counts.most_common(1)[0][0] if counts else "default"
