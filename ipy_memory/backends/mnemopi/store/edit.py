"""The ``memory_edit`` decisions over several banks, and the page behind ``memory://<id>``."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast

from ipy_memory import text
from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.store import browse
from ipy_memory.backends.mnemopi.store.delete import hanging_on
from ipy_memory.backends.mnemopi.store.memories import Store, find, forget, invalidate, restore, update
from ipy_memory.errors import EditRefusedError, MemoryNotFoundError, MemoryToolkitError, ToolInputError
from ipy_memory.jscompat.strings import clamp01, clip, json_text, number_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.store.memories import Rewrite
    from ipy_memory.model import Memory

Operation = Literal["update", "forget", "invalidate"]
Status = Literal["updated", "deleted", "invalidated", "not_found", "not_editable"]

_DONE: Mapping[Operation, Status] = {"update": "updated", "forget": "deleted", "invalidate": "invalidated"}

LISTED = "%memory browse lists ids"
"""Where to look for an id."""


@dataclass(frozen=True, slots=True)
class Edited:
    """How an edit went: where it happened, the memory as it was before, and what it wrote, for an undo.

    ``along`` says for a forgotten memory how many rows of which table go with it, ``summaries`` which live summaries
    of it stay: memories of their own, which still say what they were made from. ``path`` is the bank's file.
    """

    id: str
    status: Status
    bank: str | None = None
    store: Store | None = None
    before: Memory | None = None
    undo: Rewrite | None = None
    along: Mapping[str, int] = field(default_factory=dict)
    summaries: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def text(self) -> str:
        """The tool's exact sentence (M-04)."""
        if self.bank is None or self.store is None:
            return text.not_found_text(self.id)
        if self.status == "not_editable":
            return text.read_only_fact_text(self.id, self.bank)
        if self.status == "not_found":
            return text.not_found_text(self.id, self.bank, self.store)
        return text.edited_text(self.id, self.status, self.bank, self.store)

    @property
    def details(self) -> dict[str, str]:
        """The tool's details: ``status``, and ``bank`` and ``store`` where they are known (M-04)."""
        known = {"status": self.status, "bank": self.bank, "store": self.store}
        return {name: value for name, value in known.items() if value is not None}


def edit(
    banks: Iterable[Bank],
    op: Operation,
    memory_id: str,
    *,
    content: str | None = None,
    importance: float | None = None,
    replacement_id: str | None = None,
    preview_chars: int | None = None,
    base: str | None = None,
    purge: bool = False,
    dry_run: bool = False,
    prepare: Callable[[Bank], Bank] = lambda bank: bank,
) -> Edited:
    """Carry out one ``memory_edit``; the first bank that takes it wins (M-02 to M-04).

    Parameters
    ----------
    banks
        In the order of R-13: the bank that is written, then the recall banks. No further one is taken once a bank
        takes the edit; they may be open for reading.
    op, memory_id
        What is done to which memory.
    content, importance
        What an update writes; the importance is held between 0 and 1.
    replacement_id
        The memory that stands in for an invalidated one.
    preview_chars
        Refuse an update whose content is the memory's own preview of this length (M-06); ``None`` asks nothing.
    base
        Refuse to edit a memory whose text is not this one any more; ``None`` asks nothing.
    purge
        Leave no byte of a forgotten text in the file.
    dry_run
        Only tell how it would go.
    prepare
        Returns the bank opened for writing; called when it is certain that it will be written.

    Raises
    ------
    ToolInputError
        An update without content and importance.
    EditRefusedError
        The update would cut the memory to its preview, or undo what somebody else has written meanwhile.
    """
    if op == "update" and content is None and importance is None:
        raise ToolInputError(text.EDIT_NEEDS_SOMETHING, hint="give one of the two, or both")
    refused: Edited | None = None
    for bank in banks:
        before = find(bank, memory_id)
        if before is None:
            continue
        store: Store = before.store  # type: ignore[assignment]
        if store == "fact":
            refused = refused or Edited(memory_id, "not_editable", bank.name, store, before)
            continue
        if content is not None and preview_chars is not None:
            _check_whole(before, content, preview_chars)
        if editable(bank, before, op):
            staying = () if purge else summaries_of(bank, [memory_id]).get(memory_id, ())
            if dry_run:
                along = _along(bank, op, memory_id)
                return Edited(memory_id, _DONE[op], bank.name, store, before, along=along, summaries=staying)
            change = _Change(content, importance, replacement_id, base, purge)
            if done := _carried_out(prepare(bank), op, before, change):
                return replace(done, summaries=staying)
        refused = refused or Edited(memory_id, "not_found", bank.name, store, before)
    return refused or Edited(memory_id, "not_found")


