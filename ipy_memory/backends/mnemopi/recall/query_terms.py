"""Words of a query: tokens, synonyms, the full-text query and the intent that shifts the weights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ipy_memory.backends.mnemopi.recall.query_tables import (
    EXTRA_VARIANTS,
    INTENT_BIAS,
    INTENT_PATTERNS,
    NORMALISE_STOP_WORDS,
    RECALL_STOP_WORDS,
    SYNONYM_GROUPS,
)
from ipy_memory.jscompat import letters
from ipy_memory.jscompat import strings as js

FTS_TOKENS = 12
"""How many expanded tokens a full-text query asks for."""


def _read_groups(text: str) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    groups: dict[str, tuple[str, ...]] = {}
    canonical: dict[str, str] = {}
    for line in text.split("\n"):
        head, _, rest = line.strip().partition(": ")
        if head:
            groups[head] = tuple(rest.split())
            canonical.update(dict.fromkeys((head, *groups[head]), head))
    return groups, canonical


_GROUPS, _CANONICAL = _read_groups(SYNONYM_GROUPS)

_INTENTS = {
    category: tuple(re.compile(pattern.replace(r"\s", f"[{js.WHITESPACE}]"), re.ASCII) for pattern in patterns)
    for category, patterns in INTENT_PATTERNS.items()
}


@dataclass(frozen=True, slots=True)
class Intent:
    """What kind of question a query asks, and by which factors that changes the weights."""

    category: str
    confidence: float
    signals: tuple[str, ...]
    vec_bias: float
    fts_bias: float
    importance_bias: float


def tokenise(text: str) -> list[str]:
    """Return the lower-cased words of a text without the recall stop words, in order, repeats kept."""
    return [token for token in letters.words(js.lower(text)) if token not in RECALL_STOP_WORDS]


def synonyms(word: str) -> list[str]:
    """Return the canonical word and its group, or just the lower-cased word."""
    word = js.lower(word)
    canonical = _CANONICAL.get(word)
    return [word] if canonical is None else list(dict.fromkeys((canonical, *_GROUPS[canonical])))


def variants(token: str) -> list[str]:
    """Return what recall accepts for a token: its synonyms, then the extra variants."""
    return list(dict.fromkeys((*synonyms(token), *EXTRA_VARIANTS.get(token, ()))))


def groups(query: str) -> list[list[str]]:
    """Return for each token of the query the tokens that stand for it."""
    return [list(_stand_ins(token)) for token in tokenise(query)]


@lru_cache(maxsize=1024)
def _stand_ins(token: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for variant in variants(token) for part in tokenise(variant)))


def expanded(query: str) -> list[str]:
    """Return all tokens that stand for the query, each once, in order."""
    return list(dict.fromkeys(token for group in groups(query) for token in group))


def normalise(query: str) -> str:
    """Return the query's canonical words, each once, sorted; punctuation stays on its word."""
    words = {
        _CANONICAL.get(word, word) for word in js.split_spaces(js.lower(query)) if word not in NORMALISE_STOP_WORDS
    }
    return " ".join(sorted(words, key=js.unit_key))


def fts_query(query: str) -> str:
    """Return the FTS5 expression for a query; the operators that it may contain are only text."""
    tokens = expanded(query)[:FTS_TOKENS] or [js.trim(query)]
    return " OR ".join('"' + token.replace('"', '""') + '"' for token in tokens)


def classify_intent(query: str) -> Intent:
    """Return the intent of a query: the category with most pattern hits, the first one on ties."""
    text = js.lower(query)
    hits = {
        category: sum(pattern.search(text) is not None for pattern in patterns)
        for category, patterns in _INTENTS.items()
    }
    signals = tuple(category for category, count in hits.items() for _ in range(count))
    if not signals:
        return Intent("general", 0.0, (), *INTENT_BIAS["general"])
    confidence = {category: min(0.3 + 0.15 * count, 1.0) for category, count in hits.items() if count}
    best = max(confidence, key=confidence.__getitem__)
    return Intent(best, confidence[best], signals, *INTENT_BIAS[best])


def adjust_weights(vector: float, text: float, importance: float, intent: Intent) -> tuple[float, float, float]:
    """Return the weights after the intent's factors, summing to 1 again."""
    vector, text, importance = vector * intent.vec_bias, text * intent.fts_bias, importance * intent.importance_bias
    total = vector + text + importance
    return (vector / total, text / total, importance / total) if total > 0 else (vector, text, importance)
