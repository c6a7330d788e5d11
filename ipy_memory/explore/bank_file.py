"""A session on one bank file, wherever it lies, for reading only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ipy_memory.errors import BankNotFoundError
from ipy_memory.paths import check_path, exists, typed_path
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from ipy_memory.backends.mnemopi.backend import MnemopiBackend


def open_bank_file(path: str | os.PathLike[str], **surroundings: Any) -> MemorySession:
    """Open a session that reads just one bank file and changes no byte of it.

    Parameters
    ----------
    path
        The bank's SQLite file; ``~`` and variables are filled in.
    **surroundings
        As for :func:`open_session`: ``cwd``, ``agent_dir``, ``env``, ``clock``, ``ids``.

    Raises
    ------
    BankNotFoundError
        There is no such file.
    BankError
        The file is no bank, is damaged, or is newer than this release.
    """
    file = Path(check_path(typed_path(os.fspath(path), surroundings.get("env")), "the bank file"))
    if not exists(file):
        raise BankNotFoundError(
            "There is no such bank file.", where=str(path), hint="%memory banks lists those that are known"
        )
    session = open_session("mnemopi", database=file, settings={"mnemopi.scoping": "global"}, **surroundings)
    whole = cast("MnemopiBackend", session.backend)
    session.backend = whole.one_file(file)  # type: ignore[assignment]
    return session
