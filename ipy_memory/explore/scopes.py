"""What each scoping mode of each backend means for a folder: from the real scopes and the real files. Reads only."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.hindsight.prompts import filter_words
from ipy_memory.backends.mnemopi.admin import stats
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.config import engine_config
from ipy_memory.backends.mnemopi.pool import OpenBanks
from ipy_memory.errors import BankError, MemoryToolkitError
from ipy_memory.explore.local import server_backend
from ipy_memory.jscompat.strings import clip
from ipy_memory.own_files import state_path
from ipy_memory.paths import check_path, exists, typed_path
from ipy_memory.scoping.modes import HindsightScope, hindsight_scope, mnemopi_scope
from ipy_memory.scoping.project import resolve_path
from ipy_memory.settings.resolve import hindsight_config, load_settings, mnemopi_config
from ipy_memory.settings.table import SCOPINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ipy_memory.backends.hindsight.bank import Service
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Hit
    from ipy_memory.session import MemorySession
    from ipy_memory.settings.resolve import Settings

TOP_UNITS = 80
"""How much of the best hit is shown."""


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """One scoping mode of one backend.

    Attributes
    ----------
    in_force
        Whether it is the session's own.
    writes, write_tags
        The bank that would be written, and the tags put on what is written.
    reads, read_filter
        The banks that would be asked, in order, and which tags count there.
    rescued
        Banks of the same folder under an older name, which are read as well (among ``reads``).
    file, exists
        The file that would be written, or the server; whether the file is there.
    hits, top
        With a query: the ids it would give, in order, and the beginning of the first. ``None`` if it was not asked.
    note
        Why there are no hits, or what else should be known.
    """

    backend: str
    mode: str
    in_force: bool
    writes: str
    write_tags: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    read_filter: str | None = None
    rescued: tuple[str, ...] = ()
    file: str = ""
    exists: bool | None = None
    hits: tuple[str, ...] | None = None
    top: str | None = None
    note: str | None = None


def scope_rows(session: MemorySession, query: str | None = None, *, cwd: str | None = None) -> list[ScopeRow]:
    """Return one row for each mode of each backend.

    Parameters
    ----------
    session
        Its settings, clock and files are used; nothing of it changes.
    query
        Also tell what a recall would give. A server is asked only if the session is on it.
    cwd
        The folder; the session's own by default.
    """
    folder = session.cwd if cwd is None else check_path(_folder(session, cwd), "the folder")
    settings = session.settings
    if folder != session.cwd:
        given = {name: one.value for name, one in settings.session.items()}
        settings = load_settings(session.agent_dir, folder, session.env, given)
    return [*_local(session, settings, folder, query), *_remote(session, settings, folder, query)]


def _folder(session: MemorySession, typed: str) -> str:
    return resolve_path(typed_path(typed, session.env))


def scopes(session: MemorySession, query: str | None = None, *, cwd: str | None = None) -> DataFrame:
    """Return :func:`scope_rows` as a frame."""
    return scopes_frame(scope_rows(session, query, cwd=cwd), session, query, cwd=cwd)


def scopes_frame(
    rows: Sequence[ScopeRow], session: MemorySession, query: str | None = None, *, cwd: str | None = None
) -> DataFrame:
    """Return rows as :func:`scopes` does."""
    from ipy_memory.frames import build

    dtypes: dict[str, Any] = {field.name: build.TEXT for field in fields(ScopeRow)}
    dtypes |= dict.fromkeys(("write_tags", "reads", "rescued", "hits"), "object")
    dtypes |= {"in_force": "bool", "exists": "boolean"}
    frame = build.table({name: [getattr(row, name) for row in rows] for name in dtypes}, dtypes)
    frame.attrs |= {"query": query, "cwd": session.cwd if cwd is None else _folder(session, cwd)}
    return frame


def shown_scopes(rows: Sequence[ScopeRow], query: str | None) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return headers and rows of a table that a user reads."""
    headers = ["backend", "mode", "writes", "reads", *(["note"] if query is None else ["hits", "best hit"])]
    cells = [
        (
            row.backend,
            f"{row.mode} (in force)" if row.in_force else row.mode,
            written(row),
            read(row),
            *(() if query is None else (None if row.hits is None else len(row.hits),)),
            row.top or row.note,
        )
        for row in rows
    ]
    return headers, cells


