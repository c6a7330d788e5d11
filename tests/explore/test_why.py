"""Why a memory came back or did not: every memory and query of the recorded banks, and each kind of verdict."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.multi_bank import ScopedAnswer, scoped_recall
from ipy_memory.backends.mnemopi.store import browse
from ipy_memory.clock import FixedClock
from ipy_memory.errors import BankError, MemoryNotFoundError
from ipy_memory.explore.why import FAILED, NOT_IN_SCOPE, furthest, judge, verdicts, verdicts_frame
from tests.conformance.kinds.recall import RecordedEmbedder, unpack
from tests.explore.conftest import OpenSession, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.backends.trace import Trace
    from ipy_memory.session import MemorySession

GOLDEN = Path(__file__).parents[1] / "golden"


def recorded() -> list[Path]:
    files = [*(GOLDEN / "recall").glob("*.json"), *(GOLDEN / "recall_tz").glob("*.json")]
    return sorted(path for path in files if path.stem != "failures")


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_every_memory_of_the_recorded_banks_has_one_verdict_for_every_query(path: Path, tmp_path: Path) -> None:
    file = json.loads(path.read_text(encoding="utf-8"))
    clock = FixedClock(file["now"], ZoneInfo(file.get("tz") or "UTC"))
    for bankset in {case["input"]["bankset"] for case in file["cases"]}:
        unpack(GOLDEN, bankset, tmp_path / bankset)
    for case in file["cases"]:
        asked = case["input"]
        folder = tmp_path / asked["bankset"]
        vectors = asked.get("query_embeddings")
        banks = [
            Bank.open_readonly(
                folder / "mnemopi.db" if name == asked["globalBank"] else folder / "banks" / name / "mnemopi.db",
                name,
                clock=clock,
                embedder=RecordedEmbedder(vectors) if vectors is not None else None,
            )
            for name in asked["recallBanks"]
        ]
        rows = {bank.path: browse.every_row(bank) for bank in banks}
        traces: list[Trace] = []
        tagged = asked["scoping"] == "per-project-tagged"
        answer = scoped_recall(
            banks,
            asked["query"],
            asked["recallLimit"],
            project_bank=asked["retainBank"] if tagged else None,
            shared_bank=asked["globalBank"] if tagged else None,
            should_touch=False,
            traces=traces,
            watch=[row.id for some in rows.values() for row in some],
        )
        found = [
            verdict
            for bank in banks
            for verdict in judge(
                rows[bank.path], [t for t in traces if t.path == bank.path], answer.hits, asked["recallLimit"]
            )
        ]
        assert Counter((v.bank, v.store, v.id) for v in found) == Counter(
            (row.bank, row.store, row.id) for some in rows.values() for row in some
        )
        returned = sorted((v for v in found if v.returned), key=lambda v: v.place or 0)
        assert [(v.bank, v.store, v.id, v.score) for v in returned] == [
            (hit.bank, hit.tier, hit.id, hit.score) for hit in answer.hits
        ]
        assert all(v.reason for v in found)
        for bank in banks:
            bank.close()


def retained(session: MemorySession, *texts: str) -> list[str]:
    receipt = session.retain(list(texts)).receipt
    assert receipt is not None
    return [str(id_) for id_ in receipt.ids]


def run_sql(session: MemorySession, statement: str, *values: object) -> None:
    backend = session.live_backend()
    assert isinstance(backend, MnemopiBackend)
    with backend.writer().transaction() as connection:
        connection.execute(statement, values)


@pytest.mark.claim("L-05")
def test_each_way_out_of_a_recall_is_named(open_here: OpenSession) -> None:
    with open_here("global") as shared:
        (common,) = retained(shared, "Everybody: the shared deploy target is heroku")
    with open_here(cwd="/work/other") as other:
        (foreign,) = retained(other, "The other deploy target is a barge")
    session = open_here()
    old, new, ended, late, tea = retained(
        session,
        "The old deploy target is a tram",
        "The new deploy target is fly.io",
        "An ended deploy target is a raft",
        "An expired deploy target is a kite",
        "Tea is preferred over coffee",
    )
    session.change("invalidate", old, replacement_id=new)
    session.change("invalidate", ended)
    run_sql(session, "UPDATE working_memory SET valid_until = '2026-05-01T00:00:00.000Z' WHERE id = ?", late)
    query = "deploy target"

    def said(memory_id: str) -> tuple[str, str]:
        verdict = session.why(memory_id, query)
        return verdict.verdict, verdict.reason

    assert session.why(new, query).place == 1
    assert said(new)[0] == "returned"
    assert session.why(old, query).by == new
    assert said(old) == ("superseded", f"superseded by {new}")
    assert said(ended)[0] == "expired"
    assert said(late) == ("expired", "expired or invalidated at 2026-05-01T00:00:00.000Z")
    assert said(tea) == ("no shared term", "not a candidate: it shares no word with the query")
    assert said(common)[0] == NOT_IN_SCOPE
    assert "per-project" in said(common)[1]
    assert said(foreign)[0] == NOT_IN_SCOPE
    assert "come from another directory" in said(foreign)[1]
    with pytest.raises(MemoryNotFoundError, match="abc"):
        session.why("abc", query)
    everything = verdicts(session, query, everywhere=True)
    assert {v.id for v in everything} == {old, new, ended, late, tea, common, foreign}
    assert [v.id for v in everything if v.returned] == [hit.id for hit in session.recall(query).hits] == [new]


def test_ranks_floors_likeness_and_limits_are_given_as_numbers(open_here: OpenSession) -> None:
    session = open_here(settings={"mnemopi.recallLimit": 2})
    many = retained(session, *(f"Number {n} of the ferry timetable is kept in drawer {n}" for n in range(60)))
    beyond = [v for v in verdicts(session, "ferry timetable") if v.verdict == "beyond the candidate limit"]
    assert [v.rank for v in sorted(beyond, key=lambda v: v.rank or 0)] == list(range(51, 61))
    assert all(v.floor == 50 and f"rank {v.rank}" in v.reason for v in beyond)
    assert {v.id for v in verdicts(session, "ferry timetable")} == set(many)
    below = [v for v in verdicts(session, "ferry lantern quartz") if v.verdict == "below the relevance floor"]
    assert len(below) == 50
    assert {v.reason for v in below} == {"below the relevance floor: 0.3333 of 0.34; matched: ferry"}
    assert all((v.value or 0) < (v.floor or 0) and v.matched == ("ferry",) for v in below)
    cut = [v for v in verdicts(session, "ferry timetable") if v.verdict == "beyond the limit"]
    assert cut
    assert all("limit of 2" in v.reason for v in cut)


def test_a_hit_that_is_too_like_another_is_named_with_its_likeness(open_here: OpenSession) -> None:
    session = open_here(settings={"mnemopi.recallLimit": 2})
    retained(
        session,
        "The ferry leaves the northern pier at nine on weekdays",
        "The ferry leaves the northern pier at nine on weekdays too",
        "A ferry needs coal",
    )
    found = verdicts(session, "ferry pier")
    twin = next(v for v in found if v.verdict == "reranked away")
    assert twin.value is not None
    assert twin.value > 0.5
    assert twin.by in [v.id for v in found if v.returned]
    assert f"too like {twin.by}" in twin.reason


def test_a_duplicate_in_another_bank_names_the_one_that_stays(open_here: OpenSession) -> None:
    with open_here("global") as shared:
        (twin,) = retained(shared, "The deploy target is fly.io")
    session = open_here("per-project-tagged")
    (own,) = retained(session, "The deploy target is fly.io")
    lost = next(v for v in verdicts(session, "deploy target") if not v.returned)
    kept = next(v for v in verdicts(session, "deploy target") if v.returned)
    assert {lost.id, kept.id} == {own, twin}
    assert (lost.verdict, lost.by, lost.by_bank) == ("the same as another entry", kept.id, kept.bank)
    assert lost.reason == f"dropped as a duplicate of {kept.id} in bank {kept.bank}"


def test_a_bank_that_fails_is_a_verdict(open_here: OpenSession) -> None:
    with open_here("global") as shared:
        (there,) = retained(shared, "The shared deploy target is heroku")
    session = open_here("per-project-tagged")
    retained(session, "The deploy target is fly.io")
    backend = session.live_backend()
    assert isinstance(backend, MnemopiBackend)
    ask = backend.ask

    def failing(request: RecallRequest, *, watch: Sequence[str] = ()) -> ScopedAnswer:
        answer = ask(request, watch=watch)
        assert request.traces is not None
        request.traces[:] = [trace for trace in request.traces if trace.bank != "default"]
        return replace(answer, failures=(("default", BankError("disk I/O error")),))

    backend.ask = failing  # type: ignore[method-assign]
    verdict = session.why(there, "deploy target")
    assert (verdict.verdict, verdict.reason) == (FAILED, "its bank did not answer: disk I/O error")


@pytest.mark.claim("M-08")
def test_asking_why_changes_no_byte(open_here: OpenSession, tmp_path: Path) -> None:
    with open_here() as first:
        (memory_id,) = retained(first, "The deploy target is fly.io")
    before = fingerprint(tmp_path)
    session = open_here()
    assert session.why(memory_id, "deploy").returned
    assert session.why(f"memory://{memory_id}", "deploy").id == memory_id
    frame = verdicts_frame(verdicts(session, "deploy", everywhere=True))
    assert frame.loc[0, "place"] == 1
    assert verdicts_frame([]).dtypes.equals(frame.dtypes)
    session.close()
    assert fingerprint(tmp_path) == before


def test_the_furthest_come_first(open_here: OpenSession) -> None:
    session = open_here()
    for text in ("Tea is at four", "The ferry leaves at nine", "The ferry to the island is slow", "Cake"):
        session.retain(text)
    told: list[tuple[int, int]] = []
    found = verdicts(session, "ferry island", everywhere=True, progress=lambda *done: told.append(done))
    order = furthest(found)
    assert sorted(order) == list(range(len(found)))
    assert [found[at].place for at in order][:2] == [1, 2]
    assert not any(found[at].returned for at in order[2:])
    assert told == []
    open_here(cwd="/work/other").retain("Elsewhere")
    verdicts(session, "ferry island", everywhere=True, progress=lambda *done: told.append(done))
    assert told == [(1, 1)]
