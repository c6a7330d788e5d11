"""Opening a session, and finding it again in a worker process."""

from __future__ import annotations

import copyreg
import os
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakValueDictionary

from ipy_memory.clock import ProcessIds, SystemClock, SystemTimers
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.paths import check_path, here, typed_path
from ipy_memory.scoping.project import resolve_path
from ipy_memory.session import rebinding
from ipy_memory.session.memory_session import MemorySession
from ipy_memory.settings.resolve import agent_directory, load_settings
from ipy_memory.settings.table import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ipy_memory.clock import Clock, IdSource, Timers
    from ipy_memory.model import Embedder


def open_session(
    backend: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    database: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    agent_dir: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    timers: Timers | None = None,
    session_id: str | None = None,
    started: str | None = None,
    resumed: bool | None = None,
    embedder: Embedder | None = None,
    completion: Callable[[str], str | None] | None = None,
    trust: bool | None = None,
) -> MemorySession:
    """Open an agent session on its memory; nothing is read, made or sent before it is needed.

    Parameters
    ----------
    backend
        ``"mnemopi"``, ``"hindsight"`` or ``"off"``; by default the setting ``memory.backend`` (itself ``off``).
    cwd
        Working directory that the scope is derived from; the process's own by default.
    database
        The shared Mnemopi bank's file; by default the setting ``mnemopi.dbPath``.
    settings
        Settings by dotted name; they win over files and environment.
    agent_dir
        The agent's folder; by default ``PI_CODING_AGENT_DIR``, else ``~/.omp/agent``.
    env
        Environment variables; the process's own by default.
    clock, ids, timers
        Other sources of time and ids (tests, documentation).
    session_id
        By default ``nb-`` and 12 hexadecimal digits.
    started
        Time stamp of the session's beginning; by default now.
    resumed
        Whether another process may have begun the session; by default so when a ``session_id`` is given. Its
        conversation goes into ``session.messages``; what is stored of it already is not stored again.
    embedder
        Computes vectors in place of the configured endpoint.
    completion
        A language model for fact extraction: prompt to answer.
    trust
        Whether the project's files may decide where memories go and which keys are used: for this session, and
        remembered nowhere. By default that counts what ``%memory trust`` or :meth:`MemorySession.trust_folder` said.

    Raises
    ------
    SettingsError
        A given setting does not exist or cannot have that value.
    """
    env = os.environ if env is None else env
    ids = ids or ProcessIds()
    folder = resolve_path(typed_path(os.fspath(cwd), env)) if cwd is not None else here()
    check_path(folder, "the project folder")
    agent = agent_directory(env) if agent_dir is None else typed_path(os.fspath(agent_dir), env)
    check_path(agent, "the agent's folder")
    given = rebinding.with_absolute_paths(settings or {})
    if backend is not None:
        given["memory.backend"] = backend
    if database is not None:
        given["mnemopi.dbPath"] = typed_path(os.fspath(database), env)
    resolved = load_settings(agent, folder, env, given, trust=trust)
    session = MemorySession(
        resolved,
        cwd=folder,
        agent_dir=agent,
        env=env,
        clock=clock or SystemClock(),
        ids=ids,
        timers=timers or SystemTimers(),
        session_id=session_id or f"nb-{ids.token()}",
        started=started,
        resumed=session_id is not None if resumed is None else resumed,
        embedder=embedder,
        completion=completion,
        trust=trust,
    )
    session.install_backend()
    session.notices.tell_settings(session.settings.notes())
    _SESSIONS[session.key] = session
    return session


def _reduced(session: MemorySession) -> tuple[Any, ...]:
    """Let a worker process have a session: a forked child finds its own copy, another process opens it again."""
    return session_of, (session.key, description(session))


copyreg.pickle(MemorySession, _reduced)


def description(session: MemorySession) -> dict[str, Any] | None:
    """Return what :func:`open_session` needs to open a session again elsewhere; ``None`` where that is not enough."""
    given = {name: entry.value for name, entry in session.settings.session.items()}
    usual = (type(session.clock), type(session.ids), type(session.timers)) == (SystemClock, ProcessIds, SystemTimers)
    alone = session.env is os.environ and session.embedder is None and session.completion is None
    if not (usual and alone) or any(SETTINGS[name].credential for name in given):
        return None
    return {
        "cwd": session.cwd,
        "agent_dir": session.agent_dir,
        "settings": given,
        "session_id": session.session_id,
        "started": session.started,
        "trust": rebinding.trust_of(session, session.cwd),
    }


_SESSIONS: WeakValueDictionary[str, MemorySession] = WeakValueDictionary()
_REOPENED: list[MemorySession] = []
"""Sessions of another process that were opened again in this one: they live as long as it does."""


def session_of(key: str, description: Mapping[str, Any] | None) -> object:
    """Return this process's copy of a session, or open it again."""
    if key in _SESSIONS:
        return _SESSIONS[key]
    if description is None:
        return _Elsewhere()
    session = _SESSIONS[key] = open_session(**description)
    _REOPENED.append(session)
    return session


class _Elsewhere:
    """Takes the place of a session that this process cannot open again.

    It raises when it is used: a worker that fails while it reads its task would leave the pool waiting for ever.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(_refuse, name)


def _refuse(name: str, *_: object, **__: object) -> NoReturn:
    raise MemoryToolkitError(
        f"The session cannot be opened again in this process, so {name} was not done.",
        hint="open one there with open_session(...); what was given in code (clock, embedder, key) does not go along",
    )
