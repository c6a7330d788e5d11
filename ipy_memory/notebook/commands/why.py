"""``%memory why``: why a memory came back for a query, or why it did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed, id_and_text
from ipy_memory.commands.table import COMMANDS
from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame, TextResult

COLUMNS = ("id", "bank", "store", "verdict", "reason", "content")


@handles("why")
def why(magics: MemoryMagics, parsed: Parsed) -> TextResult | ListFrame:
    """Read the account of one recall; nothing is counted or written."""
    from ipy_memory.explore.why import came_back, furthest, verdicts, verdicts_frame
    from ipy_memory.notebook.result import ListFrame, TextResult

    limit = parsed.flags.get("limit", magics.limit or None)
    if "all" in parsed.flags:
        if not parsed.text and not parsed.ended:
            raise MagicError("%memory why --all takes a query", hint="see %memory why -h")
        found = verdicts(
            magics.session,
            parsed.text,
            limit=limit,
            everywhere="everywhere" in parsed.flags,
            progress=magics.progress("banks"),
        )
        return ListFrame(
            verdicts_frame(found),
            COLUMNS,
            notes=[came_back(found)],
            empty="No memories.",
            quiet=parsed.quiet,
            first=furthest(found),
        )
    if "everywhere" in parsed.flags:
        raise MagicError("--everywhere goes with --all", hint="an id is looked for in every bank anyway")
    memory_id, query = id_and_text(COMMANDS["why"], parsed)
    if not memory_id or not query:
        raise MagicError(
            "%memory why takes an id and a query",
            hint="as in: %memory why 716b251a2adcd9e2 deploy target, or without an id: %memory why --all deploy target",
        )
    verdict = magics.session.why(memory_id, query, limit=limit)
    return TextResult(str(verdict), frame=verdicts_frame([verdict]))
