"""What is shown of an endpoint's address, and how a failure is told."""

from __future__ import annotations

import httpx
import pytest

from ipy_memory.mnemopi.endpoint import Endpoint, shown


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


@pytest.mark.parametrize(("status", "asked"), [(400, 1), (401, 1), (408, 3), (429, 3), (500, 3)])
def test_a_failure_that_may_pass_is_tried_again_and_told_in_words(status: int, asked: int) -> None:
    requests: list[httpx.Request] = []
    waited: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(status, text="secret words")

    endpoint = Endpoint("http://stub/", "sk-x", transport=httpx.MockTransport(answer), wait=waited.append)
    assert endpoint.post("/path", {"a": 1}) == (None, f"status {status}")
    assert len(requests) == asked
    assert waited == [1.0, 2.0][: asked - 1]
    endpoint.close()
    endpoint.close()
