"""Which kinds of case are known, and the one table of what is not supported yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ipy_memory.clock import FixedClock

if TYPE_CHECKING:
    from pathlib import Path

UNSUPPORTED_KINDS: Mapping[str, str] = {}
"""Pattern of a kind -> what is missing."""

UNSUPPORTED_OPERATIONS: Mapping[str, frozenset[str]] = {}
"""Pattern of a kind -> the step operations (``op``, or ``fn``) that are missing."""


@dataclass(frozen=True)
class Case:
    """One case as written, and where to play it.

    ``header`` is the file without its cases. ``expected`` may be read only to learn which keys were recorded.
    """

    kind: str
    name: str
    input: Any
    expected: Any
    header: Mapping[str, Any]
    corpus: Path
    scratch: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def clock(self, now: str | None = None) -> FixedClock:
        """Return a stopped clock at the file's instant (or another) in the file's zone."""
        return FixedClock(now or self.header["now"], ZoneInfo(self.header.get("tz") or "UTC"))


Adapter = Callable[[Case], Any]
_ADAPTERS: dict[str, Adapter] = {}


def kind(*patterns: str) -> Callable[[Adapter], Adapter]:
    """Register an adapter for the kinds that match one of the patterns."""

    def register(adapter: Adapter) -> Adapter:
        for pattern in patterns:
            _ADAPTERS[pattern] = adapter
        return adapter

    return register


def _lookup(table: Mapping[str, Any], name: str) -> Any:
    if name in table:
        return table[name]
    patterns = sorted((p for p in table if fnmatchcase(name, p)), key=len, reverse=True)
    return table[patterns[0]] if patterns else None


def adapter_for(name: str) -> Adapter | None:
    """Return the adapter of a kind, or ``None`` when there is none (or the kind is declared unsupported)."""
    if _lookup(UNSUPPORTED_KINDS, name) is not None:
        return None
    found: Adapter | None = _lookup(_ADAPTERS, name)
    return found


def unsupported_operation(name: str, case_input: Any) -> str | None:
    """Return the first operation of a case that is declared unsupported."""
    missing = _lookup(UNSUPPORTED_OPERATIONS, name) or frozenset()
    if not isinstance(case_input, dict) or not missing:
        return None
    steps = [*(case_input.get("setup") or {}).get("steps", ()), *case_input.get("steps", ())]
    used = [step.get("op") for step in steps] + [case_input.get("fn")]
    return next((op for op in used if op in missing), None)
