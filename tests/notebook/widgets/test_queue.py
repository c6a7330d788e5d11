"""The retain panel in front of a server: what waits is in sight until it has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.notebook.widgets.page import page
from ipy_memory.notebook.widgets.recall import BanksState, RecallState
from ipy_memory.notebook.widgets.retain import LOOK_AGAIN_MS, RetainState
from ipy_memory.notebook.widgets.session_hub import Desk
from ipy_memory.notebook.widgets.views import RetainView
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.backends.hindsight.stub import StubServer

REFUSES = {"method": "POST", "status": 500, "body": {"detail": "full"}}
FOUND = {"id": "m1", "text": "Deploys go out on Tuesdays.", "type": "world"}


@pytest.fixture
def timers() -> ManualTimers:
    return ManualTimers()


@pytest.fixture
def session(stub: StubServer, timers: ManualTimers, tmp_path: Path) -> Iterator[MemorySession]:
    session = open_session(
        "hindsight",
        cwd=tmp_path,
        settings={"hindsight.apiUrl": stub.url, "hindsight.retainTimeoutMs": 1_000},
        agent_dir=tmp_path,
        env={},
        clock=FixedClock("2026-06-01T12:00:00.000Z"),
        ids=FixedIds(),
        timers=timers,
    )
    yield session
    session.close()


@pytest.fixture
def desk(session: MemorySession) -> Desk:
    return Desk(lambda: session, lambda _: None)


@pytest.mark.claim("N-04")
def test_the_queue_is_seen_to_drain(desk: Desk, timers: ManualTimers, stub: StubServer) -> None:
    panel = RetainView(RetainState(desk))
    panel.text.set_state({"value": "Deploys go out on Tuesdays."})
    panel.store.click()
    assert panel.status.text == "1 memory queued."
    assert panel.table.rows == [
        {
            "key": "0",
            "state": "waiting",
            "since": "2026-06-01 12:00",
            "text": "Deploys go out on Tuesdays.",
            "error": "",
        }
    ]
    assert "waiting to be sent: 1" in panel.waiting.value
    timers.advance(5_000 + LOOK_AGAIN_MS)
    assert panel.table.rows == []
    assert panel.status.text == "Everything was sent."
    asked = len(stub.requests)
    timers.advance(60_000)
    assert len(stub.requests) == asked


def test_what_failed_stays_with_its_reason_and_is_sent_again_by_hand(
    desk: Desk, timers: ManualTimers, stub: StubServer
) -> None:
    stub.answer_with([REFUSES])
    panel = RetainView(RetainState(desk))
    panel.text.set_state({"value": "x"})
    panel.store.click()
    panel.send.click()
    assert panel.status.failed
    assert "1 memory not sent" in panel.status.text
    (row,) = panel.table.rows
    assert row["state"] == "failed"
    assert "full" in row["error"]
    assert len([request for request in stub.requests if request["method"] == "POST"]) == 1
    assert "error" in [column["name"] for column in panel.table.columns]
    stub.answer_with([])
    panel.send.click()
    assert (panel.status.text, panel.table.rows) == ("Everything was sent.", [])


def test_what_may_have_arrived_is_sent_again_only_after_a_yes(
    desk: Desk, timers: ManualTimers, stub: StubServer
) -> None:
    def sent() -> int:
        return len([request for request in stub.requests if request["method"] == "POST"])

    stub.answer_with([{"method": "POST", "drip_seconds": 0.001, "headers": {"content-length": "99"}}])
    panel = RetainView(RetainState(desk))
    panel.text.set_state({"value": "x"})
    panel.store.click()
    panel.send.click()
    assert [row["state"] for row in panel.table.rows] == ["unknown"]
    assert sent() == 1
    stub.answer_with([])
    panel.send.click()
    assert "1 memory may have arrived already" in panel.status.text
    assert "twice" in panel.status.text
    assert (sent(), panel.yes.description, panel.answer.layout.display) == (1, "Send again", None)
    panel.no.click()
    assert (sent(), len(panel.table.rows)) == (1, 1)
    panel.send.click()
    panel.yes.click()
    assert (sent(), panel.status.text, panel.table.rows) == (2, "Everything was sent.", [])
    assert panel.answer in panel.box.children


def test_a_memory_of_a_server_is_shown_and_not_edited(desk: Desk, stub: StubServer) -> None:
    stub.answer_with([{"url_contains": "/recall", "body": {"results": [FOUND]}}])
    state = RecallState(desk)
    state.typed("deploys")
    state.select("m1")
    assert state.memory.text == FOUND["text"]
    assert not state.memory.updatable
    assert not state.memory.endable
    assert "cannot change it" in state.memory.status
    assert FOUND["text"] in page(state)[0]


def test_the_bank_of_a_server_is_shown_with_its_tags(desk: Desk, stub: StubServer) -> None:
    (row,) = BanksState(desk).rows
    assert row.use == "written, read"
    assert "tag" in row.why
    assert stub.requests == []
