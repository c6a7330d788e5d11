"""Which rows of a bank may be seen, and why another one may not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.rows import as_text, json_list, moment
from ipy_memory.backends.mnemopi.db.schema import column_defaults, columns
from ipy_memory.jscompat.dates import parse_ms
from ipy_memory.jscompat.strings import well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ipy_memory.backends.mnemopi.db.bank import Bank

EXPIRED = "expired or invalidated"
OTHER_SESSION = "of another session"


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which rows may be seen: valid now, not superseded, within reach, and whatever else was asked for.

    ``channel`` is ``None`` where no channel was asked for; ``author`` then lifts the limit to the session.
    ``from_date`` and ``to_date`` are mere days, compared as texts like the engine's, or instants, which need the
    function of :func:`~ipy_memory.backends.mnemopi.db.rows.teach_moment`. ``first`` says that a search looks for the
    best rows among those that were asked for; the engine finds the best rows, then drops the others.
    """

    now: str
    session: str
    channel: str | None = None
    equal: tuple[tuple[str, str], ...] = ()
    from_date: str | None = None
    to_date: str | None = None
    first: bool = False

    def apart_from_now(self) -> tuple[object, ...]:
        """Return all but the instant, to tell questions that may look at the same rows."""
        return self.session, self.channel, self.equal, self.from_date, self.to_date, self.first

    def live(self) -> list[Rule]:
        """Return the rules that full-text search itself applies: valid now and not superseded."""
        rules = [
            Rule(EXPIRED, "({valid_until} IS NULL OR {valid_until} > ?)", (self.now,)),
            Rule("superseded by another memory", "{superseded_by} IS NULL"),
        ]
        return [*rules, *self._asked()] if self.first else rules

    def rules(self) -> list[Rule]:
        """Return all rules."""
        rules = self.live()
        reach = f"{'' if self.equal else '+'}{{session_id}} = ? OR {{scope}} = 'global'"  # + keeps to the time index
        if self.channel is not None:
            rules.append(Rule(OTHER_SESSION, f"({reach} OR {{channel_id}} = ?)", (self.session, self.channel)))
        elif not any(name in {"author_id", "author_type"} for name, _ in self.equal):
            rules.append(Rule(OTHER_SESSION, f"({reach})", (self.session,)))
        return rules if self.first else [*rules, *self._asked()]

    def _asked(self) -> list[Rule]:
        rules = [Rule(f"of another {name}", f"{{{name}}} = ?", (value,)) for name, value in self.equal]
        if self.from_date is not None:
            rules.append(_dated("before the asked dates", ">=", self.from_date, "T00:00:00"))
        if self.to_date is not None:
            rules.append(_dated("after the asked dates", "<=", self.to_date, "T23:59:59"))
        return rules


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition of a row: what is said if it fails, SQL with column names in braces, and its values."""

    otherwise: str
    sql: str
    values: tuple[str | float, ...] = ()


def _dated(otherwise: str, sign: str, date: str, edge: str) -> Rule:
    """Return the rule of one end of the asked dates; ``edge`` completes a mere day."""
    if "T" in date and (ms := parse_ms(date, UTC)) is not None:
        return Rule(otherwise, f"{moment('{timestamp}')} {sign} ?", (ms,))
    return Rule(otherwise, f"{{timestamp}} {sign} ?", (f"{date}{edge}",))


def condition(rules: Iterable[Rule], names: Mapping[str, str]) -> tuple[str, tuple[str | float, ...]]:
    """Return rules as one SQL condition with its values."""
    rules = list(rules)
    return " AND ".join(rule.sql.format_map(names) for rule in rules), tuple(v for rule in rules for v in rule.values)


def names_of(bank: Bank, table: str) -> Mapping[str, str]:
    """Return for each column of ours how to read it from this file: its name, or its default where it is missing."""
    known: dict[str, Mapping[str, str]] = bank.memo.setdefault("names", {})
    if table not in known:
        present = set(columns(bank.connection, table))
        if not present:  # let the statement itself say that there is no such table
            return {name: name for name in column_defaults(table)}
        known[table] = {
            name: name if name in present else "NULL" if default == "CURRENT_TIMESTAMP" else default
            for name, default in column_defaults(table).items()
        }
    return known[table]


@dataclass(frozen=True, slots=True)
class Hidden:
    """Whether a row can be seen: the reasons why not (none: it can), what replaces it, and when it ended."""

    reasons: tuple[str, ...]
    superseded_by: str | None
    valid_until: str | None


def hidden(bank: Bank, table: str, ids: Iterable[str], visible: Visibility) -> dict[str, Hidden]:
    """Return for those of the ids that a table has whether and why they cannot be seen."""
    names = names_of(bank, table)
    rules = visible.rules()
    listed = ", ".join(f"COALESCE({rule.sql.format_map(names)}, 0)" for rule in rules)
    found = {}
    for id_, superseded_by, valid_until, *holds in bank.connection.execute(
        f"SELECT id, {names['superseded_by']}, {names['valid_until']}, {listed} FROM {table}"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (*(value for rule in rules for value in rule.values), json_list(map(well_formed, ids))),
    ):
        reasons = tuple(rule.otherwise for rule, holding in zip(rules, holds, strict=True) if not holding)
        found[as_text(id_) or ""] = Hidden(reasons, as_text(superseded_by), as_text(valid_until))
    return found
