"""Servers that answer in every wrong way, each over a real socket, before everything that asks one."""

from __future__ import annotations

import gzip
import json
import logging
import threading
import time
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.hindsight.backend import HindsightBackend
from ipy_memory.backends.mnemopi.embeddings.index import QueryCache
from ipy_memory.backends.mnemopi.embeddings.providers import HttpEmbedder
from ipy_memory.backends.mnemopi.store.llm import RemoteCompletion
from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.errors import MemoryToolkitError, safe_line
from ipy_memory.explore.status import report_text
from ipy_memory.session import MemorySession, open_session
from tests.backends.hindsight.raw import Act, RawServer, answer, sending

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEY = "k-" + "e7c1" * 6
LIMIT_SECONDS = 0.3
ANTI_HANG_SECONDS = 60.0
"""No call may take so long, however slow the machine is: each server could hold its caller for ever."""

ESCAPES = "\x1b[31m\x07\r\u202e\u2066\x9b"
CHUNKED = b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


def for_ever(head: bytes, part: bytes, pause: float = 0.0) -> Act:
    """Return an act that sends a head and then the same part again and again."""

    def act(connection: socket.socket) -> bool:
        over = threading.Event()
        with suppress(OSError):
            connection.sendall(head)
            while not over.wait(pause):
                connection.sendall(part)
        return False

    return act


def silent(connection: socket.socket) -> bool:
    """Say nothing until the other side gives up."""
    with suppress(OSError):
        connection.recv(1)
    return False


def status(code: int | str, body: bytes = b"{}", *headers: str) -> Act:
    return sending(answer(body, *headers, status=code))  # type: ignore[arg-type]


def told(value: Any, code: int = 200) -> Act:
    return status(code, json.dumps(value).encode())


