"""How a command is declared, and how its flags and text are taken apart.

In a magic, a flag is ``--name`` (``--name VALUE``, ``--name=VALUE``) at the front or a lone ``-h``; ``--`` ends the
flags; anything else, ``-swarm`` and quotes too, is text.  In a shell, flags may stand anywhere before ``--``, and the
words that are left are joined with blanks.
"""

from __future__ import annotations

import difflib
import keyword
import re
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MagicError
from ipy_memory.jscompat.dates import covered
from ipy_memory.text import bare_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROGRAM = "ipy-memory"

_FLAG = re.compile(r"--(?P<name>[A-Za-z][\w-]*)(?:(?P<equals>=)|(?=\s)|$)")
_END = re.compile(r"--(?=\s|$)")
_QUOTED = re.compile(r"""(?P<mark>["'])(?P<inside>.*?)(?P=mark)(?=\s|$)""", re.DOTALL)


class Group(StrEnum):
    """What a command is for; help lists the commands in this order."""

    LOOK = "look"
    FIND = "find"
    CURATE = "curate"
    MOVE = "move"
    SERVER = "server"
    ADMIN = "admin"


class Arity(Enum):
    """What follows a command and its flags."""

    NOTHING = "nothing"
    WORD = "one word"
    TEXT = "a text"
    OPTIONAL = "a text or nothing"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag.

    Parameters
    ----------
    name
        As it is typed in a magic, without the dashes; handlers know the flag by this name.
    help
        What it does.
    value
        Placeholder of its value in help; ``None`` for a switch.
    convert
        Reads the value.
    in_shell
        Its name in a shell where that is another one; empty: it has no meaning there.
    many
        Whether it can be given several times; its values are then one tuple.
    """

    name: str
    help: str
    value: str | None = None
    convert: Callable[[str], Any] = str
    in_shell: str | None = None
    many: bool = False

    @property
    def shell_name(self) -> str:
        """The name in a shell; empty where there is none."""
        return self.name if self.in_shell is None else self.in_shell

    def typed(self, name: str | None = None) -> str:
        """Return the flag as help shows it."""
        return f"--{name or self.name}{f' {self.value}' if self.value else ''}"


@dataclass(frozen=True, slots=True)
class Command:
    """One command: everything that help, completion and both parsers need to know.

    Parameters
    ----------
    name
        The word that calls it.
    takes
        What follows the flags, for help.
    summary
        What it does, in one line.
    group
        What it is for.
    arity
        What must follow.
    flags
        What may stand in front of the text.
    one
        What the word is called, where the arity is one word.
    choices
        The words that can follow.
    instead
        Flags that say what the text would say, so that none may follow.
    in_shell
        Whether it can be called from a shell.
    in_magic
        Whether it can be called in IPython.
    stdin
        Whether a shell may send the text to stdin.
    alone
        Whether it is a magic of its own rather than a command of ``%memory``.
    forms
        How it is typed in IPython, where that is more than one form.
    """

    name: str
    takes: str
    summary: str
    group: Group
    arity: Arity = Arity.NOTHING
    flags: tuple[Flag, ...] = ()
    one: str = "word"
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    instead: tuple[str, ...] = ()
    in_shell: bool = False
    in_magic: bool = True
    stdin: bool = False
    alone: bool = False
    forms: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """The words that the argument can be; none where it is free."""
        return self.choices() if callable(self.choices) else self.choices

    @property
    def magic(self) -> str:
        """How it is called in IPython."""
        return f"%{self.name}" if self.alone else f"%memory {self.name}"

    @property
    def magic_forms(self) -> tuple[str, ...]:
        """How it is typed in IPython."""
        return self.forms or (_form(self.magic, self.flags, self.takes),)

    @property
    def flag_names(self) -> list[str]:
        """Every flag as it is typed in a magic."""
        return [f"--{flag.name}" for flag in self.flags]

    @property
    def shell_flags(self) -> tuple[Flag, ...]:
        """The flags that have a meaning in a shell."""
        return tuple(flag for flag in self.flags if flag.shell_name)

    @property
    def shell_form(self) -> str:
        """How it is typed in a shell."""
        return _form(f"{PROGRAM} {self.name}", self.shell_flags, self.takes)

    def usage(self) -> str:
        """Return the help page of the magic."""
        shown = [(flag.typed(), flag.help) for flag in self.flags]
        return _page(self.summary, self.magic_forms, "Flags, in front of the text:", shown)

    def shell_usage(self, options: Sequence[Flag]) -> str:
        """Return the help page of the shell form; ``options`` are those of every command."""
        shown = [(flag.typed(flag.shell_name), flag.help) for flag in (*self.shell_flags, *options)]
        return _page(self.summary, (self.shell_form,), "Flags:", shown)


def _form(called: str, flags: Sequence[Flag], takes: str) -> str:
    return " ".join(filter(None, (called, "[flags]" if flags else "", takes)))


def _page(summary: str, forms: Sequence[str], title: str, flags: Sequence[tuple[str, str]]) -> str:
    lines = [summary, "", *(f"    {form}" for form in forms)]
    if flags:
        shown = [*flags, ("--", "ends the flags: all that follows is text")]
        width = max(len(left) for left, _ in shown)
        lines += ["", title, *(f"    {left:<{width}}  {right}" for left, right in shown)]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was typed, taken apart; ``flags`` are by the names of the table."""

    text: str
    flags: Mapping[str, Any]
    quiet: bool = False
    help: bool = False
    ended: bool = False
    """Whether a text was given explicitly, even an empty one: ``--`` ended the flags, or a shell passed a word."""

    @property
    def word(self) -> str:
        """The one word that a command takes."""
        return self.text.strip()

    @property
    def given(self) -> bool:
        """Whether there is a text."""
        return bool(self.text) or self.ended


