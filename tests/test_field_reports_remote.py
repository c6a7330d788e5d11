"""Reports of what went wrong for others on a Hindsight server, each as a test by the number of its row.

The server of these tests is a stand-in that answers by rules, or one that sends any bytes; those of the real server
are in ``tests/real_server``, those of the notebook in ``tests/notebook/test_field_reports.py``.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.hindsight.backend import HindsightBackend
from ipy_memory.backends.hindsight.client import HindsightClient, Item
from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.errors import (
    BankNotFoundError,
    HindsightError,
    MemoryNotFoundError,
    MemoryToolkitError,
    ReadOnlyBankError,
    SettingsError,
)
from ipy_memory.explore.status import report_text
from ipy_memory.session import MemorySession, open_session
from ipy_memory.settings.table import SETTINGS
from tests.backends.hindsight.raw import RawServer, answer, sending
from tests.backends.hindsight.stub import StubServer, until

if TYPE_CHECKING:
    from pathlib import Path

KEY = "k-" + "e7c1" * 6
NOW = "2026-06-01T12:00:00.000Z"
TIMERS = ManualTimers()

Open = Callable[..., MemorySession]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open a session on a server: ``opened(url, **settings without the "hindsight." prefix)``."""
    made: list[MemorySession] = []

    def open_one(url: str, cwd: str = "/work/shop", **settings: Any) -> MemorySession:
        given = {"apiUrl": url, "apiToken": KEY, "mentalModelsEnabled": False, "retainTimeoutMs": 3_000} | settings
        session = open_session(
            "hindsight",
            cwd,
            settings={f"hindsight.{name}": value for name, value in given.items()},
            agent_dir=tmp_path,
            env={},
            clock=FixedClock(NOW),
            ids=FixedIds(),
            timers=TIMERS,
        )
        made.append(session)
        return session

    yield open_one
    for session in made:
        if isinstance(session.backend, HindsightBackend):
            session.backend.owned = lambda: False
        session.close()


def hits(*texts: str, **more: Any) -> dict[str, Any]:
    return {"body": {"results": [{"id": f"id-{n}", "text": text, **more} for n, text in enumerate(texts)]}}


def sent(stub: StubServer) -> list[str]:
    return [f"{r['method']} {r['url'].removeprefix('/v1/default/banks')}" for r in stub.requests]


def service(session: MemorySession) -> HindsightBackend:
    assert isinstance(session.backend, HindsightBackend)
    return session.backend


# ---- what is recalled


@pytest.mark.claim("C-10", "E-02")
def test_b051_a_server_that_never_answers_is_left_after_the_limit(opened: Open, stub: StubServer) -> None:
    stub.answer_with([{"delay_ms": 600_000}])
    with pytest.raises(HindsightError) as caught:
        opened(stub.url, recallTimeoutMs=100).recall("x")
    line = caught.value.one_line()
    assert line.startswith("HindsightError: recall request timed out after 0s [bank omp at http://127.0.0.1:")
    assert KEY not in line


def test_b052_half_a_surrogate_and_a_nul_lose_nothing_else(opened: Open, stub: StubServer) -> None:
    odd = "ok \ud83d done a\0b"
    stub.answer_with([{"method": "PUT"}, hits(odd) | {"url_contains": "/recall"}])
    session = opened(stub.url)
    frame = session.recall(odd).frame()
    session.retain(odd)
    session.flush()
    assert "done" in frame["content"].iloc[0]
    assert frame["content"].iloc[0].encode()
    assert stub.requests[0]["body"]["query"] == odd
    assert stub.requests[-1]["body"]["items"][0]["content"] == odd


@pytest.mark.parametrize(
    "name", [name for name, row in SETTINGS.items() if name.startswith("hindsight.") and row.type == "number"]
)
@pytest.mark.parametrize("value", [0, -1, 1e300])
def test_b054_every_number_works_or_is_refused_with_its_name(
    opened: Open, stub: StubServer, name: str, value: float
) -> None:
    no_time = name == "hindsight.recallTimeoutMs" and value <= 0
    slow = {"delay_ms": 600_000} if no_time else {}
    stub.answer_with([{"method": "PUT"}, hits("one") | {"url_contains": "/recall"} | slow])
    session = opened(stub.url, **{name.removeprefix("hindsight."): value})
    if no_time:
        with pytest.raises(HindsightError, match="timed out after 0s"):
            session.recall("x")
    else:
        assert "one" in session.recall("x").text
    with session.turn("hello") as turn:
        turn.answer("hi")
    session.retain("x")
    session.flush()
    session.close()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "5", True])
