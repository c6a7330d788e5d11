"""What consolidation reads out of a summary: measures, dates, versions and simple relations (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipy_memory.jscompat import strings as js

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

_S = js.WHITESPACE
_UNITS = (
    "ms|sec|seconds?|minutes?|hours?|days?|weeks?|months?|%|KB|MB|GB|TB|rows?|columns?|roles?|features?|bugs?"
    "|commits?|cards?|users?|items?|tests?|APIs?|endpoints?|sprints?|tickets?"
)
_METRIC = re.compile(rf"(?<!\d)(\d+(?:[.,]\d+)?)[{_S}]*({_UNITS})\b", re.ASCII | re.IGNORECASE)
_CONTEXT_BREAK = re.compile(rf"[\n|`;]|[.!?](?=[{_S}]|\Z)")
_CODE = re.compile(r"`[^`]*`")
_PUNCTUATION = str.maketrans("", "", ".,:;!?()[]\"'`*_")

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b", re.ASCII)
_EVENT = re.compile(
    r"\b(?:release|deadline|meeting|launch|ship|shipped|due|start|started|finish|finished)\b", re.ASCII | re.IGNORECASE
)
_VERSION = re.compile(r"\bv?\d+\.\d+(?:\.\d+)?(?:[-+][A-Za-z0-9.]+)?\b", re.ASCII)
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)
_RELATION = re.compile(
    rf"\b([A-Z][A-Za-z0-9_-]{{2,}})[{_S}]+(?:is|uses|runs|owns|depends on)[{_S}]+([^.!?;]{{2,80}})", re.ASCII
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
