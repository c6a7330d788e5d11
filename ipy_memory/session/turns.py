"""The turns of a conversation: what memory gives before the model is asked, and what is never retained.

A :class:`Turn` is committed once or not at all: whatever ends its block early, Ctrl-C at any point too, leaves the
session as if the turn had never begun.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, Self

from ipy_memory.conversation import Message, spoken
from ipy_memory.errors import MemoryToolkitError, PausedError, safe_line
from ipy_memory.jscompat.dates import iso

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ipy_memory.backends.base import Backend, FirstTurn
    from ipy_memory.clock import Clock

log = logging.getLogger("ipy_memory")

_MOST_NOTES = 12

SETTINGS_SOURCE, OWN_SOURCE = "Settings", "ipy_memory"
"""The sources of notices: what settings files say, and what this package alone says."""


class Notice(NamedTuple):
    """Something the user should know; ``hint`` says more than the agent would, and what to do."""

    level: str
    text: str
    source: str
    hint: str = ""


class Notices(list[Notice]):
    """What the user should be told, oldest first; whoever shows a notice takes it out."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def tell(self, level: str, message: str, source: str, hint: str = "") -> None:
        """Keep a notice, and log it."""
        log.log(logging.WARNING if level == "warning" else logging.INFO, "%s: %s", source, safe_line(message))
        self.append(Notice(level, message, source, hint))

    def tell_settings(self, notes: Iterable[str]) -> None:
        """Keep what the user should know of the settings, each sentence once in a session."""
        new = [note for note in notes if note not in self._told]
        self._told.update(new)
        shown = new if len(new) <= _MOST_NOTES else new[: _MOST_NOTES - 1]
        self += [Notice("warning", note, SETTINGS_SOURCE) for note in shown]
        if len(shown) < len(new):
            more = f"{len(new) - len(shown)} more notes on the settings: %memory status shows them"
            self.append(Notice("warning", more, SETTINGS_SOURCE))

    def take(self, source: str) -> list[Notice]:
        """Take out the notices of one source."""
        taken = [notice for notice in self if notice.source == source]
        self[:] = [notice for notice in self if notice.source != source]
        return taken


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


class Conversation:
    """The running conversation of a session, and what memory does over its turns.

    Attributes
    ----------
    messages : list of Message
        The conversation so far, kept by :meth:`turn`. A host that resumes a session puts the earlier part in.
    pauses : Pause
        Which messages are never retained.
    begun : bool
        Whether the session has begun on the banks that it uses now.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.messages: list[Message] = []
        self.pauses = Pause()
        self.begun = False
        self.backend: Backend | None = None

    @property
    def chosen(self) -> str:
        """The name of the backend that is chosen."""
        raise NotImplementedError

    @property
    def active_backend(self) -> Backend | None:
        """The backend, unless another one or none has been chosen since."""
        return self.backend if self.backend is not None and self.backend.name == self.chosen else None

    @property
    def paused(self) -> bool:
        """Whether memory is paused: nothing is recorded, retained or counted."""
        return self.pauses.on

    def pause(self) -> None:
        """Record, retain and count nothing from now on; recall goes on.

        What is said meanwhile is never retained. What was said before, and is not yet retained, is so after
        :meth:`resume`.
        """
        self.pauses.begin(self.messages)
        self._count_recalls()

    def resume(self) -> None:
        """End the pause."""
        self.pauses.end(self.messages)
        self._count_recalls()

    def check_not_paused(self) -> None:
        """Raise :class:`PausedError` while memory is paused."""
        if self.paused:
            raise PausedError("Memory is paused: nothing was stored.", hint="%memory resume ends the pause")

    def _count_recalls(self) -> None:
        """Count recalls, unless memory is paused."""
        if self.backend is not None:
            self.backend.counting = not self.paused

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
        """Begin the agent session: what must happen before its first turn."""
        if self.paused:
            return
        if backend := self.active_backend:
            backend.start()
        self.begun = True

    def start_quietly(self) -> None:
        """Begin the session unless it has begun; a failure is logged and tried again next time."""
        if not self.begun:
            try:
                self.start()
            except MemoryToolkitError as error:
                log.warning(
                    "the session's memory could not be started: backend=%s error=%s", self.chosen, safe_line(f"{error}")
                )

    def first_turn(self, prompt: str, messages: Sequence[Message] | None = None) -> FirstTurn | None:
        """Recall for the session's first prompt; ``None`` when there is nothing to add.

        The result's ``context`` is the block; its ``commit()`` makes it part of the instructions.
        """
        backend = self.active_backend
        return None if backend is None else backend.prepare_first_turn(prompt, self._log(messages))

    def end_turn(self, messages: Sequence[Message] | None = None) -> None:
        """Send what waits and retain what is due, at the end of a turn; never raises."""
        log = self._log(messages)
        self.pauses.listen(log)
        if (backend := self.active_backend) and not self.paused:
            backend.end_turn(self.pauses.kept(log))

    def force_retain(self, messages: Sequence[Message] | None = None) -> None:
        """Retain what is not yet retained, regardless of the cadence; nothing while memory is paused."""
        if (backend := self.active_backend) and not self.paused:
            backend.force_retain(self._kept(messages))

    @property
    def unretained(self) -> str | None:
        """Why the latest automatic retention failed; ``None`` where it did not."""
        return None if self.backend is None else self.backend.unretained

    def enqueue(self, messages: Sequence[Message] | None = None) -> None:
        """Force retention and consolidation; refused while memory is paused."""
        self.check_not_paused()
        if backend := self.active_backend:
            backend.enqueue(self._kept(messages))

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

    def _kept(self, messages: Sequence[Message] | None = None) -> Sequence[Message]:
        """Return what may be retained of a conversation: its turns, without what was said during a pause."""
        return self.pauses.kept(self._log(messages))

    def _log(self, messages: Sequence[Message] | None) -> Sequence[Message]:
        """Return the messages that count as turns: an emoji alone is none."""
        return spoken(self.messages if messages is None else messages)


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

    def __init__(self, session: Conversation, prompt: str) -> None:
        self.prompt = prompt
        self.context = ""
        self.instructions = ""
        self._session = session
        self._prepared: FirstTurn | None = None
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