def test_b054_what_is_no_number_is_refused_at_once(opened: Open, stub: StubServer, value: Any) -> None:
    with pytest.raises(SettingsError, match=r"hindsight\.recallMaxTokens"):
        opened(stub.url, recallMaxTokens=value)


@pytest.mark.claim("R-24")
def test_b056_a_limit_of_rows_is_said_and_is_no_budget(opened: Open, stub: StubServer) -> None:
    stub.answer_with([hits(*map(str, range(9)))])
    session = opened(stub.url)
    cut = session.recall("x", limit=5)
    assert cut.text.startswith("Found 5 relevant memories")
    assert cut.notes == ("5 of 9 shown",)
    assert cut.frame()["content"].tolist() == ["0", "1", "2", "3", "4"]
    assert stub.requests[0]["body"]["max_tokens"] == 1024
    assert session.recall("x", limit=9).notes == session.recall("x").notes == ()


def test_b066_nulls_and_wrong_types_never_break_a_recall(opened: Open, stub: StubServer) -> None:
    rows = [
        None,
        1,
        {"text": None},
        {"text": "a", "metadata": {"ocr": None}, "scores": None, "tags": None, "type": None, "mentioned_at": None},
        {"text": "b", "metadata": [1], "scores": {"final": "0.5", "semantic": True}, "tags": "t", "type": 3, "id": 7},
        {"text": "c", "scores": {"final": 10**400}, "occurred_start": "no date", "mentioned_at": "99999-01-01"},
        {"text": "d", "scores": {"final": 0.5, "keyword": None}},
    ]
    stub.answer_with([{"body": {"results": rows}}])
    result = opened(stub.url).recall("x")
    frame = result.frame()
    assert frame["content"].tolist() == ["a", "b", "c", "d"]
    assert frame["score"].isna().tolist() == [True, True, True, False]
    assert "3 entries of the answer had no text" in result.notes


def test_b066_metadata_is_sent_as_the_server_takes_it(stub: StubServer) -> None:
    client = HindsightClient(stub.url)
    client.retain("omp", Item("x", metadata={"ocr": None, "page": 3, "ok": True, "name": "é"}))
    client.close()
    assert stub.requests[0]["body"]["items"][0]["metadata"] == {"page": "3", "ok": "true", "name": "é"}


def test_b068_a_number_in_a_query_is_no_time(opened: Open, stub: StubServer) -> None:
    stub.answer_with([hits("service listens on port 9077")])
    result = opened(stub.url).recall("port 9077")
    assert set(stub.requests[0]["body"]) == {"query", "types", "max_tokens", "budget", "tags", "tags_match"}
    assert "9077" in result.text


def test_b008_recall_names_no_address_that_the_server_cannot_serve(opened: Open, stub: StubServer) -> None:
    stub.answer_with([hits("one")])
    session = opened(stub.url)
    assert "memory://" not in session.recall("x").text + session.tools["recall"].spec.description
    with pytest.raises(MemoryToolkitError, match="Hindsight") as caught:
        session.read("id-0")
    assert "\n" not in caught.value.one_line()


# ---- what the server does not say


def test_scores_are_columns_and_their_absence_has_a_reason(opened: Open, stub: StubServer) -> None:
    parts = {"final": 0.9, "semantic": 0.5, "keyword": 2.0, "reranker": None}
    stub.answer_with([hits("one", scores=parts)])
    frame = opened(stub.url).recall("x").frame()
    assert frame[["score", "semantic_score", "keyword_score"]].values.tolist() == [[0.9, 0.5, 2.0]]
    assert "scores" not in frame.attrs
    stub.answer_with([hits("one")])
    old = opened(stub.url).recall("x").frame()
    assert old["score"].isna().all()
    assert "0.8.4" in old.attrs["scores"]


