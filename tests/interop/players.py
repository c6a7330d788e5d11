"""One story played by either engine, and what either recalls, in one shape."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any, Protocol

from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.consolidation.sleep import sleep
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.facts import fact_recall
from ipy_memory.backends.mnemopi.recall.single_bank import recall, recall_enhanced, touch
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.memories import forget, invalidate, update
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.jscompat.dates import iso
from tests.conformance.kinds.recall import engine_options, engine_result
from tests.interop.vectors import MODEL, WordCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.interop.engine import Engine

BANK = "proj-interop"
START = "2026-06-01T12:00:00.000Z"

_SQLITE_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_WRITE_OPTIONS = {
    **{name: name for name in ("source", "importance", "timestamp", "scope", "veracity", "metadata", "extract")},
    "memoryType": "memory_type",
    "trustTier": "trust_tier",
    "validUntil": "valid_until",
    "extractEntities": "extract_entities",
    "extractText": "extract_text",
    "embedText": "embed_text",
}


class Player(Protocol):
    """Either engine on one bank."""

    def remember(self, content: str, options: Mapping[str, Any]) -> str:
        """Write a memory."""

    def change(self, step: Mapping[str, Any], ids: Sequence[str]) -> Any:
        """Do any other step of a story."""

    def ask(self, method: str, query: str, k: int, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what a recall answers, and count it."""


class Ours:
    """Our engine."""

    def __init__(
        self,
        path: Path,
        clock: FixedClock,
        *,
        ids: FixedIds | None = None,
        linking: bool = False,
        vectors: bool = False,
    ) -> None:
        self.clock = clock
        config = EngineConfig(proactive_linking=linking)
        embedder = WordCounts() if vectors else None
        self.bank = Bank.open(path, BANK, clock=clock, ids=ids or FixedIds(), config=config, embedder=embedder)

    def close(self) -> None:
        """Close the bank."""
        self.bank.close()

    def remember(self, content: str, options: Mapping[str, Any]) -> str:
        given = {_WRITE_OPTIONS[name]: value for name, value in options.items()}
        id_ = remember(self.bank, content, RememberOptions(trim=True, **given))
        drain(self.bank)
        return id_

    def change(self, step: Mapping[str, Any], ids: Sequence[str]) -> Any:
        if step["op"] == "advance":
            self.clock.advance(step["ms"])
            return None
        if step["op"] == "sleep":
            done = sleep(self.bank)
            drain(self.bank)
            return done
        id_ = ids[step["of"]]
        if step["op"] == "update":
            written = update(self.bank, id_, content=step.get("content"), importance=step.get("importance"))
            drain(self.bank)
            return written is not None
        if step["op"] == "forget":
            return forget(self.bank, id_)
        return invalidate(self.bank, id_, None if step["by"] is None else ids[step["by"]]) is not None

    def ask(self, method: str, query: str, k: int, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        if method == "beam.factRecall":
            return [engine_result(hit) for hit in fact_recall(self.bank, query, k)]
        how = recall if method == "recall" else recall_enhanced
        hits = how(self.bank, query, k, engine_options(options))
        touch(self.bank, {(hit.tier or "", hit.id or ""): 1 for hit in hits})
        return [engine_result(hit) for hit in hits]


class Theirs:
    """The real engine."""

    def __init__(
        self, engine: Engine, path: Path, clock: FixedClock, *, linking: bool = False, vectors: bool = False
    ) -> None:
        self.engine = engine
        self.clock = clock
        engine.clock(iso(clock.now_ms()))
        embedding = {"noEmbeddings": False, "embeddingModel": MODEL} if vectors else {}
        self.bank = engine.open(path, BANK, proactiveLinking=linking, **embedding)

    def close(self) -> None:
        """Close the bank."""
        self.bank.close()

    def remember(self, content: str, options: Mapping[str, Any]) -> str:
        id_: str = self.bank.call("remember", content, options)
        self.bank.drain()
        return id_

    def change(self, step: Mapping[str, Any], ids: Sequence[str]) -> Any:
        if step["op"] == "advance":
            self.clock.advance(step["ms"])
            self.engine.clock(iso(self.clock.now_ms()))
            return None
        if step["op"] == "sleep":
            done = self.bank.call("sleep")
            self.bank.drain()
            return done
        id_ = ids[step["of"]]
        if step["op"] == "update":
            done = self.bank.call("update", id_, step.get("content"), step.get("importance"))
            self.bank.drain()
            return done
        if step["op"] == "forget":
            return self.bank.call("forget", id_)
        return self.bank.call("beam.invalidate", id_, None if step["by"] is None else ids[step["by"]])

    def ask(self, method: str, query: str, k: int, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        args = (query, k) if method == "beam.factRecall" else (query, k, dict(options))
        found: list[dict[str, Any]] = self.bank.call(method, *args)
        return found


def play(player: Player, story: Sequence[Mapping[str, Any]], ids: list[str]) -> list[Any]:
    """Play a story; ``ids`` receives the id of each write. Return what the steps answered."""
    answers: list[Any] = []
    for step in story:
        if step["op"] == "remember":
            ids.append(player.remember(step["content"], step["options"]))
            answers.append(ids[-1])
        else:
            answers.append(player.change(step, ids))
    return answers


def tables(path: Path) -> dict[str, list[Any]]:
    """Return the rows of every table of a bank, without what differs from run to run by nature."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            if not name.startswith(("sqlite_", "fts_"))
        ]
        found = {
            name: [_row(cells) for cells in connection.execute(f"SELECT rowid, * FROM {name} ORDER BY rowid")]
            for name in names
        }
    finally:
        connection.close()
    # Which of a memory's edges is written first follows from the order in which an index gives the others.
    found["graph_edges"] = sorted((row[2:] for row in found["graph_edges"]), key=str)
    return found


def _row(cells: Sequence[Any]) -> list[Any]:
    # CURRENT_TIMESTAMP is SQLite's own clock, which cannot be stopped.
    return ["<now>" if isinstance(cell, str) and _SQLITE_TIME.fullmatch(cell) else cell for cell in cells]


def differences(theirs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in words where two answers differ: rows, order, and every field that both sides have."""
    found = []
    if [hit["id"] for hit in theirs] != [hit["id"] for hit in ours]:
        found.append(f"ids {[hit['id'] for hit in theirs]} != {[hit['id'] for hit in ours]}")
    for place, (real, own) in enumerate(zip(theirs, ours, strict=False)):
        for name in own:
            if name not in real:
                if own[name] is not None:
                    found.append(f"{place}: {name} is only ours")
            elif plain(real[name]) != plain(own[name]):
                found.append(f"{place}: {name} {real[name]!r} != {own[name]!r}")
    return found


def plain(value: Any) -> Any:
    """Return a value as JSON carries it."""
    return json.loads(json.dumps(value))
