"""HTTP exchanges: one request and its whole answer, within limits of time and size, failures in words of our own.

httpx is imported when the first exchange begins. Requests go to its transport without its client, which would log
whole URLs, keep cookies, and unpack an answer before its size is known.
"""

from __future__ import annotations

import sys
import zlib
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from ipy_memory import __version__, process
from ipy_memory.http.failure import HttpFailure, RefusedAnswer, failure_of
from ipy_memory.http.route import Route, RouteError, route
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import httpx

    Transport = httpx.BaseTransport
    """The library's own type, for annotations elsewhere."""

USER_AGENT = f"ipy_memory/{__version__}"
"""How this package calls itself to servers."""

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""An answer larger than this, as sent or at any step of unpacking it, is refused."""

MAX_JSON_PARTS = 2_000_000
"""So many commas and brackets an answer may hold: each may become an object in memory."""

MAX_SECONDS = 7 * 24 * 3600.0
"""A longer limit means this one: the system's clock overflows above some value."""

_MAX_ENCODINGS = 4
_PIECE_BYTES = 64 * 1024
_ZLIB_HEAD_BYTES = 2
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""What zlib takes for each encoding that requests offer."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One complete answer of a server, unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self) -> str:
        """Return the body as text, without a byte order mark."""
        return self.body.decode("utf-8", "replace").removeprefix("\ufeff")

    def json(self) -> Any:
        """Return the JSON value of the body as JavaScript reads it; ``None`` where it is not JSON (or null)."""
        return js.parse_json(self.text())


class ExchangeStopped(Exception):
    """The caller asked to give the exchange up."""


_LOADING = process.ForkGate(10.0)


def load() -> None:
    """Import the library, if that is not done yet.

    A fork waits for it: in the child nobody would end an import that another thread of the parent has begun.
    """
    if "ipy_memory.http.transport" in sys.modules and "certifi" in sys.modules:
        return
    with _LOADING.held():
        import certifi  # noqa: F401  imported by the library when it first needs it
        import httpx  # noqa: F401

        import ipy_memory.http.transport  # noqa: F401


class HttpClient:
    """Sends requests, each over a connection of its own; a change of the environment takes effect at the next one.

    Parameters
    ----------
    transport
        Another way to the network (tests).
    """

    def __init__(self, transport: Transport | None = None) -> None:
        self._given = transport
        self._ways: dict[Route, httpx.BaseTransport] = {}
        self._inherited: dict[Route, httpx.BaseTransport] = {}
        process.after_fork_in_child(self._start_again)

    def exchange(
        self,
        method: str,
        url: str,
        *,
        content: bytes | None = None,
        headers: Sequence[tuple[str, str]] = (),
        connect_seconds: float,
        total_seconds: float,
        stop: Callable[[], bool] | None = None,
    ) -> HttpAnswer:
        """Send one request and read its whole answer; no redirect is followed.

        Parameters
        ----------
        method, url, content, headers
            The request. A user and password in the URL are sent as a header, unless ``headers`` hold credentials.
        connect_seconds, total_seconds
            How long to wait for a connection, and for the whole exchange.
        stop
            Called now and then; returns whether to give up.

        Raises
        ------
        HttpFailure
            No complete answer came.
        ExchangeStopped
            ``stop`` returned true.
        """
        load()
        import httpx

        from ipy_memory.http.transport import SEEN, STOP, TOTAL

        def go_on() -> None:
            if stop is not None and stop():
                raise ExchangeStopped

        go_on()
        address = _address(url)
        limit = min(max(total_seconds, 0.001), MAX_SECONDS)
        timeout = httpx.Timeout(limit, connect=min(connect_seconds, limit)).as_dict()
        seen = bytearray()
        extensions = {"timeout": timeout, TOTAL: limit, STOP: None if stop is None else go_on, SEEN: seen}
        try:
            way, transport = self._way(address)
        except RouteError as error:
            raise HttpFailure(str(error), error.hint, permanent=True) from None
        try:
            request = httpx.Request(
                method,
                address.copy_with(userinfo=b""),
                headers=[*_own_headers(address, headers), *headers],
                content=content,
                extensions=extensions,
            )
            response = transport.handle_request(request)
            try:
                body = _body(response, go_on)
            finally:
                response.close()
        except (httpx.HTTPError, httpx.StreamError, RefusedAnswer, ValueError, OSError) as error:
            raise failure_of(error, way, bytes(seen)) from None
        return HttpAnswer(response.status_code, dict(response.headers), body)

    def close(self) -> None:
        """Release what is kept between exchanges; a later one makes it again."""
        while self._ways:
            self._ways.popitem()[1].close()

    def _way(self, address: httpx.URL) -> tuple[Route, httpx.BaseTransport]:
        if self._given is not None:
            return Route(address.scheme == "https"), self._given
        way = route(address)
        if way not in self._ways:
            from ipy_memory.http.transport import TimedTransport

            self._ways[way] = TimedTransport(way.context(), way.proxy)
        return way, self._ways[way]

    def _start_again(self) -> None:
        # Not closed: another thread of the parent may have held a lock in it.
        self._inherited, self._ways = self._ways, {}


