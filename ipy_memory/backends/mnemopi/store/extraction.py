"""Facts out of text: by fixed sentence patterns, or out of a language model's answer (pure)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db import rows
from ipy_memory.clock import stable_id
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.strings import well_formed

if TYPE_CHECKING:
    import sqlite3

MAX_LENGTH = 50_000
"""Longer summaries are not read."""

KG_PREDICATE = "related_to"
"""The predicate of every relation that is read out of a summary."""

MAX_METRICS = 10
_WINDOW = 50
_DATE_WINDOW = 100
_CONTEXT_WORDS = 3
_LONGEST_DROPPED = 2
_DROPPED = frozenset(
    (
        "the",
        "and",
        "for",
        "was",
        "of",
        "to",
        "a",
        "an",
        "in",
        "on",
        "at",
        "by",
        "is",
        "are",
        "has",
        "had",
        "not",
        "but",
        "or",
    )
)

_WHITESPACE = js.WHITESPACE
_UNITS = (
    "ms|sec|seconds?|minutes?|hours?|days?|weeks?|months?|%|KB|MB|GB|TB|rows?|columns?|roles?|features?|bugs?"
    "|commits?|cards?|users?|items?|tests?|APIs?|endpoints?|sprints?|tickets?"
)
_METRIC = re.compile(rf"(?<!\d)(\d+(?:[.,]\d+)?)[{_WHITESPACE}]*({_UNITS})\b", re.ASCII | re.IGNORECASE)
_CONTEXT_BREAK = re.compile(rf"[\n|`;]|[.!?](?=[{_WHITESPACE}]|\Z)")
_CODE = re.compile(r"`[^`]*`")
_PUNCTUATION = str.maketrans("", "", ".,:;!?()[]\"'`*_")

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b", re.ASCII)
_EVENT = re.compile(
    r"\b(?:release|deadline|meeting|launch|ship|shipped|due|start|started|finish|finished)\b", re.ASCII | re.IGNORECASE
)
_VERSION = re.compile(r"\bv?\d+\.\d+(?:\.\d+)?(?:[-+][A-Za-z0-9.]+)?\b", re.ASCII)
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)
_RELATION = re.compile(
    rf"\b([A-Z][A-Za-z0-9_-]{{2,}})[{_WHITESPACE}]+(?:is|uses|runs|owns|depends on)[{_WHITESPACE}]+([^.!?;]{{2,80}})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One thing read out of a summary; an ``event`` also belongs on the timeline."""

    type: str
    key: str
    value: str
    importance: float
    snippet: str
    event: bool = False


def extract_patterns(text: str) -> list[Pattern]:
    """Return the measures, then the dates, then the versions of a summary."""
    text = js.spread(text)
    if len(text) > MAX_LENGTH:
        return []
    return [*_metrics(text), *_dates(text), *_versions(text)]


def extract_relations(text: str) -> list[tuple[str, str]]:
    """Return subject and object of each simple relation of a summary."""
    text = js.spread(text)
    if len(text) > MAX_LENGTH:
        return []
    return [(match[1], js.pairs(js.collapse(match[2]))) for match in _RELATION.finditer(text)]


def _metrics(text: str) -> list[Pattern]:
    found = []
    for match in _METRIC.finditer(text):
        number, unit = match.groups()
        found.append(
            Pattern(
                type="metric",
                key="_".join((*_context_words(_before(text, match.start())), _unit_name(unit))),
                value=f"{number}{unit}",
                importance=0.65,
                snippet=_snippet(text, match.start(), _WINDOW),
            )
        )
        if len(found) == MAX_METRICS:
            break
    return found


def _dates(text: str) -> list[Pattern]:
    found = []
    for match in _DATE.finditer(text):
        snippet = _snippet(text, match.start(), _DATE_WINDOW)
        found.append(Pattern("date", "iso_date", match[0], 0.5, snippet, event=bool(_EVENT.search(snippet))))
    return found


def _versions(text: str) -> list[Pattern]:
    return [
        Pattern("version", "version", match[0], 0.6, _snippet(text, match.start(), _WINDOW))
        for match in _VERSION.finditer(text)
        if not _MONTH.fullmatch(match[0])
    ]


def _unit_name(unit: str) -> str:
    name = unit.lower()
    if name == "%":
        return "pct"
    return name[:-1] if name.endswith("s") and not name.endswith("ms") else name


def _context_words(window: str) -> list[str]:
    breaks = [match.end() for match in _CONTEXT_BREAK.finditer(window)]
    window = _CODE.sub("", window[breaks[-1] :] if breaks else window)
    words = [word.translate(_PUNCTUATION) for word in js.split_spaces(window)]
    kept = [word for word in words if len(word) > _LONGEST_DROPPED and js.lower(word) not in _DROPPED]
    return [js.lower(js.pairs(word)) for word in kept[-_CONTEXT_WORDS:]]


def _before(text: str, start: int) -> str:
    return text[max(0, start - _WINDOW) : start]


def _snippet(text: str, start: int, reach: int) -> str:
    return js.pairs(js.collapse(text[max(0, start - reach) : start + reach]))


