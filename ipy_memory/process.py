"""What to do when the process ends or forks: one hook of each kind, shared by every session.

A forked child inherits the parent's objects but none of its threads. Whoever holds a connection, a lock, a timer or a
queue registers a method here that gives the child its own; the interpreter itself is asked only once for each hook.
A worker of ``multiprocessing`` ends without the interpreter's own exit, so its exit hook runs at the worker's end.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import logging
import os
import platform
import sys
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger("ipy_memory")


_EARLY = 1 << 60


class Hook:
    """Methods to call at one event, held weakly and called in reverse order of registration, the early ones first.

    A method that fails is logged and does not keep the others from running.
    """

    def __init__(self) -> None:
        # Without callbacks at an object's end: those would fail, and be heard, while the interpreter is taken down.
        self._methods: dict[int, tuple[weakref.ref[object], Callable[[object], object]]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return sum(owner() is not None for owner, _ in self._methods.values())

    def add(self, method: Callable[[], object], *, early: bool = False) -> Callable[[], None]:
        """Register a bound method; the returned function removes it again (harmless when repeated)."""
        for number in [number for number, (owner, _) in list(self._methods.items()) if owner() is None]:
            self._methods.pop(number, None)
        number = next(self._numbers) + early * _EARLY
        self._methods[number] = weakref.ref(method.__self__), method.__func__  # type: ignore[attr-defined]

        def remove() -> None:
            self._methods.pop(number, None)

        return remove

    def run(self) -> None:
        """Call every method that is still alive."""
        for number in sorted(self._methods, reverse=True):
            owner, function = self._methods.get(number, (_nobody, None))
            alive = owner()
            if alive is None or function is None:
                continue
            try:
                function(alive)
            except Exception as error:  # noqa: BLE001  the end of a process is no place to fail
                _log.warning("cleanup failed: %s: %s", type(error).__name__, error)


def _nobody() -> None:
    return None


_exit = Hook()
_before_fork = Hook()
_forked_parent = Hook()
_forked_child = Hook()
_lock = threading.Lock()
_asked: set[str] = set()


def at_exit(method: Callable[[], object], *, early: bool = False) -> Callable[[], None]:
    """Call a bound method when the interpreter ends; return the function that cancels this.

    An ``early`` one hands work to others, and so is called before them. The object is held weakly: one that nobody
    holds any more needs no end.
    """
    with _lock:
        if "exit" not in _asked:
            atexit.register(_exit.run)
            _asked.add("exit")
            if (workers := sys.modules.get("multiprocessing.process")) and workers.parent_process() is not None:
                _at_end_of_worker(_exit)
    return _exit.add(method, early=early)


def before_fork(method: Callable[[], object]) -> Callable[[], None]:
    """Call a bound method in the forking thread just before each fork; return the cancelling function.

    The fork waits for it, so it must not wait for long.
    """
    _ask_for_forks()
    return _before_fork.add(method)


def after_fork_in_parent(method: Callable[[], object]) -> Callable[[], None]:
    """Call a bound method in the parent just after each fork; return the cancelling function."""
    _ask_for_forks()
    return _forked_parent.add(method)


def after_fork_in_child(method: Callable[[], object]) -> Callable[[], None]:
    """Call a bound method in every forked child, before the child's own code runs; return the cancelling function.

    The child has one thread. The method must not wait for a lock of the parent: it replaces it.
    """
    _ask_for_forks()
    return _forked_child.add(method)


class ForkGate:
    """Lets one thread at a time do what no fork may fall into; a fork waits for it, but not for ever.

    Parameters
    ----------
    patience_seconds
        So long a fork waits.
    """

    def __init__(self, patience_seconds: float) -> None:
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._held = False
        self.is_spoiled = False
        """Whether this process was forked from one that was in the middle of it."""
        before_fork(self._before_fork)
        after_fork_in_parent(self._after_fork_in_parent)
        after_fork_in_child(self._after_fork_in_child)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other threads and forks out of a block."""
        with self._turn:
            pass
        # Plain ``with`` statements, so that an interrupt at any point gives the locks back.
        with self._lock:
            yield

    def _before_fork(self) -> None:
        # Whoever comes after a fork that waits, waits behind it.
        if self._turn.acquire(timeout=self._patience):
            self._held = self._lock.acquire(timeout=self._patience)
            self._turn.release()

    def _after_fork_in_parent(self) -> None:
        if self._held:
            self._held = False
            self._lock.release()

    def _after_fork_in_child(self) -> None:
        self.is_spoiled = self.is_spoiled or not self._held
        self._held = False
        self._lock, self._turn = threading.Lock(), threading.Lock()


def forget_exit() -> None:
    """Take the exit hook back, for an extension that is unloaded; the next :func:`at_exit` asks for it again."""
    with _lock:
        if not len(_exit) and "exit" in _asked:
            atexit.unregister(_exit.run)
            _asked.discard("exit")


def identity() -> str:
    """Return what tells this process from every other, on any machine that shares its files.

    The number of a process is used again after its end, and each container has numbers of its own; so the machine, the
    numbering and the time of the start go along.
    """
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid()) or ''}"


def is_running(identity: str) -> bool | None:
    """Return whether the process of an :func:`identity` runs; ``None`` where that cannot be told from here."""
    machine, _, rest = identity.partition("/")
    number, _, started = rest.partition("/")
    if machine != _machine() or not number.isdecimal():
        return None
    if started:
        return _started(int(number)) == started
    try:
        os.kill(int(number), 0)
    except PermissionError:
        return None
    except OSError:
        return False
    return None


@functools.cache
def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{Path('/proc/self/ns/pid').readlink().name.strip('pid:[]')}"
    except OSError:
        return platform.node().replace("/", "-")


def _started(number: int) -> str | None:
    """Return when a process was started, in the system's ticks; ``None`` where there is none or nobody says."""
    try:
        fields = Path(f"/proc/{number}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    # One that has ended and that its parent has not noticed yet is still listed.
    return None if fields[0] in {b"Z", b"X"} else fields[19].decode("ascii")


def _ask_for_forks() -> None:
    with _lock:
        if "fork" not in _asked and hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_before_fork.run, after_in_parent=_forked_parent.run, after_in_child=_begin_child
            )
            _asked.add("fork")


def _begin_child() -> None:
    global _lock
    # Another thread of the parent may have held it.
    _lock = threading.Lock()
    _forked_child.run()
    # Only what has imported it can have forked a worker.
    util = sys.modules.get("multiprocessing.util")
    if util is not None and "worker" not in _asked:
        util.register_after_fork(_exit, _at_end_of_worker)
        _asked.add("worker")


def _at_end_of_worker(hook: Hook) -> None:
    from multiprocessing.util import Finalize

    Finalize(None, hook.run, exitpriority=0)
