"""What the audit reads and what it gives: the rows, one finding, and the form of a rule."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ipy_memory.ranking.words import Languages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.model import Memory

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
"""The worst first."""

DERIVED = frozenset({"fact", "annotation", "entity", "triple"})
"""Stores of what was made from memories."""

_ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a user may want to clean up.

    Attributes
    ----------
    finding
        Name of the finding: its kind and a hash of the texts. It stays the same as long as the texts do.
    id, bank
        The memory that ``action`` is proposed for, by the id that a recall shows.
    other
        Further memories that take part: the rest of a cluster, the newer statement, the source of a fact.
    evidence
        Why, in words. At most four characters of a secret are shown.
    action
        ``invalidate``, ``forget``, ``merge-into`` (the others go into ``id``), ``redact``, or ``review``.
    reversible
        Whether the action can be undone.
    """

    finding: str
    kind: str
    severity: Severity
    id: str
    bank: str
    other: tuple[str, ...]
    evidence: str
    action: str
    reversible: bool


Tick = Callable[[], object]
"""Called once for each row that a rule has looked at."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding: its name, what it looks for, and the function that looks.

    The function takes the rows and a :data:`Tick`, and changes nothing.
    """

    kind: str
    looks_for: str
    find: Callable[[Rows, Tick], Iterable[Finding]]


@dataclass(frozen=True)
class Rows:
    """The rows of every bank in scope, and the time of the audit in milliseconds."""

    every: Sequence[Memory]
    now_ms: float

    @cached_property
    def live(self) -> Sequence[Memory]:
        """Memories that a recall can give: not facts, and neither replaced nor expired."""
        return [row for row in self.every if row.store not in DERIVED and row.state in {None, "live"}]

    @cached_property
    def languages(self) -> Languages:
        """The languages that the memories are written in."""
        return Languages.of_rows(row.content for row in self.live)

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of all memories."""
        return frozenset(row.id for row in self.every if row.store not in DERIVED)


def finding(
    kind: str,
    row: Memory,
    evidence: str,
    *,
    severity: Severity,
    action: str,
    other: Sequence[Memory] = (),
    named: Sequence[str] = (),
) -> Finding:
    """Return a finding in a row; ``other`` are rows that take part, ``named`` further ids."""
    source = ""
    if row.about and not other:
        named = (*named, *row.about)
        source = f"; made from {', '.join(row.about[:3])}{' …' if len(row.about) > 3 else ''}"
    ids = dict.fromkeys((*(one.id for one in other), *named))
    return Finding(
        finding=name_of(kind, (row.content, *(one.content for one in other))),
        kind=kind,
        severity=severity,
        id=row.id,
        bank=row.bank,
        other=tuple(ids),
        evidence=evidence + source,
        action=action,
        reversible=action not in {"redact", "forget"},
    )


def name_of(kind: str, texts: Iterable[str]) -> str:
    """Return the name of a finding, which depends on its kind and on the texts, in any order."""
    whole = hashlib.sha256()
    for text in sorted(texts):
        whole.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return f"{kind}-{whole.hexdigest()[:_ID_DIGITS]}"


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Return findings with the worst first, those of one kind together."""
    return sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.bank, one.id, one.finding))
