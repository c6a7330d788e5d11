"""How well a memory answers a query: every constant of the score and the pure functions that use them.

Sums and products keep the order in which the real system computes them, so that the last digit agrees.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ipy_memory.backends.mnemopi.recall import query_terms
from ipy_memory.backends.mnemopi.recall.query_terms import RECALL_STOP_WORDS
from ipy_memory.jscompat import strings
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEFAULT_WEIGHTS = (0.5, 0.3, 0.2)
"""Vector, full text, importance."""

CANDIDATES_AT_LEAST = 50
CANDIDATES_PER_RESULT = 3
NEWEST = 500
"""How many of the newest rows are compared by vector, and stand in where nothing was found by words."""

UNREADABLE_IMPORTANCE = 0.5
DECAY_HOURS = 72.0
STRONG_SIMILARITY = 0.65
WRITTEN_DATE_WEIGHT = 0.35
CURRENT_WEIGHT = 0.45
EVENT_HALFLIFE_FACTOR = 2
MMR_BALANCE = 0.7
FACTS_AT_LEAST = 3
COVERAGE_BONUS = 0.06
COVERAGE_TOKENS = 4

LONG_QUERY = 10_000
"""A query of more characters is told about, and its words are not kept for long."""

_SHARED_PART = 4
_ENUMERATED_VARIANT = 48
_FEW_GROUPS = 64
_MIN_RELEVANCE = {0: 0.08, 1: 0.08, 2: 0.18, 3: 0.34}
_MIN_RELEVANCE_LONG = 0.22
_TIER_FACTORS: dict[float, float] = {1: 1.0, 2: 0.85}
_OTHER_TIER = 0.7
_VERACITY_FACTORS = {
    "stated": 1.0,
    "true": 1.0,
    "likely_true": 1.0,
    "unknown": 0.8,
    "inferred": 0.7,
    "imported": 0.6,
    "tool": 0.5,
    "false": 0.0,
}
_OTHER_VERACITY = 0.8
_NOW_WORDS = re.compile(r"\b(?:current|currently|latest|now|active|present)\b", re.ASCII | re.IGNORECASE)
_THEN_WORDS = re.compile(
    r"\b(?:was|previous|previously|legacy|old|stale|former|deprecated)\b", re.ASCII | re.IGNORECASE
)
_ASKS_FOR_NOW = re.compile(
    r"\b(?:now|current|currently|latest|recent|today|active|present)\b", re.ASCII | re.IGNORECASE
)
_HOUR_MS = 3_600_000


class Document:
    """The searched text of a row, lower-cased, and its words once they are needed."""

    __slots__ = ("_current", "_tokens", "text")

    def __init__(self, text: str) -> None:
        self.text = js.lower(text)
        self._current: float | None = None
        self._tokens: frozenset[str] | None = None

    @property
    def tokens(self) -> frozenset[str]:
        """The distinct words of the text without stop words."""
        if self._tokens is None:
            self._tokens = frozenset(query_terms.tokenise(self.text))
        return self._tokens

    @property
    def current_factor(self) -> float:
        """The factor, for a query that asks for now, of a text that says it is current or past."""
        if self._current is None:
            self._current = current_factor(self.text)
        return self._current

    def has_word(self, words: frozenset[str], within: str) -> bool:
        """Return whether one of some words with ``within`` in them is a whole word of the text."""
        text, size = self.text, len(self.text)
        end = 0
        while (start := text.find(within, end)) >= 0:
            end = start + len(within)
            while start and strings.is_word_character(text[start - 1]):
                start -= 1
            while end < size and strings.is_word_character(text[end]):
                end += 1
            if text[start:end] in words:
                return True
        return False


class Group:
    """The words that stand for one word of a query."""

    __slots__ = ("_long_variants", "_parts", "_shortest", "variants")

    def __init__(self, variants: Sequence[str]) -> None:
        self.variants = tuple(variants)
        self._parts: frozenset[str] | None = None
        self._shortest: tuple[str, ...] = ()
        self._long_variants: tuple[str, ...] = ()

    def matches(self, document: Document) -> bool:
        """Return whether any variant is in the text, or has a word of the text as a part of four units or more."""
        text = document.text
        for variant in self.variants:
            if variant in text:
                return True
        parts = self._parts if self._parts is not None else self._cut()
        for part in self._shortest:
            if part in text and document.has_word(parts, part):
                return True
        return bool(self._long_variants) and any(
            token in variant and js.units(token) >= _SHARED_PART
            for variant in self._long_variants
            for token in document.tokens
        )

    def _cut(self) -> frozenset[str]:
        """Work out which parts of the variants a word of a text may equal, and what at least one of is in any."""
        short = [variant for variant in self.variants if len(variant) <= _ENUMERATED_VARIANT]
        parts = {part for variant in short for part in _parts(variant)}
        self._long_variants = tuple(variant for variant in self.variants if len(variant) > _ENUMERATED_VARIANT)
        self._shortest = tuple(part for part in parts if js.units(part[1:]) < _SHARED_PART > js.units(part[:-1]))
        self._parts = frozenset(parts - RECALL_STOP_WORDS)
        return self._parts


def _parts(variant: str) -> Iterable[str]:
    size = len(variant)
    is_plain = js.units(variant) == size  # only then are units characters
    least = _SHARED_PART if is_plain else 1
    for start in range(size):
        for end in range(start + least, size + 1):
            part = variant[start:end]
            if is_plain or js.units(part) >= _SHARED_PART:
                yield part


class Groups:
    """The different groups of a query, each with how often the query has it.

    Attributes
    ----------
    counted
        Group and count, in the order of the query.
    total
        The sum of the counts.
    """

    __slots__ = ("_index", "counted", "total")

    def __init__(self, groups: Iterable[Sequence[str]]) -> None:
        self.counted = [(Group(variants), count) for variants, count in Counter(map(tuple, groups)).items()]
        self.total = sum(count for _, count in self.counted)
        self._index: _Index | None = None

    def matching(self, document: Document) -> list[tuple[Group, int]]:
        """Return the groups that match a text, with their counts."""
        if len(self.counted) <= _FEW_GROUPS:
            return [pair for pair in self.counted if pair[0].matches(document)]
        if self._index is None:
            self._index = _Index([group.variants for group, _ in self.counted])
        return [self.counted[place] for place in self._index.matching(document)]


class _Index:
    """Finds the groups that match a text by the words of the text, where there are very many groups."""

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self._places: dict[str, list[int]] = {}
        for place, variants in enumerate(groups):
            for variant in variants:
                self._places.setdefault(variant, []).append(place)
        self._sizes = sorted(set(map(len, self._places)))
        self._with_pair: dict[str, list[str]] = {}
        for variant in self._places:
            for pair in {variant[at : at + 2] for at in range(len(variant) - 1)}:
                self._with_pair.setdefault(pair, []).append(variant)

    def matching(self, document: Document) -> list[int]:
        """Return the places of the groups that match a text, in order."""
        found: set[str] = set()
        for word in set(strings.words(document.text)):
            # A variant is a run of word characters, so where a text holds it, one of its words does.
            for size in self._sizes:
                if size > len(word):
                    break
                for start in range(len(word) - size + 1):
                    if (part := word[start : start + size]) in self._places:
                        found.add(part)
            if word not in RECALL_STOP_WORDS and js.units(word) >= _SHARED_PART:
                found.update(variant for variant in self._with_pair.get(word[:2], ()) if word in variant)
        return sorted({place for variant in found for place in self._places[variant]})


@dataclass(frozen=True, slots=True)
class Words:
    """A query's words, prepared for searching and for scoring many texts.

    Attributes
    ----------
    asked
        Each word as it was typed with its variants.
    expanded
        All variants, each once.
    groups, phrase
        What texts are scored by.
    search
        The full-text query.
    """

    asked: tuple[tuple[str, tuple[str, ...]], ...]
    expanded: tuple[str, ...]
    groups: Groups
    phrase: str
    search: str

    @classmethod
    def of(cls, query: str) -> Words:
        """Return the prepared words of a query; each bank and its facts ask for them again."""
        return _words(query) if len(query) <= LONG_QUERY else _long_words(query)


def _prepared(query: str) -> Words:
    groups = [tuple(variants) for variants in query_terms.groups(query)]
    return Words(
        tuple(zip(query_terms.tokenise(query), groups, strict=True)),
        tuple(query_terms.expanded(query)),
        Groups(groups),
        query_terms.normalise(query),
        query_terms.fts_query(query),
    )


_words = lru_cache(maxsize=64)(_prepared)
_long_words = lru_cache(maxsize=2)(_prepared)  # a recall asks for a query and perhaps its shorter form


def lexical_score(groups: Groups, phrase: str, document: Document) -> float:
    """Return how well a text matches groups of variants, or the normalised query as a whole, 0 to 1."""
    if groups.total == 0:
        return 0.0
    if groups.total > 1:
        if phrase and phrase in document.text:
            return 1.0
        return sum(count for _, count in groups.matching(document)) / groups.total
    group = groups.counted[0][0]
    if not group.matches(document):
        return 0.0
    repeats = document.text.count(group.variants[0]) - 1
    return js.clamp01(0.7 + 0.1 * min(max(repeats, 0), 3))


def min_relevance(expanded_tokens: int) -> float:
    """Return the lexical score below which a row is dropped."""
    return _MIN_RELEVANCE.get(expanded_tokens, _MIN_RELEVANCE_LONG)


def normalised_weights(vector: float, text: float, importance: float) -> tuple[float, float, float]:
    """Return the weights without negative ones, summing to 1; the defaults if nothing is left."""
    vector, text, importance = max(0.0, vector), max(0.0, text), max(0.0, importance)
    total = vector + text + importance
    if total <= 0:
        return DEFAULT_WEIGHTS
    if abs(total - 1) < 1e-9:
        return vector, text, importance
    return vector / total, text / total, importance / total


def fts_scores(ranks: Sequence[float]) -> list[float]:
    """Return full-text ranks (smaller is better) as scores from 1, the best, to 0, the weakest."""
    if not ranks:
        return []
    best, worst = min(ranks), max(ranks)
    span = worst - best or 1.0
    return [1 - (rank - best) / span for rank in ranks]


def decay(timestamp_ms: float | None, now_ms: float, query_ms: float | None) -> float:
    """Return how fresh a row is: 1 now (or at the asked time and after it), falling with age, 0 without a time."""
    if timestamp_ms is None:
        return 0.0
    age = (now_ms if query_ms is None else query_ms) - timestamp_ms
    return math.exp(-max(0.0, age) / _HOUR_MS / DECAY_HOURS)


class Evidence(NamedTuple):
    """What speaks for a row: words, full-text score, similarity and importance."""

    lexical: float
    fts: float
    similarity: float
    importance: float


class Factors(NamedTuple):
    """What a score is multiplied by, in this order."""

    recency: float
    temporal: float
    tier: float
    veracity: float
    current: float


def working_base(evidence: Evidence, importance_weight: float) -> float:
    """Return the score of a working memory before time counts."""
    words, weight, squared = _working_pieces(evidence, importance_weight)
    base = words + weight + squared
    return base * 0.8 + evidence.similarity * 0.2 if evidence.similarity > 0 else base


def working_terms(evidence: Evidence, importance_weight: float) -> dict[str, float]:
    """Return what each part adds to :func:`working_base`; the stronger of words and index counts for both."""
    words, weight, squared = _working_pieces(evidence, importance_weight)
    share = 0.8 if evidence.similarity > 0 else 1.0
    name = "keyword" if evidence.lexical >= 0.6 * evidence.fts else "fts"
    return {name: (words + squared) * share, "importance": weight * share, "dense": evidence.similarity * 0.2}


def _working_pieces(evidence: Evidence, importance_weight: float) -> tuple[float, float, float]:
    lexical, fts, _, importance = evidence
    word = max(lexical, 0.6 * fts)
    return word * (0.6 * (1 - importance_weight)), importance * importance_weight, 0.08 * (word * word)


def episodic_base(evidence: Evidence, weights: tuple[float, float, float]) -> float:
    """Return the score of an episode before time counts."""
    lexical, fts, similarity, importance = evidence
    vector, text, weight = weights
    return max(similarity * vector + fts * text + importance * weight, 0.8 * lexical)


def episodic_terms(evidence: Evidence, weights: tuple[float, float, float]) -> dict[str, float]:
    """Return what each part adds to :func:`episodic_base`: the words alone, or all the others."""
    lexical, fts, similarity, importance = evidence
    vector, text, weight = weights
    if episodic_base(evidence, weights) == 0.8 * lexical:
        return {"keyword": 0.8 * lexical}
    return {"dense": similarity * vector, "fts": fts * text, "importance": importance * weight}


def recency_factor(recency: float) -> float:
    """Return what age does to a score."""
    return 0.7 + 0.3 * recency


def temporal_factor(weight: float, temporal: float) -> float:
    """Return what nearness to the asked time does to a score."""
    return 1 + weight * temporal if weight > 0 else 1.0


def final_score(base: float, factors: Factors) -> float:
    """Return the score with time, ageing and trust, rounded to four digits."""
    recency, temporal, tier, veracity, current = factors
    return js.round4(base * recency * temporal * tier * (veracity * current))


def tier_factor(degradation: float | None) -> float:
    """Return the factor of an episode's degradation tier; an unknown or missing one counts as the last."""
    return _OTHER_TIER if degradation is None else _TIER_FACTORS.get(degradation, _OTHER_TIER)