@pytest.mark.claim("R-23")
def test_silent_trouble_is_said_without_a_further_request(opened: Open, stub: StubServer) -> None:
    stub.answer_with([{"body": {"results": []}}])
    session = opened(stub.url, recallTypes=["world", "opinion"])
    (types,) = session.recall("x").notes
    assert "'opinion'" in types
    assert "observation" in types
    (_, long) = session.recall("word " * 400).notes
    assert "500 tokens" in long
    stub.answer_with([{"text": "<html>a proxy's page</html>"}])
    (odd,) = opened(stub.url).recall("x").notes
    assert "hindsight.apiUrl" in odd
    assert {one.split()[0] for one in sent(stub)} == {"POST"}
    assert "no text" in opened(stub.url).reflect("x").notes[0]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"status": 503, "headers": {"retry-after": "2"}, "body": {"detail": "full"}}, "busy: try again in 2 s"),
        ({"status": 400, "body": {"detail": "Query too long: 503 tokens exceeds maximum of 500"}}, "fewer words"),
        ({"status": 422, "body": {"detail": "query must contain a word character"}}, "letter or digit"),
        ({"status": 500, "text": ""}, "HTTP 500"),
        ({"status": 404, "body": {"detail": "Bank 'omp' not found"}}, "nothing has been retained in this bank yet"),
        ({"status": 502, "text": "<html>\x1b[31m" + "x" * 9_000}, "…"),
    ],
)
def test_g19_an_error_is_one_short_line_that_says_what_to_do(
    opened: Open, stub: StubServer, rule: dict[str, Any], said: str
) -> None:
    stub.answer_with([rule])
    with pytest.raises(HindsightError) as caught:
        opened(stub.url).recall("x")
    line = caught.value.one_line()
    assert said in line
    assert len(line) < 1_000
    assert "\x1b" not in line
    assert "bank omp at http://127.0.0.1:" in line


# ---- an answer that is none


