"""Why an HTTP exchange failed, in words of our own: nothing of the request, its headers or the answer is in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ipy_memory.http.route import CERT_DIR, CERT_FILE, KEY_LOG, Route

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
_CERTIFICATE_PROBLEMS = {
    9: ("is not valid yet", "check this computer's clock"),
    10: ("has expired", "it must be renewed on that side; check this computer's clock too"),
    62: ("is for another host name", "use a host name that the certificate names"),
    64: ("is for another host name", "use a host name that the certificate names"),
}
"""OpenSSL's number of what is wrong with a certificate; every other one means that no authority vouches for it."""

_STATUS = re.compile(r"\d{3}\b")


class HttpFailure(Exception):
    """No complete answer came.

    Attributes
    ----------
    hint : str or None
        What to do, where the failure shows it.
    sent : bool
        Whether anything of the request may have reached the server.
    timed_out : bool
        Whether a limit of time was reached.
    permanent : bool
        Whether the same request would fail again in the same way.
    """

    def __init__(
        self,
        words: str,
        hint: str | None = None,
        *,
        sent: bool = False,
        timed_out: bool = False,
        permanent: bool = False,
    ) -> None:
        super().__init__(words)
        self.hint = hint
        self.sent = sent
        self.timed_out = timed_out
        self.permanent = permanent


class RefusedAnswer(Exception):
    """An answer that is too large or cannot be unpacked; the text says which."""


def failure_of(error: Exception, way: Route, seen: bytes) -> HttpFailure:
    """Return what an error of the HTTP library means.

    Parameters
    ----------
    error
        What was raised between the first byte sent and the last byte read.
    way
        The way to the server.
    seen
        The first bytes that came from the network.
    """
    import httpx

    if isinstance(error, RefusedAnswer):
        return HttpFailure(str(error), sent=True, permanent=True)
    if isinstance(error, httpx.LocalProtocolError | UnicodeError):
        return HttpFailure(
            "the request cannot be written as HTTP (does the key hold unusual characters?)", permanent=True
        )
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        failure = _no_connection(error, way, seen)
    else:
        failure = _broken_off(error, way, seen)
    if failure.hint is None and way.proxy:
        failure.hint = f"the request goes through the proxy {way.proxy_name}, which {way.proxy_variable} names"
    return failure


def _no_connection(error: Exception, way: Route, seen: bytes) -> HttpFailure:
    import socket
    import ssl

    import httpx

    causes = list(_causes(error))
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    timed_out = isinstance(error, httpx.ConnectTimeout)
    before_server = way.proxy is not None and not seen
    if isinstance(tls, ssl.SSLCertVerificationError):
        return _bad_certificate(tls, way, "proxy" if before_server else "server")
    if tls is not None or (way.secure and any(isinstance(cause, ConnectionResetError) for cause in causes)):
        return _no_tls(getattr(tls, "reason", None), "proxy" if before_server else "server")
    if isinstance(error, httpx.ProxyError):
        return _refused_by_proxy(str(error), way)
    if before_server:
        words = f"no connection to the proxy {way.proxy_name}"
        hint = f"{way.proxy_variable} names it: check that it runs, or list the server in NO_PROXY"
        return HttpFailure(words, hint, timed_out=timed_out)
    if timed_out:
        return HttpFailure("no connection to the server within the limit", timed_out=True)
    if any(isinstance(cause, socket.gaierror | UnicodeError) for cause in causes):
        return HttpFailure("no connection to the server: its host name is unknown")
    return HttpFailure("no connection to the server")


def _bad_certificate(error: ssl.SSLCertVerificationError, way: Route, whose: str) -> HttpFailure:
    what, hint = _CERTIFICATE_PROBLEMS.get(error.verify_code, ("is not trusted", ""))
    if not hint:
        hint = f"if it is signed by an authority of your own, set {CERT_FILE} to a file with its certificate (PEM)"
        if named := [name for name, *_ in way.variables if name != KEY_LOG]:
            hint += f"; {', '.join(named)} {'is' if len(named) == 1 else 'are'} set, but without this authority"
        if CERT_DIR in named:
            hint += " (a folder needs hashed names: openssl rehash)"
    return HttpFailure(f"the certificate of the {whose} {what}", hint, permanent=True)


def _no_tls(reason: str | None, whose: str) -> HttpFailure:
    if reason in _NOT_TLS:
        hint = "if it speaks plain HTTP, write its address with http://"
        return HttpFailure(f"the {whose} does not speak TLS on this port", hint, permanent=True)
    why = f" ({reason})" if reason else ""
    return HttpFailure(f"no secure connection to the {whose}: the TLS handshake failed{why}")


def _refused_by_proxy(said: str, way: Route) -> HttpFailure:
    status = _STATUS.match(said)
    if status is not None and status.group() == "407":
        hint = f"set {way.proxy_variable} to a URL with them: http://USER:PASSWORD@{way.proxy_name}"
        return HttpFailure(f"the proxy {way.proxy_name} asks for a user and a password", hint, permanent=True)
    answer = "" if status is None else f" (status {status.group()})"
    hint = f"{way.proxy_variable} names it: check whether it lets this server through, or list the server in NO_PROXY"
    return HttpFailure(f"the proxy {way.proxy_name} refused the connection{answer}", hint)


def _broken_off(error: Exception, way: Route, seen: bytes) -> HttpFailure:
    import httpx

    hint = "if it expects TLS, write its address with https://" if not way.secure else None
    if hint and isinstance(error, httpx.RemoteProtocolError) and seen.startswith(_TLS_RECORDS):
        return HttpFailure("the server answers with TLS", hint, permanent=True)
    for kind, words in (
        (httpx.TimeoutException, "no complete answer within the limit"),
        (httpx.RemoteProtocolError, "the server broke off or does not speak HTTP"),
        (httpx.NetworkError, "the connection was lost"),
    ):
        if isinstance(error, kind):
            timed_out = isinstance(error, httpx.TimeoutException)
            sent = not isinstance(error, httpx.PoolTimeout)
            return HttpFailure(words, None if seen or timed_out else hint, sent=sent, timed_out=timed_out)
    return HttpFailure(type(error).__name__, sent=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
