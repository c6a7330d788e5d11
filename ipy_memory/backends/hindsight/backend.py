"""The Hindsight backend of one session: tools, queue, automatic recall and retention, mental models."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipy_memory import process, text
from ipy_memory.backends.base import Backend, Cleared, FirstTurn, FlushReport, QueueRow, RecallRequest, SessionContext
from ipy_memory.backends.hindsight import admin, prompts
from ipy_memory.backends.hindsight.bank import FILTERS, KnownBanks, Service, check_changes, is_long
from ipy_memory.backends.hindsight.mental_models import ModelSnapshot
from ipy_memory.backends.hindsight.outbox import Outbox
from ipy_memory.backends.hindsight.prompts import filter_words
from ipy_memory.backends.hindsight.queue import RetainQueue, UnconfirmedError, reasons
from ipy_memory.backends.hindsight.retention import AutoRetention
from ipy_memory.backends.hindsight.subagent import HindsightAlias, OneBank
from ipy_memory.conversation import Message, compose_query, cut_query, spoken
from ipy_memory.credentials import Outgoing, unguarded
from ipy_memory.errors import MemoryToolkitError, NotSupportedError, OutboxError, safe_line
from ipy_memory.jscompat import strings as js
from ipy_memory.model import Receipt
from ipy_memory.redact import redact_counted
from ipy_memory.scoping.modes import hindsight_scope
from ipy_memory.settings.resolve import hindsight_config

if TYPE_CHECKING:
    from ipy_memory.clock import Clock, IdSource, Timers
    from ipy_memory.http.exchange import Transport
    from ipy_memory.model import Answer, Hit, RetainItem
    from ipy_memory.scoping.modes import HindsightScope
    from ipy_memory.settings.resolve import HindsightConfig, Settings

REMEMBERED_HITS = 1_000
"""So many recalled texts are remembered, to notice when one of them is retained again."""

SOURCE, OWN_SOURCE = "Hindsight", "ipy_memory"
"""Whose a notice is: the agent would give it too, or this package alone does."""

KEPT = "kept: see %memory queue"

Notify = Callable[[str, str, str, str], None]
"""Tells the user something: level, text, source, hint."""

log = logging.getLogger("ipy_memory.backends.hindsight")


def log_notice(level: str, message: str, source: str, hint: str) -> None:
    """Write a notice to the log: what happens where nobody else listens."""
    log.log(logging.WARNING if level == "warning" else logging.INFO, "%s: %s (%s)", source, message, hint)


class HindsightBackend(Backend):
    """One session's memory on a Hindsight server.

    Parameters
    ----------
    config, scope
        As resolved when the session starts.
    outbox
        Keeps what is acknowledged until the server has confirmed it.
    session_id
        Stored with everything this session retains.
    clock, ids, timers
        Time, ids, and what runs later.
    transport
        Another way to the network (tests).
    notify
        Told of batches that were not sent.
    outgoing
        Called with each query and context before it is sent.
    started
        The time stamp of the session's header, under which transcripts are stored.
    resumed
        Whether another process began this session: its document then gets a name of its own, so that a shorter
        transcript never replaces a longer one.
    owned
        Whether the session still uses this state.
    """

    name, title, detaches = "hindsight", "Hindsight", True
    filters = FILTERS

    def __init__(
        self,
        config: HindsightConfig,
        scope: HindsightScope,
        outbox: Outbox,
        *,
        session_id: str,
        clock: Clock,
        ids: IdSource,
        timers: Timers,
        transport: Transport | None = None,
        notify: Notify = log_notice,
        outgoing: Outgoing = unguarded,
        started: str | None = None,
        resumed: bool = False,
        owned: Callable[[], bool] = lambda: True,
    ) -> None:
        self.session_id = session_id
        self.owned = owned
        self._clock = clock
        self._ids = ids
        self._timers = timers
        self._transport = transport
        self._notify = notify
        self._outgoing = outgoing
        self._started = started
        self._resumed = resumed
        self._latest_ms = 0
        self._outbox = outbox
        self._earlier: list[RetainQueue] = []
        self.edits: list[tuple[tuple[str, str], ...]] = []
        """Memories that were invalidated together, by bank and id, newest last: for undo."""
        self._closed = False
        self._recalled: dict[str, None] = {}
        self.known_banks = KnownBanks()
        self._enter(config, scope, self._again() if resumed else None)
        self._cancel_exit = process.at_exit(self._at_exit)

    def _again(self) -> int:
        """Return the instant of a new start, each time another: every start begins a document of its own."""
        self._latest_ms = max(self._clock.now_ms(), self._latest_ms + 1)
        return self._latest_ms

    def _enter(self, config: HindsightConfig, scope: HindsightScope, again_ms: int | None) -> None:
        self.config = config
        self.service = Service(
            config,
            scope,
            self.known_banks,
            tz=self._clock.tz,
            transport=self._transport,
            outgoing=self._outgoing,
        )
        self.queue = RetainQueue(
            self.service,
            self._outbox,
            clock=self._clock,
            ids=self._ids,
            timers=self._timers,
            owned=lambda: self.owned(),
            failed=self._report_failure,
            safe=config.safe_retain,
        )
        self.models = ModelSnapshot(self.service, clock=self._clock, timers=self._timers)
        self.last_recall_snippet: str | None = None
        self._again_ms = again_ms
        self.retention = AutoRetention(
            self.service,
            clock=self._clock,
            started=self._started,
            again_ms=again_ms,
            resumed=self._resumed,
            odd=self._report_odd_document,
        )
        self._first_turn: object | None = object()

    def __repr__(self) -> str:
        return f"<HindsightBackend {self.retain_bank!r} at {self.service.client.origin}>"

    @property
    def scope(self) -> HindsightScope:
        """Bank and tags in force."""
        return self.service.scope

    @property
    def retain_bank(self) -> str:
        """Id of the bank."""
        return self.service.bank

    # ---- the tools' verbs

    def recall(self, request: RecallRequest) -> Answer:
        """Return the server's hits in its order; ``limit`` cuts them here."""
        stop = None if request.cancel is None else request.cancel.is_set
        return self._remembered(self.service.recall(request.query, stop, limit=request.limit, where=request.where))

    def reflect(self, query: str, context: str | None = None, *, count: bool = True) -> Answer:  # noqa: ARG002
        """Return the server's synthesis."""
        return self._remembered(self.service.reflect(query, context))

    def _remembered(self, answer: Answer) -> Answer:
        for hit in answer.hits:
            self._recalled[hit.content] = None
        for content in list(self._recalled)[:-REMEMBERED_HITS]:
            del self._recalled[content]
        return answer

    def one_bank(self, name: str) -> OneBank:
        """Return a backend that reads just this bank of the server, whatever its tags, and writes nothing."""
        return OneBank(self, name)

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Queue items; credentials are taken out before."""
        return self.queue_items(items, self.session_id)

    def queue_items(self, items: Sequence[RetainItem], session_id: str) -> Receipt:
        """Queue items of a session that shares this state."""
        clean: list[tuple[str, str | None]] = []
        redacted = duplicates = 0
        for item in items:
            content, found = redact_counted(item.content)
            context, more = (self.config.retain_context, 0) if item.context is None else redact_counted(item.context)
            redacted += found + more
            duplicates += content in self._recalled
            clean.append((content, context))
        long = 0 if self.config.safe_retain else sum(is_long(content) for content, _ in clean)
        self.queue.add(clean, session_id, self.scope.retain_tags)
        return Receipt(
            len(items),
            self.retain_bank,
            "queued",
            ids=(None,) * len(items),
            redacted=redacted,
            duplicates=duplicates,
            notes=(prompts.long_items_note(long),) if long else (),
        )

    def bullet(self, hit: Hit) -> str:
        """Return the exact entry of a hit."""
        return text.hindsight_bullet(hit)

    def flush(self) -> FlushReport:
        """Send the queue and wait for it."""
        return self.queue.flush()

    def queue_rows(self) -> list[QueueRow]:
        """Return every item of the outbox, which is not known to have arrived: those of other sessions too."""
        return self.queue.rows()

    def resend(self, *, unknown: bool = False, moved_from: str | None = None) -> FlushReport:
        """Send again by hand what failed, each item to its own bank (see :meth:`RetainQueue.resend`)."""
        return self.queue.resend(unknown=unknown, moved_from=moved_from)

    def _count_unsent(self) -> int | str:
        try:
            return self._outbox.count()
        except OutboxError as error:
            return str(error)

    def status(self) -> Mapping[str, Any]:
        """Return what the user wants to know; never a secret."""
        return {
            "scope": self.config.scoping,
            "banks": [self.retain_bank],
            "server": self.service.client.origin,
            "tags": list(self.scope.retain_tags or ()),
            "filter": filter_words(self.scope.recall_tags, self.scope.tags_match),
            "unsent": self._count_unsent(),
            "queue": "closed: nothing is stored any more" if self._closed else None,
        }

    def stats(self) -> str:
        """Return what the bank holds, as the server says."""
        return admin.stats(self)

    def diagnose(self) -> str:
        """Return how server, bank and queue are."""
        return admin.diagnosis(self)

    def _report_failure(self, count: int, error: Exception) -> None:
        status = getattr(error, "status_code", None)
        log.warning("Hindsight: retain of %d items in bank %s failed (status %s)", count, self.retain_bank, status)
        hint = "; ".join([*reasons(error), KEPT])
        if isinstance(error, UnconfirmedError):
            # For the agent this was a success.
            self._notify("warning", prompts.unconfirmed_notice(count, error), OWN_SOURCE, hint)
        else:
            self._notify("warning", prompts.failure_notice(count, error), SOURCE, hint)

    def _report_odd_document(self, problem: str) -> None:
        hint = "check that hindsight.apiUrl is the address of a Hindsight server"
        self._notify("warning", prompts.odd_document_notice(self.retain_bank, problem), OWN_SOURCE, hint)

    # ---- a session's life

    def start(self) -> None:
        """Load the mental models in the background."""
        self.models.start()

    def context(self, recalled: str | None = None) -> str:
        """Return the cached blocks, mental models first."""
        return "\n\n".join(filter(None, (self.models.block, recalled or self.last_recall_snippet)))

    def instructions(self, recalled: str | None = None) -> str:
        """Return the developer instructions with the cached blocks."""
        return prompts.instructions(self.context(recalled))

    def recall_block(self, query: str) -> tuple[bool, str | None]:
        """Recall for the instructions: whether it worked, and the block of what was found."""
        try:
            hits = self.service.recall(query).hits
        except MemoryToolkitError as error:
            log.warning("Hindsight: automatic recall from bank %s failed: %s", self.retain_bank, safe_line(f"{error}"))
            return False, None
        if not hits:
            return True, None
        return True, prompts.memories_block(self.config.recall_prompt_preamble, hits, self._clock.now_ms())

    def prepare_first_turn(self, prompt: str, messages: Sequence[Message]) -> FirstTurn | None:
        """Recall for the first turn; ``None`` when it is done, switched off, blank or failing."""
        latest = js.trim(prompt)
        if self._first_turn is None or not self.config.auto_recall or not latest:
            return None
        self.models.wait()
        worked, block = self.recall_block(self._query(latest, [*messages, Message("user", latest)]))
        turn = self._first_turn
        return FirstTurn(block, lambda: self.take_first_recall(turn, block)) if worked else None

    def take_first_recall(self, turn: object, block: str | None) -> bool:
        """Make a prepared recall the session's, unless another was taken or the state was rebuilt since."""
        if turn is not self._first_turn:
            return False
        self.last_recall_snippet = block
        self._first_turn = None  # the last step, so that an interrupted one can be taken again
        return True

    def compaction(self, messages: Sequence[Message]) -> str | None:
        """Return what to add before a compaction."""
        messages = spoken(messages)
        latest = next((message.text for message in reversed(messages) if message.role == "user"), None)
        return None if latest is None else self.recall_block(self._query(latest, messages))[1]

    def _query(self, latest: str, messages: Sequence[Message]) -> str:
        query = compose_query(latest, messages, self.config.recall_context_turns)
        return cut_query(query, latest, self.config.recall_max_query_chars)

    @property
    def unretained(self) -> str | None:
        """Why the latest automatic retention failed; ``None`` where it did not."""
        return self.retention.failure

    def end_turn(self, messages: Sequence[Message]) -> None:
        """Send the queue, retain when it is time, refresh old models."""
        self.flush()
        self.retention.end_turn(messages, self.session_id)
        self.models.refresh_if_old()

    def force_retain(self, messages: Sequence[Message]) -> None:
        """Retain the whole log, whatever was sent before."""
        self.retention.force(messages, self.session_id)

    def enqueue(self, messages: Sequence[Message]) -> None:
        """Send the queue, then retain the whole log."""
        self.flush()
        self.force_retain(messages)

    def follow(self, context: SessionContext, messages: Sequence[Message]) -> bool:  # noqa: ARG002
        """Work under changed settings from the next call on; begin again on another bank if its name has changed.

        Raises
        ------
        SettingsError
            One of them takes effect in another session only; nothing has changed.
        """
        config = hindsight_config(context.settings)
        check_changes(self.config, config)
        moved = _named(config) != _named(self.config)
        if moved:
            self.rescope(config, hindsight_scope(config, context.cwd))
        self.config = self.service.config = config
        return moved

    def move(self, context: SessionContext, messages: Sequence[Message]) -> bool:
        """Go on in another folder: what was said so far is stored in the old bank and not again in the new one."""
        config = hindsight_config(context.settings)
        scope = hindsight_scope(config, context.cwd)
        if _connection(config) != _connection(self.config):
            self.known_banks = KnownBanks()
        elif scope == self.scope:
            return False
        self.retention.finish(messages, self.session_id)
        self.rescope(config, scope, self._again())
        self.retention.begin_after(messages)
        return True

    def reconnect(self, settings: Settings) -> None:
        """Go on with the address and the key that the settings give now; what waits stays with the old address."""
        now = hindsight_config(settings)
        config = replace(self.config, api_url=now.api_url, api_token=now.api_token)
        if config != self.config:
            self.known_banks = KnownBanks()
            self.rescope(config, self.scope)

    def rescope(self, config: HindsightConfig, scope: HindsightScope, again_ms: int | None = None) -> None:
        """Send what waits to the old bank, then begin again on another; known banks stay known.

        An interrupt leaves the session on the old bank.
        """
        old_service, old_queue = self.service, self.queue
        try:
            old_queue.close(self.config.retain_timeout_ms)
        except BaseException:
            old_queue.reopen()
            raise
        self.models.stop()
        old_service.client.close()
        self._enter(config, scope, self._again_ms if again_ms is None else again_ms)
        if unsent := old_queue.unsent():
            self._earlier.append(old_queue)
            self._report_unsent(prompts.unsent_notice(unsent, old_service.bank))

    def begin_after(self, messages: Sequence[Message]) -> None:
        """Leave a conversation so far to the banks that hold it already."""
        self.retention.begin_after(messages)

    def clear(self, *, rescued: Sequence[str] = (), backup: bool = True) -> Cleared:  # noqa: ARG002
        """Send what is pending and drop the local state; the warning says that the server's bank stays."""
        self.close()
        return Cleared(warning=prompts.cleared_notice(self.retain_bank))

    def child(self, session_id: str, cwd: str) -> HindsightAlias:
        """Return the state of a sub-agent's session: this one under another session id."""
        return HindsightAlias(self, session_id, cwd)

    def no_vectors(self) -> NotSupportedError:
        """Return the error that says where the vectors are."""
        return NotSupportedError(
            "Hindsight keeps its vectors on the server.",
            hint="there is nothing to compute here; %memory diagnose looks at the server",
        )

    def close(self) -> None:
        """Send what waits, within the retain time-out, and close connections; harmless when repeated."""
        if self._closed:
            return
        self._closed = True
        self._cancel_exit()
        self.models.stop()
        try:
            self.queue.close(self.config.retain_timeout_ms)
        finally:
            # Also when the wait was interrupted.
            self._report_unsent(self._own_unsent())
            self.service.client.close()
            self.models.wait_for_end()

    def _own_unsent(self) -> str:
        counts = sum((queue.unsent() for queue in (*self._earlier, self.queue)), Counter[str]())
        return prompts.unsent_notice(counts, self.retain_bank)

    def _report_unsent(self, notice: str) -> None:
        if notice:
            self._notify("warning", notice, OWN_SOURCE, KEPT)

    def _at_exit(self) -> None:
        self.close()
        if notice := self._own_unsent():
            # A kernel's own stderr has lost its thread by now, and would answer with a traceback.
            stderr = sys.__stderr__ or sys.stderr
            stderr.write(f"ipy_memory: {notice} – {KEPT}\n")


def _connection(config: HindsightConfig) -> tuple[str | None, ...]:
    """Return what decides which server is asked, as whom, and what it is told of the bank."""
    return config.api_url, config.api_token, config.bank_mission, config.retain_mission


def _named(config: HindsightConfig) -> tuple[str | None, str, str]:
    """Return what decides the bank's name."""
    return config.bank_id, config.bank_id_prefix, config.scoping


def open_backend(context: SessionContext) -> HindsightBackend | None:
    """Return a server's backend for a session; ``None`` without an address. Nothing is sent yet."""
    if not (context.settings.get("hindsight.apiUrl") or "").strip():
        return None
    config = hindsight_config(context.settings)
    made = HindsightBackend(
        config,
        hindsight_scope(config, context.cwd),
        Outbox(context.agent_dir),
        session_id=context.session_id,
        clock=context.clock,
        ids=context.ids,
        timers=context.timers,
        notify=context.notify,
        outgoing=context.outgoing,
        started=context.started,
        resumed=context.resumed,
    )
    made.owned = lambda: context.owns(made)
    return made
