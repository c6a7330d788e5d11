"""Which folders the user trusts to decide where memories go: a list of the user's own, outside of every project.

A folder is named by its real path and trusted for what its files say of guarded settings, as one hash over them. Other
changes to those files do not matter; a changed guarded setting ends the trust until the user gives it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

from ipy_memory import own_files
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.jscompat.strings import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.settings.table import Value

NAME = "trust.json"
_LIMIT = 1 << 20
_FORM = 1


class Guarded(NamedTuple):
    """A guarded setting as one of a folder's files gives it; the file by its path within the folder."""

    file: str
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Trusted:
    """A folder that the user trusts.

    Attributes
    ----------
    folder
        Its real path.
    digest
        The hash over its guarded settings at that time.
    since
        When it was trusted, as a time stamp.
    settings
        The names of those settings.
    """

    folder: str
    digest: str
    since: str
    settings: tuple[str, ...]


def real_folder(folder: str | os.PathLike[str]) -> str:
    """Return the path by which a folder is trusted: links lead to what they stand for."""
    return os.path.realpath(folder)


def digest(guarded: Sequence[Guarded]) -> str:
    """Return the hash over guarded settings; their order in the files, and what stands around them, does not count."""
    return hashlib.sha256(json_text(sorted(json_text(list(each)) for each in guarded)).encode()).hexdigest()


def trusted_folders(agent_dir: str | os.PathLike[str]) -> dict[str, Trusted]:
    """Return the trusted folders by their real path.

    Raises
    ------
    MemoryToolkitError
        The list cannot be read: then no folder is trusted.
    """
    path = own_files.state_path(os.fspath(agent_dir), NAME)
    try:
        data = _content(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, error.strerror or "unknown reason") from error
    try:
        found = json.loads(data)
        if found["version"] != _FORM:
            raise ValueError(_FORM)
        return {folder: _entry(folder, entry) for folder, entry in found["folders"].items()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise _unreadable(path, "it is not a list of folders that this release knows") from error


def add_trusted(agent_dir: str | os.PathLike[str], trusted: Trusted) -> None:
    """Add a folder to the list, in place of what the list says of it.

    Raises
    ------
    MemoryToolkitError
        The list cannot be read or written; it stays as it was.
    """
    with _changed(agent_dir) as folders:
        folders[trusted.folder] = trusted


def remove_trusted(agent_dir: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Take a folder off the list; return whether it was on it.

    A folder that is gone is still found by the path under which it was listed.

    Raises
    ------
    MemoryToolkitError
        The list cannot be read or written; it stays as it was.
    """
    names = {real_folder(folder), os.fspath(folder)}
    if names.isdisjoint(trusted_folders(agent_dir)):
        return False
    with _changed(agent_dir) as folders:
        removed = [folders.pop(name, None) for name in names]
        return any(removed)


@contextmanager
def _changed(agent_dir: str | os.PathLike[str]) -> Iterator[dict[str, Trusted]]:
    """Let the list be changed and write it, one process at a time."""
    path = own_files.state_path(os.fspath(agent_dir), NAME)
    own_files.make_folder(path.parent)
    with own_files.locked(path.parent):
        folders = trusted_folders(agent_dir)
        yield folders
        entries = {folder: asdict(entry) for folder, entry in sorted(folders.items())}
        for entry in entries.values():
            del entry["folder"]
        own_files.replace(path, json.dumps({"version": _FORM, "folders": entries}, indent=1).encode())


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise OSError(0, "it is larger than 1 MiB")
    return data


def _entry(folder: str, entry: Mapping[str, Any]) -> Trusted:
    texts = [entry["digest"], entry["since"], *entry["settings"]]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(folder)
    return Trusted(folder, texts[0], texts[1], tuple(texts[2:]))


def _unreadable(path: Path, reason: str) -> MemoryToolkitError:
    return MemoryToolkitError(
        f"The list of trusted folders cannot be read: {reason}.",
        where=str(path),
        hint="no folder is trusted until it is repaired or removed",
    )
