"""One stored memory: finding it, changing it, taking it back, and undoing that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ipy_memory.backends.mnemopi.db import rows
from ipy_memory.backends.mnemopi.db.bank import Pending, within_limits
from ipy_memory.backends.mnemopi.db.rows import as_number, as_text, as_whole
from ipy_memory.backends.mnemopi.db.visibility import names_of
from ipy_memory.backends.mnemopi.store.delete import cascade_delete, delete_traces, scrub
from ipy_memory.errors import ChangedSinceError, EditRefusedError
from ipy_memory.jscompat.dates import iso
from ipy_memory.jscompat.strings import json_text, well_formed
from ipy_memory.model import Memory
from ipy_memory.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank

Store = Literal["working", "episodic", "fact"]

_FIELDS = {
    "id": "id",
    "content": "content",
    "source": "source",
    "timestamp": "timestamp",
    "created_at": "created_at",
    "importance": "importance",
    "veracity": "veracity",
    "type": "memory_type",
    "session_id": "session_id",
    "scope": "scope",
    "metadata": "metadata_json",
    "valid_until": "valid_until",
    "superseded_by": "superseded_by",
    "recall_count": "recall_count",
    "last_recalled": "last_recalled",
}
_READ: Mapping[str, Callable[[object], object]] = {"importance": as_number, "recall_count": as_whole}


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The columns that an edit wrote, before and after it, so that :func:`restore` can undo just this."""

    id: str
    store: Store
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@within_limits
def find(bank: Bank, memory_id: str) -> Memory | None:
    """Return a memory in full: a working row of any session, an episode or a fact this bank shows."""
    memory_id = well_formed(memory_id)
    with bank.reading() as connection:
        working, episodic = _cells(bank, "working_memory"), _cells(bank, "episodic_memory")
        if row := connection.execute(f"SELECT {working} FROM working_memory WHERE id = ?", (memory_id,)).fetchone():
            return _memory(bank, "working", row)
        if row := connection.execute(
            f"SELECT {episodic} FROM episodic_memory WHERE id = ? AND (session_id = ? OR scope = 'global')",
            (memory_id, bank.name),
        ).fetchone():
            return _memory(bank, "episodic", row)
        fact = connection.execute(
            "SELECT subject, predicate, object, source_msg_id, timestamp, created_at, confidence, session_id FROM facts"
            " WHERE fact_id = ? AND session_id = ?",
            (memory_id, bank.name),
        ).fetchone()
    if fact is None:
        return None
    subject, predicate, object_, source_id = map(as_text, fact[:4])
    timestamp, created_at, confidence, session_id = fact[4:]
    parts = {"subject": subject, "predicate": predicate, "object": object_, "source_msg_id": source_id}
    return Memory(
        id=memory_id,
        bank=bank.name,
        store="fact",
        content=f"{subject} {predicate} {object_}",
        source="facts",
        timestamp=as_text(timestamp),
        created_at=as_text(created_at),
        importance=as_number(confidence),
        session_id=session_id,
        metadata=json_text(parts),
    )


def _memory(bank: Bank, store: Store, row: tuple[Any, ...]) -> Memory:
    read: dict[str, Any] = {name: _READ.get(name, as_text)(cell) for name, cell in zip(_FIELDS, row, strict=True)}
    return Memory(bank=bank.name, store=store, **{**read, "content": read["content"] or ""})


def _cells(bank: Bank, table: str) -> str:
    """Return what is read of a row; a column that an older bank lacks reads as its default."""
    names = names_of(bank, table)
    return ", ".join(names[column] for column in _FIELDS.values())


def update(
    bank: Bank, memory_id: str, *, content: str | None = None, importance: float | None = None
) -> Rewrite | None:
    """Change text or importance of a working row of this bank's session; ``None`` if there is none.

    What was made from the old text (facts, gists) stays, as in the real system.
    """
    changes: dict[str, object] = {}
    if content is not None:
        changes |= {"content": well_formed(redact(content)), "embed_text": None}
    if importance is not None:
        changes["importance"] = importance
    memory_id = well_formed(memory_id)
    done = _rewrite(bank, "working", memory_id, changes, "session_id = ?", (bank.name,)) if changes else None
    if done and content is not None:
        _embed(bank, memory_id, str(changes["content"]))
    return done


