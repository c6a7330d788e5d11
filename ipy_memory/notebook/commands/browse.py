"""``%memory browse`` and ``%memory chain``: what is stored, and what replaced what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed, id_and_text
from ipy_memory.commands.table import COMMANDS, FILTERS, ROWS, chosen
from ipy_memory.errors import MagicError
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.notebook.commands import handles
from ipy_memory.text import bare_id

if TYPE_CHECKING:
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame, TextResult

COLUMNS = ("id", "date", "state", "bank", "store", "content")
"""What is shown; the frame has every column."""


@handles("browse")
def browse(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """List a page; nothing is counted or written."""
    from ipy_memory.explore import browse as browsing
    from ipy_memory.notebook.result import ListFrame

    flags, text = parsed.flags, parsed.text.strip()
    where = chosen(FILTERS, flags) | ({"text": text} if text else {})
    limit = flags.get("limit", ROWS)
    number = flags.get("page", 1)
    found = magics.session.memories(
        flags.get("bank"), where, store=flags.get("store"), limit=limit, offset=(number - 1) * limit
    )
    paged = found.attrs
    notes = browsing.page_notes(len(found), paged["total"], paged["offset"], paged["next_offset"], number)
    notes += paged.get("problems", [])
    empty = browsing.nothing(where)
    names = COMMANDS["browse"].flag_names
    behind = [word for word in text.split() if word.partition("=")[0] in names]
    if behind and not parsed.ended:
        empty += f" {behind[0]} was searched for as text: flags stand in front of it."
    shown = ListFrame(found, COLUMNS, notes=notes, empty=empty, quiet=parsed.quiet)
    if "out" in flags:
        magics.shell.user_ns[flags["out"]] = shown
    return shown


@handles("chain")
def chain(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Follow the replacements in both directions."""
    from ipy_memory.explore import browse as browsing
    from ipy_memory.notebook.result import ListFrame

    session = magics.session
    found = browsing.chain(session, bare_id(parsed.word), parsed.flags.get("bank"))
    ends = [shown_stamp(end, session.clock.tz) if isinstance(end, str) else end for end in found["valid_until"]]
    columns = ("id", "date", "bank", "superseded_by", "valid_until", "content")
    notes = browsing.chain_notes(found.attrs["missing"])
    return ListFrame(found, columns, shown=found.assign(valid_until=ends), notes=notes, quiet=parsed.quiet)


@handles("show")
def show(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show the page of one memory."""
    from ipy_memory.notebook.result import TextResult

    return TextResult(magics.session.show(parsed.word, bank=parsed.flags.get("bank")))


WHY_COLUMNS = ("id", "bank", "store", "verdict", "reason", "content")


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
            WHY_COLUMNS,
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
