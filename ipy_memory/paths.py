"""Paths as people, settings and strangers give them: whether one can be a path, and whether something is there."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP)
_SHOWN = 80
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


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
        raise SettingsError(f"{what} is not a path: {reason}", where=path[:_SHOWN], hint="name another one")
    return path


def typed_path(path: str, env: Mapping[str, str] | None = None) -> str:
    """Return a path as a user types it: home folders and variables filled in, and absolute from now on.

    Parameters
    ----------
    path
        As typed; an empty one stays empty.
    env
        Environment variables; the process's own by default. One that is not set stays as it is written.
    """
    env = os.environ if env is None else env
    if path == "~" or path.startswith("~/"):
        path = (env.get("HOME") or str(Path.home())) + path[1:]
    else:
        path = os.path.expanduser(path)  # noqa: PTH111  a Path would refuse an unknown user
    path = _VARIABLE.sub(lambda found: env.get(found[1] or found[2], found[0]), path)
    return path if not path or path.startswith("/") else os.path.join(here(), path)  # noqa: PTH118  ".." stays


def here() -> str:
    """Return the working directory as the shell names it: links are not resolved.

    Raises
    ------
    SettingsError
        It was deleted.
    """
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        raise SettingsError("the working directory is gone", hint="go to another one: %cd FOLDER") from None


def exists(path: Path) -> bool:
    """Return whether something is there; what cannot be looked at counts as there, so that opening it says why."""
    try:
        path.stat()
    except (FileNotFoundError, ValueError):
        return False
    except OSError as error:
        return error.errno not in _NO_PATH
    return True
