"""Why a memory came back for a query, or why it did not: one verdict for every memory, from one traced recall.

Nothing is scored here: the verdicts read the engine's own account (:mod:`ipy_memory.backends.trace`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.mnemopi.recall import query_terms
from ipy_memory.backends.mnemopi.recall.scoring import Document, Group
from ipy_memory.backends.mnemopi.store import browse
from ipy_memory.backends.trace import Candidate, Step, Trace
from ipy_memory.errors import BankError, MemoryNotFoundError
from ipy_memory.explore import local, remote
from ipy_memory.explore.local import EVERY_BANK, chosen_targets, local_backend, readable, server_backend
from ipy_memory.jscompat.strings import number_text, round4, well_formed
from ipy_memory.text import bare_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.backend import MnemopiBackend
    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Hit, Memory
    from ipy_memory.session import MemorySession

NOT_IN_SCOPE = "not in a bank of this scope"
FAILED = "its bank did not answer"
RETURNED = str(Step.RETURNED)

_STORES = (*browse.MEMORY_STORES, "fact")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one memory.

    Attributes
    ----------
    verdict
        One of the steps of :class:`~ipy_memory.backends.trace.Step`,
        :data:`NOT_IN_SCOPE` or :data:`FAILED`.
    reason
        The verdict as a sentence.
    place
        Position in the answer from 1, of a memory that was returned.
    score, value, floor, rank
        The score it reached; what it reached of what was asked for; its rank among all rows that match.
    by, by_bank
        The memory that pushed it out.
    matched
        The words of the query that it has, or has a synonym of, as they were typed.
    through
        Of these words those that it has only another word for, with that word.
    content
        The text of the memory; empty on a server.
    """

    id: str
    bank: str
    store: str
    verdict: str
    reason: str
    place: int | None = None
    score: float | None = None
    value: float | None = None
    floor: float | None = None
    rank: int | None = None
    by: str | None = None
    by_bank: str | None = None
    matched: tuple[str, ...] = ()
    through: Mapping[str, str] = field(default_factory=dict)
    content: str = field(default="", repr=False)

    @property
    def returned(self) -> bool:
        """Whether it is among the hits."""
        return self.verdict == RETURNED

    def __str__(self) -> str:
        return f"{self.id} (bank {self.bank}, {self.store}): {self.reason}"


def why(session: MemorySession, memory_id: str, query: str, *, limit: int | None = None) -> Verdict:
    """Tell why a memory comes back for a query, or does not. Nothing is counted or written.

    Where several rows have the id, the verdict is that of the row that got furthest.

    Raises
    ------
    MemoryNotFoundError
        No bank under the database folder has the id.
    """
    memory_id = bare_id(memory_id.strip())
    if served := server_backend(session):
        return Verdict(**remote.why(served, memory_id, query))
    if other := local.plain_backend(session):
        return Verdict(**local.verdict(other, memory_id, query))
    backend = local_backend(session, "a verdict")

    def rows_of(bank: Bank) -> Sequence[Memory]:
        return browse.page([bank], _STORES, {"id": memory_id}, limit=None).memories

    found = _judged(backend, query, limit, rows_of) or _elsewhere(backend, rows_of)
    if not found:
        raise MemoryNotFoundError(
            f"No memory has the id {memory_id}.",
            hint="recall and %memory browse show ids, and %memory why --all QUERY needs none; annotations and entities"
            " are never recalled themselves",
        )
    return max(found, key=_progress)


