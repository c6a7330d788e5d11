"""Proxies and certificates that the environment names."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import pytest

from ipy_memory.http.exchange import HttpClient
from ipy_memory.http.failure import HttpFailure
from ipy_memory.http.route import RouteError, route
from tests.backends.hindsight.raw import RawServer, answer, sending
from tests.backends.hindsight.stub import StubServer
from tests.tls import Authority, refusing, relaying

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

PASSWORD = "s3cret-pa55"
FINE = answer(b"{}")

VARIABLES = (
    *(name for kind in ("http", "https", "all", "no") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSLKEYLOGFILE"),
)


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serve() -> Iterator[Callable[..., RawServer]]:
    """Start servers that end with the test."""
    with ExitStack() as stack:
        yield lambda *given: stack.enter_context(RawServer(*given))


@pytest.fixture
def ask() -> Iterator[Callable[[str], int]]:
    """Ask a server, always over the same client."""
    client = HttpClient()
    yield lambda url: client.exchange("GET", url, connect_seconds=10, total_seconds=30).status
    client.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def failure_of(ask: Callable[[str], int], url: str) -> HttpFailure:
    with pytest.raises(HttpFailure) as caught:
        ask(url)
    assert PASSWORD not in repr((caught.value, caught.value.hint, caught.value.__cause__))
    return caught.value


class TestProxies:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "memory.localhost"])
    def test_this_machine_is_never_asked_through_one(self, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
        assert route(httpx.URL(f"http://{host}:8888/")).proxy is None

    def test_other_machines_are(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
        monkeypatch.setenv("no_proxy", "inside.test,port.test:8443")
        assert route(httpx.URL("https://memory.test/")).proxy == "http://proxy.test:3128"
        assert route(httpx.URL("https://port.test/")).proxy == "http://proxy.test:3128"
        assert route(httpx.URL("https://inside.test/")).proxy is None
        assert route(httpx.URL("https://port.test:8443/")).proxy is None
        assert route(httpx.URL("http://memory.test/")).proxy is None

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            ("proxy.test:3128", "proxy.test:3128"),
            (f"user:{PASSWORD}@proxy.test:3128", "proxy.test:3128"),
            (f"http://user:{PASSWORD}@proxy.test", "proxy.test"),
            (f"https://user:{PASSWORD}@proxy.test:8443/", "proxy.test:8443"),
            ("[2001:db8::1]:3128", "[2001:db8::1]:3128"),
        ],
    )
    @pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
    def test_one_may_be_named_without_a_scheme(
        self, variable: str, value: str, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(variable, value)
        found = route(httpx.URL("http://memory.test/"))
        assert (found.proxy_name, found.proxy_variable) == (name, variable)
        assert PASSWORD not in repr(found)

    @pytest.mark.parametrize(
        "value",
        [
            f"user:{PASSWORD}@",
            f"http://user:{PASSWORD}@host:port",
            f"http://user:{PASSWORD}@[::1",
            f"ftp://user:{PASSWORD}@host",
            f"user:{PASSWORD}#@host:1",
            f"socks9://user:{PASSWORD}@host:1",
            "://",
            "http://",
        ],
    )
    def test_one_that_cannot_be_used_is_named_by_its_variable(
        self, value: str, ask: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", value)
        failure = failure_of(ask, "http://memory.test/")
        assert str(failure) == "http_proxy is not the URL of a proxy"
        assert failure.hint == "set http_proxy to a URL such as http://host:3128, or unset it"
        assert failure.permanent
        assert not failure.sent

    def test_a_socks_proxy_needs_a_package(self, ask: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "socksio", None)
        monkeypatch.setenv("ALL_PROXY", f"socks5://user:{PASSWORD}@host:1080")
        failure = failure_of(ask, "http://memory.test/")
        assert str(failure) == "ALL_PROXY names a SOCKS proxy, which needs the package socksio"
        assert "httpx[socks]" in str(failure.hint)

    def test_requests_go_to_it_with_its_user(self, ask: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> None:
        with StubServer() as proxy:
            monkeypatch.setenv("http_proxy", f"user:{PASSWORD}@127.0.0.1:{proxy.port}")
            assert ask("http://memory.test/x") == 200
        assert proxy.requests[0]["url"] == "http://memory.test/x"

    def test_a_change_counts_at_the_next_request(
        self, ask: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with StubServer() as first, StubServer() as second:
            for proxy in (first, second, first):
                monkeypatch.setenv("http_proxy", proxy.url)
                ask("http://memory.test/x")
        assert [len(proxy.requests) for proxy in (first, second)] == [2, 1]

    def test_secure_requests_go_through_it(
        self,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server = serve(sending(FINE), authority.context("memory.test"))
        proxy = serve(relaying(server.port), authority.context("127.0.0.1"))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        monkeypatch.setenv("https_proxy", f"https://user:{PASSWORD}@127.0.0.1:{proxy.port}")
        assert ask("https://memory.test/x") == 200
        assert proxy.heads[0].startswith(b"CONNECT memory.test:443")
        assert server.heads[0].startswith(b"GET /x")

    def test_one_that_is_down_is_named(self, ask: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> None:
        with StubServer() as gone:
            pass
        monkeypatch.setenv("https_proxy", f"http://user:{PASSWORD}@127.0.0.1:{gone.port}")
        failure = failure_of(ask, "https://memory.test/")
        assert str(failure) == f"no connection to the proxy 127.0.0.1:{gone.port}"
        assert str(failure.hint).startswith("https_proxy names it")
        assert not failure.sent

    @pytest.mark.parametrize(
        ("status", "words"), [("403 Forbidden", "refused the connection (status 403)"), ("502 X", "(status 502)")]
    )
    def test_one_that_refuses_is_named(
        self,
        status: str,
        words: str,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        proxy = serve(refusing(status))
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:{PASSWORD}@127.0.0.1:{proxy.port}")
        failure = failure_of(ask, "https://memory.test/")
        assert words in str(failure)
        assert f"the proxy 127.0.0.1:{proxy.port}" in str(failure)
        assert str(failure.hint).startswith("HTTPS_PROXY names it")
        assert not failure.sent

    def test_one_that_asks_for_a_user_gets_a_hint(
        self, ask: Callable[[str], int], serve: Callable[..., RawServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy = serve(refusing("407 Proxy Authentication Required"))
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        failure = failure_of(ask, "https://memory.test/")
        assert "asks for a user and a password" in str(failure)
        assert "set https_proxy to a URL with them" in str(failure.hint)

    def test_one_with_a_bad_certificate_is_told_from_the_server(
        self,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        proxy = serve(sending(b""), authority.context("127.0.0.1"))
        monkeypatch.setenv("https_proxy", proxy.url)
        assert str(failure_of(ask, "https://memory.test/")) == "the certificate of the proxy is not trusted"

    def test_a_failure_behind_it_names_it_too(
        self, ask: Callable[[str], int], serve: Callable[..., RawServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy = serve(sending(b"nonsense\r\n\r\n"))
        monkeypatch.setenv("http_proxy", proxy.url)
        failure = failure_of(ask, "http://memory.test/")
        assert failure.hint == f"the request goes through the proxy 127.0.0.1:{proxy.port}, which http_proxy names"


class TestCertificates:
    @pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
    def test_an_own_authority_is_trusted_by_each_variable(
        self,
        variable: str,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server = serve(sending(FINE), authority.context("127.0.0.1"))
        failure = failure_of(ask, server.url)
        assert str(failure) == "the certificate of the server is not trusted"
        assert "set SSL_CERT_FILE to a file with its certificate" in str(failure.hint)
        assert failure.permanent
        assert not failure.sent
        monkeypatch.setenv(variable, str(authority.file))
        assert ask(server.url) == 200

    @pytest.mark.parametrize("variable", ["SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
    def test_a_folder_of_authorities_is_trusted(
        self,
        variable: str,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        folder = tmp_path / "authorities"
        folder.mkdir()
        server = serve(sending(FINE), authority.context("127.0.0.1"))
        monkeypatch.setenv(variable, str(folder))
        failure = failure_of(ask, server.url)
        assert f"{variable} is set, but without this authority" in str(failure.hint)
        shutil.copy(authority.file, folder / "authority.pem")
        openssl = shutil.which("openssl")
        assert openssl is not None
        subprocess.run([openssl, "rehash", str(folder)], check=True, capture_output=True)
        assert ask(server.url) == 200

    def test_a_file_that_was_repaired_counts_at_the_next_request(
        self,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        other = Authority(tmp_path, "other")
        server = serve(sending(FINE), authority.context("127.0.0.1"))
        monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
        assert "SSL_CERT_FILE is set, but without this authority" in str(failure_of(ask, server.url).hint)
        other.file.write_bytes(authority.file.read_bytes())
        assert ask(server.url) == 200

    @pytest.mark.parametrize(
        ("names", "days", "words"),
        [
            (["127.0.0.1"], (-9, -1), "has expired"),
            (["127.0.0.1"], (1, 9), "is not valid yet"),
            (["other.test"], (-1, 9), "is for another host name"),
            (["10.0.0.1"], (-1, 9), "is for another host name"),
        ],
    )
    def test_what_is_wrong_with_one_is_said(
        self,
        names: list[str],
        days: tuple[int, int],
        words: str,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server = serve(sending(FINE), authority.context(*names, days=days))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        failure = failure_of(ask, server.url)
        assert str(failure) == f"the certificate of the server {words}"
        assert failure.hint

    def test_a_host_name_is_compared(
        self,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server = serve(sending(FINE), authority.context("127.0.0.1"))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert str(failure_of(ask, f"https://localhost:{server.port}/")).endswith("is for another host name")

    @pytest.mark.parametrize(
        ("variable", "what", "words"),
        [
            ("SSL_CERT_FILE", "nowhere", "does not name a readable file"),
            ("SSL_CERT_FILE", "folder", "does not name a readable file"),
            ("SSL_CERT_FILE", "garbage", "names a file that holds no certificate in PEM form"),
            ("SSL_CERT_FILE", "empty", "names a file that holds no certificate in PEM form"),
            ("SSL_CERT_DIR", "nowhere", "does not name a folder"),
            ("SSL_CERT_DIR", "garbage", "does not name a folder"),
            ("REQUESTS_CA_BUNDLE", "nowhere", "does not name a readable file"),
            ("REQUESTS_CA_BUNDLE", "garbage", "names a file that holds no certificate in PEM form"),
            ("SSLKEYLOGFILE", "folder", "names a file that cannot be written"),
            ("SSLKEYLOGFILE", "nowhere/file", "names a file that cannot be written"),
        ],
    )
    def test_a_variable_that_leads_nowhere_is_named(
        self,
        variable: str,
        what: str,
        words: str,
        ask: Callable[[str], int],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "garbage").write_bytes(b"\x00\xff garbage " * 100)
        (tmp_path / "empty").write_bytes(b"")
        monkeypatch.setenv(variable, str(tmp_path / what))
        failure = failure_of(ask, "https://127.0.0.1:9/")
        assert str(failure) == f"{variable} {words}"
        assert failure.hint == f"fix or unset {variable}"

    def test_it_does_not_matter_to_a_plain_server(
        self, ask: Callable[[str], int], serve: Callable[..., RawServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"):
            monkeypatch.setenv(name, "/nowhere/at/all")
        assert ask(serve(sending(FINE)).url) == 200

    def test_more_authorities_that_cannot_be_read_change_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/nowhere/at/all")
        assert route(httpx.URL("https://memory.test/")).context().verify_mode is ssl.CERT_REQUIRED

    def test_keys_are_logged_where_asked_for(
        self,
        ask: Callable[[str], int],
        serve: Callable[..., RawServer],
        authority: Authority,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
        assert ask(serve(sending(FINE), authority.context("127.0.0.1")).url) == 200
        assert "SECRET" in (tmp_path / "keys").read_text()


class TestWrongPorts:
    def test_tls_to_a_plain_port(self, ask: Callable[[str], int], serve: Callable[..., RawServer]) -> None:
        def act(connection: socket.socket) -> bool:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            return False

        server = serve(act)
        server.reads_requests = False
        failure = failure_of(ask, f"https://127.0.0.1:{server.port}/")
        assert str(failure) == "the server does not speak TLS on this port"
        assert "http://" in str(failure.hint)
        assert not failure.sent

    @pytest.mark.parametrize("alert", [b"\x15\x03\x01\x00\x02\x02\x46", b"\x15\x03\x03\x00\x02\x02\x28"])
    def test_a_plain_request_to_a_tls_port(
        self, alert: bytes, ask: Callable[[str], int], serve: Callable[..., RawServer]
    ) -> None:
        failure = failure_of(ask, serve(sending(alert)).url)
        assert str(failure) == "the server answers with TLS"
        assert "https://" in str(failure.hint)

    def test_a_plain_request_to_a_tls_port_that_says_nothing(
        self, ask: Callable[[str], int], serve: Callable[..., RawServer], authority: Authority
    ) -> None:
        server = serve(sending(FINE), authority.context("127.0.0.1"))
        failure = failure_of(ask, f"http://127.0.0.1:{server.port}/")
        assert "https://" in str(failure.hint)

    def test_a_host_that_is_unknown(self, ask: Callable[[str], int]) -> None:
        failure = failure_of(ask, "http://no-such-host.invalid/")
        assert str(failure) == "no connection to the server: its host name is unknown"

    def test_a_handshake_that_is_broken_off(self, ask: Callable[[str], int], serve: Callable[..., RawServer]) -> None:
        server = serve(sending(b""))
        server.reads_requests = False
        failure = failure_of(ask, f"https://127.0.0.1:{server.port}/")
        assert "no secure connection to the server" in str(failure)


def test_a_route_says_nothing_of_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"user:{PASSWORD}@h:1")
    assert PASSWORD not in repr(route(httpx.URL("http://memory.test/")))
    monkeypatch.setenv("http_proxy", f"user:{PASSWORD}@h:x")
    with pytest.raises(RouteError) as caught:
        route(httpx.URL("http://memory.test/"))
    assert PASSWORD not in repr((caught.value, caught.value.__cause__))
