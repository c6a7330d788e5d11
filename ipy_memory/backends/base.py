"""What a memory backend is: the verbs that every tool needs, and what only a session's life needs.

A further backend implements :class:`Backend` in a folder of its own and gets a line in :func:`resolve_backend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from ipy_memory.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from threading import Event

    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.backends.mnemopi.admin.vectors import Vectors
    from ipy_memory.backends.mnemopi.embeddings.selection import Reindexed
    from ipy_memory.backends.mnemopi.recall.tracing import Trace
    from ipy_memory.backends.mnemopi.session import MnemopiSession
    from ipy_memory.backends.mnemopi.store.delete import Emptied
    from ipy_memory.backends.mnemopi.store.edit import Edited, Operation
    from ipy_memory.clock import Clock, IdSource, Timers
    from ipy_memory.conversation import Message
    from ipy_memory.credentials import Guard
    from ipy_memory.model import Answer, Embedder, Hit, Memory, Receipt, RetainItem, ToolResult
    from ipy_memory.settings.resolve import Settings

SUPPORTED = ("hindsight", "mnemopi")
"""The values of ``memory.backend`` for which the tools exist (R-02)."""

TITLES: Mapping[str, str] = {"mnemopi": "Mnemopi", "hindsight": "Hindsight"}


class Backend(Protocol):
    """One session's way to its memory: about seven verbs."""

    name: str

    @property
    def retain_bank(self) -> str:
        """Name of the bank that is written."""
        ...

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        touch: bool = True,
        cancel: Event | None = None,
        traces: list[Trace] | None = None,
    ) -> Answer:
        """Return the hits for a query, best first.

        ``limit`` overrides the configured one; ``traces`` receives the accounts of a backend that gives any.
        """
        ...

    def reflect(self, query: str, context: str | None = None, *, touch: bool = True) -> Answer:
        """Return a synthesis; ``text`` is ``None`` where there is nothing to say."""
        ...

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Store or queue items; never raises for a single failing item, the receipt names it."""
        ...

    def bullet(self, hit: Hit) -> str:
        """Return the exact entry of a hit in the recall text."""
        ...

    def flush(self) -> object:
        """Wait for everything that is under way or waiting; what the backend reports of it."""
        ...

    def status(self) -> Mapping[str, Any]:
        """Return what a person wants to know: scope, banks, place, vectors; never a secret."""
        ...

    def close(self) -> None:
        """Finish what is under way and let go of every file, thread and connection."""
        ...


@runtime_checkable
class Addressable(Protocol):
    """What a backend whose memories have addresses offers beside the verbs."""

    def memory(self, id: str, bank: str | None = None) -> Memory:  # noqa: A002  the name that recall shows
        """Return one memory in full, or raise :class:`~ipy_memory.errors.MemoryNotFoundError`."""
        ...

    def page(self, id: str, bank: str | None = None) -> str:  # noqa: A002
        """Return one memory as the page that :meth:`read` gives, also from a bank out of scope that is named."""
        ...

    def read(self, url: str) -> str:
        """Return what ``memory://<id>`` shows (M-05)."""
        ...

    def edit(
        self,
        op: str,
        id: str,  # noqa: A002
        content: str | None = None,
        importance: float | None = None,
        replacement_id: str | None = None,
    ) -> ToolResult:
        """Carry out ``memory_edit`` (M-02 to M-04)."""
        ...


@runtime_checkable
class BankChoosing(Protocol):
    """A backend that can be asked about another bank than the session's."""

    def one_bank(self, name: str) -> Backend:
        """Return a backend that reads just this bank and writes nothing."""
        ...


