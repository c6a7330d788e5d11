"""The agent's tools: their metadata, their strict input, and the calls that give a :class:`ToolResult`.

Usable without IPython; the magics and panels call the same objects.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Protocol

from ipy_memory import text
from ipy_memory.backends import registry
from ipy_memory.backends.base import RecallRequest
from ipy_memory.errors import MagicError, RecallCancelled, ToolInputError, safe_line
from ipy_memory.model import Answer, RetainItem, ToolResult

if TYPE_CHECKING:
    from ipy_memory.backends.base import Backend
    from ipy_memory.clock import Clock

log = logging.getLogger("ipy_memory")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What an agent host is told of a tool."""

    name: str
    label: str
    summary: str
    description: str
    parameters: Mapping[str, Any]
    backends: tuple[str, ...] | None = None
    approval: str = "read"
    strict: bool = True
    load_mode: str = "discoverable"


def _string(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _object(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


_RECALL_USE = (
    "Searches long-term memory and returns raw entries by relevance. Use it before answering about past "
    "conversations, preferences, project decisions or anything else that prior context helps with; in doubt, "
    "recall first. Use recall for the entries themselves and reflect for a synthesis over many."
)
_RECALL_PREVIEWS = (
    " An entry that ends in … is a cut preview (`truncated: true`, with its `full_length`): read `memory://<id>` "
    "for the whole text before a `memory_edit` update."
)

RECALL = ToolSpec(
    name="recall",
    label="Recall",
    summary="Search memory for relevant prior context",
    description=_RECALL_USE + _RECALL_PREVIEWS,
    parameters=_object({"query": _string("natural language search query")}, ["query"]),
)
RETAIN = ToolSpec(
    name="retain",
    label="Retain",
    summary="Store important facts in long-term memory",
    description=(
        "Stores one or more facts for future sessions: durable, reusable knowledge such as preferences and project "
        "or architecture decisions, no passing task state. Make each item complete in itself (who, what, when, why) "
        "and put related facts in one call; the store removes duplicates and consolidates."
    ),
    parameters=_object(
        {
            "items": {
                "type": "array",
                "items": _object(
                    {"content": _string("information to remember"), "context": _string("source context")}, ["content"]
                ),
                "minItems": 1,
                "description": "memories to retain",
            }
        },
        ["items"],
    ),
)
REFLECT = ToolSpec(
    name="reflect",
    label="Reflect",
    summary="Synthesize an answer from long-term memory",
    description=(
        "Answers a question from long-term memory as a whole rather than listing entries. Use it for what needs a "
        "synthesis over many memories; use recall for the entries themselves."
    ),
    parameters=_object({"query": _string("question to answer"), "context": _string("optional context")}, ["query"]),
)
MEMORY_EDIT = ToolSpec(
    name="memory_edit",
    label="Memory Edit",
    summary="Update, forget, or invalidate Mnemopi memories",
    description=(
        "Changes one stored memory by the id that recall shows: update its text or importance, forget it for good, "
        "or invalidate it (optionally naming its replacement). Facts are read-only. Read `memory://<id>` before an "
        "update: recall shows previews."
    ),
    parameters=_object(
        {
            "op": {
                "enum": ["update", "forget", "invalidate"],
                "type": "string",
                "description": "memory edit operation",
            },
            "id": _string("memory id from recall output"),
            "content": _string("replacement content for update"),
            "importance": {"type": "number", "description": "replacement importance for update (0–1)"},
            "replacement_id": _string("replacement memory id for invalidate"),
        },
        ["op", "id"],
    ),
    backends=("mnemopi",),
)
SPECS: Mapping[str, ToolSpec] = {spec.name: spec for spec in (RECALL, RETAIN, REFLECT, MEMORY_EDIT)}
_ALWAYS_ADDED = ("recall", "retain", "reflect")


def spec_for(name: str, backend: str) -> ToolSpec:
    """Return a tool's metadata as the agent of a backend is told it: Hindsight has no ``memory://``."""
    spec = SPECS[name]
    if name == "recall" and backend == "hindsight":
        return ToolSpec(spec.name, spec.label, spec.summary, _RECALL_USE, spec.parameters)
    return spec


def available(name: str, backend: str | None, *, api_url: str | None = None) -> bool:
    """Say whether a tool exists for a value of ``memory.backend``, and an address where it is asked."""
    there = registry.names() if (own := SPECS[name].backends) is None else own
    return backend in there and not (backend == "hindsight" and api_url == "")


def select_tools(requested: Sequence[str] | None, *, backend: str, restricted: bool, xdev: bool) -> list[str]:
    """Resolve a tool list as an agent host does.

    Parameters
    ----------
    requested
        Names asked for; ``None`` when none were named.
    backend
        The value of ``memory.backend``.
    restricted
        A restricted list comes back unchanged.
    xdev
        Whether discoverable tools that nobody named are listed as ``xd://<name>``.

    Returns
    -------
    list of str
        The names in order; recall, retain and reflect are added for a supported backend, none otherwise.
    """
    names = list(requested or ())
    if restricted:
        return names
    kept = [name for name in names if name not in SPECS or available(name, backend)]
    added = [name for name in _ALWAYS_ADDED if available(name, backend) and name not in kept]
    return kept + [f"xd://{name}" if xdev else name for name in added]


def check_input(spec: ToolSpec, given: Mapping[str, Any]) -> None:
    """Refuse input that does not fit a tool's schema.

    Raises
    ------
    ToolInputError
        Names the first field that is unknown, missing or of the wrong type.
    """
    _check(spec.name, "", spec.parameters, given)


def check_limit(spec: ToolSpec, limit: int | None) -> int | None:
    """Return the limit of a face: a whole number of at least 1, or ``None`` for the configured one."""
    if limit is None:
        return None
    try:
        whole = 0 if isinstance(limit, bool) else index(limit)
    except TypeError:
        whole = 0
    if whole < 1:
        raise ToolInputError(
            f"{spec.name}: limit must be a whole number of at least 1, not {limit!r}",
            hint="leave it out for the limit of the settings",
        )
    return whole


_TYPES: Mapping[str, tuple[type, ...]] = {"string": (str,), "number": (int, float), "array": (list, tuple)}


def _check(tool: str, path: str, schema: Mapping[str, Any], value: Any) -> None:
    where = path.removesuffix(".") or "input"
    kind = schema["type"]
    if kind == "object":
        if not isinstance(value, Mapping):
            raise ToolInputError(
                f"{tool}: {where} must be an object", hint=f"its fields are {', '.join(schema['properties'])}"
            )
        known = schema["properties"]
        for name in value:
            if name not in known:
                raise ToolInputError(f"{tool}: unknown field {path + name!r}", hint=f"fields are {', '.join(known)}")
        for name in schema["required"]:
            if name not in value:
                raise ToolInputError(
                    f"{tool}: field {path + name!r} is missing", hint=f"needed are {', '.join(schema['required'])}"
                )
        for name, inner in value.items():
            _check(tool, path + name, known[name], inner)
        return
    expected: tuple[type, ...] = _TYPES[kind]
    if isinstance(value, bool) or not isinstance(value, expected) or value != value:  # not a number is no number
        raise ToolInputError(
            f"{tool}: field {where!r} must be {'an' if kind == 'array' else 'a'} {kind}, not {type(value).__name__}",
            hint="nothing is converted: give it in that form",
        )
    if "enum" in schema and value not in schema["enum"]:
        raise ToolInputError(
            f"{tool}: field {where!r} must be one of {', '.join(schema['enum'])}",
            hint="choose one of those, in this spelling",
        )
    if isinstance(value, list | tuple):
        if len(value) < schema.get("minItems", 0):
            raise ToolInputError(
                f"{tool}: field {where!r} needs at least {schema['minItems']} item",
                hint="add what is meant; nothing was done",
            )
        for number, inner in enumerate(value):
            inner_path = f"{path}[{number}]."
            _check(tool, inner_path if schema["items"]["type"] == "object" else inner_path[:-1], schema["items"], inner)


class ToolHost(Protocol):
    """What the tools need of a session."""

    clock: Clock

    def live_backend(self) -> Backend:
        """Return the session's backend, or raise that it is not there."""
        ...

    def check_not_paused(self) -> None:
        """Raise while nothing may be stored."""
        ...

    def provenance(self, query: str) -> dict[str, Any]:
        """Return what a frame's ``attrs`` say of where an answer came from."""
        ...

    def edit_memory(self, **given: Any) -> ToolResult:
        """Carry out ``memory_edit``."""
        ...


NOTED_BYTES, ASKED_BYTES = 100_000, 5_000_000
"""A longer memory that a user stores is noted, or needs a yes."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of one session: ``tool(**input)`` checks the input and gives one complete result."""

    spec: ToolSpec
    call: Callable[..., ToolResult]

    @property
    def name(self) -> str:
        """The tool's plain name."""
        return self.spec.name

    def __call__(self, **given: Any) -> ToolResult:
        """Check the input and carry the call out."""
        check_input(self.spec, given)
        return self.call(**given)


def create_tool(name: str, host: ToolHost, *, backend: str, api_url: str | None = None) -> Tool | None:
    """Return a tool bound to a session, or ``None`` when the backend does not have it."""
    if not available(name, backend, api_url=api_url):
        return None
    calls: Mapping[str, Callable[..., ToolResult]] = {
        "recall": lambda query: run_recall(host, RecallRequest(query)),
        "retain": lambda items: run_retain(host, as_items(items)),
        "reflect": lambda query, context=None: run_reflect(host, query, context),
        "memory_edit": host.edit_memory,
    }
    return Tool(spec_for(name, backend), calls[name])


def as_items(given: Iterable[Mapping[str, str]], context: str | None = None) -> list[RetainItem]:
    """Return the items of a checked retain input; ``context`` is for those that say none."""
    return [RetainItem(item["content"], item.get("context", context)) for item in given]


def given_items(
    items: str | RetainItem | Mapping[str, str] | Sequence[str | RetainItem | Mapping[str, str]],
    context: str | None = None,
) -> list[RetainItem]:
    """Return what code gives to store, checked: a text, an item or a mapping, or a list of those.

    Raises
    ------
    ToolInputError
        There is nothing to store, or something else than an item.
    """
    listed = [items] if isinstance(items, str | RetainItem | Mapping) else items
    if not isinstance(listed, Iterable):
        check_input(RETAIN, {"items": listed})
    wanted = [_given_item(item, context) for item in listed]
    if not wanted:
        check_input(RETAIN, {"items": wanted})
    return wanted


def _given_item(item: str | RetainItem | Mapping[str, str], context: str | None) -> RetainItem:
    if isinstance(item, str):
        item = RetainItem(item, context)
    given = {"content": item.content, "context": item.context} if isinstance(item, RetainItem) else item
    if isinstance(given, Mapping):
        given = {name: value for name, value in given.items() if value is not None}
    check_input(RETAIN, {"items": [given]})
    return item if isinstance(item, RetainItem) else as_items([item], context)[0]


def typed_items(typed: str, flags: Mapping[str, Any]) -> list[RetainItem]:
    """Return the items of a text that a user typed; ``flags`` say how to read it, nothing is guessed.

    Parameters
    ----------
    typed
        One item; with ``lines`` one a line, with ``json`` a JSON list of them.
    flags
        ``lines``, ``json``, and ``context`` for the items that say none.

    Raises
    ------
    MagicError
        There is nothing to store, or the JSON is invalid.
    """
    context = flags.get("context")
    if "json" in flags and "lines" in flags:
        raise MagicError("lines and a JSON list exclude each other", hint="leave one of the two flags out")
    if "lines" in flags:
        items = [RetainItem(line, context) for line in typed.split("\n") if line.strip()]
        if not items:
            raise MagicError("every line is blank: there is nothing to store", hint="type one memory a line")
        return items
    if "json" not in flags:
        return [RetainItem(typed, context)]
    try:
        given = json.loads(typed)
    except (ValueError, RecursionError) as error:
        raise MagicError(f"invalid JSON: {error}", hint='expected a list of {"content": …}') from None
    if not isinstance(given, list):
        raise MagicError("the JSON must be a list of items", hint='as in [{"content": "…", "context": "…"}]')
    check_input(RETAIN, {"items": given})
    return as_items(given, context)


def run_recall(host: ToolHost, request: RecallRequest, *, backend: Backend | None = None) -> ToolResult:
    """Search memory: the recall tool; ``backend`` is for faces that ask another one."""
    backend = backend or host.live_backend()
    with _logged("recall", backend):
        answer = backend.recall(request)
    shown = (
        text.recall_text([backend.bullet(hit) for hit in answer.hits], host.clock.now_ms())
        if answer.hits
        else text.NO_MEMORIES
    )
    return _result(host, request.query, shown, answer)


def run_reflect(
    host: ToolHost, query: str, context: str | None = None, *, backend: Backend | None = None, count: bool = True
) -> ToolResult:
    """Answer a question from memory: the reflect tool."""
    backend = backend or host.live_backend()
    with _logged("reflect", backend):
        answer = backend.reflect(query, context, count=count)
    return _result(host, query, answer.text if answer.text is not None else text.NO_REFLECTION, answer)


def check_size(items: Sequence[RetainItem], *, yes: bool) -> list[str]:
    """Return what to say of very long memories that a user stores; for the user's own commands, not for the tool.

    Raises
    ------
    ToolInputError
        One is so long that a yes is needed.
    """
    sizes = [len(item.content.encode("utf-8", "surrogatepass")) for item in items]
    if not yes and max(sizes, default=0) > ASKED_BYTES:
        raise ToolInputError(
            f"One memory has {max(sizes) / 1_000_000:.1f} MB: nothing was stored.",
            hint="recall shows and searches only parts of so long a text; --yes stores it all the same",
        )
    long = sum(size > NOTED_BYTES for size in sizes)
    if not long:
        return []
    many = "One memory has" if long == 1 else f"{long} memories have"
    return [f"{many} more than 100 kB; recall shows the first 500 characters, so shorter pieces are found better."]


def run_retain(host: ToolHost, items: Sequence[RetainItem]) -> ToolResult:
    """Store items: the retain tool.

    The text counts the request, even if some items fail; the receipt knows.
    """
    backend = host.live_backend()
    host.check_not_paused()
    receipt = backend.retain(items)
    count = len(items)
    shown = text.queued_text(count) if receipt.state == "queued" else text.stored_text(count)
    notes = list(receipt.notes)
    if receipt.redacted:
        notes.append(text.redacted_note(receipt.redacted))
    if receipt.duplicates:
        notes.append(text.duplicate_note(receipt.duplicates))
    return ToolResult(shown, {"count": count}, notes=tuple(notes), receipt=receipt, attrs=host.provenance(""))


@contextmanager
def _logged(tool: str, backend: Backend) -> Iterator[None]:
    """Log one warning for a call that fails; a cancelled one is no failure."""
    try:
        yield
    except RecallCancelled:
        raise
    except Exception as error:
        said = safe_line(f"{error}")
        log.warning("%s failed: backend=%s bank=%s error=%s", tool, backend.name, backend.retain_bank, said)
        raise


def _result(host: ToolHost, query: str, shown: str, answer: Answer) -> ToolResult:
    attrs = host.provenance(query) | dict(answer.attrs) | {"notes": list(answer.notes)}
    if answer.banks:
        attrs["banks"] = list(answer.banks)
    useless = shown == text.NO_MEMORIES
    return ToolResult(shown, useless=useless, hits=answer.hits, notes=answer.notes, attrs=attrs)