FACT_LIMIT = 5
"""How many facts one text, or one category of an answer, can give."""

_S = f"[{js.WHITESPACE}]"
_FLAGS = re.IGNORECASE | re.ASCII
_CLAUSE_END = re.compile(rf"[.!?;]+|{_S}+(?:and|but){_S}+", _FLAGS)
_REST = "([^,.!?;]+)"
_SENTENCES = tuple(
    (re.compile(rf"\b{pattern}", _FLAGS), fact)
    for pattern, fact in (
        (f"my name is {_REST}", "The user's name is {}"),
        (f"i (?:am|work as) (?:an? )?{_REST}", "The user is {}"),
        (f"i work (?:at|for) {_REST}", "The user works at {}"),
        (f"i (?:live in|am based in) {_REST}", "The user lives in {}"),
        (f"i (?:use|uses|am using) {_REST}", "The user uses {}"),
        (f"i (?:like|love|prefer|enjoy) {_REST}", "The user prefers {}"),
        (f"i (?:hate|dislike|do not like|don't like) {_REST}", "The user dislikes {}"),
        (f"(?:i|you) (always|never) {_REST}", "Instruction: {} {}"),
    )
)
_FENCE = re.compile(rf"\A```(?:json)?{_S}*|{_S}*```\Z", _FLAGS)
_QUOTED = re.compile(r'"([^"]{10,})"')
_REASONING = re.compile(
    r"<(think|thinking|thought|reasoning)\b[^>]*>.*?(?:</\1\s*>|\Z)|\A.*?</(?:think|thinking|thought|reasoning)\s*>",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_BULLET = re.compile(rf"[-*0-9.{js.WHITESPACE}]+")
_COMMON_KEYS = ("fact", "text", "content", "value", "statement")
NOTHING = "no_facts"
"""What a language model answers, in any case of letters, when a text says nothing worth keeping."""

_TIMELINE_KEYS = ("description", "event", "timeline", "date", *_COMMON_KEYS)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What one text gave, by category; ``kg`` are (subject, predicate, object)."""

    facts: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    timelines: tuple[str, ...] = ()
    kg: tuple[tuple[str, str, str], ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """Return everything but the triples, category after category."""
        return self.facts + self.instructions + self.preferences + self.timelines

    def __bool__(self) -> bool:
        return bool(self.sentences() or self.kg)


def heuristic_facts(text: str) -> list[str]:
    """Return the first five facts that the fixed sentence patterns find."""
    found: list[str] = []
    for clause in map(js.trim, _CLAUSE_END.split(js.collapse(text))):
        for pattern, form in _SENTENCES:
            if not (match := pattern.search(clause)):
                continue
            words = [js.trim(group) for group in match.groups()]
            if len(words) > 1:
                words[0] = js.lower(words[0])
            fact = js.trim(form.format(*words)).rstrip(".!?")
            if js.units(fact) > 10 and fact not in found:
                found.append(fact)
    return found[:FACT_LIMIT]


def plain_answer(answer: str | None) -> str:
    """Return an answer without the model's reasoning and the fence around it; a bare list is one of facts."""
    text = _unfenced(js.trim(_REASONING.sub("", answer or "")))
    if not text.startswith("["):
        return text
    try:
        listed = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return js.json_text({"facts": listed})


def _unfenced(text: str) -> str:
    return _FENCE.sub("", text) if text.startswith("```") else text


def parse_answer(answer: str | None) -> Extracted:
    """Return what a language model's answer says: JSON, else its quoted strings, else its lines."""
    text = js.trim(answer or "")
    if js.lower(text) == NOTHING:
        return Extracted()
    body = _unfenced(text)
    if body.startswith("{"):
        try:
            parsed = json.loads(body, parse_constant=_refuse, parse_int=float)
        except (ValueError, RecursionError):
            if quoted := _cleaned(_QUOTED.findall(body)):
                return Extracted(facts=quoted)
        else:
            return _categories(parsed)
    lines = [js.trim(_BULLET.sub("", line, count=1) if _BULLET.match(line) else line) for line in text.split("\n")]
    return Extracted(facts=_cleaned([line for line in lines if js.units(line) > 10]))


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _categories(parsed: dict[str, Any]) -> Extracted:
    return Extracted(
        facts=_cleaned([_first(item, _COMMON_KEYS) for item in _items(parsed, "facts")]),
        instructions=_cleaned(
            [_first(item, ("instruction", "rule", *_COMMON_KEYS)) for item in _items(parsed, "instructions")]
        ),
        preferences=_cleaned([_first(item, ("preference", *_COMMON_KEYS)) for item in _items(parsed, "preferences")]),
        timelines=_cleaned([" ".join(_texts(item, _TIMELINE_KEYS)) for item in _items(parsed, "timelines")]),
        kg=tuple([triple for item in _items(parsed, "kg") if (triple := _triple(item))][:FACT_LIMIT]),
    )


def _items(parsed: dict[str, Any], category: str) -> list[Any]:
    items = parsed.get(category)
    return items if isinstance(items, list) else []


def _texts(item: Any, keys: tuple[str, ...]) -> list[str]:
    if isinstance(item, str):
        return [item]
    values = [item.get(key) for key in keys] if isinstance(item, dict) else []
    return [text for value in values if isinstance(value, str) and (text := js.trim(value))]


def _first(item: Any, keys: tuple[str, ...]) -> str:
    return next(iter(_texts(item, keys)), "")


def _triple(item: Any) -> tuple[str, str, str] | None:
    parts = [item.get(key) for key in ("subject", "predicate", "object")] if isinstance(item, dict) else item
    if not isinstance(parts, list) or len(parts) < 3:
        return None
    subject, predicate, object_ = (_clean(part) if isinstance(part, str) else "" for part in parts[:3])
    return (subject, predicate, object_) if subject and predicate and object_ else None


def _clean(text: str) -> str:
    return js.trim(text).rstrip(".!?")


def _cleaned(texts: list[str]) -> tuple[str, ...]:
    return tuple([text for text in map(_clean, texts) if text][:FACT_LIMIT])


SENTENCE_IMPORTANCE = 0.7
RELATION_CONFIDENCE = 0.65
_LINE = "[^\n\r\u2028\u2029]"
_ROW_FLAGS = re.ASCII | re.IGNORECASE
_PREFERENCE = re.compile(rf"The user (?:prefers|dislikes) ({_LINE}+)", _ROW_FLAGS)
_INSTRUCTION = re.compile(rf"Instruction: ({_LINE}+)", _ROW_FLAGS)


@dataclass(frozen=True, slots=True)
class FactRows:
    """Writes the facts of one memory into an open transaction.

    Parameters
    ----------
    connection
        Of the bank, inside a transaction.
    session
        The session (bank) name that the rows carry.
    source_id
        The memory that the facts come from.
    now
        The instant, as ISO text.
    """

    connection: sqlite3.Connection
    session: str
    source_id: str
    now: str

    def add_extracted(self, extracted: Extracted) -> None:
        """Write everything that one text gave, category after category."""
        for sentence in extracted.sentences():
            self.add_fact("entity", "fact", sentence, SENTENCE_IMPORTANCE, sentence)
        for fact in extracted.facts:
            if found := _PREFERENCE.fullmatch(fact):
                self._add_preference(fact, found[1])
            if found := _INSTRUCTION.fullmatch(fact):
                self._add_instruction(found[1], fact)
        for instruction in extracted.instructions:
            self._add_instruction(instruction, instruction)
        for preference in extracted.preferences:
            self._add_preference(preference, None)
        for event in extracted.timelines:
            found = _DATE.search(event)
            self.add_event(found[0] if found else None, event)
        for triple in extracted.kg:
            self.add_relation(*triple)

    def add_fact(self, type_: str, key: str, value: str, importance: float, snippet: str) -> None:
        """Write one typed fact and its full-text copy; a fact known already is not copied twice."""
        key, value = well_formed(key), well_formed(value)
        self._insert(
            "memoria_facts",
            message_idx=0,
            fact_type=type_,
            key=key,
            value=value,
            context_snippet=well_formed(snippet),
            importance=importance,
            timestamp=self.now,
            source_memory_id=self.source_id,
        )
        fact = {
            "fact_id": stable_id("\0".join((self.session, type_, key, value)), self.source_id),
            "session_id": self.session,
            "subject": key,
            "predicate": type_,
            "object": value,
            "timestamp": self.now,
            "source_msg_id": self.source_id,
            "confidence": importance,
        }
        rows.insert_once(self.connection, "facts", fact, ("fact_id",))

    def add_event(self, date: str | None, description: str) -> None:
        """Write one entry of the timeline."""
        self._insert(
            "memoria_timelines",
            date=date,
            message_idx=0,
            description=well_formed(description),
            source="extraction",
            source_memory_id=self.source_id,
        )

    def add_relation(self, subject: str, predicate: str, object_: str) -> None:
        """Write one relation into the knowledge graph."""
        triple = dict(
            zip(("subject", "predicate", "object"), map(well_formed, (subject, predicate, object_)), strict=True)
        )
        self._insert(
            "memoria_kg",
            **triple,
            message_idx=0,
            confidence=RELATION_CONFIDENCE,
            source_memory_id=self.source_id,
        )
        rows.insert(
            self.connection,
            "triples",
            {**triple, "valid_from": self.now, "source": self.source_id, "confidence": RELATION_CONFIDENCE},
        )

    def _add_preference(self, preference: str, topic: str | None) -> None:
        self._insert(
            "memoria_preferences",
            message_idx=0,
            preference=well_formed(preference),
            topic=topic and well_formed(topic),
            context_snippet=well_formed(preference),
            source_memory_id=self.source_id,
        )

    def _add_instruction(self, instruction: str, snippet: str) -> None:
        self._insert(
            "memoria_instructions",
            message_idx=0,
            instruction=well_formed(instruction),
            active=1,
            context_snippet=well_formed(snippet),
            source_memory_id=self.source_id,
        )

    def _insert(self, table: str, **row: object) -> None:
        rows.insert(self.connection, table, {"session_id": self.session, **row})
