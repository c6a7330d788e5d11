"""The program's commands that measure and compare: ``evaluate``, ``compare`` and ``diff``; all of them only read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MagicError
from ipy_memory.paths import typed_path
from ipy_memory.shell.output import DONE, NO, Result, record, table

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.session import MemorySession

_MEASURES = ("hit", "recall", "mrr", "ndcg", "difference", "low", "high")
COLUMNS = ("variant", "k", "questions", *_MEASURES, "needs")


def evaluate(session: MemorySession, parsed: Parsed) -> Result:
    """Measure recall on questions whose memories are known; a measure below ``--fail-under`` is an answer of no."""
    from ipy_memory.explore import evaluate as measuring

    proxy = "proxy" in parsed.flags
    if proxy is bool(parsed.text.strip()):
        raise MagicError("name one source of questions", hint="a file, or --proxy")
    pairs = measuring.proxies(session) if proxy else measuring.read_pairs(typed_path(parsed.text.strip(), session.env))
    found = measuring.evaluate(session, pairs, parsed.flags.get("by", "ranking"), limit=parsed.flags.get("limit"))
    notes = [*found.notes, *measuring.said(found, proxy=proxy)]
    if "trec" in parsed.flags:
        notes += measuring.write_trec(found, Path(typed_path(parsed.flags["trec"], session.env)))
    code = DONE
    if "fail-under" in parsed.flags:
        try:
            measuring.check_floor(found, parsed.flags["fail-under"])
        except measuring.BelowFloorError as error:
            notes.append(error.message)
            code = NO
    rows = [tuple(_cell(getattr(line, name), name) for name in COLUMNS) for line in found.lines]
    data = {"measures": record(found.lines), "cases": record(found.cases)}
    return Result(table(COLUMNS, rows, ""), data, notes, code)


def _cell(value: Any, name: str) -> Any:
    return f"{value:.3f}" if name in _MEASURES and value is not None else value


def compare(session: MemorySession, parsed: Parsed) -> Result:
    """Ask queries in several ways, side by side."""
    from ipy_memory.explore import compare as comparing

    queries = comparing.queries_of(parsed.text, parsed.flags.get("file"), session.env)
    rows, names = comparing.compared(
        session, queries, parsed.flags.get("by", "ranking"), limit=parsed.flags.get("limit")
    )
    cells = [
        (row.query, row.id, row.bank, *(row.ranks.get(name) for name in names), row.only_in(names), row.content)
        for row in rows
    ]
    columns = ("query", "id", "bank", *names, "only in", "content")
    if len(queries) == 1:
        columns, cells = columns[1:], [row[1:] for row in cells]
    records = [
        {"query": row.query, "id": row.id, "bank": row.bank, "ranks": row.ranks, "content": row.content} for row in rows
    ]
    return Result(table(columns, cells, "No variant gives anything."), {"compared": records, "variants": names})


def diff(session: MemorySession, parsed: Parsed) -> Result:
    """Show what differs between two banks, or since a moment; differences are an answer of no."""
    from ipy_memory.explore.diff import COLUMNS, asked

    found = asked(session, parsed.text, parsed.flags.get("since"))
    rows = [tuple(getattr(one, name) for name in COLUMNS) for one in found.changes]
    data = {"changes": record(found.changes), "equal": found.equal}
    notes = [found.summary, *found.notes]
    return Result(table(COLUMNS, rows, "No difference."), data, notes, NO if found.changes else DONE)
