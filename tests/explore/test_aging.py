"""How memories age, in words and on demand; the doctor over all banks in scope; the report."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.consolidation.schedule import RULE
from ipy_memory.backends.mnemopi.db.copies import copies_of
from ipy_memory.clock import FixedClock
from ipy_memory.explore.aging import ageing_notes, consolidate_now
from ipy_memory.explore.health import findings_frame, look_over
from ipy_memory.explore.status import report_text
from ipy_memory.session import open_session
from tests.explore.conftest import NOW, OpenSession, fingerprint

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000


@pytest.mark.claim("A-12")
def test_consolidating_says_how_many_memories_and_why_none(open_here: OpenSession, tmp_path: Path) -> None:
    clock = FixedClock(NOW)
    session = open_here(clock=clock)
    bank = session.live_backend().retain_bank
    assert consolidate_now(session) == [f"{bank}: nothing to sum up, there is no file yet."]
    session.retain([f"Note {number} about the ferry" for number in range(3)])
    assert consolidate_now(session) == [
        f"{bank}: 0 memories considered: 3 are younger than twelve hours; the next can be at 2026-06-02 00:00."
    ]
    clock.advance(13 * HOUR_MS)
    assert "3 of 3 working memories are not summed up, 3 of them can be now" in ageing_notes(session)[0]
    before = fingerprint(tmp_path)
    assert consolidate_now(session, dry_run=True)[0].startswith(f"{bank}: 3 memories considered, 3 would be summed up")
    assert fingerprint(tmp_path) == before
    assert consolidate_now(session) == [f"{bank}: 3 memories considered, 3 summed up into 1 episode; 0 episodes aged."]
    assert consolidate_now(session) == [f"{bank}: 0 memories considered: all 3 are already consolidated."]
    note, rule = ageing_notes(session)
    assert "0 of 3 working memories are not summed up" in note
    assert "episodes: 1 whole, 0 shortened" in note
    assert "last summed up 2026-06-02 01:00" in note
    assert rule == RULE
    assert len(session.memories(store="working")) == 3


def test_the_rule_names_the_real_limits() -> None:
    for words in ("12 hours", "24 hours", "newest 1000"):
        assert words in RULE


def test_the_doctor_looks_at_every_bank_in_scope_and_mends_on_request(open_here: OpenSession, tmp_path: Path) -> None:
    with open_here("global") as shared:
        shared.retain("Everybody prefers tea")
    session = open_here("per-project-tagged")
    session.retain("The deploy target is fly.io")
    assert look_over(session).notes == ["All is well in 2 banks."]
    path = tmp_path / "home" / "mnemopi.db"
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM fts_working_data")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    found = look_over(session)
    assert findings_frame(found).query("state == 'fault'")[["bank", "part", "what"]].values.tolist() == [
        ["default", "index", "fts_working"]
    ]
    assert found.notes == ["1 faults in 2 banks.", "No memories are lost. To repair it: %memory doctor --repair"]
    assert path.read_bytes() == before
    told: list[tuple[int, int]] = []
    mended = look_over(session, "default", mend=True, progress=lambda *done: told.append(done))
    assert told == [(5, 5)]
    assert findings_frame(mended).query("state == 'repaired'")["what"].tolist() == ["fts_working"]
    assert [note.partition(":")[0] for note in mended.notes] == [
        "Copy of the bank",
        "default",
        "All is well in 1 banks.",
    ]
    assert len(copies_of(path, tmp_path / "agent" / "ipy_memory" / "copies")) == 1
    assert [hit.content for hit in session.recall("tea").hits] == ["Everybody prefers tea"]
    assert look_over(session).notes == ["All is well in 2 banks."]


def test_the_report_tells_all_that_can_differ_and_no_secret(open_here: OpenSession, tmp_path: Path) -> None:
    secret = "sk-" + "k" * 40
    session = open_here(settings={"mnemopi.recallLimit": 3, "mnemopi.llmApiKey": secret, "mnemopi.noEmbeddings": True})
    session.retain("The deploy target is fly.io")
    bank = session.live_backend().retain_bank
    text = report_text(session)
    assert f"{bank} (written, read): 1 working" in text
    assert "mnemopi.recallLimit = 3 (session)" in text
    assert "scope: per-project" in text
    assert "vectors:" in text
    assert "The agent's recall can differ" in text
    assert secret not in text
    assert "mnemopi.llmApiKey = (set)" in text


def test_the_report_works_on_a_server_and_without_a_backend(tmp_path: Path) -> None:
    for backend in ("hindsight", "off"):
        with open_session(backend, "/work", agent_dir=tmp_path, env={}, clock=FixedClock(NOW)) as session:
            assert f"backend: {backend} (session)" in report_text(session)
