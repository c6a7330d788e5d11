"""One bank on one Hindsight server, as a session uses it: the client, the scope and the settings that go with it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.hindsight import parsing
from ipy_memory.backends.hindsight.client import HindsightClient, Item, TimeLimits, items_of
from ipy_memory.backends.hindsight.prompts import NO_SCORES, ODD_ANSWER, filter_words, recall_notes
from ipy_memory.backends.hindsight.queue import UnconfirmedError
from ipy_memory.credentials import Outgoing, unguarded
from ipy_memory.errors import HindsightError, MemoryToolkitError, SettingsError
from ipy_memory.jscompat import strings as js
from ipy_memory.model import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from ipy_memory.backends.filters import RecallFilter
    from ipy_memory.backends.hindsight.outbox import Queued
    from ipy_memory.http.exchange import Transport
    from ipy_memory.model import Hit
    from ipy_memory.scoping.modes import HindsightScope
    from ipy_memory.settings.resolve import HindsightConfig

MAX_KNOWN_BANKS = 10_000
"""So many banks are remembered as made; past it the older half is forgotten."""

LONG_ITEM_BYTES = 10_000
"""A server works in portions of 10,000 tokens; of a longer item without a document id it keeps only the first."""

FILTERS = frozenset({"tag", "type", "budget", "tokens", "at"})
"""What a server can narrow a recall down to; nothing is filtered here."""

MAX_DOCUMENTS = 1_000
"""So many documents of one session are looked at."""

log = logging.getLogger("ipy_memory.backends.hindsight")


class KnownBanks:
    """The banks that a PUT confirmed, oldest first."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Any:
        return iter(tuple(self._names))

    def add(self, name: str) -> None:
        """Remember a bank."""
        self._names[name] = None
        if len(self._names) > MAX_KNOWN_BANKS:
            names = tuple(self._names)
            self._names = dict.fromkeys(names[len(names) // 2 :])


def is_long(content: str) -> bool:
    """Return whether a server may keep only the beginning of an item that has no document id."""
    return len(js.well_formed(content).encode()) > LONG_ITEM_BYTES


class Service:
    """What a session asks of its bank.

    Parameters
    ----------
    config, scope
        As they were when the session began.
    known
        Banks that need no PUT any more; shared with whoever shares the server.
    tz
        The local zone, in which instants are written; the system's where it is ``None``.
    transport
        Another way to the network (tests).
    outgoing
        Called with each query and context before it is sent.
    """

    def __init__(
        self,
        config: HindsightConfig,
        scope: HindsightScope,
        known: KnownBanks,
        *,
        tz: tzinfo | None,
        transport: Transport | None,
        outgoing: Outgoing = unguarded,
    ) -> None:
        self.config = config
        self.scope = scope
        self.known = known
        self.client = HindsightClient(
            config.api_url,
            config.api_token,
            tz=tz,
            limits=TimeLimits(
                config.request_timeout_ms, config.recall_timeout_ms, config.retain_timeout_ms, config.reflect_timeout_ms
            ),
            transport=transport,
            outgoing=outgoing,
        )

    @property
    def bank(self) -> str:
        """Id of the bank."""
        return self.scope.bank_id

    @property
    def where(self) -> str:
        """The bank and its server, for errors."""
        return f"bank {self.bank} at {self.client.origin}"

    def ensure_bank(self, limit_ms: float | None = None) -> None:
        """Make the bank if that is not known to be done; a failure is passed over and tried again next time."""
        if self.bank in self.known:
            return
        try:
            self.client.create_bank(
                self.bank,
                reflect_mission=js.trim(self.config.bank_mission or "") or None,
                retain_mission=js.trim(self.config.retain_mission or "") or None,
                limit_ms=limit_ms,
            )
        except MemoryToolkitError as error:
            log.debug("Hindsight: bank %s could not be made: %s", self.bank, error)
        else:
            self.known.add(self.bank)

    def recall(
        self,
        query: str,
        stop: Callable[[], bool] | None = None,
        *,
        limit: int | None = None,
        where: RecallFilter | None = None,
    ) -> Answer:
        """Return the hits for a query in the server's order, and notes on them; ``limit`` cuts them here."""
        config, scope = (self.config, self.scope) if where is None else narrowed(self.config, self.scope, where)
        answer = self.client.recall(
            self.bank,
            query,
            types=config.recall_types,
            max_tokens=config.recall_max_tokens,
            budget=config.recall_budget,
            tags=scope.recall_tags,
            tags_match=scope.tags_match,
            query_timestamp=None if where is None else where.at,
            stop=stop,
        )
        results = answer.get("results") if isinstance(answer, dict) else None
        found, textless = parsing.hits_of(results, self.bank)
        notes = list(recall_notes(config, query, results, found, textless, where))
        hits = found if limit is None else found[: max(0, limit)]
        if len(hits) < len(found):
            notes.append(f"{len(hits)} of {len(found)} shown")
        return self._answer(hits, None, notes, scope)

    def reflect(self, query: str, context: str | None, *, ensure: bool = True) -> Answer:
        """Return the server's synthesis and what it names as its base; no text for none."""
        if ensure:
            self.ensure_bank()
        answer = self.client.reflect(
            self.bank,
            query,
            context=context,
            budget=self.config.recall_budget,
            tags=self.scope.recall_tags,
            tags_match=self.scope.tags_match,
        )
        text = answer.get("text") if isinstance(answer, dict) else None
        hits, _ = parsing.hits_of(parsing.reflected(answer), self.bank)
        notes = [] if isinstance(text, str) else [ODD_ANSWER.format("text")]
        return self._answer(hits, (js.trim(text) or None) if isinstance(text, str) else None, notes, self.scope)

    def _answer(
        self, hits: tuple[Hit, ...], synthesis: str | None, notes: Sequence[str], scope: HindsightScope
    ) -> Answer:
        words = filter_words(scope.recall_tags, scope.tags_match)
        attrs = {"filter": words} if words else {}
        if hits and all(hit.score is None for hit in hits):
            attrs["scores"] = NO_SCORES
        return Answer(hits, synthesis, (self.bank,), tuple(notes), attrs)

    @property
    def address(self) -> str:
        """The server that queued items are bound to."""
        return self.client.address

    def prepare(self, bank: str, left: Callable[[], float | None]) -> None:
        """Make the session's own bank before items are sent to it; another bank's missions are not ours to set."""
        if bank == self.bank:
            self.ensure_bank(left())

    def send(
        self, bank: str, items: Sequence[Queued], operation_id: str | None, left: Callable[[], float | None]
    ) -> str | None:
        """Send a batch of the queue and return the server's id for the work.

        With an operation id, long items are documents of their own.

        Raises
        ------
        UnconfirmedError
            The server does not say that it took all of them on.
        """
        answer = self.client.retain_batch(
            bank,
            [_item(item, operation_id and f"{operation_id}-{index}") for index, item in enumerate(items)],
            async_=True,
            operation_id=operation_id,
            limit_ms=left(),
        )
        where = f"bank {bank} at {self.client.origin}"
        if isinstance(answer, dict) and answer.get("success") is False and not answer.get("items_count"):
            raise HindsightError(
                "retainBatch failed: the server says that it was no success",
                where=where,
                hint="the server's log says why",
            )
        if problem := parsing.unconfirmed(answer, bank, len(items)):
            raise UnconfirmedError(
                f"retainBatch: {problem}",
                unknown=True,
                where=where,
                hint="check that hindsight.apiUrl is the address of a Hindsight server",
            )
        operation = answer.get("operation_id")
        return operation if isinstance(operation, str) else None

    def send_transcript(self, text: str, *, document_id: str, session_id: str, started_ms: float) -> str | None:
        """Send a transcript as one document; return what is odd about the answer, if anything is."""
        self.ensure_bank()
        item = Item(
            text,
            timestamp=started_ms,
            context=self.config.retain_context,
            metadata={"session_id": session_id},
            document_id=document_id,
            tags=self.scope.retain_tags,
        )
        answer = self.client.retain(self.bank, item, async_=True)
        return parsing.unconfirmed(answer, self.bank, 1)

    def stored_session(self, session_id: str) -> dict[str, str]:
        """Return what earlier processes stored of a session's conversation: documents by name, oldest first.

        Those are the document of the session's name, and those that a restart began (``<session id>-r<start>``).
        """
        again = f"{session_id}-r"
        try:
            listed = items_of(self.client.list_documents(self.bank, q=session_id, limit=MAX_DOCUMENTS))
        except HindsightError as error:
            if error.status_code == 404:  # the bank is not there yet
                return {}
            raise
        names = [item["id"] for item in listed if isinstance(item, dict) and isinstance(item.get("id"), str)]
        restarts = {name: int(name[len(again) :]) for name in names if _is_restart(name, again)}
        found = {}
        for name in [session_id] * (session_id in names) + sorted(restarts, key=restarts.__getitem__):
            document = self.client.get_document(self.bank, name)
            text = document.get("original_text") if isinstance(document, dict) else None
            found[name] = js.trim(text) if isinstance(text, str) else ""
        return found


def narrowed(
    config: HindsightConfig, scope: HindsightScope, where: RecallFilter
) -> tuple[HindsightConfig, HindsightScope]:
    """Return what is asked with a user's filters: within the scope, never beyond it."""
    config = replace(
        config,
        recall_types=where.type or config.recall_types,
        recall_budget=where.budget or config.recall_budget,
        recall_max_tokens=where.tokens or config.recall_max_tokens,
    )
    if not where.tag:
        return config, scope
    # A scope has one tag at most. A memory of it that has the asked tags is tagged, so it has the scope's tag too; and
    # a server takes no second group of tags beside the first.
    return config, replace(scope, recall_tags=(*(scope.recall_tags or ()), *where.tag), tags_match="all_strict")


def _item(item: Queued, document_id: str | None) -> Item:
    return Item(
        item.content,
        timestamp=item.at_ms,
        context=item.context,
        metadata={"session_id": item.session_id},
        document_id=document_id if is_long(item.content) else None,
        tags=item.tags,
    )


def _is_restart(name: str, again: str) -> bool:
    return name.startswith(again) and name[len(again) :].isdecimal()


FIXED = {
    "api_url": "apiUrl",
    "api_token": "apiToken",
    "bank_mission": "bankMission",
    "retain_mission": "retainMission",
    "request_timeout_ms": "requestTimeoutMs",
    "reflect_timeout_ms": "reflectTimeoutMs",
    "recall_timeout_ms": "recallTimeoutMs",
    "retain_timeout_ms": "retainTimeoutMs",
    "mental_models_enabled": "mentalModelsEnabled",
    "mental_model_auto_seed": "mentalModelAutoSeed",
    "safe_retain": "safeRetain",
}
"""What the connection, the queue or the loaded models are made from when a session begins."""


def check_changes(now: HindsightConfig, wanted: HindsightConfig) -> None:
    """Raise :class:`SettingsError` for a setting that takes effect in another session only."""
    for field, name in FIXED.items():
        if getattr(now, field) != getattr(wanted, field):
            raise SettingsError(
                f"hindsight.{name} cannot change while a session lives",
                hint="set it in the agent's settings or the environment, then begin again: %memory use hindsight",
            )