ASKING: dict[str, Callable[[MemorySession], object]] = {
    "browse": lambda session: session.memories(),
    "why": lambda session: session.why("id", "x"),
    "stats": lambda session: session.stats(),
    "one bank": lambda session: session.recall("x", bank="omp"),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
@pytest.mark.parametrize("text", ["<html>hello</html>", "[1, 2]", '"text"', '{"error": "down"}', "{}", "", "NaN"])
def test_g20_what_a_person_asked_for_is_never_empty_by_mistake(
    opened: Open, stub: StubServer, ask: Callable[[MemorySession], object], text: str
) -> None:
    stub.answer_with([{"text": text}])
    with pytest.raises((HindsightError, MemoryNotFoundError)) as caught:
        ask(opened(stub.url))
    assert "127.0.0.1" in caught.value.one_line() or isinstance(caught.value, MemoryNotFoundError)


def test_b049_a_batch_that_the_server_disowns_is_not_sent(opened: Open, stub: StubServer) -> None:
    stub.answer_with([{"method": "PUT"}, {"body": {"success": False}}])
    session = opened(stub.url)
    session.retain("one")
    session.flush()
    assert [row.state for row in service(session).queue_rows()] == ["failed"]
    assert "no success" in session.notices[0].text


BOMB = gzip.compress(b"0" * 200_000_000, 9)
BROKEN = {
    "half a body": sending(b"HTTP/1.1 200 X\r\ncontent-length: 1000\r\n\r\n{"),
    "a reset": sending(b"HTTP/1.1 200 X\r\ncontent-length: 1000\r\n\r\n{", reset=True),
    "TLS": sending(b"\x15\x03\x01\x00\x02\x02\x46"),
    "endless headers": sending(b"HTTP/1.1 200 X\r\n" + b"a: b\r\n" * 300_000),
    "no gzip": sending(answer(b"{}", "content-encoding: gzip")),
    "a gzip bomb": sending(answer(BOMB, "content-encoding: gzip")),
    "an odd status": sending(b"HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n"),
    "nothing": sending(b""),
}


@pytest.mark.parametrize("act", BROKEN.values(), ids=BROKEN)
def test_g20_a_broken_answer_is_one_error(opened: Open, act: Any) -> None:
    with RawServer(act) as server, pytest.raises(HindsightError) as caught:
        opened(server.url, recallTimeoutMs=20_000).recall("x")
    line = caught.value.one_line()
    assert line.startswith("HindsightError: recall ")
    assert server.url in line
    assert KEY not in line + repr(caught.value) + str(caught.value.details)


def test_g20_a_connection_that_the_server_closed_meanwhile_is_opened_again(opened: Open) -> None:
    body = json.dumps({"results": [{"text": "here"}]}).encode()
    with RawServer(sending(answer(body))) as server:  # it says nothing of closing
        session = opened(server.url)
        for count in (1, 2, 3):
            assert "here" in session.recall("x").text
            assert len(server.heads) == count
            assert server.closed.acquire(timeout=60)


def test_g20_the_key_follows_no_redirect_and_echoes_nowhere(
    opened: Open, stub: StubServer, caplog: pytest.LogCaptureFixture
) -> None:
    with StubServer() as other:
        for status in (301, 302, 303, 307, 308):
            stub.answer_with([{"status": status, "headers": {"location": f"{other.url}/x?key={KEY}"}}])
            with pytest.raises(HindsightError) as caught:
                opened(stub.url).recall("x")
            assert f"redirects to {other.url}:" in caught.value.one_line()
            assert KEY not in caught.value.one_line()
        assert other.requests == []
    stub.answer_with([{"status": 401, "body": {"detail": f"bad key {KEY}"}}])
    session = opened(stub.url)
    session.retain("x")
    session.flush()
    shown = f"{caplog.text}{session.notices}{session.diagnose()}{service(session).queue_rows()}{session.status()}"
    assert "bad key [REDACTED]" in shown
    assert KEY not in shown


def test_g13_a_key_in_the_address_is_shown_nowhere(opened: Open) -> None:
    session = opened(f"http://me:{KEY}@127.0.0.1:1/base?key={KEY}#{KEY}", requestTimeoutMs=1_000)
    with pytest.raises(HindsightError) as caught:
        session.recall("x")
    backend = service(session)
    shown = f"{caught.value.one_line()}{session!r}{session.status()}{session.settings.table()}{session.settings!r}"
    shown += f"{backend!r}{backend.config!r}{session.diagnose()}{report_text(session)}"
    assert "127.0.0.1:1" in shown
    assert KEY not in shown


# ---- banks


BANKS = {"banks": [{"bank_id": name} for name in ("project", "omp", "other")], "total": 3}
NO_BANK = {"method": "POST", "status": 404, "body": {"detail": "Bank 'projct' not found"}}


@pytest.mark.parametrize("rule", [NO_BANK, {"method": "POST", "body": {"results": []}}], ids=["1.1", "0.9"])
def test_b060_a_typo_in_a_banks_name_makes_none_and_names_the_near_ones(
    opened: Open, stub: StubServer, rule: dict[str, Any]
) -> None:
    stub.answer_with([{"method": "GET", "body": BANKS}, rule])
    session = opened(stub.url)
    for ask in (session.recall, session.reflect):
        with pytest.raises(BankNotFoundError, match="projct") as caught:
            ask("x", bank="projct")
        assert "there are project;" in caught.value.one_line()
    assert {one.split("?")[0] for one in sent(stub)} == {"POST /projct/memories/recall", "GET "}


def test_b060_another_bank_is_read_as_a_whole_and_never_written(opened: Open, stub: StubServer) -> None:
    stub.answer_with([{"method": "GET", "body": BANKS}, hits("one", "two") | {"method": "POST"}])
    session = opened(stub.url)
    found = session.recall("x", bank="other", limit=1)
    assert (found.notes, found.attrs["banks"]) == (("1 of 2 shown",), ["other"])
    assert "tags" not in stub.requests[0]["body"]
    assert session.recall("x").attrs["banks"] == ["omp"]
    session.reflect("x", bank="other")
    assert sent(stub)[-1] == "POST /other/reflect"
    assert not [one for one in sent(stub) if one.startswith("PUT")]
    one = service(session).one_bank("other")
    with pytest.raises(ReadOnlyBankError):
        one.retain([])
    assert one.flush().sent == 0


def test_b127_a_bank_that_is_not_there_has_no_memories_and_another_one_is_an_error(
    opened: Open, stub: StubServer
) -> None:
    stub.answer_with([{"method": "GET", "url": "/v1/default/banks?limit=10000", "body": BANKS}, {"status": 404}])
    session = opened(stub.url)
    frame = session.memories()
    assert frame.empty
    assert "content" in frame.columns
    assert session.stats() == "Bank omp is not there yet: the first retain makes it."
    with pytest.raises(BankNotFoundError, match="projct"):
        session.memories("projct")


def test_a_server_and_a_bank_are_described(opened: Open, stub: StubServer) -> None:
    held = {"total_nodes": 12, "nodes_by_fact_type": {"world": 12}, "total_documents": 3, "pending_operations": 1}
    stub.answer_with(
        [
            {"url_contains": "/stats", "body": held},
            {"url": "/health", "status": 503, "body": {"status": "unhealthy", "database": "down"}},
            {"url": "/version", "body": {"api_version": "1.1.0"}},
        ]
    )
    session = opened(stub.url)
    session.retain("waits")
    told = session.stats()
    assert "- memories: 12 (world 12)" in told
    assert "- operations under way: 1" in told
    assert "not known to have arrived: 1" in told
    well = session.diagnose()
    assert "- server: version 1.1.0" in well
    assert "- health: not well: health failed:" in well
    assert "- bank: omp, 12 memories" in well
    stub.answer_with([{"status": 404, "body": {"detail": "Bank 'omp' not found"}}])
    assert "- bank: not there yet" in session.diagnose()


def test_the_client_reaches_what_only_a_person_asks_for(stub: StubServer) -> None:
    client = HindsightClient(stub.url)
    client.get_bank_profile("a/b")
    client.delete_bank("a/b")
    client.close()
    assert sent(stub) == ["GET /a%2Fb/profile", "DELETE /a%2Fb"]


# ---- the queue


def test_g6_a_batch_that_is_sent_again_has_the_same_id(opened: Open, stub: StubServer) -> None:
    stub.answer_with([{"method": "PUT"}, {"times": 1, "delay_ms": 600_000}, {"times": 1, "delay_ms": 600_000}])
    session = opened(stub.url, safeRetain=True, retainTimeoutMs=100)
    session.retain("once")
    session.flush()
    assert [row.state for row in service(session).queue_rows()] == ["unknown"]
    assert service(session).resend().sent == 1
    bodies = [r["body"] for r in stub.requests if r["method"] == "POST"]
    assert len(bodies) == 3
    assert bodies[0]["operation_id"]
    assert bodies[0] == bodies[1] == bodies[2]


def interrupt_next_send(session: MemorySession) -> None:
    """Break off the next send, as Ctrl-C does while an answer is awaited."""
    carrier: Any = service(session).service
    usual = carrier.send

    def send(*_: Any) -> None:
        carrier.send = usual
        raise KeyboardInterrupt

    carrier.send = send


def test_g5_ctrl_c_while_a_session_closes_tells_what_is_lost(opened: Open, stub: StubServer) -> None:
    session = opened(stub.url)
    session.retain(["one", "two"])
    interrupt_next_send(session)
    with pytest.raises(KeyboardInterrupt):
        session.close()
    told = "2 memories may or may not have arrived in the Hindsight bank omp"
    assert [notice.text for notice in session.notices] == [told]
    assert session.backend is None


@pytest.mark.claim("S-13")
def test_g5_ctrl_c_while_a_session_moves_leaves_it_where_it_was(opened: Open, stub: StubServer) -> None:
    session = opened(stub.url)
    session.retain("one")
    interrupt_next_send(session)
    with pytest.raises(KeyboardInterrupt):
        session.rebind(None, {"hindsight.scoping": "per-project"})
    backend = service(session)
    assert backend.retain_bank == "omp"
    assert [row.state for row in backend.queue_rows()] == ["unknown"]
    session.retain("two")  # the queue takes items again
    session.rebind(None, {"hindsight.scoping": "per-project"})
    assert service(session).retain_bank == "omp-shop"
    assert [r["body"]["items"][0]["content"] for r in stub.requests if r["method"] == "POST"] == ["two"]


def test_g24_opening_and_closing_leaves_no_thread_and_sends_nothing(opened: Open, stub: StubServer) -> None:
    before = threading.active_count()
    opened(stub.url).close()
    assert stub.requests == []
    until(lambda: threading.active_count() <= before)
