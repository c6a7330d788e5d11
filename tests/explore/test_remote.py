"""Browsing, verdicts and selections on a Hindsight server (a stand-in that answers by rules)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from ipy_memory.clock import FixedClock
from ipy_memory.errors import (
    EditRefusedError,
    HindsightError,
    MemoryNotFoundError,
    MemoryToolkitError,
    NotSupportedError,
    PartlyDoneError,
)
from ipy_memory.explore.local import server_backend
from ipy_memory.explore.remote import PAGE
from ipy_memory.explore.scopes import scope_rows
from ipy_memory.explore.selection import invalidate_all, restore_all, undo_last
from ipy_memory.explore.why import verdicts
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.backends.hindsight.stub import StubServer

NOW = "2026-06-01T12:00:00.000Z"
BANK = "/v1/default/banks/omp"


def entry(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"id-{number}",
        "text": f"Note {number} on tea",
        "context": "",
        "date": f"2026-05-{number % 28 + 1:02}T10:00:00+00:00",
        "fact_type": "world",
        "document_id": f"doc-{number}",
        "mentioned_at": None,
        "occurred_start": None,
        "tags": [],
        "metadata": {"session_id": "s1", "cwd": "/work"},
        "state": "valid",
        "source_memory_ids": [],
    } | more


@pytest.fixture
def session(stub: StubServer, tmp_path: Path) -> Iterator[MemorySession]:
    settings = {"hindsight.apiUrl": stub.url, "hindsight.mentalModelsEnabled": False}
    with open_session(
        "hindsight", "/work/shop", settings=settings, agent_dir=tmp_path, env={}, clock=FixedClock(NOW)
    ) as session:
        yield session


def listed(*entries: dict[str, Any], total: int | None = None, **rule: Any) -> dict[str, Any]:
    body = {"items": list(entries), "total": len(entries) if total is None else total, "limit": 100, "offset": 0}
    return {"method": "GET", "url_contains": "/memories/list", "body": body} | rule


def urls(stub: StubServer) -> list[str]:
    return [f"{request['method']} {request['url'].removeprefix(BANK)}" for request in stub.requests]


def test_memories_are_listed_as_on_this_machine(stub: StubServer, session: MemorySession, tmp_path: Path) -> None:
    invalid = {"state": "invalidated", "invalidated_at": "2026-05-30T00:00:00+00:00", "tags": ["project:shop"]}
    stub.answer_with([listed(entry(1), entry(2, **invalid), {"id": "odd"}, total=40)])
    frame = session.memories(where={"text": "tea", "type": "world"}, limit=2, offset=4)
    assert urls(stub) == ["GET /memories/list?type=world&q=tea&limit=2&offset=4"]
    assert frame[["id", "store", "type", "session_id", "cwd", "state", "source"]].values.tolist() == [
        ["id-1", "hindsight", "world", "s1", "/work", "live", "doc-1"],
        ["id-2", "hindsight", "world", "s1", "/work", "expired", "doc-2"],
    ]
    assert frame["tags"].tolist()[1] == ("project:shop",)
    assert (frame.attrs["total"], frame.attrs["next_offset"]) == (40, 6)
    with open_session("mnemopi", "/work", tmp_path / "m.db", agent_dir=tmp_path, env={}) as local:
        pd.testing.assert_series_equal(frame.dtypes, local.memories().dtypes)


@pytest.mark.claim("S-12")
def test_a_sub_agent_looks_at_its_parents_server(stub: StubServer, session: MemorySession) -> None:
    stub.answer_with([listed(entry(1)), {"method": "POST", "body": {"results": [{"id": "id-1", "text": "Note"}]}}])
    child = session.child()
    assert child.memories()["id"].tolist() == ["id-1"]
    assert child.why("id-1", "tea").returned
    assert invalidate_all(child, child.memories(), confirm=True).count == 1


def test_what_the_server_cannot_filter_is_filtered_here_page_by_page(stub: StubServer, session: MemorySession) -> None:
    first = [entry(number) for number in range(PAGE)]
    stub.answer_with(
        [listed(*first, url_contains="offset=0"), listed(entry(500, document_id="x"), url_contains=f"offset={PAGE}")]
    )
    assert session.memories(where={"source": "x"})["id"].tolist() == ["id-500"]
    assert len(stub.requests) == 2
    assert session.memories(where={"since": "2026-05-28", "until": "2026-05-28"}).attrs["total"] == 7
    page = session.memories(where={"session": "s1", "cwd": "/work"}, limit=10, offset=190)
    assert (len(page), page.attrs["total"], page.attrs["next_offset"]) == (10, PAGE + 1, 200)
    assert session.memories(where={"state": "superseded"}).empty
    assert len(session.memories("other bank", {"id": "id-7"}, limit=None)) == 1
    assert stub.requests[-1]["url"].startswith("/v1/default/banks/other%20bank/memories/list")


def test_since_and_until_compare_instants(stub: StubServer, session: MemorySession) -> None:
    """C09: the server's times have offsets; the limits may have any."""
    stamps = ["2026-05-10T10:00:00+00:00", "2026-05-10T12:30:00+03:00", "2026-05-09T23:00:00-05:00", "soon", None]
    stub.answer_with([listed(*(entry(number, date=stamp) for number, stamp in enumerate(stamps)))])
    for since, until, expected in (
        ("2026-05-10T12:00+02:00", None, ["id-0"]),
        ("2026-05-10", "2026-05-10T09:30", ["id-1", "id-2"]),
        (pd.Timestamp("2026-05-10T09:30Z"), pd.Timestamp("2026-05-10T12:00+02:00"), ["id-0", "id-1"]),
        ("2026-05-10", "2026-05-10", ["id-0", "id-1", "id-2"]),
        (None, "2026-05-09", []),
    ):
        assert session.memories(where={"since": since, "until": until})["id"].tolist() == expected


