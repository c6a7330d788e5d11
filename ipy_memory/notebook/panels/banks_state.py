"""The banks panel: which banks are written and read, which are not and why, and another scope at a touch (L-05)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ipy_memory.errors import BankError
from ipy_memory.mnemopi import reports
from ipy_memory.mnemopi.backend import MnemopiBackend
from ipy_memory.notebook.panels.state import PanelState

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.notebook.panels.desk import Desk
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
        self.rows = tuple(_local(backend) if isinstance(backend, MnemopiBackend) else _remote(session))

    def switch(self, mode: str) -> None:
        """Go over to another scoping mode, and say what that means."""
        if mode != self.scope:
            super().switch(mode)
            if not self.failed:
                self.say(f"Scope {self.scope}: {self.summary()}")

    def summary(self) -> str:
        """Return in words what is written and read."""
        written = ", ".join(row.name for row in self.rows if "written" in row.use)
        read = ", ".join(row.name for row in self.rows if "read" in row.use)
        return f"writes {written or 'nothing'}, reads {read or 'nothing'}."


def _local(backend: MnemopiBackend) -> list[BankRow]:
    verdicts = {verdict.name: verdict for verdict in backend.legacy}
    written = backend.target(backend.retain_bank)
    targets = {target.name: target for target in (written, *backend.recall_targets())}
    rows = []
    for name in dict.fromkeys([*targets, *backend.bank_names(), *verdicts]):
        target, verdict = targets.get(name), verdicts.get(name)
        if target is None:
            why = verdict.reason if verdict else "not of this folder and scope"
            path = verdict.path if verdict else backend.named_target(name).path
            rows.append(_counted(backend, BankRow(name, "–", why), path))
            continue
        uses = [
            *(["written"] if name == backend.retain_bank else []),
            *(["read"] if target.rescued or name in backend.scope.recall_banks else []),
        ]
        why = "shared" if name == backend.scope.global_bank else "of this folder"
        if target.rescued:
            why = f"rescued: {verdict.reason}" if verdict else "rescued"
        rows.append(_counted(backend, BankRow(name, ", ".join(uses), why), target.path))
    return rows


def _counted(backend: MnemopiBackend, row: BankRow, path: Path) -> BankRow:
    row = replace(row, file=reports.shown_path(path, backend.home))
    if not path.exists():
        return replace(row, why=f"{row.why}; no file yet") if row.use != "–" else row
    try:
        stats = reports.bank_stats(path, row.name, backend.banks.clock)
    except BankError as error:
        return replace(row, why=f"{row.why}; {error.message}")
    newest = (stats.last_memory or "")[:10] or None
    return replace(row, working=stats.working, episodic=stats.episodic, newest=newest)


def _remote(session: MemorySession) -> list[BankRow]:
    status = session.live_backend().status()
    tags = ", ".join(status.get("tags", ()))
    why = "; ".join(filter(None, (f"writes tags {tags}" if tags else "writes no tag", status.get("filter"))))
    return [BankRow(bank, "written, read", why, file=str(status.get("server", ""))) for bank in status["banks"]]
