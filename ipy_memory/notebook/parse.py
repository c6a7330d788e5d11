"""Flags off the front of a magic's text; the rest is the query, as typed (N-07).

A flag is ``--name`` (``--name VALUE``, ``--name=VALUE``) at the front or a lone ``-h``; ``--`` ends the flags;
anything else, ``-swarm`` and quotes too, is text.
"""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ipy_memory.errors import MagicError

_FLAG = re.compile(r"--(?P<name>[A-Za-z][\w-]*)(?:(?P<equals>=)|(?=\s)|$)")
_END = re.compile(r"--(?=\s|$)")
_QUOTED = re.compile(r"""(?P<mark>["'])(?P<inside>.*?)(?P=mark)(?=\s|$)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: ``value`` is its placeholder in help, ``None`` for a switch; ``convert`` reads the value."""

    name: str
    help: str
    value: str | None = None
    convert: Callable[[str], Any] = str


@dataclass(frozen=True, slots=True)
class Spec:
    """What a magic or a command takes, and its help."""

    name: str
    forms: tuple[str, ...]
    summary: str
    flags: tuple[Flag, ...] = ()

    @property
    def flag_names(self) -> list[str]:
        """Every flag as it is typed."""
        return [f"--{flag.name}" for flag in self.flags]

    def usage(self) -> str:
        """Return the help page."""
        lines = [self.summary, "", *(f"    {form}" for form in self.forms)]
        if self.flags:
            shown = [
                (f"--{flag.name} {flag.value}" if flag.value else f"--{flag.name}", flag.help) for flag in self.flags
            ]
            shown.append(("--", "ends the flags: all that follows is text"))
            width = max(len(left) for left, _ in shown)
            lines += ["", "Flags, in front of the text:", *(f"    {left:<{width}}  {right}" for left, right in shown)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A magic's text, taken apart."""

    text: str
    flags: Mapping[str, Any]
    quiet: bool = False
    help: bool = False
    ended: bool = False
    """Whether ``--`` ended the flags, which makes even an empty text a given one."""


def parse(spec: Spec, line: str, cell: str | None = None) -> Parsed:
    """Take a magic's text apart.

    Parameters
    ----------
    spec
        The flags that are allowed.
    line
        The text after the magic's name and one space. In the line form a trailing ``;`` is taken off and
        marks the call quiet; one blank after the last flag separates it from the text.
    cell
        The cell below the line, for the cell form: the text, less the newline that ends the cell.

    Raises
    ------
    MagicError
        An unknown flag, a flag without its value, a bad value, or text on the line of a cell magic.
    """
    quiet = False
    if cell is None and line.rstrip().endswith(";"):
        line, quiet = line.rstrip()[:-1], True
    if line.strip() in {"-h", "--help"}:
        return Parsed("", {}, quiet=quiet, help=True)
    flags: dict[str, Any] = {}
    ended = False
    at = 0
    while not ended:
        start = at + len(line[at:]) - len(line[at:].lstrip())
        if _END.match(line, start):
            at, ended = start + 2, True
        elif found := _FLAG.match(line, start):
            flag = _known(spec, found["name"])
            at = found.end()
            if flag.value is not None:
                flags[flag.name], at = _value(spec, flag, line, at, attached=bool(found["equals"]))
            elif found["equals"]:
                raise MagicError(f"--{flag.name} takes no value", hint=_page(spec))
            else:
                flags[flag.name] = True
        else:
            break
    text = line[at + 1 :] if at else line
    if cell is None:
        return Parsed(text, flags, quiet=quiet, ended=ended)
    if text.strip():
        raise MagicError(
            f"%%{spec.name} takes its text from the lines below, but the first line has text too",
            hint=f"put it below, or use %{spec.name}",
        )
    return Parsed(cell.removesuffix("\n"), flags, quiet=quiet, ended=ended)


def _known(spec: Spec, name: str) -> Flag:
    for flag in spec.flags:
        if flag.name == name:
            return flag
    names = spec.flag_names
    near = difflib.get_close_matches(f"--{name.lower()}", names, n=1)
    nearest = f"did you mean {near[0]}? " if near else ""
    valid = f"valid here: {', '.join(names)}" if names else "none are valid here"
    raise MagicError(
        f"%{spec.name} has no flag --{name}", hint=f"{nearest}{valid}; put -- in front of a text that begins so"
    )


def _page(spec: Spec) -> str:
    return f"see %{spec.name} -h"


def _value(spec: Spec, flag: Flag, line: str, at: int, *, attached: bool) -> tuple[Any, int]:
    if not attached:
        at += len(line[at:]) - len(line[at:].lstrip())
    if quoted := _QUOTED.match(line, at):
        raw, at = quoted["inside"], quoted.end()
    else:
        end = next((i for i in range(at, len(line)) if line[i].isspace()), len(line))
        raw, at = line[at:end], end
        if not raw and not attached:
            raise MagicError(f"--{flag.name} needs a value: --{flag.name} {flag.value}", hint=_page(spec))
    try:
        return flag.convert(raw), at
    except ValueError as error:
        raise MagicError(f"--{flag.name} needs {error}, not {raw!r}", hint=_page(spec)) from None


def whole_number(text: str) -> int:
    """Read a whole number of at least 1."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError("a whole number of at least 1")
    return int(text)


def variable(text: str) -> str:
    """Read the name of a Python variable."""
    if not text.isidentifier() or keyword.iskeyword(text):
        raise ValueError("the name of a variable")
    return text


def one_of(name: str, given: str, choices: tuple[str, ...], more: str = "") -> str:
    """Return a choice as given, or raise an error that names the valid ones (S-11)."""
    if given in choices:
        return given
    near = difflib.get_close_matches(given.lower(), choices, n=1)
    nearest = f"did you mean {near[0]}? " if near else ""
    raise MagicError(f"{name} cannot be {given!r}", hint=f"{nearest}valid are {', '.join(choices)}{more}")