@pytest.mark.parametrize("flag", ["source", "author", "since", "until"])
def test_a_recall_is_never_filtered_on_this_side(stub: StubServer, session: MemorySession, flag: str) -> None:
    for asking in (session, session.child()):
        with pytest.raises(NotSupportedError, match=f"Hindsight does not support --{flag} in a recall") as caught:
            asking.recall("tea", where={flag: "2026-05-31"})
        assert caught.value.hint == "what it can do is --at, --tag, --type, --budget, --tokens"
    assert stub.requests == []


def test_a_recall_with_filters_says_so(stub: StubServer, session: MemorySession) -> None:
    stub.answer_with([{"method": "POST", "body": {"results": [{"id": "id-1", "text": "Note"}]}}])
    result = session.recall("tea", where={"tag": "a", "at": "2026-05-31"})
    assert result.notes[-1].startswith("Asked with --at 2026-05-31 23:59 UTC --tag a, which the agent does not do")
    assert stub.requests[-1]["body"]["query_timestamp"] == "2026-05-31T23:59:59.999Z"


def test_a_verdict_says_what_the_server_does_not(stub: StubServer, session: MemorySession) -> None:
    hit = {"id": "id-1", "text": "Note 1 on tea", "type": "world", "scores": {"final": 0.5}}
    gone = entry(2, type="world", state="invalidated", invalidated_at="2026-05-30T00:00:00+00:00")
    stub.answer_with(
        [
            {"method": "POST", "body": {"results": [hit]}},
            {"url": f"{BANK}/memories/id-2", "body": gone},
            {"url": f"{BANK}/memories/id-3", "body": entry(3, type="observation", fact_type="observation")},
            {"url": f"{BANK}/memories/id-4", "body": entry(4, type="world", tags=["project:other"])},
            {"url": f"{BANK}/memories/id-5", "body": entry(5, type="world", tags=["project:shop"])},
            {"url": f"{BANK}/memories/id-6", "status": 404, "body": {"detail": "not found"}},
            {"url": f"{BANK}/memories/id-7", "status": 400, "body": {"detail": "not a valid UUID"}},
            {"url": f"{BANK}/memories/id-8", "status": 500, "body": {"detail": "down"}},
        ]
    )
    first = session.why("id-1", "tea")
    assert (first.verdict, first.place, first.score, first.reason) == ("returned", 1, 0.5, "hit 1 of 1, score 0.5")
    assert session.why("id-2", "tea").verdict == "expired"
    assert session.why("id-3", "tea").reason == "of type observation; asked for are world, experience"
    assert session.why("id-4", "tea").reason == "tagged project:other, not project:shop"
    assert "gives no reason" in session.why("id-5", "tea").reason
    for missing in ("id-6", "id-7"):
        with pytest.raises(MemoryNotFoundError, match=missing):
            session.why(missing, "tea")
    with pytest.raises(HindsightError, match="down"):
        session.why("id-8", "tea")
    with pytest.raises(MemoryToolkitError, match="keeps no local banks"):
        verdicts(session, "tea")


