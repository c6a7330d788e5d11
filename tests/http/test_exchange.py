"""Exchanges: what is sent, what comes back, and the limits of both."""

from __future__ import annotations

import gzip
import json
import logging
import os
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.http import exchange as http
from ipy_memory.http.failure import HttpFailure
from tests.backends.hindsight.raw import RawServer, answer, sending
from tests.backends.hindsight.stub import StubServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@pytest.fixture
def client() -> Iterator[http.HttpClient]:
    made = http.HttpClient()
    yield made
    made.close()


def get(client: http.HttpClient, url: str, *headers: tuple[str, str], seconds: float = 30.0) -> http.HttpAnswer:
    return client.exchange("GET", url, headers=headers, connect_seconds=5, total_seconds=seconds)


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzipped,
    "x-gzip": gzipped,
    "deflate": zlib.compress,
    "identity": lambda data: data,
}


def packed(data: bytes, names: Sequence[str]) -> bytes:
    for name in names:
        data = PACKERS[name](data)
    return data


class TestWhatIsSent:
    def test_a_failure_repeats_nothing_of_it(self, client: http.HttpClient) -> None:
        with StubServer() as gone:
            pass
        with pytest.raises(HttpFailure) as caught:
            get(client, gone.url, ("authorization", "Bearer hush"))
        assert not caught.value.sent
        assert "hush" not in str(caught.value)

    @pytest.mark.parametrize(
        ("given", "sent"),
        [((), "Basic dXNAZXI6cDp3"), ((("authorization", "Bearer key"),), "Bearer key")],
    )
    def test_a_user_in_the_url_goes_into_a_header_unless_there_is_a_key(
        self, client: http.HttpClient, given: tuple[tuple[str, str], ...], sent: str
    ) -> None:
        with StubServer() as server:
            get(client, server.url.replace("//", "//us%40er:p%3Aw@") + "/x", *given)
            (request,) = server.requests
        assert request["url"] == "/x"
        assert request["headers"]["authorization"] == sent

    def test_the_library_logs_nothing_of_it(self, client: http.HttpClient, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG), StubServer() as server:
            get(client, server.url.replace("//", "//user:password@") + "/x?q=private", ("x-key", "hush"))
        assert not [word for word in ("password", "private", "hush", "user") if word in caplog.text]

    def test_cookies_are_not_kept(self, client: http.HttpClient) -> None:
        with RawServer(sending(answer(b"{}", "set-cookie: a=b; Path=/"), again=True)) as server:
            get(client, server.url)
            get(client, server.url)
            assert len(server.heads) == 2
            assert b"cookie" not in b"".join(server.heads).lower()

    @pytest.mark.parametrize(
        "url", ["", "x", "/x", "http://", "http:///x", "ftp://host/", "http://[", "http://h:no", "file:///etc/passwd"]
    )
    def test_another_address_is_refused(self, client: http.HttpClient, url: str) -> None:
        with pytest.raises(HttpFailure, match="not a valid") as caught:
            get(client, url)
        assert caught.value.permanent
        assert not caught.value.sent

    @pytest.mark.parametrize("key", ["ключ", "a\nb", "a\r\nx: y", "a\x00b"])
    def test_a_key_with_odd_characters_is_refused(self, client: http.HttpClient, key: str) -> None:
        with StubServer() as server:
            with pytest.raises(HttpFailure, match="unusual characters") as caught:
                get(client, server.url, ("authorization", f"Bearer {key}"))
            assert server.requests == []
        assert key not in str(caught.value)


class TestUnpacking:
    @pytest.mark.parametrize(
        "names",
        [["gzip"], ["x-gzip"], ["deflate"], ["gzip", "gzip"], ["deflate", "gzip"], ["identity", "gzip", "deflate"]],
    )
    def test_an_answer_is_unpacked_in_the_reverse_order(self, client: http.HttpClient, names: list[str]) -> None:
        body = json.dumps(["é" * 50_000, *range(20_000)]).encode()
        with RawServer(sending(answer(packed(body, names), f"content-encoding: {', '.join(names).upper()}"))) as server:
            assert get(client, server.url).body == body

    @given(body=st.binary(max_size=300), size=st.integers(1, 40))
    def test_it_does_not_matter_how_it_is_cut_in_pieces(self, body: bytes, size: int) -> None:
        for encoding, whole in (
            ("gzip", gzipped(body)),
            ("deflate", zlib.compress(body)),
            ("deflate", raw_deflate(body)),
        ):
            pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
            assert b"".join(http.unpacked(pieces, encoding)) == body

    @pytest.mark.parametrize("repeats", [1, 255, 65_535, 65_536, 65_537, 1_000_000])
    def test_the_end_of_a_long_run_is_not_lost(self, repeats: int) -> None:
        assert sum(map(len, http.unpacked([gzipped(b"a" * repeats)], "gzip"))) == repeats

    @pytest.mark.parametrize(
        ("encoding", "body"),
        [
            ("gzip", b"nonsense"),
            ("gzip", gzipped(b"{}")[:-1]),
            ("gzip", gzipped(b"{}") + gzipped(b"{}")),
            ("gzip", b"\x1f"),
            ("deflate", zlib.compress(b"{}")[:-1]),
            ("gzip, gzip", gzipped(b"{}")),
            ("br", b"\x0b\x00\x80{}\x03"),
            ("zstd", b"\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00{}"),
            ("gzip, br", gzipped(b"{}")),
            (", ".join(["gzip"] * 5), packed(b"{}", ["gzip"] * 5)),
            ("unheard-of", b"{}"),
        ],
    )
    def test_what_cannot_be_unpacked_is_a_failure(self, client: http.HttpClient, encoding: str, body: bytes) -> None:
        with (
            RawServer(sending(answer(body, f"content-encoding: {encoding}"))) as server,
            pytest.raises(HttpFailure, match="packed") as caught,
        ):
            get(client, server.url)
        assert caught.value.sent

    @pytest.mark.parametrize("encoding", ["gzip", "deflate", ""])
    def test_an_empty_body_is_an_empty_body(self, client: http.HttpClient, encoding: str) -> None:
        with RawServer(sending(answer(b"", f"content-encoding: {encoding}"))) as server:
            assert get(client, server.url).body == b""


