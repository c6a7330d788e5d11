"""What the user may want to know of a Hindsight server beside the agent's tools: its banks and the work it took on.

Reads only: a bank that is not there yet is not made by looking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.hindsight.client import listed, odd_answer
from ipy_memory.backends.hindsight.outbox import SENDING, WAITING
from ipy_memory.backends.hindsight.request import MISSING_BANK_HINT
from ipy_memory.errors import HindsightError, MemoryToolkitError, safe_line
from ipy_memory.jscompat.dates import shown_stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.backends.hindsight.bank import Service

BANKS_A_PAGE = 50
OPERATIONS_A_PAGE = 20
MAX_DOCUMENTS = 100
"""So many of a bank's newest documents are looked at for such as gave no memory."""

NOTHING_RECALLABLE = "stored, but nothing recallable"


@dataclass(frozen=True, slots=True)
class RemoteBank:
    """One bank of the server; ``None`` where the server does not say."""

    name: str
    memories: int | None
    last_write: str | None
    in_use: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """A piece of work that the server took on: ``facts`` is how many memories came of it, as far as it says."""

    id: str
    kind: str
    status: str
    items: int | None = None
    facts: int | None = None
    created: str | None = None
    error: str | None = None

    @property
    def outcome(self) -> str:
        """What became of it, in words."""
        if self.error:
            return safe_line(f"{self.status}: {self.error}")
        if self.status == "completed" and self.facts == 0:
            return NOTHING_RECALLABLE
        if self.status == "completed" and self.facts is not None:
            return f"completed, {self.facts} {'memory' if self.facts == 1 else 'memories'}"
        return "queued" if self.status == "pending" else self.status


def banks(service: Service, page: int = 1) -> tuple[list[RemoteBank], int]:
    """Return one page of the server's banks, and how many there are."""
    found = service.client.list_banks(limit=BANKS_A_PAGE, offset=(page - 1) * BANKS_A_PAGE)
    entries = [
        entry
        for entry in listed("listBanks", found, service.client.origin, "banks")
        if isinstance(entry, dict) and isinstance(entry.get("bank_id"), str)
    ]
    total = _whole(found.get("total"))
    if total is None:  # an older server gives all at once
        total = len(entries)
        entries = entries[(page - 1) * BANKS_A_PAGE : page * BANKS_A_PAGE]
    rows = [
        RemoteBank(
            entry["bank_id"],
            _whole(entry.get("fact_count")),
            _text(entry.get("last_write_at")) or _text(entry.get("updated_at")),
            entry["bank_id"] == service.bank,
        )
        for entry in entries
    ]
    return rows, total


def operations(service: Service, page: int = 1) -> tuple[list[Operation], int]:
    """Return one page of the operations of a bank, newest first, and their number; none without a bank."""
    offset = (page - 1) * OPERATIONS_A_PAGE
    try:
        found = service.client.list_operations(service.bank, limit=OPERATIONS_A_PAGE, offset=offset)
    except HindsightError as error:
        if error.status_code == 404:
            return [], 0
        raise
    rows = [
        _operation(entry)
        for entry in listed("listOperations", found, service.where, "operations")
        if isinstance(entry, dict)
    ]
    total = _whole(found.get("total"))
    return rows, len(rows) if total is None else total


def operation(service: Service, operation_id: str) -> Operation:
    """Return how far one operation has come."""
    found = service.client.get_operation(service.bank, operation_id)
    if not isinstance(found, dict):
        raise odd_answer("getOperation", service.where)
    return _operation({"operation_id": operation_id} | found)


def barren_documents(service: Service) -> list[str]:
    """Return the ids of the newest documents of which the server made no memory."""
    try:
        found = service.client.list_documents(service.bank, limit=MAX_DOCUMENTS)
    except HindsightError as error:
        if error.status_code == 404:
            return []
        raise
    entries = [entry for entry in listed("listDocuments", found, service.where) if isinstance(entry, dict)]
    return [str(entry.get("id")) for entry in entries if _whole(entry.get("memory_unit_count")) == 0]


def _operation(entry: dict[str, Any]) -> Operation:
    """Return an operation; the reason of a failure may stand with a part of the work only."""
    result, progress = _object(entry.get("result_metadata")), _object(entry.get("progress"))
    children = [child for child in entry.get("child_operations") or () if isinstance(child, dict)]
    facts = _whole(result.get("unit_ids_count"))
    return Operation(
        _text(entry.get("operation_id")) or _text(entry.get("id")) or "",
        _text(entry.get("operation_type")) or _text(entry.get("task_type")) or "",
        _text(entry.get("status")) or "unknown",
        _whole(entry.get("items_count")) or _whole(result.get("items_count")),
        _whole(_object(progress.get("detail")).get("facts_committed")) if facts is None else facts,
        _text(entry.get("created_at")),
        _text(entry.get("error_message"))
        or next(filter(None, (_text(c.get("error_message")) for c in children)), None),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


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
        found = _checked(
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
            lambda: f"version {_shown(_checked('version', client.version(), where, 'api_version').get('api_version'))}",
        ),
        ("health", lambda: _health(_checked("health", client.health(), where, "status"))),
        ("bank", lambda: _bank(bank, _checked("getBankStats", client.get_bank_stats(bank), where, "total_nodes"))),
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
    found, _ = operations(backend.service)
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


def _checked(operation: str, answer: Any, where: str, key: str) -> Mapping[str, Any]:
    if not isinstance(answer, dict) or key not in answer:
        raise odd_answer(operation, where)
    return answer


def _shown(value: Any) -> str:
    return "not said" if value is None else str(value)
