"""When a real Hindsight server refuses, hangs, dies or comes back: nothing is lost unsaid, nothing is stored twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from ipy_memory.errors import HindsightError, RecallCancelled
from tests.real_server.conftest import Agent
from tests.real_server.remote import Remote, until

if TYPE_CHECKING:
    from tests.services.hindsight_server import HindsightServer

pytestmark = pytest.mark.hindsight

Open = Callable[..., Agent]


@pytest.mark.claim("E-05", "E-02", "R-15")
def test_an_unknown_bank_is_an_error_with_advice(agent: Open, remote: Remote) -> None:
    me = agent()
    with pytest.raises(HindsightError) as caught:
        me.session.recall("anything")
    error = caught.value
    assert error.status_code == 404
    assert error.message == f"recall failed: Bank '{me.bank}' not found"
    assert "nothing has been retained" in error.one_line()
    assert me.bank not in remote.banks()


@pytest.mark.claim("E-02", "E-03", "Q-09")
def test_a_wrong_token_is_refused_and_never_shown(
    agent: Open, remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    me = agent(token="a-very-wrong-token")
    for ask in (me.session.recall, me.session.reflect):
        with pytest.raises(HindsightError) as caught:
            ask("anything")
        assert caught.value.status_code == 401
        assert caught.value.message == f"{ask.__name__} failed: Authentication failed: Invalid API key"
        assert "a-very-wrong-token" not in caught.value.one_line() + repr(caught.value)
    me.session.retain(["One", "Two"])
    report = me.backend.flush()
    assert (report.sent, report.failed) == (0, 2)
    refused = "Memory retention failed for 2 memories: retainBatch failed: Authentication failed: Invalid API key"
    assert me.notices == [refused]
    assert me.states() == ["failed", "failed"]
    shown = f"{caplog.text}{me.notices}{me.session.status()}{me.backend!r}{me.session!r}{me.backend.queue_rows()}"
    assert "a-very-wrong-token" not in shown
    assert me.bank not in remote.banks()


@pytest.mark.claim("Q-09", "Q-10")
def test_a_server_that_dies_in_mid_flush(agent: Open, remote: Remote, hindsight_server: HindsightServer) -> None:
    me = agent()
    me.session.retain("Before the crash")
    me.session.flush()
    assert remote.texts(me.bank) == ["Before the crash"]

    me.session.retain(["Lost one", "Lost two"])
    hindsight_server.freeze()
    flushing = threading.Thread(target=me.backend.flush)
    flushing.start()
    until("the batch is on its way", lambda: me.states() == ["sending", "sending"])
    hindsight_server.kill()
    flushing.join(30)
    assert not flushing.is_alive()

    rows = me.backend.queue_rows()
    assert [row.text for row in rows] == ["Lost one", "Lost two"]
    assert {row.state for row in rows} <= {"unknown", "failed"}
    assert me.session.status()  # a status needs no server
    (notice,) = me.notices
    assert notice.startswith("Memory retention failed for 2 memories: retainBatch request failed: ")

    hindsight_server.start()
    assert remote.texts(me.bank) == ["Before the crash"]
    assert me.backend.resend(unknown=True).sent == 2
    assert remote.texts(me.bank) == ["Before the crash", "Lost one", "Lost two"]
    assert me.states() == []


@pytest.mark.claim("Q-09", "Q-10", "E-01", "E-02")
def test_a_server_that_is_down_and_comes_back(agent: Open, remote: Remote, hindsight_server: HindsightServer) -> None:
    me = agent("per-project-tagged", retainEveryNTurns=1)
    me.session.retain("Before the stop")
    me.session.flush()
    remote.settle(me.bank)
    hindsight_server.kill()
    with pytest.raises(HindsightError, match=r"^recall request failed: ") as caught:
        me.session.recall("before")
    assert (caught.value.status_code, caught.value.unknown) == (None, False)
    me.session.retain("While it was down")
    me.session.flush()
    assert me.states() == ["failed"]
    assert me.backend.resend().failed == 1
    assert me.states() == ["failed"]

    hindsight_server.start()
    assert "Before the stop" in me.session.recall("before the stop").text
    assert me.backend.resend().sent == 1
    assert me.states() == []
    assert remote.texts(me.bank) == ["Before the stop", "While it was down"]


@pytest.mark.claim("Q-08")
def test_work_that_the_server_took_on_survives_its_crash(
    agent: Open, remote: Remote, hindsight_server: HindsightServer
) -> None:
    me = agent()
    me.session.retain("Taken on before the crash")
    with hindsight_server.stub.fault("/embeddings", hold=True) as fault:
        assert me.backend.flush().sent == 1
        assert fault.reached.wait(30)
        assert remote.get(f"/{me.bank}/memories/list")["items"] == []
        hindsight_server.kill()
    hindsight_server.start()
    assert remote.texts(me.bank) == ["Taken on before the crash"]


class Deaf(httpx.HTTPTransport):
    """Carries requests to the server and loses the answers to the first retains."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses
        self.retains = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.method == "POST" and request.url.path.endswith("/memories"):
            self.retains += 1
            if self.retains <= self.losses:
                response.read()
                raise httpx.ReadError("the connection broke", request=request)
        return response


