"""Hits, memories and other results as JSON objects: every field, dates in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.jscompat import dates
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from datetime import tzinfo

    from ipy_memory.model import Hit, Memory

_FIRST = ("id", "bank", "score", "date", "content")


def record(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses as objects, without the fields that are not shown."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: record(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): record(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [record(item) for item in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value) if isinstance(value, Path) else js.well_formed(str(value))


def moment(stamp: str | None, tz: tzinfo | None) -> str | None:
    """Return a stored time in UTC, ``None`` where it is no time."""
    ms = dates.parse_ms(stamp, tz) if stamp else None
    return None if ms is None else dates.iso(ms)


def hit_record(hit: Hit, tz: tzinfo | None, **more: Any) -> dict[str, Any]:
    """Return a hit, the most important fields first; ``more`` is added."""
    whole: dict[str, Any] = record(hit) | {"date": moment(hit.timestamp, tz)}
    subject, predicate = whole.pop("fact") or (None, None)
    return {name: whole[name] for name in _FIRST} | whole | {"subject": subject, "predicate": predicate} | more


def memory_record(memory: Memory, tz: tzinfo | None) -> dict[str, Any]:
    """Return a stored memory, the most important fields first."""
    whole: dict[str, Any] = record(memory) | {"date": moment(memory.timestamp, tz)}
    return {name: whole[name] for name in _FIRST if name in whole} | whole
