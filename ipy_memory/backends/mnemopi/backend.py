"""The local engine as a session's backend: recall over the scope, retain, reflect, edit, read."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipy_memory import text
from ipy_memory.backends.base import Edit, Edited, RecallRequest, Reindexed, Vectors
from ipy_memory.backends.mnemopi.admin import stats
from ipy_memory.backends.mnemopi.admin import vectors as vector_report
from ipy_memory.backends.mnemopi.by_id import MemoriesById
from ipy_memory.backends.mnemopi.consolidation.sleep import promote_before_trim
from ipy_memory.backends.mnemopi.db import copies
from ipy_memory.backends.mnemopi.db.connection import connect_readonly
from ipy_memory.backends.mnemopi.embeddings.selection import check_answers, fetch_for, reindex_banks
from ipy_memory.backends.mnemopi.pool import READ, TOUCH, WRITE, OpenBanks, Target, alone, name_in_file
from ipy_memory.backends.mnemopi.recall import query_terms, scoring
from ipy_memory.backends.mnemopi.recall.candidates import DAMAGED
from ipy_memory.backends.mnemopi.recall.multi_bank import ScopedAnswer, Unopened, scoped_recall
from ipy_memory.backends.mnemopi.recall.single_bank import touch
from ipy_memory.backends.mnemopi.store.llm import RemoteCompletion
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.backends.trace import Step, Trace
from ipy_memory.errors import BankError, BankNotFoundError, MemoryToolkitError, ReadOnlyBankError
from ipy_memory.model import Answer, Failure, Receipt, RetainItem, ToolResult
from ipy_memory.paths import exists
from ipy_memory.scoping.modes import BankScope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from sqlite3 import Connection

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.settings.resolve import MnemopiConfig

log = logging.getLogger("ipy_memory")

_MOST_HITS = 1_000_000
"""What a larger limit amounts to: SQLite counts no further than its own integers."""

FACTS_LEFT_OUT = "Facts are left out: the engine cannot filter them."

_PART = 500
"""How many items are written between two looks at the room that is left."""


class MnemopiBackend(MemoriesById):
    """One session on local bank files: the tools' verbs over :class:`MemoriesById`.

    Parameters
    ----------
    config
        The ``mnemopi.*`` settings.
    scope
        The banks written and read.
    banks
        Opens the files.
    cwd, session_id
        Of the session; they go into what it retains.
    home
        Home folder, shown as ``~``.
    """

    name, title, addressable = "mnemopi", "Mnemopi", True
    filters = frozenset({"source", "author", "since", "until", "at"})

    def __init__(
        self, config: MnemopiConfig, scope: BankScope, banks: OpenBanks, *, cwd: str, session_id: str, home: str
    ) -> None:
        super().__init__(config, scope, banks, cwd=cwd, home=home)
        self.session_id = session_id
        self.last_recall_block: str | None = None

    @property
    def counting(self) -> bool:
        """Whether recalls are counted, for every session on these banks."""
        return self.banks.counting

    @counting.setter
    def counting(self, on: bool) -> None:
        self.banks.counting = on

    def recall(self, request: RecallRequest) -> Answer:
        """Return the merged hits of every bank in scope."""
        with self.banks.lock:
            found = self.ask(request)
            notes = [text.bank_failed(bank, str(error)) for bank, error in found.failures]
            notes += [text.index_damaged(bank.name) for bank in self.banks.all() if bank.memo.pop(DAMAGED, None)]
            notes += [text.cells_cut(bank.name, sum(bank.large.values())) for bank in self.banks.all() if bank.large]
            notes += [text.uncounted(bank) for bank in found.uncounted]
            notes += [text.bank_renamed(name, written) for name, written in self.renamed.items()]
            if len(request.query) > scoring.LONG_QUERY:
                notes.append(text.long_query(query_terms.FTS_TOKENS))
            elif late := query_terms.unread(request.query):
                notes.append(text.words_not_read(late))
            if request.where is not None and request.where.chooses_rows:
                notes.append(FACTS_LEFT_OUT)
            notes += vector_report.notes(self.banks.choice, self.banks.all())
            if not found.hits and self._dropped_all(request):
                notes.append(text.ALL_BELOW_FLOOR)
            asked = tuple(target.name for target in self.recall_targets())
        return Answer(found.hits, banks=asked, notes=tuple(notes))

    def _dropped_all(self, request: RecallRequest) -> bool:
        """Return whether a recall without hits had candidates that fell below the floor."""
        traces: list[Trace] = []
        self.ask(replace(request, count=False, traces=traces))
        return any(one.step is Step.BELOW_FLOOR for trace in traces for one in trace.candidates.values())

    def ask(self, request: RecallRequest, *, watch: Sequence[str] = ()) -> ScopedAnswer:
        """Return what every bank in scope answers, merged and apart."""
        tagged = self.config.scoping == "per-project-tagged"
        with self.banks.lock:
            count = request.count and self.counting and request.where is None
            need = TOUCH if count else READ
            return scoped_recall(
                list(filter(None, (self._opened(target, need) for target in self.recall_targets()))),
                request.query,
                min(request.limit or self.config.recall_limit, _MOST_HITS),
                project_bank=self.scope.retain_bank if tagged else None,
                shared_bank=self.scope.global_bank if tagged else None,
                should_touch=count,
                cancel=request.cancel,
                traces=request.traces,
                watch=watch,
                where=request.where,
            )

    def reflect(self, query: str, context: str | None = None, *, count: bool = True) -> Answer:
        """Return an overview of what a recall of the query (and the context) finds."""
        answer = self.recall(RecallRequest(text.reflect_query(query, context), count=count))
        return replace(answer, text=text.reflect_text(answer.hits) if answer.hits else None)

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Write the items to the retain bank; what was retained before is promoted, never trimmed."""
        return self.retain_for(items, session_id=self.session_id, cwd=self.cwd)

    @alone
    def retain_for(self, items: Sequence[RetainItem], *, session_id: str, cwd: str) -> Receipt:
        """Write items under another session's id and folder, such as a sub-agent's."""
        made = self._is_missing(self.target(self.retain_bank).path)
        try:
            bank = self.writer()
            with bank.transaction():
                parts = [
                    self._retain_part(bank, items[start : start + _PART], start, session_id, cwd)
                    for start in range(0, len(items), _PART)
                ]
        except MemoryToolkitError as error:
            log.warning("retain failed: backend=%s bank=%s error=%s", self.name, self.retain_bank, error)
            return _none_stored(items, self.retain_bank, error)
        return Receipt(
            len(items),
            self.retain_bank,
            "stored",
            ids=tuple(id_ for part in parts for id_ in part.ids),
            failures=tuple(failure for part in parts for failure in part.failures),
            redacted=sum(part.redacted for part in parts),
            duplicates=sum(part.duplicates for part in parts),
            notes=(text.new_bank(self.retain_bank, stats.shown_path(self.cwd, self.home)),) if made else (),
            new_bank=made,
        )

    def _is_missing(self, path: Path) -> bool:
        """Return whether a project's bank has yet to be made; the agent leaves empty files where it only looked."""
        if self.config.scoping == "global":
            return False
        try:
            return not path.stat().st_size
        except OSError:
            return not exists(path)

    def _retain_part(self, bank: Bank, items: Sequence[RetainItem], start: int, session_id: str, cwd: str) -> Receipt:
        # Room is made in steps: what is over the engine's limit is consolidated, so that no write, of the agent's
        # either, can ever trim it.
        promote_before_trim(bank, incoming=len(items))
        receipt = retain_items(bank, items, session_id=session_id, cwd=cwd)
        return replace(receipt, failures=tuple(replace(one, index=one.index + start) for one in receipt.failures))

    def one_bank(self, name: str) -> MnemopiBackend:
        """Return a backend that reads just one bank under the database folder and writes nothing.

        Raises
        ------
        BankNotFoundError
            There is none of this name; the message names those that are near.
        """
        return OneBankBackend(self, self.named_rows(name))

    @alone
    def one_file(self, path: Path) -> MnemopiBackend:
        """Return a backend that reads just one bank file, wherever it lies, and writes nothing.

        Raises
        ------
        BankError
            The file is not a bank, or cannot be read.
        """
        target = Target(name_in_file(path, self.banks.clock), path)
        self.banks.get(target, READ)
        return OneBankBackend(self, target)

    def connect(self, bank: str | None = None) -> Connection:
        """Return a connection of its own to a bank's file, by default the one that is written; for reading only.

        Raises
        ------
        BankError
            There is no such bank, or its file cannot be read.
        """
        target = self.target(self.retain_bank) if bank is None else self.named_target(bank)
        if not exists(target.path):
            raise BankNotFoundError("The bank has no file yet.", where=target.name, hint="the first retain makes it")
        connection = connect_readonly(target.path, target.name)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def status(self) -> Mapping[str, Any]:
        """Return the scope, the banks, the file and whether vectors are used; opens nothing for writing."""
        return {
            "scope": self.config.scoping,
            "retain bank": self.retain_bank,
            "recall banks": [target.name for target in self.recall_targets()],
            "database": stats.shown_path(self.target(self.retain_bank).path, self.home),
            "vectors": vector_report.state(self.banks.choice),
            "language model": self._language_model(),
            "warning": " ".join(copies.warnings_of(self.target(self.retain_bank).path)) or None,
            "waiting": self.banks.waiting or None,
        }

    @alone
    def flush(self) -> int:
        """Do the work that waits: vectors, and facts read by a language model; return how much is left."""
        return self.banks.drain()

    @alone
    def close(self) -> None:
        """Finish waiting work and close every file."""
        try:
            self.flush()
            for bank in self.banks.all():
                if bank.uncounted:
                    touch(bank, {})
        finally:
            self.banks.close()

    def _language_model(self) -> str | None:
        if self.config.llm_mode != "remote":
            return None
        if (model := self.banks.completion) is None:
            return "not in use: set mnemopi.llmBaseUrl and mnemopi.llmModel"
        return f"in use: {model.model}, {model.place}" if isinstance(model, RemoteCompletion) else "in use"

    @alone
    def vectors(self) -> Vectors:
        """Return which vectors the banks in scope hold, and what computes them; reads only."""
        model = embedder.model if (embedder := self.banks.choice.embedder) else None
        counted = []
        for target in self.recall_targets():
            with suppress(BankError):
                if bank := self.banks.get(target, READ):
                    counted.append(vector_report.bank_vectors(bank, model))
        return vector_report.report(self.banks.choice, counted)

    @alone
    def reindex_vectors(
        self,
        bank: str | None = None,
        *,
        missing_only: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[Reindexed]:
        """Compute vectors again in the session's own banks, or in one that is named; each is copied first.

        Raises
        ------
        EmbeddingError
            There is no embedder, or it gave no vector; what was stored before stays.
        """
        own = [target for target in self.own_targets() if exists(target.path)]
        targets = [self.named_target(bank)] if bank is not None else own
        check_answers(self.banks.choice)
        found = [one for target in targets if (one := self.banks.get(target, WRITE))]
        return reindex_banks(found, self._copy, missing_only=missing_only, progress=progress)

    def fetch_model(self, env: Mapping[str, str]) -> str:
        """Fetch the files of the configured local model; return what was done.

        Raises
        ------
        EmbeddingError
            They could not be fetched, or an endpoint computes the vectors.
        """
        return fetch_for(self.config.embedding_model, self.banks.choice, env)

    def writer(self) -> Bank:
        """Return the retain bank, made if it is not there."""
        bank = self.banks.get(self.target(self.retain_bank), WRITE)
        if bank is None:
            raise BankNotFoundError(
                "The bank's file vanished while it was opened.",
                where=self.retain_bank,
                hint="find out who deletes it, then try again",
            )
        return bank

    def _copy(self, bank: Bank) -> Path:
        self.back_up_once(bank)
        return self.backups[bank.path]

    def _opened(self, target: Target, need: int) -> Bank | Unopened | None:
        try:
            return self.banks.get(target, need)
        except BankError as error:
            return Unopened(target.name, error)


class OneBankBackend(MnemopiBackend):
    """A backend that reads one bank file and writes nothing, not even recall counts."""

    movable = False

    def __init__(self, session: MnemopiBackend, target: Target) -> None:
        scope = BankScope(target.name, target.name, target.name, target.name, (target.name,))
        config = replace(session.config, db_path=str(target.path), scoping="global")
        super().__init__(
            config, scope, session.banks, cwd=session.cwd, session_id=session.session_id, home=session.home
        )

    def _dropped_all(self, request: RecallRequest) -> bool:
        """Return whether a recall without hits had candidates that fell below the floor."""
        traces: list[Trace] = []
        self.ask(replace(request, count=False, traces=traces))
        return any(one.step is Step.BELOW_FLOOR for trace in traces for one in trace.candidates.values())

    def ask(self, request: RecallRequest, *, watch: Sequence[str] = ()) -> ScopedAnswer:
        """Return what the bank answers; an unreadable or missing one is an error."""
        return super().ask(replace(request, count=False), watch=watch)

    def reindex_vectors(self, bank: str | None = None, **_: Any) -> list[Reindexed]:  # noqa: ARG002
        """Refuse: the bank was opened for reading."""
        raise self._refusal()

    def writer(self) -> Bank:
        """Refuse: the bank was opened for reading."""
        raise self._refusal()

    def edit(self, edit: Edit) -> ToolResult:  # noqa: ARG002
        """Refuse: the bank was opened for reading."""
        raise self._refusal()

    def change(self, edit: Edit) -> Edited:
        """Refuse, unless it is only asked how an edit would go."""
        if not edit.dry_run:
            raise self._refusal()
        return super().change(edit)

    def undo(self, *_: Any, **__: Any) -> bool:
        """Refuse: the bank was opened for reading."""
        raise self._refusal()

    def _refusal(self) -> ReadOnlyBankError:
        return ReadOnlyBankError(
            "The bank was opened for reading only.",
            where=self.retain_bank,
            hint="work in a folder whose scope writes this bank, or end %memory open with %memory use mnemopi",
        )


def _none_stored(items: Sequence[RetainItem], bank: str, error: Exception) -> Receipt:
    failures = tuple(Failure(index, item.content, error) for index, item in enumerate(items))
    return Receipt(len(items), bank, "stored", (None,) * len(items), failures)