def verdicts(
    session: MemorySession,
    query: str,
    *,
    limit: int | None = None,
    everywhere: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> list[Verdict]:
    """Return exactly one verdict for every memory and fact of the banks in scope, from one traced recall.

    Parameters
    ----------
    session
        On local banks.
    query
        As for ``session.recall``.
    limit
        The most hits; the configured limit by default.
    everywhere
        Include the memories of banks that the scope does not read.
    progress
        Told how many of how many of those banks are done.
    """
    backend = local_backend(session, "a verdict for every memory")
    found = _judged(backend, query, limit, browse.every_row)
    return found + (_elsewhere(backend, browse.every_row, progress) if everywhere else [])


def came_back(found: Sequence[Verdict]) -> str:
    """Return how many of the memories came back, in a sentence."""
    return f"{sum(verdict.returned for verdict in found)} of {len(found)} memories came back."


def furthest(found: Sequence[Verdict]) -> list[int]:
    """Return the positions of verdicts in the order of how far the memories got, those in the answer first."""
    return sorted(range(len(found)), key=lambda at: (-_progress(found[at]), found[at].place or 0, at))


def verdicts_frame(found: Sequence[Verdict]) -> DataFrame:
    """Return verdicts as a frame, one row each."""
    from ipy_memory.frames import build

    dtypes: dict[str, Any] = {one.name: build.TEXT for one in fields(Verdict)}
    dtypes |= dict.fromkeys(("place", "rank"), build.WHOLE) | dict.fromkeys(("score", "value", "floor"), build.NUMBER)
    dtypes |= dict.fromkeys(("matched", "through"), "object")
    return build.table({name: [getattr(one, name) for one in found] for name in dtypes}, dtypes)


def judge(rows: Iterable[Memory], traces: Sequence[Trace], hits: Sequence[Hit], limit: int) -> list[Verdict]:
    """Return the verdicts on the rows of one bank.

    Parameters
    ----------
    rows
        The bank's memories and facts.
    traces
        The accounts of the calls that asked this bank; none when it did not answer.
    hits
        The final answer of all banks.
    limit
        The most hits that there could be.
    """
    places = {(hit.bank, hit.tier, hit.id): place for place, hit in enumerate(hits, 1)}
    found = []
    for row in rows:
        accounts = [trace.candidates.get((row.store, row.id)) for trace in traces]
        best = max(filter(None, accounts), key=lambda one: _weight(one, row), default=None)
        found.append(_verdict(row, best, places.get((row.bank, row.store, row.id)), len(hits), limit))
    return found


def _judged(
    backend: MnemopiBackend, query: str, limit: int | None, rows_of: Callable[[Bank], Sequence[Memory]]
) -> list[Verdict]:
    rows: dict[Path, tuple[Memory, ...]] = {}
    found = []
    for target, bank in readable(backend, backend.recall_targets()):
        if not isinstance(bank, BankError):
            rows[target.path] = tuple(rows_of(bank))
    traces: list[Trace] = []
    watch = [row.id for some in rows.values() for row in some]
    if not watch:
        return []
    answer = backend.ask(RecallRequest(query, limit, count=False, traces=traces), watch=watch)
    most = limit or backend.config.recall_limit
    failures = dict(answer.failures)
    for target in backend.recall_targets():
        own = [trace for trace in traces if trace.path == target.path]
        if own:
            found += judge(rows.get(target.path, ()), own, answer.hits, most)
        else:
            reason = f"{FAILED}: {failures.get(target.name, 'it cannot be read')}"
            found += [
                Verdict(row.id, row.bank, row.store, FAILED, reason, content=row.content)
                for row in rows.get(target.path, ())
            ]
    return found


def _elsewhere(
    backend: MnemopiBackend,
    rows_of: Callable[[Bank], Sequence[Memory]],
    progress: Callable[[int, int], object] = lambda *_: None,
) -> list[Verdict]:
    asked = backend.recall_targets()
    reasons = {verdict.path: f" ({verdict.reason})" for verdict in backend.legacy if not verdict.rescued}
    read = ", ".join(target.name for target in asked)
    others = [t for t in chosen_targets(backend, EVERY_BANK) if t.path not in {target.path for target in asked}]
    found: list[Verdict] = []
    for number, (target, bank) in enumerate(readable(backend, others), 1):
        if not isinstance(bank, BankError):
            reason = (
                f"in bank {bank.name}, which the scope {backend.config.scoping} does not read here"
                f"{reasons.get(target.path, '')}; it reads {read}"
            )
            found += [
                Verdict(row.id, row.bank, row.store, NOT_IN_SCOPE, reason, content=row.content) for row in rows_of(bank)
            ]
        progress(number, len(others))
    return found


def _weight(candidate: Candidate, row: Memory) -> tuple[bool, int]:
    # The shared bank may have been asked twice; a row that lost against itself says nothing.
    itself = candidate.step is Step.DEDUPLICATED and (candidate.by, candidate.by_bank) == (row.id, row.bank)
    return not itself, candidate.step.place


_PLACES = {str(step): step.place for step in Step}


def _progress(verdict: Verdict) -> int:
    return _PLACES.get(verdict.verdict, -1)


def _verdict(row: Memory, candidate: Candidate | None, place: int | None, hits: int, limit: int) -> Verdict:
    if candidate is None:
        reason = "its row cannot be read by a recall"
        return Verdict(row.id, row.bank, row.store, str(Step.OUT_OF_REACH), reason, content=row.content)
    returned = candidate.step is Step.RETURNED
    place = place if returned else None
    return Verdict(
        row.id,
        row.bank,
        row.store,
        str(candidate.step),
        f"hit {place} of {hits}, score {_number(candidate.score)}{_words(candidate, row)}"
        if returned
        else _reason(candidate, row, limit),
        place=place,
        score=candidate.score,
        value=candidate.value,
        floor=candidate.floor,
        rank=candidate.rank,
        by=candidate.by,
        by_bank=candidate.by_bank,
        matched=candidate.matched,
        through=through(candidate.matched, row.content),
        content=row.content,
    )


def _reason(candidate: Candidate, row: Memory, limit: int) -> str:
    detail = f": {candidate.detail}" if candidate.detail else ""
    of_summary = f"it sums up memory {candidate.by}, which is among the results itself"
    likeness = "" if candidate.value is None else f" ({_number(candidate.value)} of their words are the same)"
    reasons: Mapping[Step, str] = {
        Step.SUPERSEDED: f"superseded by {candidate.by}",
        Step.EXPIRED: f"expired or invalidated at {candidate.detail}",
        Step.OUT_OF_REACH: f"out of reach{detail} ({row.session_id})",
        Step.NO_SHARED_TERM: f"not a candidate: it shares no word with the query{detail}",
        Step.BEYOND_CANDIDATES: f"not a candidate: it matches at rank {candidate.rank}, and the search looks at"
        f" {_number(candidate.floor)} rows",
        Step.BELOW_FLOOR: f"below the relevance floor: {_number(candidate.value)} of {_number(candidate.floor)}"
        f"{_words(candidate, row)}",
        Step.SUMMARISED: of_summary,
        Step.NOT_COVERING: f"reranked away: others cover more of the query, {candidate.by} among them",
        Step.RERANKED: f"reranked away: too like {candidate.by}{likeness}",
        Step.CUT: f"cut by the limit of {limit}: score {_number(candidate.score)}{_words(candidate, row)}",
        Step.DEDUPLICATED: f"dropped as a duplicate of {candidate.by} in bank {candidate.by_bank}",
    }
    return reasons[candidate.step]


def _words(candidate: Candidate, row: Memory) -> str:
    return f"; matched: {words_of(candidate.matched, row.content)}" if candidate.matched else "; no word matched"


def _number(value: float | None) -> str:
    return "unknown" if value is None else number_text(round4(value))


def through(matched: Iterable[str], text: str) -> dict[str, str]:
    """Return for each word of a query that a text has only another word for: that word."""
    document = Document(text)
    found = {}
    for word in matched:
        first = next((variant for variant, group in _variants(word) if group.matches(document)), word)
        if first != word:
            found[word] = first
    return found


@lru_cache(maxsize=256)
def _variants(word: str) -> list[tuple[str, Group]]:
    """Return the word and what stands for it, the word itself first, each to be looked for alone."""
    others = (other for group in query_terms.groups(word) for other in group)
    return [(one, Group((one,))) for one in dict.fromkeys((word, *others))]


def words_of(matched: Iterable[str], text: str) -> str:
    """Return matched words as they were typed, each with the word that it matched through."""
    other = through(matched, text)
    return well_formed(", ".join(f"{word} (through {other[word]})" if word in other else word for word in matched))
