"""The table of rules, and the audit that applies them.

A rule of one's own is a :class:`~ipy_memory.audit.findings.Rule` in :data:`RULES` under its kind.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ipy_memory.audit.conflicts import conflicts
from ipy_memory.audit.duplicates import duplicates
from ipy_memory.audit.findings import SEVERITIES, Finding, Rows, Rule, in_order
from ipy_memory.audit.personal import personal
from ipy_memory.audit.secrets import secrets
from ipy_memory.audit.untidy import echoes, junk, orphans, oversized, stale
from ipy_memory.errors import ToolInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from ipy_memory.model import Memory

RULES: dict[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule("secrets", "passwords, tokens and keys", secrets),
        Rule("pii", "e-mail addresses, telephone numbers, cards, accounts, national ids", personal),
        Rule("duplicates", "memories that say the same", duplicates),
        Rule("conflicts", "memories that cannot both hold", conflicts),
        Rule("echoes", "memory blocks, output of tools and earlier recalls stored again", echoes),
        Rule("stale", "memories whose time has passed", stale),
        Rule("junk", "facts without a subject, fragments, bare answers", junk),
        Rule("orphans", "what was made from memories that are gone", orphans),
        Rule("oversized", "memories too large to be shown", oversized),
    )
}
"""Every rule by the kind of what it finds."""

_STEP = 500
"""After so many rows the progress is told."""


def audit(
    memories: Sequence[Memory],
    kinds: Sequence[str] = (),
    *,
    now_ms: float,
    rules: Mapping[str, Rule] = RULES,
    accepted: Container[str] = (),
    progress: Callable[[int, int], object] = lambda *_: None,
) -> list[Finding]:
    """Return what the rules find in memories, the worst first; nothing is changed.

    Parameters
    ----------
    memories
        Rows of every store, also those that were replaced.
    kinds
        Some of the kinds of ``rules``; all of them by default.
    now_ms
        The time of the audit, in milliseconds since 1970.
    accepted
        Names of findings that are left out.
    progress
        Told now and then how many of how many steps are done.

    Raises
    ------
    ToolInputError
        There is no such kind.
    """
    chosen = [rules[kind] for kind in checked_kinds(kinds, rules)]
    rows = Rows(memories, now_ms)
    whole = len(chosen) * max(1, len(memories))
    found: list[Finding] = []
    for number, rule in enumerate(chosen):
        before = number * max(1, len(memories))
        looked = 0

        def tick(before: int = before) -> None:
            nonlocal looked
            looked += 1
            if looked % _STEP == 0:
                progress(before + looked, whole)

        found += [one for one in rule.find(rows, tick) if one.finding not in accepted]
        progress(before + max(1, len(memories)), whole)
    return in_order(found)


def checked_kinds(kinds: Sequence[str], rules: Mapping[str, Rule] = RULES) -> list[str]:
    """Return the kinds that were asked for, each once and in the order of the table; all where none was."""
    if unknown := [kind for kind in kinds if kind not in rules]:
        raise ToolInputError(f"audit: there is no kind {unknown[0]!r}.", hint=f"there are {', '.join(rules)}")
    return [kind for kind in rules if kind in kinds or not kinds]


def summary(found: Sequence[Finding], memories: int) -> str:
    """Return in one sentence how much was found of each kind, the worst first."""
    looked = f"{memories} {'memory' if memories == 1 else 'memories'}"
    if not found:
        return f"Nothing found in {looked}."
    kinds = Counter(one.kind for one in found)
    severities = Counter(one.severity for one in found)
    listed = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    worst = ", ".join(f"{severities[name]} {name}" for name in SEVERITIES if severities[name])
    what = "finding" if len(found) == 1 else "findings"
    return f"{len(found)} {what} in {looked}: {listed} ({worst})."
