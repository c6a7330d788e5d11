"""``%memory browse`` and ``%memory chain``: what is stored, and what replaced what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ipy_memory.jsdate import shown_stamp
from ipy_memory.notebook.commands import command, one_word, table
from ipy_memory.notebook.parse import Flag, Parsed, variable, whole_number

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame

COLUMNS = ("id", "date", "state", "bank", "store", "content")
"""What is shown; the frame has every column."""
ROWS = 50
"""How many rows are shown at once."""


def _date(text: str) -> str:
    if not re.fullmatch(r"\d{4}(-\d\d(-\d\d([T ].*)?)?)?", text, re.ASCII):
        raise ValueError("a date such as 2026-05-31")
    return text


_FILTERS = (
    Flag("source", "who stored it", "NAME"),
    Flag("type", "such as fact or episode", "NAME"),
    Flag("veracity", "how sure it is: stated, tool, inferred, …", "NAME"),
    Flag("session", "id of the session that stored it", "ID"),
    Flag("cwd", "folder it was stored from", "PATH"),
    Flag("state", "live, superseded or expired", "STATE"),
    Flag("about", "what was made from this memory (with --store all)", "ID"),
    Flag("since", "stored on this date or later", "DATE", _date),
    Flag("until", "stored on this date or before", "DATE", _date),
)


@command(
    "browse",
    "[TEXT]",
    "List what is stored, newest first; TEXT must be part of the content.",
    flags=(
        Flag("bank", "this one bank, or * for all of the database folder", "NAME"),
        Flag("store", "working, episodic, fact, annotation, entity, triple, or all", "NAME"),
        *_FILTERS,
        Flag("limit", f"rows a page; {ROWS} by default", "N", whole_number),
        Flag("page", "which page, from 1", "N", whole_number),
        Flag("out", "also bind the frame to this variable", "NAME", variable),
    ),
)
def browse(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """List a page; nothing is counted or written."""
    from ipy_memory.notebook.result import ListFrame

    flags, text = parsed.flags, parsed.text.strip()
    where = {flag.name: flags[flag.name] for flag in _FILTERS if flag.name in flags} | ({"text": text} if text else {})
    limit = flags.get("limit", ROWS)
    number = flags.get("page", 1)
    found = magics.session.memories(
        flags.get("bank"), where, store=flags.get("store"), limit=limit, offset=(number - 1) * limit
    )
    total, offset = found.attrs["total"], found.attrs["offset"]
    notes = [f"Rows {offset + 1} to {offset + len(found)} of {total}."] if len(found) else []
    if found.attrs["next_offset"] is not None:
        notes.append(f"Further rows: --page {number + 1}")
    empty = "No such memories." if where else "No memories yet."
    names = table()["browse"].spec.flag_names
    behind = [word for word in text.split() if word.partition("=")[0] in names]
    if behind and not parsed.ended:
        empty += f" {behind[0]} was searched for as text: flags stand in front of it."
    shown = ListFrame(found, COLUMNS, notes=notes, empty=empty, quiet=parsed.quiet)
    if "out" in flags:
        magics.shell.user_ns[flags["out"]] = shown
    return shown


@command("chain", "ID", "List a memory with all that it replaced and all that replaced it, the oldest first.")
def chain(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Follow the replacements in both directions."""
    from ipy_memory.inspect import browse as browsing
    from ipy_memory.notebook.result import ListFrame

    session = magics.session
    found = browsing.chain(session, one_word(parsed, "one id", "chain").removeprefix("memory://"))
    ends = [shown_stamp(end, session.clock.tz) if isinstance(end, str) else end for end in found["valid_until"]]
    columns = ("id", "date", "bank", "superseded_by", "valid_until", "content")
    missing = found.attrs["missing"]
    notes = [f"Memory {missing}, which comes next, is in no bank in scope."] if missing else []
    return ListFrame(found, columns, shown=found.assign(valid_until=ends), notes=notes, quiet=parsed.quiet)
