"""Conversation turns, mental models and the traffic of the Hindsight backend."""

from __future__ import annotations

from typing import Any

from ipy_memory import turns
from tests.conformance.registry import Case, kind


def _messages(items: list[dict[str, Any]]) -> list[turns.Message]:
    return [turns.Message(item["role"], item["content"], item.get("timestamp")) for item in items]


def _transcript(result: turns.Transcript) -> dict[str, Any]:
    return {"transcript": result.text, "messageCount": result.message_count}


@kind("content_strip_tags")
def strip_tags(case: Case) -> Any:
    return turns.strip_tags(case.input)


@kind("content_strip_protocol")
def strip_protocol(case: Case) -> Any:
    return turns.strip_protocol(case.input)


@kind("content_substantive")
def substantive(case: Case) -> Any:
    return turns.has_substance(case.input)


@kind("content_slice_turns")
def slice_turns(case: Case) -> Any:
    return len(turns.last_turns(_messages(case.input["messages"]), case.input["turns"]))


@kind("content_compose_query")
def compose_query(case: Case) -> Any:
    given = case.input
    latest = given["latest"]
    if "query" in given:
        return {"truncated_direct": turns.cut_query(given["query"], latest, given["maxChars"])}
    query = turns.compose_query(latest, _messages(given["messages"]), given["contextTurns"])
    cuts = {limit: turns.cut_query(query, latest, int(limit)) for limit in case.expected["truncated"]}
    return {"query": query, "truncated": cuts}


@kind("content_retention")
def retention(case: Case) -> Any:
    messages = _messages(case.input)
    results = {
        "last_turn": turns.transcript(messages, full=False),
        "full": turns.transcript(messages, full=True),
        "full_timestamps": turns.transcript(messages, full=True, stamps=True),
        "last_turn_timestamps": turns.transcript(messages, full=False, stamps=True),
        "user_only": turns.user_transcript(messages),
        "embeddable": turns.plain_transcript(messages),
    }
    return {name: _transcript(result) for name, result in results.items()}


@kind("truncate_tokens")
def truncate_tokens(case: Case) -> Any:
    return turns.truncate_tokens(case.input["text"], case.input["limit"])
