"""The one door to the HTTP library: nothing else imports httpx, and this module does so only when called.

Every exchange runs on the calling thread, has a limit for connecting, for each wait and for the whole, and a limit of
size; so a server that sends one byte now and then, or never stops, cannot hold the caller.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpcore
    import httpx

    Client = httpx.Client
    Transport = httpx.BaseTransport
    """The library's own types, for annotations elsewhere."""

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""An answer larger than this is refused."""

MAX_SECONDS = 7 * 24 * 3600.0
"""A longer limit means this one: a system's clock holds no number of any size."""

_TOTAL, _STOP = "total", "stop"
_SLICE_SECONDS = 0.1
_WRITE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One complete answer of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class AnswerTooLarge(Exception):
    """The answer passed the limit of size."""


class ExchangeStopped(Exception):
    """The caller asked to give the exchange up."""


def client(
    base_url: str = "",
    headers: Mapping[str, str] | None = None,
    *,
    connect_seconds: float = 5.0,
    read_seconds: float = 30.0,
    total_seconds: float | None = None,
    transport: httpx.BaseTransport | None = None,
) -> httpx.Client:
    """Return a synchronous client that follows no redirect; a request may override its time-outs.

    Parameters
    ----------
    base_url
        What relative URLs are joined to.
    headers
        Sent with every request.
    connect_seconds, read_seconds
        How long to wait for a connection (also for sending and for a free one), and between bytes of an answer.
    total_seconds
        How long a request may take in all, from the first byte out to the last byte in; ``None`` sets no limit.
        A request overrides it with ``extensions={"total": seconds}``.
    transport
        Another way to the network (tests); it knows no total limit.
    """
    import httpx

    timeout = httpx.Timeout(connect_seconds, read=read_seconds)
    transport = transport or _transport_class()(total_seconds)
    return httpx.Client(base_url=base_url, headers=headers, timeout=timeout, transport=transport)


def exchange(
    http: httpx.Client,
    method: str,
    url: str,
    *,
    content: bytes | None = None,
    headers: Iterable[tuple[str, str]] = (),
    connect_seconds: float,
    total_seconds: float,
    stop: Callable[[], bool] | None = None,
) -> HttpAnswer:
    """Send one request and read its whole answer; ``stop`` is asked now and then whether to give up.

    Raises
    ------
    Exception
        One of :func:`failures`, :class:`AnswerTooLarge` or :class:`ExchangeStopped`.
    """
    import httpx

    limit = min(max(total_seconds, 0.001), MAX_SECONDS)
    timeout = httpx.Timeout(limit, connect=min(connect_seconds, limit))
    extensions = {_TOTAL: limit, _STOP: stop}
    if stop is not None and stop():
        raise ExchangeStopped
    with http.stream(
        method, url, content=content, headers=list(headers), timeout=timeout, extensions=extensions
    ) as response:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                raise AnswerTooLarge
        return HttpAnswer(response.status_code, dict(response.headers), bytes(body))


def failures() -> tuple[type[Exception], ...]:
    """Return the classes of error with which a request can fail before an answer is complete."""
    import httpx

    return (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)


def timed_out(error: Exception) -> bool:
    """Tell whether a failure is a limit of time."""
    import httpx

    return isinstance(error, httpx.TimeoutException)


def never_sent(error: Exception) -> bool:
    """Tell whether a failure came before anything of the request reached the server."""
    import httpx

    early = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.InvalidURL, httpx.UnsupportedProtocol)
    return isinstance(error, (*early, httpx.LocalProtocolError))


def failure_words(error: Exception) -> str:
    """Return a failure in words of our own: nothing of the request, its headers or the answer is in them."""
    import httpx

    for kind, words in (
        (httpx.InvalidURL, "the server address is not a valid URL"),
        (httpx.UnsupportedProtocol, "the server address is not a valid http or https URL"),
        (httpx.ConnectTimeout, "no connection to the server within the limit"),
        (httpx.ConnectError, "no connection to the server"),
        (httpx.LocalProtocolError, "the request cannot be written as HTTP (does the key hold odd characters?)"),
        (httpx.RemoteProtocolError, "the server broke off or does not speak HTTP"),
        (httpx.NetworkError, "the connection was lost"),
        (httpx.DecodingError, "the answer cannot be unpacked"),
        (AnswerTooLarge, "the answer is too large"),
    ):
        if isinstance(error, kind):
            return words
    return type(error).__name__


