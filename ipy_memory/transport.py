"""The way of one HTTP exchange to the network: held to one limit of time as a whole, and given up when asked.

The HTTP library limits each wait alone, so a server that sends one byte now and then would hold its caller for ever.
Importing this module imports the library.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl

TOTAL, STOP = "total", "stop"
"""A request's extensions: its seconds in all, and what is called now and then and raises to give it up."""

_SLICE_SECONDS = 0.1
_WRITE_BYTES = 16 * 1024
_ERRORS = [
    (theirs, getattr(httpx, theirs.__name__))
    for theirs in (
        httpcore.ConnectTimeout,
        httpcore.ReadTimeout,
        httpcore.WriteTimeout,
        httpcore.PoolTimeout,
        httpcore.ConnectError,
        httpcore.ReadError,
        httpcore.WriteError,
        httpcore.ProxyError,
        httpcore.UnsupportedProtocol,
        httpcore.LocalProtocolError,
        httpcore.RemoteProtocolError,
    )
]


class TimedTransport(httpx.BaseTransport):
    """Carries requests, each within the limit of its own ``extensions``."""

    def __init__(self) -> None:
        self._limit = _Limit()
        self._pools: dict[tuple[str, str | None], Any] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its answer's body is read later, within the same limit."""
        total = request.extensions.get(TOTAL)
        self._limit.end = None if total is None else time.monotonic() + total
        self._limit.stop = request.extensions.get(STOP)
        url = request.url
        with _Mapped():
            answer = self._pool(url.scheme, url.host).handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    def close(self) -> None:
        """Let go of all connections."""
        for pool in self._pools.values():
            pool.close()

    def _pool(self, scheme: str, host: str) -> Any:
        proxy = proxy_for(host, scheme)
        if (scheme, proxy) not in self._pools:
            shared: dict[str, Any] = {"network_backend": _Network(self._limit), "keepalive_expiry": 5.0}
            if scheme == "https":
                shared["ssl_context"] = httpx.create_ssl_context()
            if proxy:
                through = httpx.Proxy(proxy)
                pool: Any = httpcore.HTTPProxy(str(through.url), proxy_auth=through.raw_auth, **shared)
            else:
                pool = httpcore.ConnectionPool(**shared)
            self._pools[scheme, proxy] = pool
        return self._pools[scheme, proxy]


def proxy_for(host: str, scheme: str) -> str | None:
    """Return the proxy that the environment names for a host; never one for this machine itself."""
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    if local or proxy_bypass(host):
        return None
    proxies = getproxies()
    found: str | None = proxies.get(scheme) or proxies.get("all")
    return found


class _Mapped:
    """Turns the lower library's errors into httpx's, without their text."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for theirs, ours in _ERRORS:
            if isinstance(error, theirs):
                raise ours(theirs.__name__) from None


class _Limit(threading.local):
    """The end of the exchange that runs on this thread (monotonic seconds), and what may end it before."""

    end: float | None = None
    stop: Callable[[], object] | None = None

    def rest(self, seconds: float | None, late: type[Exception]) -> float | None:
        if self.end is None:
            return seconds
        left = self.end - time.monotonic()
        if left <= 0:
            raise late
        return left if seconds is None else min(seconds, left)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, limit: _Limit) -> None:
        self._inner, self._limit = inner, limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._limit.stop is None:
            return self._inner.read(max_bytes, self._limit.rest(timeout, httpcore.ReadTimeout))
        while True:
            self._limit.stop()
            rest = self._limit.rest(None, httpcore.ReadTimeout)
            with suppress(httpcore.ReadTimeout):
                return self._inner.read(max_bytes, min(_SLICE_SECONDS, _SLICE_SECONDS if rest is None else rest))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_BYTES):
            rest = self._limit.rest(timeout, httpcore.WriteTimeout)
            self._inner.write(buffer[start : start + _WRITE_BYTES], rest)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        rest = self._limit.rest(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, rest), self._limit)

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
        rest = self._limit.rest(timeout, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, rest, local_address, socket_options), self._limit)


class _Body(httpx.SyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        with _Mapped():
            yield from self._inner

    def close(self) -> None:
        with _Mapped():
            self._inner.close()
