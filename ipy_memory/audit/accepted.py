"""Findings that a user has seen and wants to keep: remembered by name, and those of a file of an earlier audit.

The file holds names and times only: a name has a hash of the texts in it, no text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.own_files import locked, make_folder, replace, state_path

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "audit-accepted.json"
"""The kind of file, in the table of :mod:`ipy_memory.own_files`."""


def accepted(agent_dir: str | Path) -> frozenset[str]:
    """Return the names of the findings that were accepted on this machine.

    Raises
    ------
    MemoryToolkitError
        The file cannot be read.
    """
    return frozenset(_read(state_path(agent_dir, NAME)))


def accept(agent_dir: str | Path, names: Iterable[str], now: str) -> int:
    """Remember findings as accepted; return how many of them were not yet.

    Raises
    ------
    MemoryToolkitError
        The file cannot be read or written.
    """
    path = state_path(agent_dir, NAME)
    folder = make_folder(path.parent)
    with locked(folder):
        known = _read(path)
        new = [name for name in dict.fromkeys(names) if name not in known]
        if new:
            whole = known | dict.fromkeys(new, now)
            replace(path, json.dumps(whole, indent=1, sort_keys=True).encode())
    return len(new)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(path, "the accepted findings cannot be read") from error
    if not isinstance(found, dict):
        raise _unreadable(path, "the accepted findings are not a JSON object")
    return found


def baseline(path: str | Path) -> frozenset[str]:
    """Return the names of the findings in a file of an earlier audit: a JSON object on each line.

    Raises
    ------
    MemoryToolkitError
        It cannot be read, or is something else.
    """
    file = Path(path).expanduser()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.strip()]
        return frozenset(one["finding"] for one in found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(file, "the baseline cannot be read as findings") from error


def _unreadable(path: Path, what: str) -> MemoryToolkitError:
    return MemoryToolkitError(
        f"{what[0].upper()}{what[1:]}.",
        where=str(path),
        hint="a baseline is the output of `ipy-memory audit --json`, one object a line"
        if "baseline" in what
        else "move the file away to begin again",
    )
