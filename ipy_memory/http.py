"""The one door to the HTTP library: nothing else imports httpx, and this module does so only when called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx


def client(
    base_url: str = "",
    headers: Mapping[str, str] | None = None,
    *,
    connect_seconds: float = 5.0,
    read_seconds: float = 30.0,
    transport: httpx.BaseTransport | None = None,
) -> httpx.Client:
    """Return a synchronous client; a request may override its time-outs.

    Parameters
    ----------
    base_url
        What relative URLs are joined to.
    headers
        Sent with every request.
    connect_seconds, read_seconds
        How long to wait for a connection (also for sending and for a free one), and between bytes of an answer.
    transport
        Another way to the network (tests).
    """
    import httpx

    timeout = httpx.Timeout(connect_seconds, read=read_seconds)
    return httpx.Client(base_url=base_url, headers=headers, timeout=timeout, transport=transport)


def failures() -> tuple[type[Exception], ...]:
    """Return the classes of error with which a request can fail before an answer is complete."""
    import httpx

    return (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)
