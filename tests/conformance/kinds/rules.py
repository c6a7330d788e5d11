"""The pure rules: clipping, numbers, words, dates, collation, ids."""

from __future__ import annotations

from datetime import UTC
from functools import cmp_to_key
from typing import Any

from ipy_memory.backends.mnemopi.recall import query_dates, query_terms, rerank
from ipy_memory.clock import FixedClock, stable_id
from ipy_memory.errors import ToolInputError
from ipy_memory.jscompat import collation, dates
from ipy_memory.jscompat import strings as js
from tests.conformance.registry import Case, kind


@kind("clip")
def clip(case: Case) -> Any:
    content, limit = case.input["content"], case.input["limit"]
    truncated = 0 < limit < js.units(content)
    shown = js.clip(content, limit) if truncated else content
    return {"content": shown, "truncated": truncated, "fullLength": js.units(content)}


@kind("to_fixed")
def to_fixed(case: Case) -> Any:
    number = case.input
    return {"fixed1": js.to_fixed(number), "round4": js.round4(number), "round": js.round_half_up(number)}


@kind("stable_ids")
def stable_ids(case: Case) -> Any:
    return stable_id(case.input["content"], case.input["source"])


@kind("synonyms")
def synonyms(case: Case) -> Any:
    return query_terms.synonyms(case.input)


@kind("query_units")
def query_units(case: Case) -> Any:
    intent = query_terms.classify_intent(case.input)
    return {
        "normalized": query_terms.normalise(case.input),
        "intent": {
            "category": intent.category,
            "confidence": intent.confidence,
            "signals": list(intent.signals),
            "vec_bias": intent.vec_bias,
            "fts_bias": intent.fts_bias,
            "importance_bias": intent.importance_bias,
        },
        "weights": list(query_terms.adjust_weights(0.5, 0.3, 0.2, intent)),
    }


@kind("mmr")
def mmr(case: Case) -> Any:
    chosen = rerank.mmr(
        case.input["items"],
        case.input["lambda"],
        case.input["topK"],
        score=lambda item: item.get("score", 0),
        words=lambda item: rerank.words(item["content"]),
    )
    return [item["id"] for item in chosen]


@kind("mmr_whitespace")
def mmr_whitespace(case: Case) -> Any:
    return rerank.jaccard(rerank.words("foo bar"), rerank.words(f"foo{chr(case.input)}bar"))


@kind("temporal_*")
def date_words(case: Case) -> Any:
    found = query_dates.extract_temporal(case.input, FixedClock(case.header["reference"]).now_ms())
    return {
        "event_date": found.event_date,
        "event_date_precision": found.event_date_precision,
        "temporal_tags": list(found.temporal_tags),
        "primary_signal": found.primary_signal,
    }


@kind("date_parse")
def date_parse(case: Case) -> Any:
    clock = case.clock()
    return {
        "parse": dates.parse_ms(case.input, clock.tz),
        "boost": query_dates.temporal_boost(case.input, clock.now_ms(), 24, clock.tz),
    }


@kind("query_time")
def query_time(case: Case) -> Any:
    try:
        return {"iso": dates.iso(query_dates.query_time(case.input, UTC))}
    except ToolInputError as error:
        return {"error": error.message, "name": "TypeError"}


@kind("locale_compare")
def locale_compare(case: Case) -> Any:
    # The cases without an input wrote down what was compared in their answer.
    if case.input is not None:
        pairs = zip(case.input, case.input[1:], strict=False)
        return {
            "sorted": sorted(case.input, key=cmp_to_key(collation.compare)),
            "pairs": [[ours, theirs, collation.compare(ours, theirs)] for ours, theirs in pairs],
            "locale": case.expected["locale"],
        }
    if "signs" in case.expected:
        return {
            "signs": [[ours, theirs, collation.compare(ours, theirs)] for ours, theirs, _ in case.expected["signs"]]
        }
    return {"order": sorted(sorted(case.expected["order"]), key=collation.key)}
