"""Proxies, and the limit of a whole exchange."""

from __future__ import annotations

import pytest

from ipy_memory import http
from ipy_memory.transport import proxy_for
from tests.hindsight.stub import StubServer


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "memory.localhost"])
def test_this_machine_is_never_asked_through_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    assert proxy_for(host, "http") is None


def test_other_machines_are_asked_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inside.test")
    assert proxy_for("memory.test", "https") == "http://proxy.test:3128"
    assert proxy_for("inside.test", "https") is None


def test_a_request_goes_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with StubServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with http.client() as client:
            http.exchange(client, "GET", "http://memory.test/x", connect_seconds=5, total_seconds=5)
        assert proxy.requests[0]["url"] == "http://memory.test/x"


def test_each_exchange_has_its_own_limit_of_the_whole() -> None:
    with StubServer([{"delay_ms": 60_000}]) as server, http.client() as client:
        with pytest.raises(http.failures()) as caught:
            http.exchange(client, "GET", f"{server.url}/x", connect_seconds=5, total_seconds=0.2)
        assert http.timed_out(caught.value)
        server.released.set()
        answer = http.exchange(client, "GET", f"{server.url}/x", connect_seconds=5, total_seconds=30)
        assert answer.status == 200
