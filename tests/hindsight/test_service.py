"""What a batch looks like on the wire when it may be repeated."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from ipy_memory.hindsight.queue import Queued
from ipy_memory.hindsight.service import LONG_ITEM_BYTES, KnownBanks, Service
from ipy_memory.scoping.hindsight import HindsightScope
from ipy_memory.settings import hindsight_config, load_settings

SHORT, LONG = "a" * LONG_ITEM_BYTES, "é" * (LONG_ITEM_BYTES // 2) + "\ud800"


def sent(operation_id: str | None) -> list[dict[str, Any]]:
    """Return the items of the one retain request."""
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={})

    config = hindsight_config(load_settings("/nowhere", "/nowhere", {}, {"hindsight.apiUrl": "http://server.test"}))
    service = Service(config, HindsightScope("bank"), KnownBanks(), tz=None, transport=httpx.MockTransport(answer))
    items = [Queued(content, None, "session", 0) for content in (SHORT, LONG, LONG)]
    assert service.send(items, operation_id, None) is None
    service.client.close()
    return bodies[-1]["items"]


@pytest.mark.claim("E-05")
def test_items_have_no_document_by_default() -> None:
    assert [item.get("document_id") for item in sent(None)] == [None, None, None]


def test_long_items_of_a_repeatable_batch_are_documents_of_their_own() -> None:
    assert [item.get("document_id") for item in sent("op")] == [None, "op-1", "op-2"]