def parse(command: Command, line: str, cell: str | None = None) -> Parsed:
    """Take a magic's text apart.

    Parameters
    ----------
    command
        Says which flags are allowed.
    line
        The text after the magic's name and one space. In the line form a trailing ``;`` is taken off and
        marks the call quiet; one blank after the last flag separates it from the text.
    cell
        The cell below the line, for the cell form: the text, less the newline that ends the cell.

    Raises
    ------
    MagicError
        An unknown flag, a flag without its value, an invalid value, or text on the line of a cell magic.
    """
    quiet = False
    if cell is None and line.rstrip().endswith(";"):
        line, quiet = line.rstrip()[:-1], True
    if line.strip() in {"-h", "--help"}:
        return Parsed("", {}, quiet=quiet, help=True)
    known = {flag.name: flag for flag in command.flags}
    flags: dict[str, Any] = {}
    ended = False
    at = 0
    while not ended:
        start = at + len(line[at:]) - len(line[at:].lstrip())
        if _END.match(line, start):
            at, ended = start + 2, True
        elif found := _FLAG.match(line, start):
            flag = _known(command.magic, known, found["name"])
            at = found.end()
            if flag.value is not None:
                value, at = _value(command.magic, flag, line, at, attached=bool(found["equals"]))
                _add(flags, flag, value)
            elif found["equals"]:
                raise _takes_no_value(command.magic, flag.name)
            else:
                flags[flag.name] = True
        else:
            break
    text = line[at + 1 :] if at else line
    if cell is None:
        return Parsed(text, flags, quiet=quiet, ended=ended)
    if text.strip():
        raise MagicError(
            f"%{command.magic} takes its text from the lines below, but the first line has text too",
            hint=f"put it below, or use {command.magic}",
        )
    return Parsed(cell.removesuffix("\n"), flags, quiet=quiet, ended=ended)


def front_options(words: Sequence[str], flags: Sequence[Flag]) -> tuple[dict[str, Any], list[str]]:
    """Return the options in front of a command's name, and the words from there on."""
    known = {flag.shell_name: flag for flag in flags}
    values: dict[str, Any] = {}
    rest = list(words)
    while rest and _is_flag(rest[0]) and rest[0] not in {"--help", "--version"}:
        _take(PROGRAM, known, rest, values)
    return values, rest


def parse_words(called: str, flags: Sequence[Flag], words: Sequence[str]) -> Parsed:
    """Take the words apart that a shell passes to a command.

    Parameters
    ----------
    called
        The command, for messages.
    flags
        Those that are allowed, anywhere in front of ``--``.
    words
        As passed.

    Raises
    ------
    MagicError
        An unknown flag, a flag without its value, or an invalid value.
    """
    known = {flag.shell_name: flag for flag in flags}
    values: dict[str, Any] = {}
    texts: list[str] = []
    rest = list(words)
    ended = False
    while rest and not ended:
        if rest[0] == "--help" or (rest[0] == "-h" and not texts):
            return Parsed("", values, help=True)
        if rest[0] == "--":
            texts += rest[1:]
            ended = True
        elif _is_flag(rest[0]):
            _take(called, known, rest, values)
        else:
            texts.append(rest.pop(0))
    return Parsed(" ".join(texts), values, ended=ended or bool(texts))


def _is_flag(word: str) -> bool:
    found = _FLAG.match(word)
    return found is not None and (bool(found["equals"]) or found.end() == len(word))


def _take(called: str, known: Mapping[str, Flag], rest: list[str], values: dict[str, Any]) -> None:
    """Move a flag and its value from the front of the words to the values."""
    name, equals, attached = rest.pop(0)[2:].partition("=")
    flag = _known(called, known, name)
    if flag.value is None:
        if equals:
            raise _takes_no_value(called, name)
        values[flag.name] = True
        return
    if not equals and not rest:
        raise _needs_value(called, flag, name)
    _add(values, flag, _converted(called, flag, name, attached if equals else rest.pop(0)))


def _add(values: dict[str, Any], flag: Flag, value: Any) -> None:
    """Keep the value of a flag: the last one, or each."""
    values[flag.name] = (*values.get(flag.name, ()), *value) if flag.many else value


