"""The files that SQLite keeps beside a database, looked at before it does.

SQLite opens, writes and deletes ``-journal``, ``-wal`` and ``-shm`` beside a database without asking what they are. A
link in their place leads a write elsewhere, and a journal can name a further file that SQLite deletes when it has
rolled the journal back.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

JOURNAL, LOG, INDEX = "-journal", "-wal", "-shm"
"""How the names of those files end."""

_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""How a journal's header begins, and how a journal that names a further file ends."""

_TRAILER = 16
"""Length of a name, its checksum and the magic, at the very end of a journal."""

_LONGEST = 4096
_KIND = re.compile(r"-mj[0-9A-F]{6}9[0-9A-F]{2}\Z")
"""How SQLite names the journal of a transaction over several files, behind the name of the first of them."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A file beside a database that SQLite must not meet."""

    path: Path
    problem: str
    """What it is, to follow its name: ``is a symbolic link``."""


def unsafe_neighbour(database: Path) -> Neighbour | None:
    """Return the first file beside a database that is not safe to open with it; ``None`` if all are.

    Only names and the end of a journal are looked at; nothing is opened for writing.
    """
    real = os.path.realpath(database)  # a database that is a link has its files beside the target
    for ending in (JOURNAL, LOG, INDEX):
        path = Path(real + ending)
        if problem := _problem(path, ending, real):
            return Neighbour(path, problem)
    return None


def named_by(journal: Path) -> str | None:
    """Return the further file that a journal names, or ``None`` if it names none or is not there."""
    try:
        descriptor = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        trailer = os.pread(descriptor, _TRAILER, max(0, size - _TRAILER))
        if len(trailer) < _TRAILER or not trailer.endswith(_MAGIC):
            return None
        length = min(int.from_bytes(trailer[:4], "big"), size - _TRAILER, _LONGEST)
        name = os.pread(file.fileno(), length, size - _TRAILER - length)
    # An empty name is none to SQLite; one that ends in the middle is read as SQLite reads it.
    return os.fsdecode(name.split(b"\0", 1)[0]) or None


def _problem(path: Path, ending: str, database: str) -> str | None:
    try:
        found = path.lstat()
    except OSError:  # not there, or nothing that SQLite could open either
        return None
    if stat.S_ISLNK(found.st_mode):
        return "is a symbolic link"
    if not stat.S_ISREG(found.st_mode):
        return "is not a file"
    if found.st_nlink > 1:
        return "is a file with another name elsewhere"
    named = named_by(path) if ending == JOURNAL else None
    if named is None or (named.startswith(database) and _KIND.fullmatch(named, len(database))):
        return None
    return f"is a journal that names another file, which SQLite would delete: {named}"
