"""Ways to ask the same question: rankings, scopes, backends, limits, and settings with several values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from ipy_memory.clock import ProcessIds
from ipy_memory.errors import MagicError
from ipy_memory.ranking import RANKINGS
from ipy_memory.settings.table import SCOPINGS, SETTINGS

if TYPE_CHECKING:
    from ipy_memory.model import Hit
    from ipy_memory.session import MemorySession

DIMENSIONS = ("ranking", "scope", "backend", "limit")
"""What can vary besides settings."""
LIMIT = 8
"""The most hits of a variant, unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to ask: its name in tables, the ranking, the most hits, and the settings that differ."""

    name: str
    ranking: str = "agent"
    limit: int = LIMIT
    settings: Mapping[str, Any] = field(default_factory=dict)


def variants(session: MemorySession, by: str, limit: int | None = None) -> list[Variant]:
    """Return every combination of what varies.

    Parameters
    ----------
    session
        Its backend decides which scopes and rankings there are.
    by
        Names separated by commas: ``ranking``, ``scope``, ``backend``, ``limit=3,8``, or a setting with its values,
        such as ``mnemopi.noEmbeddings=true,false``. Empty: as the agent recalls.
    limit
        The most hits where the limit does not vary.

    Raises
    ------
    MagicError
        Something cannot vary, or has no value.
    """
    choices = {name: _values(name, values) for name, values in _parts(by).items()}
    found = []
    for combined in product(*choices.values()):
        asked = dict(zip(choices, combined, strict=True))
        ranking, most = asked.pop("ranking", "agent"), asked.pop("limit", limit or LIMIT)
        words = [str(value) for value in combined]
        backend = asked.pop("backend", session.chosen)
        settings: dict[str, Any] = {} if backend == session.chosen else {"memory.backend": backend}
        if "scope" in asked:
            settings[f"{backend}.scoping"] = asked.pop("scope")
        found.append(Variant(" ".join(words) or ranking, ranking, int(most), settings | asked))
    return found


def _parts(by: str) -> dict[str, list[str]]:
    """Return what varies with the values that are given for it."""
    found: dict[str, list[str]] = {}
    latest = ""
    for part in filter(None, (each.strip() for each in by.split(","))):
        name, equals, value = part.partition("=")
        if equals or part in DIMENSIONS:
            latest = name
            found.setdefault(name, []).extend([value] if equals else [])
        elif latest and found[latest]:
            found[latest].append(part)
        else:
            raise MagicError(
                f"{part!r} cannot vary", hint=f"use {', '.join(DIMENSIONS)}, or a setting with values, as in limit=3,8"
            )
    return found


def _values(name: str, given: Sequence[str]) -> list[Any]:
    usual: Mapping[str, Sequence[str]] = {
        "ranking": RANKINGS,
        "scope": SCOPINGS,
        "backend": ("mnemopi", "hindsight"),
    }
    if name not in DIMENSIONS and name not in SETTINGS:
        raise MagicError(f"there is no setting {name!r}", hint="%memory status lists settings by name")
    values = list(given) or list(usual.get(name, ()))
    if not values:
        raise MagicError(f"{name} needs values", hint=f"as in {name}=3,8")
    if name == "limit":
        if not all(value.isascii() and value.isdecimal() and int(value) for value in values):
            raise MagicError("a limit must be a whole number of at least 1", hint="as in limit=3,8")
        return [int(value) for value in values]
    if wrong := [value for value in values if name in usual and value not in usual[name]]:
        raise MagicError(f"{name} cannot be {wrong[0]!r}", hint=f"valid are {', '.join(usual[name])}")
    return values if name in usual else [_typed(value) for value in values]


def _typed(value: str) -> Any:
    """Return a setting's value as its type: true, false, a number, or text."""
    if value in {"true", "false"}:
        return value == "true"
    try:
        return int(value) if value.lstrip("-").isdecimal() else float(value)
    except ValueError:
        return value


@contextmanager
def opened(session: MemorySession, variant: Variant) -> Iterator[MemorySession]:
    """Open a session like another one under a variant's settings, with ids of its own; the same one if none differ."""
    if not variant.settings:
        yield session
        return
    made = type(session)(
        session.settings.with_overrides(variant.settings),
        cwd=session.cwd,
        agent_dir=session.agent_dir,
        env=session.env,
        clock=session.clock,
        ids=ProcessIds(),
        timers=session.timers,
        session_id=session.session_id,
        embedder=session.embedder,
    )
    made.install_backend()
    with made:
        yield made


def hits(session: MemorySession, variant: Variant, query: str) -> tuple[Hit, ...]:
    """Return what a variant gives for a query; nothing is counted."""
    return session.recall(query, ranking=variant.ranking, limit=variant.limit, touch=False).hits
