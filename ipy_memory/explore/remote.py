"""What a Hindsight server's list of memories gives for browsing and for verdicts."""

from __future__ import annotations

import math
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.hindsight import parsing
from ipy_memory.backends.hindsight.admin import BANKS_A_PAGE
from ipy_memory.backends.hindsight.client import listed, odd_answer
from ipy_memory.backends.hindsight.subagent import require
from ipy_memory.backends.mnemopi.store.browse import Page
from ipy_memory.errors import HindsightError, MemoryNotFoundError, NotSupportedError
from ipy_memory.jscompat.dates import parse_ms, shown_stamp
from ipy_memory.jscompat.strings import json_text, number_text, round4
from ipy_memory.model import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ipy_memory.backends.hindsight.admin import RemoteBank
    from ipy_memory.backends.hindsight.backend import HindsightBackend

PAGE = 200
"""So many memories are asked for at once."""

STORE = "hindsight"
_BY_SERVER = frozenset({"type", "text", "state", "tag", "document"})
_STATES = {"live": "valid", "expired": "invalidated"}


def page(
    backend: HindsightBackend,
    bank: str,
    where: Mapping[str, str],
    *,
    limit: int | None,
    offset: int,
    tz: tzinfo | None,
) -> Page:
    """Return memories of a server's bank that pass every filter, in the server's order.

    The server filters by type, text, state, tag and document; by all else we do, reading the list page by page. The
    session's own bank has no memories before the first retain makes it.

    Raises
    ------
    NotSupportedError
        The server, an older one, did not filter by tag or document.
    BankNotFoundError
        The server has no bank of this name; the message names those that are near.
    """
    try:
        return _page(backend, bank, where, limit, offset, tz)
    except HindsightError as error:
        if error.status_code != 404:
            raise
        if bank != backend.retain_bank:
            require(backend.one_bank(bank).service)
        return Page((), 0, offset)


def _page(
    backend: HindsightBackend,
    bank: str,
    where: Mapping[str, str],
    limit: int | None,
    offset: int,
    tz: tzinfo | None,
) -> Page:
    state = where.get("state")
    if state is not None and state not in _STATES:
        return Page((), 0, offset)  # a server knows no superseded memories
    tags = where["tag"].split(",") if "tag" in where else None
    asked: dict[str, Any] = {
        "type": where.get("type"),
        "q": where.get("text"),
        "state": None if state is None else _STATES[state],
        "document_id": where.get("document"),
        "tags": tags,
        "tags_match": tags and "all_strict",
    }
    own = {name: value for name, value in where.items() if name not in _BY_SERVER}
    if own or limit is None:
        every = _filtered(_every(backend, bank, asked), where)
        passing = [memory for memory in every if _passes(memory, own, tz)]
        chosen = passing[offset:] if limit is None else passing[offset : offset + limit]
        return Page(tuple(chosen), len(passing), offset)
    found = backend.service.client.list_memories(bank, **asked, limit=limit, offset=offset)
    total = found.get("total") if isinstance(found, dict) else None
    memories = tuple(_filtered(_memories(found, bank, _where(backend, bank)), where))
    return Page(memories, total if isinstance(total, int) else offset + len(memories), offset)


def _filtered(memories: Iterable[Memory], where: Mapping[str, str]) -> Iterator[Memory]:
    """Yield memories, of which a server that knows the filters by tag and document gave no others."""
    tags, document = set(where["tag"].split(",")) if "tag" in where else set(), where.get("document")
    for memory in memories:
        if not tags <= set(memory.tags) or document not in {None, memory.document}:
            flag = "--document" if tags <= set(memory.tags) else "--tag"
            raise NotSupportedError(
                f"This server does not filter its list of memories by {flag}.",
                hint="servers from 1.1.0 on do; list the memories without it",
            )
        yield memory


def bank_notes(backend: HindsightBackend, found: Sequence[RemoteBank], page: int, total: int) -> list[str]:
    """Return where in the server's list a page of banks is, and whether the session's bank is missing."""
    notes = [pages(page, len(found), BANKS_A_PAGE, total)]
    if page == 1 and total == len(found) and not any(one.in_use for one in found):
        notes.append(f"Bank {backend.retain_bank}, which is in use, is not there yet: the first retain makes it.")
    return notes


def pages(page: int, shown: int, size: int, total: int) -> str:
    """Return where in a paged list a page is."""
    if not shown:
        return f"None of {total} on this page."
    first = (page - 1) * size + 1
    more = f"; --page {page + 1} shows more" if first + shown <= total else ""
    return f"{first} to {first + shown - 1} of {total}{more}."


