"""What the agent does to its banks when it next starts, before it recalls; and a recall as it would then be.

At its start the agent consolidates memories of twelve hours and more into episodes, so that its first answer may differ
from one that is given now. Banks are only read here: the other answer comes from private copies.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory import text
from ipy_memory.backends.mnemopi.consolidation.sleep import due
from ipy_memory.backends.mnemopi.db.copies import copy_bank
from ipy_memory.backends.mnemopi.session import MnemopiSession
from ipy_memory.clock import ProcessIds
from ipy_memory.errors import BankError
from ipy_memory.explore.local import local_backend, readable
from ipy_memory.scoping.modes import bank_path, banks_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from ipy_memory.backends.filters import RecallFilter
    from ipy_memory.backends.mnemopi.backend import MnemopiBackend
    from ipy_memory.backends.trace import Trace
    from ipy_memory.clock import Clock
    from ipy_memory.model import ToolResult
    from ipy_memory.session import MemorySession


def due_at_start(session: MemorySession) -> int:
    """Return how many memories the agent consolidates at its next start; 0 where this session has begun already."""
    backend = session.active_backend
    if not isinstance(backend, MnemopiSession) or backend.started:
        return 0
    count = 0
    for _, bank in readable(backend, backend.edit_targets()):
        if not isinstance(bank, BankError):
            with suppress(BankError):
                count += due(bank)
    return count


def recall_as_agent_start(
    session: MemorySession,
    query: str,
    *,
    limit: int | None = None,
    cancel: Event | None = None,
    traces: list[Trace] | None = None,
    where: RecallFilter | None = None,
) -> ToolResult:
    """Recall as the agent does after its next start, from private copies of the banks in scope.

    Parameters
    ----------
    session
        On local banks; its banks do not change, and nothing is counted.
    query
        Taken literally.
    limit
        The most hits; the configured limit by default.
    cancel
        Set it from elsewhere to stop the work.
    traces
        Receives the engine's account of each call, as :meth:`MemorySession.recall` says.
    where
        Filters.

    Returns
    -------
    ToolResult
        The agent's exact text at that time.

    Raises
    ------
    MemoryToolkitError
        The memory is on a server, or a bank cannot be copied.
    """
    backend = local_backend(session, "a recall as at the agent's start")
    with private_copy(session, backend) as copy:
        count = due_at_start(copy)
        copy.start()
        found = copy.recall(query, limit=limit, touch=False, cancel=cancel, traces=traces, where=where)
    return found.with_notes([text.as_agent_start(count)])


@contextmanager
def private_copy(
    session: MemorySession, backend: MnemopiBackend, *, clock: Clock | None = None
) -> Iterator[MemorySession]:
    """Open a session like another one on private copies of its banks, which are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="ipy-memory-copy-") as folder:
        database = Path(folder, Path(backend.config.db_path).name)
        for target, bank in readable(backend, backend.edit_targets()):
            if isinstance(bank, BankError):
                raise bank
            if target.rescued:
                place = banks_folder(database) / target.path.parent.name / target.path.name
            else:
                place = bank_path(database, target.name, backend.scope.global_bank)
            place.parent.mkdir(parents=True, exist_ok=True)
            copy_bank(bank, place.parent).rename(place)
        with _session_on(database, session, backend, clock) as copy:
            yield copy


def _session_on(database: Path, session: MemorySession, backend: MnemopiBackend, clock: Clock | None) -> MemorySession:
    """Return a session like another one on copies of its banks, with ids of its own."""
    made = type(session)(
        session.settings.with_overrides({"mnemopi.dbPath": str(database)}),
        cwd=session.cwd,
        agent_dir=str(database.parent),
        env=session.env,
        clock=clock or session.clock,
        ids=ProcessIds(),
        timers=session.timers,
        session_id=session.session_id,
        embedder=backend.banks.choice.embedder,
    )
    made.install_backend()
    return made