def summaries_of(bank: Bank, memory_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return for each memory that has some the ids of its live summaries, the newest first."""
    about = {"about": next(iter(memory_ids))} if len(memory_ids) == 1 else {}
    wanted = set(memory_ids)
    found: dict[str, tuple[str, ...]] = {}
    for episode in browse.page([bank], ("episodic",), {"state": "live", **about}, limit=None).memories:
        for part in wanted.intersection(episode.about):
            found[part] = (*found.get(part, ()), episode.id)
    return found


def editable(bank: Bank, memory: Memory, op: Operation) -> bool:
    """Return whether an operation can take a memory: of this bank's session, or in reach for an invalidation (M-03)."""
    own = memory.session_id == bank.name
    if op == "invalidate":
        return memory.store != "fact" and (own or memory.scope == "global")
    return memory.store == "working" and own


@dataclass(frozen=True, slots=True)
class _Change:
    """What an edit brings along."""

    content: str | None = None
    importance: float | None = None
    replacement_id: str | None = None
    base: str | None = None
    purge: bool = False


def _carried_out(bank: Bank, op: Operation, before: Memory, change: _Change) -> Edited | None:
    """Write one edit; ``None`` if the memory is gone by now."""
    written = None
    along = _along(bank, op, before.id)
    # A purge rewrites the whole file, which no transaction can hold.
    with nullcontext() if change.purge else bank.transaction():
        if change.base is not None:
            _check_unchanged(find(bank, before.id), change.base, bank)
        if op == "update":
            weight = None if change.importance is None else clamp01(change.importance)
            written = update(bank, before.id, content=change.content, importance=weight)
        elif op == "invalidate":
            written = invalidate(bank, before.id, change.replacement_id)
        there = forget(bank, before.id, purge=change.purge) if op == "forget" else written is not None
    store = cast("Store", before.store)
    return Edited(before.id, _DONE[op], bank.name, store, before, written, along, path=bank.path) if there else None


@within_limits
def _along(bank: Bank, op: Operation, memory_id: str) -> Mapping[str, int]:
    if op != "forget":
        return {}
    with bank.reading() as connection:
        return hanging_on(connection, memory_id)


def undo(bank: Bank | None, done: Edited, *, force: bool = False) -> bool:
    """Undo an update or an invalidation in its bank; tell whether the memory was still there.

    Raises
    ------
    EditRefusedError
        What was done cannot be undone, or the bank is not there any more.
    ChangedSinceError
        The memory was changed again since, and ``force`` was not given.
    """
    if bank is None or done.undo is None:
        raise EditRefusedError(
            f"The edit of memory {done.id} cannot be undone.",
            where=f"bank {done.bank}" if done.bank else None,
            hint="only an update or an invalidation can, while its bank is there",
        )
    return restore(bank, done.undo, force=force)


def find_in(banks: Iterable[Bank], memory_id: str) -> Memory:
    """Return a memory in full from the first bank that has it (R-13).

    Raises
    ------
    MemoryNotFoundError
        No bank has it.
    """
    for bank in banks:
        if memory := find(bank, memory_id):
            return memory
    raise MemoryNotFoundError(text.memory_missing(memory_id), hint=LISTED)


def read_address(banks: Iterable[Bank], url: str) -> str:
    """Return the page behind ``memory://<id>``; a path behind the id is passed over (R-13, M-05)."""
    memory_id = text.address_id(url)
    if memory_id in ("", "root"):
        raise MemoryToolkitError(text.unreadable(url, "mnemopi"), hint=LISTED)
    return page(find_in(banks, memory_id))


def page(memory: Memory) -> str:
    """Return a memory as a page: a header with what is known of it, then the whole text (M-05)."""
    known = {
        "id": memory.id,
        "bank": memory.bank,
        "store": memory.store,
        "source": memory.source,
        "timestamp": memory.timestamp,
        "created_at": memory.created_at,
        "importance": None if memory.importance is None else number_text(memory.importance),
        "veracity": memory.veracity,
        "session_id": memory.session_id,
        "metadata": json_text(memory.metadata) if memory.metadata else None,
    }
    header = "\n".join(f"{name}: {value}" for name, value in known.items() if value)
    return f"---\n{header}\n---\n\n{memory.content}"


def _check_unchanged(now: Memory | None, base: str, bank: Bank) -> None:
    if now is None or now.content != base:
        raise EditRefusedError(
            "The memory was changed or removed by somebody else meanwhile; nothing was written.",
            where=f"bank {bank.name}",
            hint="read it again, then edit",
        )


def _check_whole(before: Memory, content: str, preview_chars: int) -> None:
    if content != before.content and content == clip(before.content, preview_chars):
        raise EditRefusedError(
            f"The new text of memory {before.id} is its cut preview; the rest of the memory would be lost.",
            where=f"bank {before.bank}",
            hint="Edit the full text, or force the edit.",
        )
