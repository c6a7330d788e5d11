"""Word of how far a long action is: only after a second, and gone when the result comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds before anything is said."""

BETWEEN = 0.25
"""Seconds between two words."""


class Progress:
    """Says how many of how many are done; the front end shows the latest word only."""

    def __init__(self, what: str, seconds: Callable[[], float] = time.monotonic) -> None:
        self.what = what
        self.said = False
        self._seconds = seconds
        self._next = seconds() + PATIENCE

    def __call__(self, done: int, total: int) -> None:
        """Note that so many are done."""
        if self._seconds() < self._next:
            return
        self._next = self._seconds() + BETWEEN
        self._wipe()
        print(f"{self.what}: {done} of {total}", flush=True)  # noqa: T201  what a person waits for
        self.said = True

    def end(self) -> None:
        """Take back what was said, as soon as something else is shown."""
        if self.said:
            self._wipe()

    def _wipe(self) -> None:
        from IPython.display import clear_output

        clear_output(wait=True)  # type: ignore[no-untyped-call]


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Hold the word of an action that may take long."""
    told = Progress(what)
    try:
        yield told
    finally:
        told.end()
