"""Fixtures around Hindsight servers: the real one, and a stand-in.

They never skip: a test that asks for the real server fails if there can be none. A quick run leaves such tests out by
their marker (``-m "not hindsight"``).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.backends.hindsight.stub import StubServer
from tests.services.hindsight_server import HindsightServer, default_venv, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

API_KEY = "key-of-the-tests"


@pytest.fixture(scope="session")
def hindsight_server() -> Iterator[HindsightServer]:
    """The one server of the test run; a test that may follow one which killed it takes ``hindsight_bank`` too."""
    with running_server(default_venv(), api_key=API_KEY) as server:
        yield server


@pytest.fixture
def hindsight_bank(hindsight_server: HindsightServer) -> str:
    """The id of a bank that nobody has used yet, on a server that runs; the first write makes the bank."""
    if not hindsight_server.running:
        hindsight_server.start()
    hindsight_server.stub.requests.clear()
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def stub() -> Iterator[StubServer]:
    """A stand-in for a Hindsight server."""
    with StubServer() as server:
        yield server
