"""Recall by the ranking `best`: what the agent would miss, found in the same banks, read-only and never counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ipy_memory import text
from ipy_memory.backends.mnemopi.recall.best import BestHit, best_recall
from ipy_memory.errors import BankError, MemoryToolkitError
from ipy_memory.explore.agent_start import recall_as_agent_start
from ipy_memory.explore.as_of import recall_as_of
from ipy_memory.explore.local import chosen_targets, local_backend, readable
from ipy_memory.model import ToolResult
from ipy_memory.ranking import RANKINGS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from ipy_memory.backends.base import RecallRequest
    from ipy_memory.model import Hit
    from ipy_memory.session import MemorySession

NOTE = "Ranked by best, which the agent does not use: without --ranking best you see what the agent sees."
_WORDS = 6


def ranked_recall(
    session: MemorySession, request: RecallRequest, *, bank: str | None, ranking: str, at_start: bool, as_of: str | None
) -> ToolResult:
    """Answer a recall otherwise than the agent does now: by another ranking, or at another time.

    Raises
    ------
    MemoryToolkitError
        There is no such ranking, the two exclude each other, or the ranking cannot honour a filter.
    """
    if ranking not in RANKINGS:
        raise MemoryToolkitError(f"There is no ranking {ranking!r}.", hint=f"choose one of {', '.join(RANKINGS)}")
    if ranking == "best" and request.where is not None:
        request.where.check("The ranking best", frozenset())
    if not at_start and as_of is None:
        return best(session, request.query, limit=request.limit, bank=bank, cancel=request.cancel)
    if ranking == "best" or bank is not None or (at_start and as_of is not None):
        raise MemoryToolkitError(
            "At another time only the agent's own recall answers, over its whole scope, and at one time only.",
            hint="leave out the bank, the ranking, or one of the two times",
        )
    if as_of is not None:
        return recall_as_of(session, request, as_of)
    return recall_as_agent_start(
        session,
        request.query,
        limit=request.limit,
        cancel=request.cancel,
        traces=request.traces,
        where=request.where,
    )


def best(
    session: MemorySession,
    query: str,
    *,
    limit: int | None = None,
    bank: str | None = None,
    cancel: Event | None = None,
) -> ToolResult:
    """Search the banks in scope by the ranking `best`.

    Each bank scores every visible memory, and the scores of all banks are compared as they are: a score is the share of
    the question that a memory answers. No recall is counted.

    Parameters
    ----------
    session
        On local banks.
    query
        A question in one's own words; all of its words count.
    limit
        The most hits; the configured limit by default.
    bank
        This one bank instead of the scope, or ``*`` for all of the database folder.
    cancel
        Set it from elsewhere to stop the work.

    Returns
    -------
    ToolResult
        The text in the form of the recall tool. Each hit's ``explanation`` names its words and the memory that lent
        one; ``parts`` hold the shares of words (keyword), vectors (dense) and dates (temporal).

    Raises
    ------
    MemoryToolkitError
        The memory is on a server, which ranks by itself, or no bank could be read.
    """
    backend = local_backend(session, "the ranking best")
    most = limit or backend.config.recall_limit
    found: list[BestHit] = []
    notes = [NOTE]
    errors: list[BankError] = []
    names: list[str] = []
    for target, opened in readable(backend, chosen_targets(backend, bank)):
        try:
            if isinstance(opened, BankError):
                raise opened
            opened.cancel = cancel
            found += best_recall(opened, query, most)
            names.append(target.name)
        except BankError as error:
            errors.append(error)
            notes.append(text.bank_failed(target.name, str(error)))
        finally:
            if not isinstance(opened, BankError):
                opened.cancel = None
    if errors and not names:
        raise errors[0]
    hits = _merged(found, most)
    shown = (
        text.recall_text([backend.bullet(hit) for hit in hits], session.clock.now_ms()) if hits else text.NO_MEMORIES
    )
    attrs = session.provenance(query) | {"banks": names, "ranking": "best", "notes": notes}
    return ToolResult(shown, useless=not hits, hits=tuple(hits), notes=tuple(notes), attrs=attrs)


def _merged(found: Sequence[BestHit], limit: int) -> list[Hit]:
    """Return the hits of all banks by score, the same id or text once; of equals the newer one first."""
    ordered = sorted(found, key=lambda one: one.hit.timestamp or "", reverse=True)
    ordered.sort(key=lambda one: -(one.hit.score or 0.0))
    hits: list[Hit] = []
    seen: set[str | None] = set()
    for one in ordered:
        if one.hit.id in seen or one.hit.content in seen:
            continue
        seen |= {one.hit.id, one.hit.content}
        hits.append(replace(one.hit, explanation=_explanation(one)))
        if len(hits) == limit:
            break
    return hits


def _explanation(one: BestHit) -> str:
    """Return in one line which words of the question a hit has, and what else its score is made of."""
    parts = []
    for reason in one.reasons()[:_WORDS]:
        lent = f" lent by {getattr(reason.lent_by, 'id', reason.lent_by)}" if reason.lent_by is not None else ""
        parts.append(f"{reason.word} {reason.share:.2f}{lent}")
    for name, value in (("vectors", one.hit.parts.dense), ("date", one.hit.parts.temporal)):
        if value:
            parts.append(f"{name} {value:.2f}")
    if one.made_from:
        parts.append(f"made from {', '.join(one.made_from)}")
    return f"best: {'; '.join(parts)}" if parts else "best"
