"""Memories that say the same: equal texts, and texts that differ in case, signs, endings, articles or clause order."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ipy_memory.audit.findings import finding
from ipy_memory.audit.words import Content, languages_for, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ipy_memory.audit.findings import Finding, Rows, Severity, Tick
    from ipy_memory.model import Memory

_COMPARED = 30
"""With so many different texts of one key a further one is compared."""

_LONGEST = 20_000
"""Longer texts are compared as they are only."""


def duplicates(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield a finding for each cluster of memories that say the same; the others go into the one to keep."""
    by_text: dict[str, list[Memory]] = defaultdict(list)
    for row in rows.live:
        tick()
        by_text[" ".join(row.content.split())].append(row)
    by_text.pop("", None)
    for texts in _clusters(by_text, rows):
        cluster = _independent([row for text in texts for row in by_text[text]])
        if len(cluster) < 2:
            continue
        kept = min(cluster, key=_worth)
        others = [row for row in cluster if row is not kept]
        equal = len({row.content for row in cluster}) == 1
        severity: Severity = "medium" if equal else "low"
        how = "the same text" if equal else "the same words in another form"
        evidence = f"{len(cluster)} memories with {how}"
        yield finding("duplicates", kept, evidence, severity=severity, action="merge-into", other=others)


def _clusters(texts: Iterable[str], rows: Rows) -> list[list[str]]:
    """Return texts that say the same together; each text is in one cluster."""
    buckets: dict[int, list[tuple[str, Content]]] = defaultdict(list)
    cluster_of: dict[str, list[str]] = {}
    for text in texts:
        cluster_of[text] = [text]
        if len(text) > _LONGEST:
            continue
        tokens = tokens_of(text)
        for language in languages_for(tokens, rows.languages):
            content = Content(tokens, language)
            # A text of one word, or of function words only, says too little to be compared by its content.
            key = content.key if len(content.key) > 1 else ("", *(token.form for token in tokens))
            bucket = buckets[hash((language, key))]
            for other, known in bucket:
                if known.key == content.key and content.says_the_same(known):
                    _join(cluster_of, other, text)
                    break
            if len(bucket) < _COMPARED:
                bucket.append((text, content))
    return list({id(cluster): cluster for cluster in cluster_of.values()}.values())


def _join(cluster_of: dict[str, list[str]], one: str, other: str) -> None:
    kept, joined = cluster_of[one], cluster_of[other]
    if kept is joined:
        return
    kept += joined
    for text in joined:
        cluster_of[text] = kept


def _independent(cluster: Sequence[Memory]) -> list[Memory]:
    """Leave out a summary of another row: it repeats what it was made from."""
    ids = {row.id for row in cluster}
    return [row for row in cluster if not ids & set(row.about)]


def _worth(row: Memory) -> tuple[float, float, str, str]:
    """Return what puts the memory first that is worth keeping: important, often recalled, old."""
    return (-(row.importance or 0), -(row.recall_count or 0), row.timestamp or "", row.id)
