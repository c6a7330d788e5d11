"""The Hindsight server's HTTP interface: one method an endpoint, one request a call.

Nothing is repeated by itself and nothing is sent beyond what a call was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from ipy_memory.backends.hindsight.request import Wire, segment
from ipy_memory.credentials import Outgoing, unguarded
from ipy_memory.errors import HindsightError
from ipy_memory.http.exchange import USER_AGENT
from ipy_memory.jscompat import dates
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import tzinfo

    from ipy_memory.http.exchange import Transport

BANKS = "/v1/default/banks"
"""Where the server keeps everything."""

_RAISE = object()
_MISSING = object()


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long each kind of call may take in all, in milliseconds."""

    request_ms: float = 30_000
    recall_ms: float = 30_000
    retain_ms: float = 60_000
    reflect_ms: float = 120_000


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a retain as it is sent; ``timestamp`` is an instant in milliseconds, or a text as given."""

    content: str
    timestamp: float | str | None = None
    context: str | None = None
    metadata: Mapping[str, Any] | None = None
    document_id: str | None = None
    tags: Sequence[str] | None = None
    observation_scopes: str | None = None
    strategy: str | None = None
    update_mode: str | None = None


class HindsightClient:
    """One server, one key.

    Parameters
    ----------
    base_url
        Where the server is; trailing slashes are dropped.
    token
        Sent as bearer token, and shown nowhere.
    tz
        The local zone, in which instants are written; the system's where it is ``None``.
    user_agent
        What the client says it is.
    limits
        Milliseconds that each kind of request may take.
    transport
        Another way to the network (tests).
    outgoing
        Called with each query and context before it is sent.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        tz: tzinfo | None = None,
        user_agent: str = USER_AGENT,
        limits: TimeLimits | None = None,
        transport: Transport | None = None,
        outgoing: Outgoing = unguarded,
    ) -> None:
        self._outgoing = outgoing
        self._wire = Wire(base_url, token, user_agent=user_agent, transport=transport)
        self._tz = tz
        self.limits = limits or TimeLimits()

    def __repr__(self) -> str:
        return f"HindsightClient({self.origin!r})"

    @property
    def origin(self) -> str:
        """Scheme, host and port of the server, without what may be secret."""
        return self._wire.origin

    @property
    def address(self) -> str:
        """The server as far as it tells it from others; what was queued for one is not sent to another."""
        return self._wire.address

    def _look_at(self, text: str) -> None:
        self._outgoing(text, f"the Hindsight server at {self.origin}")

    def close(self) -> None:
        """Close every connection; a later call opens a new one."""
        self._wire.close()

    # ---- memories

    def retain(self, bank: str, item: Item, *, async_: bool | None = None) -> Any:
        """Store one item in a request of its own."""
        return self._retain("retain", bank, [item], {"async": async_}, self.limits.retain_ms)

    def retain_batch(
        self,
        bank: str,
        items: Sequence[Item],
        *,
        document_id: str | None = None,
        document_tags: Sequence[str] | None = None,
        async_: bool | None = None,
        operation_id: str | None = None,
        limit_ms: float | None = None,
    ) -> Any:
        """Store items in one request.

        Parameters
        ----------
        bank, items
            What is stored where.
        document_id, document_tags
            The document of items that name none, and its tags.
        async_
            Whether the server answers before it has read the items.
        operation_id
            Makes a repeat under the same id harmless.
        limit_ms
            Milliseconds, where they are to be fewer than the limit for retains.
        """
        extra = {"document_tags": document_tags, "async": async_, "operation_id": operation_id}
        limit = self.limits.retain_ms if limit_ms is None else min(limit_ms, self.limits.retain_ms)
        return self._retain("retainBatch", bank, items, extra, limit, document_id)

    def _retain(
        self,
        operation: str,
        bank: str,
        items: Sequence[Item],
        extra: Mapping[str, Any],
        limit_ms: float,
        document_id: str | None = None,
    ) -> Any:
        written = [
            _given(
                content=item.content,
                timestamp=self._time(item.timestamp),
                context=item.context,
                metadata=_texts(item.metadata),
                document_id=item.document_id if item.document_id is not None else document_id,
                tags=item.tags,
                observation_scopes=item.observation_scopes,
                strategy=item.strategy,
                update_mode=item.update_mode,
            )
            for item in items
        ]
        body = _given(items=written, **extra)
        return self._call(operation, "POST", bank, "/memories", body, limit_ms=limit_ms)

    def _time(self, moment: float | str | None) -> str | None:
        return dates.local_iso(moment, self._tz) if isinstance(moment, int | float) else moment

    def recall(
        self,
        bank: str,
        query: str,
        *,
        types: Sequence[str] | None = None,
        max_tokens: float | None = None,
        budget: str = "mid",
        tags: Sequence[str] | None = None,
        tags_match: str | None = None,
        query_timestamp: str | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Any:
        """Search a bank.

        Parameters
        ----------
        bank, query
            What is asked where.
        types
            Kinds of facts; none or an empty list leaves the choice to the server.
        max_tokens
            How much text may come back, in the server's tokens.
        budget
            How thoroughly it searches: ``low``, ``mid`` or ``high``.
        tags, tags_match
            Which memories may come back; ``any`` and ``all`` also let those through that have no tag.
        query_timestamp
            The time that stands for now in "last week", and in how fresh a memory is.
        stop
            Asked now and then whether to give up.
        """
        self._look_at(query)
        body = _given(
            query=query,
            types=types or None,
            max_tokens=max_tokens,
            budget=budget,
            tags=tags,
            tags_match=tags_match,
            query_timestamp=query_timestamp,
        )
        return self._call("recall", "POST", bank, "/memories/recall", body, limit_ms=self.limits.recall_ms, stop=stop)

    def reflect(
        self,
        bank: str,
        query: str,
        *,
        context: str | None = None,
        budget: str = "low",
        tags: Sequence[str] | None = None,
        tags_match: str | None = None,
    ) -> Any:
        """Ask the server for a synthesis."""
        self._look_at(query if context is None else f"{query}\n{context}")
        body = _given(query=query, context=context, budget=budget, tags=tags, tags_match=tags_match)
        return self._call("reflect", "POST", bank, "/reflect", body, limit_ms=self.limits.reflect_ms)

    def list_memories(
        self,
        bank: str,
        *,
        type: str | None = None,  # noqa: A002  the server's own word
        q: str | None = None,
        consolidation_state: str | None = None,
        state: str | None = None,
        document_id: str | None = None,
        tags: Sequence[str] | None = None,
        tags_match: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Any:
        """Return one page of a bank's memories; ``state`` is ``valid`` or ``invalidated``."""
        self._look_at(q or "")
        query = _query(
            type=type,
            q=q,
            consolidation_state=consolidation_state,
            state=state,
            document_id=document_id,
            tags=tags,
            tags_match=tags_match,
            limit=limit,
            offset=offset,
        )
        return self._call("listMemories", "GET", bank, "/memories/list" + query)

    def get_memory(self, bank: str, memory_id: str) -> Any:
        """Return a memory, invalidated ones too; ``None`` when there is none."""
        return self._call("getMemory", "GET", bank, f"/memories/{segment(memory_id)}", missing=None)

    def update_memory(self, bank: str, memory_id: str, *, state: str, reason: str | None = None) -> Any:
        """Take a memory out of recall (``invalidated``) or back in (``valid``); observations cannot be."""
        body = _given(state=state, reason=reason)
        return self._call("updateMemory", "PATCH", bank, f"/memories/{segment(memory_id)}", body)

    # ---- banks and operations

    def create_bank(
        self,
        bank: str,
        *,
        reflect_mission: str | None = None,
        retain_mission: str | None = None,
        limit_ms: float | None = None,
    ) -> Any:
        """Create a bank, or set its missions; harmless when it exists."""
        body = _given(reflect_mission=reflect_mission, retain_mission=retain_mission)
        return self._call("createBank", "PUT", bank, "", body, limit_ms=limit_ms)

    def delete_bank(self, bank: str) -> Any:
        """Delete a bank with all its memories; nothing of this package does so by itself."""
        return self._call("deleteBank", "DELETE", bank, "")

    def get_bank_profile(self, bank: str) -> Any:
        """Return a bank's name and missions; newer servers have no such page and answer with status 410."""
        return self._call("getBankProfile", "GET", bank, "/profile")

    def get_bank_stats(self, bank: str) -> Any:
        """Return how much a bank holds, and how much work is under way."""
        return self._call("getBankStats", "GET", bank, "/stats")

    def health(self) -> Any:
        """Return what the server says of itself and its database; a sick one is an error."""
        return self._wire.send("health", "GET", "/health", None, self.limits.request_ms)

    def version(self, limit_ms: float | None = None) -> Any:
        """Return the server's version and features; ``limit_ms`` may shorten the usual limit."""
        limit = self.limits.request_ms if limit_ms is None else min(limit_ms, self.limits.request_ms)
        return self._wire.send("version", "GET", "/version", None, limit)

    def list_banks(self, *, q: str | None = None, limit: int | None = None, offset: int | None = None) -> Any:
        """Return the banks of the server, or one page of them."""
        path = BANKS + _query(q=q, limit=limit, offset=offset)
        return self._wire.send("listBanks", "GET", path, None, self.limits.request_ms)

    def list_operations(
        self, bank: str, *, status: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> Any:
        """Return one page of the work that a bank's server took on, newest first."""
        return self._call(
            "listOperations", "GET", bank, "/operations" + _query(status=status, limit=limit, offset=offset)
        )

    def get_operation(self, bank: str, operation_id: str) -> Any:
        """Return how far a queued operation has come."""
        return self._call("getOperation", "GET", bank, f"/operations/{segment(operation_id)}")

    # ---- documents

    def list_documents(
        self, bank: str, *, q: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> Any:
        """Return one page of a bank's documents."""
        return self._call("listDocuments", "GET", bank, "/documents" + _query(q=q, limit=limit, offset=offset))

    def get_document(self, bank: str, document_id: str) -> Any:
        """Return a document, or ``None`` when there is none."""
        return self._call("getDocument", "GET", bank, f"/documents/{segment(document_id)}", missing=None)

    def update_document(self, bank: str, document_id: str, *, tags: Sequence[str] | None = None) -> Any:
        """Replace a document's tags."""
        path = f"/documents/{segment(document_id)}"
        return self._call("updateDocument", "PATCH", bank, path, _given(tags=tags))

    def delete_document(self, bank: str, document_id: str) -> bool:
        """Delete a document and its memories; ``False`` when there is none."""
        path = f"/documents/{segment(document_id)}"
        return self._call("deleteDocument", "DELETE", bank, path, missing=_MISSING) is not _MISSING

    # ---- mental models

    def list_mental_models(self, bank: str, *, detail: str = "content") -> Any:
        """Return a bank's mental models."""
        return self._call("listMentalModels", "GET", bank, "/mental-models" + _query(detail=detail))

    def get_mental_model(self, bank: str, model_id: str, *, detail: str = "content") -> Any:
        """Return a mental model, or ``None`` when there is none."""
        path = f"/mental-models/{segment(model_id)}" + _query(detail=detail)
        return self._call("getMentalModel", "GET", bank, path, missing=None)

    def create_mental_model(
        self,
        bank: str,
        name: str,
        source_query: str,
        *,
        id: str | None = None,  # noqa: A002  the server's own word
        tags: Sequence[str] | None = None,
        max_tokens: int | None = None,
        trigger: Mapping[str, Any] | None = None,
    ) -> Any:
        """Create a mental model."""
        body = _given(id=id, name=name, source_query=source_query, tags=tags, max_tokens=max_tokens, trigger=trigger)
        return self._call("createMentalModel", "POST", bank, "/mental-models", body)

    def refresh_mental_model(self, bank: str, model_id: str) -> Any:
        """Have a mental model written again."""
        return self._call("refreshMentalModel", "POST", bank, f"/mental-models/{segment(model_id)}/refresh")

    def delete_mental_model(self, bank: str, model_id: str) -> bool:
        """Delete a mental model; ``False`` when there is none."""
        path = f"/mental-models/{segment(model_id)}"
        return self._call("deleteMentalModel", "DELETE", bank, path, missing=_MISSING) is not _MISSING

    def get_mental_model_history(self, bank: str, model_id: str) -> list[Any]:
        """Return earlier versions of a mental model."""
        found = self._call("getMentalModelHistory", "GET", bank, f"/mental-models/{segment(model_id)}/history")
        return found if isinstance(found, list) else items_of(found)

    # ---- one request

    def _call(
        self,
        operation: str,
        method: str,
        bank: str,
        path: str,
        body: Any = None,
        *,
        limit_ms: float | None = None,
        missing: Any = _RAISE,
        stop: Callable[[], bool] | None = None,
    ) -> Any:
        limit = self.limits.request_ms if limit_ms is None else limit_ms
        try:
            url = f"{BANKS}/{segment(bank)}{path}"
            return self._wire.send(operation, method, url, body, limit, bank=bank, stop=stop)
        except HindsightError as error:
            if error.status_code == 404 and missing is not _RAISE:
                return missing
            raise


def items_of(answer: Any) -> list[Any]:
    """Return the ``items`` of an answer; none where the answer is of another shape."""
    found = answer.get("items") if isinstance(answer, dict) else None
    return found if isinstance(found, list) else []


def listed(operation: str, answer: Any, where: str, name: str = "items") -> list[Any]:
    """Return the list that an answer must hold: what the user asked for is never empty by mistake.

    Raises
    ------
    HindsightError
        The answer is of another shape.
    """
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise odd_answer(operation, where)
    return found


def odd_answer(operation: str, where: str) -> HindsightError:
    """Return the error of a success whose body is not what was asked for."""
    return HindsightError(
        f"{operation} failed: the answer is not what a Hindsight server gives",
        where=where,
        hint="check that hindsight.apiUrl is the address of a Hindsight server",
    )


def _texts(metadata: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return metadata as a server takes it: it refuses a whole batch for one value that is not text."""
    if metadata is None:
        return None
    return {
        name: value if isinstance(value, str) else js.json_text(value)
        for name, value in metadata.items()
        if value is not None
    }


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _query(**values: Any) -> str:
    pairs = (
        (key, one) for key, value in values.items() for one in (value if isinstance(value, list | tuple) else [value])
    )
    written = [f"{key}={_form(str(value))}" for key, value in pairs if value is not None]
    return "?" + "&".join(written) if written else ""


def _form(text: str) -> str:
    return quote_plus(js.well_formed(text), safe="*").replace("~", "%7E")
