"""Banks of folders near by: for a notebook that was opened beside, below or above the folder in which the agent works.

In the per-project modes a bank belongs to one folder by its path alone. So a notebook in ``PROJECT/notebooks`` finds an
empty bank, while the agent's memories lie one folder up. Nothing is counted or written here.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.base import RecallRequest
from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.pool import READ
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.scoping.modes import project_bank
from ipy_memory.scoping.project import repository_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipy_memory.backends.mnemopi.pool import Target
    from ipy_memory.session import MemorySession

MOST_SHOWN = 3
_MOST_FOLDERS, _MOST_ENTRIES, _DEPTH = 300, 3_000, 2
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


@dataclass(frozen=True, slots=True)
class Nearby:
    """A bank of a folder near by: how many memories it holds, and how many hits a query has in it."""

    bank: str
    folder: str
    memories: int
    hits: int = 0


def recall_notes(session: MemorySession, query: str, limit: int | None = None, *, hits: int = 0) -> list[str]:
    """Return what to say beside a recall: which banks near by have hits, if the session's own is empty or has none.

    Parameters
    ----------
    session
        As it was asked.
    query, limit
        As asked.
    hits
        How many there were.
    """
    backend = session.backend
    if not isinstance(backend, MnemopiBackend):
        return []
    state = _emptiness(backend)
    if state is None and hits:
        return []
    found = [one for one in near_banks(session, query, limit) if state is not None or one.hits]
    if not found:
        return []
    own = f"Bank {backend.retain_bank} of {shown_path(session.cwd, backend.home)} {state or 'has no hit'}."
    found.sort(key=lambda one: not one.hits)
    return [own, *(_sentence(one, backend.home) for one in found[:MOST_SHOWN])]


def retain_notes(session: MemorySession) -> list[str]:
    """Return what to say of banks near by when a new bank was made."""
    backend = session.backend
    if not isinstance(backend, MnemopiBackend):
        return []
    return [_sentence(one, backend.home) for one in near_banks(session)[:MOST_SHOWN]]


def near_banks(session: MemorySession, query: str | None = None, limit: int | None = None) -> list[Nearby]:
    """Return the banks of the folders above, of the same repository and below, the nearest first.

    Parameters
    ----------
    session
        On the local engine.
    query
        Is asked in each of them; without it, only their memories are counted.
    limit
        The most hits of each.
    """
    backend = session.backend
    if not isinstance(backend, MnemopiBackend) or backend.config.scoping == "global":
        return []
    known = set(backend.bank_names()) - {target.name for target in backend.recall_targets()}
    found: dict[str, Nearby] = {}
    for folder in _folders_near(session.cwd) if known else ():
        name = project_bank(backend.config.bank, folder)
        if name in known and name not in found:
            try:
                if one := _looked_into(backend, backend.named_target(name), folder, query, limit):
                    found[name] = one
            except MemoryToolkitError:
                continue  # %memory banks says what is wrong with it
    return list(found.values())


def _emptiness(backend: MnemopiBackend) -> str | None:
    """Return how the session's own bank is without memories; ``None`` where it has some, or cannot be read."""
    if backend.config.scoping == "global":
        return None
    try:
        with backend.banks.lock:
            target = backend.target(backend.retain_bank)
            count = _count(backend, target)
    except MemoryToolkitError:
        return None
    return "has no file yet" if count is None else "is empty" if not count else None


def _count(backend: MnemopiBackend, target: Target) -> int | None:
    bank = backend.banks.get(target, READ)
    if bank is None:
        return None
    with bank.reading() as connection:
        return sum(
            int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ("working_memory", "episodic_memory")
        )


def _looked_into(
    backend: MnemopiBackend, target: Target, folder: str, query: str | None, limit: int | None
) -> Nearby | None:
    with backend.banks.lock:
        count = _count(backend, target)
    if not count:
        return None
    hits = (
        0 if query is None else len(backend.one_bank(target.name).recall(RecallRequest(query, limit, count=False)).hits)
    )
    return Nearby(target.name, folder, count, hits)


def _sentence(one: Nearby, home: str) -> str:
    folder = shown_path(one.folder, home)
    memories = f"{one.memories:,} {'memory' if one.memories == 1 else 'memories'}"
    hits = f" and {one.hits} {'hit' if one.hits == 1 else 'hits'} for this query" if one.hits else ""
    return f"Bank {one.bank} of {folder} has {memories}{hits}. To go there: %memory rebind {folder}"


def _folders_near(cwd: str) -> Iterator[str]:
    yield from (str(parent) for parent in Path(cwd).parents)
    root = repository_root(cwd)
    if root is not None:
        yield root
        yield from _below(root)
    yield from _below(cwd)


def _below(root: str) -> Iterator[str]:
    """Yield folders below one, level by level; a large tree is not looked through to its end."""
    waiting = deque([(root, 0)])
    entries = folders = 0
    while waiting:
        folder, depth = waiting.popleft()
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    entries += 1
                    if entries > _MOST_ENTRIES or folders >= _MOST_FOLDERS:
                        return
                    passed_over = entry.name.startswith(".") or entry.name in _PASSED_OVER
                    if not passed_over and entry.is_dir(follow_symlinks=False):
                        folders += 1
                        yield entry.path
                        if depth + 1 < _DEPTH:
                            waiting.append((entry.path, depth + 1))
        except OSError:
            continue
