"""What to do when the process ends or forks: one hook of each kind, shared by every session.

A forked child inherits the parent's objects but none of its threads. Whoever holds a connection, a lock, a timer or a
queue registers a method here that gives the child its own; the interpreter itself is asked only once for each hook.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("ipy_memory")


class Hook:
    """Methods to call at one event, held weakly and called in reverse order of registration.

    A method that fails is logged and does not keep the others from running.
    """

    def __init__(self) -> None:
        self._methods: dict[int, weakref.WeakMethod[Callable[[], object]]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return sum(method() is not None for method in self._methods.values())

    def add(self, method: Callable[[], object]) -> Callable[[], None]:
        """Register a bound method; the returned function removes it again (harmless when repeated)."""
        number = next(self._numbers)
        self._methods[number] = weakref.WeakMethod(method, lambda _: self._methods.pop(number, None))

        def remove() -> None:
            self._methods.pop(number, None)

        return remove

    def run(self) -> None:
        """Call every method that is still alive."""
        for number in sorted(self._methods, reverse=True):
            method = self._methods[number]() if number in self._methods else None
            if method is None:
                continue
            try:
                method()
            except Exception as error:  # noqa: BLE001  the end of a process is no place to fail
                _log.warning("cleanup failed: %s: %s", type(error).__name__, error)


_exit = Hook()
_fork = Hook()
_lock = threading.Lock()
_asked: set[str] = set()


def at_exit(method: Callable[[], object]) -> Callable[[], None]:
    """Call a bound method when the interpreter ends; return the function that cancels this.

    The object is held weakly: one that nobody holds any more needs no end.
    """
    with _lock:
        if "exit" not in _asked:
            atexit.register(_exit.run)
            _asked.add("exit")
    return _exit.add(method)


def after_fork_in_child(method: Callable[[], object]) -> Callable[[], None]:
    """Call a bound method in every forked child, before the child's own code runs; return the cancelling function.

    The child has one thread. The method must not wait for a lock of the parent: it replaces it.
    """
    with _lock:
        if "fork" not in _asked and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)
            _asked.add("fork")
    return _fork.add(method)


def forget_exit() -> None:
    """Take the exit hook back, for an extension that is unloaded; the next :func:`at_exit` asks for it again."""
    with _lock:
        if not len(_exit) and "exit" in _asked:
            atexit.unregister(_exit.run)
            _asked.discard("exit")


def _forked() -> None:
    global _lock
    # Another thread of the parent may have held it.
    _lock = threading.Lock()
    _fork.run()