def veracity_factor(veracity: str | None) -> float:
    """Return the factor for how sure a memory is."""
    return _VERACITY_FACTORS.get(veracity or "unknown", _OTHER_VERACITY)


def asks_for_now(query: str) -> bool:
    """Return whether a query asks for how things are now."""
    return _ASKS_FOR_NOW.search(query) is not None


def current_factor(text: str) -> float:
    """Return the factor, for a query that asks for now, of a text that says it is current or past."""
    factor = 1.0
    if _NOW_WORDS.search(text):
        factor *= 1.35
    if _THEN_WORDS.search(text):
        factor *= 0.72
    return factor


def fact_factor(confidence: float, fts: float) -> float:
    """Return what certainty and rank do to the score of a fact."""
    return 0.7 + 0.2 * confidence + 0.1 * fts


def fact_score(lexical: float, confidence: float, fts: float) -> float:
    """Return the score of a fact."""
    return js.round4(lexical * fact_factor(confidence, fts))


def matched_words(words: Words, document: Document) -> tuple[str, ...]:
    """Return the words of a query, as they were typed, that a text matches, those with the same variants together."""
    typed: dict[tuple[str, ...], dict[str, None]] = {}
    for word, variants in words.asked:
        typed.setdefault(variants, {})[word] = None
    return tuple(word for group, _ in words.groups.matching(document) for word in typed[group.variants])
