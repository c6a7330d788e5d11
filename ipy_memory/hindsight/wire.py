"""One request to a Hindsight server and its answer: paths, key, limits, and errors in exact words (E-01 to E-05)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from ipy_memory import __version__, http, js
from ipy_memory.errors import ASK_AGAIN, BankNameError, HindsightError, RecallCancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.http import Client, Transport

USER_AGENT = f"ipy_memory/{__version__}"
"""How this package calls itself on the wire."""

CONNECT_LIMIT_MS = 10_000
"""How long to wait for a connection, where the whole call may take longer."""

_MIN_SECRET = 6

MISSING_BANK_HINT = "nothing has been retained in this bank yet"


class Wire:
    """A server's address and key; the key is shown nowhere (E-03)."""

    def __init__(self, base_url: str, token: str | None, *, user_agent: str, transport: Transport | None) -> None:
        self._base = base_url.rstrip("/")
        self._token = token or None
        self._user_agent = user_agent
        self._transport = transport
        self._http: Client | None = None

    def __repr__(self) -> str:
        return f"Wire({self.origin!r})"

    @property
    def origin(self) -> str:
        """Scheme, host and port of the server."""
        return origin(self._base)

    def close(self) -> None:
        """Close every connection; a later request opens a new one."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def send(
        self,
        operation: str,
        method: str,
        path: str,
        body: Any,
        limit_ms: float,
        *,
        bank: str | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Any:
        """Send one request and return the JSON of its answer (``{}`` where it has none).

        Raises
        ------
        HindsightError
            The answer was no success, or none came within ``limit_ms``.
        RecallCancelled
            ``stop`` said so.
        """
        where = self.origin if bank is None else f"bank {bank} at {self.origin}"
        broken: tuple[type[Exception], ...] = (*http.failures(), http.AnswerTooLarge, UnicodeError)
        try:
            if self._http is None:
                self._http = http.client(self._transport)
            answer = http.exchange(
                self._http,
                method,
                self._base + path,
                content=None if body is None else js.json_text(body).encode("utf-8"),
                headers=self._headers(),
                connect_seconds=CONNECT_LIMIT_MS / 1000,
                total_seconds=limit_ms / 1000,
                stop=stop,
            )
        except http.ExchangeStopped:
            raise RecallCancelled(f"{operation} was cancelled", where=where, hint=ASK_AGAIN) from None
        except broken as error:
            raise _failed(operation, error, limit_ms, where) from None
        if 200 <= answer.status < 300:
            parsed = _parsed(_text(answer.body))
            return {} if parsed is None else parsed
        raise self._refused(operation, answer, where)

    def _headers(self) -> list[tuple[str, str]]:
        headers = [("content-type", "application/json"), ("user-agent", self._user_agent)]
        if self._token:
            headers.append(("authorization", f"Bearer {self._token}"))
        return headers

    def _refused(self, operation: str, answer: http.HttpAnswer, where: str) -> HindsightError:
        raw = _text(answer.body)
        if self._token and len(self._token) >= _MIN_SECRET:
            raw = raw.replace(self._token, "[REDACTED]")
        details = _parsed(raw)
        said = _detail_text(raw if details is None else _detail(details))
        message = f"{operation} failed: {said}"
        return HindsightError(
            message,
            status_code=answer.status,
            details=raw if details is None else details,
            where=where if js.trim(said) else f"{where}, HTTP {answer.status}",
            hint=_hint(answer, message),
        )


def origin(url: str) -> str:
    """Return scheme, host and port of a URL; never user, password, path or query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        if not host:
            return "an invalid address"
        shown = f"[{host}]" if ":" in host else host
        return f"{parts.scheme}://{shown}" + (f":{parts.port}" if parts.port is not None else "")
    except ValueError:
        return "an invalid address"


def segment(text: str) -> str:
    """Return an id as one segment of a path (E-04)."""
    if text in {".", ".."}:
        raise BankNameError(
            f"{text!r} cannot be an id on a Hindsight server", hint="choose a name that is not only dots"
        )
    return quote(js.well_formed(text), safe="!~*'()")


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").removeprefix("\ufeff")


def _parsed(text: str) -> Any:
    """Return the JSON value of a text, ``None`` where it is none (or null)."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _detail(value: Any) -> Any:
    if isinstance(value, dict):
        for key in ("detail", "message"):
            if value.get(key) is not None:
                return value[key]
    return value


def _detail_text(value: Any) -> str:
    return value if isinstance(value, str) else js.json_text(value)


def _failed(operation: str, error: Exception, limit_ms: float, where: str) -> HindsightError:
    connecting = http.never_sent(error) and limit_ms > CONNECT_LIMIT_MS
    if http.timed_out(error) and not connecting:
        message = f"{operation} request timed out after {js.number_text(js.round_half_up(limit_ms / 1000))}s"
    else:
        message = f"{operation} request failed: {http.failure_words(error)}"
    unknown = not http.never_sent(error)
    return HindsightError(message, unknown=unknown, where=where, hint="check hindsight.apiUrl and that the server runs")


def _hint(answer: http.HttpAnswer, message: str) -> str | None:
    if answer.status == 404 and "Bank" in message and "not found" in message:
        return MISSING_BANK_HINT
    if answer.status in {401, 403}:
        return "check hindsight.apiToken"
    if answer.status in {429, 503}:
        after = answer.headers.get("retry-after", "")
        return "the server is busy: try again" + (f" in {after} s" if after.isdecimal() else "")
    if answer.status == 400 and "Query too long" in message:
        return "ask with fewer words"
    if answer.status == 422 and "word character" in message:
        return "ask with at least one letter or digit"
    if 300 <= answer.status < 400:
        to = answer.headers.get("location", "")
        return f"the server redirects to {origin(to)}: redirects are not followed, set hindsight.apiUrl to it"
    return None
