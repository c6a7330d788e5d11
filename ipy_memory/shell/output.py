"""What the program writes: the result on stdout, everything else as single lines on stderr."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.commands.grammar import PROGRAM
from ipy_memory.commands.table import SHELL
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.frames.escape import visible
from ipy_memory.frames.tabular import filled, text_table
from ipy_memory.jscompat import dates
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import tzinfo

    from ipy_memory.model import Hit, Memory

DONE, NO, FAILED = 0, 1, 2
"""Exit codes: done (also: nothing found), an answer of no, an error or a refusal."""
INTERRUPTED, PIPE_CLOSED = 130, 141
"""Exit codes as a shell gives them for a process that ended by SIGINT or SIGPIPE."""

_CHOICES = re.compile(r"%memory (?:use (?P<backend>mnemopi|hindsight)|scope (?P<scope>[\w-]+))")
_REBIND = re.compile(r"%memory rebind (?P<folder>.+)\Z")
_PLAIN_WORD = re.compile(r"~?[\w@%+=:,./-]*", re.ASCII)
_MAGIC = re.compile(r"%(?:memory )?(?P<name>[a-z]+)\b")
_STEERING_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class Result:
    """What a command gives.

    Parameters
    ----------
    text
        What a user reads.
    data
        The same as a JSON object.
    notes
        What should be known beside the result.
    code
        The exit code.
    lines
        Objects that are written as JSON one a line in place of ``data``; the notes go to stderr then.
    """

    text: str
    data: Mapping[str, Any]
    notes: Sequence[str] = ()
    code: int = DONE
    lines: Sequence[Mapping[str, Any]] | None = None


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], empty: str) -> str:
    """Return rows as a table of the columns that have a value, or what is said where there are none."""
    headers, cells = filled(columns, rows)
    return text_table(cells, headers) if headers else empty


def json_text(data: Mapping[str, Any]) -> str:
    """Return data as JSON on one line; characters that steer a terminal or hide are written by their number."""
    text = js.well_formed(json.dumps(data, ensure_ascii=False))
    return _STEERING_IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def in_shell_words(text: str) -> str:
    """Return a sentence that names magics with the commands and options of the program in their place."""
    text = _REBIND.sub(lambda found: f"--cwd {_word(found['folder'])}", text)
    text = _CHOICES.sub(lambda found: f"--{found.lastgroup} {found[found.lastgroup or 0]}", text)
    return _MAGIC.sub(lambda found: f"{PROGRAM} {found['name']}" if found["name"] in SHELL else found[0], text)


def _word(text: str) -> str:
    """Return a text as a shell takes it for one word; the program itself expands a ``~`` within quotes."""
    return text if _PLAIN_WORD.fullmatch(text) else shlex.quote(text)


class PipeClosedError(Exception):
    """Nobody reads the result any more."""


def write_result(text: str) -> None:
    """Write the result to stdout: as it is, or in a terminal with what would steer it shown by number.

    Raises
    ------
    PipeClosedError
        Nobody reads any more.
    MemoryToolkitError
        It cannot be written.
    """
    try:
        _write(text)
    except BrokenPipeError:
        _discard_stdout()
        raise PipeClosedError from None
    except (OSError, ValueError) as error:
        _discard_stdout()
        reason = getattr(error, "strerror", None) or "stdout is closed"
        raise MemoryToolkitError(f"the result cannot be written: {reason}", hint="the command itself is done") from None


def _write(text: str) -> None:
    out = sys.stdout
    if out is None:
        raise ValueError("stdout is closed")
    if out.isatty():
        shown, encoding = visible(text), out.encoding or "utf-8"
    else:
        shown, encoding = js.well_formed(text), "utf-8"
    out.flush()
    out.buffer.write((shown + "\n").encode(encoding, "backslashreplace"))
    out.buffer.flush()


def _discard_stdout() -> None:
    """Let the interpreter's end write what is left to nowhere."""
    if sys.stdout is not None:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def write_notes(notes: Iterable[str]) -> None:
    """Write notes to stderr, one line each."""
    for note in dict.fromkeys(notes):
        write_line(f"Note: {in_shell_words(note)}")


def write_error(error: MemoryToolkitError) -> None:
    """Write to stderr in one line what happened, to what, and what to do."""
    write_line(f"{PROGRAM}: {in_shell_words(error.one_line().removeprefix(f'{type(error).__name__}: '))}")


def write_line(text: str) -> None:
    """Write one line to stderr that steers nothing; where that is closed nobody wants to know."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            encoding = sys.stderr.encoding or "utf-8"
            line = visible(" ".join(text.split())).encode(encoding, "backslashreplace").decode(encoding)
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


_FIRST = ("id", "bank", "score", "date", "content")


def record(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses as objects, without the fields that are not shown."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: record(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): record(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [record(item) for item in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value) if isinstance(value, Path) else js.well_formed(str(value))


def moment(stamp: str | None, tz: tzinfo | None) -> str | None:
    """Return a stored time in UTC, ``None`` where it is no time."""
    ms = dates.parse_ms(stamp, tz) if stamp else None
    return None if ms is None else dates.iso(ms)


def hit_record(hit: Hit, tz: tzinfo | None, **more: Any) -> dict[str, Any]:
    """Return a hit, the most important fields first; ``more`` is added."""
    whole: dict[str, Any] = record(hit) | {"date": moment(hit.timestamp, tz)}
    subject, predicate = whole.pop("fact") or (None, None)
    return {name: whole[name] for name in _FIRST} | whole | {"subject": subject, "predicate": predicate} | more


def memory_record(memory: Memory, tz: tzinfo | None) -> dict[str, Any]:
    """Return a stored memory, the most important fields first."""
    whole: dict[str, Any] = record(memory) | {"date": moment(memory.timestamp, tz)}
    return {name: whole[name] for name in _FIRST if name in whole} | whole
