"""``%memory evaluate``, ``compare`` and ``diff``: how well recall finds, how ways to ask differ, and how banks do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import value_of
from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import handles
from ipy_memory.paths import typed_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.explore.evaluate import Pair
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame

SUMMARY = ("variant", "k", "questions", "hit", "recall", "mrr", "ndcg", "difference", "low", "high", "needs")
CASES = ("query", "id", "variant", "rank", "why")


@handles("evaluate")
def evaluate(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Show the measures; the cases are in ``attrs["cases"]`` of the frame."""
    from ipy_memory.explore import evaluate as measuring
    from ipy_memory.notebook.result import ListFrame

    found = measuring.evaluate(
        magics.session,
        _pairs(magics, parsed),
        parsed.flags.get("by", "ranking"),
        limit=parsed.flags.get("limit"),
        progress=magics.progress("questions"),
    )
    notes = [*found.notes, *measuring.said(found, proxy="proxy" in parsed.flags)]
    if "trec" in parsed.flags:
        notes += measuring.write_trec(found, Path(typed_path(parsed.flags["trec"], magics.world.get("env"))))
    if "fail-under" in parsed.flags:
        measuring.check_floor(found, parsed.flags["fail-under"])
    summary = found.summary
    summary.attrs["cases"] = found.frame.to_dict("records")
    return ListFrame(summary, SUMMARY, notes=notes, quiet=parsed.quiet)


def _pairs(magics: MemoryMagics, parsed: Parsed) -> Sequence[Pair]:
    from ipy_memory.explore import evaluate as measuring

    given = [name for name in ("proxy", "frame") if name in parsed.flags] + (["PAIRS"] if parsed.text.strip() else [])
    if len(given) != 1:
        raise MagicError("name one source of questions", hint="a file, --frame NAME, or --proxy")
    if "proxy" in parsed.flags:
        return measuring.proxies(magics.session)
    if "frame" in parsed.flags:
        frame = value_of(magics.variables, parsed.flags["frame"])
        if not hasattr(frame, "to_dict"):
            raise MagicError(f"{parsed.flags['frame']} is not a frame", hint="give it columns query and ids")
        return measuring.read_pairs(frame.to_dict("records"))
    return measuring.read_pairs(typed_path(parsed.text.strip(), magics.world.get("env")))


@handles("compare")
def compare(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Show what each variant gives for the queries."""
    from ipy_memory.explore import compare as comparing
    from ipy_memory.notebook.result import ListFrame

    frame = comparing.compare(
        magics.session,
        comparing.queries_of(parsed.text, parsed.flags.get("file"), magics.world.get("env")),
        parsed.flags.get("by", "ranking"),
        limit=parsed.flags.get("limit"),
        progress=magics.progress("recalls"),
    )
    one = frame["query"].nunique() == 1
    shown = [name for name in frame.columns if not (one and name == "query")]
    return ListFrame(frame, shown, empty="No variant gives anything.", quiet=parsed.quiet)


@handles("diff")
def diff(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Show the differences, each kind together."""
    from ipy_memory.explore.diff import COLUMNS, asked
    from ipy_memory.notebook.result import ListFrame

    found = asked(magics.session, parsed.text, parsed.flags.get("since"))
    notes = [found.summary, *found.notes]
    return ListFrame(found.frame, COLUMNS, notes=notes, empty="No difference.", quiet=parsed.quiet)
