"""The network side of one HTTP exchange: a limit of time for the whole, a limit for the head, and a way to give up.

httpx limits each wait on its own, so a server that sends one byte now and then would hold its caller for ever.
Importing this module imports httpx.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping

TOTAL, STOP, SEEN = "total", "stop", "seen"
"""Extensions of a request: its seconds in all, a function that raises to give it up, and a `bytearray` for the first
bytes that the server sends."""

MAX_HEAD_BYTES = 256 * 1024
"""An answer whose head, with all informational answers before it, is longer than this is refused."""

_SLICE_SECONDS = 0.1
_WRITE_BYTES = 16 * 1024
_FIRST_BYTES = 8


class TimedTransport(httpx.HTTPTransport):
    """Carries each request within the limits of its own extensions.

    Parameters
    ----------
    context
        The certificates to trust.
    proxy
        The URL of the proxy to go through, if any.
    """

    def __init__(self, context: ssl.SSLContext, proxy: str | None = None) -> None:
        through = None
        if proxy is not None:
            through = httpx.Proxy(proxy, ssl_context=context if proxy.startswith("https:") else None)
        # A connection that is used once cannot hand the rest of one answer to the next request, and is never found
        # closed when a request is under way already.
        super().__init__(
            verify=context, proxy=through, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self._limit = _Limit()
        # httpx has no public way to another network backend.
        self._pool._network_backend = _Network(self._limit)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of its response is read later, within the same limit of time."""
        self._limit.begin(request.extensions)
        response = super().handle_request(request)
        self._limit.room = None
        return response


class _Limit(threading.local):
    """What bounds the exchange that runs on this thread."""

    end: float | None = None
    stop: Callable[[], object] | None = None
    room: int | None = None
    seen: bytearray | None = None

    def begin(self, extensions: Mapping[str, Any]) -> None:
        total = extensions.get(TOTAL)
        self.end = None if total is None else time.monotonic() + total
        self.stop, self.seen = extensions.get(STOP), extensions.get(SEEN)
        self.room = MAX_HEAD_BYTES

    def left(self, seconds: float | None, late: type[Exception]) -> float | None:
        """Return how long one wait may take; raise ``late`` if no time is left."""
        if self.end is None:
            return seconds
        left = self.end - time.monotonic()
        if left <= 0:
            raise late
        return left if seconds is None else min(seconds, left)

    def take(self, data: bytes) -> bytes:
        """Account for what came from the server."""
        if self.seen is not None and len(self.seen) < _FIRST_BYTES:
            self.seen += data[:_FIRST_BYTES]
        if self.room is not None:
            self.room -= len(data)
            if self.room < 0:
                raise httpcore.RemoteProtocolError("the head of the answer is too long")
        return data


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, limit: _Limit) -> None:
        self._inner, self._limit = inner, limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit = self._limit
        if limit.stop is None:
            return limit.take(self._inner.read(max_bytes, limit.left(timeout, httpcore.ReadTimeout)))
        while True:
            limit.stop()
            left = limit.left(_SLICE_SECONDS, httpcore.ReadTimeout)
            with suppress(httpcore.ReadTimeout):
                return limit.take(self._inner.read(max_bytes, left))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_BYTES):
            left = self._limit.left(timeout, httpcore.WriteTimeout)
            self._inner.write(buffer[start : start + _WRITE_BYTES], left)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._limit.left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Network(httpcore.SyncBackend):
    def __init__(self, limit: _Limit) -> None:
        self._limit = limit

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that answers; all of them share one limit of time."""
        end = None if timeout is None else time.monotonic() + timeout
        error: Exception = httpcore.ConnectError("no address")
        for address in _addresses(host, port):
            left = self._limit.left(None if end is None else end - time.monotonic(), httpcore.ConnectTimeout)
            if left is not None and left <= 0:
                raise httpcore.ConnectTimeout
            try:
                stream = super().connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                error = failed
            else:
                return _Stream(stream, self._limit)
        raise error


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError("the host is unknown") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
