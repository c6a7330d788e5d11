"""One agent session: its settings, its scope, its backend, its tools, and its turns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ipy_memory import text
from ipy_memory.backends import registry
from ipy_memory.backends.base import Backend, Cleared, Edit, Edited, RecallRequest, SessionContext
from ipy_memory.backends.filters import RecallFilter
from ipy_memory.credentials import Guard
from ipy_memory.errors import (
    EditRefusedError,
    MemoryNotFoundError,
    MemoryToolkitError,
    NoBackendError,
    NotInitialisedError,
    NotStoredError,
)
from ipy_memory.jscompat.dates import iso
from ipy_memory.model import RetainItem, ToolResult
from ipy_memory.session import rebinding, reports
from ipy_memory.session.turns import OWN_SOURCE, SETTINGS_SOURCE, Conversation, Notices, Pause
from ipy_memory.tools import (
    MEMORY_EDIT,
    RECALL,
    REFLECT,
    SPECS,
    Tool,
    check_input,
    check_limit,
    create_tool,
    given_items,
    run_recall,
    run_reflect,
    run_retain,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from sqlite_utils import Database

    from ipy_memory.backends.base import Operation, Reindexed, Vectors
    from ipy_memory.backends.trace import Trace
    from ipy_memory.clock import Clock, IdSource, Timers
    from ipy_memory.conversation import Message
    from ipy_memory.explore.why import Verdict
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Embedder, Failure, Memory
    from ipy_memory.session.reports import StatusRow
    from ipy_memory.settings.resolve import Settings
    from ipy_memory.settings.trust import Standing


class MemorySession(Conversation):
    """An agent session's memory, usable from any Python code.

    Make it with :func:`ipy_memory.open_session`. Everything is lazy: no file is opened and nothing is sent before
    the first call that needs it. Use it as a context manager, or call :meth:`close`.

    Attributes
    ----------
    session_id : str
        Id of this session, stored with what it retains.
    cwd : str
        Absolute working directory; the scope is derived from it.
    settings : Settings
        The resolved settings, each with its origin.
    messages : list of Message
        The conversation so far, kept by :meth:`turn`. A host that resumes a session puts the earlier part in.
    failures : list of Failure
        Items of earlier retains that were not stored.
    notices : Notices
        What the user should be told, oldest first; whoever shows a notice takes it out.
    show_at_once : callable or None
        Called when a notice should be shown before the work goes on.
    outgoing : Guard
        Watches what is sent; with ``outgoing.refuse`` a text that seems to hold a credential is not sent.
    panels : object or None
        What the panels on this session share, while there are any.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        cwd: str,
        agent_dir: str,
        env: Mapping[str, str],
        clock: Clock,
        ids: IdSource,
        timers: Timers,
        session_id: str,
        started: str | None = None,
        resumed: bool = False,
        embedder: Embedder | None = None,
        completion: Callable[[str], str | None] | None = None,
        trust: bool | None = None,
    ) -> None:
        super().__init__(clock)
        self.settings = settings
        self.cwd, self.agent_dir, self.env = cwd, agent_dir, env
        self.ids, self.timers = ids, timers
        self.session_id = session_id
        self.started, self.resumed = started or iso(clock.now_ms()), resumed
        self.embedder, self.completion = embedder, completion
        self.failures: list[Failure] = []
        self.notices = Notices()
        self.show_at_once: Callable[[], object] | None = None
        self.outgoing = Guard(self._tell_outgoing)
        self.panels: Any = None
        self.said_trust = trust
        self.key = os.urandom(8).hex()
        self.opened_in = settings.standing.folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MemorySession {self.session_id} on {self.chosen} in {self.cwd}>"

    # ---- the backend

    @property
    def chosen(self) -> str:
        """The value of ``memory.backend``, read at each call."""
        return str(self.settings.get("memory.backend"))

    @property
    def scoping(self) -> str:
        """The scoping mode in force; empty where there is none."""
        scope = self.backend.status().get("scope") if self.backend is not None else None
        return str(scope or "")

    def live_backend(self) -> Backend:
        """Return the backend in use.

        Raises
        ------
        NoBackendError
            No supported backend is chosen.
        NotInitialisedError
            The chosen backend has no state in this session.
        """
        chosen = self.chosen
        if chosen not in registry.names():
            usual = 'choose one with `%memory use mnemopi` or open_session(backend="mnemopi")'
            wanted = [one for one in self.settings.ignored() if one.name == "memory.backend"]
            trusting = [f"the project's files choose {one.agent}, which counts after %memory trust" for one in wanted]
            raise NoBackendError(
                f"No memory backend is chosen (memory.backend is {chosen}).", hint="; ".join([usual, *trusting])
            )
        if self.backend is None or self.backend.name != chosen:
            raise NotInitialisedError(text.not_initialised(registry.title(chosen)), hint="open the session again")
        return self.backend

    def _surroundings(self, settings: Settings | None = None, cwd: str | None = None) -> SessionContext:
        """Return what a backend of this session is made from, under other settings or in another folder."""
        return SessionContext(
            settings=settings or self.settings,
            cwd=cwd or self.cwd,
            agent_dir=self.agent_dir,
            env=self.env,
            clock=self.clock,
            ids=self.ids,
            timers=self.timers,
            session_id=self.session_id,
            started=self.started,
            resumed=self.resumed,
            outgoing=self.outgoing,
            notify=self.notify,
            owns=lambda backend: self.backend is backend,
            embedder=self.embedder,
            completion=self.completion,
        )

    def install_backend(self) -> None:
        """Make the backend that the settings choose, and close the one before; nothing is opened or sent yet."""
        if self.backend is not None:
            self.backend.close()
        self.backend = registry.resolve_backend(self._surroundings())
        self.begun = False
        self._count_recalls()

    # ---- the tools

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that exist for the chosen backend, by name."""
        url = str(self.settings.get("hindsight.apiUrl") or "").strip()
        made = {name: create_tool(name, self, backend=self.chosen, api_url=url) for name in SPECS}
        return {name: tool for name, tool in made.items() if tool is not None}

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        touch: bool = True,
        bank: str | None = None,
        ranking: str = "agent",
        as_agent_start: bool = False,
        as_of: str | None = None,
        where: RecallFilter | Mapping[str, Any] | None = None,
        cancel: Event | None = None,
        traces: list[Trace] | None = None,
    ) -> ToolResult:
        """Search memory as the agent would, or by the ranking `best`.

        Parameters
        ----------
        query
            Taken literally.
        limit
            The most hits to give; the configured limit by default.
        touch
            Whether recall counts are updated, as the agent's own tool does.
        bank
            Ask this one bank, read-only, instead of the scope.
        ranking
            ``"agent"``, or ``"best"``: it finds what the agent misses, and counts nothing
            (see :func:`ipy_memory.explore.best.best`).
        as_agent_start
            Answer as the agent does after its next start, which consolidates old memories; from private copies.
        as_of
            Answer as at this earlier date or time, from what the banks held then; from private copies.
        where
            Filters by name: ``source``, ``author``, ``since``, ``until`` and ``at`` on local banks; ``tag``, ``type``,
            ``budget``, ``tokens`` and ``at`` on a server (see :class:`ipy_memory.backends.filters.RecallFilter`). A
            recall with any counts nothing.
        cancel
            Set it from elsewhere to stop the work.
        traces
            Receives the local engine's account of each call, for :func:`ipy_memory.explore.explain.explain`.

        Returns
        -------
        ToolResult
            The exact text, and the hits (``.frame()``).

        Raises
        ------
        NotSupportedError
            The backend or the ranking cannot honour one of the filters.
        """
        check_input(RECALL, {"query": query})
        asked = RecallFilter.of(where)
        request = RecallRequest(query, check_limit(RECALL, limit), touch and asked is None, cancel, traces, asked)
        if as_agent_start or as_of is not None or ranking != "agent":
            from ipy_memory.explore.best import ranked_recall

            return self._noted(
                ranked_recall(self, request, bank=bank, ranking=ranking, at_start=as_agent_start, as_of=as_of)
            )
        backend = self.live_backend()
        if asked is not None:
            asked.check(backend.title or backend.name, backend.filters)
        if bank is not None:
            found = run_recall(self, request, backend=backend.one_bank(bank))
        else:
            found = self._before_start(run_recall(self, request))
        return self._noted(found if asked is None else found.with_notes([asked.note]))

    def reflect(
        self, query: str, context: str | None = None, *, touch: bool = True, bank: str | None = None
    ) -> ToolResult:
        """Answer a question from memory as a whole; the hits it used are in the result."""
        check_input(REFLECT, {"query": query} if context is None else {"query": query, "context": context})
        backend = self.live_backend().one_bank(bank) if bank is not None else None
        return self._noted(run_reflect(self, query, context, backend=backend, count=touch))

    def retain(
        self,
        items: str | RetainItem | Mapping[str, str] | Sequence[str | RetainItem | Mapping[str, str]],
        context: str | None = None,
    ) -> ToolResult:
        """Store one or more items.

        Parameters
        ----------
        items
            A text, a :class:`RetainItem` or a mapping ``{content, context?}``, or a list of those.
        context
            Where the items come from, for those that do not say.

        Raises
        ------
        NotStoredError
            Anything was not stored; what could be stored is.
        """
        wanted = given_items(items, context)
        result = run_retain(self, wanted)
        if result.receipt and (failures := result.receipt.failures):
            self.failures += failures
            raise NotStoredError(
                text.not_stored_text(len(failures), len(wanted), result.receipt.bank, str(failures[0].error)),
                [(failure.index, failure.content, failure.error) for failure in failures],
                hint="the items are kept in session.failures",
            )
        return self._noted(result)

    def edit_memory(self, **given: Any) -> ToolResult:
        """Carry out the ``memory_edit`` tool: ``op``, ``id`` and what the operation needs."""
        check_input(MEMORY_EDIT, given)
        return self.live_backend().edit(Edit(**given))

    # ---- one memory

    def change(self, op: Operation, id: str, **how: Any) -> Edited:  # noqa: A002  the name that recall shows
        """Edit one memory with the safeguards of a user's command.

        Parameters
        ----------
        op
            ``"update"``, ``"invalidate"`` or ``"forget"``.
        id
            As recall shows it.
        how
            The other fields of :class:`~ipy_memory.backends.base.Edit`: ``content`` and ``importance`` of an update,
            ``replacement_id``, ``base``, ``force``, ``purge``, ``dry_run``, ``bank``.

        Returns
        -------
        Edited
            How it went, and the memory as it was before; for :meth:`undo`.

        Raises
        ------
        MemoryNotFoundError
            No bank in scope has a memory of this id that can be changed so; where a bank out of scope has it, the
            message names that bank.
        EditRefusedError
            It is a fact, or the edit would lose text.
        """
        edit = Edit(op, id, **how)
        given = {"content": edit.content, "importance": edit.importance, "replacement_id": edit.replacement_id}
        check_input(
            MEMORY_EDIT, {"op": op, "id": id} | {name: value for name, value in given.items() if value is not None}
        )
        done = self.live_backend().change(edit)
        if done.status == "not_found":
            raise MemoryNotFoundError(done.text, hint="%memory browse lists ids; only working memories can be changed")
        if done.status == "not_editable":
            raise EditRefusedError(
                done.text, hint="facts are made from memories: change or forget the memory that it came from"
            )
        return done

    def undo(self, done: Edited, *, force: bool = False) -> bool:
        """Undo an update or an invalidation; return whether the memory was still there.

        Raises
        ------
        ChangedSinceError
            It was changed again since; ``force`` writes the former values all the same.
        """
        return self.live_backend().undo(done, force=force)

    def memory(self, id: str, *, bank: str | None = None) -> Memory:  # noqa: A002  the name that recall shows
        """Return one memory in full, from a bank in scope or from one that is named.

        Raises
        ------
        MemoryNotFoundError
            There is none of this id; where a bank out of scope has it, the message names that bank.
        """
        return self.live_backend().memory(id, bank)

    def memories(
        self,
        bank: str | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        store: str | Sequence[str] | None = None,
        limit: int | None = 1000,
        offset: int = 0,
    ) -> DataFrame:
        """Return stored memories as a frame, newest first (see :func:`ipy_memory.explore.browse.memories`)."""
        from ipy_memory.explore.browse import memories

        return memories(self, bank, where, store=store, limit=limit, offset=offset)

    def database(self, bank: str | None = None) -> Database:
        """Return a bank as a read-only ``sqlite_utils.Database`` (see :func:`ipy_memory.session.reports.database`)."""
        return reports.database(self, bank)

    def audit(
        self,
        kinds: Sequence[str] = (),
        *,
        bank: str | None = None,
        accept: Sequence[str] = (),
        baseline: DataFrame | str | Path | None = None,
    ) -> DataFrame:
        """Return what there is to clean up in memory as a frame (see :func:`ipy_memory.explore.audit.audited`)."""
        from ipy_memory.explore.audit import audit

        return audit(self, kinds, bank=bank, accept=accept, baseline=baseline)

    def why(self, id: str, query: str, *, limit: int | None = None) -> Verdict:  # noqa: A002
        """Tell why a memory comes back for a query, or does not (see :func:`ipy_memory.explore.why.why`)."""
        from ipy_memory.explore.why import why

        return why(self, id, query, limit=limit)

    def read(self, address: str) -> str:
        """Return what ``memory://<id>`` shows; a bare id is taken as its address."""
        url = address if text.is_address(address) else f"memory://{address}"
        if (backend := self.active_backend) is not None and backend.addressable:
            return backend.read(url)
        raise MemoryToolkitError(
            text.unreadable(url, self.chosen), hint="%memory show reads local banks: %memory use mnemopi chooses them"
        )

    def show(self, id: str, *, bank: str | None = None) -> str:  # noqa: A002  the name that recall shows
        """Return the page of one memory as the user reads it, also from a bank out of scope that is named."""
        id_ = text.bare_id(id)
        if id_ in ("", "root") or (backend := self.active_backend) is None or not backend.addressable:
            return self.read(id)
        return backend.page(id_, bank)

    def child(self, *, session_id: str | None = None, cwd: str | None = None) -> MemorySession:
        """Return the session of a sub-agent: this session's banks, scope and queue under its own id."""
        child = MemorySession(
            self.settings,
            cwd=cwd or self.cwd,
            agent_dir=self.agent_dir,
            env=self.env,
            clock=self.clock,
            ids=self.ids,
            timers=self.timers,
            session_id=session_id or f"nb-{self.ids.token()}",
        )
        child.pauses = Pause(self.pauses)
        if self.backend is not None:
            child.backend = self.backend.child(child.session_id, child.cwd)
        return child

    # ---- the agent's memory command, reports, vectors

    def search(self, query: str, limit: float | None = None) -> Mapping[str, Any]:
        """Search as the agent's memory command does: at most 50 items, 10 by default."""
        return reports.search(self, query, limit)

    def save(self, content: str, **options: Any) -> Mapping[str, Any]:
        """Store one memory as the agent's memory command does."""
        return reports.save(self, content, **options)

    def describe(self) -> Mapping[str, Any]:
        """Return the answer of the agent's memory status command."""
        return reports.describe(self)

    def stats(self) -> str:
        """Return the table of counts of the banks in scope; reads only."""
        return self._report().stats()

    def diagnose(self) -> str:
        """Return the table of checks of the banks in scope; reads only."""
        return self._report().diagnose()

    def _report(self) -> Backend:
        # Reports are also given without a state: from the settings alone.
        if backend := self.active_backend or registry.resolve_backend(self._surroundings()):
            return backend
        raise MemoryToolkitError(
            f"There are no banks to report on; memory.backend is {self.chosen}.",
            hint="choose a backend with %memory use mnemopi, or hindsight",
        )

    def vectors(self) -> Vectors:
        """Return which vectors the banks in scope hold, and what computes them; reads only."""
        backend = self.live_backend()
        if (found := backend.vectors()) is None:
            raise backend.no_vectors()
        return found

    def reindex_vectors(
        self,
        bank: str | None = None,
        *,
        missing_only: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Sequence[Reindexed]:
        """Compute vectors again; old ones stay until there are new ones.

        Parameters
        ----------
        bank
            One bank by name; by default the session's own.
        missing_only
            Skip memories that have a vector of the model in use.
        progress
            Told how many of how many memories of a bank are done.

        Raises
        ------
        EmbeddingError
            There is no embedder, or it gave no vector.
        """
        return self.live_backend().reindex_vectors(bank, missing_only=missing_only, progress=progress)

    def fetch_model(self) -> str:
        """Fetch the files of the configured local model, the one thing that ever does so; return what was done."""
        return self.live_backend().fetch_model(self.env)

    def provenance(self, query: str) -> dict[str, Any]:
        """Return what a frame's ``attrs`` say of where an answer came from."""
        scope = self.backend.status().get("scope") if self.backend else None
        return {
            "query": query,
            "backend": self.chosen,
            "scope": scope,
            "banks": [],
            "as_of": iso(self.clock.now_ms()),
        }

    def status(self) -> list[StatusRow]:
        """Return the session in rows: backend, scope, banks, place, vectors, settings with their origins."""
        return reports.session_rows(self)

    # ---- notices

    def notify(self, level: str, message: str, source: str, hint: str = "") -> None:
        """Keep a notice for the user, and log it."""
        self.notices.tell(level, message, source, hint)

    def _tell_outgoing(self, message: str) -> None:
        self.notify("warning", message, OWN_SOURCE)
        if self.show_at_once is not None:
            self.show_at_once()

    def _noted(self, result: ToolResult) -> ToolResult:
        """Add to an answer the notices on settings that were not shown yet."""
        told = self.notices.take(SETTINGS_SOURCE)
        return result.with_notes(notice.text for notice in told) if told else result

    def _before_start(self, result: ToolResult) -> ToolResult:
        """Add what the agent will do to its banks before it recalls."""
        from ipy_memory.explore.agent_start import due_at_start

        due = due_at_start(self)
        return result.with_notes([text.due_at_start(due)]) if due else result

    # ---- settings, folder, trust

    def change_settings(self, changes: Mapping[str, object]) -> None:
        """Change settings while the session lives (see :func:`ipy_memory.session.rebinding.change_settings`)."""
        rebinding.change_settings(self, changes)

    def read_settings(self, cwd: str | None = None) -> Settings:
        """Return the settings as files and environment give them now, for a folder, under what was given in code."""
        return rebinding.read_settings(self, cwd or self.cwd)

    def rebind(self, cwd: str | os.PathLike[str] | None = None, changes: Mapping[str, object] | None = None) -> None:
        """Go on in another folder or another scope (see :func:`ipy_memory.session.rebinding.rebind`)."""
        rebinding.rebind(self, cwd, changes or {})

    def rescope(self, mode: str) -> None:
        """Go on in another scoping mode (see :func:`ipy_memory.session.rebinding.rescope`)."""
        rebinding.rescope(self, mode)

    def trust_folder(self, folder: str | os.PathLike[str] | None = None) -> Standing:
        """Trust a folder to decide where memories go (see :func:`ipy_memory.session.rebinding.trust_folder`)."""
        return rebinding.trust_folder(self, folder)

    def revoke_trust(self, folder: str | os.PathLike[str] | None = None) -> bool:
        """End the trust of a folder, by default the session's own; return whether it was trusted."""
        return rebinding.revoke_trust(self, folder)

    # ---- clearing and closing

    def clear_files(self, *, rescued: Sequence[str] = ()) -> list[Path]:
        """Return the bank files that :meth:`clear` would empty; none where the banks are on a server."""
        return self._clearable().clear_files(rescued=rescued)

    def clear(self, *, rescued: Sequence[str] = (), backup: bool = True) -> Cleared:
        """Clear the session's memory.

        Local banks in scope are emptied, rescued ones only if named; their files stay, so that another process that
        has one open loses nothing that it stores later. Of a Hindsight session the local state is dropped; the
        server's bank stays.

        Parameters
        ----------
        rescued
            Names of legacy banks that are to go too.
        backup
            Copy each bank first, in the same transaction; if that fails, nothing is cleared.
        """
        backend = self._clearable()
        try:
            return backend.clear(rescued=rescued, backup=backup)
        finally:
            if backend.detaches:
                # After an interrupt too: its queue takes nothing more, so it must not pass for one in use.
                self.backend = None

    def _clearable(self) -> Backend:
        if backend := self.active_backend:
            return backend
        raise NoBackendError("There is no memory to clear: no backend is in use.", hint="choose one first")

    def flush(self) -> object:
        """Wait for everything that is running or pending; return what the backend reports of it."""
        return None if self.backend is None else self.backend.flush()

    def finish(self, messages: Sequence[Message]) -> None:
        """End a session whose conversation the caller keeps: store what its end stores, and close."""
        try:
            if self.backend is not None:
                self.backend.finish(() if self.paused else self._kept(messages))
        finally:
            self.backend = None

    def close(self) -> None:
        """Finish pending work and release all resources. Idempotent.

        Of the conversation that :meth:`turn` keeps, what is not yet retained is stored first where the backend
        does so at a session's end.
        """
        self.finish(self.messages)
