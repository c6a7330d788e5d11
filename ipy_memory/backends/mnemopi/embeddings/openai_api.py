"""A configured OpenAI-compatible endpoint: one JSON request, tried again where the failure may pass."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ipy_memory.http import exchange as http
from ipy_memory.http.failure import HttpFailure
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONNECT_SECONDS = 5.0
RETRY_WAITS = (1.0, 2.0)
"""Seconds before the second and the third attempt, where the failure may pass."""

_MAY_PASS = frozenset((408, 429))


class Reply(NamedTuple):
    """The body of an answer, or in a few words why there is none (never a key, a text or words of the answer).

    ``status`` is the HTTP status of the last answer, 0 where none came.
    """

    body: str | None
    problem: str = ""
    status: int = 0


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
    wait, clock
        Lets seconds pass between attempts, and counts them.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        transport: http.Transport | None = None,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url.rstrip("/")
        self.clock = clock
        self._headers = [("content-type", "application/json")]
        if api_key:
            self._headers.append(("authorization", f"Bearer {api_key}"))
        self._wait = wait
        self._http = http.HttpClient(transport)

    def post(self, path: str, body: Mapping[str, Any], *, until: float, patient: bool = True) -> Reply:
        """Send a JSON body; every failure is told in the reply, nothing is raised for it.

        Parameters
        ----------
        path, body
            What is sent where.
        until
            When all attempts together must have ended, by the clock.
        patient
            Whether a failure that may pass is tried again.
        """
        content = js.json_text(body).encode("utf-8")
        reply = Reply(None)
        for wait in (*RETRY_WAITS, None) if patient else (None,):
            left = until - self.clock()
            if left <= 0:
                return reply if reply.problem else Reply(None, "no time is left")
            reply, may_pass = self._attempt(path, content, left)
            if not may_pass:
                break
            if wait is not None:
                self._wait(min(wait, max(0.0, until - self.clock())))
        return reply

    def close(self) -> None:
        """Close the connection; a later request opens a new one."""
        self._http.close()

    def _attempt(self, path: str, content: bytes, seconds: float) -> tuple[Reply, bool]:
        """Return what one request gave, and whether another one may give more."""
        try:
            answer = self._http.exchange(
                "POST",
                self.url + path,
                content=content,
                headers=self._headers,
                connect_seconds=CONNECT_SECONDS,
                total_seconds=seconds,
            )
        except HttpFailure as failure:
            problem = f"{failure}; {failure.hint}" if failure.hint else str(failure)
            return Reply(None, problem), not failure.permanent
        status = answer.status
        if 200 <= status < 300:
            return Reply(answer.text(), "", status), False
        return Reply(None, f"status {status}", status), status >= 500 or status in _MAY_PASS


def shown(url: str) -> str:
    """Return the host of a URL, which is all of it that is shown: user names and queries may be credentials."""
    try:
        parts = urlsplit(url)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or "an endpoint"
    except ValueError:
        return "an endpoint"