@pytest.mark.claim("Q-09", "E-05")
def test_a_batch_of_unknown_outcome_is_not_sent_again_by_itself(agent: Open, remote: Remote) -> None:
    transport = Deaf(losses=1)
    me = agent(transport=transport)
    me.session.retain("Perhaps it arrived")
    me.session.flush()
    me.session.flush()
    assert me.backend.resend().sent == 0
    assert me.states() == ["unknown"]
    assert len(me.notices) == 1
    assert transport.retains == 1
    assert remote.texts(me.bank) == ["Perhaps it arrived"]


@pytest.mark.claim("Q-10")
@pytest.mark.parametrize("losses", [1, 2])
def test_a_safe_resend_does_not_double(losses: int, agent: Open, remote: Remote) -> None:
    transport = Deaf(losses)
    me = agent(transport=transport, safeRetain=True)
    me.session.retain(["Only once", "And once"])
    me.session.flush()
    if losses == 2:
        assert me.states() == ["unknown", "unknown"]
        assert me.backend.resend().sent == 2
    assert transport.retains == losses + 1
    assert me.states() == []
    assert remote.texts(me.bank) == ["And once", "Only once"]


@pytest.mark.claim("E-02")
def test_b051_a_server_that_hangs_is_left_after_the_limit(
    agent: Open, remote: Remote, hindsight_server: HindsightServer
) -> None:
    me = agent(recallTimeoutMs=1000)
    me.session.retain("Something")
    me.session.flush()
    remote.settle(me.bank)
    hindsight_server.freeze()
    try:
        with pytest.raises(HindsightError) as caught:
            me.session.recall("something")
    finally:
        hindsight_server.thaw()
    assert caught.value.message == "recall request timed out after 1s"
    assert "Something" in me.session.recall("something").text


@pytest.mark.claim("R-25")
def test_a_recall_is_cancelled_while_the_server_hangs(
    agent: Open, remote: Remote, hindsight_server: HindsightServer
) -> None:
    me = agent()
    me.session.retain("Something")
    me.session.flush()
    remote.settle(me.bank)
    before = me.session.recall("something").text
    cancel = threading.Event()
    hindsight_server.freeze()
    try:
        threading.Timer(0.3, cancel.set).start()
        with pytest.raises(RecallCancelled):
            me.session.recall("something", cancel=cancel)
    finally:
        hindsight_server.thaw()
    assert me.session.recall("something").text == before


@pytest.mark.claim("E-01")
def test_a_failing_model_is_the_servers_error(agent: Open, remote: Remote, hindsight_server: HindsightServer) -> None:
    me = agent()
    with hindsight_server.stub.fault("/chat/completions", status=401), pytest.raises(HindsightError) as caught:
        me.session.reflect("anything?")
    assert caught.value.status_code == 500
    assert caught.value.message.startswith("reflect failed: ")
    assert me.session.reflect("anything?").text == hindsight_server.stub.answer


@pytest.mark.claim("A-04")
def test_failing_retention_sends_those_turns_the_next_time(
    agent: Open, remote: Remote, hindsight_server: HindsightServer
) -> None:
    from tests.real_server.test_hindsight_real import conversation, written

    me = agent(retainEveryNTurns=1)
    me.backend.service.ensure_bank()
    hindsight_server.kill()
    me.backend.end_turn(conversation(1))
    hindsight_server.start()
    me.backend.end_turn(conversation(2))
    assert remote.documents(me.bank) == {"session-1": written(conversation(2))}
