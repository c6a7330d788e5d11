"""All banks under the database folder: what is in each, and whether and why it is read. Reads only."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ipy_memory.backends.mnemopi.admin.stats import Tally, size, tally
from ipy_memory.backends.mnemopi.pool import Target
from ipy_memory.errors import BankError, BankNotFoundError
from ipy_memory.explore import local
from ipy_memory.explore.local import EVERY_BANK, chosen_targets, local_backend
from ipy_memory.paths import check_path, exists, typed_path
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.backends.mnemopi.backend import MnemopiBackend
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.session import MemorySession

Progress = Callable[[int, int], object]
"""Told how many of how many banks are done."""

NOT_READ = "not read"


@dataclass(frozen=True, slots=True)
class BankRow:
    """One bank.

    Attributes
    ----------
    use
        ``written, read``, ``read``, ``rescued`` (read beside the scope's own banks) or ``not read``.
    reason
        Why so.
    size
        Bytes with the -wal file; ``None`` where there is no file.
    error
        Why the file cannot be read.
    """

    name: str
    use: str
    reason: str
    path: Path
    size: int | None = None
    tally: Tally = field(default_factory=Tally)
    error: str | None = None

    @property
    def counted(self) -> bool:
        """Whether there is a file that could be read."""
        return self.size is not None and self.error is None


def bank_rows(session: MemorySession, progress: Progress | None = None) -> list[BankRow]:
    """Return every bank under the database folder, those in scope first.

    Parameters
    ----------
    session
        On the local engine.
    progress
        Told after each bank.
    """
    if other := local.plain_backend(session):
        return [
            BankRow(name, _use(name, other.retain_bank, (name,)), f"a bank of {other.title}", Path())
            for name in local.names(other)
        ]
    backend = local_backend(session, "a list of banks")
    uses = _uses(backend)
    rows = []
    for number, (target, (use, reason)) in enumerate(uses.items(), 1):
        rows.append(_row(backend, target, use, reason))
        if progress is not None:
            progress(number, len(uses))
    return rows


def count_note(count: int) -> str:
    """Return how many banks a list has."""
    return f"{count} bank{'' if count == 1 else 's'}."


def banks(session: MemorySession, progress: Progress | None = None) -> DataFrame:
    """Return :func:`bank_rows` as a frame."""
    from ipy_memory.frames import build

    rows = bank_rows(session, progress)
    flat = [
        {"name": r.name, "use": r.use, "reason": r.reason, "path": str(r.path), "size": r.size, "error": r.error}
        | (asdict(r.tally) if r.counted else {})
        for r in rows
    ]
    whole = ("size", "working", "episodic", "facts", "triples", "vectors")
    columns = ("name", "use", "reason", *whole, "cwds", "last_memory", "path", "error")
    moment = build.moments(session.clock.tz)
    dtypes: dict[str, Any] = dict.fromkeys(columns, build.TEXT) | dict.fromkeys(whole, build.WHOLE)
    dtypes |= {"cwds": "object", "last_memory": build.INSTANT}
    values: dict[str, list[Any]] = {name: [row.get(name) for row in flat] for name in columns}
    values["last_memory"] = [moment(stamp) for stamp in values["last_memory"]]
    values["cwds"] = [list(cwds or ()) for cwds in values["cwds"]]
    return build.table(values, dtypes)


def _uses(backend: MnemopiBackend) -> dict[Target, tuple[str, str]]:
    """Return every bank with what the session does with it, those in scope first."""
    uses: dict[Path, tuple[Target, str, str]] = {}

    def note(target: Target, use: str, reason: str) -> None:
        uses.setdefault(target.path, (target, use, reason))

    scope, mode = backend.scope, backend.config.scoping
    verdicts = {verdict.path: verdict for verdict in backend.legacy}
    own = scope.recall_banks if scope.retain_bank in scope.recall_banks else (scope.retain_bank, *scope.recall_banks)
    for name in own:
        kind = "the shared bank" if name == scope.global_bank else "the bank of this folder"
        note(backend.target(name), _use(name, scope.retain_bank, scope.recall_banks), kind)
    for target in backend.recall_targets():
        if target.rescued:
            note(target, "rescued", verdicts[target.path].reason)
    for verdict in backend.legacy:
        note(Target(verdict.name, verdict.path), NOT_READ, verdict.reason)
    for target in chosen_targets(backend, EVERY_BANK):
        shared = "the shared bank, which" if target.name == scope.global_bank else "another bank, which"
        note(target, NOT_READ, f"{shared} the scope {mode} does not read")
    return {target: (use, reason) for target, use, reason in uses.values()}


def _use(name: str, written: str, read: tuple[str, ...]) -> str:
    return ", ".join(word for word, holds in (("written", name == written), ("read", name in read)) if holds)


def _row(backend: MnemopiBackend, target: Target, use: str, reason: str) -> BankRow:
    length = size(target.path)
    if length is None:
        return BankRow(target.name, use, f"{reason}; no file yet" if use != NOT_READ else reason, target.path)
    try:
        found = tally(target.path, target.name, backend.banks.clock)
    except BankError as error:
        return BankRow(target.name, use, reason, target.path, length, error=error.message)
    return BankRow(target.name, use, reason, target.path, length, found)


def open_bank_file(path: str | os.PathLike[str], **surroundings: Any) -> MemorySession:
    """Open a session that reads just one bank file and changes no byte of it.

    Parameters
    ----------
    path
        The bank's SQLite file; ``~`` and variables are filled in.
    **surroundings
        As for :func:`open_session`: ``cwd``, ``agent_dir``, ``env``, ``clock``, ``ids``.

    Raises
    ------
    BankNotFoundError
        There is no such file.
    BankError
        The file is not a bank, is damaged, or is newer than this release.
    """
    file = Path(check_path(typed_path(os.fspath(path), surroundings.get("env")), "the bank file"))
    if not exists(file):
        raise BankNotFoundError(
            "There is no such bank file.", where=str(path), hint="%memory banks lists those that are known"
        )
    session = open_session("mnemopi", database=file, settings={"mnemopi.scoping": "global"}, **surroundings)
    whole = cast("MnemopiBackend", session.backend)
    session.backend = whole.one_file(file)
    return session
