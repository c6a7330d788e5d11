"""What all panels on one memory share: the session they work on, and word of every change to each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.session import MemorySession


class Watcher:
    """Something that shows what is stored."""

    def refresh(self) -> None:
        """Read again what is shown."""
        raise NotImplementedError


class Desk:
    """One memory under the eyes of any number of panels.

    Parameters
    ----------
    session
        Gives the session in use; asked at each turn, since a notebook may have chosen another one meanwhile.
    rescope
        Lets the session work in another scoping mode.
    told
        Whether the owner itself calls :meth:`changed` when the session is another one.
    """

    def __init__(
        self, session: Callable[[], MemorySession], rescope: Callable[[str], object], *, told: bool = False
    ) -> None:
        self._told = told
        self._session = session
        self._rescope = rescope
        self._watchers: WeakSet[Watcher] = WeakSet()

    @property
    def session(self) -> MemorySession:
        """The session in use."""
        return self._session()

    @property
    def scope(self) -> str:
        """The scoping mode in force; empty while no backend is chosen."""
        return self.session.scoping

    def join(self, watcher: Watcher) -> None:
        """Tell this one, too, of every change."""
        self._watchers.add(watcher)

    def rescope(self, mode: str) -> None:
        """Go over to another scoping mode, and let every panel look again."""
        self._rescope(mode)
        if not self._told:
            self.changed()

    def changed(self) -> None:
        """Let every panel read again: what is stored, or where, is no longer what it was."""
        for watcher in list(self._watchers):
            watcher.refresh()
