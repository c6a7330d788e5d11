"""The banks that are measured: written by our own engine, of any size, with or without vectors."""

from __future__ import annotations

import json
import shutil
import sqlite3
from array import array
from pathlib import Path

from benchmarks.texts import Texts
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.clock import FixedIds, SystemClock, memory_id
from ipy_memory.jscompat.dates import iso
from ipy_memory.model import RetainItem
from tests.interop.vectors import MODEL

BANK = "bench"
VECTOR_SIZE = 768
_CHUNK = 1000
_AWAKE = 100
"""How many of the newest memories have not been consolidated yet."""

_ROWS_PER_EPISODE = 50
_POOL = 500
_READ = 1000


def make(folder: Path, rows: int, *, vectors: bool) -> Path:
    """Return the bank of a size, made if it is not in the folder yet."""
    path = folder / f"{rows}{'-vectors' if vectors else ''}.db"
    if path.exists():
        return path
    part = path.with_suffix(".part")
    if vectors:
        shutil.copy(make(folder, rows, vectors=False), part)
        _add_vectors(part)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        _write(part, rows)
    part.rename(path)
    return path


def _write(path: Path, rows: int) -> None:
    path.unlink(missing_ok=True)
    source = Texts(rows)
    clock = SystemClock()
    ids = FixedIds()
    with Bank.open(path, BANK, clock=clock, ids=ids) as bank:
        texts = [source.memory() for _ in range(rows)]
        for start in range(0, rows, _CHUNK):
            items = [RetainItem(text) for text in texts[start : start + _CHUNK]]
            assert not retain_items(bank, items, session_id="bench", cwd="/proj/bench").failures
        now = clock.now_ms()
        with bank.transaction() as connection:
            # The memories of two years, all but the newest of them consolidated.
            step = 2 * 365 * 86_400_000 // rows
            known = [row[0] for row in connection.execute("SELECT rowid FROM working_memory ORDER BY rowid")]
            for place, rowid in enumerate(known):
                written = iso(now - step * (len(known) - place)) if place < len(known) - _AWAKE else iso(now)
                connection.execute(
                    "UPDATE working_memory SET timestamp = ?, consolidated_at = ? WHERE rowid = ?",
                    (written, written if place < len(known) - _AWAKE else None, rowid),
                )
            for place in range(0, rows, _ROWS_PER_EPISODE):
                written = iso(now - step * (rows - place))
                text = "[coding-agent-retain] " + " | ".join(texts[place : place + 4])
                connection.execute(
                    "INSERT INTO episodic_memory (id, content, source, timestamp, created_at, session_id, channel_id,"
                    " importance, scope, veracity) VALUES (?, ?, 'sleep_consolidation', ?, ?, ?, ?, 0.6, 'session',"
                    " 'tool')",
                    (memory_id(text, written, ids.nonce()), text, written, written, BANK, BANK),
                )
        bank.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _add_vectors(path: Path) -> None:
    draw = Texts(1).draw
    pool = []
    for _ in range(_POOL):
        vector = [draw.gauss(0, 1) for _ in range(VECTOR_SIZE)]
        length = sum(part * part for part in vector) ** 0.5
        pool.append(json.dumps(array("f", (part / length for part in vector)).tolist(), separators=(",", ":")))
    connection = sqlite3.connect(path)
    with connection:
        for table in ("working_memory", "episodic_memory"):
            ids = connection.execute(f"SELECT id FROM {table} ORDER BY timestamp DESC").fetchall()
            # Neither engine reads the vectors of older rows, but the real one computes those that are missing.
            connection.executemany(
                "INSERT INTO memory_embeddings (memory_id, embedding_json, model) VALUES (?, ?, ?)",
                ((id_, pool[place % _POOL] if place < _READ else "[1]", MODEL) for place, (id_,) in enumerate(ids)),
            )
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def copied(path: Path, folder: Path) -> Path:
    """Return a fresh copy of a bank, to be written."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, folder / "bank.db"))


def many(folder: Path, count: int) -> Path:
    """Return a database folder with so many small banks in it, made if it is not there yet."""
    root = folder / f"banks-{count}"
    if root.exists():
        return root
    part = folder / f"banks-{count}.part"
    shutil.rmtree(part, ignore_errors=True)
    model = make(folder, 100, vectors=False)
    for number in range(count):
        target = part / "banks" / f"project-{number}"
        target.mkdir(parents=True)
        shutil.copy(model, target / "mnemopi.db")
    shutil.copy(model, part / "mnemopi.db")
    part.rename(root)
    return root
