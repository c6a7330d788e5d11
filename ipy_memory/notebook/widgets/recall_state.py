"""The recall panel: search, open a hit, invalidate several at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from ipy_memory.errors import EditRefusedError, MagicError, PartlyDoneError
from ipy_memory.notebook.widgets.memory_state import NOTHING_UNDONE, MemoryState
from ipy_memory.notebook.widgets.state import PanelState, keyed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ipy_memory.explore.selection import Selected
    from ipy_memory.model import Hit
    from ipy_memory.notebook.widgets.session_hub import Desk

SAME_MOMENT = 0.5
"""Seconds within which leaving the box and a click mean the same search."""


class RecallState(PanelState):
    """The recall panel: a query, its hits, the one that is open (``memory``) and those that are marked.

    Searching from a panel leaves the recall counters as they are.

    Parameters
    ----------
    now
        Seconds on any scale; tells whether two searches are the same one.
    """

    title = "recall"

    def __init__(self, desk: Desk, *, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(desk)
        self.query = ""
        self.limit: int | None = None
        self.text = ""
        self.notes: tuple[str, ...] = ()
        self.banks: tuple[str, ...] = ()
        self.hits: dict[str, Hit] = {}
        self.memory = MemoryState(desk)
        self.selected: str | None = None
        self.marked: tuple[str, ...] = ()
        self._ended: Selected | None = None
        self._now = now
        self._asked_at: float | None = None

    def typed(self, query: str) -> None:
        """Search because a query was entered or its box was left; an unchanged one is not asked again."""
        if query != self.query or self._asked_at is None:
            self._search(query)

    def pressed(self, query: str) -> None:
        """Search because the button was pressed; a press that only ended the typing is the same search."""
        ended_typing = self._asked_at is not None and self._now() - self._asked_at < SAME_MOMENT
        if query != self.query or not ended_typing:
            self._search(query)

    def _search(self, query: str) -> None:
        if not query.strip():
            raise MagicError("there is no query yet", hint="type what to look for")
        self.query, self.selected, self.marked, self.question = query, None, (), None
        self.memory.attempt(self.memory.close)
        self._asked_at = self._now()
        try:
            self._ask()
        finally:
            self._asked_at = self._now()
        self.say(_first_line(self.text))

    def _ask(self) -> None:
        self.hits = {}
        result = self.desk.session.recall(self.query, limit=self.limit, touch=False)
        self.text, self.notes = result.text, result.notes
        self.banks = tuple(result.attrs.get("banks", ()))
        self.hits = keyed(result.hits)

    def reread(self) -> None:
        """Ask the query again."""
        if self._asked_at is None:
            return
        self._ask()
        self.selected = self.selected if self.selected in self.hits else None
        self.marked = tuple(key for key in self.marked if key in self.hits)

    def select(self, key: str) -> None:
        """Open a hit by its key in the table; its memory has a status of its own."""
        hit = self.hits[key]
        self.selected = key
        self.memory.attempt(lambda: self.memory.open_hit(hit))

    def mark(self, keys: Sequence[str]) -> None:
        """Mark the hits that are to be invalidated together."""
        self.marked = tuple(key for key in self.hits if key in set(keys))
        self.question = None

    def invalidate_marked(self) -> None:
        """Count the marked memories, and ask whether to invalidate them together."""
        from ipy_memory.explore.selection import invalidate_all
        from ipy_memory.frames.build import DataFrame

        found = [self.hits[key] for key in self.marked]
        if not found:
            raise MagicError("no memory is marked", hint="tick the boxes of those to invalidate")
        selection = DataFrame({"id": [hit.id for hit in found], "bank": [hit.bank for hit in found]})
        planned = invalidate_all(self.desk.session, selection)
        if not planned.count:
            raise EditRefusedError(one_line(planned), hint="mark others")

        def invalidate() -> None:
            try:
                self._ended = invalidate_all(self.desk.session, selection, confirm=True)
            except PartlyDoneError as error:
                self._ended = cast("Selected", error.done)
                raise
            finally:
                self.marked = ()
                self.desk.changed()
            self.say(one_line(self._ended))

        self.ask(f"{one_line(planned)} It can be undone. Go on?", f"Invalidate {planned.count}", invalidate)

    @property
    def undoable(self) -> bool:
        """Whether there is something that was invalidated together."""
        return self._ended is not None

    def undo(self) -> None:
        """Make what was invalidated together valid again."""
        from ipy_memory.explore.selection import restore_all

        if self._ended is None:
            raise EditRefusedError("There is nothing to undo.", hint=NOTHING_UNDONE)
        ended, self._ended = self._ended, None
        try:
            back = restore_all(self.desk.session, ended)
        finally:
            self.desk.changed()
        self.say(one_line(back))


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0].removesuffix(":")


def one_line(done: Selected) -> str:
    """Return what was done to a selection as one line."""
    return " ".join(str(done).splitlines())
