"""The life of an agent session: its turns, what they recall and leave behind, a change of place, its end.

A :class:`Turn` is committed once or not at all: whatever ends its block early, Ctrl-C at any point too, leaves the
session as if the turn had never begun.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from ipy_memory.backends.base import (
    SUPPORTED,
    Counting,
    Detachable,
    FileKeeping,
    LivingBackend,
    Movable,
    Retaining,
    follow_settings,
    resolve_backend,
)
from ipy_memory.conversation import Message, spoken
from ipy_memory.credentials import Guard
from ipy_memory.errors import MemoryToolkitError, NoBackendError, PausedError, safe_line
from ipy_memory.jscompat.dates import iso
from ipy_memory.paths import check_path, here, typed_path
from ipy_memory.scoping.project import resolve_path
from ipy_memory.settings.resolve import Settings, load_settings
from ipy_memory.settings.trust import real_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.backends.base import Prepared
    from ipy_memory.clock import Clock, IdSource, Timers
    from ipy_memory.model import Embedder, Failure

log = logging.getLogger("ipy_memory")


SETTINGS_SOURCE, OWN_SOURCE = "Settings", "ipy_memory"
"""The source of notices on what settings files say."""
_MOST_NOTES = 12


class Notice(NamedTuple):
    """Something the user should know; ``hint`` says more than the agent would, and what to do."""

    level: str
    text: str
    source: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a clear did (A-11): the bank files that are empty now, the copies made first, and what it did not touch."""

    emptied: tuple[Path, ...] = ()
    copies: tuple[Path, ...] = ()
    warning: str | None = None


def with_absolute_paths(changes: Mapping[str, object]) -> dict[str, object]:
    """Return settings that are given in code with paths that stay where they lead now.

    They are not otherwise read: a setting of the agent's knows no ``~`` and no variables.
    """
    path = changes.get("mnemopi.dbPath")
    relative = isinstance(path, str) and path.strip() and not path.startswith("/")
    return {**changes, "mnemopi.dbPath": os.path.join(here(), str(path))} if relative else dict(changes)  # noqa: PTH118


def turn_messages(prompt: str, answers: Iterable[str], stamp: str) -> list[Message]:
    """Return a turn that is over as messages of one time (pure)."""
    return [Message("user", prompt, stamp), *(Message("assistant", answer, stamp) for answer in answers)]


