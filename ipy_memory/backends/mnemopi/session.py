"""What the local engine does in the life of a session beside its tools: start, first turn, retention, clearing."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any

from ipy_memory import conversation, text
from ipy_memory.backends.base import Cleared, FirstTurn, RecallRequest, SessionContext
from ipy_memory.backends.mnemopi.admin import stats as reports
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.config import engine_config
from ipy_memory.backends.mnemopi.consolidation.sleep import promote_before_trim, sleep, sleep_all
from ipy_memory.backends.mnemopi.db.connection import BUSY_MS
from ipy_memory.backends.mnemopi.embeddings.selection import choose
from ipy_memory.backends.mnemopi.pool import WRITE, OpenBanks, Target, alone
from ipy_memory.backends.mnemopi.retention import Retention
from ipy_memory.backends.mnemopi.store.delete import clear_banks
from ipy_memory.backends.mnemopi.store.llm import configured_completion
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.conversation import Message
from ipy_memory.errors import BankError, BusyBankError, MemoryToolkitError, safe_line
from ipy_memory.jscompat import strings as js
from ipy_memory.own_files import state_path
from ipy_memory.paths import check_path, exists
from ipy_memory.scoping.modes import mnemopi_scope
from ipy_memory.settings.resolve import mnemopi_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.model import Receipt, RetainItem
    from ipy_memory.scoping.modes import BankScope
    from ipy_memory.settings.resolve import MnemopiConfig

log = logging.getLogger("ipy_memory")

COMMAND_SOURCE = "coding-agent-memory-command"
_ATTEMPT_SECONDS = 0.1
_ENGINE = (
    *("polyphonic_recall", "enhanced_recall", "proactive_linking"),
    *("no_embeddings", "embedding_model", "embedding_api_url", "embedding_api_key"),
    *("llm_mode", "llm_base_url", "llm_api_key", "llm_model"),
)
"""Settings from which the engine's own parts are made."""

_SEARCH_DEFAULT, _SEARCH_MOST = 10, 50