def _proxy_for(host: str, scheme: str) -> str | None:
    """Return the proxy that the environment names for a host; never one for this machine itself."""
    from urllib.request import getproxies, proxy_bypass

    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    if local or proxy_bypass(host):
        return None
    proxies = getproxies()
    found: str | None = proxies.get(scheme) or proxies.get("all")
    return found


@cache
def _transport_class() -> Any:
    """Return the class of transport that holds a whole exchange to one limit of time."""
    import httpcore
    import httpx

    errors = [
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

    class Mapped:
        """Turns the lower library's errors into httpx's, without their text."""

        def __enter__(self) -> None:
            return None

        def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
            for theirs, ours in errors:
                if isinstance(error, theirs):
                    raise ours(theirs.__name__) from None

    class Limit(threading.local):
        """The end of the exchange that runs on this thread (monotonic seconds), and whether to stop before."""

        end: float | None = None
        stop: Callable[[], bool] | None = None

        def rest(self, seconds: float | None, late: type[Exception]) -> float | None:
            if self.end is None:
                return seconds
            left = self.end - time.monotonic()
            if left <= 0:
                raise late
            return left if seconds is None else min(seconds, left)

    class Stream(httpcore.NetworkStream):
        def __init__(self, inner: httpcore.NetworkStream, limit: Limit) -> None:
            self._inner, self._limit = inner, limit

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            if self._limit.stop is None:
                return self._inner.read(max_bytes, self._limit.rest(timeout, httpcore.ReadTimeout))
            while not self._limit.stop():
                rest = self._limit.rest(None, httpcore.ReadTimeout)
                with suppress(httpcore.ReadTimeout):
                    return self._inner.read(max_bytes, min(_SLICE_SECONDS, _SLICE_SECONDS if rest is None else rest))
            raise ExchangeStopped

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
            return Stream(self._inner.start_tls(ssl_context, server_hostname, rest), self._limit)

        def get_extra_info(self, info: str) -> Any:
            return self._inner.get_extra_info(info)

    class Network(httpcore.SyncBackend):
        def __init__(self, limit: Limit) -> None:
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
            return Stream(super().connect_tcp(host, port, rest, local_address, socket_options), self._limit)

    class Body(httpx.SyncByteStream):
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __iter__(self) -> Iterator[bytes]:
            with Mapped():
                yield from self._inner

        def close(self) -> None:
            with Mapped():
                self._inner.close()

    class Transport(httpx.BaseTransport):
        def __init__(self, total_seconds: float | None) -> None:
            self._total = total_seconds
            self._limit = Limit()
            self._pools: dict[tuple[str, str | None], Any] = {}

        def _pool(self, scheme: str, host: str) -> Any:
            proxy = _proxy_for(host, scheme)
            if (scheme, proxy) not in self._pools:
                shared: dict[str, Any] = {"network_backend": Network(self._limit), "keepalive_expiry": 5.0}
                if scheme == "https":
                    shared["ssl_context"] = httpx.create_ssl_context()
                if proxy:
                    through = httpx.Proxy(proxy)
                    pool: Any = httpcore.HTTPProxy(str(through.url), proxy_auth=through.raw_auth, **shared)
                else:
                    pool = httpcore.ConnectionPool(**shared)
                self._pools[scheme, proxy] = pool
            return self._pools[scheme, proxy]

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            total = request.extensions.get(_TOTAL, self._total)
            self._limit.end = None if total is None else time.monotonic() + total
            self._limit.stop = request.extensions.get(_STOP)
            url = request.url
            with Mapped():
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
                answer.status, headers=answer.headers, stream=Body(answer.stream), extensions=answer.extensions
            )

        def close(self) -> None:
            for pool in self._pools.values():
                pool.close()

    return Transport
