"""One request an endpoint: what is sent, what answers become, and how failures are told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.hindsight.client import HindsightClient, Item, TimeLimits
from ipy_memory.backends.hindsight.request import MISSING_BANK_HINT, origin, segment
from ipy_memory.clock import FixedClock
from ipy_memory.errors import BankNameError, HindsightError, RecallCancelled
from ipy_memory.http.exchange import USER_AGENT
from tests.backends.hindsight.stub import StubServer, until

KEY = "k3y-" + "for-tests"


Connect = Callable[..., HindsightClient]


@pytest.fixture
def client() -> Iterator[Connect]:
    with ExitStack() as opened:

        def connect(stub: StubServer, path: str = "", **more: Any) -> HindsightClient:
            made = HindsightClient(stub.url + path, **more)
            opened.callback(made.close)
            return made

        yield connect


def answering(answer: httpx.Response | Exception) -> HindsightClient:
    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return HindsightClient("http://memory.test", KEY, transport=httpx.MockTransport(handle))


@pytest.mark.claim("R-23", "R-24")
def test_recall_is_one_request_with_its_keys_in_order(client: Connect, stub: StubServer) -> None:
    client(stub).recall("omp", "q", types=["world"], max_tokens=9, budget="low", tags=["t"], tags_match="any")
    client(stub).recall("omp", "q", types=[])
    first, second = stub.requests
    assert list(first["body"]) == ["query", "types", "max_tokens", "budget", "tags", "tags_match"]
    assert second["body"] == {"query": "q", "budget": "mid"}
    assert (first["method"], first["url"]) == ("POST", "/v1/default/banks/omp/memories/recall")


@pytest.mark.claim("F-04")
def test_reflect_alone_defaults_to_a_low_budget_and_keeps_an_empty_context(client: Connect, stub: StubServer) -> None:
    client(stub).reflect("omp", "q", context="")
    assert stub.requests[0]["body"] == {"query": "q", "context": "", "budget": "low"}


@pytest.mark.claim("E-04")
def test_ids_are_one_path_segment_and_slashes_at_the_end_of_the_url_go(client: Connect, stub: StubServer) -> None:
    client(stub, "/base//").list_documents("my bank/ü", limit=2)
    assert stub.requests[0]["url"] == "/base/v1/default/banks/my%20bank%2F%C3%BC/documents?limit=2"


@pytest.mark.claim("E-04")
@given(st.text(min_size=1))
def test_a_segment_never_reaches_another_path(text: str) -> None:
    if text in {".", ".."}:
        with pytest.raises(BankNameError):
            segment(text)
    else:
        assert not set(segment(text)) & set("/?#\\ \n")


@pytest.mark.claim("E-03", "E-01")
def test_the_key_is_sent_and_shown_nowhere(client: Connect, stub: StubServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stub.answer_with([{"status": 401, "body": {"detail": f"bad key {KEY}"}}])
    asked = client(stub, token=KEY)
    with pytest.raises(HindsightError) as caught:
        asked.recall("omp", "q")
    assert stub.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    shown = [repr(asked), str(caught.value), caught.value.one_line(), repr(caught.value.details), caplog.text]
    assert not any(KEY in text for text in shown)
    assert caught.value.status_code == 401
    assert "hindsight.apiToken" in caught.value.one_line()


@pytest.mark.claim("E-03")
def test_a_key_that_cannot_be_sent_is_not_in_the_error() -> None:
    for odd in (KEY + "\nx", KEY + "€"):
        with pytest.raises(HindsightError) as caught:
            HindsightClient("http://127.0.0.1:9", odd).recall("omp", "q")
        assert KEY not in caught.value.one_line()
        assert caught.value.__cause__ is None


@pytest.mark.claim("E-03")
def test_the_shown_address_has_no_user_and_no_password() -> None:
    assert origin("https://u:p@host.test:8443/x?y=1") == "https://host.test:8443"
    assert origin("not a url") == "an invalid address"


def test_the_client_says_who_it_is(client: Connect, stub: StubServer) -> None:
    client(stub).list_banks()
    assert stub.requests[0]["headers"]["user-agent"] == USER_AGENT


@pytest.mark.claim("E-02")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"detail": "d", "message": "m"}', "d"),
        ('{"detail": null, "message": "m"}', "m"),
        ('{"detail": [1, {"a": 1.0}]}', '[1,{"a":1}]'),
        ('{"detail": null}', '{"detail":null}'),
        ('{"detail": NaN}', '{"detail": NaN}'),
        ("<html>", "<html>"),
        ('"text"', "text"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_detail_of_an_error(body: str, said: str) -> None:
    with pytest.raises(HindsightError) as caught:
        answering(httpx.Response(500, text=body)).create_bank("omp")
    assert caught.value.message == f"createBank failed: {said}"


@pytest.mark.claim("E-01")
@pytest.mark.parametrize("body", ["", "not json", "null", "\ufeff{}"])
def test_a_success_without_readable_body_is_an_empty_object(body: str) -> None:
    assert answering(httpx.Response(200, content=body.encode())).recall("omp", "q") == {}


@pytest.mark.claim("E-05")
def test_a_missing_bank_is_an_error_with_a_hint() -> None:
    with pytest.raises(HindsightError) as caught:
        answering(httpx.Response(404, json={"detail": "Bank 'omp' not found"})).recall("omp", "q")
    assert caught.value.message == "recall failed: Bank 'omp' not found"
    assert MISSING_BANK_HINT in caught.value.one_line()
    with pytest.raises(HindsightError) as other:
        answering(httpx.Response(404, json={"detail": "no such route"})).recall("omp", "q")
    assert other.value.hint is None


@pytest.mark.claim("E-05")
def test_only_documents_and_models_may_be_missing() -> None:
    absent = answering(httpx.Response(404, json={"detail": "x"}))
    assert absent.get_document("omp", "d") is None
    assert absent.delete_document("omp", "d") is False
    assert absent.get_mental_model("omp", "m") is None
    assert absent.delete_mental_model("omp", "m") is False
    assert answering(httpx.Response(200, json=False)).delete_document("omp", "d") is True
    with pytest.raises(HindsightError):
        absent.update_document("omp", "d", tags=[])


@pytest.mark.claim("E-01", "E-02")
def test_lost_connections_are_told_from_those_that_never_were(client: Connect) -> None:
    with pytest.raises(HindsightError) as lost:
        answering(httpx.ReadError("secret text")).recall("omp", "q")
    assert (lost.value.message, lost.value.unknown) == ("recall request failed: the connection was lost", True)
    with StubServer() as gone:
        pass
    with pytest.raises(HindsightError) as refused:
        client(gone).recall("omp", "q")
    assert (refused.value.message, refused.value.unknown) == (
        "recall request failed: no connection to the server",
        False,
    )


@pytest.mark.claim("E-01", "C-10")
@pytest.mark.parametrize("rule", [{"delay_ms": 60_000}, {"drip_seconds": 0.05}, {"drip_seconds": 0.05, "fast": 110}])
def test_a_slow_answer_is_stopped_by_the_limit_of_the_whole(
    client: Connect, stub: StubServer, rule: dict[str, Any]
) -> None:
    stub.answer_with([{"text": '{"results": []}' + " " * 100, **rule}])
    with pytest.raises(HindsightError) as caught:
        client(stub, limits=TimeLimits(recall_ms=300)).recall("omp", "q")
    assert caught.value.message == "recall request timed out after 0s"
    assert caught.value.unknown


@pytest.mark.claim("E-02")
@pytest.mark.parametrize(("ms", "shown"), [(400, "0"), (500, "1"), (1_499, "1"), (2_500, "3")])
def test_the_seconds_of_a_time_out_are_rounded_half_up(ms: int, shown: str) -> None:
    late = answering(httpx.ReadTimeout("x"))
    late.limits = TimeLimits(recall_ms=ms)
    with pytest.raises(HindsightError, match=f"^recall request timed out after {shown}s$"):
        late.recall("omp", "q")


@pytest.mark.claim("C-03", "C-04", "C-10")
def test_the_limits_of_time() -> None:
    limits = TimeLimits()
    assert (limits.recall_ms, limits.retain_ms, limits.request_ms, limits.reflect_ms) == (
        30_000,
        60_000,
        30_000,
        120_000,
    )


@pytest.mark.claim("R-25")
def test_a_cancelled_recall_stops_while_the_server_is_silent(client: Connect, stub: StubServer) -> None:
    stub.answer_with([{"delay_ms": 60_000}])
    stop = threading.Event()
    asked = client(stub)
    threading.Thread(target=lambda: (until(lambda: stub.requests), stop.set())).start()
    with pytest.raises(RecallCancelled):
        asked.recall("omp", "q", stop=stop.is_set)
    stub.released.set()
    stub.answer_with([{"body": {"results": [1]}}])
    assert asked.recall("omp", "q", stop=lambda: False) == {"results": [1]}


def test_a_redirect_takes_neither_key_nor_text_to_another_host(client: Connect, stub: StubServer) -> None:
    with StubServer() as other:
        stub.answer_with([{"status": 307, "headers": {"location": f"{other.url}/x"}}])
        with pytest.raises(HindsightError) as caught:
            client(stub, token=KEY).recall("omp", "q")
        assert other.requests == []
        assert other.url in caught.value.one_line()


def test_an_endless_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipy_memory.http.exchange.MAX_ANSWER_BYTES", 1_000)
    with pytest.raises(HindsightError, match="the answer is too large"):
        answering(httpx.Response(200, content=b"x" * 2_000)).recall("omp", "q")


@pytest.mark.claim("Q-03")
def test_instants_are_local_time_and_texts_go_through(client: Connect, stub: StubServer) -> None:
    from zoneinfo import ZoneInfo

    moment = FixedClock("2026-07-01T03:04:05.006Z").now_ms()
    asked = client(stub, tz=ZoneInfo("Asia/Kathmandu"))
    asked.retain("omp", Item("a", timestamp=moment))
    asked.retain("omp", Item("a", timestamp="2026-05-01"))
    stamps = [request["body"]["items"][0]["timestamp"] for request in stub.requests]
    assert stamps == ["2026-07-01T08:49:05.006+05:45", "2026-05-01"]


def test_text_is_sent_as_valid_json_whatever_it_holds(client: Connect, stub: StubServer) -> None:
    client(stub).recall("omp", "ok \ud83d done \0 日本")
    assert stub.requests[0]["body"]["query"] == "ok \ud83d done \0 日本"