class MnemopiSession(MnemopiBackend):
    """The local engine with a session's life: what starts it, what its turns leave behind, what clears it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.token_limit: float = self.config.injection_token_limit
        self.started = False
        self.first_turn_done = False
        self._unretained: str | None = None
        self._retention: Retention | None = None
        self._begin = 0

    @property
    def retention(self) -> Retention:
        """The cursor over the conversation; opens the retain bank."""
        if self._retention is None:
            self._retention = Retention(
                self.writer,
                session_id=self.session_id,
                cwd=self.cwd,
                every=self.config.retain_every_n_turns,
                begin=self._begin,
            )
        return self._retention

    @alone
    def start(self) -> None:
        """Open the banks in scope and consolidate rows of 12 hours and more."""
        self._consolidate(sleep)
        self.started = True

    @alone
    def prepare_first_turn(self, prompt: str, messages: Sequence[Message]) -> FirstTurn | None:
        """Recall for the first turn; ``None`` when nothing was prepared.

        A blank prompt and a failure leave it to the next one; an empty answer counts as done once it is committed.
        """
        if self.first_turn_done or not self.config.auto_recall or not js.trim(prompt):
            return None
        try:
            block = self._block_for(prompt, [*messages, Message("user", prompt)])
        except MemoryToolkitError as error:
            log.warning("Mnemopi: automatic recall failed: bank=%s error=%s", self.retain_bank, error)
            return None

        def take() -> bool:
            if self.first_turn_done:
                return False
            self.last_recall_block = block or self.last_recall_block
            self.first_turn_done = True  # the last step, so that an interrupted one can be taken again
            return True

        return FirstTurn((self.context(block) or None) if block else None, take)

    @alone
    def compaction(self, messages: Sequence[Message]) -> str | None:
        """Return the block to keep when a conversation is about to be compacted, or ``None``."""
        told = [message for message in messages if js.trim(message.text)]
        latest = next((message.text for message in reversed(told) if message.role == "user"), None)
        if latest is None:
            return None
        try:
            return self._block_for(latest, told)
        except MemoryToolkitError as error:
            log.warning("Mnemopi: recall before compaction failed: bank=%s error=%s", self.retain_bank, error)
            return None

    def context(self, recalled: str | None = None) -> str:
        """Return the last recall block, cut to the room that the instructions leave."""
        if not (block := recalled or self.last_recall_block):
            return ""
        before = f"{text.MNEMOPI_INSTRUCTIONS}\n\n"
        shown = conversation.truncate_tokens(before + block, self.token_limit)
        return shown[len(before) :] if shown.startswith(before) else ""

    def instructions(self, recalled: str | None = None) -> str:
        """Return the developer instructions with the last recall block."""
        joined = "\n\n".join(filter(None, (text.MNEMOPI_INSTRUCTIONS, recalled or self.last_recall_block)))
        return conversation.truncate_tokens(js.trim(joined), self.token_limit)

    def end_turn(self, messages: Sequence[Message]) -> None:
        """Retain the latest turns when enough came together; never raises."""
        if self.config.auto_retain:
            self._quietly(lambda: self._between_writers(lambda: self.retention.end_turn(messages)))

    def force_retain(self, messages: Sequence[Message]) -> None:
        """Retain what is not yet retained; never raises."""
        self._quietly(lambda: self._between_writers(lambda: self.retention.force(messages)))

    def _between_writers(self, retain: Callable[[], object]) -> None:
        """Retain once no other process writes; while this waits, other threads can use the session."""
        end = time.monotonic() + BUSY_MS / 1000
        while True:
            with self.banks.lock, self.banks.impatient():
                try:
                    retain()
                except BusyBankError:
                    if time.monotonic() >= end:
                        raise
                else:
                    return
            time.sleep(_ATTEMPT_SECONDS)

    @property
    def unretained(self) -> str | None:
        """Why the latest automatic retention failed; ``None`` where it did not."""
        return self._unretained

    @alone
    def enqueue(self, messages: Sequence[Message]) -> None:
        """Retain what is not yet retained and consolidate every bank of the session."""
        self.force_retain(messages)
        self._consolidate(sleep_all)

    def _consolidate(self, how: Callable[[Bank], object]) -> None:
        """Consolidate every bank in scope; the retain bank must be there, another may fail."""
        for target in self.edit_targets():
            try:
                if bank := self.banks.get(target, WRITE):
                    how(bank)
            except BankError as error:
                if target.name == self.retain_bank:
                    raise
                self.banks.notify("warning", text.bank_passed_over(target.name, error.message), "Mnemopi")

    @alone
    def finish(self, messages: Sequence[Message]) -> None:
        """End the session: store what is not yet retained (only with automatic retention on) and close."""
        try:
            self._store_rest(messages)
        finally:
            self.close()

    def _store_rest(self, messages: Sequence[Message]) -> None:
        if self.config.auto_retain and messages:
            self._quietly(lambda: self.retention.force(messages, extract=False))

    @alone
    def follow(self, context: SessionContext, messages: Sequence[Message]) -> bool:
        """Work under changed settings from the next call on; return whether the banks are others now.

        What was said so far goes to the old banks, unless retention is off now.
        """
        fresh = open_backend(context)
        engine = [name for name in _ENGINE if getattr(fresh.config, name) != getattr(self.config, name)]
        moved = self._go_to(fresh.config, fresh.scope, messages, store=fresh.config.auto_retain)
        if engine:
            self.banks.change_engine(fresh.banks)
        self.config, self.token_limit, self._retention = fresh.config, fresh.token_limit, None
        return moved

    def _go_to(
        self, config: MnemopiConfig, scope: BankScope, messages: Sequence[Message], *, store: bool = True
    ) -> bool:
        moved = (scope, config.db_path) != (self.scope, self.config.db_path)
        if moved:
            if store:
                self._store_rest(messages)
            self.close()
            self._begin_afresh(messages)
            self.first_turn_done = self.started = False
            self.config, self.scope = config, scope
        return moved

    @alone
    def move(self, context: SessionContext, messages: Sequence[Message]) -> bool:
        """Go on in another folder: what was said so far is stored in the old bank and not again in the new one."""
        config = mnemopi_config(context.settings, context.agent_dir, context.cwd)
        moved = self._go_to(config, mnemopi_scope(config, context.cwd), messages)
        self.cwd, self.token_limit, self._retention = context.cwd, _token_limit(context), None
        self.look_again()
        return moved

    def begin_after(self, messages: Sequence[Message]) -> None:
        """Leave a conversation so far to the banks that hold it already."""
        self._begin_afresh(messages)

    def _begin_afresh(self, messages: Sequence[Message]) -> None:
        self._retention, self.last_recall_block = None, None
        self.look_again()
        self._begin = conversation.user_turns(messages)

    def clear_targets(self, *, rescued: Sequence[str] = ()) -> list[Target]:
        """Return the banks that :meth:`clear` empties: the scope's own, and rescued ones only if named."""
        return self.own_targets() + [t for t in self.recall_targets() if t.rescued and t.name in rescued]

    def clear_files(self, *, rescued: Sequence[str] = ()) -> list[Path]:
        """Return the bank files that :meth:`clear` empties; those that are there."""
        return [target.path for target in self.clear_targets(rescued=rescued) if exists(target.path)]

    @alone
    def clear(self, *, rescued: Sequence[str] = (), backup: bool = True) -> Cleared:
        """Delete every memory in the session's bank files, and begin again.

        The files stay: another process that has one open loses nothing that it stores later. The next prompt recalls,
        and the conversation so far counts as not yet stored, as in the agent.

        Raises
        ------
        BankError
            A bank could not be opened, copied or written; nothing was cleared.
        """
        targets = [target for target in self.clear_targets(rescued=rescued) if exists(target.path)]
        self.banks.close()
        banks = [bank for target in targets if (bank := self.banks.get(target, WRITE))]
        done = clear_banks(banks, self.banks.copies if backup else None)
        self._begin_afresh(())
        self.first_turn_done = False
        for target in self.own_targets():
            self.banks.get(target, WRITE)
        return Cleared(done.files, done.copies, "\n".join(done.notes) or None)

    def search(self, query: str, limit: float | None = None) -> Mapping[str, Any]:
        """Return what the search command answers."""
        most = _SEARCH_DEFAULT if limit is None or math.isnan(limit) else int(min(max(limit, 1), _SEARCH_MOST))
        items = []
        for hit in self.recall(RecallRequest(query)).hits[:most]:
            known: dict[str, Any] = {"source": hit.source, "timestamp": hit.timestamp, "score": hit.score}
            item: dict[str, Any] = {"id": hit.id, "content": hit.content}
            items.append(item | {k: v for k, v in known.items() if v is not None})
        return {"backend": self.name, "query": query, "count": len(items), "items": items}

    @alone
    def save(
        self,
        content: str,
        *,
        context: str | None = None,
        importance: float | None = None,
        source: str | None = None,
        veracity: str | None = None,
    ) -> Mapping[str, Any]:
        """Store one memory as the save command does; blank content is refused."""
        content = js.trim(content)
        if not content:
            return {"backend": self.name, "stored": 0, "message": text.EMPTY_CONTENT}
        metadata = {"session_id": self.session_id, "cwd": self.cwd, "context": context, "operation": "memory.save"}
        options = RememberOptions(
            source=source or COMMAND_SOURCE,
            importance=js.clamp01(0.75 if importance is None else importance),
            veracity=veracity or "unknown",
            scope="bank",
            memory_type="fact",
            metadata=metadata,
            extract=True,
            extract_entities=True,
        )
        bank = self.writer()
        with bank.transaction():
            promote_before_trim(bank, incoming=1)
            stored = remember(bank, content, options)
        return {"backend": self.name, "stored": 1, "ids": [stored]}

    def describe(self) -> Mapping[str, Any]:
        """Return the status command's answer over the banks in scope."""
        rows = self._counted(self.edit_targets())
        found: dict[str, Any] = {
            "backend": self.name,
            "active": True,
            "writable": True,
            "searchable": True,
            "scope": self.config.scoping,
            "retainBank": self.retain_bank,
            "recallBanks": [target.name for target in self.recall_targets()],
            "workingCount": sum(row.working for row in rows),
            "episodicCount": sum(row.episodic for row in rows),
            "tripleCount": sum(row.triples for row in rows),
            "lastRecall": self.last_recall_block is not None,
            "database": reports.shown_path(self.target(self.retain_bank).path, self.home),
        }
        last = next((row.last_memory for row in rows if row.last_memory is not None), None)
        return found if last is None else found | {"lastMemory": last}

    def stats(self) -> str:
        """Return the stats table of the banks in scope; before :meth:`start` with the shared one."""
        return reports.stats_text(
            self._counted(self.edit_targets() if self.started else self.report_targets()), self.home
        )

    def diagnose(self) -> str:
        """Return the diagnostics table of the banks in scope and the shared one."""
        fresh = not self.started
        found = [
            reports.diagnose(target.path, target.name, self.banks.clock, missing_is_fresh=fresh)
            for target in self.report_targets()
        ]
        return reports.diagnose_text(found, self.home)

    def child(self, session_id: str, cwd: str) -> MnemopiChild:
        """Return a sub-agent's alias of this session."""
        return MnemopiChild(self, session_id, cwd)

    def _block_for(self, latest: str, messages: Sequence[Message]) -> str | None:
        query = conversation.compose_query(latest, messages, self.config.recall_context_turns)
        hits = self.recall(
            RecallRequest(conversation.cut_query(query, latest, self.config.recall_max_query_chars))
        ).hits
        return text.mnemopi_block(hits, self.banks.clock.now_ms(), conversation.strip_protocol) if hits else None

    def _counted(self, targets: Sequence[Target]) -> list[reports.BankStats]:
        """Return what banks hold; one that cannot be read is passed over, unless none can."""
        found, failed = [], None
        for target in targets:
            try:
                found.append(reports.bank_stats(target.path, target.name, self.banks.clock))
            except BankError as error:
                failed = error
                self.banks.notify("warning", text.bank_passed_over(target.name, error.message), "Mnemopi")
        if failed is not None and not found:
            raise failed
        return found

    def _quietly(self, retain: Callable[[], object]) -> None:
        self._unretained = None
        try:
            retain()
        except MemoryToolkitError as error:
            self._unretained = safe_line(f"{error}")
            log.warning("Mnemopi: automatic retention failed: bank=%s error=%s", self.retain_bank, error)


