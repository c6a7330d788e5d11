"""The outbox: acknowledged memories that no server has confirmed yet, in one SQLite file of the agent's folder.

All sessions that use the folder share it, those of other processes too. An item is committed here before it is
acknowledged and deleted when a server has confirmed it, so neither the end of a session nor that of a process loses
one. It stays bound to the server and the bank it was queued for.

An item belongs to the queue that took it, until that queue is gone; whoever sends an item claims it first, so no two
processes send the same one. An item that was on its way when its process ended may have arrived: it is ``unknown``,
and is never sent again unasked.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote
from weakref import WeakValueDictionary

from ipy_memory import own_files, process
from ipy_memory.errors import MemoryToolkitError, OutboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

WAITING, SENDING, FAILED, UNKNOWN = "waiting", "sending", "failed", "unknown"
"""The states of an item: not tried yet; on its way; not stored; tried, and its fate is not known."""

LEASE_MS = 600_000
"""So long an item stays its owner's where nobody can tell whether the owner still runs (on another machine)."""

BUSY_SECONDS = 5.0
"""So long to wait for another process that writes the file."""

FORK_PATIENCE_SECONDS = 2.0
"""So long a fork waits for another thread's work on the file to end."""

PREVIEW_BYTES = 400
"""So much of each text is read for a list."""

_VERSION = 1
_SCHEMA = """
CREATE TABLE items (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server TEXT NOT NULL,
    bank BLOB NOT NULL,
    content BLOB NOT NULL,
    context BLOB,
    tags TEXT,
    session_id BLOB NOT NULL,
    queued_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    owner TEXT,
    lease_ms INTEGER,
    batch TEXT,
    operation_id TEXT,
    error BLOB,
    tried_ms INTEGER
)
"""
_READ = (
    "SELECT id, server, bank, {content}, context, tags, session_id, queued_ms, state, owner, lease_ms, batch,"
    " operation_id, error, tried_ms FROM items"
)