class Pause:
    """Whether a session is paused, and which messages were said while it was: those are never retained.

    Parameters
    ----------
    parent
        The pause of the session that this one is a sub-agent of.
    """

    def __init__(self, parent: Pause | None = None) -> None:
        self._on = self._muted = False
        self._parent = parent
        self._latest: Sequence[Message] = ()
        self._before: frozenset[Message] = frozenset()
        self._private: set[Message] = set()

    @property
    def on(self) -> bool:
        """Whether nothing is retained now."""
        return self._on or (self._parent is not None and self._parent.on)

    def begin(self, messages: Sequence[Message]) -> None:
        """Begin after what has been said so far; harmless when repeated."""
        self._listen_from(messages)
        self._on = True

    def end(self, messages: Sequence[Message]) -> None:
        """Go on with what is said from now on."""
        self.listen(messages)
        self._on = False

    def mute(self, messages: Sequence[Message], *, on: bool) -> None:
        """Take note that automatic retention was switched off, or on again, after what has been said so far."""
        if on:
            self._listen_from(messages)
        else:
            self.listen(messages)
        self._muted = on

    def _listen_from(self, messages: Sequence[Message]) -> None:
        if not (self.on or self._muted):
            self._before = frozenset((*self._latest, *messages))

    def listen(self, messages: Sequence[Message]) -> None:
        """Take note of a conversation as it is at the end of a turn."""
        if self.on or self._muted:
            self._private.update(message for message in messages if message not in self._before)
        else:
            self._latest = messages

    def leave(self, messages: Sequence[Message]) -> None:
        """Never retain anything of a conversation so far."""
        self._private.update(messages)

    def kept(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return what may be retained of a conversation."""
        if self.on or self._muted:
            self.listen(messages)
        return [message for message in messages if message not in self._private] if self._private else messages


class SessionLife:
    """What a session does over its turns, beside the tools.

    Attributes
    ----------
    messages : list of Message
        The conversation so far, kept by :meth:`turn`. A host that resumes a session puts the earlier part in.
    failures : list of Failure
        Items of earlier retains that were not stored (T-06).
    notices : list of Notice
        What a person should be told, oldest first; whoever shows a notice takes it out.
    show_at_once : callable or None
        Called when a notice should be shown before the work goes on.
    outgoing : Guard
        Watches what is sent; with ``outgoing.refuse`` a text that seems to hold a credential is not sent.
    started : str
        Time stamp of the session's beginning.
    resumed : bool
        Whether another process may have begun this session.
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
        self.settings = settings
        self.cwd = cwd
        self.agent_dir = agent_dir
        self.env = env
        self.clock = clock
        self.ids = ids
        self.timers = timers
        self.session_id = session_id
        self.started = started or iso(clock.now_ms())
        self.resumed = resumed
        self.messages: list[Message] = []
        self.failures: list[Failure] = []
        self.notices: list[Notice] = []
        self.show_at_once: Callable[[], object] | None = None
        self.outgoing = Guard(self._tell_outgoing)
        self.backend: LivingBackend | None = None
        self._pause = Pause()
        self._key = os.urandom(8).hex()
        self._trust = trust
        self._trust_folder = settings.standing.folder
        self._told: set[str] = set()
        self._embedder = embedder
        self._completion = completion
        self._begun = False

    @property
    def chosen(self) -> str:
        """The value of ``memory.backend``, read anew at each call (T-09)."""
        return str(self.settings.get("memory.backend"))

    @property
    def active_backend(self) -> LivingBackend | None:
        """The backend, unless another one or none has been chosen meanwhile."""
        return self.backend if self.backend is not None and self.backend.name == self.chosen else None

    def install_backend(self) -> None:
        """Make the backend that the settings choose, and close the one before; nothing is opened or sent yet."""
        if self.backend is not None:
            self.backend.close()
        self.backend = resolve_backend(self, embedder=self._embedder, completion=self._completion)
        self._begun = False
        self._count_recalls()

    @property
    def paused(self) -> bool:
        """Whether memory is paused: nothing is recorded, retained or counted."""
        return self._pause.on

    def pause(self) -> None:
        """Record, retain and count nothing from now on; recall goes on.

        What is said meanwhile is never retained. What was said before, and is not yet retained, is so after
        :meth:`resume`.
        """
        self._pause.begin(self.messages)
        self._count_recalls()

    def resume(self) -> None:
        """End the pause."""
        self._pause.end(self.messages)
        self._count_recalls()

    def check_not_paused(self) -> None:
        """Raise :class:`PausedError` while memory is paused."""
        if self.paused:
            raise PausedError("Memory is paused: nothing was stored.", hint="%memory resume ends the pause")

    def _count_recalls(self) -> None:
        if isinstance(self.backend, Counting):
            self.backend.counting = not self.paused

    def _tell_outgoing(self, message: str) -> None:
        self.notify("warning", message, OWN_SOURCE)
        if self.show_at_once is not None:
            self.show_at_once()

    def notify(self, level: str, message: str, source: str, hint: str = "") -> None:
        """Keep a notice for the user, and log it."""
        log.log(logging.WARNING if level == "warning" else logging.INFO, "%s: %s", source, safe_line(message))
        self.notices.append(Notice(level, message, source, hint))

    def _tell_settings(self) -> None:
        """Keep a notice of what the user should know of the settings, each sentence once in a session."""
        new = [note for note in self.settings.notes() if note not in self._told]
        self._told.update(new)
        shown = new if len(new) <= _MOST_NOTES else new[: _MOST_NOTES - 1]
        self.notices += [Notice("warning", note, SETTINGS_SOURCE) for note in shown]
        if len(shown) < len(new):
            more = f"{len(new) - len(shown)} more notes on the settings: %memory status shows them"
            self.notices.append(Notice("warning", more, SETTINGS_SOURCE))

    def turn(self, prompt: str) -> Turn:
        """Return one turn of the conversation, to be used in a ``with`` statement.

        Before the model is asked, ``turn.context`` holds the recalled memories and ``turn.instructions`` the whole
        developer instructions; ``turn.answer(text)`` takes the model's answer. At the end of the block the turn is
        committed: the queue is sent, and the conversation retained when it is time.
        """
        return Turn(self, prompt)

    def add_turn(self, prompt: str, *answers: str) -> None:
        """Add a turn that is over to the conversation, and do what the end of a turn does."""
        self.messages += turn_messages(prompt, answers, iso(self.clock.now_ms()))
        self.end_turn()

    def start(self) -> None:
        """Begin the agent session: what must happen before its first turn (A-13, B-06)."""
        if self.paused:
            return
        if backend := self.active_backend:
            backend.start()
        self._begun = True

    def start_quietly(self) -> None:
        """Begin the session unless it has begun; a failure is logged and tried again next time (A-04)."""
        if not self._begun:
            try:
                self.start()
            except MemoryToolkitError as error:
                log.warning(
                    "the session's memory could not be started: backend=%s error=%s", self.chosen, safe_line(f"{error}")
                )

    def first_turn(self, prompt: str, messages: Sequence[Message] | None = None) -> Prepared | None:
        """Recall for the session's first prompt; ``None`` when there is nothing to add (A-01 to A-05).

        The result's ``context`` is the block; its ``commit()`` makes it part of the instructions.
        """
        backend = self.active_backend
        return None if backend is None else backend.prepare_first_turn(prompt, self._log(messages))

    def end_turn(self, messages: Sequence[Message] | None = None) -> None:
        """Send what waits and retain what is due, at the end of a turn; never raises (A-04)."""
        log = self._log(messages)
        self._pause.listen(log)
        if (backend := self.active_backend) and not self.paused:
            backend.end_turn(self._pause.kept(log))

    def force_retain(self, messages: Sequence[Message] | None = None) -> None:
        """Retain what is not yet retained, whatever the cadence; nothing while memory is paused."""
        if (backend := self.active_backend) and not self.paused:
            backend.force_retain(self._pause.kept(self._log(messages)))

    @property
    def unretained(self) -> str | None:
        """Why the latest automatic retention failed; ``None`` where it did not."""
        return self.backend.unretained if isinstance(self.backend, Retaining) else None

    def enqueue(self, messages: Sequence[Message] | None = None) -> None:
        """Force retention and consolidation (A-12); refused while memory is paused."""
        self.check_not_paused()
        if backend := self.active_backend:
            backend.enqueue(self._pause.kept(self._log(messages)))

    def context(self, recalled: str | None = None) -> str:
        """Return the blocks that memory adds to a prompt: mental models, then recalled memories."""
        return backend.context(recalled) if (backend := self.active_backend) else ""

    def developer_instructions(self, recalled: str | None = None) -> str:
        """Return what memory adds to the developer instructions; empty without a backend."""
        return backend.instructions(recalled) if (backend := self.active_backend) else ""

    def pre_compaction_context(self, messages: Sequence[Message] | None = None) -> str | None:
        """Return the block to keep when the conversation is about to be compacted, or ``None``."""
        log = self.messages if messages is None else messages
        return backend.compaction(log) if (backend := self.active_backend) else None

    def _log(self, messages: Sequence[Message] | None) -> Sequence[Message]:
        """Return the messages that count as turns: an emoji alone is none."""
        return spoken(self.messages if messages is None else messages)

    def change_settings(self, changes: Mapping[str, object]) -> None:
        """Change settings while the session lives; ``None`` takes a change back (C-02, S-13).

        They take effect at the next call. Other banks are gone over to: what waits and what was said so far goes to
        the old ones first. What is said while automatic retention is off is never retained by itself.

        Raises
        ------
        SettingsError
            There is no such setting, it cannot have that value, or it cannot change while the session lives; nothing
            has changed.
        """
        settings = self.settings.with_overrides(with_absolute_paths(changes))
        log = () if self.paused else self._pause.kept(self.messages)
        moved = follow_settings(self, settings, log, embedder=self._embedder, completion=self._completion)
        self._begun &= not moved
        switch = f"{self.chosen}.autoRetain"
        if self.chosen in SUPPORTED and self.settings.get(switch) != settings.get(switch):
            self._pause.mute(self.messages, on=not settings.get(switch))
        self.settings = settings

    def _trust_of(self, folder: str) -> bool | None:
        """Return what the caller said of a folder; a yes is for the folder that the session was opened in."""
        return self._trust if not self._trust or real_folder(folder) == self._trust_folder else None

    def read_settings(self, cwd: str | None = None) -> Settings:
        """Return the settings as files and environment give them now, for a folder, under what was given in code."""
        given = {name: entry.value for name, entry in self.settings.session.items()}
        folder = cwd or self.cwd
        return load_settings(self.agent_dir, folder, self.env, given, trust=self._trust_of(folder))

    def rebind(self, cwd: str | os.PathLike[str] | None = None, changes: Mapping[str, object] | None = None) -> None:
        """Go on in another folder or another scope, with the project settings that belong to it.

        What waits and what was said so far goes to the old banks, and nothing of it to the new ones.

        Parameters
        ----------
        cwd
            The folder; the same one by default.
        changes
            Settings by dotted name, as :meth:`change_settings` takes them.

        Raises
        ------
        SettingsError
            There is no such setting, or it cannot have that value; nothing has changed.
        """
        folder = self.cwd
        if cwd is not None:
            folder = check_path(resolve_path(typed_path(os.fspath(cwd), self.env)), "the project folder")
        settings = self.read_settings(folder).with_overrides(with_absolute_paths(changes or {}))
        if self.paused:
            self._pause.leave(self.messages)
        log = self._pause.kept(self._log(None))
        same = self.backend is not None and self.backend.name == settings.get("memory.backend")
        if not (same := same and settings.engine() == self.settings.engine()):
            self.close()
        elif isinstance(self.backend, Movable):
            self._begun &= not self.backend.move(settings, self.agent_dir, folder, log)
        self.settings, self.cwd = settings, folder
        if not same:
            self.install_backend()
            if isinstance(self.backend, Movable):
                self.backend.begin_after(log)
        self._tell_settings()

    def clear_files(self, *, rescued: Sequence[str] = ()) -> list[Path]:
        """Return the bank files that :meth:`clear` would empty; none where the banks are on a server."""
        backend = self._living()
        return backend.clear_files(rescued=rescued) if isinstance(backend, FileKeeping) else []

    def clear(self, *, rescued: Sequence[str] = (), backup: bool = True) -> Cleared:
        """Clear the session's memory (A-11).

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
        backend = self._living()
        if isinstance(backend, FileKeeping):
            done = backend.clear(rescued=rescued, backup=backup)
            return Cleared(done.files, done.copies, "\n".join(done.notes) or None)
        if isinstance(backend, Detachable):
            try:
                warning = backend.clear()
            finally:
                # After an interrupt too: its queue takes nothing more, so it must not pass for one in use.
                self.backend = None
            return Cleared(warning=warning)
        raise MemoryToolkitError(
            "This session clears nothing: it is a sub-agent's, or only reads.",
            hint="clear from the session that writes",
        )

    def _living(self) -> LivingBackend:
        if backend := self.active_backend:
            return backend
        raise NoBackendError("There is no memory to clear: no backend is in use.", hint="choose one first")

    def flush(self) -> object:
        """Wait for everything that is under way or waiting to be sent; return what the backend reports of it."""
        return None if self.backend is None else self.backend.flush()

    def finish(self, messages: Sequence[Message]) -> None:
        """End a session whose conversation the caller keeps: store what its end stores (A-13), and close."""
        try:
            if self.backend is not None:
                self.backend.finish(() if self.paused else self._pause.kept(self._log(messages)))
        finally:
            self.backend = None

    def close(self) -> None:
        """Finish what is under way and let go of files, threads and connections; harmless when repeated.

        Of the conversation that :meth:`turn` keeps, what is not yet retained is stored first where the backend
        does so at a session's end (A-13).
        """
        self.finish(self.messages)


class Turn:
    """One turn: what memory gives before the model is asked, and what the turn leaves behind.

    Attributes
    ----------
    prompt : str
        What the user said.
    context : str
        The ``<mental_models>`` and ``<memories>`` blocks in force for this turn; empty without any.
    instructions : str
        The developer instructions, with the same blocks.
    """

    def __init__(self, session: SessionLife, prompt: str) -> None:
        self.prompt = prompt
        self.context = ""
        self.instructions = ""
        self._session = session
        self._prepared: Prepared | None = None
        self._said: list[Message] = []

    def __enter__(self) -> Self:
        session = self._session
        session.start_quietly()
        self._prepared = session.first_turn(self.prompt)
        recalled = self._prepared.context if self._prepared else None
        self.context = session.context(recalled)
        self.instructions = session.developer_instructions(recalled)
        self._said = [Message("user", self.prompt, iso(session.clock.now_ms()))]
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._commit()

    @property
    def messages(self) -> list[Message]:
        """The conversation with this turn: what a model is to be asked with."""
        return [*self._session.messages, *self._said]

    def answer(self, text: str) -> None:
        """Take the model's answer; a further call adds another message."""
        self._said.append(Message("assistant", text, iso(self._session.clock.now_ms())))

    def _commit(self) -> None:
        try:
            self._settle()
        except BaseException:
            # Once begun, it is completed: an interrupt may fall between two steps, and each can be repeated.
            self._settle()
            raise
        self._session.end_turn()

    def _settle(self) -> None:
        if self._prepared is not None:
            self._prepared.commit()
        log = self._session.messages
        if not log or log[-1] is not self._said[-1]:
            log.extend(self._said)
