"""Memories that cannot both hold: two values of what has one, a statement and its denial, a value that was replaced."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ipy_memory.audit.findings import finding
from ipy_memory.audit.secrets import held_in
from ipy_memory.audit.statements import (
    Replaced,
    Stated,
    denied,
    replaced_values,
    sentences_of,
    short_tokens,
    single_values,
)
from ipy_memory.audit.words import Content, languages_for
from ipy_memory.jscompat.dates import parse_ms
from ipy_memory.jscompat.strings import clip
from ipy_memory.ranking.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ipy_memory.audit.findings import Finding, Rows, Tick
    from ipy_memory.model import Memory

_MOST_VALUES = 6
"""A frame with more values is a series of measurements or events, and none of them contradicts another."""
_MOST_OF_ONE = 10
"""So many memories are named at most that hold a replaced value."""
_SHARE = 3
"""One word of so many must be in both sentences besides the value, or they speak of different things."""
_SHOWN = 40

Place = tuple[int, Stated]


def conflicts(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield a finding for each older memory that a newer one contradicts; the newer one is proposed to win."""
    frames: dict[int, list[Place]] = defaultdict(list)
    replaced: list[tuple[int, Replaced]] = []
    for number, row in enumerate(rows.live):
        tick()
        if row.about:
            continue  # a summary repeats what others state
        for sentence in sentences_of(row.content):
            tokens = short_tokens(sentence)
            if not tokens:
                continue
            for place, language in enumerate(languages_for(tokens, rows.languages)):
                found = [*single_values(sentence, tokens, language)]
                if (one := denied(tokens, language)) is not None:
                    found.append(one)
                for stated in found:
                    frames[hash((language, stated.frame))].append((number, stated))
                if not place:
                    replaced += [(number, one) for one in replaced_values(sentence, language)]
    pairs: dict[tuple[int, int], str] = {}
    for places in frames.values():
        if len(places) > 1:
            for older, newer, why in _contradicting(places, rows.live):
                pairs.setdefault((older, newer), why)
    for older, newer, why in _outlived(replaced, rows):
        if (newer, older) not in pairs:
            pairs.setdefault((older, newer), why)
    for (older, newer), why in pairs.items():
        ended, winner = rows.live[older], rows.live[newer]
        yield finding("conflicts", ended, why, severity="medium", action="invalidate", other=[winner])


def _contradicting(places: Sequence[Place], live: Sequence[Memory]) -> Iterator[tuple[int, int, str]]:
    values = {stated.value for _, stated in places}
    frames = {stated.frame for _, stated in places}
    if not 1 < len(values) <= _MOST_VALUES or len(frames) > 1:
        return
    ordered = sorted(places, key=lambda place: _age(live[place[0]], place[0]))
    latest: dict[tuple[str, ...], Place] = {one[1].value: one for one in ordered}
    winner = ordered[-1]
    for value, older in latest.items():
        if value != winner[1].value and older[0] != winner[0]:
            yield older[0], winner[0], _evidence(older, winner, live)


def _evidence(older: Place, newer: Place, live: Sequence[Memory]) -> str:
    if older[1].value in {("yes",), ("no",)}:
        return "the newer memory says the opposite"
    if any(held_in(live[place].content) for place, _ in (older, newer)):
        return "another value in the newer memory"
    return f'"{clip(older[1].shown, _SHOWN)}" here, "{clip(newer[1].shown, _SHOWN)}" in the newer memory'


def _age(row: Memory, number: int) -> tuple[float, float]:
    """Return what orders memories by time; of equal times the one that is listed first is the newer."""
    moment = parse_ms(row.timestamp, None) if row.timestamp else None
    return (moment or 0, -number)


def _outlived(replaced: Sequence[tuple[int, Replaced]], rows: Rows) -> Iterator[tuple[int, int, str]]:
    """Yield the memories that still hold a value which another one says was replaced."""
    if not replaced:
        return
    by_stem: dict[str, list[tuple[int, Replaced]]] = defaultdict(list)
    for number, one in replaced:
        by_stem[one.former[0]].append((number, one))
    counts: dict[int, int] = defaultdict(int)
    replacing = {number for number, _ in replaced}
    first = frozenset(min(one.words) for _, one in replaced if one.words)
    for number, row in enumerate(rows.live):
        if number in replacing or row.about:
            continue
        if first.isdisjoint(words_of(row.content.lower())):
            continue
        for sentence in sentences_of(row.content):
            tokens = short_tokens(sentence)
            if not tokens:
                continue
            for language in languages_for(tokens, rows.languages)[:2]:
                content = Content(tokens, language)
                if content.negated:
                    continue
                yield from _holding(number, content.stems, by_stem, counts)


def _holding(
    number: int,
    stems: Sequence[str],
    by_stem: Mapping[str, Sequence[tuple[int, Replaced]]],
    counts: dict[int, int],
) -> Iterator[tuple[int, int, str]]:
    held = frozenset(stems)
    for stem in held & by_stem.keys():
        for other, one in by_stem[stem]:
            if counts[other] >= _MOST_OF_ONE or not _in_a_row(one.former, stems) or set(one.present) <= held:
                continue
            rest = held - set(one.former)
            shared = len(rest & one.about)
            if _of_another(rest, one.about):
                continue
            if shared and shared * _SHARE >= len(rest | one.about):
                counts[other] += 1
                yield number, other, clip(one.shown, 2 * _SHOWN)


def _of_another(rest: frozenset[str], about: frozenset[str]) -> bool:
    """Return whether two sentences name different things, by numbers or identifiers."""
    exact, exact_there = ({stem for stem in stems if stem.startswith("=")} for stems in (rest, about))
    return bool(exact and exact_there and not exact & exact_there)


def _in_a_row(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(tuple(whole[at : at + len(part)]) == tuple(part) for at in range(len(whole) - len(part) + 1))
