"""The audit of the banks in scope: what it reads, remembers and leaves alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ipy_memory.audit.findings import Rule, finding
from ipy_memory.audit.rules import RULES
from ipy_memory.errors import MagicError, ToolInputError
from ipy_memory.explore.audit import COLUMNS, asked, audit, audited
from tests.explore.conftest import OpenSession, fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.session import MemorySession

TEXTS = ["The staging port is 8080", "The staging port is 9090", "Write to dana@corp.io", "write to dana@corp.io!"]


@pytest.fixture
def session(open_here: OpenSession) -> MemorySession:
    one = open_here()
    one.retain(TEXTS)
    one.flush()
    return one


def test_one_frame_with_the_same_columns_also_without_rows(session: MemorySession, open_here: OpenSession) -> None:
    found = audit(session)
    empty = audit(open_here(cwd="/work/empty"))
    assert tuple(found.columns) == tuple(empty.columns) == COLUMNS
    assert list(found.dtypes) == list(empty.dtypes)
    assert {"duplicates", "pii"} <= set(found["kind"])
    assert found.attrs["summary"].startswith(f"{len(found)} findings in ")
    assert empty.attrs["summary"] == "Nothing found in 0 memories."


def test_findings_name_memories_as_recall_shows_them(session: MemorySession) -> None:
    ids = set(session.memories()["id"])
    found = audit(session, ["duplicates"])
    assert {found["id"].iloc[0], *found["other"].iloc[0]} <= ids


def test_a_fact_names_the_memory_that_it_was_made_from(session: MemorySession) -> None:
    session.retain("I prefer calls to +49 30 901820")
    session.flush()
    memories = set(session.memories()["id"])
    facts = [one for one in audited(session, ["pii"]).findings if one.id not in memories]
    assert facts
    assert all(set(one.other) & memories for one in facts)


def test_banks_out_of_scope_are_looked_at_when_asked_for(open_here: OpenSession) -> None:
    with open_here(cwd="/work/other") as other:
        other.retain("Write to dana@corp.io")
        name = other.backend.retain_bank
    own = open_here()
    assert audited(own, ["pii"]).findings == ()
    for bank in (name, "*"):
        assert {one.bank for one in audited(own, ["pii"], bank=bank).findings} == {name}


def test_an_audit_changes_no_bank(session: MemorySession, tmp_path: Path) -> None:
    before = fingerprint(tmp_path / "home")
    audit(session)
    assert fingerprint(tmp_path / "home") == before


def test_accepted_findings_are_not_shown_again(session: MemorySession) -> None:
    (name,) = {one.finding for one in audited(session, ["duplicates"]).findings}
    first = audited(session, ["duplicates"], accept=[name])
    assert (first.findings, first.notes) == ((), ("1 finding is accepted now, and not shown any more.",))
    again = audited(session, ["duplicates"])
    assert (again.findings, again.notes) == ((), ("1 more was accepted before or is in the baseline.",))
    with pytest.raises(ToolInputError, match="no finding 'junk-0'"):
        audited(session, accept=["junk-0"])


def test_a_changed_text_is_a_new_finding(session: MemorySession) -> None:
    names = [one.finding for one in audited(session, ["duplicates"]).findings]
    audited(session, accept=names)
    session.retain("Write to dana@corp.io.")
    session.flush()
    assert len(audited(session, ["duplicates"]).findings) == 1


def test_a_baseline_is_a_frame_or_a_file(session: MemorySession, tmp_path: Path) -> None:
    before = audit(session)
    path = tmp_path / "before.jsonl"
    path.write_text("\n".join(map(json.dumps, audited(session).records)))
    session.retain("ok")
    session.flush()
    for baseline in (before, path, str(path)):
        assert set(audit(session, baseline=baseline)["kind"]) == {"junk"}
    with pytest.raises(ToolInputError, match="no column finding"):
        audit(session, baseline=before[["id"]])


def test_a_rule_of_ones_own(session: MemorySession) -> None:
    def mentions(rows, tick):
        for row in rows.live:
            tick()
            if "9090" in row.content:
                yield finding("mentions", row, "9090", severity="low", action="review")

    rules = {**RULES, "mentions": Rule("mentions", "a number", mentions)}
    assert list(audit(session, ["mentions"], rules=rules)["evidence"]) == ["9090"]


def test_the_records_begin_with_the_fields_of_the_shell(session: MemorySession) -> None:
    first = audited(session).records[0]
    assert list(first)[:7] == ["kind", "id", "bank", "other", "severity", "evidence", "action"]
    assert set(first) == set(COLUMNS)


def test_what_a_command_asks() -> None:
    assert asked("pii junk", {"all": True, "accept": "a, b,c", "baseline": "x"}) == {
        "kinds": ["pii", "junk"],
        "bank": "*",
        "accept": ["a", "b", "c"],
        "baseline": "x",
    }
    assert asked("", {"bank": "shop"})["bank"] == "shop"
    with pytest.raises(MagicError, match="exclude"):
        asked("", {"all": True, "bank": "shop"})