class MnemopiChild(MnemopiBackend):
    """A sub-agent's alias: the parent's banks and scope, its own id and folder in what it retains.

    It recalls and retains nothing by itself, and closes nothing of the parent's.
    """

    movable = False

    def __init__(self, parent: MnemopiSession, session_id: str, cwd: str) -> None:
        super().__init__(
            parent.config, parent.scope, parent.banks, cwd=parent.cwd, session_id=session_id, home=parent.home
        )
        self.parent = parent
        self.own_cwd = cwd

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Write items with the sub-agent's own id and folder."""
        return self.parent.retain_for(items, session_id=self.session_id, cwd=self.own_cwd)

    def context(self, recalled: str | None = None) -> str:
        """Return the parent's blocks."""
        return self.parent.context(recalled)

    def instructions(self, recalled: str | None = None) -> str:
        """Return the parent's instructions."""
        return self.parent.instructions(recalled)

    def finish(self, messages: Sequence[Message]) -> None:
        """Release nothing: the files are the parent's."""

    def close(self) -> None:
        """Release nothing: the files are the parent's."""


def open_backend(context: SessionContext) -> MnemopiSession:
    """Return the local engine for a session; nothing is opened or made yet."""
    config = mnemopi_config(context.settings, context.agent_dir, context.cwd)
    check_path(config.db_path, "mnemopi.dbPath")
    engine = engine_config(
        context.env,
        proactive_linking=config.proactive_linking,
        no_embeddings=config.no_embeddings,
        polyphonic_recall=config.polyphonic_recall,
        enhanced_recall=config.enhanced_recall,
    )
    banks = OpenBanks(
        clock=context.clock,
        ids=context.ids,
        config=engine,
        copies=state_path(context.agent_dir, "copies"),
        choice=choose(config, context.env, context.embedder, off=engine.no_embeddings, outgoing=context.outgoing),
        completion=context.completion or configured_completion(config),
        notify=context.notify,
    )
    made = MnemopiSession(
        config,
        mnemopi_scope(config, context.cwd),
        banks,
        cwd=context.cwd,
        session_id=context.session_id,
        home=context.env.get("HOME", ""),
    )
    made.token_limit = _token_limit(context)
    return made


def _token_limit(context: SessionContext) -> float:
    """Return the room for blocks as it is set, which may be less than the configuration's least."""
    limit: float = context.settings.get("mnemopi.injectionTokenLimit") or 0
    return limit
