"""Recall over all banks in scope: ask each, merge, cut, and count afterwards."""

from __future__ import annotations

import logging
import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cmp_to_key
from typing import TYPE_CHECKING

from ipy_memory import text
from ipy_memory.backends.mnemopi.recall import tracing
from ipy_memory.backends.mnemopi.recall.single_bank import RecallOptions, recall_enhanced, touch
from ipy_memory.backends.trace import Trace
from ipy_memory.errors import MemoryToolkitError, RecallCancelled, ScopedRecallError
from ipy_memory.jscompat import collation
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import iso, parse_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from threading import Event

    from ipy_memory.backends.filters import RecallFilter
    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.model import Hit

log = logging.getLogger("ipy_memory")

_ALNUM = re.compile(r"[a-z0-9]+")
_OTHER = re.compile(r"[^a-z0-9]+")
_SPACE = f"[{js.WHITESPACE}]"
# A match begins where white space begins and takes all of it: else a long run would be tried from each of its places.
_RUN_START = f"(?<!{_SPACE})"
_BEFORE_MARK = re.compile(rf"{_RUN_START}{_SPACE}++([?!.,;:])")
_DANGLING = re.compile(rf"\b(?:and|or)\b{_SPACE}*+(?=[?!.,;:]|\Z)", re.ASCII | re.IGNORECASE)
_RUN = re.compile(f"{_SPACE}{{2,}}")


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """What one engine call gave: the hits in the engine's own order, or the error."""

    bank: str
    query: str
    hits: tuple[Hit, ...] = ()
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Unopened:
    """A bank in scope whose file could not be opened: it counts as a bank that failed."""

    name: str
    error: Exception


@dataclass(frozen=True, slots=True)
class ScopedAnswer:
    """The merged hits, each call in order, the banks that did not answer, and those whose counters have to wait."""

    hits: tuple[Hit, ...]
    per_target: tuple[TargetAnswer, ...]
    failures: tuple[tuple[str, Exception], ...] = ()
    uncounted: tuple[str, ...] = ()


