"""Sessions on the real server, each in a bank of its own and closed at the end of its test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.hindsight.backend import HindsightBackend
from ipy_memory.backends.hindsight.outbox import Outbox
from ipy_memory.clock import FixedClock, ProcessIds, SystemTimers
from ipy_memory.scoping.modes import hindsight_scope
from ipy_memory.session import MemorySession
from ipy_memory.settings.resolve import hindsight_config, load_settings
from tests.real_server.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import httpx

    from tests.services.hindsight_server import HindsightServer

NOW = "2026-06-01T12:00:00.000Z"


class Agent:
    """One agent's session in a project: the session, its backend, and what the user was told."""

    def __init__(
        self,
        url: str,
        token: str | None,
        bank: str,
        cwd: Path,
        transport: httpx.BaseTransport | None,
        session_id: str,
        settings: dict[str, Any],
    ) -> None:
        connection = {"hindsight.apiUrl": url, "hindsight.apiToken": token, "hindsight.bankId": bank}
        given = {"memory.backend": "hindsight", **connection, **settings}
        resolved = load_settings(cwd, cwd, {}, given)
        config = hindsight_config(resolved)
        self.notices: list[str] = []
        self.clock = FixedClock(NOW)
        ids, timers = ProcessIds(), SystemTimers()
        self.backend = HindsightBackend(
            config,
            hindsight_scope(config, str(cwd)),
            Outbox(cwd),
            session_id=session_id,
            clock=self.clock,
            ids=ids,
            timers=timers,
            transport=transport,
            notify=lambda _level, message, _source, _hint: self.notices.append(message),
            started="2026-06-01T08:00:00Z",
        )
        self.session = MemorySession(
            resolved,
            cwd=str(cwd),
            agent_dir=str(cwd),
            env={},
            clock=self.clock,
            ids=ids,
            timers=timers,
            session_id=session_id,
        )
        self.session.backend = self.backend

    @property
    def bank(self) -> str:
        return self.backend.retain_bank

    def states(self) -> list[str]:
        """Return the state of every item that is not known to have arrived."""
        return [row.state for row in self.backend.queue_rows()]


@pytest.fixture
def remote(hindsight_server: HindsightServer, hindsight_bank: str) -> Iterator[Remote]:
    """The server's own view of its banks."""
    view = Remote(hindsight_server)
    yield view
    view.close()


@pytest.fixture
def agent(hindsight_server: HindsightServer, hindsight_bank: str, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Open a session: ``agent(scoping, project=…, **settings without the "hindsight." prefix)``."""
    opened: list[Agent] = []

    def open_agent(
        scoping: str = "global",
        *,
        project: str = "Demo",
        token: str | None = hindsight_server.api_key,
        transport: httpx.BaseTransport | None = None,
        session_id: str = "session-1",
        **settings: Any,
    ) -> Agent:
        cwd = tmp_path / project
        cwd.mkdir(exist_ok=True)
        named = {f"hindsight.{name}": value for name, value in {"scoping": scoping, **settings}.items()}
        made = Agent(hindsight_server.base_url, token, hindsight_bank, cwd, transport, session_id, named)
        opened.append(made)
        return made

    yield open_agent
    for made in opened:
        made.session.close()