def scope_in_force(session: MemorySession) -> ScopeRow | None:
    """Return the row of the session's own mode; ``None`` while no backend is chosen."""
    if session.backend is None:
        return None
    if isinstance(session.backend, MnemopiBackend):
        return _local_row(session.backend, in_force=True)
    if served := server_backend(session):
        return _remote_row(served.config.scoping, served.scope, served.service.client.origin, in_force=True)
    return None


def written(row: ScopeRow) -> str:
    """Return in words what a mode writes."""
    tags = f", tagged {', '.join(row.write_tags)}" if row.write_tags else ""
    return f"{row.writes}{tags}{' (no file yet)' if row.exists is False else ''}"


def read(row: ScopeRow) -> str:
    """Return in words what a mode reads."""
    names = [f"{name} (rescued)" if name in row.rescued else name for name in row.reads]
    return "; ".join(filter(None, (", ".join(names), row.read_filter)))


def _local(session: MemorySession, settings: Settings, cwd: str, query: str | None) -> Iterator[ScopeRow]:
    base = mnemopi_config(settings, session.agent_dir, cwd)
    served = session.backend
    own = isinstance(served, MnemopiBackend)
    banks = (
        served.banks
        if isinstance(served, MnemopiBackend)
        else OpenBanks(
            clock=session.clock,
            ids=session.ids,
            config=engine_config(session.env),
            copies=state_path(session.agent_dir, "copies"),
        )
    )
    home = session.env.get("HOME", "")
    try:
        for mode in SCOPINGS:
            config = replace(base, scoping=mode)
            scope = mnemopi_scope(config, cwd)
            backend = MnemopiBackend(config, scope, banks, cwd=cwd, session_id=session.session_id, home=home)
            in_force = own and mode == base.scoping and cwd == session.cwd
            try:
                row = _local_row(backend, in_force=in_force)
            except BankError as error:
                yield ScopeRow("mnemopi", mode, in_force, scope.retain_bank, note=error.message)
            else:
                yield row if query is None else _asked(row, partial(_hits, backend, query))
    finally:
        if not own:
            banks.close()


def _local_row(backend: MnemopiBackend, *, in_force: bool) -> ScopeRow:
    written, targets = backend.target(backend.retain_bank), backend.recall_targets()
    return ScopeRow(
        "mnemopi",
        backend.config.scoping,
        in_force,
        backend.retain_bank,
        reads=tuple(target.name for target in targets),
        rescued=tuple(target.name for target in targets if target.rescued),
        file=stats.shown_path(written.path, backend.home),
        exists=exists(written.path),
    )


def _hits(backend: MnemopiBackend, query: str) -> tuple[Hit, ...]:
    return backend.ask(RecallRequest(query, count=False)).hits


def _remote(session: MemorySession, settings: Settings, cwd: str, query: str | None) -> Iterator[ScopeRow]:
    base = hindsight_config(settings)
    served = server_backend(session) if session.chosen == "hindsight" and session.backend else None
    url = next(row.value for row in settings.table() if row.name == "hindsight.apiUrl")  # without a password
    for mode in SCOPINGS:
        scope = hindsight_scope(replace(base, scoping=mode), cwd)
        in_force = served is not None and mode == base.scoping and cwd == session.cwd
        place = served.service.client.origin if served else str(url or "no server is configured")
        row = _remote_row(mode, scope, place, in_force=in_force)
        if query is None:
            yield row
        elif served is None:
            yield replace(row, note="not asked: the session is not on this server")
        else:
            service = copy(served.service)
            service.scope = scope
            yield _asked(row, partial(_served_hits, service, query))


def _remote_row(mode: str, scope: HindsightScope, place: str, *, in_force: bool) -> ScopeRow:
    return ScopeRow(
        "hindsight",
        mode,
        in_force,
        scope.bank_id,
        write_tags=scope.retain_tags or (),
        reads=(scope.bank_id,),
        read_filter=filter_words(scope.recall_tags, scope.tags_match),
        file=place,
    )


def _served_hits(service: Service, query: str) -> tuple[Hit, ...]:
    return service.recall(query).hits


def _asked(row: ScopeRow, ask: Callable[[], tuple[Hit, ...]]) -> ScopeRow:
    try:
        hits = ask()
    except MemoryToolkitError as error:
        return replace(row, note=error.message)
    top = clip(" ".join(hits[0].content.split()), TOP_UNITS) if hits else None
    return replace(row, hits=tuple(hit.id or "" for hit in hits), top=top)