def why(backend: HindsightBackend, memory_id: str, query: str) -> dict[str, Any]:
    """Return what can be said of one memory and a query: the server tells scores of its hits, and no reasons.

    Raises
    ------
    MemoryNotFoundError
        The bank has no such memory.
    """
    bank = backend.retain_bank
    hits = backend.recall(RecallRequest(query)).hits
    known = {"id": memory_id, "bank": bank, "store": STORE}
    for place, hit in enumerate(hits, 1):
        if hit.id == memory_id:
            score = "" if hit.score is None else f", score {number_text(round4(hit.score))}"
            reason = f"hit {place} of {len(hits)}{score}"
            return known | {"verdict": "returned", "reason": reason, "place": place, "score": hit.score}
    return known | _not_returned(backend, _memory(found(backend, bank, memory_id), bank), len(hits))


def found(backend: HindsightBackend, bank: str, memory_id: str) -> dict[str, Any]:
    """Return a memory as the server gives it, or raise :class:`MemoryNotFoundError`."""
    try:
        memory = backend.service.client.get_memory(bank, memory_id)
    except HindsightError as error:
        if error.status_code != 400:  # what is no UUID cannot be an id
            raise
        memory = None
    if not isinstance(memory, dict):
        raise MemoryNotFoundError(
            f"No memory has the id {memory_id}.", where=f"bank {bank}", hint="%memory browse lists ids"
        )
    if not isinstance(memory.get("text"), str):
        raise odd_answer("getMemory", _where(backend, bank))
    return memory


def _not_returned(backend: HindsightBackend, memory: Memory, hits: int) -> dict[str, str]:
    types, tags = backend.config.recall_types, set(backend.scope.recall_tags or ())
    if memory.state != "live":
        return {
            "verdict": "expired",
            "reason": f"expired or invalidated at {shown_stamp(memory.valid_until or '', None)}",
        }
    if memory.type is not None and types and memory.type not in types:
        return {"verdict": "out of reach", "reason": f"of type {memory.type}; asked for are {', '.join(types)}"}
    if tags and memory.tags and not tags & set(memory.tags):
        return {"verdict": "out of reach", "reason": f"tagged {', '.join(memory.tags)}, not {', '.join(sorted(tags))}"}
    return {
        "verdict": "not among the results",
        "reason": f"not among the server's {hits} results; the server gives no reason. Its budget is"
        f" {backend.config.recall_budget}, at most {number_text(backend.config.recall_max_tokens)} tokens",
    }


def _every(backend: HindsightBackend, bank: str, asked: Mapping[str, Any]) -> Iterator[Memory]:
    for offset in range(0, 10**9, PAGE):
        found = backend.service.client.list_memories(bank, **asked, limit=PAGE, offset=offset)
        yield from _memories(found, bank, _where(backend, bank))
        if len(listed("listMemories", found, _where(backend, bank))) < PAGE:
            return


def _where(backend: HindsightBackend, bank: str) -> str:
    return f"bank {bank} at {backend.service.client.origin}"


def _memories(answer: Any, bank: str, where: str) -> Iterator[Memory]:
    for entry in listed("listMemories", answer, where):
        if isinstance(entry, dict) and isinstance(entry.get("text"), str):
            yield _memory(entry, bank)


def _memory(entry: dict[str, Any], bank: str) -> Memory:
    hit = parsing.hit(entry, bank)
    metadata = hit.metadata or {}
    plain = {name: value for name in ("session_id", "cwd") if isinstance(value := metadata.get(name), str)}
    date, invalid = entry.get("date"), entry.get("invalidated_at")
    return Memory(
        id=hit.id or "",
        bank=bank,
        store=STORE,
        content=hit.content,
        source=hit.source,
        timestamp=hit.timestamp or (date if isinstance(date, str) and date else None),
        type=str(entry.get("fact_type") or hit.type or "") or None,
        session_id=plain.get("session_id"),
        metadata=json_text(metadata) if metadata else None,
        valid_until=invalid if isinstance(invalid, str) else None,
        tags=hit.tags,
        document=hit.document,
        state="expired" if entry.get("state") == "invalidated" else "live",
        cwd=plain.get("cwd"),
        about=tuple(one for one in entry.get("source_memory_ids") or () if isinstance(one, str)),
    )


def _passes(memory: Memory, where: Mapping[str, str], tz: tzinfo | None) -> bool:
    stamp = _instant(memory.timestamp, tz)
    tests: dict[str, Callable[[str], bool]] = {
        "id": lambda value: memory.id == value,
        "source": lambda value: memory.source == value,
        "veracity": lambda value: memory.veracity == value,
        "session": lambda value: memory.session_id == value,
        "cwd": lambda value: memory.cwd == value,
        "about": lambda value: value in memory.about,
        "since": lambda value: stamp >= _instant(value, UTC),
        "until": lambda value: stamp <= _instant(value, UTC),
    }
    return all(tests[name](value) for name, value in where.items())


def _instant(text: str | None, tz: tzinfo | None) -> float:
    """Return a time as a number; NaN, which is neither before nor after any other, where there is none."""
    ms = parse_ms(text or "", tz)
    return math.nan if ms is None else ms