def test_a_selection_is_curated_one_by_one(stub: StubServer, session: MemorySession) -> None:
    stub.answer_with(
        [
            listed(entry(1), entry(2)),
            {"method": "GET", "url_contains": "id-2", "body": entry(2, type="observation")},
            {"method": "GET", "body": entry(1, type="world")},
            {"method": "PATCH", "url_contains": "id-2", "status": 400, "body": {"detail": "observations are derived"}},
            {"method": "PATCH", "body": {}},
        ]
    )
    rows = session.memories()
    planned = invalidate_all(session, rows)
    assert str(planned) == (
        "1 memory would be invalidated: 1 in bank omp.\n"
        "1 left alone: an observation, which the server makes from other memories."
    )
    assert not any(request["method"] == "PATCH" for request in stub.requests)
    done = invalidate_all(session, rows, confirm=True)
    assert (done.count, list(done.skipped)) == (1, ["id-2"])
    assert str(restore_all(session, done)) == "1 memory restored: 1 in bank omp."
    bodies = [request["body"] for request in stub.requests if request["method"] == "PATCH"]
    assert bodies == [{"state": "invalidated"}, {"state": "invalidated"}, {"state": "valid"}]
    with pytest.raises(EditRefusedError, match="nothing to undo"):
        undo_last(session)


def rows_of(*banks: str) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"id-{number}" for number in range(len(banks))], "bank": list(banks)})


def patches(stub: StubServer) -> list[tuple[str, str]]:
    """Return the changes that the server was asked for: bank and id with the state."""
    found = [request for request in stub.requests if request["method"] == "PATCH"]
    urls = [request["url"].removeprefix("/v1/default/banks/").replace("/memories/", " ") for request in found]
    return [(url, request["body"]["state"]) for url, request in zip(urls, found, strict=True)]


def test_each_row_of_a_selection_goes_to_its_own_bank(stub: StubServer, session: MemorySession) -> None:
    """B04: the bank column counts, for the change and for its undo."""
    done = invalidate_all(session, rows_of("omp", "other", "omp"), confirm=True)
    assert str(done) == "3 memories invalidated: 2 in bank omp, 1 in bank other."
    assert undo_last(session) == "3 memories restored: 2 in bank omp, 1 in bank other."
    asked = ["omp id-0", "omp id-2", "other id-1"]
    assert patches(stub) == [(one, "invalidated") for one in asked] + [(one, "valid") for one in asked]


@pytest.mark.parametrize("end", ["refused", "lost", "interrupted"])
def test_a_change_that_ends_in_the_middle_says_what_was_done_and_is_undone(
    stub: StubServer, session: MemorySession, end: str
) -> None:
    """B04: done, unknown and untried rows are told apart; undo takes in what may have been changed."""
    broken = {"headers": {"content-length": "99"}, "drip_seconds": 0.0001}
    fault = {"refused": {"status": 503, "body": {"detail": "full"}}, "lost": broken, "interrupted": {}}[end]
    stub.answer_with([{"method": "PATCH", "url_contains": "id-2"} | fault])
    client = server_backend(session).service.client  # type: ignore[union-attr]
    usual, asked = client.update_memory, list[str]()

    def update(bank: str, memory_id: str, **given: Any) -> Any:
        asked.append(memory_id)
        answer = usual(bank, memory_id, **given)
        if end == "interrupted" and len(asked) == 3:
            raise KeyboardInterrupt
        return answer

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(client, "update_memory", update)
        with pytest.raises(PartlyDoneError) as caught:
            invalidate_all(session, rows_of(*["omp"] * 5), confirm=True)
    line = caught.value.one_line()
    assert "2 of 5 memories invalidated (2 in bank omp)" in line
    assert ("id-2 may be invalidated or not" in line) is (end != "refused")
    assert ("2 not changed" in line) is (end != "refused")
    assert ("3 not changed" in line) is (end == "refused")
    assert "%memory undo" in line
    assert ("interrupted" in line) is (end == "interrupted")
    stub.answer_with([])
    changed = 2 if end == "refused" else 3
    assert undo_last(session).startswith(f"{changed} memories restored")
    assert patches(stub)[-changed:] == [(f"omp id-{number}", "valid") for number in range(changed)]


