"""A configured OpenAI-compatible endpoint: one JSON request, tried again where the failure may pass."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ipy_memory import http, js, process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 60.0
RETRY_WAITS = (1.0, 2.0)
"""Seconds before the second and the third attempt, where the failure may pass."""

_PASSING = frozenset((408, 429))


class Reply(NamedTuple):
    """The body of an answer, or in a few words why there is none (never a key, a text or an answer's words)."""

    body: bytes | None
    problem: str = ""


class Endpoint:
    """An endpoint and the connection to it, which is made when first needed.

    Parameters
    ----------
    url
        The base; slashes at its end do not count.
    api_key
        Sent as a bearer token if not empty.
    transport
        Another way to the network (tests).
    wait
        Lets seconds pass between attempts.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self._headers = [("content-type", "application/json")]
        if api_key:
            self._headers.append(("authorization", f"Bearer {api_key}"))
        self._transport = transport
        self._wait = wait
        self._http: httpx.Client | None = None
        self._inherited: list[httpx.Client] = []
        process.after_fork_in_child(self._part)

    def _part(self) -> None:
        # Parent and child on one connection would read each other's answers. The copy is kept, not closed: a lock in
        # it may have been held by another thread.
        if self._http is not None:
            self._inherited.append(self._http)
            self._http = None

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Send a JSON body; whatever goes wrong is told in the reply, nothing is raised for it."""
        content = js.json_text(body).encode("utf-8")
        failures: tuple[type[Exception], ...] = (*http.failures(), http.AnswerTooLarge, ValueError)
        problem = ""
        for wait in (*RETRY_WAITS, None):
            try:
                answer = self._exchange(path, content)
            except failures as error:
                problem = http.failure_words(error)
            else:
                if 200 <= answer.status < 300:
                    return Reply(answer.body)
                problem = f"status {answer.status}"
                if answer.status < 500 and answer.status not in _PASSING:
                    break
            if wait is not None:
                self._wait(wait)
        return Reply(None, problem)

    def close(self) -> None:
        """Let go of the connection."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def _exchange(self, path: str, content: bytes) -> http.HttpAnswer:
        if self._http is None:
            self._http = http.client(self._transport)
        return http.exchange(
            self._http,
            "POST",
            self.url + path,
            content=content,
            headers=self._headers,
            connect_seconds=CONNECT_SECONDS,
            total_seconds=TOTAL_SECONDS,
        )


def shown(url: str) -> str:
    """Return the host of a URL, which is all of it that is shown: user names and queries may be credentials."""
    try:
        parts = urlsplit(url)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or "an endpoint"
    except ValueError:
        return "an endpoint"
