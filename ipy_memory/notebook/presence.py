"""Whether somebody is in front of the notebook, and what the kernel was asked."""

from __future__ import annotations

import os
from typing import Any

STATIC_VARIABLE = "IPY_MEMORY_STATIC"
"""Environment variable: nothing is shown that lives or moves while it is set."""


def request() -> dict[str, Any] | None:
    """Return what the kernel was asked to do just now; ``None`` in a shell without a kernel."""
    from IPython.core.getipython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return None if kernel is None else kernel.get_parent() or {}


def somebody_there() -> bool:
    """Tell whether a person can answer: not in a terminal, and not in a notebook that is run by a program."""
    if os.environ.get(STATIC_VARIABLE):
        return False
    asked = request()
    # A front end with a person in front of it takes input; nbconvert, nbclient and nbval do not.
    return asked is not None and bool(asked.get("content", {}).get("allow_stdin", True))
