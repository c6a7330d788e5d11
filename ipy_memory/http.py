"""The one door to the HTTP library, which it imports only when called.

Every exchange runs on the calling thread, has a limit for connecting, for each wait and for the whole, and a limit of
size; so a server that sends one byte now and then, or never stops, cannot hold the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

    Client = httpx.Client
    Transport = httpx.BaseTransport
    """The library's own types, for annotations elsewhere."""

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""An answer larger than this is refused."""

MAX_SECONDS = 7 * 24 * 3600.0
"""A longer limit means this one: a system's clock holds no number of any size."""


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


def client(transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Return a synchronous client that follows no redirect; ``transport`` is another way to the network (tests)."""
    import httpx

    from ipy_memory.transport import TimedTransport

    return httpx.Client(transport=transport or TimedTransport())


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
    """Send one request and read its whole answer.

    Parameters
    ----------
    http
        Made by :func:`client`.
    method, url, content, headers
        The request; the headers are sent beside the client's own.
    connect_seconds, total_seconds
        How long to wait for a connection, and for the whole exchange.
    stop
        Asked now and then whether to give up.

    Raises
    ------
    Exception
        One of :func:`failures`, :class:`AnswerTooLarge` or :class:`ExchangeStopped`.
    """
    import httpx

    from ipy_memory.transport import STOP, TOTAL

    def go_on() -> None:
        if stop is not None and stop():
            raise ExchangeStopped

    limit = min(max(total_seconds, 0.001), MAX_SECONDS)
    timeout = httpx.Timeout(limit, connect=min(connect_seconds, limit))
    extensions = {TOTAL: limit, STOP: None if stop is None else go_on}
    go_on()
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
