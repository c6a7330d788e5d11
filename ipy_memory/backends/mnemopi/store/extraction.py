"""Facts out of text: by fixed sentence patterns, or out of a language model's answer (pure)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ipy_memory.jscompat import strings as js

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
    """Return the first five facts that the fixed sentence patterns find (T-13)."""
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
    """Return an answer without the model's reasoning and the fence around it; a bare list is one of facts (B021)."""
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
    raise ValueError(f"{constant} is no JSON")


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
