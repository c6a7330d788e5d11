"""What carries out the commands of ``%memory``: one small module for each subject, which registers its functions.

What a command takes is written in :mod:`ipy_memory.commands.table`.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed, check, parse
from ipy_memory.commands.table import MAGICS, MEMORY, OTHER_WORDS
from ipy_memory.errors import MagicError

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics

Handler = Callable[["MemoryMagics", Parsed], object]

_HANDLERS: dict[str, Handler] = {}


def handles(name: str) -> Callable[[Handler], Handler]:
    """Register a function as what carries out ``%memory <name>``, a command of the table."""

    def register(handler: Handler) -> Handler:
        _HANDLERS[MEMORY[name].name] = handler
        return handler

    return register


@functools.cache
def handlers() -> dict[str, Handler]:
    """Return the functions by the name of their command."""
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return _HANDLERS


def run(magics: MemoryMagics, line: str) -> object:
    """Carry out the line of ``%memory``; an empty one is ``%memory status``."""
    head = line.rstrip().removesuffix(";")
    if head.strip() in {"-h", "--help"}:
        return _listing()
    name, _, rest = line.strip().partition(" ")
    name = name.removesuffix(";") or "status"
    command = MEMORY.get(name)
    if command is None:
        nearest = f"did you mean {near}? " if (near := _nearest(name)) else ""
        raise MagicError(f"%memory has no command {name!r}", hint=f"{nearest}there are {', '.join(MEMORY)}")
    parsed = parse(command, rest if line.strip() != f"{name};" else ";")
    from ipy_memory.notebook.result import TextResult

    if parsed.help:
        result: object = TextResult(command.usage())
    else:
        check(command, parsed)
        result = handlers()[name](magics, parsed)
    if isinstance(result, TextResult):
        result.quiet = parsed.quiet
    return result


def _nearest(name: str) -> str | None:
    if name == "help":
        return "%memory -h"
    if name in MAGICS or name in OTHER_WORDS:
        meant = OTHER_WORDS.get(name, name)
        return (MAGICS.get(meant) or MEMORY[meant]).magic
    near = difflib.get_close_matches(name, MEMORY, n=1)
    return near[0] if near else None


def _listing() -> object:
    from ipy_memory.notebook.result import TableResult

    return TableResult(
        ("for", "command", "what it does"),
        [(each.group, each.magic_forms[0], each.summary) for each in MEMORY.values()],
    )