def bomb(layers: int) -> bytes:
    """Return about 13 kB that unpack, layer by layer, to nearly 6 GB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b"\0" * 2**24) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"\0" * 2**24) + packer.flush(zlib.Z_FULL_FLUSH)
    data = head + block * 350
    for _ in range(layers - 1):
        data = gzipped(data)
    return data


ASK = """
import resource, sys
from ipy_memory.http.exchange import HttpClient
from ipy_memory.http.failure import HttpFailure
import httpx, ipy_memory.http.transport
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    HttpClient().exchange("GET", sys.argv[1], connect_seconds=5, total_seconds=60)
except HttpFailure as failure:
    print(failure)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // (2**20 if sys.platform == "darwin" else 2**10))
"""


class TestSize:
    def ask(self, url: str) -> tuple[str, int]:
        """Return what a fresh process says of an answer, and by how many MiB its memory grew."""
        asked = subprocess.run(
            [sys.executable, "-c", ASK, url], capture_output=True, text=True, check=True, timeout=120, env=os.environ
        )
        said, grown = asked.stdout.split("\n")[:2]
        return said, int(grown)

    @pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "gzip, gzip, gzip", "gzip, deflate"])
    def test_a_small_answer_cannot_fill_the_memory(self, encoding: str) -> None:
        names = encoding.split(", ")
        body = packed(bomb(1), names[1:])
        with RawServer(sending(answer(body, f"content-encoding: {encoding}"))) as server:
            said, grown = self.ask(server.url)
        assert said == "the answer is too large"
        assert grown < 200

    def test_an_endless_body_is_given_up(self) -> None:
        def act(connection: Any) -> bool:
            connection.sendall(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")

        with RawServer(act) as server:
            said, grown = self.ask(server.url)
        assert said == "the answer is too large"
        assert grown < 200

    @pytest.mark.parametrize("part", [b"[],", b"{},", b"0,", b'{"a":1},'])
    def test_an_answer_of_millions_of_parts_is_refused(self, part: bytes) -> None:
        body = b"[" + part * (http.MAX_JSON_PARTS + 1) + b"0]"
        with RawServer(sending(answer(body))) as server:
            said, grown = self.ask(server.url)
        assert said == "the answer is too large"
        assert grown < 200

    def test_a_long_text_is_not(self, client: http.HttpClient) -> None:
        body = json.dumps({"text": "a" * 10_000_000}).encode()
        with RawServer(sending(answer(body))) as server:
            assert get(client, server.url).json() == {"text": "a" * 10_000_000}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":NaN}', None),
        (b"[Infinity]", None),
        (b"[" * 100_000 + b"]" * 100_000, None),
        (b"[" * 300 + b"]" * 300, None),
        (b'{"a":1e999}', {"a": float("inf")}),
        (b"[" + b"9" * 5000 + b"]", [float("inf")]),
        (b'["' + b"[" * 100_000 + b'"]', ["[" * 100_000]),
        (b"\xff\xfe", None),
        (b"", None),
        (b"null", None),
    ],
)
def test_a_body_is_read_as_javascript_reads_it(body: bytes, value: Any) -> None:
    assert http.HttpAnswer(200, {}, body).json() == value


FORK = """
import os, sys
from ipy_memory.http.exchange import HttpClient
client = HttpClient()
def ask():
    return client.exchange("GET", sys.argv[1], connect_seconds=5, total_seconds=30).status
ask()
child = os.fork()
status = ask()
if child == 0:
    os._exit(0 if status == 200 else 1)
print(status, os.waitpid(child, 0)[1], ask())
"""


def test_a_forked_child_uses_connections_of_its_own() -> None:
    with RawServer(sending(answer(b"{}"), again=True)) as server:
        asked = subprocess.run(
            [sys.executable, "-c", FORK, server.url], capture_output=True, text=True, check=True, timeout=60
        )
    assert asked.stdout == "200 0 200\n"
