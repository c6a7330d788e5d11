"""One configuration file as settings, each with its line. YAML as of version 1.2, and nothing in it is constructed.

A file that cannot be used, and a value that a setting cannot have, is one warning with its line; a warning never
repeats what the file says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import Any

from ipy_memory.js import lower
from ipy_memory.settings_table import SETTINGS, Layer, Setting, Sourced, number

_SECTIONS = {name.split(".")[0] for name in SETTINGS}
_FILE_LIMIT = 1 << 20
_SHOWABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_TAG = "tag:yaml.org,2002:"
_CORE_SCHEMA = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", rf"[-+]?[0-9]+|{_OTHER_BASE.pattern}", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)


def read_file(path: Path, warnings: list[str]) -> Layer | None:
    """Return the settings a file gives, nested or flat, or ``None`` where there is no file.

    Each thing that is passed over adds a warning.
    """
    try:
        root = _compose(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _UnusableError as error:
        warnings.append(f"{path}{error}; its settings are not used")
        return {}
    found: dict[str, Sourced] = {}
    for name, node in _entries(root, ""):
        line = node.start_mark.line + 1
        setting = SETTINGS.get(name)
        if node.tag == f"{_TAG}null":
            found.pop(name, None)
        elif setting is None:
            shown = name if _SHOWABLE_NAME.fullmatch(name) else "a name"
            warnings.append(f"{path}, line {line}: {shown} is no known setting")
        elif (value := setting.typed(_plain(setting, node))) is None:
            warnings.append(f"{path}, line {line}: {name} must be {setting.expected}; its default is used")
            found[name] = Sourced(setting.default, "default")
        else:
            found[name] = Sourced(value, f"{path}:{line}")
    return found


class _UnusableError(Exception):
    """A configuration file that is not read, as the tail of a warning."""


def _compose(path: Path) -> Any:
    """Return the root node of a file; nothing in it is ever constructed."""
    try:
        regular = S_ISREG(path.stat().st_mode)
        with path.open("rb") if regular else BytesIO() as file:
            data = file.read(_FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise _UnusableError(f" cannot be read ({error.strerror})") from error
    if not regular or len(data) > _FILE_LIMIT:
        raise _UnusableError(" is no file of at most 1 MiB")
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML 1.2's core schema: only true and false are booleans; off, on, yes and no are texts."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  the base class keeps its table this way

    for tag, pattern, first in _CORE_SCHEMA:
        Loader.add_implicit_resolver(f"{_TAG}{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))
    try:
        root: Any = yaml.compose(data, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _UnusableError(f", line {mark.line + 1}: not valid YAML" if mark else " is not valid YAML") from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise _UnusableError(" is not valid YAML") from error
    if root is not None and root.id != "mapping" and root.tag != f"{_TAG}null":
        raise _UnusableError(", line 1: no mapping of settings")
    return root


def _entries(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of our sections by their dotted names, nested or written flat."""
    for key, value in node.value if node is not None and node.id == "mapping" else ():
        name = prefix + key.value if key.id == "scalar" else ""
        if value.id == "mapping" and any(known.startswith(f"{name}.") for known in SETTINGS):
            yield from _entries(value, f"{name}.")
        elif name.split(".")[0] in _SECTIONS:
            yield name, value


def _plain(setting: Setting, node: Any) -> object:
    """Return a node's value as Python has it; a text setting takes numbers and booleans as they are written."""
    if node.id == "sequence":
        return [_scalar(item) for item in node.value]
    return node.value if node.id == "scalar" and setting.type == "string" else _scalar(node)


def _scalar(node: Any) -> object:
    if node.id != "scalar":
        return None
    match node.tag.removeprefix(_TAG):
        case "bool":
            return lower(node.value) == "true"
        case "int" if _OTHER_BASE.fullmatch(node.value):
            return int(node.value, 0)
        case "int" | "float":
            return number(node.value)
        case "str":
            return node.value
    return None
