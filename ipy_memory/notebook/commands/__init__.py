"""The commands of ``%memory``: one small module each in this folder, which registers what it offers.

A further command is a further module with a function under :func:`command`; nothing else lists it.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.errors import MagicError
from ipy_memory.notebook.parse import Flag, Parsed, Spec, parse

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics

Handler = Callable[["MemoryMagics", Parsed], object]
Choices = Callable[["MemoryMagics"], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it takes, what carries it out, and the words that can follow it (for completion)."""

    name: str
    spec: Spec
    handler: Handler
    choices: Choices | None = None


_COMMANDS: dict[str, Command] = {}
_OTHER_WORDS = {
    **dict.fromkeys(("recall", "search"), "%recall"),
    **dict.fromkeys(("retain", "remember", "add"), "%retain"),
    **dict.fromkeys(("reflect", "ask"), "%reflect"),
    **dict.fromkeys(("list", "ls", "find"), "%memory browse"),
    **dict.fromkeys(("edit", "change"), "%memory update"),
    **dict.fromkeys(("delete", "remove", "rm"), "%memory forget"),
    "explain": "%memory why",
    "help": "%memory -h",
}
"""What people type who do not know the name of the command yet."""


def command(
    name: str, takes: str, summary: str, *, flags: tuple[Flag, ...] = (), choices: Choices | None = None
) -> Callable[[Handler], Handler]:
    """Register a function as ``%memory <name>``.

    Parameters
    ----------
    name
        The word after ``%memory``.
    takes
        What follows it, for help: ``"<id>"``, or nothing.
    summary
        One line of help.
    flags
        Flags in front of what follows.
    choices
        Gives the words that can follow.
    """

    def register(handler: Handler) -> Handler:
        form = " ".join(filter(None, (f"%memory {name}", "[flags]" if flags else "", takes)))
        _COMMANDS[name] = Command(name, Spec(f"memory {name}", (form,), summary, flags), handler, choices)
        return handler

    return register


@functools.cache
def table() -> dict[str, Command]:
    """Return every command by name, in order of name."""
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return dict(sorted(_COMMANDS.items()))


def run(magics: MemoryMagics, line: str) -> object:
    """Carry out the line of ``%memory``; an empty one is ``%memory status``."""
    head = line.rstrip().removesuffix(";")
    if head.strip() in {"-h", "--help"}:
        return _listing()
    name, _, rest = line.strip().partition(" ")
    name = name.removesuffix(";") or "status"
    chosen = table().get(name)
    if chosen is None:
        near = [_OTHER_WORDS[name]] if name in _OTHER_WORDS else difflib.get_close_matches(name, table(), n=1)
        nearest = f"did you mean {near[0]}? " if near else ""
        raise MagicError(f"%memory has no command {name!r}", hint=f"{nearest}there are {', '.join(table())}")
    parsed = parse(chosen.spec, rest if line.strip() != f"{name};" else ";")
    from ipy_memory.notebook.result import TextResult

    result = TextResult(chosen.spec.usage()) if parsed.help else chosen.handler(magics, parsed)
    if isinstance(result, TextResult):
        result.quiet = parsed.quiet
    return result


def _listing() -> object:
    from ipy_memory.notebook.result import TableResult

    return TableResult(
        ("command", "what it does"), [(each.spec.forms[0], each.spec.summary) for each in table().values()]
    )


def id_and_text(parsed: Parsed, spec_name: str) -> tuple[str, str]:
    """Return the id and the text after it; a flag of the command between them is an error, unless ``--`` was given."""
    memory_id, _, text = parsed.text.lstrip().partition(" ")
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    if not parsed.ended and first.partition("=")[0] in table()[spec_name].spec.flag_names:
        raise MagicError(
            f"{first} stands behind the id",
            hint=f"flags stand in front: %memory {spec_name} {first} …; for a text that begins so:"
            f" %memory {spec_name} -- ID TEXT",
        )
    return memory_id, text


def one_word(parsed: Parsed, what: str, spec_name: str) -> str:
    """Return the one word that a command takes, or raise an error that names what is missing."""
    words = parsed.text.split()
    if len(words) != 1:
        raise MagicError(f"%memory {spec_name} takes {what}", hint=f"see %memory {spec_name} -h")
    return words[0]
