"""Looking into a backend that is neither the local engine nor a server: all it gives is hits and stored memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.backends.base import RecallRequest
from ipy_memory.jscompat.dates import covered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.backends.base import Backend
    from ipy_memory.model import Memory
    from ipy_memory.session import MemorySession

_FIELDS = {"session": "session_id"}
_FAR = (float("-inf"), float("inf"))


def plain_backend(session: MemorySession) -> Backend | None:
    """Return the session's backend if it is a registered one; ``None`` for the local engine and for a server."""
    backend = session.live_backend()
    return None if backend.name in {"mnemopi", "hindsight"} else backend


def stored(backend: Backend, bank: str | None, where: Mapping[str, str]) -> list[Memory]:
    """Return the stored memories that pass every filter, newest first.

    Parameters
    ----------
    backend
        A registered one.
    bank
        One bank by name; by default those in scope.
    where
        Filters by the names that browsing has; ``since`` and ``until`` are instants, both included.
    """
    return [memory for memory in backend.stored(bank) if all(_passes(memory, *one) for one in where.items())]


def _passes(memory: Memory, name: str, value: str) -> bool:
    if name == "text":
        return value.casefold() in memory.content.casefold()
    if name == "about":
        return value in memory.about
    if name in {"since", "until"}:
        made, asked = covered(memory.timestamp or "") or _FAR, covered(value) or _FAR
        return made[0] >= asked[0] if name == "since" else made[0] <= asked[1]
    return bool(getattr(memory, _FIELDS.get(name, name)) == value)


def verdict(backend: Backend, memory_id: str, query: str) -> dict[str, Any]:
    """Return whether a memory is among the hits of a query; a registered backend gives no further reasons.

    Raises
    ------
    MemoryNotFoundError
        There is no memory of this id.
    """
    hits = backend.recall(RecallRequest(query, count=False)).hits
    memory = backend.memory(memory_id)
    known = {"id": memory.id, "bank": memory.bank, "store": memory.store, "content": memory.content}
    for place, hit in enumerate(hits, 1):
        if hit.id == memory.id:
            return known | {
                "verdict": "returned",
                "reason": f"hit {place} of {len(hits)}",
                "place": place,
                "score": hit.score,
            }
    return known | {"verdict": "not returned", "reason": f"not among the {len(hits)} hits for this query"}


def names(backend: Backend) -> Sequence[str]:
    """Return the banks of a registered backend: what its status lists, or the one that is written."""
    listed = backend.status().get("banks")
    return [str(name) for name in listed] if isinstance(listed, list | tuple) else [backend.retain_bank]
