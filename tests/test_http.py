"""Requests and their failures in words."""

from __future__ import annotations

import pytest

from ipy_memory import http
from tests.hindsight.stub import StubServer


def test_no_failure_repeats_what_was_sent() -> None:
    with StubServer() as gone:
        pass
    with http.client() as client, pytest.raises(http.failures()) as caught:
        http.exchange(
            client,
            "GET",
            gone.url,
            headers=[("authorization", "Bearer hush")],
            connect_seconds=5,
            total_seconds=5,
        )
    assert http.never_sent(caught.value)
    assert "hush" not in str(caught.value) + http.failure_words(caught.value)