@dataclass(frozen=True, slots=True)
class Queued:
    """One item as it was handed in: what to store, for which session, and when it came."""

    content: str
    context: str | None
    session_id: str
    at_ms: int
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the outbox; ``free`` says that no other queue has it in its hands."""

    id: int
    queued: Queued
    server: str
    bank: str
    state: str
    free: bool
    error: str | None
    batch: str | None
    operation_id: str | None
    tried_ms: int | None


class Owner:
    """One queue as the owner of items.

    Parameters
    ----------
    is_sending
        Whether the queue has items on their way right now.
    """

    def __init__(self, is_sending: Callable[[], bool]) -> None:
        self.token = f"{process.identity()}/{os.urandom(6).hex()}"
        self.is_sending = is_sending
        self.ended: dict[int, tuple[str | None, str | None]] = {}
        """What became of items that the file does not say yet: state (``None`` when sent) and error."""
        _OWNERS[self.token] = self

    def retire(self) -> None:
        """Give up all items; harmless when repeated."""
        _OWNERS.pop(self.token, None)


_OWNERS: WeakValueDictionary[str, Owner] = WeakValueDictionary()


# SQLite takes the locks of a connection that a fork copied for the child's own: none may be open during a fork.
_GATE = process.ForkGate(FORK_PATIENCE_SECONDS)


class Outbox:
    """The outbox file of one agent folder; it is made with the first item and opened for each call again.

    Every method raises :class:`OutboxError` where the file cannot be used; nothing has changed then.
    """

    def __init__(self, agent_dir: str | Path) -> None:
        self.path = own_files.state_path(agent_dir, "outbox.db")

    def add(self, server: str, bank: str, items: Iterable[Queued], owner: Owner, now_ms: int) -> list[int]:
        """Store waiting items, all or none, and return their ids; they are on the disk when this returns."""
        with self._writing(make=True) as connection:
            return [_insert(connection, server, bank, item, owner.token, now_ms + LEASE_MS) for item in items]

    def items(self, now_ms: int, *, own: Owner | None = None, server: str | None = None) -> list[Item]:
        """Return all items, oldest first, or those for one server; of long texts only the beginning."""
        where = "" if server is None else " WHERE server = ?"
        asked = (_READ.format(content=f"substr(content, 1, {PREVIEW_BYTES})") + where + " ORDER BY id",)
        rows = self._rows(*asked, *((server,) if server is not None else ()))
        return [item for row in rows if (item := _item(row, own, now_ms)) is not None]

    def count(self) -> int:
        """Return how many items there are."""
        rows = self._rows("SELECT count(*) FROM items")
        return int(rows[0][0]) if rows else 0

    def waiting(self, server: str, bank: str, now_ms: int, own: Owner) -> list[int]:
        """Return the ids of untried items of a bank that are this owner's or nobody's, oldest first."""
        asked = "SELECT id, owner, lease_ms FROM items WHERE server = ? AND bank = ? AND state = ? ORDER BY id"
        rows = self._rows(asked, server, _bytes(bank), WAITING)
        return [id_ for id_, owner, lease_ms in rows if _is_free(owner, lease_ms, own, now_ms)]

    def claim(
        self,
        ids: Collection[int],
        states: Collection[str],
        owner: Owner,
        *,
        server: str,
        batch: str,
        operation_id: str | None,
        now_ms: int,
    ) -> list[Item]:
        """Mark items as on their way, and return them whole: those that are still in one of the states and free."""
        with self._writing() as connection:
            found = (_one(connection, id_) for id_ in ids)
            items = [item for row in found if row is not None and (item := _item(row, owner, now_ms)) is not None]
            claimed = [item for item in items if item.state in states and item.free]
            connection.executemany(
                "UPDATE items SET state = ?, owner = ?, lease_ms = ?, server = ?, batch = ?, operation_id = ?,"
                " tried_ms = ?, error = NULL WHERE id = ?",
                [
                    (SENDING, owner.token, now_ms + LEASE_MS, server, batch, operation_id, now_ms, item.id)
                    for item in claimed
                ],
            )
        return claimed

    def end(self, ids: Collection[int], state: str, error: str | None = None) -> None:
        """Note what became of items: they are failed, unknown, or waiting for anybody."""
        with self._writing() as connection:
            connection.executemany(
                "UPDATE items SET state = ?, owner = NULL, lease_ms = NULL, error = ? WHERE id = ?",
                [(state, None if error is None else _bytes(error), id_) for id_ in ids],
            )

    def delete(self, ids: Collection[int]) -> None:
        """Delete items; their text is overwritten in the file."""
        with self._writing() as connection:
            connection.executemany("DELETE FROM items WHERE id = ?", [(id_,) for id_ in ids])

    def drop(self, ids: Collection[int], now_ms: int) -> list[int]:
        """Delete items unless they are on their way; return the ids of those that were deleted."""
        with self._writing() as connection:
            found = (_one(connection, id_) for id_ in ids)
            items = [item for row in found if row is not None and (item := _item(row, None, now_ms)) is not None]
            gone = [item.id for item in items if item.state != SENDING]
            connection.executemany("DELETE FROM items WHERE id = ?", [(id_,) for id_ in gone])
        return gone

    def release(self, owner: Owner) -> None:
        """Leave an owner's items to others: untried ones wait on, the fate of those on their way is not known."""
        if not self._exists():
            return
        with self._writing() as connection:
            connection.execute(
                "UPDATE items SET state = CASE state WHEN ? THEN ? ELSE state END, owner = NULL, lease_ms = NULL"
                " WHERE owner = ?",
                (SENDING, UNKNOWN, owner.token),
            )

    def _rows(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        if not self._exists():
            return []
        with self._connected() as connection:
            return connection.execute(statement, given).fetchall() if _version(connection) else []

    @contextmanager
    def _writing(self, *, make: bool = False) -> Iterator[sqlite3.Connection]:
        if make and not self._exists():
            self._make()
        with self._connected() as connection:
            # With EXTRA a commit survives a power cut too; deleted text is overwritten.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            if not _version(connection):
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with _GATE.held():
            if _GATE.is_spoiled:
                raise OutboxError(
                    "The outbox was in use by another thread when this process was forked.",
                    where=str(self.path),
                    hint="fork while no memory call is running, or start processes by spawn",
                )
            try:
                # SQLite would follow a link.
                if not stat.S_ISREG(self.path.lstat().st_mode):
                    _refuse(self.path, "a link or a folder has its name")
                address = f"file:{quote(os.fspath(self.path.absolute()), errors='surrogateescape')}?mode=rw"
                with closing(
                    sqlite3.connect(
                        address, uri=True, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
                    )
                ) as connection:
                    connection.execute("PRAGMA trusted_schema = OFF")
                    if _version(connection) > _VERSION:
                        _refuse(self.path, "a newer release of ipy_memory made it")
                    yield connection
            except (sqlite3.Error, OSError) as error:
                _refuse(self.path, _reason(error), error)

    def _exists(self) -> bool:
        return os.path.lexists(self.path)

    def _make(self) -> None:
        try:
            own_files.make_folder(self.path.parent)
            os.close(own_files.create(self.path))
        except MemoryToolkitError as error:
            if not self._exists():  # otherwise another process was faster
                cause = error.__cause__
                _refuse(self.path, _reason(cause) if isinstance(cause, OSError) else error.message, error)


def _refuse(path: Path, reason: str, cause: BaseException | None = None) -> NoReturn:
    raise OutboxError(
        f"The outbox, which keeps memories until a server has them, cannot be used: {reason}.",
        where=str(path),
        hint="nothing was changed; check that the folder can be written and has room, and move a damaged file away",
    ) from cause


def _reason(error: sqlite3.Error | OSError) -> str:
    return (error.strerror or "unknown reason") if isinstance(error, OSError) else str(error)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _insert(connection: sqlite3.Connection, server: str, bank: str, item: Queued, owner: str, lease_ms: int) -> int:
    row = (
        server,
        _bytes(bank),
        _bytes(item.content),
        None if item.context is None else _bytes(item.context),
        None if item.tags is None else json.dumps(item.tags),
        _bytes(item.session_id),
        item.at_ms,
        WAITING,
        owner,
        lease_ms,
    )
    added = connection.execute(
        "INSERT INTO items (server, bank, content, context, tags, session_id, queued_ms, state, owner, lease_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    return int(added.lastrowid or 0)


def _one(connection: sqlite3.Connection, id_: int) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = connection.execute(
        _READ.format(content="content") + " WHERE id = ?", (id_,)
    ).fetchone()
    return found


def _item(row: Sequence[Any], own: Owner | None, now_ms: int) -> Item | None:
    """Return a row as an item in its true state, ``None`` for one that is known to be sent."""
    (
        id_,
        server,
        bank,
        content,
        context,
        tags,
        session_id,
        at_ms,
        state,
        owner,
        lease_ms,
        batch,
        operation,
        error,
        at,
    ) = row
    free = _is_free(owner, lease_ms, own, now_ms)
    error = None if error is None else _text(error)
    holder = _OWNERS.get(owner or "")
    if holder is not None and id_ in holder.ended:
        state, error = holder.ended[id_]
        free = True
    elif state == SENDING and (free or (holder is not None and not holder.is_sending())):
        state, free = UNKNOWN, True
    if state is None:
        return None
    queued = Queued(
        _text(content),
        None if context is None else _text(context),
        _text(session_id),
        at_ms,
        None if tags is None else tuple(json.loads(tags)),
    )
    return Item(id_, queued, server, _text(bank), state, free, error, batch, operation, at)


def _is_free(owner: str | None, lease_ms: int | None, own: Owner | None, now_ms: int) -> bool:
    """Return whether an item is nobody's, or the asking owner's own."""
    if owner is None or (own is not None and owner == own.token):
        return True
    if owner in _OWNERS:
        return False
    identity = owner.rpartition("/")[0]
    if identity == process.identity():
        return True  # its queue is gone
    running = process.is_running(identity)
    return now_ms > (lease_ms or 0) if running is None else not running


def _bytes(text: str) -> bytes:
    # Half of a surrogate pair is sent as it is given, but is not text for SQLite.
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    with suppress(UnicodeDecodeError):
        return raw.decode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "replace")
