"""The program's commands about a Hindsight server's work, as a user runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.backends.hindsight.stub import StubServer
    from tests.shell.conftest import Ended, Program

OPERATIONS = {
    "operations": [
        {
            "operation_id": "op-1",
            "operation_type": "retain",
            "status": "completed",
            "created_at": "2026-06-01T10:00:00Z",
        },
        {"operation_id": "op-2", "operation_type": "retain", "status": "failed", "error_message": "no model"},
    ],
    "total": 2,
}
WELL = [
    {"url_contains": "/version", "body": {"api_version": "1.1.0"}},
    {"url_contains": "/health", "body": {"status": "healthy", "database": "connected"}},
    {"url_contains": "/stats", "body": {"total_nodes": 3}},
    {"url_contains": "/operations", "body": {"operations": [], "total": 0}},
    {"url_contains": "/documents", "body": {"items": []}},
]
REFUSED = {"method": "POST", "url_contains": "/memories", "status": 503, "body": {"detail": "overloaded"}}


class Served:
    """The program on a stand-in server."""

    def __init__(self, program: Program, stub: StubServer) -> None:
        self.program = program
        self.stub = stub

    def __call__(self, *words: str, code: int = 0) -> Ended:
        return self.program("--backend", "hindsight", *words, env={"HINDSIGHT_API_URL": self.stub.url}, code=code)

    @property
    def stored(self) -> list[str]:
        """What the server was sent."""
        return [
            item["content"]
            for request in self.stub.requests
            if request["method"] == "POST" and request["url"].endswith("/memories")
            for item in request["body"]["items"]
        ]


@pytest.fixture
def served(own: Program, stub: StubServer) -> Served:
    stub.answer_with(WELL)
    return Served(own, stub)


def test_what_a_server_refused_is_listed_and_sent_again(served: Served) -> None:
    assert "Nothing waits." in served("queue").out
    served.stub.answer_with([REFUSED, *WELL])
    served("retain", "The lighthouse is green")
    (item,) = served("queue", "--json").data["items"]
    assert (item["state"], item["text"], item["other_server"]) == ("failed", "The lighthouse is green", "")
    assert "overloaded" in item["error"]
    shown = served("queue")
    assert "The lighthouse is green" in shown.out
    assert "ipy-memory queue --resend sends it again" in shown.err
    assert "--resend" in served("queue", "--unknown", code=2).err
    again = served("queue", "--resend", code=1)
    assert "1 memory not known to have arrived: see ipy-memory queue." in again.out
    served.stub.answer_with(WELL)
    before = len(served.stored)
    assert served("flush", "--resend", "--json").data["left"] == 0
    assert served.stored[before:] == ["The lighthouse is green"]
    assert served("queue", "--json").data["items"] == []


def test_items_are_dropped_after_a_yes(served: Served) -> None:
    served.stub.answer_with([REFUSED, *WELL])
    served("retain", "The lighthouse is green")
    refused = served("queue", "--drop", "all", code=2)
    assert "ipy-memory queue --drop all --yes" in refused.err
    assert served("queue", "--drop", "all", "--yes").out == "1 memory dropped.\n"
    assert served("queue", "--json").data["items"] == []
    assert "has no item 7" in served("queue", "--drop", "7", "--yes", code=2).err


def test_the_work_of_a_server_is_listed(served: Served) -> None:
    served.stub.answer_with([{"url_contains": "/operations", "body": OPERATIONS}, *WELL])
    ended = served("operations")
    assert [line.split()[0] for line in ended.out.splitlines()[1:]] == ["op-1", "op-2"]
    assert "1 to 2 of 2." in ended.err
    found = served("operations", "--json", "--page", "1").data["operations"]
    assert [(one["id"], one["kind"]) for one in found] == [("op-1", "retain"), ("op-2", "retain")]


def test_without_a_server_each_says_how_to_choose_one(own: Program) -> None:
    assert own("flush").out == "Nothing waits any more: every item is in its bank.\n"
    for name in ("queue", "operations"):
        ended = own(name, code=2)
        assert "only a Hindsight session has that" in ended.err
        assert "--backend hindsight" in ended.err


def test_the_doctor_asks_each_part_of_the_way_to_a_server(served: Served) -> None:
    found = served("doctor", "--json").data
    assert found["faults"] == 0
    assert [(one["what"], one["state"]) for one in found["findings"]] == [
        ("server", "good"),
        ("health", "good"),
        ("bank", "good"),
        ("accepted work", "good"),
        ("queue", "good"),
    ]
    assert found["notes"][0] == "All is well on the way to the server's bank."
    served.stub.answer_with(
        [
            {"url_contains": "/health", "body": {"status": "unhealthy", "database": "gone"}},
            {"url_contains": "/operations", "body": OPERATIONS},
            {"url_contains": "/stats", "status": 500, "body": {"detail": "boom"}},
            REFUSED,
            *WELL,
        ]
    )
    served("retain", "The lighthouse is green")
    ended = served("doctor", "--json", code=1)
    faults = {one["what"]: one["detail"] for one in ended.data["findings"] if one["state"] == "fault"}
    assert set(faults) == {"health", "bank", "accepted work", "queue"}
    assert faults["bank"] == "not well: getBankStats failed: boom"
    assert faults["queue"] == "1 not known to have arrived: see ipy-memory queue"
    assert ended.data["faults"] == 4
    for flag in (("--repair",), ("--bank", "x")):
        assert "cannot be examined or repaired from here" in served("doctor", *flag, code=2).err


def test_the_doctor_of_a_server_that_is_down_names_the_faults(own: Program) -> None:
    ended = own("--backend", "hindsight", "doctor", env={"HINDSIGHT_API_URL": "http://127.0.0.1:9"}, code=1)
    assert "not well" in ended.out
    assert "4 of 5 parts are not well; nothing was changed." in ended.err


def test_filters_of_a_recall_are_sent_or_refused(served: Served) -> None:
    served.stub.answer_with([{"method": "POST", "body": {"results": []}}])
    served("recall", "--type", "world", "--tag", "a", "--tag", "b", "--budget", "low", "--tokens", "300", "tea")
    body = served.stub.requests[-1]["body"]
    assert (body["types"], body["budget"], body["max_tokens"]) == (["world"], "low", 300)
    assert (body["tags"][-2:], body["tags_match"]) == (["a", "b"], "all_strict")
    sent = len(served.stub.requests)
    assert "Hindsight does not support --source in a recall" in served("recall", "--source", "x", "tea", code=2).err
    assert len(served.stub.requests) == sent