def _rewrite(
    bank: Bank, store: Store, memory_id: str, changes: Mapping[str, Any], reach: str, values: Sequence[object]
) -> Rewrite | None:
    """Write columns of one row, if the condition ``reach`` holds for it."""
    with bank.transaction() as connection:
        row = connection.execute(
            f"SELECT {', '.join(changes)} FROM {store}_memory WHERE id = ? AND {reach}", (memory_id, *values)
        ).fetchone()
        if row is None:
            return None
        written = ", ".join(f"{name} = ?" for name in changes)
        connection.execute(
            f"UPDATE OR ABORT {store}_memory SET {written} WHERE id = ? AND {reach}",
            (*changes.values(), memory_id, *values),
        )
        rows.check_stored(connection, f"{store}_memory", memory_id, changes)
    return Rewrite(memory_id, store, dict(zip(changes, row, strict=True)), changes)


def _embed(bank: Bank, memory_id: str, content: str) -> None:
    if bank.embedder is not None:
        bank.pending.append(Pending("embed", memory_id, content))


def forget(bank: Bank, memory_id: str, *, purge: bool = False) -> bool:
    """Delete a working row of this bank's session with what was made from it; return whether there was one.

    Parameters
    ----------
    bank, memory_id
        Which memory of which bank; the bank is open for writing.
    purge
        Also delete its triples, the reviews of it and the summaries of it alone, and rewrite the file so that no
        byte of the text stays in it.

    Raises
    ------
    EditRefusedError
        A purge of a memory that is part of a summary of several; nothing was changed.
    """
    memory_id = well_formed(memory_id)
    if purge:
        with bank.reading() as connection:
            connection.execute("PRAGMA secure_delete = ON")
    with bank.transaction() as connection:
        known = connection.execute(
            "SELECT 1 FROM working_memory WHERE id = ? AND session_id = ?", (memory_id, bank.name)
        ).fetchone()
        if not known:
            return False
        cascade_delete(connection, [memory_id])
        if purge:
            summaries = _summaries_of(bank, memory_id)
            cascade_delete(connection, summaries)
            connection.executemany("DELETE FROM episodic_memory WHERE id = ?", [(summary,) for summary in summaries])
            for trace in (memory_id, *summaries):
                delete_traces(connection, trace)
    bank.pending[:] = [job for job in bank.pending if job.memory_id != memory_id]
    if purge:
        scrub(bank)
    return True


def _summaries_of(bank: Bank, memory_id: str) -> list[str]:
    found = []
    for summary, parts in bank.connection.execute(
        "SELECT id, summary_of FROM episodic_memory WHERE instr(summary_of, ?) > 0", (memory_id,)
    ):
        others = {part.strip() for part in parts.split(",")} - {""}
        if memory_id not in others:
            continue
        if others != {memory_id}:
            raise EditRefusedError(
                f"Memory {memory_id} is part of a summary of {len(others)} memories ({summary}).",
                where=bank.where,
                hint="Forget it without purging, or purge the whole bank.",
            )
        found.append(summary)
    return found


def invalidate(bank: Bank, memory_id: str, replacement: str | None = None) -> Rewrite | None:
    """End a working or episodic memory now, naming what replaces it; the answer can be undone."""
    ending = {
        "valid_until": iso(bank.clock.now_ms()),
        "superseded_by": None if replacement is None else well_formed(replacement),
    }
    reach = "(session_id = ? OR scope = 'global')"
    stores: tuple[Store, Store] = ("working", "episodic")
    with bank.transaction():
        done = (_rewrite(bank, store, well_formed(memory_id), ending, reach, (bank.name,)) for store in stores)
        return next(filter(None, done), None)


def restore(bank: Bank, done: Rewrite, *, force: bool = False) -> bool:
    """Write back what an edit replaced, and nothing else; return whether the memory is there.

    Raises
    ------
    ChangedSinceError
        Something else was written there after the edit; with ``force`` it is replaced.
    """
    with bank.transaction() as connection:
        row = connection.execute(
            f"SELECT {', '.join(done.after)} FROM {done.store}_memory WHERE id = ?", (done.id,)
        ).fetchone()
        if row is None:
            return False
        now = dict(zip(done.after, row, strict=True))
        # What is indexed beside the text may be filled in by anyone who stores the same text again.
        told = [name for name in done.after if name != "embed_text"]
        if not force and any(now[name] != done.after[name] for name in told):
            raise ChangedSinceError(
                f"Memory {done.id} was changed again after this edit; nothing was written.",
                {name: now[name] for name in told},
                {name: done.before[name] for name in told},
                where=bank.where,
                hint="%memory undo --force writes the former values all the same",
            )
        connection.execute(
            f"UPDATE OR ABORT {done.store}_memory SET {', '.join(f'{name} = ?' for name in done.before)} WHERE id = ?",
            (*done.before.values(), done.id),
        )
        rows.check_stored(connection, f"{done.store}_memory", done.id, done.before)
    if "content" in done.before:
        _embed(bank, done.id, as_text(done.before["embed_text"]) or as_text(done.before["content"]) or "")
    return True
