"""Where this package keeps files of its own, and how it makes them: the one place that knows.

State that must not be lost lies in ``<agent folder>/ipy_memory/``, caches that can be rebuilt in the user's cache
folder. Nothing lies in the folders of the banks. Folders are 0700 and files 0600; a file is made with ``O_EXCL`` and
no link is followed, so that a name that somebody planted is refused and never written through.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ipy_memory.errors import MemoryToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

try:
    import fcntl
except ImportError:  # no POSIX
    fcntl = None  # type: ignore[assignment]

FOLDER = "ipy_memory"
"""The name of both folders."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file: its name below the folder, what it holds, its limit, and whether purge removes it."""

    name: str
    place: Literal["state", "cache"]
    holds: str
    limit: str
    memory_text: bool
    """Whether memory text may be in it: then purge covers it."""


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("trust.json", "state", "folders whose settings are trusted", "one entry a folder", memory_text=False),
        Kind("outbox.db", "state", "memories that no server has confirmed", "until sent or dropped", memory_text=True),
        Kind("audit-accepted.json", "state", "names of accepted findings", "one entry a finding", memory_text=False),
        Kind("copies", "state", "copies of banks before a change", "10 and one a day for each bank", memory_text=True),
    )
}


def state_path(agent_dir: str | Path, name: str) -> Path:
    """Return the path of a kind of state file; nothing is made."""
    return Path(agent_dir, FOLDER, KINDS[name].name)


def make_folder(path: Path) -> Path:
    """Make a folder of ours (0700) with its parents; an existing one keeps its mode.

    Raises
    ------
    MemoryToolkitError
        A link or a file has its name, or the disk refuses.
    """
    try:
        make_parents(path)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        mode = path.lstat().st_mode
    except OSError as error:
        raise _refused(path, error.strerror or "unknown reason") from error
    if not stat.S_ISDIR(mode):
        raise _refused(path, "a file or a link has this name")
    return path


def make_parents(path: Path) -> None:
    """Make the folders above a path that are missing, each 0700, whatever the umask; raise ``OSError``."""
    for folder in reversed(path.parents):
        if not folder.is_dir():
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)


def create(path: Path) -> int:
    """Create a file (0600) and return its descriptor; refuse any name that exists, a link to nowhere too.

    Raises
    ------
    MemoryToolkitError
        Something has this name, or the disk refuses.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise _refused(path, error.strerror or "unknown reason") from error


def replace(path: Path, content: bytes) -> None:
    """Write a small file whole or not at all: to a new name, synced, then renamed.

    Raises
    ------
    MemoryToolkitError
        The disk refuses; the former content stays.
    """
    make_folder(path.parent)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    descriptor = create(partial)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise _refused(path, error.strerror or "unknown reason") from error
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder of ours while a file in it is read, changed and replaced."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise _refused(folder, error.strerror or "unknown reason") from error
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refused(path: Path, reason: str) -> MemoryToolkitError:
    return MemoryToolkitError(
        f"ipy_memory cannot write its own file: {reason}.",
        where=str(path),
        hint="check what has this name, and the permissions of the folder",
    )