def scoped_recall(
    banks: Sequence[Bank | Unopened],
    query: str,
    limit: int,
    *,
    project_bank: str | None = None,
    shared_bank: str | None = None,
    should_touch: bool = True,
    cancel: Event | None = None,
    traces: list[Trace] | None = None,
    watch: Iterable[str] = (),
    where: RecallFilter | None = None,
) -> ScopedAnswer:
    """Ask every bank in order and merge what they answer.

    Parameters
    ----------
    banks
        The banks in scope, in order; those that could not be opened in their place.
    query
        As typed.
    limit
        The most entries of the merged list; floored, at least 1.
    project_bank, shared_bank
        Both only in ``per-project-tagged`` scoping: the shared bank is then also asked without the project's words.
    should_touch
        Whether the recalled rows are counted, after the answer.
    cancel
        A token that ends the recall.
    traces
        Receives the account of each engine call.
    watch
        Ids that the accounts must mention.
    where
        Filters on the rows, and the instant that stands for now.

    Raises
    ------
    ScopedRecallError
        Several banks, and none answered.
    MemoryToolkitError
        The only bank's own error.
    """
    limit = max(1, int(limit // 1))
    extra = fallback_query(query, project_bank) if project_bank is not None and shared_bank is not None else None
    answers: list[TargetAnswer] = []
    failures: list[tuple[str, Exception]] = []
    counts: list[tuple[Bank, Counter[tuple[str, str]]]] = []
    owners: dict[int, Trace] = {}
    for bank in banks:
        if isinstance(bank, Unopened):
            _note_failure(TargetAnswer(bank.name, query, error=bank.error), bank.error, answers, failures)
            continue
        asked = [query, extra] if extra is not None and bank.name == shared_bank else [query]
        counted: Counter[tuple[str, str]] = Counter()
        counts.append((bank, counted))
        for one in asked:
            trace = Trace(frozenset(watch)) if traces is not None else None
            try:
                hits = _ask(bank, one, limit, options_for(bank.name, where), cancel, trace)
            except RecallCancelled:
                raise
            except MemoryToolkitError as error:
                _note_failure(TargetAnswer(bank.name, one, error=error), error, answers, failures)
                break
            if should_touch and bank.writable:
                hits = [_counted(hit, counted, bank) for hit in hits]
                counted.update((hit.tier or "", hit.id or "") for hit in hits)
            answers.append(TargetAnswer(bank.name, one, tuple(hits)))
            if traces is not None and trace is not None:
                traces.append(trace)
                owners |= {id(hit): trace for hit in hits}
    if failures and all(answer.error is not None for answer in answers):
        raise _total_failure(failures)
    merged = merge([hit for answer in answers for hit in answer.hits], limit, owners)
    due = [(bank, counted) for bank, counted in counts if counted or (should_touch and bank.uncounted)]
    uncounted = tuple(bank.name for bank, counted in due if not touch(bank, counted))
    return ScopedAnswer(tuple(merged), tuple(answers), tuple(failures), uncounted)


def _note_failure(
    answer: TargetAnswer,
    error: Exception,
    answers: list[TargetAnswer],
    failures: list[tuple[str, Exception]],
) -> None:
    log.warning("Mnemopi: scoped recall target failed: bank=%s error=%s", answer.bank, error)
    answers.append(answer)
    failures.append((answer.bank, error))


def options_for(bank: str, where: RecallFilter | None) -> RecallOptions:
    """Return what is asked of one bank; with filters on the rows no facts, which the engine filters by nothing."""
    if where is None:
        return RecallOptions(channel_id=bank)
    now_ms = None if where.at is None else parse_ms(where.at, UTC)
    return RecallOptions(
        include_facts=not where.chooses_rows,
        channel_id=bank,
        source=where.source,
        author_id=where.author,
        from_date=where.since,
        to_date=where.until,
        now_ms=None if now_ms is None else int(now_ms),
        filter_first=where.chooses_rows,
    )


def _ask(
    bank: Bank, query: str, limit: int, options: RecallOptions, cancel: Event | None, trace: Trace | None
) -> list[Hit]:
    bank.cancel = cancel
    try:
        bank.check_cancelled()
        return recall_enhanced(bank, query, limit, options, trace)
    finally:
        bank.cancel = None


def _counted(hit: Hit, counted: Counter[tuple[str, str]], bank: Bank) -> Hit:
    """Return the hit as it reads when the calls before this one have been counted."""
    times = counted[(hit.tier or "", hit.id or "")]
    if not times or hit.tier == "fact":
        return hit
    return replace(hit, recall_count=(hit.recall_count or 0) + times, last_recalled=iso(bank.clock.now_ms()))


def _total_failure(failures: Sequence[tuple[str, Exception]]) -> Exception:
    if len(failures) == 1:
        return failures[0][1]
    message = text.all_targets_failed([(bank, str(error)) for bank, error in failures])
    return ScopedRecallError(
        message,
        [error for _, error in failures],
        hint="%memory doctor looks the banks over; the error's `exceptions` holds each bank's own",
    )


def compare(one: Hit, other: Hit) -> int:
    """Return a negative number if ``one`` comes first: score, then time, then content."""
    if (one.score or 0.0) != (other.score or 0.0):
        return -1 if (one.score or 0.0) > (other.score or 0.0) else 1
    return collation.compare(other.timestamp or "", one.timestamp or "") or collation.compare(
        one.content, other.content
    )


def merge(hits: Iterable[Hit], limit: int, owners: Mapping[int, Trace] | None = None) -> list[Hit]:
    """Return the entries of several answers: each once, the better one, in order, cut.

    ``owners`` are the accounts to tell of it: ``id(hit)`` -> the one of the call that gave the hit.
    """
    merged: list[Hit] = []
    by_id: dict[str, int] = {}
    by_content: dict[str, int] = {}
    lost: list[tuple[Hit, int]] = []
    for hit in hits:
        at = by_id.get(hit.id) if hit.id else None
        if at is None:
            at = by_content.get(hit.content)
        if at is None:
            at = len(merged)
            merged.append(hit)
        elif compare(hit, merged[at]) < 0:
            lost.append((merged[at], at))
            merged[at] = hit
        else:
            lost.append((hit, at))
        if hit.id:
            by_id[hit.id] = at
        by_content[hit.content] = at
    ordered = sorted(merged, key=cmp_to_key(compare))
    if owners:
        tracing.merged(owners, [(hit, merged[at]) for hit, at in lost], ordered[limit:])
    return ordered[:limit]


def fallback_query(query: str, project_bank: str) -> str | None:
    """Return the query without the project bank's own words, or ``None`` if that says nothing new."""
    tokens = list(dict.fromkeys(_ALNUM.findall(js.lower(project_bank))))
    left = query
    for pattern in _project_patterns(tokens):
        left = pattern.sub(" ", left)
    left = _BEFORE_MARK.sub(r"\1", left)
    left = _DANGLING.sub("", left)
    left = js.trim(_RUN.sub(" ", left))
    plain = _plain(left)
    return left if plain and plain != _plain(query) else None


def _project_patterns(tokens: Sequence[str]) -> Iterator[re.Pattern[str]]:
    if len(tokens) >= 2:
        yield _whole(rf"[{js.WHITESPACE}_-]+".join(tokens))
    for token in tokens:
        yield _whole(token)


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b{pattern}\b", re.ASCII | re.IGNORECASE)


def _plain(query: str) -> str:
    return _OTHER.sub(" ", js.lower(query)).strip(" ")
