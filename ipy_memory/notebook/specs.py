"""What the four magics take: their flags, and the words of their usage pages."""

from __future__ import annotations

from collections.abc import Mapping

from ipy_memory.backends import SUPPORTED
from ipy_memory.notebook.parse import Flag, Spec, variable, whole_number

BACKENDS = (*SUPPORTED, "off")
"""What a notebook can choose; the agent knows further backends, which have no tools."""

FROM = Flag("from", "take the text from this Python variable", "NAME", variable)
_OUT = Flag("out", "also bind the result to this variable", "NAME", variable)
_BANK = Flag("bank", "ask this one bank, of the database folder or of the server, read-only", "NAME")
_NO_TOUCH = Flag("no-touch", "leave the recall counters as they are")

RECALL = Spec(
    "recall",
    ("%recall [flags] QUERY", "%%recall [flags]      (the query is the cell)"),
    "Search memory: shows exactly what the agent would see, and returns the hits as a DataFrame.",
    (
        FROM,
        Flag("limit", "at most this many hits", "N", whole_number),
        _BANK,
        Flag("explain", "add to the frame why each hit has its score"),
        _NO_TOUCH,
        _OUT,
    ),
)
RETAIN = Spec(
    "retain",
    ("%retain [flags] TEXT", "%%retain [flags]      (the text is the cell)"),
    "Store a memory: the text as typed, as one item.",
    (
        FROM,
        Flag("lines", "one item for each line that is not blank"),
        Flag("json", 'items from a JSON list of {"content": …, "context": …}'),
        Flag("context", "where the text comes from; quote it if it has blanks", "TEXT"),
        _OUT,
    ),
)
REFLECT = Spec(
    "reflect",
    ("%reflect [flags] QUESTION", "%%reflect [flags]      (the question is the cell)"),
    "Answer a question from memory as a whole; the result keeps the hits it used as .frame.",
    (FROM, Flag("context", "more to consider; quote it if it has blanks", "TEXT"), _BANK, _NO_TOUCH, _OUT),
)
MEMORY = Spec(
    "memory",
    ("%memory", "%memory COMMAND …", "%memory COMMAND -h"),
    "See and choose which memory the magics use.",
)
BY_NAME: Mapping[str, Spec] = {spec.name: spec for spec in (RECALL, RETAIN, REFLECT)}
"""Those that take a text."""
