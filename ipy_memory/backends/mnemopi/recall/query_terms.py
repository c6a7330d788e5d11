"""Words of a query: tokens, synonyms, the full-text query and the intent that shifts the weights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ipy_memory.jscompat import strings
from ipy_memory.jscompat import strings as js


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SYNONYM_GROUPS = """
    database: db datastore data_store
    password: pass pwd passwd credential secret token
    config: configuration settings cfg setup
    error: bug issue fault failure crash exception traceback
    fix: repair resolve solve patch correct address
    deploy: deployment release ship push rollout
    server: host machine vm instance node vps
    api: endpoint interface service
    key: token credential secret api_key
    user: account profile identity person
    model: llm ai provider gpt claude gemini
    speed: fast quick performance latency throughput
    memory: recall remember storage retention
    search: find lookup query retrieve locate
    file: document doc text note
    code: script program source implementation
    test: verify check validate probe examine
    backup: snapshot copy save archive
    install: setup configure bootstrap init
    update: upgrade refresh renew sync
    delete: remove destroy purge clean wipe erase
    list: show display enumerate catalog
    time: date when timestamp schedule
    url: link address uri path
    health: status check pulse alive up
    service: daemon process systemd worker
    port: socket bind listen
    network: internet connection connectivity dns
    ssh: terminal shell remote connect
    git: commit push pull repo repository branch
    log: output stdout stderr trace debug
    cron: schedule job task timer periodic
    email: mail message inbox smtp
    image: picture photo screenshot graphic
    browser: web page site navigate chrome
    monitor: watch observe track survey
    alert: notify notification warning ping
    migrate: transfer move relocate port
    compare: diff versus vs contrast
    save: store persist preserve keep
"""
"""One group a line, canonical word first; a word listed twice belongs to its last group."""

EXTRA_VARIANTS = {
    "branding": ("positioning", "wording", "headline"),
    "preference": ("wants", "want", "prefers"),
    "prefer": ("wants", "want", "prefers"),
    "preferred": ("wants", "want", "prefers"),
}
"""Variants that recall adds to those of the groups."""

RECALL_STOP_WORDS = _words(
    """
    a an and are as at be by for from how i in is it of on or that the this to was what when where who with
    """
)
"""Tokens that no query searches for."""

NORMALISE_STOP_WORDS = _words(
    """
    a an the is are was were be been have has had do does did will would could should may might can shall must i you
    he she it we they me him her us them my your his its our their mine yours hers ours theirs what which who whom
    where when why how this that these those of in to for on with at by from as into through during before after
    above below between under and but or nor not so than too very just about also really actually basically simply
    if then else while because though although
    """
)
"""Words that the normalised form of a query leaves out."""

FACT_FILLER_WORDS = NORMALISE_STOP_WORDS | _words(
    """
    active current currently d know latest ll m please present re recent remind remember s t tell today ve
    """
)
"""Query words that say nothing about a fact."""

CLITIC_FRAGMENTS = _words("d ll m re s t ve")
"""What an apostrophe cuts off a word."""

INTENT_PATTERNS = {
    "temporal": (
        r"\b(when|last|yesterday|today|tomorrow|ago|before|after|since|until|during|recently|lately)\b",
        r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
        r"\b(january|february|march|april|may|june|july|august|september|october|november|december)\b",
        r"\b\d{4}-\d{2}-\d{2}\b",
        r"\b\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b",
        r"\b(this|next|last)\s+(week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
        r"\b\d+\s+(day|week|month|year|hour|minute)s?\s+(ago|from now|later|earlier)\b",
    ),
    "factual": (
        r"\bwhat\s+is\b",
        r"\bwho\s+is\b",
        r"\bwhere\s+is\b",
        r"\b(definition|define|explain|meaning)\b",
        r"\bhow\s+(many|much|long|far)\b",
    ),
    "entity": (
        r"\b(tell\s+me\s+about|what\s+do\s+you\s+know\s+about)\b",
        r"\b(who\s+is|what\s+does)\s+[a-z]+\b",
        r"\b(about|regarding|concerning)\s+[a-z]+\b",
    ),
    "preference": (
        r"\b(prefer|like|dislike|want|hate|love|enjoy|favorite|best|worst)\b",
        r"\b(should\s+i|would\s+you|do\s+you\s+recommend)\b",
        r"\b(choose|pick|select|option|choice|decide)\b",
    ),
    "procedural": (
        r"\bhow\s+(to|do|can|should|would)\b",
        r"\b(step|process|procedure|workflow|guide|tutorial)\b",
        r"\b(setup|install|configure|build|deploy|run|execute|start|stop)\b",
    ),
}
"""Category -> patterns over the lower-cased query; each that occurs counts once."""

INTENT_BIAS = {
    "temporal": (0.6, 1.5, 0.8),
    "factual": (1.0, 1.2, 0.9),
    "entity": (1.1, 1.0, 1.3),
    "preference": (0.9, 0.8, 1.5),
    "procedural": (1.3, 0.9, 0.7),
    "general": (1.0, 1.0, 1.0),
}
"""Category -> factors of the vector, text and importance weights."""


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
    return [token for token in strings.words(js.lower(text)) if token not in RECALL_STOP_WORDS]


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


def unread(query: str) -> list[str]:
    """Return the words of a query that nothing stands for among the tokens that are looked up."""
    used = set(expanded(query)[:FTS_TOKENS])
    return [token for token, group in zip(tokenise(query), groups(query), strict=True) if used.isdisjoint(group)]


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