def _known(called: str, known: Mapping[str, Flag], name: str) -> Flag:
    if name in known:
        return known[name]
    names = [f"--{one}" for one in known]
    near = difflib.get_close_matches(f"--{name.lower()}", names, n=1)
    nearest = f"did you mean {near[0]}? " if near else ""
    valid = f"valid here: {', '.join(names)}" if names else "none are valid here"
    raise MagicError(
        f"{called} has no flag --{name}", hint=f"{nearest}{valid}; put -- in front of a text that begins so"
    )


def _takes_no_value(called: str, name: str) -> MagicError:
    return MagicError(f"--{name} takes no value", hint=f"see {called} -h")


def _needs_value(called: str, flag: Flag, name: str) -> MagicError:
    return MagicError(f"--{name} needs a value: {flag.typed(name)}", hint=f"see {called} -h")


def _value(called: str, flag: Flag, line: str, at: int, *, attached: bool) -> tuple[Any, int]:
    if not attached:
        at += len(line[at:]) - len(line[at:].lstrip())
    if quoted := _QUOTED.match(line, at):
        raw, at = quoted["inside"], quoted.end()
    else:
        end = next((i for i in range(at, len(line)) if line[i].isspace()), len(line))
        raw, at = line[at:end], end
        if not raw and not attached:
            raise _needs_value(called, flag, flag.name)
    return _converted(called, flag, flag.name, raw), at


def _converted(called: str, flag: Flag, name: str, raw: str) -> Any:
    try:
        return flag.convert(raw)
    except ValueError as error:
        raise MagicError(f"--{name} needs {error}, not {raw!r}", hint=f"see {called} -h") from None


def check(command: Command, parsed: Parsed) -> None:
    """Raise :class:`MagicError` where what follows a command is not what it takes."""
    called = command.magic
    hint = f"see {called} -h"
    for name in command.instead:
        if name in parsed.flags and parsed.text.strip():
            what = command.one if command.arity is Arity.WORD else "text"
            raise MagicError(f"--{name} already says what {called} works on", hint=f"leave the {what} out")
        if name in parsed.flags:
            return
    if command.arity is Arity.NOTHING and parsed.text.strip():
        raise MagicError(f"{called} takes nothing more", hint=hint)
    if command.arity is Arity.WORD:
        words = parsed.text.split()
        if len(words) != 1:
            raise MagicError(f"{called} takes one {command.one}", hint=hint)
        if options := command.options:
            one_of(f"the {command.one}", words[0], options, f"; {hint}")
    if command.arity is Arity.TEXT and not parsed.given:
        raise MagicError(f"{called} needs a text", hint=f"type it after {called}, or see {called} -h")


def one_of(name: str, given: str, choices: Sequence[str], more: str = "") -> str:
    """Return a choice as given, or raise an error that names the valid ones."""
    if given in choices:
        return given
    near = difflib.get_close_matches(given.lower(), choices, n=1)
    nearest = f"did you mean {near[0]}? " if near else ""
    raise MagicError(f"{name} cannot be {given!r}", hint=f"{nearest}valid are {', '.join(choices)}{more}")


def id_and_text(command: Command, parsed: Parsed) -> tuple[str, str]:
    """Return the id and the text after it; a flag of the command between them is an error, unless ``--`` was given."""
    memory_id, _, text = parsed.text.lstrip().partition(" ")
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    if not parsed.ended and first.partition("=")[0] in command.flag_names:
        raise MagicError(
            f"{first} comes after the id",
            hint=f"flags go in front: {command.magic} {first} …; for a text that begins so: {command.magic} -- ID TEXT",
        )
    return bare_id(memory_id), text


def whole_number(text: str) -> int:
    """Read a whole number of at least 1."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError("a whole number of at least 1")
    return int(text)


def number_to_one(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return value


def date(text: str) -> str:
    """Read a date, or a date with a time."""
    if covered(text) is None:
        raise ValueError("a date such as 2026-05-31 or a time such as 2026-05-31T14:00+02:00")
    return text


def names(text: str) -> tuple[str, ...]:
    """Read one or more names, separated by commas."""
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise ValueError("a name, or several separated by commas")
    return found


def variable(text: str) -> str:
    """Read the name of a Python variable."""
    if not text.isidentifier() or keyword.iskeyword(text):
        raise ValueError("the name of a variable")
    return text


def value_of(variables: Mapping[str, Any], name: str) -> Any:
    """Return what a variable holds, or raise :class:`MagicError`."""
    if name not in variables:
        raise MagicError(f"there is no variable {name}", hint="run the cell that makes it, or fix the name")
    return variables[name]


def text_of(variables: Mapping[str, Any], name: str) -> str:
    """Return the text that a variable holds, or raise :class:`MagicError`."""
    value = value_of(variables, name)
    if not isinstance(value, str):
        raise MagicError(
            f"variable {name} holds a {type(value).__name__}, not a text", hint="str() of it may be what is meant"
        )
    return value
