"""The recall panel: search, open a hit, invalidate several at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ipy_memory.backends.mnemopi.admin import stats
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.errors import EditRefusedError, MagicError, PartlyDoneError
from ipy_memory.explore.banks import NOT_READ, bank_rows
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.notebook.widgets.memory import NOTHING_UNDONE, MemoryState
from ipy_memory.notebook.widgets.state import PanelState, keyed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ipy_memory.explore.selection import Selected
    from ipy_memory.model import Hit
    from ipy_memory.notebook.widgets.session_hub import Desk
    from ipy_memory.session import MemorySession

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


@dataclass(frozen=True, slots=True)
class BankRow:
    """One bank: what the session does with it and why, and what is in it (``None``: unknown)."""

    name: str
    use: str
    why: str
    working: int | None = None
    episodic: int | None = None
    newest: str | None = None
    file: str = ""


class BanksState(PanelState):
    """The banks panel."""

    title = "banks"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.rows: tuple[BankRow, ...] = ()
        self.scope = ""
        self.attempt(self.reread)

    def reread(self) -> None:
        """Look at the files and the scope again."""
        self.rows = ()
        self.scope = self.desk.scope
        session = self.desk.session
        backend = session.live_backend()
        self.rows = tuple(_local(session) if isinstance(backend, MnemopiBackend) else _remote(session))

    def switch(self, mode: str) -> None:
        """Go over to another scoping mode, and say what that means."""
        if mode != self.scope:
            super().switch(mode)
            if not self.failed:
                self.say(f"Scope {self.scope}: {self.summary()}")

    def summary(self) -> str:
        """Return in words what is written and read."""
        written = ", ".join(row.name for row in self.rows if row.use.startswith("written"))
        read = ", ".join(row.name for row in self.rows if row.use not in {"written", NOT_READ})
        return f"writes {written or 'nothing'}, reads {read or 'nothing'}."


def _local(session: MemorySession) -> list[BankRow]:
    home = session.env.get("HOME", "")
    return [
        BankRow(
            row.name,
            row.use,
            "; ".join(filter(None, (row.reason, row.error))),
            None if row.size is None or row.error else row.tally.working,
            None if row.size is None or row.error else row.tally.episodic,
            shown_stamp(row.tally.last_memory or "", session.clock.tz) or None,
            stats.shown_path(row.path, home),
        )
        for row in bank_rows(session)
    ]


def _remote(session: MemorySession) -> list[BankRow]:
    status = session.live_backend().status()
    tags = ", ".join(status.get("tags", ()))
    why = "; ".join(filter(None, (f"writes tags {tags}" if tags else "writes no tag", status.get("filter"))))
    return [BankRow(bank, "written, read", why, file=str(status.get("server", ""))) for bank in status["banks"]]