WAYS: dict[str, Act] = {
    # below HTTP
    "closes": sending(b""),
    "resets": sending(b"", reset=True),
    "says nothing": silent,
    "drips a head": for_ever(b"HTTP/1.1 200 X\r\n", b"x", 0.05),
    "drips a body": for_ever(b"HTTP/1.1 200 X\r\ncontent-length: 99999\r\n\r\n", b" ", 0.05),
    "drips early answers": for_ever(b"", b"HTTP/1.1 102 X\r\n\r\n", 0.05),
    "floods early answers": for_ever(b"", b"HTTP/1.1 103 X\r\nlink: <x>\r\n\r\n" * 500),
    "floods headers": for_ever(b"HTTP/1.1 200 X\r\n", b"x: yyyyyyyyyyyyyyyyyyyy\r\n" * 500),
    "one endless header": for_ever(b"HTTP/1.1 200 X\r\nx: ", b"y" * 60_000),
    "an endless status line": for_ever(b"HTTP/1.1 200 ", b"X" * 60_000),
    "an endless body": for_ever(CHUNKED, b"10000\r\n" + b" " * 65_536 + b"\r\n"),
    "endless chunk extensions": for_ever(CHUNKED + b"1;", b"x" * 60_000),
    "endless trailers": for_ever(CHUNKED + b"0\r\n", b"x: yyyyyyyyyyyyyyyyyyyy\r\n" * 500),
    "speaks TLS": sending(b"\x15\x03\x01\x00\x02\x02\x46"),
    "speaks something else": sending(b"220 mail.test ESMTP\r\n"),
    # wrong HTTP
    "a negative length": sending(b"HTTP/1.1 200 X\r\ncontent-length: -1\r\n\r\n{}"),
    "two lengths": sending(b"HTTP/1.1 200 X\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}"),
    "a huge length": sending(b"HTTP/1.1 200 X\r\ncontent-length: 99999999999999999999\r\n\r\n{}"),
    "too short a length": sending(b"HTTP/1.1 200 X\r\ncontent-length: 1\r\n\r\n{}"),
    "too long a length": sending(b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n{}"),
    "a length that is a word": sending(b"HTTP/1.1 200 X\r\ncontent-length: two\r\n\r\n{}"),
    "length and chunks": sending(CHUNKED.replace(b"\r\n\r\n", b"\r\ncontent-length: 2\r\n\r\n") + b"9\r\nx"),
    "a bad chunk": sending(CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"),
    "a cut chunk": sending(CHUNKED + b"9\r\n{}"),
    "a null byte in a header": sending(b"HTTP/1.1 200 X\r\nx: a\0b\r\ncontent-length: 2\r\n\r\n{}"),
    "a header in another encoding": sending(b"HTTP/1.1 200 X\r\nx: \xff\xfe\r\ncontent-length: 2\r\n\r\n{}"),
    "switches protocols": sending(b"HTTP/1.1 101 X\r\nupgrade: x\r\n\r\n"),
    "continues and closes": sending(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an unknown status": status(799),
    "HTTP of the future": sending(b"HTTP/9.9 200 X\r\ncontent-length: 2\r\n\r\n{}"),
    # packed
    "a bomb": status(200, gzip.compress(gzip.compress(b" " * 2**23)), "content-encoding: gzip, gzip"),
    "a bomb in an error": status(400, gzip.compress(gzip.compress(b" " * 2**23)), "content-encoding: gzip, gzip"),
    "not packed as said": status(200, b"{}", "content-encoding: gzip"),
    "cut while packed": status(200, gzip.compress(b'{"results":[]}')[:-4], "content-encoding: gzip"),
    "packed in an unknown way": status(200, b"{}", "content-encoding: br, zstd, x"),
    "packed too often": status(200, b"{}", "content-encoding: " + ", ".join(["gzip"] * 1000)),
    # what is not JSON of the documented form
    "nothing": status(200, b""),
    "no content": sending(b"HTTP/1.1 204 X\r\n\r\n"),
    "HTML": status(200, b"<!doctype html><title>Sign in</title>"),
    "not a number": status(200, b'{"results":[{"id":"a","text":"x","score":NaN}],"data":[{"embedding":[NaN]}]}'),
    "infinite numbers": status(200, b'{"results":[{"text":"x","score":1e999}],"data":[{"embedding":[1e999]}]}'),
    "a number of 10,000 digits": status(200, b'{"results":[{"text":"x","score":' + b"9" * 10_000 + b"}]}"),
    "a key twice": status(200, b'{"results":1,"results":[],"data":1,"data":[],"choices":1,"choices":[]}'),
    "deep JSON": status(200, b'{"results":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "less deep JSON": status(200, b'{"results":[' + b"[" * 150 + b"]" * 150 + b"]}"),
    "deep JSON in an error": status(400, b'{"detail":' + b"[" * 800 + b"]" * 800 + b"}"),
    "broken UTF-8": status(200, b'{"results":[{"text":"\xff\xfe\xed\xa0\x80"}]}'),
    "half a pair": status(200, b'{"results":[{"text":"\\ud83d","id":"\\udc00"}],"text":"\\ud83d"}'),
    "a great many parts": status(200, b'{"results":[' + b"{}," * 50_001 + b"{}]}"),
    "a null": told(None),
    "a list": told([1, 2]),
    "a text": told("x"),
    "results that are a text": told({"results": "abc", "data": "abc", "choices": "abc", "text": 5, "items": "abc"}),
    "results that are an object": told({"results": {"a": 1}, "data": {"a": 1}, "choices": {"a": 1}, "text": {}}),
    "results of every kind": told(
        {
            "results": [None, 1, "x", [], {}, {"text": 5}, {"text": ["x"]}, {"text": "kept", "id": [], "type": {}}],
            "data": [None, 1, "x", [], {}, {"embedding": "x"}],
            "choices": [None],
            "items": [None, 1, "x", [], {}, {"id": {}}],
        }
    ),
    "numbers for texts": told({"results": [{"id": 7, "text": "x", "type": 1, "mentioned_at": 1e300, "tags": 3}]}),
    "chosen nothing": told({"choices": [{"message": {"content": None}}]}),
    "chosen a list": told({"choices": [{"message": {"content": ["x"]}}]}),
    # refusals
    "redirects to a file": status(302, b"{}", "location: file:///etc/passwd"),
    "redirects elsewhere": status(307, b"{}", "location: http://169.254.169.254/latest/meta-data?token=" + KEY),
    "redirects to itself": status(308, b"{}", "location: /v1/default/banks"),
    "redirects nowhere": status(301),
    "asks for a key": status(401, b'{"detail":"no"}', f"www-authenticate: Basic realm={KEY}"),
    "says the key": told({"detail": f"{KEY} is not a key, {KEY}"}, 403),
    "says escapes": told({"detail": ESCAPES}, 500),
    "says much": told({"detail": "x" * 3_000_000}, 400),
    "says when with nonsense": status(429, b"{}", "retry-after: " + "9" * 5000),
    "says when with escapes": status(503, b"{}", "retry-after: \x1b[31m"),
    "a detail of every kind": told({"detail": [{"msg": None, "loc": [1, {}]}, 5, "x"]}, 422),
}


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    # What the limits themselves do to the memory is measured in test_http.py.
    monkeypatch.setattr("ipy_memory.http.exchange.MAX_ANSWER_BYTES", 2**22)
    monkeypatch.setattr("ipy_memory.http.exchange.MAX_JSON_PARTS", 50_000)


@pytest.fixture(params=WAYS)
def server(request: pytest.FixtureRequest) -> Iterator[RawServer]:
    with RawServer(WAYS[request.param]) as made:
        yield made


@pytest.fixture
def session(server: RawServer, tmp_path: Path) -> Iterator[MemorySession]:
    limits = {f"hindsight.{kind}TimeoutMs": 1000 * LIMIT_SECONDS for kind in ("request", "recall", "retain", "reflect")}
    made = open_session(
        "hindsight",
        "/work/shop",
        settings={"hindsight.apiUrl": server.url, "hindsight.apiToken": KEY, **limits},
        agent_dir=tmp_path,
        env={},
        clock=FixedClock("2026-06-01T12:00:00.000Z"),
        ids=FixedIds(),
        timers=ManualTimers(),
    )
    yield made
    if isinstance(made.backend, HindsightBackend):
        made.backend.owned = lambda: False
    made.close()


def harmless(said: str) -> None:
    """Check what a user sees of a failure: one short line that steers nothing and holds no key."""
    assert KEY not in said
    assert len(said) < 3_000
    assert not [char for char in said if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def outcome(work: Callable[[], object]) -> object:
    """Return what a call gives, after a check of its failure and of how long it took."""
    began = time.monotonic()
    failure = None
    found = None
    try:
        found = work()
    except MemoryToolkitError as error:
        failure = error
    assert time.monotonic() - began < ANTI_HANG_SECONDS
    if failure is not None:
        harmless(failure.one_line())
        assert KEY not in repr((failure.args, getattr(failure, "details", None)))
        assert failure.__cause__ is None
    return found


def test_a_hindsight_server(session: MemorySession, caplog: pytest.LogCaptureFixture) -> None:
    for ask in (session.recall, session.reflect):
        found: Any = outcome(lambda ask=ask: ask("what is it?"))  # type: ignore[misc]
        if found is not None:
            assert isinstance(found.text, str)
            found.frame()
            for note in found.notes:
                harmless(note)
    outcome(lambda: session.retain("something"))
    outcome(session.flush)
    outcome(session.start)
    outcome(lambda: session.first_turn("what is it?"))
    outcome(session.memories)
    outcome(lambda: report_text(session))
    for row in session.status():
        assert KEY not in f"{row}"
    for notice in session.notices:
        harmless(safe_line(notice.text))
    for record in caplog.records:
        harmless(record.getMessage())
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


def test_an_embedding_endpoint(server: RawServer, caplog: pytest.LogCaptureFixture) -> None:
    embedder = HttpEmbedder("m", server.url, KEY, wait=lambda _: None, seconds=LIMIT_SECONDS, cache=QueryCache())
    found: Any = outcome(lambda: embedder.embed(["a", "b", "c"]))
    assert found == [None, None, None]
    harmless(embedder.problem)
    assert embedder.problem
    for record in caplog.records:
        harmless(record.getMessage())
    embedder.close()


def test_a_language_model(server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipy_memory.backends.mnemopi.store.llm.COMPLETION_SECONDS", LIMIT_SECONDS)
    model = RemoteCompletion("m", server.url, KEY)
    assert outcome(lambda: model("a prompt")) is None
    model.close()