def _address(url: str) -> httpx.URL:
    import httpx

    try:
        address = httpx.URL(url)
        urlsplit(url).port  # noqa: B018  refuses some addresses that httpx takes
    except (httpx.InvalidURL, ValueError):
        raise HttpFailure("the server address is not a valid URL", permanent=True) from None
    if address.scheme not in ("http", "https") or not address.host:
        raise HttpFailure("the server address is not a valid http or https URL", permanent=True)
    return address


def _own_headers(address: httpx.URL, given: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    named = {name.lower() for name, _ in given}
    yield "accept", "*/*"
    yield "accept-encoding", "gzip, deflate"
    yield "connection", "close"
    if "user-agent" not in named:
        yield "user-agent", USER_AGENT
    if address.userinfo and "authorization" not in named:
        pair = f"{address.username}:{address.password}".encode()
        yield "authorization", f"Basic {b64encode(pair).decode('ascii')}"


def _body(response: httpx.Response, go_on: Callable[[], None]) -> bytes:
    """Return the whole body, unpacked piece by piece, so that little more than the limit is ever in memory."""
    encodings = response.headers.get_list("content-encoding", split_commas=True)
    encodings = [name for name in map(str.lower, encodings) if name not in ("", "identity")]
    if len(encodings) > _MAX_ENCODINGS or not _WINDOWS.keys() >= set(encodings):
        raise RefusedAnswer("the answer is packed in a way that was not asked for")
    pieces = _bounded(cast("Iterable[bytes]", response.stream))
    for encoding in reversed(encodings):
        pieces = _bounded(unpacked(pieces, encoding))
    body = bytearray()
    for piece in pieces:
        go_on()
        body += piece
    if len(body) > MAX_JSON_PARTS and sum(map(body.count, b",[{")) > MAX_JSON_PARTS:
        raise RefusedAnswer("the answer is too large")
    return bytes(body)


def _bounded(pieces: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise RefusedAnswer("the answer is too large")
        yield piece


def unpacked(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Undo one encoding of a body; each piece that comes out is small, however much is in it.

    Raises
    ------
    RefusedAnswer
        The body is not what the encoding makes, is cut off, or goes on behind its end.
    """
    packed = b""
    unpacker: Any = None
    for piece in pieces:
        packed += piece
        if unpacker is None:
            if len(packed) < _ZLIB_HEAD_BYTES:
                continue
            # Some servers send "deflate" without its two bytes of head.
            bare = encoding == "deflate" and (packed[0] & 15 != 8 or int.from_bytes(packed[:2], "big") % 31)
            unpacker = zlib.decompressobj(-_WINDOWS[encoding] if bare else _WINDOWS[encoding])
        full = True
        while packed or full:
            try:
                found = unpacker.decompress(packed, _PIECE_BYTES)
            except zlib.error:
                raise RefusedAnswer("the answer cannot be unpacked") from None
            packed, full = unpacker.unconsumed_tail, len(found) == _PIECE_BYTES
            yield found
        if unpacker.unused_data:
            break
    if packed or (unpacker is not None and (unpacker.unused_data or not unpacker.eof)):
        raise RefusedAnswer("the answer cannot be unpacked")
