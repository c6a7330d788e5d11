"""Conversation turns, mental models and the traffic of the Hindsight backend."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ipy_memory import conversation, text, tools
from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.hindsight import mental_models, parsing, prompts
from ipy_memory.backends.hindsight.backend import OWN_SOURCE, HindsightBackend
from ipy_memory.backends.hindsight.client import HindsightClient, Item
from ipy_memory.backends.hindsight.outbox import Outbox
from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.errors import HindsightError, NotInitialisedError
from ipy_memory.jscompat import dates
from ipy_memory.model import RetainItem, ToolResult
from ipy_memory.scoping.modes import hindsight_scope
from ipy_memory.settings.resolve import hindsight_config, load_settings
from tests.backends.hindsight.stub import StubServer
from tests.conformance.kinds.tools import tool_answer
from tests.conformance.registry import Case, kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ipy_memory.backends.hindsight.subagent import HindsightAlias


def _messages(items: list[dict[str, Any]]) -> list[conversation.Message]:
    return [conversation.Message(item["role"], item["content"], item.get("timestamp")) for item in items]


def _transcript(result: conversation.Transcript) -> dict[str, Any]:
    return {"transcript": result.text, "messageCount": result.message_count}


@kind("content_strip_tags")
def strip_tags(case: Case) -> Any:
    return conversation.strip_tags(case.input)


@kind("content_strip_protocol")
def strip_protocol(case: Case) -> Any:
    return conversation.strip_protocol(case.input)


@kind("content_substantive")
def substantive(case: Case) -> Any:
    return conversation.has_substance(case.input)


@kind("content_slice_turns")
def slice_turns(case: Case) -> Any:
    return len(conversation.last_turns(_messages(case.input["messages"]), case.input["turns"]))


@kind("content_compose_query")
def compose_query(case: Case) -> Any:
    given = case.input
    latest = given["latest"]
    if "query" in given:
        return {"truncated_direct": conversation.cut_query(given["query"], latest, given["maxChars"])}
    query = conversation.compose_query(latest, _messages(given["messages"]), given["contextTurns"])
    cuts = {limit: conversation.cut_query(query, latest, int(limit)) for limit in case.expected["truncated"]}
    return {"query": query, "truncated": cuts}


@kind("content_retention")
def retention(case: Case) -> Any:
    messages = _messages(case.input)
    results = {
        "last_turn": conversation.transcript(messages, full=False),
        "full": conversation.transcript(messages, full=True),
        "full_timestamps": conversation.transcript(messages, full=True, stamps=True),
        "last_turn_timestamps": conversation.transcript(messages, full=False, stamps=True),
        "user_only": conversation.user_transcript(messages),
        "embeddable": conversation.plain_transcript(messages),
    }
    return {name: _transcript(result) for name, result in results.items()}


@kind("truncate_tokens")
def truncate_tokens(case: Case) -> Any:
    return conversation.truncate_tokens(case.input["text"], case.input["limit"])


@kind("mental_models_render")
def mental_models_render(case: Case) -> Any:
    models = mental_models.models_of(case.input["models"])
    return {
        "block": mental_models.render_block(models, case.input["budget"]),
        "summary": [mental_models.list_line(model) for model in models],
    }


@kind("mental_models_diff")
def mental_models_diff(case: Case) -> Any:
    return mental_models.diff(case.input["previous"], case.input["current"], case.input["maxLines"])


@kind("mental_models_seeds")
def mental_models_seeds(case: Case) -> Any:
    seeds = mental_models.seeds_for(case.input["scoping"], case.input["scope"].get("retainTags"))
    return [
        {
            "id": seed.id,
            "name": seed.name,
            "sourceQuery": seed.source_query,
            "tags": list(seed.tags),
            "maxTokens": seed.max_tokens,
            "trigger": dict(mental_models.TRIGGER),
        }
        | ({"legacyIds": list(seed.legacy_ids)} if seed.legacy_ids else {})
        for seed in seeds
    ]


@kind("content_format_memories")
def format_memories(case: Case) -> Any:
    return prompts.bullets(parsing.hits_of(case.input, "bank")[0])


@kind("content_format_time")
def format_time(case: Case) -> Any:
    moment = dates.parse_ms(case.input, case.clock().tz)
    return None if moment is None else text.current_time(moment)


@kind("hindsight_http")
def traffic(case: Case) -> Any:
    play = _play_api if "api" in case.input else _play_session
    with StubServer(case.input["responses"], terse=True) as server:
        played = play(case, server)
    if "pairs" in case.expected:
        return {
            "pairs": [[_instant(step), sent] for step, sent in zip(case.input["steps"], _stamps(played), strict=True)]
        }
    return played


def _instant(step: Mapping[str, Any]) -> str:
    return str(step["args"][2]["timestamp"]["$instant"])


def _stamps(played: Mapping[str, Any]) -> list[str]:
    return [request["body"]["items"][0]["timestamp"] for request in played["requests"]]


# ---- a client alone


def _snake(name: str) -> str:
    snake = re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)
    return "async_" if snake == "async" else snake


def _value(value: Any, clock: FixedClock) -> Any:
    if isinstance(value, dict) and "$instant" in value:
        return dates.parse_ms(value["$instant"], clock.tz)
    return value


def _named(options: Mapping[str, Any], clock: FixedClock) -> dict[str, Any]:
    """Return options under the client's names; the keys inside a value are the caller's own."""
    return {_snake(key): _value(value, clock) for key, value in options.items()}


def _call(client: HindsightClient, method: str, args: list[Any], clock: FixedClock) -> Any:
    has_options = isinstance(args[-1], dict)
    options = _named(args[-1], clock) if has_options else {}
    plain = args[:-1] if has_options else args
    if method == "retain":
        async_ = options.pop("async_", None)
        return client.retain(plain[0], Item(plain[1], **options), async_=async_)
    if method == "retainBatch":
        return client.retain_batch(plain[0], [Item(**_named(item, clock)) for item in plain[1]], **options)
    return getattr(client, _snake(method))(*plain, **options)


def _play_api(case: Case, server: StubServer) -> dict[str, Any]:
    clock, given = (
        FixedClock(case.header["now"], ZoneInfo(case.input.get("tz") or case.header["tz"])),
        case.input["api"],
    )
    base = given["base_url"].replace("PORT", str(server.port))
    client = HindsightClient(base, given["api_key"], tz=clock.tz, user_agent=given["user_agent"])
    out: dict[str, Any] = {}
    for step in case.input["steps"]:
        try:
            answer = {step.get("out"): _call(client, step["method"], step["args"], clock)}
        except HindsightError as error:
            answer = {"error": error.message, "status": error.status_code}
        if "out" in step:
            out |= answer
    client.close()
    return {"requests": server.requests, "out": out}


# ---- a session


@dataclass
class _Session:
    """What the tools see of the session, and what a step may change in it."""

    case: Case
    server: StubServer
    clock: FixedClock
    timers: ManualTimers = field(default_factory=ManualTimers)
    notices: list[dict[str, str]] = field(default_factory=list)
    log: list[conversation.Message] = field(default_factory=list)
    backend: HindsightBackend | None = None
    made: list[HindsightBackend] = field(default_factory=list)
    sub: HindsightAlias | None = None
    prepared: Any = None

    def __post_init__(self) -> None:
        given = self.case.input
        settings = {
            "memory.backend": "hindsight",
            "hindsight.apiUrl": self.server.url,
            "hindsight.mentalModelRefreshIntervalMs": 0,
        } | given["settings"]
        url = str(settings["hindsight.apiUrl"]).replace("PORT", str(self.server.port))
        cwd = self.case.scratch / given["cwd_basename"]
        self.config = hindsight_config(load_settings(self.case.scratch, cwd, {}, settings | {"hindsight.apiUrl": url}))
        self.scope = hindsight_scope(self.config, str(cwd))
        self.last = self.begin()

    def begin(self) -> HindsightBackend:
        made = HindsightBackend(
            self.config,
            self.scope,
            Outbox(self.case.scratch),
            session_id=self.case.input["session_id"],
            clock=self.clock,
            ids=FixedIds(),
            timers=self.timers,
            notify=self._notified,
            started=(self.case.input.get("header") or {}).get("timestamp"),
            owned=lambda: self.backend is made,
        )
        self.backend = self.last = made
        self.made.append(made)
        return made

    def _notified(self, level: str, said: str, source: str, _hint: str) -> None:
        if source != OWN_SOURCE:  # what the agent does not say
            self.notices.append({"level": level, "text": said, "source": source})

    def live_backend(self) -> HindsightBackend:
        if self.backend is None:
            raise NotInitialisedError(text.not_initialised("Hindsight"))
        return self.backend

    def check_not_paused(self) -> None:
        """Nothing is paused here."""

    def provenance(self, query: str) -> dict[str, Any]:
        return {}

    def edit_memory(self, **given: Any) -> ToolResult:
        raise AssertionError("no such tool")


def _items(step: Mapping[str, Any]) -> list[RetainItem]:
    return [RetainItem(item["content"], item.get("context")) for item in step["items"]]


_ABSENT = object()


def _play_session(case: Case, server: StubServer) -> dict[str, Any]:
    session = _Session(case, server, case.clock())
    out: dict[str, Any] = {}
    for step in case.input["steps"]:
        answer = _step(session, step)
        if "out" in step and answer is not _ABSENT:
            out[step["out"]] = answer
    played = {"requests": list(server.requests), "out": out, "notices": list(session.notices)}
    session.backend = None
    for state in session.made:
        state.close()
    return played


def _step(session: _Session, step: Mapping[str, Any]) -> Any:
    state, op = session.last, step["op"]
    match op:
        case "recall":
            return tool_answer(lambda: tools.run_recall(session, RecallRequest(step["query"])))
        case "reflect":
            return tool_answer(lambda: tools.run_reflect(session, step["query"], step.get("context")))
        case "retain":
            return tool_answer(lambda: tools.run_retain(session, _items(step)))
        case "flush":
            state.flush()
        case "queue_depth":
            return len(state.queue)
        case "recall_for_context":
            worked, block = state.recall_block(step["query"])
            return {"context": block, "ok": worked}
        case "entries":
            session.log = conversation.messages_of(step["entries"])
        case "agent_end":
            state.end_turn(session.log)
        case "force_retain":
            state.force_retain(session.log)
        case "set_session_id":
            state.session_id = step["id"]
        case "reset_tracking":
            state.retention.reset()
            state._first_turn = object()  # the agent recalls again; the product makes a new state instead
        case "last_retained_turn":
            return state.retention.last_turn
        case "first_turn":
            session.prepared = state.prepare_first_turn(step["prompt"], session.log)
            block = session.prepared.context if session.prepared else None
            return {"has": session.prepared is not None, "context": block} if step.get("as") == "object" else block
        case "commit":
            return session.prepared.commit() if session.prepared else _ABSENT
        case "compaction":
            return state.compaction(conversation.messages_in(step["messages"], empty_blocks=True)) or _ABSENT
        case "instructions":
            return state.instructions()
        case "start":
            session.begin().start()
            session.timers.advance(0)
        case "models_block":
            return state.models.block
        case "reload_models":
            return state.models.reload()
        case "bank_id":
            return state.retain_bank
        case "retain_tags":
            tags = state.scope.retain_tags
            return None if tags is None else list(tags)
        case "banks_confirmed":
            return list(state.known_banks)
        case "enqueue":
            state.enqueue(session.log)
        case "clear":
            state.clear()
            session.backend = None
        case "dispose":
            state.close()
        case "drop_state":
            session.backend = None
        case "has_state":
            return session.backend is not None
        case "advance":
            session.clock.advance(step["ms"])
        case "wait":
            session.timers.advance(step["ms"])
        case "responses":
            session.server.answer_with(step["responses"])
        case "request_count":
            return len(session.server.requests)
        case "request_sizes":
            return [_size(request) for request in session.server.requests]
        case _:
            return _sub_step(session, step)
    return None


def _sub_step(session: _Session, step: Mapping[str, Any]) -> Any:
    if step["op"] == "sub_start":
        session.sub = session.live_backend().child(step["session_id"], step["cwd"])
        return None
    assert session.sub is not None
    match step["op"]:
        case "sub_bank_id":
            return session.sub.retain_bank
        case "sub_is_alias":
            return session.sub.parent is session.backend
        case "sub_retain":
            session.sub.retain([RetainItem(step["content"], step.get("context"))])
        case "sub_flush":
            session.sub.flush()
        case other:
            raise AssertionError(f"unknown step {other}")
    return None


def _size(request: Mapping[str, Any]) -> str:
    items = (request["body"] or {}).get("items")
    return request["method"] if items is None else f"{request['method']} {len(items)}"
