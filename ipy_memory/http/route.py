"""The way to a server as the environment names it: which proxy to go through, and which certificates to trust."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    import httpx

CERT_FILE, CERT_DIR = "SSL_CERT_FILE", "SSL_CERT_DIR"
"""OpenSSL's own variables, which replace the usual authorities."""

CA_BUNDLE = "REQUESTS_CA_BUNDLE"
"""Names a file or a folder; counts where neither of OpenSSL's variables is set."""

EXTRA_CERTS = "NODE_EXTRA_CA_CERTS"
"""Names authorities to trust beside the others; as in Node, a file that cannot be read changes nothing."""

KEY_LOG = "SSLKEYLOGFILE"
"""Names a file for the keys of connections, for debugging."""

_TLS_VARIABLES = (CERT_FILE, CERT_DIR, CA_BUNDLE, EXTRA_CERTS, KEY_LOG)
_PROXIES = ("http", "https", "socks5", "socks5h")


class RouteError(Exception):
    """A variable of the environment makes every request impossible; ``hint`` says what to do."""

    def __init__(self, words: str, hint: str) -> None:
        super().__init__(words)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Route:
    """One way to a server.

    Attributes
    ----------
    secure
        Whether the server or the proxy speaks TLS.
    proxy
        URL of the proxy, with its user and password; never shown.
    proxy_name, proxy_variable
        Host and port of the proxy, and the variable that names it.
    variables
        The variables about TLS that are set, their values, and when what they name was changed; empty where nobody
        speaks TLS.
    """

    secure: bool
    proxy: str | None = field(default=None, repr=False)
    proxy_name: str = ""
    proxy_variable: str = ""
    variables: tuple[tuple[str, str, float], ...] = ()

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings of this way.

        Raises
        ------
        RouteError
            A variable names something that cannot be used.
        """
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if not self.secure:
            return context
        context.verify_flags |= (
            ssl.VERIFY_X509_PARTIAL_CHAIN
        )  # an intermediate authority may be the one that is trusted
        named = {name: value for name, value, _ in self.variables}
        _trust(context, named)
        if KEY_LOG in named:
            try:
                context.keylog_filename = named[KEY_LOG]
            except (OSError, ValueError):
                raise RouteError(f"{KEY_LOG} names a file that cannot be written", f"fix or unset {KEY_LOG}") from None
        return context


def route(url: httpx.URL) -> Route:
    """Return the way to a server; this machine itself is never asked through a proxy.

    Raises
    ------
    RouteError
        The environment names a proxy that cannot be used.
    """
    value, variable = _named_proxy(url)
    proxy = _usable(value, variable) if value else None
    secure = url.scheme == "https" or (proxy is not None and proxy.scheme == "https")
    named = [(name, os.environ[name]) for name in _TLS_VARIABLES if os.environ.get(name)] if secure else []
    variables = tuple((name, value, _changed(value)) for name, value in named)
    if proxy is None:
        return Route(secure, variables=variables)
    return Route(secure, value, proxy.netloc.decode("ascii"), variable, variables)


def _changed(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except (OSError, ValueError):
        return 0.0


def _named_proxy(url: httpx.URL) -> tuple[str, str]:
    """Return the URL of the proxy for a server, and the variable that names it; empty texts where there is none."""
    host = url.host
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    if local or proxy_bypass(url.netloc.decode("ascii")):
        return "", ""
    proxies = getproxies()
    kind = next((kind for kind in (url.scheme, "all") if proxies.get(kind)), None)
    if kind is None:
        return "", ""
    names = (f"{kind}_proxy", f"{kind}_proxy".upper())
    variable = next((name for name in names if os.environ.get(name)), f"the system's {kind} proxy")
    value = proxies[kind].strip()
    return value if "://" in value else f"http://{value}", variable


def _usable(proxy: str, variable: str) -> httpx.URL:
    """Return the URL of a proxy, without user and password."""
    import httpx

    hint = f"set {variable} to a URL such as http://host:3128, or unset it"
    try:
        url = httpx.Proxy(proxy).url
    except (httpx.InvalidURL, ValueError):
        raise RouteError(f"{variable} is not the URL of a proxy", hint) from None
    if url.scheme not in _PROXIES or not url.host:
        raise RouteError(f"{variable} is not the URL of a proxy", hint)
    if url.scheme.startswith("socks"):
        try:
            import socksio  # type: ignore[import-not-found]  # noqa: F401
        except ImportError:
            hint = "install it with pip install 'httpx[socks]', or name an http proxy"
            raise RouteError(f"{variable} names a SOCKS proxy, which needs the package socksio", hint) from None
    return url


def _trust(context: ssl.SSLContext, named: Mapping[str, str]) -> None:
    """Load the authorities that variables name, or else the usual ones."""
    chosen = [name for name in (CERT_FILE, CERT_DIR) if name in named] or [CA_BUNDLE]
    for name in chosen:
        if name in named:
            _load(context, name, named[name])
        else:
            import certifi

            context.load_verify_locations(certifi.where())
    if EXTRA_CERTS in named:
        with suppress(RouteError):
            _load(context, EXTRA_CERTS, named[EXTRA_CERTS])


def _load(context: ssl.SSLContext, name: str, value: str) -> None:
    hint = f"fix or unset {name}"
    folders = [part for part in value.split(os.pathsep) if Path(part).is_dir()]
    if folders and name in (CERT_DIR, CA_BUNDLE):
        context.load_verify_locations(capath=value)  # read only when a certificate is looked for
    elif name == CERT_DIR:
        raise RouteError(f"{name} does not name a folder", hint)
    else:
        try:
            context.load_verify_locations(cafile=value)
        except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError):
            raise RouteError(f"{name} does not name a readable file", hint) from None
        except (OSError, ValueError):  # garbage is an ssl.SSLError, which is an OSError
            raise RouteError(f"{name} names a file that holds no certificate in PEM form", hint) from None
