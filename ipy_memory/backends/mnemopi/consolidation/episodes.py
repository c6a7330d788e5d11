"""How sleep turns old memories into episodes: groups, chunks, the summary's text and what is said about it (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

UNKNOWN = "unknown"
CUT_MARK = "\n[... sleep_consolidation episode truncated by maxEpisodeChars ...]"

_SEPARATOR = " | "
_VERACITY_WEIGHT: Mapping[str, float] = {
    "false": 0.0,
    "tool": 0.5,
    "imported": 0.6,
    "inferred": 0.7,
    "true": 1.0,
    "stated": 1.0,
}


@dataclass(frozen=True, slots=True)
class OldMemory:
    """A working memory that is about to be summarised; ``text`` is what stands for it in a summary."""

    id: str
    text: str
    source: str | None
    valid_until: str | None
    scope: str | None
    veracity: str | None


@dataclass(frozen=True, slots=True)
class Episode:
    """One summary, and what it holds of the memories that went into it."""

    text: str
    metadata: Mapping[str, Any]
    members: tuple[str, ...]
    valid_until: str | None
    scope: str
    veracity: str


def episodes(memories: Iterable[OldMemory], max_chars: int) -> Iterator[Episode]:
    """Yield the episodes of some memories: one or more for each source, sources in order of first appearance."""
    groups: dict[str, list[OldMemory]] = {}
    for memory in memories:
        groups.setdefault(UNKNOWN if memory.source is None else memory.source, []).append(memory)
    for source, group in groups.items():
        for chunk in _chunks(group, max_chars - js.units(_heading(source))):
            yield _episode(source, chunk, max_chars)


def aggregate_veracity(values: Iterable[str | None]) -> str:
    """Return the veracity that most memories have; of equals, at each step, the less trustworthy one."""
    counts: dict[str, int] = {}
    winner = UNKNOWN
    for value in (js.lower(js.trim(given or "")) for given in values):
        if value not in _VERACITY_WEIGHT:
            continue
        counts[value] = counts.get(value, 0) + 1
        lead = counts[value] - counts.get(winner, 0)
        if lead > 0 or (lead == 0 and _VERACITY_WEIGHT[value] < _VERACITY_WEIGHT[winner]):
            winner = value
    return winner


def _heading(source: str) -> str:
    return f"[{source}] "


def _chunks(group: Sequence[OldMemory], budget: int) -> Iterator[Sequence[OldMemory]]:
    chunk: list[OldMemory] = []
    used = 0
    for memory in group:
        size = js.units(memory.text)
        cost = size + (len(_SEPARATOR) if chunk else 0)
        if chunk and used + cost > budget:
            yield chunk
            chunk, used, cost = [], 0, size
        chunk.append(memory)
        used += cost
    yield chunk


def _episode(source: str, chunk: Sequence[OldMemory], max_chars: int) -> Episode:
    joined = _SEPARATOR.join(memory.text for memory in chunk)
    full = _heading(source) + encode(joined)
    metadata: dict[str, Any] = {"original_count": len(chunk), "source": source, "llm_used": False}
    text = full
    if js.units(full) > max_chars:
        text = _shortened(full, max_chars)
        metadata |= {"truncated": True, "original_chars": js.units(joined), "max_chars": max_chars}
    return Episode(
        text=js.well_formed(text),
        metadata=metadata,
        members=tuple(memory.id for memory in chunk),
        valid_until=min(filter(None, (memory.valid_until for memory in chunk)), default=None),
        scope="global" if any(memory.scope == "global" for memory in chunk) else "session",
        veracity=aggregate_veracity(memory.veracity for memory in chunk),
    )


def _shortened(text: str, max_chars: int) -> str:
    if max_chars <= len(CUT_MARK):
        return js.cut(text, 0, max_chars)
    return js.trim_end(js.cut(text, 0, max_chars - len(CUT_MARK))) + CUT_MARK


_CATEGORIES = (
    ("PREFERENCE", "PREF"),
    ("TRAIT", "TRAIT"),
    ("STATUS", "STAT"),
    ("INSTRUCTION", "INST"),
    ("PROJECT", "PROJ"),
    ("LOCATION", "LOC"),
    ("FAMILY", "FAM"),
    ("OCCUPATION", "OCC"),
    ("DECISION", "DEC"),
    ("EVENT", "EVT"),
    ("TOOL", "TOOL"),
    ("FACT", "FACT"),
    ("OPINION", "OPN"),
)

# Longest first; phrases of one length keep the order of the real table.
_PHRASES = (
    ("Full-stack developer", "FSDEV"),
    ("User voice message ", "VM "),
    ("AI Systems Engineer", "AIENG"),
    ("Software Developer", "SDEV"),
    ("User asked for ", "ASK "),
    ("User requested ", "REQ "),
    ("User dislikes ", "DISLIKE "),
    ("User email is ", "@"),
    ("User prefers ", "PREF "),
    ("transcription", "transc"),
    ("User stack: ", "STACK|"),
    ("User asked ", "ASK "),
    ("User wants ", "WANT "),
    ("User likes ", "LIKE "),
    ("User built ", "BUILT "),
    ("Married to ", "MARRIED→"),
    ("self-hosted", "selfhost"),
    ("translation", "transl"),
    ("Location: ", "LOC:"),
    ("automation", "auto"),
    ("User has ", "HAS "),
    ("real-time", "RT"),
    ("Real-time", "RT"),
    ("bilingual", "bi"),
    ("Bilingual", "bi"),
    ("User is ", "IS "),
    ("GitHub: ", "GH:"),
    ("Email: ", "@"),
    ("Phone: ", "PH:"),
)

_CONNECTIVES = (
    (" - ", " | "),
    (" -- ", " | "),
    (" | ", " | "),
    (", ", " | "),
    (" and ", "+"),
    (" or ", "/"),
    (" for ", "→"),
    (" to ", "→"),
    (" with ", " w/ "),
    (" over ", ">"),
    (" instead of ", "!>"),
    (" because of ", "∵"),
    (" due to ", "∵"),
    (" using ", "→"),
    (" built ", "→"),
    (" in ", ":"),
    (" at ", "@"),
    (" on ", "@"),
    (" from ", "<-"),
)

_ENDINGS = (("working correctly", "OK"), ("working", "OK"), ("complete", "DONE"))

_OPENING = re.compile(rf"\([{js.WHITESPACE}]+")
_WORDS_OF_A_CODE = 3


def encode(text: str) -> str:
    """Return the short form of a text; a text that already looks like a code is left as it is."""
    if "|" in text and len(js.split_spaces(text)) <= _WORDS_OF_A_CODE:
        return text
    text = _category(js.trim(text))
    for table in (_PHRASES, _CONNECTIVES):
        for long, short in table:
            text = text.replace(long, short)
    text = _OPENING.sub("(", text).replace(" )", ")")
    for long, short in _ENDINGS:
        text = text.replace(long, short)
    return js.trim(text)


def _category(text: str) -> str:
    for name, code in _CATEGORIES:
        if text.startswith(f"{name}: "):
            return f"{code}|{text[len(name) + 2 :]}"
    return text
