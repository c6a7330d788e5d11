"""The ``memory_edit`` decisions over several banks, and the page behind ``memory://<id>``."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from ipy_memory import text
from ipy_memory.backends.base import Edit, Edited, Operation, Status
from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.store import browse
from ipy_memory.backends.mnemopi.store.delete import hanging_on
from ipy_memory.backends.mnemopi.store.memories import find, forget, invalidate, restore, update
from ipy_memory.errors import EditRefusedError, MemoryNotFoundError, MemoryToolkitError, ToolInputError
from ipy_memory.jscompat.strings import clamp01, clip

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.model import Memory

_DONE: Mapping[Operation, Status] = {"update": "updated", "forget": "deleted", "invalidate": "invalidated"}

LISTED = "%memory browse lists ids"
"""Where to look for an id."""


def edit(
    banks: Iterable[Bank],
    asked: Edit,
    *,
    preview_chars: int | None = None,
    prepare: Callable[[Bank], Bank] = lambda bank: bank,
) -> Edited:
    """Carry out one ``memory_edit``; the first bank that takes it wins.

    Parameters
    ----------
    banks
        First the bank that is written, then the recall banks. No further one is taken once a bank
        takes the edit; they may be open for reading.
    asked
        What is done to which memory; an importance is held between 0 and 1.
    preview_chars
        Refuse an update whose content is the memory's own preview of this length; ``None`` asks nothing.
    prepare
        Returns the bank opened for writing; called when it is certain that it will be written.

    Raises
    ------
    ToolInputError
        An update without content and importance.
    EditRefusedError
        The update would cut the memory to its preview, or overwrite what somebody else has written since.
    """
    if asked.op == "update" and asked.content is None and asked.importance is None:
        raise ToolInputError(text.EDIT_NEEDS_SOMETHING, hint="give one of the two, or both")
    refused: Edited | None = None
    for bank in banks:
        before = find(bank, asked.id)
        if before is None:
            continue
        store = before.store
        if store == "fact":
            refused = refused or Edited(asked.id, "not_editable", bank.name, store, before)
            continue
        if asked.content is not None and preview_chars is not None:
            _check_whole(before, asked.content, preview_chars)
        if editable(bank, before, asked.op):
            staying = () if asked.purge else summaries_of(bank, [asked.id]).get(asked.id, ())
            if asked.dry_run:
                along = _along(bank, asked.op, asked.id)
                return Edited(asked.id, _DONE[asked.op], bank.name, store, before, along=along, summaries=staying)
            if done := _carried_out(prepare(bank), asked, before):
                return replace(done, summaries=staying)
        refused = refused or Edited(asked.id, "not_found", bank.name, store, before)
    return refused or Edited(asked.id, "not_found")


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
    """Return whether an operation can take a memory: of this bank's session, or in reach for an invalidation."""
    own = memory.session_id == bank.name
    if op == "invalidate":
        return memory.store != "fact" and (own or memory.scope == "global")
    return memory.store == "working" and own


def _carried_out(bank: Bank, asked: Edit, before: Memory) -> Edited | None:
    """Write one edit; ``None`` if the memory is gone by now."""
    written = None
    along = _along(bank, asked.op, before.id)
    # A purge rewrites the whole file, which no transaction can hold.
    with nullcontext() if asked.purge else bank.transaction():
        if asked.base is not None:
            _check_unchanged(find(bank, before.id), asked.base, bank)
        if asked.op == "update":
            weight = None if asked.importance is None else clamp01(asked.importance)
            written = update(bank, before.id, content=asked.content, importance=weight)
        elif asked.op == "invalidate":
            written = invalidate(bank, before.id, asked.replacement_id)
        there = forget(bank, before.id, purge=asked.purge) if asked.op == "forget" else written is not None
    if not there:
        return None
    return Edited(before.id, _DONE[asked.op], bank.name, before.store, before, written, along, path=bank.path)


@within_limits
def _along(bank: Bank, op: Operation, memory_id: str) -> Mapping[str, int]:
    if op != "forget":
        return {}
    with bank.reading() as connection:
        return hanging_on(connection, memory_id)


def undo(bank: Bank | None, done: Edited, *, force: bool = False) -> bool:
    """Undo an update or an invalidation in its bank; return whether the memory was still there.

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
    """Return a memory in full from the first bank that has it.

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
    """Return the page behind ``memory://<id>``; a path behind the id is passed over."""
    memory_id = text.address_id(url)
    if memory_id in ("", "root"):
        raise MemoryToolkitError(text.unreadable(url, "mnemopi"), hint=LISTED)
    return text.memory_page(find_in(banks, memory_id))


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
