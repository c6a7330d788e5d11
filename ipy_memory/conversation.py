"""Conversation turns as both backends see them: messages, transcripts and the query for automatic recall (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.jscompat import strings
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONTEXT_HEADING = "Prior context:\n\n"
"""What stands above the earlier turns in a composed query."""

MIN_TRANSCRIPT_UNITS = 10
"""A transcript shorter than this, trimmed, is not worth keeping."""

UNITS_PER_TOKEN = 4
"""How many UTF-16 units count as one token."""

_TAGS = ("memories", "mental_models", "hindsight_memories", "relevant_memories")
_LINE_END = r"\n\r\u2028\u2029"
# White space before a time is taken as a whole; else a long run of it would be divided in every way.
_PROTOCOL_LINE = re.compile(
    rf"\[role:[{js.WHITESPACE}]*+[A-Za-z0-9_-]+\]|\[[A-Za-z0-9_-]+:end\]"
    rf"|\[timestamp:[{js.WHITESPACE}]++[^{_LINE_END}]+\]|\[timestamp:[{js.WHITESPACE}]+[^{_LINE_END}]\]"
)
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; ``timestamp`` is the text that came with it."""

    role: str
    text: str
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """Messages as one text; ``text`` is ``None`` (and the count 0) when there is nothing worth keeping."""

    text: str | None
    message_count: int


def messages_of(entries: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Return the user and assistant messages of a session log that say something.

    An entry counts when it is of type ``message``.
    """
    found: list[Message] = []
    for entry in entries:
        message = entry.get("message")
        if entry.get("type") == "message" and hasattr(message, "get") and message is not None:
            stamp = entry.get("timestamp")
            known = stamp if isinstance(stamp, str) else None
            found += [Message(one.role, one.text, known) for one in messages_in([message])]
    return spoken(found)


def messages_in(messages: Iterable[Mapping[str, Any]], *, empty_blocks: bool = False) -> list[Message]:
    """Return the user and assistant messages of a list, such as one that is about to be compacted.

    A text is the content, or the text blocks of the content joined by newlines (thinking, tool calls and the rest are
    dropped). An assistant's blocks that are empty are dropped too, unless ``empty_blocks`` keeps them.
    """
    found = []
    for message in messages:
        if (role := message.get("role")) in ("user", "assistant"):
            texts = _texts(message.get("content"))
            if role == "assistant" and not empty_blocks:
                texts = list(filter(None, texts))
            found.append(Message(role, "\n".join(texts)))
    return found


def spoken(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that say something; the others are no turns."""
    return [message for message in messages if has_substance(message.text)]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list | tuple):
        return []
    blocks = [block for block in content if hasattr(block, "get") and block.get("type") == "text"]
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]


def has_substance(text: str) -> bool:
    """Return whether the text holds at least one letter or number."""
    return strings.has_letter_or_digit(js.pairs(text))


def strip_tags(text: str) -> str:
    """Return the text without the memory blocks that were put into a prompt.

    The shortest stretch up to the first closing tag goes, one kind of tag after the other.
    """
    for tag in _TAGS:
        text = _without(text, f"<{tag}>", f"</{tag}>")
    return text


def _without(text: str, begin: str, end: str) -> str:
    """Return the text without the stretches from ``begin`` to the first ``end`` after it, looked for only once."""
    kept = []
    at = 0
    while (start := text.find(begin, at)) >= 0 and (stop := text.find(end, start + len(begin))) >= 0:
        kept.append(text[at:start])
        at = stop + len(end)
    return "".join(kept) + text[at:]


def strip_protocol(text: str) -> str:
    """Return the text without the marker lines of a transcript."""
    lines = text.replace("\r\n", "\n").split("\n")
    kept = "\n".join(line for line in lines if not _PROTOCOL_LINE.fullmatch(js.trim(line)))
    return js.trim(_BLANK_LINES.sub("\n\n", kept))


def user_turns(messages: Sequence[Message]) -> int:
    """Return the number of user messages."""
    return sum(message.role == "user" for message in messages)


def last_turns(messages: Sequence[Message], turns: float) -> Sequence[Message]:
    """Return the messages from the ``turns``-th last user message on; all when there are fewer."""
    if turns <= 0:
        return messages[:0]
    for index in range(len(messages) - 1, -1, -1):
        turns -= messages[index].role == "user"
        if turns <= 0:
            return messages[index:]
    return messages


def compose_query(latest: str, messages: Sequence[Message], turns: float) -> str:
    """Return the query for automatic recall: the latest message under the turns before it."""
    latest = js.trim(latest)
    if turns <= 1 or not messages:
        return latest
    lines = []
    for message in last_turns(messages, turns):
        text = js.trim(strip_tags(message.text))
        if text and not (message.role == "user" and text == latest):
            lines.append(f"{message.role}: {text}")
    return _with_context(lines, latest) if lines else latest


def cut_query(query: str, latest: str, limit: float) -> str:
    """Return a composed query held to ``limit`` units: the oldest context lines go first."""
    if limit <= 0 or js.units(query) <= limit:
        return query
    latest = js.trim(latest)
    alone = js.cut(latest, 0, int(limit))
    ending = f"\n\n{latest}"
    end = query.rfind(ending)
    if not query.startswith(CONTEXT_HEADING) or end < 0 or js.units(ending) >= limit:
        return alone
    kept: list[str] = []
    fitting = alone
    for line in reversed([line for line in query[len(CONTEXT_HEADING) : end].split("\n") if line]):
        kept.insert(0, line)
        candidate = _with_context(kept, latest)
        if js.units(candidate) > limit:
            break
        fitting = candidate
    return fitting


def _with_context(lines: Sequence[str], latest: str) -> str:
    return f"{CONTEXT_HEADING}{chr(10).join(lines)}\n\n{latest}"


def transcript(messages: Sequence[Message], *, full: bool, stamps: bool = False) -> Transcript:
    """Return the messages as a framed transcript: all of them, or from the last user message on."""
    if not full:
        messages = last_turns(messages, 1) if user_turns(messages) else ()
    blocks = []
    for message in messages:
        text = js.trim(strip_tags(message.text))
        if has_substance(text):
            stamp = js.trim(message.timestamp or "") if stamps else ""
            head = f"[role: {message.role}]\n" + (f"[timestamp: {stamp}]\n" if stamp else "")
            blocks.append(f"{head}{text}\n[{message.role}:end]")
    return _transcript("\n\n".join(blocks), len(blocks))


def user_transcript(messages: Sequence[Message]) -> Transcript:
    """Return the framed transcript of the user's messages alone (what facts are extracted from)."""
    return transcript([message for message in messages if message.role == "user"], full=True)


def plain_transcript(messages: Sequence[Message]) -> Transcript:
    """Return the transcript of all messages without any frame (what is embedded and indexed)."""
    said = [text for message in messages if has_substance(text := js.trim(strip_tags(message.text)))]
    return _transcript("\n\n".join(filter(None, map(strip_protocol, said))), len(said))


def _transcript(text: str, count: int) -> Transcript:
    return Transcript(text, count) if js.units(js.trim(text)) >= MIN_TRANSCRIPT_UNITS else Transcript(None, 0)


def truncate_tokens(text: str, limit: float) -> str:
    """Return the text held to about ``limit`` tokens, ending in ``…`` when something was cut."""
    size = limit * UNITS_PER_TOKEN
    return text if js.units(text) <= size else js.trim_end(js.cut(text, 0, max(0, int(size - 1)))) + "…"
