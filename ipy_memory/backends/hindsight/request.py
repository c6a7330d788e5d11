"""One request to a Hindsight server and its answer: paths, key, limits, and errors in exact words."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from ipy_memory.errors import ASK_AGAIN, BankNameError, HindsightError, RecallCancelled
from ipy_memory.http import exchange as http
from ipy_memory.http.failure import HttpFailure
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.http.exchange import Transport

CONNECT_LIMIT_MS = 10_000
"""How long to wait for a connection, where the whole call may take longer."""

_MIN_SECRET = 6
_SECONDS = re.compile("[0-9]{1,6}")
_USUAL_PORTS = {"http": ":80", "https": ":443"}
_NO_ANSWER_BEHIND = {502, 504, *range(520, 525)}
"""Statuses of a gateway that got no answer: the server behind it may have done what was asked."""

MISSING_BANK_HINT = "nothing has been retained in this bank yet"


class Wire:
    """A server's address and key; the key is shown nowhere."""

    def __init__(self, base_url: str, token: str | None, *, user_agent: str, transport: Transport | None) -> None:
        self._base = base_url.rstrip("/")
        self._token = token or None
        self._user_agent = user_agent
        self._http = http.HttpClient(transport)

    def __repr__(self) -> str:
        return f"Wire({self.origin!r})"

    @property
    def origin(self) -> str:
        """Scheme, host and port of the server."""
        return origin(self._base)

    @property
    def address(self) -> str:
        """The server as far as it tells it from others, without what may be secret."""
        return address(self._base)

    def close(self) -> None:
        """Close every connection; a later request opens a new one."""
        self._http.close()

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
        try:
            answer = self._http.exchange(
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
        except HttpFailure as failure:
            raise _failed(operation, failure, limit_ms, where) from None
        if 200 <= answer.status < 300:
            parsed = answer.json()
            return {} if parsed is None else parsed
        raise self._refused(operation, answer, where)

    def _headers(self) -> list[tuple[str, str]]:
        headers = [("content-type", "application/json"), ("user-agent", self._user_agent)]
        if self._token:
            headers.append(("authorization", f"Bearer {self._token}"))
        return headers

    def _secrets(self) -> list[str]:
        """Return what a server could send back to us of what it was sent as credentials."""
        try:
            password = unquote(urlsplit(self._base).password or "")
        except ValueError:
            password = ""
        return [secret for secret in (self._token, password) if secret and len(secret) >= _MIN_SECRET]

    def _refused(self, operation: str, answer: http.HttpAnswer, where: str) -> HindsightError:
        raw = answer.text()
        for secret in self._secrets():
            raw = raw.replace(secret, "[REDACTED]")
        details = js.parse_json(raw)
        said = _detail_text(raw if details is None else _detail(details))
        message = f"{operation} failed: {said}"
        return HindsightError(
            message,
            status_code=answer.status,
            details=raw if details is None else details,
            unknown=answer.status in _NO_ANSWER_BEHIND,
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


def address(url: str) -> str:
    """Return what tells a server from others: its origin, and a digest of a path (which may hold a secret)."""
    found = origin(url).removesuffix(_USUAL_PORTS.get(url.partition("://")[0].lower(), " "))
    try:
        path = urlsplit(url).path.rstrip("/")
    except ValueError:
        path = ""
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return js.well_formed(f"{found}/…{digest}" if path else found)


def segment(text: str) -> str:
    """Return an id as one segment of a path."""
    if text in {".", ".."}:
        raise BankNameError(
            f"{text!r} cannot be an id on a Hindsight server", hint="choose a name that is not only dots"
        )
    return quote(js.well_formed(text), safe="!~*'()")


def _detail(value: Any) -> Any:
    if isinstance(value, dict):
        for key in ("detail", "message"):
            if value.get(key) is not None:
                return value[key]
    return value


def _detail_text(value: Any) -> str:
    return value if isinstance(value, str) else js.json_text(value)


def _failed(operation: str, failure: HttpFailure, limit_ms: float, where: str) -> HindsightError:
    connecting = not failure.sent and limit_ms > CONNECT_LIMIT_MS
    if failure.timed_out and not connecting:
        message = f"{operation} request timed out after {js.number_text(js.round_half_up(limit_ms / 1000))}s"
    else:
        message = f"{operation} request failed: {failure}"
    hint = failure.hint or "check hindsight.apiUrl and that the server runs"
    return HindsightError(message, unknown=failure.sent, where=where, hint=hint)


def _hint(answer: http.HttpAnswer, message: str) -> str | None:
    if answer.status == 404 and "Bank" in message and "not found" in message:
        return MISSING_BANK_HINT
    if answer.status in {401, 403}:
        return "check hindsight.apiToken"
    if answer.status in {429, 503}:
        after = answer.headers.get("retry-after", "")
        return "the server is busy: try again" + (f" in {after} s" if _SECONDS.fullmatch(after) else "")
    if answer.status == 400 and "Query too long" in message:
        return "ask with fewer words"
    if answer.status == 422 and "word character" in message:
        return "ask with at least one letter or digit"
    if 300 <= answer.status < 400:
        to = answer.headers.get("location", "")
        if not to.startswith(("http://", "https://")):
            return "the server redirects, and redirects are not followed: check hindsight.apiUrl"
        where = f"the server redirects to {origin(to)}: redirects are not followed"
        return f"{where}; if that is your server, set hindsight.apiUrl to it"
    if answer.status == 407:
        return "a proxy asks for a user and a password: set them in the variable that names it (http_proxy)"
    if answer.status == 400 and "HTTPS port" in message:
        return "the server expects TLS: write hindsight.apiUrl with https://"
    return None
