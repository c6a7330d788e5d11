"""What is shown of an endpoint's address, and how a failure is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from ipy_memory.backends.mnemopi.embeddings.openai_api import Endpoint, shown

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:secret@models.test:8443/v1?key=secret", "models.test:8443"),
        ("http://127.0.0.1:1/v1", "127.0.0.1:1"),
        ("https://models.test/v1", "models.test"),
        ("http://[", "an endpoint"),
        ("http://h:no", "an endpoint"),
        ("", "an endpoint"),
    ],
)
def test_only_the_host_is_shown(url: str, host: str) -> None:
    assert shown(url) == host


class Waiting:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waited: list[float] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


def endpoint_of(answer: Callable[[httpx.Request], httpx.Response], clock: Waiting) -> Endpoint:
    return Endpoint("http://stub/", "sk-x", transport=httpx.MockTransport(answer), wait=clock.wait, clock=clock)


@pytest.mark.parametrize(("status", "asked"), [(400, 1), (401, 1), (408, 3), (429, 3), (500, 3)])
def test_a_failure_that_may_pass_is_tried_again_and_told_in_words(status: int, asked: int) -> None:
    requests: list[httpx.Request] = []
    clock = Waiting()

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(status, text="secret words")

    endpoint = endpoint_of(answer, clock)
    assert endpoint.post("/path", {"a": 1}, until=60) == (None, f"status {status}", status)
    assert len(requests) == asked
    assert clock.waited == [1.0, 2.0][: asked - 1]
    endpoint.close()
    endpoint.close()


def test_all_attempts_share_one_limit_of_time() -> None:
    clock = Waiting()
    given: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        given.append(request.extensions["timeout"]["read"])
        clock.now += 12
        return httpx.Response(503)

    assert endpoint_of(answer, clock).post("/path", {}, until=30).problem == "status 503"
    assert given == [30, 17, 3]
    assert endpoint_of(answer, clock).post("/path", {}, until=30).problem == "no time is left"
    assert len(given) == 3


def test_an_impatient_request_is_not_repeated() -> None:
    requests: list[httpx.Request] = []
    endpoint = endpoint_of(lambda request: requests.append(request) or httpx.Response(500), Waiting())
    assert endpoint.post("/path", {}, until=30, patient=False).status == 500
    assert len(requests) == 1


def test_what_would_fail_again_is_not_tried_again() -> None:
    clock = Waiting()
    endpoint = Endpoint("ftp://stub", wait=clock.wait, clock=clock)
    assert endpoint.post("/path", {}, until=30).problem == "the server address is not a valid http or https URL"
    assert clock.waited == []


def test_the_hint_of_a_failure_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "ftp://user:secret@host")
    problem = Endpoint("http://models.test").post("/path", {}, until=1e9).problem
    assert problem.startswith("http_proxy is not the URL of a proxy; set http_proxy to")
    assert "secret" not in problem
