"""The episodic graph of a bank: gists, statements, and the edges that tie memories together."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db import rows
from ipy_memory.backends.mnemopi.db.rows import as_text
from ipy_memory.jscompat import dates, strings
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ipy_memory.backends.mnemopi.db.bank import Bank

LINK_THRESHOLD = 0.35
"""How alike two memories must be to be tied together; also the weight of a shared time scope."""

_TOKEN = re.compile(f"[{strings.WORD}-]+")
_SHORTEST_TOKEN = 3
_STOP_WORDS = frozenset(
    ("the", "and", "for", "with", "that", "this", "from", "into", "onto", "about", "was", "were", "are", "is", "has")
) | {"have", "had", "she", "he", "they", "them", "their", "our", "new"}


class Graph:
    """Ties new memories to those of a bank; what it has read of the bank serves one write transaction.

    Parameters
    ----------
    bank
        The bank, inside a transaction.
    session
        The session name that statements carry; the bank's own by default.
    """

    def __init__(self, bank: Bank, session: str | None = None) -> None:
        self._bank = bank
        self.session = session or bank.name
        self._sizes: dict[str, int] = {}
        self._postings: defaultdict[str, list[str]] = defaultdict(list)
        self._entities: defaultdict[str, set[str]] = defaultdict(set)
        self._scopes: dict[str, str | None] = {}
        self._read()

    def ingest(self, memory_id: str, text: str, *, statements: bool = True) -> None:
        """Store the gist (and the statements) of a memory and tie it to what the bank holds.

        Parameters
        ----------
        memory_id
            The memory.
        text
            Its text.
        statements
            Whether statements are read out of the text as well.
        """
        now_ms = self._bank.clock.now_ms()
        now = dates.iso(now_ms)
        gist = extract_gist(text, memory_id, now_ms)
        self._store_gist(gist, memory_id)
        self._add_edge(memory_id, gist.id, "ctx", 1, now)
        for statement in extract_statements(text, memory_id, now_ms) if statements else ():
            self._store_statement(statement, memory_id)
            self._add_edge(gist.id, statement.id, "rel", statement.confidence, now)
        self._link(memory_id, _tokens(text), gist.time_scope, now)
        self._add_tokens(memory_id, text)
        self._scopes[memory_id] = gist.time_scope

    def _read(self) -> None:
        connection = self._bank.connection
        contents: dict[str, str | None] = {}
        for memory_id, own_id, text, scope in connection.execute(
            "SELECT memory_id, id, text, time_scope FROM gists WHERE memory_id IS NOT NULL ORDER BY rowid"
        ):
            contents.setdefault(memory_id, text)
            if own_id == gist_id(memory_id):
                self._scopes[memory_id] = scope
        working = dict(connection.execute("SELECT id, content FROM working_memory ORDER BY id"))
        episodic = dict(connection.execute("SELECT id, content FROM episodic_memory ORDER BY id"))
        for memory_id, text in (contents | episodic | working).items():
            self._sizes.setdefault(memory_id, 0)
            self._add_tokens(memory_id, as_text(text) or "")
        # Ids are visited gists first, then working, then episodic rows.
        order = dict.fromkeys((*contents, *working, *episodic))
        self._sizes = {memory_id: self._sizes[memory_id] for memory_id in order}
        for memory_id, subject, object_ in connection.execute(
            "SELECT source_msg_id, subject, object FROM facts WHERE source_msg_id IS NOT NULL"
        ):
            self._add_entities(memory_id, (subject, object_))

    def _add_tokens(self, memory_id: str, text: str) -> None:
        if self._sizes.get(memory_id):
            return
        tokens = _tokens(text)
        self._sizes[memory_id] = len(tokens)
        for token in tokens:
            self._postings[token].append(memory_id)

    def _add_entities(self, memory_id: str, names: Iterable[object]) -> None:
        self._entities[memory_id].update(filter(None, (js.lower(js.trim(as_text(name) or "")) for name in names)))

    def _store_gist(self, gist: Gist, memory_id: str) -> None:
        row = {
            "id": gist.id,
            "text": js.well_formed(gist.text),
            "timestamp": gist.timestamp,
            "participants_json": js.json_text(gist.participants),
            "location": gist.location,
            "emotion": gist.emotion,
            "time_scope": gist.time_scope,
            "memory_id": memory_id,
        }
        rows.replace(self._bank.connection, "gists", row)

    def _store_statement(self, statement: Statement, memory_id: str) -> None:
        row = {
            "fact_id": statement.id,
            "session_id": self.session,
            "subject": statement.subject,
            "predicate": statement.predicate,
            "object": statement.object,
            "timestamp": statement.timestamp,
            "source_msg_id": memory_id,
            "confidence": statement.confidence,
        }
        rows.replace(self._bank.connection, "facts", row)

    def _link(self, memory_id: str, tokens: frozenset[str], scope: str | None, now: str) -> None:
        shared = Counter(other for token in tokens for other in self._postings.get(token, ()))
        entities = self._own_entities(memory_id)
        for other, size in self._sizes.items():
            if other == memory_id:
                continue
            common = shared[other]
            lexical = _round3(common / (len(tokens) + size - common)) if common else 0.0
            theirs = self._entities.get(other)
            entity = _round3(len(entities & theirs) / max(len(entities), len(theirs))) if theirs and entities else 0.0
            temporal = LINK_THRESHOLD if scope is not None and self._scopes.get(other) == scope else 0.0
            strongest = max(lexical, entity, temporal)
            if lexical >= LINK_THRESHOLD:
                self._add_edge(memory_id, other, "related_to", lexical, now)
                self._add_edge(memory_id, other, "ctx", lexical, now)
            if entity > 0:
                self._add_edge(memory_id, other, "references", entity, now)
            if lexical < LINK_THRESHOLD <= strongest:
                self._add_edge(memory_id, other, "ctx", strongest, now)

    def _own_entities(self, memory_id: str) -> set[str]:
        # Facts may have come since the bank was read: the statements just stored and what consolidation found.
        for subject, object_ in self._bank.connection.execute(
            "SELECT subject, object FROM facts WHERE source_msg_id = ?", (memory_id,)
        ):
            self._add_entities(memory_id, (subject, object_))
        return self._entities.get(memory_id, set())

    def _add_edge(self, source: str, target: str, kind: str, weight: float, now: str) -> None:
        self._bank.connection.execute(
            "INSERT OR ABORT INTO graph_edges (source, target, edge_type, weight, timestamp) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (source, target, edge_type)"
            " DO UPDATE SET weight = excluded.weight, timestamp = excluded.timestamp",
            (source, target, kind, js.clamp01(weight), now),
        )


def _tokens(text: str) -> frozenset[str]:
    found = frozenset(token for token in _TOKEN.findall(js.lower(text)) if js.units(token) >= _SHORTEST_TOKEN)
    return found - _STOP_WORDS


def _round3(value: float) -> float:
    return math.floor(value * 1000 + 0.5) / 1000


GIST_LENGTH = 100
MAX_FACTS = 5
MAX_PARTICIPANTS = 5

_SPACE = f"[{js.WHITESPACE}]"
_SHORTEST_SENTENCE = 10
_FACT_WINDOW = 4096
_SHORTEST_PART = 3

_SENTENCE_END = re.compile(r"[.!?]+")
_WORD = re.compile(f"[{strings.WORD}]+")
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
    return len(word) > 1 and strings.is_capital(word[0]) and all(map(strings.is_small, word[1:]))


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
