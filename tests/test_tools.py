"""The tools without any face: metadata, resolving, strict input, texts, failures."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory import tools
from ipy_memory.backends.base import RecallRequest
from ipy_memory.clock import FixedClock
from ipy_memory.errors import RecallCancelled, ToolInputError
from ipy_memory.model import Answer, Hit, Receipt, RetainItem, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Backend:
    name = "mnemopi"
    retain_bank = "demo"

    def __init__(self, answer: Answer | BaseException | None = None) -> None:
        self.answer = answer or Answer()
        self.asked: list[Any] = []

    def recall(self, request: RecallRequest) -> Answer:
        self.asked.append(request.query)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def reflect(self, query: str, context: str | None = None, **options: Any) -> Answer:
        return self.recall(RecallRequest(query))

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        self.asked.append(list(items))
        return Receipt(len(items), "demo", "stored")

    def bullet(self, hit: Hit) -> str:
        return f"- {hit.content}"


class _Host:
    def __init__(self, backend: _Backend, now: str = "2026-06-01T12:34:59.999Z") -> None:
        self.backend, self.clock = backend, FixedClock(now)

    def live_backend(self) -> _Backend:
        return self.backend

    def check_not_paused(self) -> None:
        """Nothing is paused here."""

    def provenance(self, query: str) -> dict[str, Any]:
        return {"query": query}

    def edit_memory(self, **given: Any) -> ToolResult:
        return ToolResult("edited", given)


def _tool(name: str, backend: _Backend | None = None) -> tools.Tool:
    tool = tools.create_tool(name, _Host(backend or _Backend()), backend="mnemopi")  # type: ignore[arg-type]
    assert tool is not None
    return tool


@pytest.mark.claim("R-03")
@pytest.mark.parametrize("backend", ["mnemopi", "hindsight"])
def test_an_unrestricted_list_gains_the_three_tools(backend: str) -> None:
    found = tools.select_tools(["read", "retain"], backend=backend, restricted=False, xdev=False)
    assert found == ["read", "retain", "recall", "reflect"]


@pytest.mark.claim("R-03")
@pytest.mark.parametrize("backend", ["off", "local", "sharpshooter", "other"])
def test_no_tool_is_added_without_a_supported_backend(backend: str) -> None:
    assert tools.select_tools(["read"], backend=backend, restricted=False, xdev=True) == ["read"]


@pytest.mark.claim("R-03")
def test_a_restricted_list_comes_back_unchanged() -> None:
    given = ["bash", "recall"]
    for backend in ("mnemopi", "off"):
        assert tools.select_tools(given, backend=backend, restricted=True, xdev=True) == given


@pytest.mark.claim("R-04")
def test_xdev_lists_unnamed_tools_behind_xd_and_named_ones_plainly() -> None:
    found = tools.select_tools(["recall"], backend="hindsight", restricted=False, xdev=True)
    assert found == ["recall", "xd://retain", "xd://reflect"]
    assert tools.select_tools(None, backend="mnemopi", restricted=False, xdev=True) == [
        "xd://recall",
        "xd://retain",
        "xd://reflect",
    ]


@pytest.mark.claim("R-02", "T-01", "F-01")
@pytest.mark.parametrize("name", ["recall", "retain", "reflect"])
def test_a_tool_exists_only_for_a_configured_backend(name: str) -> None:
    host = _Host(_Backend())
    for backend in ("off", "local", "sharpshooter", "nonsense"):
        assert tools.create_tool(name, host, backend=backend) is None  # type: ignore[arg-type]
    assert tools.create_tool(name, host, backend="hindsight", api_url="") is None  # type: ignore[arg-type]
    assert tools.create_tool(name, host, backend="hindsight") is not None  # type: ignore[arg-type]


@pytest.mark.claim("M-01")
def test_memory_edit_exists_only_for_mnemopi() -> None:
    host = _Host(_Backend())
    assert tools.create_tool("memory_edit", host, backend="hindsight") is None  # type: ignore[arg-type]
    assert _tool("memory_edit")(op="forget", id="x").details == {"op": "forget", "id": "x"}


@pytest.mark.claim("R-05", "T-02", "F-01")
@pytest.mark.parametrize(
    ("name", "given", "field"),
    [
        ("recall", {}, "query"),
        ("recall", {"query": 1}, "query"),
        ("recall", {"query": "x", "limit": 3}, "limit"),
        ("recall", {"query": None}, "query"),
        ("retain", {"items": []}, "items"),
        ("retain", {"items": "text"}, "items"),
        ("retain", {"items": [{"content": 1}]}, "items[0].content"),
        ("retain", {"items": [{"content": "x"}, {"text": "x"}]}, "items[1].text"),
        ("retain", {"items": [{"context": "x"}]}, "items[0].content"),
        ("retain", {"items": [{"content": "x", "context": None}]}, "items[0].context"),
        ("reflect", {"query": "x", "context": 3}, "context"),
        ("memory_edit", {"op": "purge", "id": "x"}, "op"),
        ("memory_edit", {"op": "update", "id": "x", "importance": True}, "importance"),
    ],
)
def test_wrong_input_is_refused_by_the_field_before_any_backend_is_asked(
    name: str, given: Mapping[str, Any], field: str
) -> None:
    backend = _Backend()
    with pytest.raises(ToolInputError) as caught:
        _tool(name, backend)(**given)
    assert f"'{field}'" in str(caught.value)
    assert backend.asked == []


@pytest.mark.claim("R-05")
@given(st.text())
def test_a_query_goes_on_unchanged(query: str) -> None:
    backend = _Backend()
    _tool("recall", backend)(query=query)
    assert backend.asked == [query]


@pytest.mark.claim("R-06", "R-07")
@pytest.mark.parametrize(("count", "noun"), [(1, "memory"), (2, "memories")])
def test_recall_text_counts_its_bullets_and_cuts_the_minute(count: int, noun: str) -> None:
    hits = tuple(Hit(str(n), f"fact {n}") for n in range(count))
    result = _tool("recall", _Backend(Answer(hits)))(query="fact")
    bullets = "\n\n".join(f"- fact {n}" for n in range(count))
    assert result.text == f"Found {count} relevant {noun} (as of 2026-06-01 12:34 UTC):\n\n{bullets}"
    assert result.details == {}
    assert not result.useless


@pytest.mark.claim("R-14")
def test_no_hits_have_their_own_text_and_are_useless() -> None:
    result = _tool("recall")(query="nothing")
    assert (result.text, result.details, result.useless) == ("No relevant memories found.", {}, True)


@pytest.mark.claim("R-15", "F-05")
@pytest.mark.parametrize("name", ["recall", "reflect"])
def test_a_failure_is_one_warning_and_the_same_exception(name: str, caplog: pytest.LogCaptureFixture) -> None:
    error = RuntimeError("disk on fire")
    with caplog.at_level(logging.DEBUG, logger="ipy_memory"), pytest.raises(RuntimeError) as caught:
        _tool(name, _Backend(error))(query="x")
    assert caught.value is error
    [record] = caplog.records
    assert (record.name, record.levelno) == ("ipy_memory", logging.WARNING)
    assert record.getMessage() == f"{name} failed: backend=mnemopi bank=demo error=disk on fire"


@pytest.mark.claim("R-15", "R-25")
@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RecallCancelled("Recall was cancelled.")])
def test_an_interrupt_is_neither_logged_nor_wrapped(stop: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(type(stop)) as caught:
        _tool("recall", _Backend(stop))(query="x")
    assert caught.value is stop
    assert caplog.records == []


@pytest.mark.claim("T-02", "T-03", "T-05", "T-06")
def test_retain_passes_items_untrimmed_and_counts_the_request() -> None:
    backend = _Backend()
    result = _tool("retain", backend)(items=[{"content": "  "}, {"content": "b", "context": ""}, {"content": ""}])
    assert backend.asked == [[RetainItem("  "), RetainItem("b", ""), RetainItem("")]]
    assert (result.text, result.details) == ("3 memories stored.", {"count": 3})
    assert _tool("retain")(items=[{"content": "a"}]).text == "1 memory stored."


@pytest.mark.claim("F-03")
def test_reflect_without_hits_says_so() -> None:
    assert _tool("reflect")(query="x").text == "No relevant information found to reflect on."


@pytest.mark.claim("R-32", "T-11")
def test_descriptions_say_when_to_use_a_tool() -> None:
    use = (
        "Searches long-term memory and returns raw entries by relevance. Use it before answering about past "
        "conversations, preferences, project decisions or anything else that prior context helps with; in doubt, "
        "recall first. Use recall for the entries themselves and reflect for a synthesis over many."
    )
    previews = (
        " An entry that ends in … is a cut preview (`truncated: true`, with its `full_length`): read `memory://<id>` "
        "for the whole text before a `memory_edit` update."
    )
    assert tools.spec_for("recall", "mnemopi").description == use + previews
    assert tools.spec_for("recall", "hindsight").description == use  # it has neither addresses nor edits
    described = {name: tools.spec_for(name, "mnemopi").description for name in ("retain", "reflect", "memory_edit")}
    assert described == {
        "retain": (
            "Stores one or more facts for future sessions: durable, reusable knowledge such as preferences and project "
            "or architecture decisions, no passing task state. Make each item complete in itself (who, what, when, "
            "why) and put related facts in one call; the store removes duplicates and consolidates."
        ),
        "reflect": (
            "Answers a question from long-term memory as a whole rather than listing entries. Use it for what needs a "
            "synthesis over many memories; use recall for the entries themselves."
        ),
        "memory_edit": (
            "Changes one stored memory by the id that recall shows: update its text or importance, forget it for good, "
            "or invalidate it (optionally naming its replacement). Facts are read-only. Read `memory://<id>` before an "
            "update: recall shows previews."
        ),
    }


@pytest.mark.claim("R-05", "T-02", "F-01", "M-01")
@pytest.mark.parametrize(
    ("spec", "given", "message", "hint"),
    [
        (tools.RECALL, ["x"], "recall: input must be an object", "its fields are query"),
        (tools.RETAIN, {"items": ["x"]}, "retain: items[0] must be an object", "its fields are content, context"),
        (tools.REFLECT, {"query": "x", "q": 1}, "reflect: unknown field 'q'", "fields are query, context"),
        (
            tools.RETAIN,
            {"items": [{"context": "x"}]},
            "retain: field 'items[0].content' is missing",
            "needed are content",
        ),
        (
            tools.RECALL,
            {"query": 1},
            "recall: field 'query' must be a string, not int",
            "nothing is converted: give it in that form",
        ),
        (
            tools.RETAIN,
            {"items": []},
            "retain: field 'items' needs at least 1 item",
            "add what is meant; nothing was done",
        ),
        (
            tools.MEMORY_EDIT,
            {"op": "purge", "id": "x"},
            "memory_edit: field 'op' must be one of update, forget, invalidate",
            "choose one of those, in this spelling",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong(spec: tools.ToolSpec, given: Any, message: str, hint: str) -> None:
    with pytest.raises(ToolInputError) as caught:
        tools.check_input(spec, given)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3"])
def test_a_limit_is_a_whole_number_of_at_least_one(limit: Any) -> None:
    with pytest.raises(ToolInputError) as caught:
        tools.check_limit(tools.RECALL, limit)
    assert caught.value.message == f"recall: limit must be a whole number of at least 1, not {limit!r}"
    assert caught.value.hint == "leave it out for the limit of the settings"
    assert [tools.check_limit(tools.RECALL, given) for given in (None, 1, 7)] == [None, 1, 7]


def test_a_result_says_where_it_comes_from() -> None:
    answer = Answer((Hit("1", "a"),), notes=("one bank is slow",), banks=("demo",), attrs={"mode": "text"})
    found = _tool("recall", _Backend(answer))(query="q")
    assert found.attrs == {
        "query": "q",
        "mode": "text",
        "notes": ["one bank is slow"],
        "banks": ["demo"],
    }
    stored = _tool("retain")(items=[{"content": "a"}])
    assert stored.attrs == {"query": ""}


@pytest.mark.claim("T-04", "T-08", "T-10")
def test_a_receipt_decides_what_retain_says(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = _Backend()
    monkeypatch.setattr(
        backend, "retain", lambda items: Receipt(2, "demo", "queued", redacted=1, duplicates=2, notes=("slow",))
    )
    result = _tool("retain", backend)(items=[{"content": "a"}, {"content": "b"}])
    assert result.text == "2 memories queued."
    assert result.notes == (
        "slow",
        "1 credential was replaced by [REDACTED].",
        "2 items were known already; their memories were brought up to date.",
    )
