"""One settings file as settings, each with its line: YAML, JSON, or JSON with comments, as the agent reads them.

A file that cannot be used, and a value that a setting cannot have, is one warning with its line; a warning never
repeats what the file says.
"""

from __future__ import annotations

import bisect
import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ipy_memory.jscompat.strings import lower
from ipy_memory.settings.table import SETTINGS, Layer, Sourced, number

if TYPE_CHECKING:
    from pathlib import Path

Form = Literal["yaml", "json", "jsonc"]

_SECTIONS = {name.split(".")[0] for name in SETTINGS}
_FORMER_SECTION = "mnemosyne"
_RENAMED = ("memory", "hindsight")
_NO_AGENT_NAMES = (None, "", "omp")
_FILE_LIMIT = 1 << 20
_MOST_VALUES = 20_000
_SHOWABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FATAL = " (the agent does not start with it)"
_TAG = "tag:yaml.org,2002:"
_CORE_SCHEMA = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", rf"[-+]?[0-9]+|{_OTHER_BASE.pattern}", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)
_JSON_SPACE = re.compile(r"[ \t\r\n]*")
_JSONC_PART = re.compile(r'["/,}\]]|[^\s"/,}\]]+')
_NO_BREAK = re.compile(r"[^\r\n]")
_INSIDE_STRING = re.compile(r'(?:[^"\\]|\\.)*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class File:
    """A settings file to read.

    ``project`` marks one whose content is the project's and not the user's, ``shared`` one that belongs to other tools
    first: what it says of names that we do not know is not our business.
    """

    path: Path
    form: Form = "yaml"
    project: bool = False
    shared: bool = False


class _Item(NamedTuple):
    """A value of a file: its line, what it is, and how a single one is written."""

    line: int
    value: Any
    written: str | None = None


_Items = dict[str, _Item]


def read_file(file: File, warnings: list[str]) -> Layer | None:
    """Return the settings that a file gives, or ``None`` where there is no file.

    Each thing that is passed over, or read in another way than it is meant, adds a warning.
    """
    try:
        data = _content(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _UnusableError as error:
        warnings.append(f"{file.path}{error}; its settings are not used")
        return {}
    if file.shared and not any(f'"{section}"'.encode() in data for section in (*_SECTIONS, _FORMER_SECTION)):
        return {}
    try:
        root = _with_today_s_names(_parsed(data, file.form))
    except _UnusableError as error:
        warnings.append(f"{file.path}{error}; its settings are not used")
        return {}
    found: dict[str, Sourced] = {}
    for name, item in _entries(file, root, warnings):
        reading = SETTINGS[name].read(item.value, item.written)
        if reading.problem:
            warnings.append(f"{file.path}, line {item.line}: {name} {reading.problem}")
        origin = f"{file.path}:{item.line}" if reading.usable else "default"
        found[name] = Sourced(reading.value, origin, file.project)
    return found


def _with_today_s_names(root: _Items) -> _Items:
    """Return a file's items with the settings of former releases under the names that the agent gives them now."""
    if _FORMER_SECTION in root and "mnemopi" not in root:
        root = {**root, "mnemopi": root[_FORMER_SECTION]}
    memory, hindsight = (dict(found) if isinstance(found := _value(root, name), dict) else {} for name in _RENAMED)
    if _value(memory, "backend") == _FORMER_SECTION:
        memory["backend"] = memory["backend"]._replace(value="mnemopi")
    if "agentName" in hindsight and (named := hindsight.pop("agentName")).value not in _NO_AGENT_NAMES:
        hindsight.setdefault("bankId", named)
    if "dynamicBankId" in hindsight and (chosen := hindsight.pop("dynamicBankId")).value is True:
        hindsight.setdefault("scoping", chosen._replace(value="per-project"))
    renamed = zip(_RENAMED, (memory, hindsight), strict=True)
    return root | {
        name: root[name]._replace(value=items) for name, items in renamed if isinstance(_value(root, name), dict)
    }


def _value(items: _Items, name: str) -> Any:
    return items[name].value if name in items else None


def _entries(file: File, root: _Items, warnings: list[str]) -> Iterator[tuple[str, _Item]]:
    """Yield the settings by their dotted names: what stands below its section, which is all that the agent reads."""
    for key, item in root.items():
        section, _, rest = key.partition(".")
        if section not in _SECTIONS:
            continue
        where = f"{file.path}, line {item.line}:"
        if rest:
            if key in SETTINGS or not file.shared:
                warnings.append(
                    f"{where} {_shown(key)} is ignored, by the agent too; nest it: {section}: and the rest below it"
                )
        elif isinstance(item.value, dict):
            for name, inner in item.value.items():
                full = f"{section}.{name}"
                if full in SETTINGS:
                    yield full, inner
                elif not file.shared:
                    warnings.append(f"{file.path}, line {inner.line}: {_unknown(full)}")
        elif item.value is not None and not file.shared:
            warnings.append(f"{where} {section} must be a mapping of settings; it is not used")


def _shown(name: str) -> str:
    return name if _SHOWABLE_NAME.fullmatch(name) else "a name"


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.8)
    return f"{_shown(name)} is not a known setting{f' (did you mean {near[0]}?)' if near else ''}"


class _UnusableError(Exception):
    """A settings file that is not read, as the tail of a warning."""


def _content(path: Path) -> bytes:
    """Return the bytes of a regular file; anything else is not opened, and one that is put there never waited for."""
    try:
        if not S_ISREG(path.stat().st_mode):
            raise _UnusableError(" is not a regular file")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                raise _UnusableError(" is not a regular file")
            data = file.read(_FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise _UnusableError(f" cannot be read ({error.strerror})") from error
    if len(data) > _FILE_LIMIT:
        raise _UnusableError(" is larger than 1 MiB")
    return data


def _parsed(data: bytes, form: Form) -> _Items:
    text = data.decode("utf-8-sig", "replace")
    try:
        return _yaml(text) if form == "yaml" else _json(text, comments=form == "jsonc")
    except RecursionError as error:
        raise _UnusableError(" is nested too deeply") from error


# YAML ---------------------------------------------------------------------------------------------------------------


def _yaml(text: str) -> _Items:
    """Return a document as YAML 1.2 has it; nothing in it is ever constructed."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML 1.2's core schema: only true and false are booleans; off, on, yes and no are texts."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  the base class keeps its table this way
        values = 0

        def compose_node(self, *where: Any) -> Any:
            """Give up a file whose size is only there to keep its reader busy."""
            self.values += 1
            if self.values > _MOST_VALUES:
                raise _UnusableError(f" holds more than {_MOST_VALUES} values")
            return super().compose_node(*where)

    for tag, pattern, first in _CORE_SCHEMA:
        Loader.add_implicit_resolver(f"{_TAG}{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))
    try:
        root: Any = yaml.compose(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}: invalid YAML" if mark else " is not valid YAML"
        raise _UnusableError(where + _FATAL) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _UnusableError(" is not valid YAML" + _FATAL) from error
    if root is None or root.tag == f"{_TAG}null":
        return {}
    if root.id != "mapping":
        raise _UnusableError(", line 1: expected a mapping of settings" + _FATAL)
    return _Nodes().mapping(root, depth=1)


class _Nodes:
    """Reads composed nodes; each mapping once, however often it is referred to."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int], _Items] = {}

    def mapping(self, node: Any, depth: int) -> _Items:
        """Return a mapping's items, the last of each name, over those of the mappings that it merges in."""
        key = (id(node), depth)
        if key in self._read:
            return self._read[key]
        self._read[key] = {}  # one that holds itself
        found: _Items = {}
        merged: _Items = {}
        for name, value in node.value:
            if name.id != "scalar":
                continue
            if name.value == "<<" and name.style is None:
                for source in value.value if value.id == "sequence" else [value]:
                    if source.id == "mapping":
                        merged = {**self.mapping(source, depth), **merged}
            else:
                found.pop(name.value, None)
                found[name.value] = self._item(value, name.start_mark.line + 1, depth)
        self._read[key] = {**merged, **found}
        return self._read[key]

    def _item(self, node: Any, line: int, depth: int) -> _Item:
        if node.id == "mapping":
            return _Item(line, self.mapping(node, depth - 1) if depth else {})
        if node.id == "sequence":
            return _Item(line, [_plain(item) if item.id == "scalar" else {} for item in node.value])
        return _Item(line, _plain(node), node.value)


def _plain(node: Any) -> object:
    """Return a single value; one in quotes is a text, whatever its tag says."""
    tag = node.tag.removeprefix(_TAG) if node.style is None else "str"
    match tag:
        case "null":
            return None
        case "bool":
            return lower(node.value) == "true"
        case "int" if _OTHER_BASE.fullmatch(node.value):
            return int(node.value, 0)
        case "int" | "float" if (value := number(node.value)) is not None:
            return value
    return node.value


# JSON ---------------------------------------------------------------------------------------------------------------


def _json(text: str, *, comments: bool) -> _Items:
    if comments:
        text = _without_comments(text)
    try:
        root = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise _UnusableError(f", line {error.lineno}: invalid JSON") from error
    except ValueError as error:
        raise _UnusableError(" is not valid JSON") from error
    if not isinstance(root, dict):
        raise _UnusableError(", line 1: expected a mapping of settings")
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    return _object(text, _after_space(text, 0), lines, depth=1)[0]


def _without_comments(text: str) -> str:
    """Return JSON in which comments and commas before a closing bracket are blanks, in one pass over the text."""
    blank: list[tuple[int, int]] = []
    at = 0
    comma: int | None = None
    while found := _JSONC_PART.search(text, at):
        start, at = found.span()
        if text.startswith("//", start):
            at = text.find("\n", start) + 1 or len(text)
            blank.append((start, at))
            continue
        if text.startswith("/*", start):
            at = text.find("*/", start + 2) + 2
            if at == 1:
                raise _UnusableError(" is not valid JSON")
            blank.append((start, at))
            continue
        if text[start] == '"' and (inside := _INSIDE_STRING.match(text, at)):
            at = inside.end() + 1
        elif text[start] in "}]" and comma is not None:
            blank.append((comma, comma + 1))
        comma = start if text[start] == "," else None
    kept: list[str] = []
    at = 0
    for start, end in sorted(blank):
        kept += [text[at:start], _NO_BREAK.sub(" ", text[start:end])]
        at = end
    return "".join([*kept, text[at:]])


def _refuse(name: str) -> None:
    raise ValueError(name)


def _object(text: str, at: int, lines: list[int], depth: int) -> tuple[_Items, int]:
    """Return an object's items, the last of each name, and where it ends; the text is known to be valid."""
    found: _Items = {}
    at = _after_space(text, at + 1)
    while text[at] != "}":
        if text[at] == ",":
            at = _after_space(text, at + 1)
        line = bisect.bisect_right(lines, at)
        name, at = _DECODER.raw_decode(text, at)
        at = _after_space(text, _after_space(text, at) + 1)
        start = at
        value: Any
        if text[at] == "{" and depth:
            value, at = _object(text, at, lines, depth - 1)
        else:
            value, at = _DECODER.raw_decode(text, at)
        found.pop(name, None)
        found[name] = _Item(line, {} if isinstance(value, Mapping) and not depth else value, text[start:at])
        at = _after_space(text, at)
    return found, at + 1


_DECODER = json.JSONDecoder()


def _after_space(text: str, at: int) -> int:
    found = _JSON_SPACE.match(text, at)
    return found.end() if found else at
