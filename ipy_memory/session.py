"""One agent session: its settings, its scope, its backend and its tools."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakValueDictionary

from ipy_memory import text
from ipy_memory.backends.base import (
    SUPPORTED,
    TITLES,
    Addressable,
    Backend,
    BankChoosing,
    Commanded,
    Editable,
    Parental,
    Reporting,
    VectorKeeping,
    resolve_backend,
)
from ipy_memory.clock import ProcessIds, SystemClock, SystemTimers
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
from ipy_memory.paths import check_path, here, typed_path
from ipy_memory.ranking import RANKINGS
from ipy_memory.scoping.project import resolve_path
from ipy_memory.session_turns import SETTINGS_SOURCE, Pause, SessionLife, with_absolute_paths
from ipy_memory.settings.resolve import agent_directory, load_settings
from ipy_memory.settings.table import SETTINGS
from ipy_memory.settings.trust import read_sources, real_folder, remove_trusted, trust_folder
from ipy_memory.tools import (
    MEMORY_EDIT,
    RECALL,
    REFLECT,
    RETAIN,
    SPECS,
    Tool,
    as_items,
    check_input,
    check_limit,
    create_tool,
    run_recall,
    run_reflect,
    run_retain,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from ipy_memory.backends.mnemopi.admin.vectors import Vectors
    from ipy_memory.backends.mnemopi.embeddings.selection import Reindexed
    from ipy_memory.backends.mnemopi.recall.tracing import Trace
    from ipy_memory.backends.mnemopi.store.edit import Edited, Operation
    from ipy_memory.clock import Clock, IdSource, Timers
    from ipy_memory.explore.why import Verdict
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Embedder, Memory
    from ipy_memory.settings.trust import Standing

log = logging.getLogger("ipy_memory")


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One line of a status: what, its value as a person reads it, and where it comes from."""

    name: str
    value: str
    origin: str = ""