def test_an_undo_that_ends_in_the_middle_leaves_the_rest_to_the_next(stub: StubServer, session: MemorySession) -> None:
    invalidate_all(session, rows_of("omp", "omp", "omp"), confirm=True)
    stub.answer_with([{"method": "PATCH", "url_contains": "id-1", "status": 500, "body": {"detail": "down"}}])
    with pytest.raises(PartlyDoneError, match="1 of 3 memories restored"):
        undo_last(session)
    stub.answer_with([{"method": "PATCH", "url_contains": "id-1", "status": 404, "body": {"detail": "gone"}}])
    assert undo_last(session) == "1 memory restored: 1 in bank omp.\n1 left alone: updateMemory failed: gone."
    with pytest.raises(EditRefusedError, match="nothing to undo"):
        undo_last(session)


def test_a_change_that_fails_at_once_is_the_servers_own_error(stub: StubServer, session: MemorySession) -> None:
    stub.answer_with([{"method": "PATCH", "status": 401, "body": {"detail": "no key"}}])
    with pytest.raises(HindsightError, match="no key"):
        invalidate_all(session, rows_of("omp", "omp"), confirm=True)
    with pytest.raises(EditRefusedError, match="nothing to undo"):
        undo_last(session)


@pytest.mark.claim("S-02", "S-03", "S-04")
def test_the_scopes_of_a_server_are_asked_with_their_own_bank_and_tags(
    stub: StubServer, session: MemorySession
) -> None:
    stub.answer_with(
        [
            {"url_contains": "omp-shop", "status": 404, "body": {"detail": "Bank 'omp-shop' not found"}},
            {"method": "POST", "body": {"results": [{"id": "id-1", "text": "Note 1\n on tea", "type": "world"}]}},
        ]
    )
    rows = {row.mode: row for row in scope_rows(session, "tea") if row.backend == "hindsight"}
    assert rows["global"].hits == rows["per-project-tagged"].hits == ("id-1",)
    assert rows["global"].top == "Note 1 on tea"
    assert rows["per-project"].hits is None
    assert "not found" in str(rows["per-project"].note)
    assert rows["per-project-tagged"].in_force
    tags = [request["body"].get("tags") for request in stub.requests]
    assert tags == [None, None, ["project:shop"]]
    assert session.live_backend().retain_bank == "omp"


# ---- filters by tag and document


def test_the_server_filters_its_list_by_tag_and_document(stub: StubServer, session: MemorySession) -> None:
    tagged = [entry(number, tags=["a", "b", "c"], document_id="d") for number in (1, 2)]
    stub.answer_with([listed(*tagged, total=40)])
    frame = session.memories(where={"tag": ("a", "b"), "document": "d"}, limit=2)
    asked = "GET /memories/list?document_id=d&tags=a&tags=b&tags_match=all_strict"
    assert urls(stub) == [f"{asked}&limit=2&offset=0"]
    assert (frame["id"].tolist(), frame.attrs["total"]) == (["id-1", "id-2"], 40)
    assert len(session.memories(where={"tag": "a,b", "document": "d", "session": "s1"})) == 2
    assert urls(stub)[-1] == f"{asked}&limit={PAGE}&offset=0"


@pytest.mark.parametrize("limit", [10, None])
@pytest.mark.parametrize(("name", "value"), [("tag", "a"), ("document", "other")])
def test_a_server_that_does_not_filter_its_list_is_named(
    stub: StubServer, session: MemorySession, name: str, value: str, limit: int | None
) -> None:
    stub.answer_with([listed(entry(1))])
    with pytest.raises(NotSupportedError, match=f"does not filter its list of memories by --{name}"):
        session.memories(where={name: value}, limit=limit)


@pytest.mark.parametrize("name", ["tag", "document"])
def test_local_banks_keep_neither(tmp_path: Path, name: str) -> None:
    with (
        open_session("mnemopi", "/work", tmp_path / "m.db", agent_dir=tmp_path, env={}) as local,
        pytest.raises(NotSupportedError, match=f"Mnemopi does not support --{name}"),
    ):
        local.memories(where={name: "a"})
