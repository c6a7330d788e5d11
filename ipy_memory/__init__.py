"""Inspect, search and repair an AI agent's long-term memory from IPython, Jupyter and the shell."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from ipy_memory.frames.safe import safe
    from ipy_memory.session import MemorySession, open_session

__all__ = ["MemorySession", "load_ipython_extension", "open_session", "safe", "unload_ipython_extension"]

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name == "safe":
        from ipy_memory.frames.safe import safe

        return safe
    if name not in {"MemorySession", "open_session"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ipy_memory import session

    return getattr(session, name)


def _version() -> str:
    """Return the version of the installed distribution; a mere source tree has none."""
    from importlib import metadata

    try:
        return metadata.version("ipy_memory")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magics to a shell: reads nothing, prints nothing."""
    from ipy_memory.notebook.magics import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove everything that loading added, and close the session."""
    from ipy_memory.notebook.magics import unload

    unload(shell)
