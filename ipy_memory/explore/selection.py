"""A selected frame of memories, ended and brought back as one: with the count first, and only when confirmed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.base import Edited
from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.backends.mnemopi.pool import READ, WRITE, Target
from ipy_memory.backends.mnemopi.store.edit import editable, summaries_of
from ipy_memory.backends.mnemopi.store.memories import find, invalidate, restore
from ipy_memory.errors import (
    ChangedSinceError,
    EditRefusedError,
    HindsightError,
    MemoryToolkitError,
    PartlyDoneError,
    ToolInputError,
)
from ipy_memory.explore import remote
from ipy_memory.explore.local import local_backend, server_backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.backends.mnemopi.backend import MnemopiBackend
    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.session import MemorySession

NEEDED = ("id", "bank")
"""The columns that a selection must have."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What was done, or would be done, to a selection.

    Attributes
    ----------
    done
        Whether anything was written.
    edits
        One for each memory that was ended, for :func:`restore_all`; empty before a confirmation.
    counts
        Bank -> how many memories.
    skipped
        Id -> why it was left alone.
    backups
        Copies of the banks that were made just now.
    summaries
        Live summaries of the memories, which stay.
    """

    verb: str
    done: bool
    edits: tuple[Edited, ...]
    counts: dict[str, int]
    skipped: dict[str, str]
    backups: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many memories it is about."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        what = f"{self.count} {'memory' if self.count == 1 else 'memories'}"
        where = ", ".join(f"{number} in bank {bank}" for bank, number in self.counts.items()) or "none"
        verb = self.verb if self.done else f"would be {self.verb}"
        lines = [f"{what} {verb}: {where}."]
        reasons = Counter(self.skipped.values())
        lines += [f"{number} left alone: {reason}." for reason, number in reasons.items()]
        lines += [f"Their summary {one} stays and can be recalled." for one in self.summaries]
        lines += [f"Copy of the bank: {copy}" for copy in self.backups]
        return "\n".join(lines)


def invalidate_all(
    session: MemorySession, selection: DataFrame, *, replacement: str | None = None, confirm: bool = False
) -> Selected:
    """End every memory of a selection now; without ``confirm`` only tell how many there are and where.

    Parameters
    ----------
    session
        On either backend.
    selection
        A frame with the columns ``id`` and ``bank``, such as ``session.memories()`` or a recall gives.
    replacement
        Id of the memory that stands in for them (local banks only).
    confirm
        Write. Each bank is copied before a session's first edit, and written in one transaction.
    """
    wanted = _wanted(selection)
    if served := server_backend(session):
        rows = [(bank, id_) for bank, ids in wanted.items() for id_ in ids]
        return _curated(served, rows, "invalidated") if confirm else _planned(served, rows)
    backend = local_backend(session, "editing a selection")
    targets = {name: backend.target_named(name) for name in wanted}
    had = tuple(backend.backups)
    edits: list[Edited] = []
    counts: dict[str, int] = {}
    skipped: dict[str, str] = {}
    staying: dict[str, None] = {}
    try:
        with backend.banks.lock:
            for name, ids in wanted.items():
                bank = backend.banks.get(targets[name], READ)
                able, unable = _sorted_out(bank, ids)
                skipped |= unable
                counts |= {name: len(able)} if able else {}
                if bank is not None and able:
                    made = [one for found in summaries_of(bank, able).values() for one in found]
                    staying |= dict.fromkeys(one for one in made if one not in able)
                if confirm and able and (bank := backend.banks.get(targets[name], WRITE)) is not None:
                    edits += _ended(backend, bank, able, replacement)
    except BaseException as error:
        if edits:
            backend.edits.append(tuple(edits))
            # Each bank is written as a whole or not at all.
            done = Selected(
                "invalidated", True, tuple(edits), dict(Counter(edit.bank or "" for edit in edits)), skipped
            )
            raise _partly(done, sum(map(len, wanted.values())), (), error) from error
        raise
    if edits:
        backend.edits.append(tuple(edits))
    copies = tuple(shown_path(copy, backend.home) for path, copy in backend.backups.items() if path not in had)
    return Selected("invalidated", confirm, tuple(edits), counts, skipped, copies, tuple(staying))


def restore_all(session: MemorySession, done: Selected | Sequence[Edited], *, force: bool = False) -> Selected:
    """Bring back what :func:`invalidate_all` ended, each memory as it was before.

    Of several, those that were changed again since are left alone, and can be brought back by ``force``.

    Raises
    ------
    ChangedSinceError
        The only one was changed again.
    """
    edits = done.edits if isinstance(done, Selected) else tuple(done)
    if served := server_backend(session):
        return _curated(served, [(edit.bank or served.retain_bank, edit.id) for edit in edits], "restored")
    backend = local_backend(session, "editing a selection")
    counts: Counter[str] = Counter()
    skipped: dict[str, str] = {}
    left: list[Edited] = []
    with backend.banks.lock:
        for target, of_bank in _by_target(backend, edits).items():
            bank = backend.banks.get(target, WRITE)
            if bank is None:
                continue
            with bank.transaction():
                for edit in of_bank:
                    if edit.undo is None:
                        continue
                    try:
                        if restore(bank, edit.undo, force=force):
                            counts[target.name] += 1
                        else:
                            skipped[edit.id] = "not there any more"
                    except ChangedSinceError:
                        if len(edits) == 1:
                            raise
                        skipped[edit.id] = "changed again since; %memory undo --force brings it back all the same"
                        left.append(edit)
    if edits in backend.edits:
        backend.edits.remove(edits)
        backend.edits += [tuple(left)] if left else []
    return Selected("restored", True, (), dict(counts), skipped)


def undo_last(session: MemorySession, *, force: bool = False) -> str:
    """Undo the last edit of this session, be it of one memory or of a selection; return what was done.

    Raises
    ------
    EditRefusedError
        There is nothing to undo.
    ChangedSinceError
        The memory was changed again since; ``force`` writes the former values all the same.
    """
    if served := server_backend(session):
        if not served.edits:
            raise _nothing_to_undo()
        return str(_curated(served, served.edits[-1], "restored"))
    backend = local_backend(session, "undoing")
    if not backend.edits:
        raise _nothing_to_undo()
    last = backend.edits[-1]
    if last[0].status == "invalidated":
        return str(restore_all(session, last, force=force))
    there = backend.undo(last[0], force=force)
    return f"Memory {last[0].id} of bank {last[0].bank} {'is as it was before' if there else 'is not there any more'}."


def _nothing_to_undo() -> EditRefusedError:
    return EditRefusedError(
        "There is nothing to undo in this session.",
        hint="only updates and invalidations can be undone, and only by the session that made them",
    )


def _partly(done: Selected, wanted: int, unknown: Sequence[str], error: BaseException) -> PartlyDoneError:
    """Return the error of a change that ended in the middle: what was done, what may have been, what was not."""
    where = ", ".join(f"{number} in bank {bank}" for bank, number in done.counts.items())
    left = wanted - done.count - len(unknown) - len(done.skipped)
    parts = [f"{done.count} of {wanted} memories {done.verb}{f' ({where})' if where else ''}"]
    parts += [f"{', '.join(unknown)} may be {done.verb} or not"] if unknown else []
    parts += [f"{len(done.skipped)} left alone"] if done.skipped else []
    parts += [f"{left} not changed"] if left else []
    reason = str(error) if isinstance(error, MemoryToolkitError) else "interrupted"
    undo = "%memory undo makes them valid again, or " if done.verb == "invalidated" else ""
    return PartlyDoneError(
        f"The change ended in the middle: {'; '.join(parts)}. Reason: {reason}",
        done,
        hint=f"{undo}repeat the command for the rest, which does no harm to those that are done",
    )


def _wanted(selection: DataFrame) -> dict[str, list[str]]:
    columns = list(getattr(selection, "columns", ()))
    if missing := [name for name in NEEDED if name not in columns]:
        raise ToolInputError(
            f"The selection has no column {missing[0]!r}.", hint="take rows of session.memories() or of a recall"
        )
    wanted: dict[str, dict[str, None]] = {}
    for id_, bank in zip(selection["id"], selection["bank"], strict=True):
        if isinstance(id_, str) and isinstance(bank, str):
            wanted.setdefault(bank, {})[id_] = None
    return {bank: list(ids) for bank, ids in wanted.items()}


def _by_target(backend: MnemopiBackend, edits: Sequence[Edited]) -> dict[Target, list[Edited]]:
    found: dict[Target, list[Edited]] = {}
    for edit in edits:
        found.setdefault(backend.target_of(edit), []).append(edit)
    return found


def _sorted_out(bank: Bank | None, ids: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    able, unable = [], {}
    for id_ in ids:
        memory = None if bank is None else find(bank, id_)
        if bank is None or memory is None:
            unable[id_] = "not a memory of this bank"
        elif memory.store == "fact":
            unable[id_] = "a fact, which is read-only"
        elif editable(bank, memory, "invalidate"):
            able.append(id_)
        else:
            unable[id_] = "of another session of this bank"
    return able, unable


def _ended(backend: MnemopiBackend, bank: Bank, ids: Sequence[str], replacement: str | None) -> list[Edited]:
    backend.back_up_once(bank)
    with bank.transaction():
        ended = [(find(bank, id_), invalidate(bank, id_, replacement)) for id_ in ids]
    return [
        Edited(undo.id, "invalidated", bank.name, undo.store, before, undo, path=bank.path)
        for before, undo in ended
        if undo is not None
    ]


def _planned(backend: HindsightBackend, rows: Sequence[tuple[str, str]]) -> Selected:
    """Return what would be invalidated on a server; observations are made from other memories and stay."""
    counts: Counter[str] = Counter()
    skipped = {}
    for bank, id_ in rows:
        if remote.found(backend, bank, id_).get("type") == "observation":
            skipped[id_] = "an observation, which the server makes from other memories"
        else:
            counts[bank] += 1
    return Selected("invalidated", False, (), dict(counts), skipped)


def _curated(backend: HindsightBackend, rows: Sequence[tuple[str, str]], verb: str) -> Selected:
    """Change memories on a server, each in its own bank by a request of its own.

    Raises
    ------
    PartlyDoneError
        It ended in the middle.
    """
    state = "invalidated" if verb == "invalidated" else "valid"
    done: list[tuple[str, str]] = []
    unknown: list[tuple[str, str]] = []
    skipped: dict[str, str] = {}

    def selected() -> Selected:
        edits = tuple(Edited(id_, "invalidated", bank) for bank, id_ in (*done, *unknown))
        return Selected(verb, True, edits, dict(Counter(bank for bank, _ in done)), skipped)

    try:
        for bank, id_ in rows:
            unknown = [(bank, id_)]
            try:
                backend.service.client.update_memory(bank, id_, state=state)
            except HindsightError as error:
                if error.status_code in {400, 404, 409, 422}:
                    skipped[id_], unknown = error.message, []
                    continue
                unknown = unknown if error.unknown else []
                raise
            done, unknown = [*done, *unknown], []
    except BaseException as error:
        if not done and not unknown:
            raise
        raise _partly(selected(), len(rows), [id_ for _, id_ in unknown], error) from error
    finally:
        if verb == "invalidated":
            backend.edits += [(*done, *unknown)] if done or unknown else []
        else:
            _settle_undo(backend, rows, {*done, *(row for row in rows if row[1] in skipped)})
    return selected()


def _settle_undo(backend: HindsightBackend, rows: Sequence[tuple[str, str]], settled: set[tuple[str, str]]) -> None:
    """Leave for another undo what was not brought back."""
    for at, edit in enumerate(backend.edits):
        if set(rows) & set(edit):
            left = tuple(row for row in edit if row not in settled)
            backend.edits[at : at + 1] = [left] if left else []
            return