@runtime_checkable
class Editable(Protocol):
    """What a backend whose memories a person can mend offers beside the tool."""

    def change(
        self,
        op: Operation,
        id: str,  # noqa: A002
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
        """Edit with the safeguards of M-06; the answer can be handed to :meth:`undo`."""
        ...

    def undo(self, done: Edited, *, force: bool = False) -> bool:
        """Undo an update or an invalidation; tell whether the memory was still there."""
        ...


@runtime_checkable
class VectorKeeping(Protocol):
    """A backend that keeps vectors beside its memories, which a person can look at and compute anew."""

    def vectors(self) -> Vectors:
        """Return which vectors the banks in scope hold, and what computes them; reads only."""
        ...

    def reindex_vectors(
        self,
        bank: str | None = None,
        *,
        missing_only: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Sequence[Reindexed]:
        """Compute vectors anew in the session's own banks, or in one that is named; each is copied first."""
        ...

    def fetch_model(self, env: Mapping[str, str]) -> str:
        """Fetch the files of the configured local model; return what was done."""
        ...


@runtime_checkable
class Commanded(Protocol):
    """What a backend offers to a person's commands beside the agent's tools (M-07, M-08)."""

    def search(self, query: str, limit: float | None = None) -> Mapping[str, Any]:
        """Return what the search command answers."""
        ...

    def save(
        self,
        content: str,
        *,
        context: str | None = None,
        importance: float | None = None,
        source: str | None = None,
        veracity: str | None = None,
    ) -> Mapping[str, Any]:
        """Store one memory as the save command does."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return the status command's answer."""
        ...


@runtime_checkable
class Reporting(Protocol):
    """A backend that tells a person how its banks are (M-08)."""

    def stats(self) -> str:
        """Return the stats table."""
        ...

    def diagnose(self) -> str:
        """Return the diagnostics table."""
        ...


@runtime_checkable
class Counting(Protocol):
    """A backend that counts what is recalled, unless it is told not to."""

    counting: bool


@runtime_checkable
class Retaining(Protocol):
    """A backend that knows why its latest automatic retention failed; ``None`` where it did not."""

    @property
    def unretained(self) -> str | None:
        """The reason, in words."""
        ...


class Prepared(Protocol):
    """A first turn's block, prepared but not yet taken as done (A-03)."""

    @property
    def context(self) -> str | None:
        """The block for the developer instructions."""
        ...

    def commit(self) -> bool:
        """Take it as done; ``False`` when the session has moved on meanwhile."""
        ...


class SessionHooks(Protocol):
    """What a backend does in the life of a session beside its tools."""

    def start(self) -> None:
        """Begin the session: what must happen before its first turn."""
        ...

    def prepare_first_turn(self, prompt: str, messages: Sequence[Message]) -> Prepared | None:
        """Recall for the first turn, or ``None`` when there is nothing to do."""
        ...

    def end_turn(self, messages: Sequence[Message]) -> None:
        """Apply the retention cadence at the end of a turn; never raises."""
        ...

    def force_retain(self, messages: Sequence[Message]) -> None:
        """Retain what is not yet retained, whatever the cadence."""
        ...

    def context(self, recalled: str | None = None) -> str:
        """Return the cached blocks; ``recalled`` stands for the recall block while it is not yet taken as done."""
        ...

    def instructions(self, recalled: str | None = None) -> str:
        """Return the developer instructions with the blocks of :meth:`context`."""
        ...

    def compaction(self, messages: Sequence[Message]) -> str | None:
        """Return the text to add before a compaction."""
        ...

    def enqueue(self, messages: Sequence[Message]) -> None:
        """Force retention and consolidation (A-12)."""
        ...

    def finish(self, messages: Sequence[Message]) -> None:
        """End the session: leave behind what its end leaves behind, and close."""
        ...


class LivingBackend(Backend, SessionHooks, Protocol):
    """A backend that lives a session: what :func:`resolve_backend` gives."""


@runtime_checkable
class Parental(Protocol):
    """A backend that can be shared with a sub-agent's session."""

    def child(self, session_id: str, cwd: str) -> LivingBackend:
        """Return the alias of a sub-agent's session (S-12)."""
        ...


@runtime_checkable
class Movable(Protocol):
    """A backend whose session can come to other banks while it lives."""

    def move(self, settings: Settings, agent_dir: str, cwd: str, messages: Sequence[Message]) -> bool:
        """Go on in another folder: the conversation so far stays with the old banks; tell whether they are others."""
        ...

    def begin_after(self, messages: Sequence[Message]) -> None:
        """Leave a conversation so far to the banks that hold it already."""
        ...


@runtime_checkable
class FileKeeping(Protocol):
    """A backend whose banks are files of this machine, which can be cleared (A-11)."""

    def clear_files(self, *, rescued: Sequence[str] = ()) -> list[Path]:
        """Return the bank files that :meth:`clear` would empty."""
        ...

    def clear(self, *, rescued: Sequence[str] = (), backup: bool = True) -> Emptied:
        """Empty the files, after a copy of each, and begin again, as a session does that has stored nothing yet."""
        ...


@runtime_checkable
class Detachable(Protocol):
    """A backend whose banks stay on a server: clearing drops the local state only (A-11)."""

    def clear(self) -> str:
        """Send what waits and drop the local state; return the warning that the server's bank stays."""
        ...


class Surroundings(Protocol):
    """What a backend is made from: a session's settings, place, time and ids.

    ``started`` is the session's beginning as a time stamp, ``resumed`` whether another process began it,
    ``notify`` tells the user something, ``outgoing`` is called with what is about to be sent, and ``backend`` is the
    state that the session uses now.
    """

    settings: Settings
    cwd: str
    agent_dir: str
    env: Mapping[str, str]
    clock: Clock
    ids: IdSource
    timers: Timers
    session_id: str
    started: str
    resumed: bool
    outgoing: Guard
    backend: LivingBackend | None

    def notify(self, level: str, message: str, source: str, hint: str = "") -> None:
        """Tell the user something."""
        ...


def resolve_backend(
    session: Surroundings,
    *,
    embedder: Embedder | None = None,
    completion: Callable[[str], str | None] | None = None,
) -> LivingBackend | None:
    """Return the backend that the settings choose, or ``None``; nothing is opened, made or sent yet."""
    chosen = session.settings.get("memory.backend")
    if chosen == "mnemopi":
        return _mnemopi(session, embedder, completion)
    if chosen == "hindsight" and (session.settings.get("hindsight.apiUrl") or "").strip():
        return _hindsight(session)
    return None


def follow_settings(
    session: Surroundings,
    settings: Settings,
    messages: Sequence[Message],
    *,
    embedder: Embedder | None = None,
    completion: Callable[[str], str | None] | None = None,
) -> bool:
    """Let a session's backend work under changed settings from its next call on; tell whether its banks are others now.

    Raises
    ------
    SettingsError
        The session cannot change them while it lives; nothing has changed.
    """
    backend = session.backend
    if backend is None or backend.name != settings.get("memory.backend"):
        return False  # which backend is chosen is read at each call
    if not isinstance(backend, Movable):
        raise SettingsError(
            "this session is bound to its banks and settings", hint="change those of the session that it belongs to"
        )
    if backend.name == "mnemopi":
        return cast("MnemopiSession", backend).follow(
            _mnemopi(session, embedder, completion, settings=settings), messages
        )
    if backend.name == "hindsight":
        from ipy_memory.backends.hindsight.bank import follow

        return follow(cast("HindsightBackend", backend), settings, session.cwd)
    return False


def _mnemopi(
    session: Surroundings,
    embedder: Embedder | None,
    completion: Callable[[str], str | None] | None,
    *,
    settings: Settings | None = None,
) -> MnemopiSession:
    from ipy_memory.backends.mnemopi.config import engine_config
    from ipy_memory.backends.mnemopi.embeddings.selection import choose
    from ipy_memory.backends.mnemopi.pool import OpenBanks
    from ipy_memory.backends.mnemopi.session import MnemopiSession
    from ipy_memory.backends.mnemopi.store.llm import configured_completion
    from ipy_memory.own_files import state_path
    from ipy_memory.paths import check_path
    from ipy_memory.scoping.modes import mnemopi_scope
    from ipy_memory.settings.resolve import mnemopi_config

    config = mnemopi_config(settings or session.settings, session.agent_dir, session.cwd)
    check_path(config.db_path, "mnemopi.dbPath")
    engine = engine_config(
        session.env,
        proactive_linking=config.proactive_linking,
        no_embeddings=config.no_embeddings,
        polyphonic_recall=config.polyphonic_recall,
        enhanced_recall=config.enhanced_recall,
    )
    banks = OpenBanks(
        clock=session.clock,
        ids=session.ids,
        config=engine,
        copies=state_path(session.agent_dir, "copies"),
        choice=choose(config, session.env, embedder, off=engine.no_embeddings, outgoing=session.outgoing),
        completion=completion or configured_completion(config),
        notify=session.notify,
    )
    scope = mnemopi_scope(config, session.cwd)
    home = session.env.get("HOME", "")
    return MnemopiSession(
        config,
        scope,
        banks,
        cwd=session.cwd,
        session_id=session.session_id,
        home=home,
        token_limit=lambda: session.settings.get("mnemopi.injectionTokenLimit") or 0,
    )


def _hindsight(session: Surroundings) -> LivingBackend:
    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.backends.hindsight.outbox import Outbox
    from ipy_memory.scoping.modes import hindsight_scope
    from ipy_memory.settings.resolve import hindsight_config

    config = hindsight_config(session.settings)
    made = HindsightBackend(
        config,
        hindsight_scope(config, session.cwd),
        Outbox(session.agent_dir),
        session_id=session.session_id,
        clock=session.clock,
        ids=session.ids,
        timers=session.timers,
        notify=session.notify,
        outgoing=session.outgoing,
        started=session.started,
        resumed=session.resumed,
    )
    made.owned = lambda: session.backend is made
    return made
