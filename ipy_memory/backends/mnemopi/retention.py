"""Automatic retention: when the turns of a conversation become a memory, and which of them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.consolidation.sleep import promote_before_trim
from ipy_memory.backends.mnemopi.db.bank import within_limits
from ipy_memory.backends.mnemopi.db.rows import as_text
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.conversation import plain_transcript, transcript, user_transcript, user_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.conversation import Message

TRANSCRIPT_SOURCE = "coding-agent-transcript"


@dataclass(frozen=True, slots=True)
class Due:
    """A transcript to store, and the user turn it reaches."""

    content: str
    options: RememberOptions
    through: int


def due(
    messages: Sequence[Message],
    *,
    last: int,
    every: int,
    session_id: str,
    cwd: str,
    now_ms: int,
    forced: bool = False,
    extract: bool = True,
) -> Due | None:
    """Return what is to be stored now, or ``None``.

    Parameters
    ----------
    messages
        The whole conversation.
    last
        The last user turn that is stored already.
    every
        How many new user turns make a transcript.
    session_id, cwd
        Of the session; they go into what is stored.
    now_ms
        The instant, in milliseconds since 1970.
    forced
        Take what there is, be it less than ``every``.
    extract
        Whether facts are read out of the user's own messages.
    """
    turns = user_turns(messages)
    if not forced and turns - last < every:
        return None
    fresh = _after_turn(messages, last)
    whole = transcript(fresh, full=True)
    if whole.text is None:
        return None
    spoken = user_transcript(fresh).text if extract else None
    return Due(
        content=whole.text,
        options=RememberOptions(
            source=TRANSCRIPT_SOURCE,
            importance=0.65,
            scope="bank",
            memory_type="episode",
            metadata={
                "session_id": session_id,
                "source_id": session_id if forced else f"{session_id}-{now_ms}",
                "message_count": whole.message_count,
                "retained_through_user_turn": turns,
                "cwd": cwd,
            },
            extract=spoken is not None,
            extract_entities=spoken is not None,
            extract_text=spoken,
            embed_text=plain_transcript(fresh).text,
        ),
        through=turns,
    )


def _after_turn(messages: Sequence[Message], turn: int) -> Sequence[Message]:
    """Return the messages from the user message on that follows the given user turn; all of them for the start."""
    if turn <= 0:
        return messages
    seen = 0
    for index, message in enumerate(messages):
        seen += message.role == "user"
        if seen > turn:
            return messages[index:]
    return ()


@within_limits
def stored_through(bank: Bank, session_id: str) -> int:
    """Return the last user turn of a session that the bank holds.

    Rows of older releases do not say it; theirs is the number of user messages in the transcript.
    """
    last = 0
    with bank.reading() as connection:
        rows = connection.execute(
            "SELECT metadata_json, content FROM working_memory WHERE source = ? AND metadata_json IS NOT NULL",
            (TRANSCRIPT_SOURCE,),
        )
        for metadata_json, content in rows:
            metadata = _object(metadata_json)
            through, source_id = metadata.get("retained_through_user_turn"), metadata.get("source_id")
            if isinstance(through, int | float) and not isinstance(through, bool) and math.isfinite(through):
                if metadata.get("session_id") == session_id:
                    last = max(last, int(through))
            elif isinstance(source_id, str) and (source_id == session_id or source_id.startswith(f"{session_id}-")):
                last = max(last, (as_text(content) or "").split("\n").count("[role: user]"))
    return last


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class Retention:
    """One session's cursor over its conversation: what is stored, and how far.

    Parameters
    ----------
    bank
        Opens the bank that is written, or gives the one that is open.
    session_id, cwd
        Of the session; they go into the metadata.
    every
        User turns between two transcripts.
    begin
        User turns that another bank holds, or that were cleared: they are not stored here.
    """

    def __init__(self, bank: Callable[[], Bank], *, session_id: str, cwd: str, every: int, begin: int = 0) -> None:
        self._bank = bank
        self._session_id = session_id
        self._cwd = cwd
        self._every = every
        self._begin = begin
        self._last: int | None = None

    @property
    def last_turn(self) -> int:
        """The last user turn that is dealt with; read from the bank when it is not known yet."""
        if self._last is None:
            self._last = max(self._begin, stored_through(self._bank(), self._session_id))
        return self._last

    def reset(self) -> None:
        """Forget the cursor; it is read from the bank again when it is needed."""
        self._last = None

    def end_turn(self, messages: Sequence[Message]) -> str | None:
        """Store the turns since the last time if there are enough of them; return the new memory's id.

        A failing write raises and leaves the cursor, so that the next time takes those turns too.
        """
        return self._retain(messages, forced=False, extract=True)

    def force(self, messages: Sequence[Message], *, extract: bool = True) -> str | None:
        """Store the turns since the last time, however few; return the new memory's id."""
        return self._retain(messages, forced=True, extract=extract)

    def _retain(self, messages: Sequence[Message], *, forced: bool, extract: bool) -> str | None:
        bank = self._bank()
        found = due(
            messages,
            last=self.last_turn,
            every=self._every,
            session_id=self._session_id,
            cwd=self._cwd,
            now_ms=bank.clock.now_ms(),
            forced=forced,
            extract=extract,
        )
        if found is None:
            turns = user_turns(messages)
            if turns - self.last_turn >= (1 if forced else self._every):  # there is nothing in them to store
                self._last = turns
            return None
        # Until all is done the bank alone knows how far it came: an interrupt may fall just after the commit.
        self.reset()
        with bank.transaction():
            promote_before_trim(bank, incoming=1)
            stored = remember(bank, found.content, found.options)
        self._last = found.through
        return stored
