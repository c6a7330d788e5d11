"""The reasons for each score: what every part adds, and what it is multiplied by.

Nothing is scored here. A recall of the local engine leaves an account of each call (``session.recall(…, traces=[])``);
these functions lay it out. A remote server reports parts of its score without saying how it combines them.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.trace import Step
from ipy_memory.explore.why import words_of
from ipy_memory.model import ScoreParts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.backends.trace import Candidate, Trace
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Hit

TERM, BASE, FACTOR, REPORTED = "term", "base", "factor", "reported"
"""What a row is: a part that is added, the sum of these, a part that multiplies it, or one that is only reported."""

COLUMNS: Mapping[str, str] = {
    "place": "position in the answer, from 1",
    "id": "of the memory",
    "bank": "where it is",
    "score": "as the hit shows it",
    "part": "which part of the score this row is about",
    "kind": "term, base, factor or reported",
    "value": "the part itself: how well the words match, how fresh it is, …; nothing for a factor without one",
    "effect": "what the part adds (term), what they add up to (base), or what it multiplies that by (factor)",
}
"""The columns of :func:`explain`: score = the base's effect × each factor's effect in turn, to four digits.

The terms add up to the base but for the last digit of a float.
"""

TERMS = ("keyword", "fts", "dense", "importance")
FACTORS = ("recency", "temporal", "tier", "veracity", "current", "fact")
REASON_COLUMNS: Mapping[str, str] = {
    "matched": "the words of the query that the memory has, or has a synonym of",
    "origin": "how it was found: fts, vec, or fallback (one of the newest, as no word of the query was found)",
    "score_rank": "position by score in its bank, from 1, before variety was weighed",
    "bank_rank": "position in its bank's answer, from 1, before the banks were merged",
    "base": "the sum of the terms",
    **{f"{name}_term": f"what {name} adds to the base" for name in TERMS},
    **{f"{name}_factor": f"what {name} multiplies the base by" for name in FACTORS},
    "reason": "all of it in a sentence",
}
"""The columns of :func:`with_reasons`: score = base × every factor that there is, to four digits."""

_SOURCES = {"recency": "recency", "temporal": "temporal"}


def explain(hits: Sequence[Hit], traces: Sequence[Trace] = ()) -> DataFrame:
    """Return one row per hit and part, with the columns of :data:`COLUMNS`.

    Parameters
    ----------
    hits
        Of a recall.
    traces
        The accounts of the same recall. Without one, parts are reported only.
    """
    from ipy_memory.frames import build

    rows = [row for place, hit in enumerate(hits, 1) for row in _rows(place, hit, account_of(hit, traces))]
    dtypes: dict[str, Any] = dict.fromkeys(COLUMNS, build.TEXT)
    dtypes |= dict.fromkeys(("score", "value", "effect"), build.NUMBER) | {"place": build.WHOLE}
    return build.table({name: [row[index] for row in rows] for index, name in enumerate(COLUMNS)}, dtypes)


def with_reasons(frame: DataFrame, hits: Sequence[Hit], traces: Sequence[Trace]) -> DataFrame:
    """Return a frame of hits with the columns of :data:`REASON_COLUMNS` added; its ``attrs`` stay."""
    from ipy_memory.frames import build

    accounts = [account_of(hit, traces) for hit in hits]
    values: dict[str, list[Any]] = {
        "matched": [list(one.matched) if one else None for one in accounts],
        "origin": [one and one.origin for one in accounts],
        "score_rank": [_from_one(one.scored_place) if one else None for one in accounts],
        "bank_rank": [_from_one(one.place) if one else None for one in accounts],
        "base": [one and one.base for one in accounts],
        **{f"{name}_term": [one and one.terms.get(name) for one in accounts] for name in TERMS},
        **{f"{name}_factor": [one and one.factors.get(f"{name}_factor") for one in accounts] for name in FACTORS},
        "reason": [reason(hit, one) for hit, one in zip(hits, accounts, strict=True)],
    }
    dtypes: dict[str, Any] = dict.fromkeys(REASON_COLUMNS, build.NUMBER)
    dtypes |= {"matched": "object", "origin": build.TEXT, "reason": build.TEXT}
    dtypes |= dict.fromkeys(("score_rank", "bank_rank"), build.WHOLE)
    added = build.table(values, dtypes)
    whole = frame.assign(**{str(name): added[name].set_axis(frame.index) for name in added})
    whole.attrs = frame.attrs | {"columns": dict(REASON_COLUMNS)}
    return whole


def account_of(hit: Hit, traces: Sequence[Trace]) -> Candidate | None:
    """Return the account of a hit; of a bank that was asked twice, that of the call that gave it."""
    for trace in traces:
        candidate = trace.candidates.get((hit.tier or "", hit.id or ""))
        if trace.bank == hit.bank and candidate is not None and candidate.step is Step.RETURNED:
            return candidate
    return None


def reason(hit: Hit, account: Candidate | None) -> str:
    """Return in a sentence why a hit has its score."""
    if account is None:
        parts = [f"{name} {value:.4g}" for name, value in _reported(hit)]
        return f"the server reports {', '.join(parts)}" if parts else "the server reports no parts of the score"
    terms = " + ".join(f"{value:.4f} {name}" for name, value in account.terms.items() if value)
    factors = "".join(
        f" × {value:.4g} {name.removesuffix('_factor')}"
        for name, value in account.factors.items()
        if f"{value:.4g}" != "1"
    )
    words = f"matched {words_of(account.matched, hit.content)}" if account.matched else "no word matched"
    return f"{words}: ({terms or '0'}){factors} = {account.score}"


def _rows(place: int, hit: Hit, account: Candidate | None) -> list[tuple[Any, ...]]:
    head = (place, hit.id, hit.bank, hit.score)
    if account is None:
        return [(*head, name, REPORTED, value, None) for name, value in _reported(hit)]
    terms = [(*head, name, TERM, getattr(hit.parts, name), effect) for name, effect in account.terms.items()]
    factors = [
        (*head, name, FACTOR, getattr(hit.parts, _SOURCES[name]) if name in _SOURCES else None, effect)
        for name, effect in ((name.removesuffix("_factor"), effect) for name, effect in account.factors.items())
    ]
    return [*terms, (*head, BASE, BASE, None, account.base), *factors]


def _reported(hit: Hit) -> list[tuple[str, float]]:
    named = ((field.name, getattr(hit.parts, field.name)) for field in fields(ScoreParts))
    return [(name, value) for name, value in named if value is not None]


def _from_one(place: int | None) -> int | None:
    return None if place is None else place + 1
