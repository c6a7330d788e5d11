"""Paths as people, settings and strangers give them: whether one can be a path, and whether something is there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ipy_memory.errors import SettingsError

_NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP)
_SHOWN = 80


def check_path(path: str, what: str) -> str:
    """Return a path that a file or folder can have; nothing needs to be there.

    Parameters
    ----------
    path
        As given.
    what
        What it is the path of, for the message: ``"the project folder"``.

    Raises
    ------
    SettingsError
        It holds a character that no path can have, or is too long, or goes round in links.
    """
    reason = None
    try:
        os.stat(path)  # noqa: PTH116  a Path would hide what is wrong
    except ValueError:
        reason = "it holds a character that no path can have"
    except OSError as error:
        if error.errno in _NO_PATH:
            reason = os.strerror(error.errno).lower()
    if reason:
        raise SettingsError(f"{what} is no path: {reason}", where=path[:_SHOWN], hint="name another one")
    return path


def exists(path: Path) -> bool:
    """Return whether something is there; what cannot be looked at counts as there, so that opening it says why."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return error.errno not in _NO_PATH
    return True
