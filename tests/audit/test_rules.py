"""The table of rules as a whole."""

from __future__ import annotations

import pytest

from ipy_memory.audit.findings import Rule, finding
from ipy_memory.audit.rules import RULES, audit, summary
from ipy_memory.errors import ToolInputError
from tests.audit.notes import NOW_MS, memory

TEXTS = ["password=hunter22", "a@corp.io", "Use pnpm", "use pnpm", "ok"]
ROWS = [memory(number, text) for number, text in enumerate(TEXTS)]


def test_all_kinds_are_looked_for_and_the_worst_come_first() -> None:
    found = audit(ROWS, now_ms=NOW_MS)
    assert [one.kind for one in found] == ["pii", "duplicates", "junk", "secrets"]
    assert [one.severity for one in found] == ["medium", "low", "low", "low"]


def test_some_kinds_only() -> None:
    assert {one.kind for one in audit(ROWS, ["junk", "pii"], now_ms=NOW_MS)} == {"junk", "pii"}


def test_an_unknown_kind_is_an_error_that_names_the_kinds() -> None:
    with pytest.raises(ToolInputError, match="no kind 'secret'") as caught:
        audit(ROWS, ["secret"], now_ms=NOW_MS)
    assert ", ".join(RULES) in caught.value.hint


def test_a_rule_of_ones_own() -> None:
    def shouting(rows, tick):
        for row in rows.live:
            tick()
            if row.content.isupper():
                yield finding("shouting", row, "capitals", severity="low", action="review")

    rules = {**RULES, "shouting": Rule("shouting", "capitals", shouting)}
    found = audit([*ROWS, memory(9, "NEVER DO THIS")], ["shouting"], now_ms=NOW_MS, rules=rules)
    assert [(one.kind, one.id) for one in found] == [("shouting", "m9")]


def test_accepted_findings_are_left_out() -> None:
    (one,) = audit(ROWS, ["junk"], now_ms=NOW_MS)
    assert audit(ROWS, ["junk"], now_ms=NOW_MS, accepted={one.finding}) == []


def test_progress_grows_to_the_whole() -> None:
    told: list[tuple[int, int]] = []
    audit(ROWS * 300, ["junk", "pii"], now_ms=NOW_MS, progress=lambda done, whole: told.append((done, whole)))
    assert told == sorted(told)
    assert told[-1] == (3000, 3000)
    assert len(told) > 4


def test_nothing_in_no_rows() -> None:
    assert audit([], now_ms=NOW_MS) == []
    assert summary([], 0) == "Nothing found in 0 memories."


def test_the_summary_counts_kinds_and_severities() -> None:
    assert summary(audit(ROWS, now_ms=NOW_MS), 5) == (
        "4 findings in 5 memories: 1 pii, 1 duplicates, 1 junk, 1 secrets (1 medium, 3 low)."
    )
