"""What is in front of the shell: a page that shows HTML, a terminal, or a program; and notes for those without HTML.

JupyterLab, Notebook 7 and VS Code name the cell in each request (``metadata.cellId``). jupyter console, nbclient (and
with it nbconvert and nbval) do not, and show or store plain text first.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ipy_memory.frames.escape import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from IPython.core.interactiveshell import InteractiveShell

STATIC_VARIABLE = "IPY_MEMORY_STATIC"
"""Environment variable: nothing is shown that lives or moves while it is set."""

_below: WeakKeyDictionary[InteractiveShell, list[str]] = WeakKeyDictionary()
"""Notes that a shell writes below the output of the cell that runs now."""
_latest: WeakKeyDictionary[InteractiveShell, str] = WeakKeyDictionary()
"""The plain text of the result that a shell displayed last."""


def request() -> dict[str, Any] | None:
    """Return what the kernel was asked to do just now; ``None`` in a shell without a kernel."""
    kernel = getattr(_shell(), "kernel", None)
    return None if kernel is None else kernel.get_parent() or {}


def somebody_there() -> bool:
    """Return whether a user can answer: not in a terminal, and not in a notebook that a program runs."""
    if os.environ.get(STATIC_VARIABLE):
        return False
    asked = request()
    # A front end with a user in front of it takes input; nbconvert, nbclient and nbval do not.
    return asked is not None and bool(asked.get("content", {}).get("allow_stdin", True))


def shows_html() -> bool:
    """Return whether the front end is known to show HTML."""
    return "cellId" in (request() or {}).get("metadata", {})


def is_terminal() -> bool:
    """Return whether plain text may go to a terminal, which obeys control characters.

    IPython and jupyter console print it there; what nbclient stores becomes a text file that is printed later.
    """
    return _shell() is not None and not shows_html()


def write_below(notes: Sequence[str]) -> None:
    """Write notes to stderr once the running cell has shown its result, unless the HTML of the result has them."""
    shell = _shell()
    if notes and shell is not None and shell in _below and not shows_html():
        _below[shell] += notes


def displayed(text: str) -> str:
    """Return the plain text of a result that is displayed now; what records the output can tell it by this."""
    if (shell := _shell()) is not None:
        _latest[shell] = text
    return text


def is_displayed(text: str) -> bool:
    """Return whether a text is that of the result displayed last."""
    shell = _shell()
    return shell is not None and _latest.get(shell) == text


def install(shell: InteractiveShell) -> None:
    """Write notes at the end of each cell of a shell."""
    remove(shell)
    _below[shell] = []
    shell.events.register("post_execute", _flush)


def remove(shell: InteractiveShell) -> None:
    """Stop writing notes."""
    if _below.pop(shell, None) is not None:
        shell.events.unregister("post_execute", _flush)


def _flush() -> None:
    shell = _shell()
    pending = [] if shell is None else _below.get(shell, [])
    # Each once, in order: several results of one cell may say the same.
    for note in dict.fromkeys(pending):
        sys.stderr.write(f"Note: {visible(' '.join(note.split()))}\n")
    pending.clear()


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    return get_ipython()
