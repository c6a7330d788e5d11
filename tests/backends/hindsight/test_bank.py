"""Long items, which are documents of their own, and what a user's filters send."""

from __future__ import annotations

from typing import Any

import pytest

from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.filters import RecallFilter
from ipy_memory.backends.hindsight.bank import LONG_ITEM_BYTES
from ipy_memory.model import Receipt, RetainItem
from ipy_memory.scoping.modes import HindsightScope

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


# ---- a user's filters


def body_of(world: Any, scope: HindsightScope, **where: Any) -> Any:
    world.backend(scope).recall(RecallRequest("q", where=RecallFilter.of(where)))
    return world.stub.requests[-1]["body"]


PLAIN = {"query": "q", "types": ["world", "experience"], "max_tokens": 1024, "budget": "mid"}


@pytest.mark.parametrize(
    ("where", "sent"),
    [
        ({}, {}),
        ({"type": "observation"}, {"types": ["observation"]}),
        ({"type": "world,observation"}, {"types": ["world", "observation"]}),
        ({"budget": "high"}, {"budget": "high"}),
        ({"tokens": 300}, {"max_tokens": 300}),
        ({"at": "2026-02-04T00:00:00Z"}, {"query_timestamp": "2026-02-04T00:00:00.999Z"}),
        ({"tag": "a,b"}, {"tags": ["a", "b"], "tags_match": "all_strict"}),
    ],
)
def test_each_filter_is_one_field_of_the_request(world: Any, where: dict[str, Any], sent: dict[str, Any]) -> None:
    assert body_of(world, HindsightScope("omp"), **where) == PLAIN | sent


def test_tags_narrow_the_scope_and_never_leave_it(world: Any) -> None:
    scope = HindsightScope("omp", ("project:demo",), ("project:demo",), "any")
    assert body_of(world, scope, tag="a") == PLAIN | {"tags": ["project:demo", "a"], "tags_match": "all_strict"}
    world.stub.answer_with([{"body": {"results": []}}])
    answer = world.backend(scope).recall(RecallRequest("q", where=RecallFilter(tag=("a",), tokens=5)))
    assert answer.attrs["filter"] == "project:demo and a only"
    assert answer.notes == ("--tokens is 5: a larger token budget may find more",)


def test_another_bank_and_a_sub_agent_take_filters_too(world: Any) -> None:
    backend = world.backend()
    request = RecallRequest("q", where=RecallFilter(tag=("a",)))
    world.stub.answer_with([{"body": {"results": [{"text": "x"}]}}])
    backend.one_bank("other").recall(request)
    assert world.stub.requests[-1]["body"]["tags"] == ["a"]
    child = backend.child("child", "/work")
    assert child.filters == backend.filters
    child.recall(request)
    assert world.stub.requests[-1]["body"]["tags"] == ["project:demo", "a"]