class MemorySession(SessionLife):
    """An agent session's memory, usable from any Python code.

    Make it with :func:`open_session`. Everything is lazy: no file is opened and nothing is sent before the first
    call that needs it. Use it as a context manager, or call :meth:`close`.

    Attributes
    ----------
    session_id : str
        Id of this session, stored with what it retains.
    cwd : str
        Absolute working directory; the scope is derived from it.
    settings : Settings
        The resolved settings, each with its origin.
    failures : list of Failure
        Items of earlier retains that were not stored (T-06).
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a worker process have this session: a forked child finds its own copy, another process opens it again."""
        return _session_of, (self._key, self._description())

    def _description(self) -> dict[str, Any] | None:
        """Return what :func:`open_session` needs to open this again elsewhere; ``None`` where that is not enough."""
        given = {name: entry.value for name, entry in self.settings.session.items()}
        usual = (type(self.clock), type(self.ids), type(self.timers)) == (SystemClock, ProcessIds, SystemTimers)
        alone = self.env is os.environ and self._embedder is None and self._completion is None
        if not (usual and alone) or any(SETTINGS[name].credential for name in given):
            return None
        return {
            "cwd": self.cwd,
            "agent_dir": self.agent_dir,
            "settings": given,
            "session_id": self.session_id,
            "started": self.started,
            "trust": self._trust_of(self.cwd),
        }

    def __repr__(self) -> str:
        return f"<MemorySession {self.session_id} on {self.chosen} in {self.cwd}>"

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that exist for the chosen backend, by name (R-02)."""
        url = str(self.settings.get("hindsight.apiUrl") or "").strip()
        made = {name: create_tool(name, self, backend=self.chosen, api_url=url) for name in SPECS}
        return {name: tool for name, tool in made.items() if tool is not None}

    def live_backend(self) -> Backend:
        """Return the backend in use.

        Raises
        ------
        NoBackendError
            No supported backend is chosen.
        NotInitialisedError
            The chosen backend has no state in this session (R-16, R-17).
        """
        chosen = self.chosen
        if chosen not in SUPPORTED:
            usual = 'choose one with `%memory use mnemopi` or open_session(backend="mnemopi")'
            wanted = [one for one in self.settings.ignored() if one.name == "memory.backend"]
            trusting = [f"the project's files choose {one.agent}, which counts after %memory trust" for one in wanted]
            raise NoBackendError(
                f"No memory backend is chosen (memory.backend is {chosen}).", hint="; ".join([usual, *trusting])
            )
        if self.backend is None or self.backend.name != chosen:
            raise NotInitialisedError(text.not_initialised(TITLES[chosen]), hint="open the session anew")
        return self.backend

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        touch: bool = True,
        bank: str | None = None,
        ranking: str = "agent",
        as_agent_start: bool = False,
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
            Whether recall counts are updated, as the agent's own tool does (R-34).
        bank
            Ask this one bank, read-only, instead of the scope.
        ranking
            ``"agent"``, or ``"best"``: it finds what the agent misses, and counts nothing
            (see :func:`ipy_memory.explore.best.best`).
        as_agent_start
            Answer as the agent does after its next start, which consolidates old memories; from private copies.
        cancel
            Set it from elsewhere to stop the work (R-25).
        traces
            Receives the local engine's account of each call, for :func:`ipy_memory.explore.explain.explain`.

        Returns
        -------
        ToolResult
            The exact text, and the hits (``.frame()``).
        """
        check_input(RECALL, {"query": query})
        limit = check_limit(RECALL, limit)
        if as_agent_start and (ranking == "best" or bank is not None):
            raise MemoryToolkitError(
                "As at the agent's start only the agent's own recall answers, over its whole scope.",
                hint="leave out the bank and the ranking",
            )
        if ranking == "best":
            from ipy_memory.explore.best import best

            return self._noted(best(self, query, limit=limit, bank=bank, cancel=cancel))
        if ranking not in RANKINGS:
            raise MemoryToolkitError(f"There is no ranking {ranking!r}.", hint=f"choose one of {', '.join(RANKINGS)}")
        if as_agent_start:
            from ipy_memory.explore.agent_start import recall_as_agent_start

            return self._noted(recall_as_agent_start(self, query, limit=limit, cancel=cancel, traces=traces))
        backend = self._one_bank(bank) if bank is not None else None
        found = run_recall(self, query, backend=backend, limit=limit, touch=touch, cancel=cancel, traces=traces)
        return self._noted(found if bank is not None else self._before_start(found))

    def reflect(
        self, query: str, context: str | None = None, *, touch: bool = True, bank: str | None = None
    ) -> ToolResult:
        """Answer a question from memory as a whole; the hits it used are in the result."""
        check_input(REFLECT, {"query": query} if context is None else {"query": query, "context": context})
        backend = self._one_bank(bank) if bank is not None else None
        return self._noted(run_reflect(self, query, context, backend=backend, touch=touch))

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
            Anything was not stored; what could be stored is (T-06).
        """
        listed = [items] if isinstance(items, str | RetainItem | Mapping) else items
        if not isinstance(listed, Iterable):
            check_input(RETAIN, {"items": listed})
        wanted = [_item(item, context) for item in listed]
        if not wanted:
            check_input(RETAIN, {"items": wanted})
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
        """Carry out the ``memory_edit`` tool: ``op``, ``id`` and what the operation needs (M-02 to M-04)."""
        check_input(MEMORY_EDIT, given)
        return self._addressable("memory_edit").edit(**given)

    def change(
        self,
        op: Operation,
        id: str,  # noqa: A002  the name that recall shows
        *,
        content: str | None = None,
        importance: float | None = None,
        replacement_id: str | None = None,
        base: str | None = None,
        force: bool = False,
        purge: bool = False,
        dry_run: bool = False,
        bank: str | None = None,
    ) -> Edited:
        """Edit one memory as a person does (M-06).

        Parameters
        ----------
        op
            ``"update"``, ``"invalidate"`` or ``"forget"``.
        id
            As recall shows it.
        content, importance
            What an update writes.
        replacement_id
            The memory that stands in for an invalidated one.
        base
            The text that was read before the edit, which is refused if the memory has another text by now.
        force
            Allow an update whose text is the memory's own cut preview.
        purge
            Leave no byte of a forgotten text in the file; the bank is not copied before.
        dry_run
            Only tell how it would go; nothing is opened for writing.
        bank
            This one bank of the database folder, in scope or not; by default those in scope.

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
        given = {"content": content, "importance": importance, "replacement_id": replacement_id}
        asked = {name: value for name, value in given.items() if value is not None}
        check_input(MEMORY_EDIT, {"op": op, "id": id, **asked})
        done = self._editable().change(
            op,
            id,
            content=content,
            importance=importance,
            replacement_id=replacement_id,
            base=base,
            force=force,
            purge=purge,
            dry_run=dry_run,
            bank=bank,
        )
        if done.status == "not_found":
            raise MemoryNotFoundError(done.text, hint="%memory browse lists ids; only working memories can be changed")
        if done.status == "not_editable":
            raise EditRefusedError(
                done.text, hint="facts are made from memories: change or forget the memory that it came from"
            )
        return done

    def undo(self, done: Edited, *, force: bool = False) -> bool:
        """Undo an update or an invalidation; tell whether the memory was still there.

        Only what the edit wrote is written back.

        Raises
        ------
        ChangedSinceError
            It was changed again since; ``force`` writes the former values all the same.
        """
        return self._editable().undo(done, force=force)

    def memory(self, id: str, *, bank: str | None = None) -> Memory:  # noqa: A002  the name that recall shows
        """Return one memory in full, from a bank in scope or from one that is named.

        Raises
        ------
        MemoryNotFoundError
            There is none of this id; where a bank out of scope has it, the message names that bank.
        """
        return self._addressable("reading a memory by its id").memory(id, bank)

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

    def why(self, id: str, query: str, *, limit: int | None = None) -> Verdict:  # noqa: A002
        """Tell why a memory comes back for a query, or does not (see :func:`ipy_memory.explore.why.why`)."""
        from ipy_memory.explore.why import why

        return why(self, id, query, limit=limit)

    def read(self, address: str) -> str:
        """Return what ``memory://<id>`` shows (R-13, M-05); a bare id is taken as its address."""
        url = address if text.is_address(address) else f"memory://{address}"
        backend = self.backend if self.chosen == "mnemopi" else None
        if isinstance(backend, Addressable):
            return backend.read(url)
        raise MemoryToolkitError(
            text.unreadable(url, self.chosen), hint="%memory show reads local banks: %memory use mnemopi chooses them"
        )

    def show(self, id: str, *, bank: str | None = None) -> str:  # noqa: A002  the name that recall shows
        """Return the page of one memory as the user reads it, also from a bank out of scope that is named."""
        id_ = text.bare_id(id)
        if id_ in ("", "root") or not isinstance(self.active_backend, Addressable):
            return self.read(id)
        return self._addressable("reading a memory by its id").page(id_, bank)

    def child(self, *, session_id: str | None = None, cwd: str | None = None) -> MemorySession:
        """Return the session of a sub-agent: this session's banks, scope and queue under its own id (S-12)."""
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
        child._pause = Pause(self._pause)
        _SESSIONS[child._key] = child
        if isinstance(self.backend, Parental):
            child.backend = self.backend.child(child.session_id, child.cwd)
        return child

    def search(self, query: str, limit: float | None = None) -> Mapping[str, Any]:
        """Search as the agent's memory command does: at most 50 items, 10 by default (M-07)."""
        backend = self._commanded()
        none = {"backend": self.chosen, "query": query, "count": 0, "items": []}
        return backend.search(query, limit) if backend else none | {"message": self._not_there("search")}

    def save(self, content: str, **options: Any) -> Mapping[str, Any]:
        """Store one memory as the agent's memory command does (M-07)."""
        self.check_not_paused()
        backend = self._commanded()
        none = {"backend": self.chosen, "stored": 0}
        return backend.save(content, **options) if backend else none | {"message": self._not_there("save")}

    def describe(self) -> Mapping[str, Any]:
        """Return the answer of the agent's memory status command (M-08)."""
        backend = self._commanded()
        if backend:
            return backend.describe()
        # Of a backend without a status of its own the agent says that it is active, whether it has a state or not.
        active = self.chosen not in ("off", "mnemopi")
        none = {"backend": self.chosen, "active": active, "writable": False, "searchable": False}
        return none | {"message": self._not_there("status")}

    def stats(self) -> str:
        """Return the table of counts of the banks in scope (M-08); reads only."""
        return self._report().stats()

    def diagnose(self) -> str:
        """Return the table of checks of the banks in scope (M-08); reads only."""
        return self._report().diagnose()

    def vectors(self) -> Vectors:
        """Return which vectors the banks in scope hold, and what computes them; reads only (B019, B023)."""
        return self._vector_keeping().vectors()

    def reindex_vectors(
        self,
        bank: str | None = None,
        *,
        missing_only: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Sequence[Reindexed]:
        """Compute vectors anew; old ones stay until there are new ones.

        Parameters
        ----------
        bank
            One bank by name; by default the session's own.
        missing_only
            Leave memories alone that have a vector of the model in use.
        progress
            Told how many of how many memories of a bank are done.

        Raises
        ------
        EmbeddingError
            There is no embedder, or it gave no vector.
        """
        return self._vector_keeping().reindex_vectors(bank, missing_only=missing_only, progress=progress)

    def fetch_model(self) -> str:
        """Fetch the files of the configured local model, the one thing that ever does so; return what was done."""
        return self._vector_keeping().fetch_model(self.env)

    def provenance(self, query: str) -> dict[str, Any]:
        """Return what a frame's ``attrs`` say of where an answer came from."""
        backend = self.backend
        return {
            "query": query,
            "backend": self.chosen,
            "scope": backend.status().get("scope") if backend else None,
            "banks": [],
            "as_of": iso(self.clock.now_ms()),
        }

    def status(self) -> list[StatusRow]:
        """Return the session in rows: backend, scope, banks, place, vectors, settings with their origins."""
        rows = [
            StatusRow("backend", self.chosen, self.settings.origin("memory.backend")),
            StatusRow("session", self.session_id),
            StatusRow("folder", self.cwd),
        ]
        if self.paused:
            rows.append(StatusRow("paused", "nothing is recorded, retained or counted; %memory resume ends it"))
        with suppress(FileNotFoundError):
            if (now := here()) != self.cwd:
                rows.append(StatusRow("note", f"the working directory is now {now}; the scope is of {self.cwd}"))
        if self.backend is not None:
            known = dict(self.backend.status())
            if isinstance(self.backend, VectorKeeping):
                known["vectors"] = self.backend.vectors().summary
            rows += [
                StatusRow(name, ", ".join(value) if isinstance(value, list | tuple) else str(value))
                for name, value in known.items()
                if value is not None
            ]
        return [*rows, *self._settings_rows()]

    def _settings_rows(self) -> list[StatusRow]:
        """Return what the user should know of the settings: whether the folder is trusted, and what is ignored."""
        settings, standing = self.settings, self.settings.standing
        rows = []
        if standing.state != "nothing":
            since = f" since {standing.since[:10]}" if standing.since else " in this session"
            words = {"trusted": f"yes,{since}", "untrusted": "no", "changed": "no longer: its guarded settings changed"}
            rows.append(StatusRow("trusted folder", words[standing.state], standing.folder))
        return rows + [StatusRow("settings", note) for note in settings.notes()]

    def trust_folder(self, folder: str | os.PathLike[str] | None = None) -> Standing:
        """Trust a folder to decide where memories go, as long as its guarded settings stay what they are.

        The folder is remembered, for other sessions too; this one follows at once if the folder is its own.

        Parameters
        ----------
        folder
            The folder; the session's own by default.

        Returns
        -------
        Standing
            Which settings of which files are trusted; none where the folder's files set nothing guarded.

        Raises
        ------
        MemoryToolkitError
            What the files say has changed since this session read them: look at it first. Or the list of trusted
            folders cannot be written.
        """
        named = self.cwd if folder is None else typed_path(os.fspath(folder), self.env)
        check_path(named, "the folder")
        own = real_folder(named) == real_folder(self.cwd)
        seen = self.settings.standing.guarded
        said = self._trust_of(self.cwd)
        if own and read_sources(self.agent_dir, named, self.env, [], trust=said).standing.guarded != seen:
            self.rebind()
            raise MemoryToolkitError(
                "The folder's settings have changed since they were read; it is not trusted yet.",
                where=named,
                hint="look at them, and trust it again",
            )
        standing = trust_folder(self.agent_dir, named, self.env, iso(self.clock.now_ms()))
        if own:
            self._trust = None
            # What was not shown yet was said of the folder before it was trusted.
            self.notices[:] = [notice for notice in self.notices if notice.source != SETTINGS_SOURCE]
            self.rebind()
        return standing

    def revoke_trust(self, folder: str | os.PathLike[str] | None = None) -> bool:
        """End the trust of a folder, by default the session's own; return whether it was trusted.

        Raises
        ------
        MemoryToolkitError
            The list of trusted folders cannot be read or written.
        """
        named = self.cwd if folder is None else typed_path(os.fspath(folder), self.env)
        own = real_folder(named) == real_folder(self.cwd)
        revoked = remove_trusted(self.agent_dir, named)
        if own:
            revoked |= self._trust_of(self.cwd) is True
            self._trust = None
            self.rebind()
        return revoked

    def _noted(self, result: ToolResult) -> ToolResult:
        """Add to an answer what nobody was told yet of the settings."""
        told = [notice for notice in self.notices if notice.source == SETTINGS_SOURCE]
        if not told:
            return result
        self.notices[:] = [notice for notice in self.notices if notice.source != SETTINGS_SOURCE]
        return result.with_notes(notice.text for notice in told)

    def _before_start(self, result: ToolResult) -> ToolResult:
        """Add what the agent will do to its banks before it recalls."""
        from ipy_memory.explore.agent_start import due_at_start

        due = due_at_start(self)
        return result.with_notes([text.due_at_start(due)]) if due else result

    def _one_bank(self, bank: str) -> Backend:
        backend = self.live_backend()
        if isinstance(backend, BankChoosing):
            return backend.one_bank(bank)
        raise MemoryToolkitError(
            "A sub-agent's session asks no other bank than its parent's.", hint="ask from the parent's session"
        )

    def _commanded(self) -> Commanded | None:
        return self.backend if isinstance(self.backend, Commanded) and self.backend.name == self.chosen else None

    def _not_there(self, command: str) -> str:
        if self.chosen == "mnemopi":
            return text.not_initialised(TITLES[self.chosen])
        return text.command_unavailable(command, self.chosen)

    def _report(self) -> Reporting:
        # Reports are also given without a state: from the settings alone.
        backend = self.active_backend or resolve_backend(self)
        if isinstance(backend, Reporting):
            return backend
        raise MemoryToolkitError(
            f"There are no local banks to report on; memory.backend is {self.chosen}.",
            hint="choose a backend with %memory use mnemopi, or hindsight",
        )

    def _editable(self) -> Editable:
        backend = self.live_backend()
        if isinstance(backend, Editable):
            return backend
        raise MemoryToolkitError(f"{TITLES[backend.name]} does not support editing.", hint="recall shows all there is")

    def _vector_keeping(self) -> VectorKeeping:
        backend = self.live_backend()
        if isinstance(backend, VectorKeeping):
            return backend
        raise MemoryToolkitError(
            f"{TITLES[backend.name]} keeps its vectors on the server.",
            hint="there is nothing to compute here; %memory diagnose looks at the server",
        )

    def _addressable(self, what: str) -> Addressable:
        backend = self.live_backend()
        if isinstance(backend, Addressable):
            return backend
        raise MemoryToolkitError(f"{TITLES[backend.name]} does not support {what}.", hint="recall shows all there is")


def open_session(
    backend: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    database: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    agent_dir: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    timers: Timers | None = None,
    session_id: str | None = None,
    started: str | None = None,
    resumed: bool | None = None,
    embedder: Embedder | None = None,
    completion: Callable[[str], str | None] | None = None,
    trust: bool | None = None,
) -> MemorySession:
    """Open an agent session on its memory; nothing is read, made or sent before it is needed.

    Parameters
    ----------
    backend
        ``"mnemopi"``, ``"hindsight"`` or ``"off"``; by default the setting ``memory.backend`` (itself ``off``).
    cwd
        Working directory that the scope is derived from; the process's own by default.
    database
        The shared Mnemopi bank's file; by default the setting ``mnemopi.dbPath``.
    settings
        Settings by dotted name; they win over files and environment (C-02).
    agent_dir
        The agent's folder; by default ``PI_CODING_AGENT_DIR``, else ``~/.omp/agent``.
    env
        Environment variables; the process's own by default.
    clock, ids, timers
        Other sources of time and ids (tests, documentation).
    session_id
        By default ``nb-`` and 12 hexadecimal digits.
    started
        Time stamp of the session's beginning; by default now.
    resumed
        Whether another process may have begun the session; by default so when a ``session_id`` is given. Its
        conversation goes into ``session.messages``; what is stored of it already is not stored again.
    embedder
        Computes vectors in place of the configured endpoint.
    completion
        A language model for fact extraction: prompt to answer.
    trust
        Whether the project's files may decide where memories go and which keys are used: for this session, and
        remembered nowhere. By default that counts what ``%memory trust`` or :meth:`MemorySession.trust_folder` said.

    Raises
    ------
    SettingsError
        A given setting does not exist or cannot have that value.
    """
    env = os.environ if env is None else env
    ids = ids or ProcessIds()
    folder = resolve_path(typed_path(os.fspath(cwd), env)) if cwd is not None else here()
    check_path(folder, "the project folder")
    agent = agent_directory(env) if agent_dir is None else typed_path(os.fspath(agent_dir), env)
    check_path(agent, "the agent's folder")
    given = with_absolute_paths(settings or {})
    if backend is not None:
        given["memory.backend"] = backend
    if database is not None:
        given["mnemopi.dbPath"] = typed_path(os.fspath(database), env)
    resolved = load_settings(agent, folder, env, given, trust=trust)
    session = MemorySession(
        resolved,
        cwd=folder,
        agent_dir=agent,
        env=env,
        clock=clock or SystemClock(),
        ids=ids,
        timers=timers or SystemTimers(),
        session_id=session_id or f"nb-{ids.token()}",
        started=started,
        resumed=session_id is not None if resumed is None else resumed,
        embedder=embedder,
        completion=completion,
        trust=trust,
    )
    session.install_backend()
    session._tell_settings()
    _SESSIONS[session._key] = session
    return session


_SESSIONS: WeakValueDictionary[str, MemorySession] = WeakValueDictionary()
_REOPENED: list[MemorySession] = []
"""Sessions of another process that were opened again in this one: they live as long as it does."""


def _session_of(key: str, description: Mapping[str, Any] | None) -> object:
    """Return this process's copy of a session, or open it again."""
    if key in _SESSIONS:
        return _SESSIONS[key]
    if description is None:
        return _Elsewhere()
    session = _SESSIONS[key] = open_session(**description)
    _REOPENED.append(session)
    return session


class _Elsewhere:
    """Takes the place of a session that this process cannot open again.

    It raises when it is used: a worker that fails while it reads its task would leave the pool waiting for ever.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(_refuse, name)


def _refuse(name: str, *_: object, **__: object) -> NoReturn:
    raise MemoryToolkitError(
        f"The session cannot be opened again in this process, so {name} was not done.",
        hint="open one there with open_session(...); what was given in code (clock, embedder, key) does not go along",
    )


def _item(item: str | RetainItem | Mapping[str, str], context: str | None) -> RetainItem:
    if isinstance(item, str):
        item = RetainItem(item, context)
    given = {"content": item.content, "context": item.context} if isinstance(item, RetainItem) else item
    check_input(RETAIN, {"items": [_without_none(given) if isinstance(given, Mapping) else given]})
    return item if isinstance(item, RetainItem) else as_items([item], context)[0]


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
