"""Automatic retention: the growing document of a session, or the window of its last turns."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.conversation import Message, last_turns, transcript, user_turns
from ipy_memory.errors import MemoryToolkitError, safe_line
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import parse_ms
from ipy_memory.jscompat.strings import hash36
from ipy_memory.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ipy_memory.backends.hindsight.bank import Service
    from ipy_memory.clock import Clock

log = logging.getLogger("ipy_memory.backends.hindsight")


@dataclass(frozen=True, slots=True)
class Sent:
    """What a session's document holds so far: its text, and how many messages it was made of."""

    document_id: str
    text: str
    count: int
    key: str


def prefix_key(messages: Sequence[Message]) -> str:
    """Return a key that any change to one of the messages changes."""
    key = ""
    for message in messages:
        key = hash36("\0".join((key, message.role, message.text, message.timestamp or "")))
    return key


def next_document(sent: Sent | None, document_id: str, messages: Sequence[Message]) -> Sent | None:
    """Return a session's document with its new messages, or ``None`` when there is nothing to send.

    A rewritten beginning, or another document id, builds the whole again.
    """
    grown = (
        sent
        if sent is not None
        and sent.document_id == document_id
        and sent.count <= len(messages)
        and sent.key == prefix_key(messages[: sent.count])
        else None
    )
    fresh = transcript(messages[grown.count :] if grown else messages, full=True, stamps=True)
    if fresh.text is None:
        return None
    text = f"{grown.text}\n\n{fresh.text}" if grown else fresh.text
    return Sent(document_id, text, len(messages), prefix_key(messages))


def window_text(messages: Sequence[Message], turns: float) -> str | None:
    """Return the transcript of the last ``turns`` user turns."""
    return transcript(last_turns(messages, turns), full=True, stamps=True).text


def due(messages: Sequence[Message], retained: int, every: float) -> bool:
    """Return whether enough user turns have come since the last retention; a rewound session counts from its start."""
    now = user_turns(messages)
    return now - (retained if retained <= now else 0) >= every


def held(stored: str, messages: Sequence[Message]) -> int:
    """Return how many of a log's first messages a stored text ends with; the most that fit.

    The text of documents that another process wrote for the session says so how far it came. A log that was
    shortened meanwhile fits with its beginning; one that was rewritten does not fit, and counts as not stored.
    """
    for count in range(len(messages), 0, -1):
        text = redact(transcript(messages[:count], full=True, stamps=True).text or "")
        if text and (stored == text or stored.endswith(f"\n\n{text}")):
            return count
    return 0


class AutoRetention:
    """How far a session's conversation has been retained; moves only after success.

    Parameters
    ----------
    service
        The bank that the documents go to.
    clock
        Says what is now.
    started
        The time stamp of the session's header; an unreadable one stands for now.
    again_ms
        When this process took the session up again: its document then has a name of its own.
    resumed
        Whether another process may have stored a part of the conversation: what its documents hold is then looked
        up once, and only the rest is stored.
    odd
        Called with what is odd about a server's answer to a document; it counts as stored all the same, as the agent
        takes it.
    """

    def __init__(
        self,
        service: Service,
        *,
        clock: Clock,
        started: str | None,
        again_ms: int | None = None,
        resumed: bool = False,
        odd: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._odd = odd
        self._service = service
        self._clock = clock
        self._started = started
        self._again_ms = again_ms
        self._resumed = resumed
        self._elsewhere = (0, "")
        self._sent: Sent | None = None
        self._window: str | None = None
        self._due_from: float | None = None
        self.last_turn = 0
        self.failure: str | None = None
        """Why the latest retention failed; nothing where it did not."""

    def reset(self) -> None:
        """Forget what was retained, as after a rewind."""
        self._sent = None
        self.last_turn = 0

    def begin_after(self, messages: Sequence[Message]) -> None:
        """Leave a conversation so far to other documents, under which it is stored."""
        self._elsewhere, self._resumed = (len(messages), prefix_key(messages)), False
        self.last_turn = user_turns(messages)

    def end_turn(self, messages: Sequence[Message], session_id: str) -> None:
        """Retain when enough turns have come; a failure is logged and leaves all as it was."""
        config = self._service.config
        if config.auto_retain and due(messages, self.last_turn, config.retain_every_n_turns):
            self._retain(messages, session_id, self._usual)

    def force(self, messages: Sequence[Message], session_id: str) -> None:
        """Retain now what a retention holds: the whole log, or its last turns."""
        self._sent = None
        self._retain(messages, session_id, self._usual)

    @property
    def _usual(self) -> float:
        config = self._service.config
        return config.retain_every_n_turns + config.retain_overlap_turns

    def finish(self, messages: Sequence[Message], session_id: str) -> None:
        """Retain what came since the last time, however little."""
        config = self._service.config
        if config.auto_retain and due(messages, self.last_turn, 1):
            self._retain(messages, session_id, user_turns(messages) - self.last_turn + config.retain_overlap_turns)

    def _retain(self, messages: Sequence[Message], session_id: str, window: float) -> None:
        self.failure = None
        try:
            self._send(messages, session_id, window)
        except MemoryToolkitError as error:
            self._window = None
            self.failure = safe_line(f"{error}")
            log.warning("Hindsight: automatic retention in bank %s failed: %s", self._service.bank, self.failure)

    def _send(self, messages: Sequence[Message], session_id: str, window: float) -> None:
        now = self._clock.now_ms()
        sent: Sent | None = None
        if self._service.config.retain_mode == "full-session":
            begin = self._begin(messages, session_id)
            document = self._name(session_id)
            sent = next_document(self._sent, document, messages[begin:])
            content = sent.text if sent else None
        else:
            # After an interrupt the same name again: what may have arrived is replaced, not stored twice.
            document = self._window = self._window or f"{session_id}-{now}"
            # What a failed attempt should have stored is still due, however long ago that was.
            turns = user_turns(messages)
            self._due_from = min(max(0, turns - window), turns if self._due_from is None else self._due_from)
            content = window_text(messages, max(window, turns - self._due_from))
        if content is not None:
            started = None if self._started is None else parse_ms(js.trim(self._started), self._clock.tz)
            problem = self._service.send_transcript(
                redact(content),
                document_id=document,
                session_id=session_id,
                started_ms=now if started is None else started,
            )
            if problem is not None:
                self._odd(problem)
            self._sent = sent
        self.last_turn = user_turns(messages)
        self._window = self._due_from = None

    def _begin(self, messages: Sequence[Message], session_id: str) -> int:
        """Return where the part of the log begins that no other document holds; a rewritten log begins at its start."""
        if self._resumed:
            there = self._service.stored_session(session_id)
            while self._name(session_id) in there:  # two restarts at one instant
                self._again_ms = (self._again_ms or 0) + 1
            count = held("\n\n".join(filter(None, there.values())), messages)
            self._elsewhere, self._resumed = (count, prefix_key(messages[:count])), False
        count, key = self._elsewhere
        return count if count <= len(messages) and prefix_key(messages[:count]) == key else 0

    def _name(self, session_id: str) -> str:
        return session_id if self._again_ms is None else f"{session_id}-r{self._again_ms}"
