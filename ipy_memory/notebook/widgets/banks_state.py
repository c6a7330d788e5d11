"""The banks panel: which banks are written and read, which are not and why, and another scope at a touch (L-05)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.admin import stats
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.explore.banks import NOT_READ, bank_rows
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.notebook.widgets.state import PanelState

if TYPE_CHECKING:
    from ipy_memory.notebook.widgets.session_hub import Desk
    from ipy_memory.session import MemorySession


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
