"""The audit of a session's memory: the rows of the banks in scope under the rules of :mod:`ipy_memory.audit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.audit import accepted
from ipy_memory.audit import rules as table
from ipy_memory.audit.findings import DERIVED, Finding
from ipy_memory.errors import MagicError, ToolInputError
from ipy_memory.explore.browse import find
from ipy_memory.explore.local import EVERY_BANK, server_backend
from ipy_memory.jscompat.dates import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ipy_memory.audit.findings import Rule
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.session import MemorySession

STORES = ("working", "episodic", "fact", "annotation")
"""What is looked at: memories, and the texts that were made from them."""

COLUMNS = tuple(one.name for one in fields(Finding))
SHOWN = ("kind", "severity", "id", "bank", "other", "evidence", "action", "finding")
"""The columns of a table for reading."""
NOTHING = "Nothing found."


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit gave: a summary, the findings with the worst first, and what should be known of them."""

    summary: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> list[dict[str, Any]]:
        """The findings as objects of JSON, in the order in which a program wants their fields."""
        first = ("kind", "id", "bank", "other", "severity", "evidence", "action")
        rows = (asdict(one) | {"other": list(one.other)} for one in self.findings)
        return [{name: row[name] for name in (*first, *row)} for row in rows]

    def frame(self) -> DataFrame:
        """Return the findings as a frame; ``attrs`` hold the summary and the notes."""
        from ipy_memory.frames import build

        dtypes = dict.fromkeys(COLUMNS, build.TEXT) | {"other": "object", "reversible": "bool"}
        values = {name: [getattr(one, name) for one in self.findings] for name in COLUMNS}
        found = build.table(values, dtypes)
        found.attrs |= {"summary": self.summary, "notes": list(self.notes)}
        return found


def audit(
    session: MemorySession,
    kinds: Sequence[str] = (),
    *,
    bank: str | None = None,
    accept: Sequence[str] = (),
    baseline: DataFrame | str | Path | None = None,
    rules: Mapping[str, Rule] = table.RULES,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> DataFrame:
    """Return what :func:`audited` finds as a frame; ``attrs["summary"]`` says it in one sentence."""
    return audited(session, kinds, bank=bank, accept=accept, baseline=baseline, rules=rules, progress=progress).frame()


def audited(
    session: MemorySession,
    kinds: Sequence[str] = (),
    *,
    bank: str | None = None,
    accept: Sequence[str] = (),
    baseline: DataFrame | str | Path | None = None,
    rules: Mapping[str, Rule] = table.RULES,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Audited:
    """Look for what a user may want to clean up; memories are neither changed nor counted.

    Parameters
    ----------
    session
        On any backend.
    kinds
        Kinds of findings, see :data:`ipy_memory.audit.rules.RULES`; all of them by default.
    bank
        One bank by its name, ``"*"`` for all under the database folder; by default those that a recall asks.
    accept
        Names of findings to leave out from now on, in this audit and in later ones.
    baseline
        Findings of an earlier audit, which are left out too: its frame, or a file with an object of JSON a line.
    rules
        The table of rules, where it is another one.
    progress
        Told how many of how many steps are done.

    Raises
    ------
    ToolInputError
        There is no such kind, or nothing of that name was found.
    """
    kinds = table.checked_kinds(kinds, rules)
    earlier = _names(baseline)
    known = accepted.accepted(session.agent_dir)
    if bank == EVERY_BANK and server_backend(session):
        raise ToolInputError("audit: a server's banks are looked at one by one.", hint="--bank names one")
    page = find(session, bank, {}, STORES, limit=None, offset=0)
    now = session.clock.now_ms()
    found = table.audit(page.memories, kinds, now_ms=now, rules=rules, progress=progress)
    names = {one.finding for one in found}
    if unknown := [name for name in accept if name not in names]:
        raise ToolInputError(
            f"audit: there is no finding {unknown[0]!r}.", hint="the column finding of %memory audit has the names"
        )
    notes = list(page.problems)
    if accept:
        new = accepted.accept(session.agent_dir, accept, iso(now))
        notes.append(f"{new} {'finding is' if new == 1 else 'findings are'} accepted now, and not shown any more.")
    left = tuple(one for one in found if one.finding not in known | earlier | set(accept))
    if (hidden := len(found) - len(left)) and not accept:
        notes.append(
            f"{hidden} more {'was' if hidden == 1 else 'were'} accepted before or {_is(hidden)} in the baseline."
        )
    number = sum(row.store not in DERIVED for row in page.memories)
    return Audited(table.summary(left, number), left, tuple(notes))


def asked(text: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the text and the flags of a command ask of :func:`audited`.

    Raises
    ------
    MagicError
        Two flags exclude each other.
    """
    if "all" in flags and "bank" in flags:
        raise MagicError("--all and --bank exclude each other", hint="leave one of the two flags out")
    return {
        "kinds": text.split(),
        "bank": EVERY_BANK if "all" in flags else flags.get("bank"),
        "accept": [name for name in flags.get("accept", "").replace(",", " ").split() if name],
        "baseline": flags.get("baseline"),
    }


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _names(baseline: DataFrame | str | Path | None) -> frozenset[str]:
    """Return the names of the findings of an earlier audit."""
    if baseline is None:
        return frozenset()
    if isinstance(baseline, str | Path):
        return accepted.baseline(baseline)
    if "finding" not in baseline.columns:
        raise ToolInputError("audit: the baseline has no column finding.", hint="it is the frame of an earlier audit")
    return frozenset(map(str, baseline["finding"]))
