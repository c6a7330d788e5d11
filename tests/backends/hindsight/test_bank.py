"""Long items: the server keeps the end of those that are documents of their own."""

from __future__ import annotations

from typing import Any

import pytest

from ipy_memory.backends.hindsight.bank import LONG_ITEM_BYTES
from ipy_memory.model import Receipt, RetainItem

SHORT, LONG = "a" * LONG_ITEM_BYTES, "é" * (LONG_ITEM_BYTES // 2) + "\ud800"


def sent_items(world: Any, safe: bool) -> tuple[Receipt, str | None, list[dict[str, Any]]]:
    backend = world.backend(safeRetain=safe)
    receipt = backend.retain([RetainItem(content) for content in (SHORT, LONG, LONG)])
    backend.flush()
    (body,) = world.bodies("/memories")
    return receipt, body.get("operation_id"), body["items"]


@pytest.mark.claim("E-05")
def test_items_have_no_document_by_default_and_long_ones_a_warning(world: Any) -> None:
    receipt, operation, items = sent_items(world, safe=False)
    assert operation is None
    (note,) = receipt.notes
    assert note.startswith("2 items are so long")
    assert ["document_id" in item for item in items] == [False, False, False]


def test_long_items_that_may_be_sent_again_are_documents_of_their_own(world: Any) -> None:
    receipt, operation, items = sent_items(world, safe=True)
    assert receipt.notes == ()
    assert [item.get("document_id") for item in items] == [None, f"{operation}-1", f"{operation}-2"]
