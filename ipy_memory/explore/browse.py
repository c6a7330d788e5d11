"""Stored memories of either backend as a frame: filtered, a page at a time, with what replaced what."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.filters import instant
from ipy_memory.backends.mnemopi.store import browse as listing
from ipy_memory.errors import BankError, MemoryNotFoundError, ToolInputError
from ipy_memory.explore import local, remote
from ipy_memory.explore.local import chosen_targets, local_backend, open_banks, readable, server_backend
from ipy_memory.text import bank_failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.backends.mnemopi.backend import MnemopiBackend
    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Memory
    from ipy_memory.session import MemorySession

OF_SERVERS = ("tag", "document")
"""Filters by what local banks do not keep."""

PAGE = 1000
"""How many rows a page has."""
_MOST = 1 << 60


def memories(
    session: MemorySession,
    bank: str | None = None,
    where: Mapping[str, Any] | None = None,
    *,
    store: str | Sequence[str] | None = None,
    limit: int | None = PAGE,
    offset: int = 0,
) -> DataFrame:
    """Return stored memories as a frame, newest first; nothing is counted or written.

    Parameters
    ----------
    session
        On either backend.
    bank
        One bank by the name it has on disk or on the server, ``"*"`` for all under the database folder; by default
        those that a recall asks.
    where
        Filters, all of which must hold: ``id``, ``source``, ``type``, ``veracity``, ``session`` (id), ``cwd``,
        ``state`` (``live``, ``superseded``, ``expired``), ``about`` (id of the memory that a row was made from),
        ``since`` and ``until`` (dates or times, both included; UTC without a zone; also objects of datetime, pandas
        and NumPy), ``text`` (part of the content, in any case). On a server also ``tag`` (all of several) and
        ``document``.
    store
        Some of ``working``, ``episodic`` (the memories, by default), ``fact``, ``annotation``, ``entity``, ``triple``;
        ``"all"`` for every one. A server keeps only memories.
    limit, offset
        The page; ``limit=None`` for all. ``attrs`` say ``total`` and ``next_offset``.
    """
    from ipy_memory.frames import build

    asked = checked(where)
    found = find(session, bank, asked, stores_of(store), limit=limit, offset=offset)
    frame = build.memories_frame(found.memories, tz=session.clock.tz)
    frame.attrs |= {
        **session.provenance(""),
        "bank": bank,
        "where": asked,
        "total": found.total,
        "offset": offset,
        "next_offset": found.next_offset,
        "problems": list(found.problems),
    }
    return frame


def page_notes(shown: int, total: int, offset: int, next_offset: int | None, number: int) -> list[str]:
    """Return which rows a page shows, and how to see further ones."""
    notes = [f"Rows {offset + 1} to {offset + shown} of {total}."] if shown else []
    return notes if next_offset is None else [*notes, f"Further rows: --page {number + 1}"]


def nothing(where: Mapping[str, Any]) -> str:
    """Return what is said of a page without rows."""
    return "No such memories." if where else "No memories yet."


def find(
    session: MemorySession,
    bank: str | None,
    where: Mapping[str, str],
    stores: Sequence[str],
    *,
    limit: int | None,
    offset: int,
) -> listing.Page:
    """Return a page of rows."""
    if not (limit is None or _is_count(limit, 1)) or not _is_count(offset, 0):
        raise ToolInputError(
            "memories: limit must be a whole number of at least 1 and offset one of at least 0",
            hint="limit=None gives all rows",
        )
    if served := server_backend(session):
        bank = bank or served.retain_bank
        return remote.page(served, bank, where, limit=limit, offset=offset, tz=session.clock.tz)
    if other := local.plain_backend(session):
        rows = local.stored(other, bank, where)
        return listing.Page(tuple(rows[offset:][:limit]), len(rows), offset)
    backend = local_backend(session, "browsing")
    for name in OF_SERVERS:
        if name in where:
            raise backend.refusal(f"--{name}", "its banks keep no tags and no documents")
    with backend.banks.lock:
        return _local_page(backend, bank, where, stores, limit, offset)


def _local_page(
    backend: MnemopiBackend,
    bank: str | None,
    where: Mapping[str, str],
    stores: Sequence[str],
    limit: int | None,
    offset: int,
) -> listing.Page:
    """Return a page over banks that are opened one after the other; one that cannot be read is left out and named."""
    targets = chosen_targets(backend, bank)
    total, keys = 0, []
    failed: list[tuple[str, BankError]] = []
    answered = False
    for target, opened in readable(backend, targets):
        try:
            if isinstance(opened, BankError):
                raise opened
            most = None if limit is None else limit + offset
            more, found = listing.keys_of(opened, targets.index(target), stores, where, most)
        except BankError as error:
            failed.append((target.name, error))
        else:
            answered = True
            total += more
            keys += found
    if failed and not answered:
        raise failed[0][1]
    chosen = listing.choose(keys, limit=limit, offset=offset)
    rows: dict[int, Mapping[tuple[int, int], Memory]] = {}
    problems = tuple(bank_failed(name, error.message) for name, error in failed)
    needed = [targets[number] for number in sorted({-place for _, place, _, _ in chosen})]
    for target, opened in readable(backend, needed):
        if not isinstance(opened, BankError):
            number = targets.index(target)
            rows[number] = listing.rows_of(opened, number, chosen)
    return listing.Page(listing.in_order(chosen, rows), total, offset, problems)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= _MOST


def chain(session: MemorySession, memory_id: str, bank: str | None = None) -> DataFrame:
    """Return what :func:`chain_of` does as a frame; ``attrs["missing"]`` is the id that is missing."""
    from ipy_memory.frames import build

    found, missing = chain_of(session, memory_id, bank)
    frame = build.memories_frame(found, tz=session.clock.tz)
    frame.attrs["missing"] = missing
    return frame


def chain_of(session: MemorySession, memory_id: str, bank: str | None = None) -> tuple[list[Memory], str | None]:
    """Return a memory with all that it replaced and all that replaced it, the oldest first.

    It is looked for where a recall asks, or in one bank; what comes before and after it, in every bank in scope.

    Returns
    -------
    memories : list of Memory
        The chain.
    missing : str or None
        The id of the next one where no bank in scope has it.

    Raises
    ------
    MemoryNotFoundError
        No bank that was asked has the id.
    """
    backend = local_backend(session, "a chain of replacements")
    with backend.banks.lock:
        scope = list(open_banks(backend, backend.recall_targets()))
        for one in open_banks(backend, chosen_targets(backend, bank)):
            if start := _by_id([one], memory_id):
                found = _chain(list(dict.fromkeys([one, *scope])), start)
                following = found[-1].superseded_by
                return found, None if following in {memory.id for memory in found} else following
    if bank is None:
        backend.refuse_elsewhere("chain", memory_id)
    raise MemoryNotFoundError(f"No memory has the id {memory_id}.", hint="%memory browse lists them")


def chain_notes(missing: str | None) -> list[str]:
    """Return what is said of a chain whose next memory is missing."""
    return [f"Memory {missing}, which comes next, is in no bank in scope."] if missing else []


def _chain(banks: Sequence[Bank], start: Memory) -> list[Memory]:
    """Return the line through a memory, whose bank is the first; one that goes in a circle is walked once."""
    found = {start.id: start}
    newer = [start]
    while (after := newer[-1].superseded_by) and after not in found and (memory := _by_id(banks, after)):
        newer.append(memory)
        found[memory.id] = memory
    older: list[Memory] = []
    waiting = [start.id]
    while waiting:
        replaced = waiting.pop(0)
        for memory in (one for bank in banks for one in listing.replaced_by(bank, replaced)):
            if memory.id not in found:
                found[memory.id] = memory
                older.append(memory)
                waiting.append(memory.id)
    return [*reversed(older), *newer]


def _by_id(banks: Sequence[Bank], memory_id: str) -> Memory | None:
    for bank in banks:
        if found := listing.page([bank], listing.MEMORY_STORES, {"id": memory_id}, limit=1).memories:
            return found[0]
    return None


def checked(where: Mapping[str, Any] | None) -> dict[str, str]:
    """Return filters as texts, times as instants; an unknown or unreadable one is an error that says what is valid."""
    found = {}
    for name, value in (where or {}).items():
        if name not in (*listing.FILTERS, *OF_SERVERS):
            known = ", ".join((*listing.FILTERS, *OF_SERVERS))
            raise ToolInputError(f"memories: there is no filter {name!r}.", hint=f"there are {known}")
        if value is None:
            continue
        text = instant("memories", name, value) if name in {"since", "until"} else value
        if name == "tag" and isinstance(value, list | tuple):
            text = ",".join(value)
        if not isinstance(text, str):
            raise ToolInputError(
                f"memories: filter {name!r} takes a text, not {type(value).__name__}", hint="write it in quotes"
            )
        if name == "state" and text not in STATES:
            raise ToolInputError(f"memories: no memory is {text!r}.", hint=f"states are {', '.join(STATES)}")
        found[name] = text
    return found


STATES = ("live", "superseded", "expired")
"""What a memory can be."""


def stores_of(store: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the stores that were asked for."""
    if store is None:
        return listing.MEMORY_STORES
    if store == "all":
        return listing.STORES
    asked = (store,) if isinstance(store, str) else tuple(store)
    for one in asked:
        if one not in listing.STORES:
            raise ToolInputError(
                f"memories: there is no store {one!r}.", hint=f"there are all, {', '.join(listing.STORES)}"
            )
    return asked
