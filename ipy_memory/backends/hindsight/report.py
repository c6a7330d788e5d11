"""How a Hindsight bank and its server are, in words a person reads; asks only, and makes no bank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.hindsight import admin
from ipy_memory.backends.hindsight.client import odd_answer
from ipy_memory.backends.hindsight.outbox import SENDING, WAITING
from ipy_memory.backends.hindsight.request import MISSING_BANK_HINT
from ipy_memory.errors import HindsightError, MemoryToolkitError, safe_line
from ipy_memory.jscompat.dates import shown_stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ipy_memory.backends.hindsight.backend import HindsightBackend

_COUNTS = (
    ("documents", "total_documents"),
    ("operations under way", "pending_operations"),
    ("operations that failed", "failed_operations"),
)
_TIMES = (
    ("last write", "last_memory_write_at"),
    ("last consolidation", "last_consolidated_at"),
)


NOT_THERE = "not there yet: the first retain makes it."


def stats(backend: HindsightBackend) -> str:
    """Return what the bank holds."""
    bank = backend.retain_bank
    try:
        found = _object(
            "getBankStats", backend.service.client.get_bank_stats(bank), backend.service.where, "total_nodes"
        )
    except HindsightError as error:
        if error.status_code != 404:
            raise
        return f"Bank {bank} is {NOT_THERE}"
    kinds = found.get("nodes_by_fact_type")
    by_kind = ", ".join(f"{kind} {_shown(n)}" for kind, n in kinds.items()) if isinstance(kinds, dict) else ""
    lines = [
        f"Bank {bank} at {backend.service.client.origin}",
        f"- memories: {_shown(found.get('total_nodes'))}" + (f" ({by_kind})" if by_kind else ""),
        *(f"- {name}: {_shown(found.get(key))}" for name, key in _COUNTS),
        *(f"- {name}: {shown_stamp(_shown(found.get(key)), None)}" for name, key in _TIMES),
        f"- waiting here or not known to have arrived: {len(backend.queue_rows())}",
    ]
    return "\n".join(safe_line(line) for line in lines)


@dataclass(frozen=True, slots=True)
class Check:
    """What one part of the way to a bank says, and whether it is well."""

    name: str
    said: str
    good: bool = True


def diagnosis(backend: HindsightBackend) -> str:
    """Return what each part of the way to the bank says, a failing one with its reason; never raises for one."""
    lines = [f"Hindsight at {backend.service.client.origin}"]
    return "\n".join(lines + [f"- {one.name}: {one.said}" for one in checks(backend)])


def checks(backend: HindsightBackend) -> list[Check]:
    """Ask each part of the way to the bank; one that fails says its reason."""
    client, bank, where = backend.service.client, backend.retain_bank, backend.service.where
    asked: tuple[tuple[str, Callable[[], str | Check]], ...] = (
        (
            "server",
            lambda: f"version {_shown(_object('version', client.version(), where, 'api_version').get('api_version'))}",
        ),
        ("health", lambda: _health(_object("health", client.health(), where, "status"))),
        ("bank", lambda: _bank(bank, _object("getBankStats", client.get_bank_stats(bank), where, "total_nodes"))),
        ("accepted work", lambda: _work(backend)),
        ("queue", lambda: _queue(backend)),
    )
    return [_told(name, ask) for name, ask in asked]


def _told(name: str, ask: Callable[[], str | Check]) -> Check:
    try:
        said = ask()
    except MemoryToolkitError as error:
        if isinstance(error, HindsightError) and error.status_code == 404 and error.hint == MISSING_BANK_HINT:
            return Check(name, NOT_THERE)
        hint = f" – {error.hint}" if error.hint else ""
        return Check(name, safe_line(f"not well: {error.message}{hint}"), good=False)
    found = said if isinstance(said, Check) else Check(name, said)
    return replace(found, said=safe_line(found.said))


def _work(backend: HindsightBackend) -> Check:
    """Return what came of what the server took on: it may fail after it was accepted."""
    found, _ = admin.operations(backend.service)
    troubled = [one for one in found if one.error or one.status in {"failed", "cancelled"}]
    if not troubled:
        return Check("accepted work", "no failure among the newest operations")
    said = f"{len(troubled)} of the {len(found)} newest operations failed or are tried again: see %memory operations"
    return Check("accepted work", said, good=False)


def _queue(backend: HindsightBackend) -> Check:
    rows = backend.queue_rows()
    if not rows:
        return Check("queue", "nothing waits")
    moving = all(row.state in {WAITING, SENDING} for row in rows)
    return Check("queue", f"{len(rows)} not known to have arrived: see %memory queue", good=moving)


def _health(found: Mapping[str, Any]) -> Check:
    said = f"{_shown(found.get('status'))}, database {_shown(found.get('database'))}"
    return Check("health", said, good=found.get("status") == "healthy")


def _bank(bank: str, found: Mapping[str, Any]) -> str:
    return f"{bank}, {_shown(found.get('total_nodes'))} memories"


def _object(operation: str, answer: Any, where: str, key: str) -> Mapping[str, Any]:
    if not isinstance(answer, dict) or key not in answer:
        raise odd_answer(operation, where)
    return answer


def _shown(value: Any) -> str:
    return "not said" if value is None else str(value)
