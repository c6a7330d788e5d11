"""What a memory backend is: the verbs of the tools, and a refusal as the default of all that only some can do.

A further backend subclasses :class:`Backend` in a folder of its own and is named in
:mod:`ipy_memory.backends.registry`.  It overrides what it can do; every command then answers or refuses in one line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ipy_memory import text
from ipy_memory.errors import MemoryToolkitError, NotSupportedError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from sqlite3 import Connection
    from threading import Event

    from ipy_memory.backends.filters import RecallFilter
    from ipy_memory.backends.trace import Trace
    from ipy_memory.clock import Clock, IdSource, Timers
    from ipy_memory.conversation import Message
    from ipy_memory.credentials import Guard
    from ipy_memory.model import Answer, Embedder, Hit, Memory, Receipt, RetainItem, ToolResult
    from ipy_memory.settings.resolve import Settings

Operation = Literal["update", "forget", "invalidate"]
Status = Literal["updated", "deleted", "invalidated", "not_found", "not_editable"]


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """What a recall asks for.

    ``limit`` overrides the configured one; ``count`` says whether recall counts are updated; ``cancel`` stops the
    work from another thread; ``traces`` receives the accounts of a backend that gives any; ``where`` holds filters
    that the backend honours.
    """

    query: str
    limit: int | None = None
    count: bool = True
    cancel: Event | None = None
    traces: list[Trace] | None = None
    where: RecallFilter | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a memory, as the user asks for it.

    ``base`` is the text that was read before: the edit is refused if the memory has another one by now. ``force``
    allows an update whose text is the memory's own cut preview, ``purge`` leaves no byte of a forgotten text in the
    file, ``dry_run`` only says how it would go, and ``bank`` names one bank, in scope or not.
    """

    op: Operation
    id: str
    content: str | None = None
    importance: float | None = None
    replacement_id: str | None = None
    base: str | None = None
    force: bool = False
    purge: bool = False
    dry_run: bool = False
    bank: str | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """How an edit went: where it happened, the memory as it was before, and what it wrote, for an undo.

    ``along`` says for a forgotten memory how many rows of which table go with it, ``summaries`` which live summaries
    of it stay: memories of their own, which still say what they were made from. ``path`` is the bank's file, ``undo``
    what the backend needs to write the former values back.
    """

    id: str
    status: Status
    bank: str | None = None
    store: str | None = None
    before: Memory | None = None
    undo: Any = None
    along: Mapping[str, int] = field(default_factory=dict)
    summaries: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def text(self) -> str:
        """The tool's exact sentence."""
        if self.bank is None or self.store is None:
            return text.not_found_text(self.id)
        if self.status == "not_editable":
            return text.read_only_fact_text(self.id, self.bank)
        if self.status == "not_found":
            return text.not_found_text(self.id, self.bank, self.store)
        return text.edited_text(self.id, self.status, self.bank, self.store)

    @property
    def details(self) -> dict[str, str]:
        """The tool's details: ``status``, and ``bank`` and ``store`` where they are known."""
        known = {"status": self.status, "bank": self.bank, "store": self.store}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a clear did: the bank files that are empty now, the copies made first, and what it did not touch."""

    emptied: tuple[Path, ...] = ()
    copies: tuple[Path, ...] = ()
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindex did to one bank: how many vectors it stored, and the copy that was made before."""

    bank: str
    stored: int
    copy: Path


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The vectors that one model made: how many, and of how many numbers (``None``: it cannot be read)."""

    model: str
    count: int
    size: int | None


@dataclass(frozen=True, slots=True)
class BankVectors:
    """The vectors of one bank.

    ``memories`` counts those that vectors are made of (live, not blank), ``covered`` those of them that have one of
    the model in use, or of any where none is in use.
    """

    bank: str
    memories: int
    covered: int
    models: tuple[StoredModel, ...] = ()


@dataclass(frozen=True, slots=True)
class Vectors:
    """What vectors do in a session: whether they are in use, and those that the banks in scope hold.

    ``summary`` is the state in one line, with how many memories have a vector where some have none.
    """

    state: str
    summary: str
    banks: tuple[BankVectors, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstTurn:
    """The block for a session's first turn, prepared but not yet taken as done."""

    context: str | None
    take: Callable[[], bool]

    def commit(self) -> bool:
        """Take it as done; ``False`` when the session has moved on."""
        return self.take()


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One item as the user sees it: ``state`` is waiting, sending, failed or unknown."""

    state: str
    queued_at: str
    text: str
    error: str | None
    item: int
    bank: str
    server: str


@dataclass(frozen=True, slots=True)
class FlushReport:
    """What one flush did: ``operations`` are the server's ids for work on the session's bank, ``banks`` who got any."""

    sent: int = 0
    failed: int = 0
    operations: tuple[str, ...] = ()
    banks: tuple[str, ...] = ()

    def __add__(self, other: FlushReport) -> FlushReport:
        return FlushReport(
            self.sent + other.sent,
            self.failed + other.failed,
            self.operations + other.operations,
            tuple(dict.fromkeys(self.banks + other.banks)),
        )


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a backend is made from: a session's settings, place, time and ids.

    ``started`` is the session's beginning as a time stamp, ``resumed`` whether another process began it,
    ``notify`` tells the user something, ``outgoing`` is called with what is about to be sent, and ``owns`` says
    whether the session still uses a backend.
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
    notify: Callable[..., None]
    owns: Callable[[Backend], bool]
    embedder: Embedder | None = None
    completion: Callable[[str], str | None] | None = None


class Backend:
    """One session's way to its memory.

    The verbs of the tools must be overridden: :attr:`retain_bank`, :meth:`recall`, :meth:`reflect` and
    :meth:`retain`.  All else has a default: it does nothing, or refuses.

    Attributes
    ----------
    name : str
        The value of ``memory.backend`` that chooses it.
    title : str
        Its name in sentences.
    counting : bool
        Whether recalls are counted; off while memory is paused.
    addressable : bool
        Whether its memories can be read by the ids that recall shows.
    movable : bool
        Whether its settings can change while the session lives; not in a sub-agent's session, or a read-only one.
    detaches : bool
        Whether clearing drops the session's state and leaves the banks alone.
    filters : frozenset of str
        The fields of a :class:`~ipy_memory.backends.filters.RecallFilter` that a recall honours; others are refused.
    """

    name = ""
    title = ""
    counting = True
    addressable = False
    movable = True
    detaches = False
    filters: frozenset[str] = frozenset()

    # ---- the tools' verbs

    @property
    def retain_bank(self) -> str:
        """Name of the bank that is written."""
        raise NotImplementedError

    def recall(self, request: RecallRequest) -> Answer:
        """Return the hits for a query, best first."""
        raise NotImplementedError

    def reflect(self, query: str, context: str | None = None, *, count: bool = True) -> Answer:
        """Return a synthesis; ``text`` is ``None`` where there is nothing to say."""
        raise NotImplementedError

    def retain(self, items: Sequence[RetainItem]) -> Receipt:
        """Store or queue items; never raises for a single failing item, the receipt names it."""
        raise NotImplementedError

    def bullet(self, hit: Hit) -> str:
        """Return the entry of a hit in the recall text."""
        return text.mnemopi_bullet(hit)

    def flush(self) -> object:
        """Wait for everything that is running or pending; return what the backend reports of it."""
        return None

    def status(self) -> Mapping[str, Any]:
        """Return scope, banks, place and vectors by name; never a secret."""
        return {}

    def close(self) -> None:
        """Finish what is running and release every file, thread and connection."""

    # ---- memories by id

    def memory(self, id: str, bank: str | None = None) -> Memory:  # noqa: A002, ARG002  the name that recall shows
        """Return one memory in full.

        Raises
        ------
        MemoryNotFoundError
            There is none of this id in scope, or in the bank that is named.
        """
        raise self.refusal("reading a memory by its id")

    def stored(self, bank: str | None = None) -> Sequence[Memory]:  # noqa: ARG002
        """Return every stored memory of the banks in scope, or of one by name, newest first; for browsing."""
        raise self.refusal("browsing")

    def page(self, id: str, bank: str | None = None) -> str:  # noqa: A002
        """Return one memory as a page, also from a bank out of scope that is named."""
        return text.memory_page(self.memory(id, bank))

    def read(self, url: str) -> str:
        """Return what ``memory://<id>`` shows."""
        memory_id = text.address_id(url)
        if not self.addressable or memory_id in ("", "root"):
            raise MemoryToolkitError(text.unreadable(url, self.name), hint="%memory browse lists ids")
        return self.page(memory_id)

    def edit(self, edit: Edit) -> ToolResult:  # noqa: ARG002
        """Carry out the ``memory_edit`` tool."""
        raise self.refusal("memory_edit")

    def change(self, edit: Edit) -> Edited:  # noqa: ARG002
        """Edit with the safeguards of a user's command; the answer can be given to :meth:`undo`."""
        raise self.refusal("editing")

    def undo(self, done: Edited, *, force: bool = False) -> bool:  # noqa: ARG002
        """Undo an update or an invalidation; return whether the memory was still there."""
        raise self.refusal("editing")

    # ---- the session's banks

    def one_bank(self, name: str) -> Backend:
        """Return a backend that reads just this bank and writes nothing."""
        if name == self.retain_bank:
            return self
        raise self.refusal("asking one bank by name")

    def connect(self, bank: str | None = None) -> Connection:  # noqa: ARG002
        """Return a connection of its own to a bank's SQLite file, for reading only."""
        raise self.refusal("SQL", "its banks are not files of this machine")

    def follow(self, context: SessionContext, messages: Sequence[Message]) -> bool:  # noqa: ARG002
        """Work under changed settings from the next call on; return whether the banks are others now.

        Raises
        ------
        SettingsError
            The session cannot change them while it lives; nothing has changed.
        """
        if not self.movable:
            raise SettingsError(
                "this session is bound to its banks and settings", hint="change those of the session that it belongs to"
            )
        return False

    def move(self, context: SessionContext, messages: Sequence[Message]) -> bool:  # noqa: ARG002
        """Go on in another folder: the conversation so far stays with the old banks; return whether they changed."""
        return False

    def begin_after(self, messages: Sequence[Message]) -> None:
        """Leave a conversation so far to the banks that hold it already."""

    def clear_files(self, *, rescued: Sequence[str] = ()) -> list[Path]:  # noqa: ARG002
        """Return the bank files that :meth:`clear` would empty; none where the banks are elsewhere."""
        return []

    def clear(self, *, rescued: Sequence[str] = (), backup: bool = True) -> Cleared:  # noqa: ARG002
        """Clear the session's memory; a sub-agent's session, or a read-only one, clears nothing."""
        if self.movable:
            raise self.refusal("clearing")
        raise MemoryToolkitError(
            "This session clears nothing: it is a sub-agent's, or only reads.",
            hint="clear from the session that writes",
        )

    def child(self, session_id: str, cwd: str) -> Backend | None:  # noqa: ARG002
        """Return the backend of a sub-agent's session on this one's banks; ``None`` where there is none."""
        return None

    # ---- what is pending for a server

    def queue_rows(self) -> Sequence[QueueRow] | None:
        """Return the items that are not known to have arrived; ``None`` where nothing is sent later."""
        return None

    def resend(self, *, unknown: bool = False, moved_from: str | None = None) -> FlushReport:  # noqa: ARG002
        """Send again what failed, and on request what may have arrived."""
        raise self.refusal("a queue")

    # ---- vectors, reports, the agent's memory command

    def vectors(self) -> Vectors | None:
        """Return which vectors the banks in scope hold; ``None`` where the backend shows none."""
        return None

    def reindex_vectors(
        self,
        bank: str | None = None,  # noqa: ARG002
        *,
        missing_only: bool = False,  # noqa: ARG002
        progress: Callable[[int, int], object] | None = None,  # noqa: ARG002
    ) -> Sequence[Reindexed]:
        """Compute vectors again in the session's own banks, or in one that is named; each is copied first."""
        raise self.no_vectors()

    def fetch_model(self, env: Mapping[str, str]) -> str:  # noqa: ARG002
        """Fetch the files of the configured local model; return what was done."""
        raise self.no_vectors()

    def stats(self) -> str:
        """Return the stats table."""
        raise self.refusal("statistics")

    def diagnose(self) -> str:
        """Return the diagnostics table."""
        raise self.refusal("diagnostics")

    def search(self, query: str, limit: float | None = None) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Return what the agent's search command answers; ``None`` where it has no such command."""
        return None

    def save(
        self,
        content: str,  # noqa: ARG002
        *,
        context: str | None = None,  # noqa: ARG002
        importance: float | None = None,  # noqa: ARG002
        source: str | None = None,  # noqa: ARG002
        veracity: str | None = None,  # noqa: ARG002
    ) -> Mapping[str, Any] | None:
        """Store one memory as the agent's save command does; ``None`` where it has no such command."""
        return None

    def describe(self) -> Mapping[str, Any] | None:
        """Return the answer of the agent's status command; ``None`` where it has no such command."""
        return None

    # ---- the session's turns

    @property
    def unretained(self) -> str | None:
        """Why the latest automatic retention failed; ``None`` where it did not."""
        return None

    def start(self) -> None:
        """Begin the session: what must happen before its first turn."""

    def prepare_first_turn(self, prompt: str, messages: Sequence[Message]) -> FirstTurn | None:  # noqa: ARG002
        """Recall for the first turn, or return ``None`` when there is nothing to do."""
        return None

    def end_turn(self, messages: Sequence[Message]) -> None:
        """Apply the retention cadence at the end of a turn; never raises."""

    def force_retain(self, messages: Sequence[Message]) -> None:
        """Retain what is not yet retained, regardless of the cadence."""

    def context(self, recalled: str | None = None) -> str:  # noqa: ARG002
        """Return the cached blocks; ``recalled`` replaces the recall block while it is not yet taken as done."""
        return ""

    def instructions(self, recalled: str | None = None) -> str:
        """Return the developer instructions with the blocks of :meth:`context`."""
        return self.context(recalled)

    def compaction(self, messages: Sequence[Message]) -> str | None:  # noqa: ARG002
        """Return the text to add before a compaction."""
        return None

    def enqueue(self, messages: Sequence[Message]) -> None:
        """Force retention and consolidation."""

    def finish(self, messages: Sequence[Message]) -> None:  # noqa: ARG002
        """End the session: store what its end stores, and close."""
        self.close()

    def no_vectors(self) -> NotSupportedError:
        """Return the error that says why vectors cannot be looked at or computed here."""
        return self.refusal("vectors")

    def refusal(self, what: str, hint: str = "recall shows all there is") -> NotSupportedError:
        """Return the error that says what this backend does not support."""
        return NotSupportedError(f"{self.title or self.name} does not support {what}.", hint=hint)
