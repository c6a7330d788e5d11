"""The limits of one exchange: time as a whole, the head of the answer, and a caller that gives up."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpcore
import pytest

from ipy_memory.http import exchange as http
from ipy_memory.http import transport
from ipy_memory.http.failure import HttpFailure
from tests.backends.hindsight.raw import Act, RawServer, answer, sending
from tests.backends.hindsight.stub import StubServer
from tests.tls import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOON = 20.0
"""No exchange with a limit of a second may take this long."""


@pytest.fixture
def client() -> Iterator[http.HttpClient]:
    made = http.HttpClient()
    yield made
    made.close()


def get(client: http.HttpClient, url: str, seconds: float = 30.0, **given: Any) -> http.HttpAnswer:
    return client.exchange("GET", url, connect_seconds=5, total_seconds=seconds, **given)


def dripping(head: bytes, part: bytes = b"x") -> Act:
    """Return an act that sends a head and then one small part after the other, for ever."""

    def act(connection: socket.socket) -> bool:
        connection.sendall(head)
        over = threading.Event()
        with suppress(OSError):
            while not over.wait(0.05):
                connection.sendall(part)
        return False

    return act


DRIPS = {
    "status": dripping(b"", b"H"),
    "headers": dripping(b"HTTP/1.1 200 X\r\nx: "),
    "body": dripping(b"HTTP/1.1 200 X\r\ncontent-length: 9999\r\n\r\n"),
    "chunks": dripping(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "chunk head": dripping(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n1;", b"x"),
    "trailers": dripping(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
    "early answers": dripping(b"", b"HTTP/1.1 102 X\r\n\r\n"),
    "empty packed": dripping(
        b"HTTP/1.1 200 X\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
        b"a\r\n\x1f\x8b\x08\x08\0\0\0\0\0\x03\r\n",
        b"1\r\nn\r\n",
    ),
}


@pytest.mark.parametrize("what", DRIPS)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_server_that_drips_is_held_to_the_limit_of_the_whole(
    what: str,
    secure: bool,
    client: http.HttpClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    began = time.monotonic()
    with RawServer(DRIPS[what], authority.context("127.0.0.1") if secure else None) as server:
        with pytest.raises(HttpFailure) as caught:
            get(client, server.url, 0.5)
        assert caught.value.timed_out
    assert time.monotonic() - began < SOON


def test_a_handshake_that_drips_is_held_to_the_limit(client: http.HttpClient) -> None:
    began = time.monotonic()
    with RawServer(dripping(b"\x16\x03\x03\x40\x00", b"\x02")) as server:
        server.reads_requests = False
        with pytest.raises(HttpFailure) as caught:
            get(client, f"https://127.0.0.1:{server.port}/", 1.0)
    assert caught.value.timed_out
    assert not caught.value.sent
    assert time.monotonic() - began < SOON


def test_a_server_that_does_not_read_is_held_to_the_limit(client: http.HttpClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(HttpFailure) as caught:
        get(client, f"http://127.0.0.1:{listener.getsockname()[1]}/", 1.0, content=b"x" * 50_000_000)
    assert caught.value.timed_out


FLOODS = {
    "headers": lambda c: c.sendall(b"x-%d: %s\r\n" % (id(c), b"y" * 1000)),
    "early answers": lambda c: c.sendall(b"HTTP/1.1 103 X\r\nlink: x\r\n\r\n" * 100),
}


@pytest.mark.parametrize("what", FLOODS)
def test_an_endless_head_is_refused_long_before_the_limit(what: str, client: http.HttpClient) -> None:
    def act(connection: socket.socket) -> bool:
        if what == "headers":
            connection.sendall(b"HTTP/1.1 200 X\r\n")
        with suppress(OSError):
            while True:
                FLOODS[what](connection)
        return False

    with RawServer(act) as server, pytest.raises(HttpFailure, match="does not speak HTTP") as caught:
        get(client, server.url, 600.0)
    assert not caught.value.timed_out


def test_the_limit_of_the_head_is_not_one_of_the_body(client: http.HttpClient) -> None:
    body = b"x" * (2 * transport.MAX_HEAD_BYTES)
    with RawServer(sending(answer(body), again=True)) as server:
        for _ in range(2):
            assert get(client, server.url).body == body


def test_each_exchange_has_its_own_limit(client: http.HttpClient) -> None:
    with StubServer([{"delay_ms": 60_000}]) as server:
        with pytest.raises(HttpFailure) as caught:
            get(client, f"{server.url}/x", 0.2)
        assert caught.value.timed_out
        server.released.set()
        assert get(client, f"{server.url}/x").status == 200


def test_a_caller_that_gives_up_ends_the_wait(client: http.HttpClient) -> None:
    stop = threading.Event()

    def act(connection: socket.socket) -> bool:
        stop.set()
        return dripping(b"HTTP/1.1 200 X\r\n")(connection)

    with RawServer(act) as server, pytest.raises(http.ExchangeStopped):
        get(client, server.url, 600.0, stop=stop.is_set)


@pytest.mark.parametrize(
    ("said", "held"),
    [(5, b"{}"), (1_000_000, b"{}")],
)
def test_a_body_shorter_than_it_was_said_to_be_is_a_failure(said: int, held: bytes, client: http.HttpClient) -> None:
    raw = b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n%s" % (said, held)
    with RawServer(sending(raw)) as server, pytest.raises(HttpFailure, match="broke off") as caught:
        get(client, server.url)
    assert caught.value.sent


def test_what_follows_a_body_is_never_taken_for_an_answer(client: http.HttpClient) -> None:
    late = answer(b'{"late":1}')
    with RawServer(sending(answer(b"{}") + late, again=True)) as server:
        assert get(client, server.url).body == b"{}"
        assert get(client, server.url).body == b"{}"


class TestAddresses:
    def connect(
        self, monkeypatch: pytest.MonkeyPatch, outcomes: list[Exception | None], seconds: float | None = None
    ) -> list[tuple[str, float | None]]:
        """Connect to a host of some addresses whose attempts end in some way; return what was tried."""
        tried: list[tuple[str, float | None]] = []
        found = [(0, 0, 0, "", (f"10.0.0.{number}", 80)) for number in range(len(outcomes))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: found)

        def connect_tcp(_self: object, host: str, _port: int, timeout: float | None, *_: object) -> object:
            tried.append((host, timeout))
            if (outcome := outcomes[len(tried) - 1]) is not None:
                raise outcome
            return object()

        monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect_tcp)
        limit = transport._Limit()
        transport._Network(limit).connect_tcp("memory.test", 80, seconds)
        return tried

    def test_each_is_tried_until_one_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        outcomes = [httpcore.ConnectError("no"), httpcore.ConnectTimeout("no"), None, None]
        assert [host for host, _ in self.connect(monkeypatch, outcomes)] == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]

    def test_they_share_one_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = iter([100.0, 101.0, 104.0, 109.0])
        monkeypatch.setattr(time, "monotonic", lambda: next(now))
        tried = self.connect(monkeypatch, [httpcore.ConnectTimeout("no"), httpcore.ConnectTimeout("no"), None], 10.0)
        assert [left for _, left in tried] == [9.0, 6.0, 1.0]

    def test_the_last_error_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(httpcore.ConnectTimeout, match="second"):
            self.connect(monkeypatch, [httpcore.ConnectError("first"), httpcore.ConnectTimeout("second")])
