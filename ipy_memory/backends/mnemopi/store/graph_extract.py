"""What the episodic graph reads out of a text: a gist of the moment and simple statements (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipy_memory.jscompat import dates, letters
from ipy_memory.jscompat import strings as js

GIST_LENGTH = 100
MAX_FACTS = 5
MAX_PARTICIPANTS = 5

_SPACE = f"[{js.WHITESPACE}]"
_SHORTEST_SENTENCE = 10
_FACT_WINDOW = 4096
_SHORTEST_PART = 3

_SENTENCE_END = re.compile(r"[.!?]+")
_WORD = re.compile(f"[{letters.WORD}]+")
_PRONOUN = re.compile(r"\b(?:I|you|we|they|he|she|it|me|us|them|him|her)\b", re.ASCII | re.IGNORECASE)

_LETTERS = re.compile(rf"[a-zA-Z{js.WHITESPACE}]+")
_PLACE_START = re.compile(rf"\b(?:at|in|from){_SPACE}+(?=[A-Z][a-zA-Z{js.WHITESPACE}])", re.ASCII)
_PLACE_PHRASE = re.compile(
    rf"([A-Z][a-zA-Z{js.WHITESPACE}]+?)"
    rf"(?:{_SPACE}+(?:yesterday|today|tomorrow|now|last|next|on|at)\b|{_SPACE}*\Z)",
    re.ASCII,
)
_PLACE_WORD = re.compile(
    r"\b(?:office|home|work|school|hospital|store|restaurant|building|room)\b", re.ASCII | re.IGNORECASE
)

_EMOTIONS = {
    "positive": ("happy", "excited", "great", "awesome", "love", "enjoy", "glad", "pleased"),
    "negative": ("sad", "angry", "frustrated", "upset", "hate", "disappointed", "worried"),
    "neutral": ("fine", "okay", "alright", "normal", "standard"),
}

_LINE_END = re.compile(r"[\n\r\u2028\u2029]")


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern.replace(' ', f'{_SPACE}+')})\b", re.ASCII | re.IGNORECASE)


# One pattern anywhere, or one and later on the same line the other.
_TIME_SCOPES = (
    ((_words("yesterday|today|tomorrow|now|soon|later|earlier"),), "point_in_time"),
    ((_words("last week|last month|last year|next week"),), "point_in_time"),
    ((_words("since|from|starting"), _words("until|to|through|end")), "duration"),
    ((_words("between|from"), _words("and|to")), "range"),
    ((_words(r"\d{1,2}:\d{2}"),), "point_in_time"),
    ((_words(r"\d{4}-\d{2}-\d{2}"),), "point_in_time"),
)

_SUBJECT = rf"\b([A-Z][a-zA-Z{js.WHITESPACE}]+?){_SPACE}+"
_ARTICLE = rf"{_SPACE}+(?:a|an|the)?{_SPACE}*"
_STATEMENTS = tuple(
    (re.compile(_SUBJECT + rest, re.ASCII), predicate, confidence)
    for rest, predicate, confidence in (
        (rf"is{_ARTICLE}([a-zA-Z{js.WHITESPACE}]+?)\b", "is", 0.7),
        (rf"has{_ARTICLE}([a-zA-Z0-9{js.WHITESPACE}]+?)\b", "has", 0.6),
        (rf"(?:uses?|using|used){_ARTICLE}([a-zA-Z{js.WHITESPACE}]+?)\b", "uses", 0.6),
        (rf"works?{_SPACE}+(?:at|for|with){_SPACE}+([A-Z][a-zA-Z{js.WHITESPACE}]+?)\b", "works_at", 0.7),
    )
)


@dataclass(frozen=True, slots=True)
class Gist:
    """The moment a text speaks of."""

    id: str
    text: str
    timestamp: str
    participants: tuple[str, ...]
    location: str | None
    emotion: str | None
    time_scope: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """One simple statement: who, what, whom."""

    id: str
    subject: str
    predicate: str
    object: str
    timestamp: str
    confidence: float


def gist_id(memory_id: str) -> str:
    """Return the id of a memory's gist."""
    return f"gist_{memory_id}"


def extract_gist(text: str, memory_id: str, now_ms: int) -> Gist:
    """Return the gist of a memory's text."""
    return Gist(
        id=gist_id(memory_id),
        text=_summary(text),
        timestamp=dates.iso(now_ms),
        participants=_participants(text),
        location=_location(text),
        emotion=_emotion(text),
        time_scope=_time_scope(text),
    )


def extract_statements(text: str, memory_id: str, now_ms: int) -> list[Statement]:
    """Return the first statements of a text, pattern by pattern."""
    found: list[Statement] = []
    window = js.cut(text, 0, _FACT_WINDOW)
    for pattern, predicate, confidence in _STATEMENTS:
        for match in pattern.finditer(window):
            subject, object_ = js.trim(match[1]), js.trim(match[2])
            if len(subject) < _SHORTEST_PART or len(object_) < _SHORTEST_PART:
                continue
            found.append(
                Statement(
                    id=f"fact_{memory_id}_{len(found)}",
                    subject=subject,
                    predicate=predicate,
                    object=object_,
                    timestamp=dates.iso(now_ms),
                    confidence=confidence,
                )
            )
            if len(found) == MAX_FACTS:
                return found
    return found


def _summary(text: str) -> str:
    first = js.trim(_SENTENCE_END.split(text, maxsplit=1)[0])
    if js.units(first) > _SHORTEST_SENTENCE:
        return js.cut(first, 0, GIST_LENGTH)
    return js.trim(js.cut(text, 0, GIST_LENGTH))


def _participants(text: str) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for name in (*_names(text), *_PRONOUN.findall(text)):
        found.setdefault(js.lower(name), name)
    return tuple(found.values())[:MAX_PARTICIPANTS]


def _names(text: str) -> list[str]:
    # A name is one whole word or two with only white space between them.
    names: list[str] = []
    previous: re.Match[str] | None = None
    for word in _WORD.finditer(text):
        if not _is_name(word[0]):
            previous = None
        elif previous and not js.trim(text[previous.end() : word.start()]):
            names[-1] = text[previous.start() : word.end()]
            previous = None
        else:
            names.append(word[0])
            previous = word
    return names


def _is_name(word: str) -> bool:
    return len(word) > 1 and letters.is_capital(word[0]) and all(map(letters.is_small, word[1:]))


def _location(text: str) -> str | None:
    # A phrase lies within one run of letters and spaces. Where the first start in a run leads to no end, no later one
    # does, so that only one has to be tried.
    for run in _LETTERS.finditer(text):
        start = _PLACE_START.search(text, run.start(), run.end())
        if start and (phrase := _PLACE_PHRASE.match(text, start.end())):
            return js.trim(phrase[1])
    word = _PLACE_WORD.search(text)
    return word[0] if word else None


def _time_scope(text: str) -> str | None:
    lines = _LINE_END.split(text)
    for patterns, scope in _TIME_SCOPES:
        if len(patterns) == 1:
            if patterns[0].search(text):
                return scope
        elif any((first := patterns[0].search(line)) and patterns[1].search(line, first.end()) for line in lines):
            return scope
    return None


def _emotion(text: str) -> str | None:
    lowered = js.lower(text)
    return next((mood for mood, words in _EMOTIONS.items() if any(word in lowered for word in words)), None)
