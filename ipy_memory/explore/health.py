"""The banks in scope, or the way to a server, under the doctor's eyes: what was found, and what a repair did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.hindsight.admin import Check, checks
from ipy_memory.backends.mnemopi.admin.doctor import PARTS, Examination, Repair, examine, repair
from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.backends.mnemopi.db import copies
from ipy_memory.errors import BankError, MemoryToolkitError
from ipy_memory.explore.local import chosen_targets, local_backend, server_backend
from ipy_memory.explore.status import version_rows
from ipy_memory.paths import exists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ipy_memory.backends.mnemopi.admin.doctor import Finding
    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.session import MemorySession

GOOD, FAULT, MENDED = "good", "fault", "repaired"
"""How a thing is that was looked at."""
COLUMNS = ("bank", "part", "what", "state", "detail")
"""The columns of :attr:`Health.rows`."""
NO_FILE = "There is no bank file yet."


@dataclass(frozen=True, slots=True)
class Health:
    """What was found in some banks, and what was repaired."""

    examinations: tuple[Examination, ...]
    repairs: tuple[Repair, ...] = ()
    home: str = ""
    refused: tuple[BankError, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What the user should know or do."""
        notes = [f"Copy of the bank: {shown_path(done.backup, self.home)}" for done in self.repairs if done.backup]
        notes += [f"{done.before.name}: {what}." for done in self.repairs for what in done.done]
        notes += [f"{one.name}: {part.detail}." for one in self.examinations for part in one.readable_by_others]
        notes += [f"{one.name}: {warning}" for one in self.examinations for warning in copies.warnings_of(one.path)]
        notes += [f"Not repaired: {error.message.rstrip('.')} [{error.where}]. {error.hint}" for error in self.refused]
        now = self._now
        if not now:
            return [*notes, *self.versions]
        notes.append(
            f"{self.faults} faults in {len(now)} banks." if self.faults else f"All is well in {len(now)} banks."
        )
        if any(one.repairable for one in now):
            notes.append("No memories are lost. To repair it: %memory doctor --repair")
        if any(fault.part == "vectors" for one in now for fault in one.faults):
            notes.append("To compute vectors again: %memory embeddings reindex")
        return [*notes, *self.versions]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """One row for each thing that was looked at; of a repaired bank as it was, with what was repaired."""
        return [
            (one.name, finding.part, finding.name, self._state(one, finding), finding.detail)
            for one in self.examinations
            for finding in one.findings
        ]

    @property
    def faults(self) -> int:
        """How many faults there are now."""
        return sum(len(one.faults) for one in self._now)

    @property
    def _now(self) -> list[Examination]:
        mended = {id(done.before): done.after for done in self.repairs}
        return [mended.get(id(one), one) for one in self.examinations]

    def _state(self, one: Examination, finding: Finding) -> str:
        if finding.good:
            return GOOD
        mended = next((done.after for done in self.repairs if done.before is one and done.backup), None)
        return FAULT if mended is None or finding in mended.faults else MENDED


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """What each part of the way to a server's bank said."""

    bank: str
    checks: tuple[Check, ...]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """One row for each part that was asked."""
        return [(self.bank, "server", one.name, GOOD if one.good else FAULT, one.said) for one in self.checks]

    @property
    def faults(self) -> int:
        """How many parts are not well."""
        return sum(not one.good for one in self.checks)

    @property
    def notes(self) -> list[str]:
        """What the user should know or do."""
        if self.faults:
            return [f"{self.faults} of {len(self.checks)} parts are not well; nothing was changed."]
        return ["All is well on the way to the server's bank."]


def findings_frame(found: Health | ServerHealth) -> DataFrame:
    """Return the rows of what was found as a frame."""
    from ipy_memory.frames import build

    rows = found.rows
    return build.table(
        {name: [row[index] for row in rows] for index, name in enumerate(COLUMNS)},
        dict.fromkeys(COLUMNS, build.TEXT),
    )


def examined(
    session: MemorySession,
    bank: str | None = None,
    *,
    mend: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Health | ServerHealth:
    """Look over the session's banks as :func:`look_over` does, or ask each part of the way to its server.

    Raises
    ------
    MemoryToolkitError
        A bank of a server is to be repaired, or one is named: neither is here.
    """
    backend = server_backend(session)
    if backend is None:
        return look_over(session, bank, mend=mend, progress=progress)
    if mend or bank is not None:
        raise MemoryToolkitError(
            "A bank on a Hindsight server cannot be examined or repaired from here.",
            hint="%memory doctor alone asks how the server and this session's bank are",
        )
    return ServerHealth(backend.retain_bank, tuple(checks(backend)))


def look_over(
    session: MemorySession,
    bank: str | None = None,
    *,
    mend: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Health:
    """Look over the banks in scope, or one by its name; with ``repair`` repair what can be.

    A running session sees the repair at its next call. Without ``repair`` nothing is opened for writing. ``progress``
    is told how many of how many parts were looked at. Of several banks one that cannot be repaired keeps none of the
    others from it, nor their results from being shown.

    Raises
    ------
    BankError
        The only bank cannot be repaired.
    """
    backend = local_backend(session, "the doctor")
    targets = [t for t in (chosen_targets(backend, bank) if bank else backend.report_targets()) if exists(t.path)]
    examinations: list[Examination] = []
    repairs: list[Repair] = []
    refused: list[BankError] = []
    whole = len(targets) * len(PARTS)
    for number, target in enumerate(targets):
        before = number * len(PARTS)

        def looking(part: str, before: int = before) -> None:
            progress(before + PARTS.index(part), whole)

        found = None
        if mend:
            try:
                repairs.append(repair(target.path, target.name, session.clock, backend.banks.copies))
                found = repairs[-1].before
            except BankError as error:
                if len(targets) == 1:
                    raise
                refused.append(error)
        examinations.append(found or examine(target.path, target.name, session.clock, looking))
        progress(before + len(PARTS), whole)
    if any(done.backup for done in repairs):
        _forget_what_was_read(backend.banks.all())
    versions = tuple(f"{row.name}: {row.value}." for row in version_rows(session))
    return Health(tuple(examinations), tuple(repairs), backend.home, tuple(refused), versions)


def _forget_what_was_read(banks: Sequence[Bank]) -> None:
    for bank in banks:
        bank.memo.clear()
