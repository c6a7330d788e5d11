"""Sleep: old working memories become episodes. The memories themselves stay and are safe from any trim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.consolidation.degrade import degrade
from ipy_memory.backends.mnemopi.consolidation.episodes import OldMemory, episodes
from ipy_memory.backends.mnemopi.db import rows
from ipy_memory.backends.mnemopi.db.bank import AUTHOR_ID, AUTHOR_TYPE, Pending, within_limits
from ipy_memory.backends.mnemopi.db.rows import as_text
from ipy_memory.backends.mnemopi.store.delete import TRIM_AGE_MS, TRIM_ROWS
from ipy_memory.backends.mnemopi.store.extraction import (
    KG_PREDICATE,
    MAX_LENGTH,
    Extracted,
    FactRows,
    extract_patterns,
    extract_relations,
    heuristic_facts,
)
from ipy_memory.backends.mnemopi.store.graph import Graph
from ipy_memory.clock import memory_id
from ipy_memory.jscompat import dates
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.backends.mnemopi.consolidation.episodes import Episode
    from ipy_memory.backends.mnemopi.db.bank import Bank

SLEEP_AGE_MS = 12 * 3_600_000
"""How old a memory must be to be consolidated."""

OVERFLOW_SLACK = 100
"""How many more than needed are consolidated early, so that not every later write makes an episode of its own."""

EPISODE_SOURCE = "sleep_consolidation"
EPISODE_IMPORTANCE = 0.6

_DEFAULT_SESSION = "default"
_NOTHING = {"status": "no_op", "message": "No old working memories to consolidate"}
_COLUMNS = "id, COALESCE(embed_text, content), source, valid_until, scope, veracity"
_UNCONSOLIDATED = "consolidated_at IS NULL AND typeof(id) = 'text'"
_OLD = f"COALESCE(session_id, '{_DEFAULT_SESSION}') = :session AND timestamp < :cutoff"


def sleep(bank: Bank, *, dry_run: bool = False) -> dict[str, Any]:
    """Consolidate the bank's memories of twelve hours and more, then let episodes age.

    Parameters
    ----------
    bank
        The bank; opened for writing unless ``dry_run``.
    dry_run
        Compute the answer and write nothing.

    Returns
    -------
    dict
        What was done, in the real system's words.
    """
    return _sleep_session(bank, bank.name, bank.name, dry_run)


def sleep_all(bank: Bank, *, dry_run: bool = False) -> dict[str, Any]:
    """Consolidate the old memories of every session name in the bank, those with the oldest first."""
    sessions = _sessions_due(bank)
    counts = {"sessions_scanned": len(sessions), "sessions_consolidated": 0}
    counts |= {"items_consolidated": 0, "summaries_created": 0, "llm_used": 0, "errors": 0}
    if not sessions:
        return {"dry_run": dry_run, **_NOTHING, **counts, "session_results": []}
    results = []
    for session, eligible in sessions:
        result = _sleep_session(bank, session or _DEFAULT_SESSION, session, dry_run)
        results.append({**result, "session_id": session, "eligible": eligible})
        counts["sessions_consolidated"] += result["status"] != _NOTHING["status"]
        for name in ("items_consolidated", "summaries_created", "llm_used"):
            counts[name] += result.get(name, 0)
    return {
        "dry_run": dry_run,
        "status": _status(dry_run) if dry_run or counts["sessions_consolidated"] else _NOTHING["status"],
        **counts,
        "error_details": [],
        "session_results": results,
        "degradation": degrade(bank, dry_run=dry_run),
        "original_session": bank.name,
    }


def promote_before_trim(bank: Bank, *, incoming: int = 0) -> list[str]:
    """Consolidate whatever a trim would delete, and return the ids; call it inside the write's own transaction.

    The real engine deletes memories over a day old, and those beyond the newest thousand, unless they were
    consolidated. So before they can be in its way, those of twelve hours and more are consolidated, and on overflow
    the oldest of the younger ones as well.

    Parameters
    ----------
    bank
        The bank.
    incoming
        How many new memories are about to be written.
    """
    with bank.transaction() as connection:
        room = TRIM_ROWS - 1 - incoming  # one is left for a write of another program
        now_ms = bank.clock.now_ms()
        endangered = connection.execute(
            "SELECT count(*), COALESCE(sum(timestamp < ?), 0) FROM working_memory"
            " WHERE session_id = ? AND consolidated_at IS NULL AND COALESCE(trust_tier, '') <> 'IMPORTED'",
            (dates.iso(now_ms - TRIM_AGE_MS), bank.name),
        ).fetchone()
        if endangered[0] <= room and not endangered[1]:
            return []
        if endangered[0] > room:
            room -= OVERFLOW_SLACK
        memories = _memories(
            bank,
            "session_id = :session AND (timestamp < :cutoff OR (COALESCE(trust_tier, '') <> 'IMPORTED' AND id NOT IN"
            " (SELECT id FROM working_memory WHERE session_id = :session AND consolidated_at IS NULL"
            " AND COALESCE(trust_tier, '') <> 'IMPORTED' ORDER BY timestamp DESC, rowid DESC LIMIT :room)))",
            {"session": bank.name, "cutoff": _cutoff(bank), "room": max(0, room)},
        )
        _consolidate(bank, bank.name, bank.name, memories)
        return [memory.id for memory in memories]


def _sleep_session(bank: Bank, session: str, channel: str, dry_run: bool) -> dict[str, Any]:
    if dry_run:
        made = list(episodes(_eligible(bank, session), bank.config.max_episode_chars))
    else:
        with bank.transaction():
            made = _consolidate(bank, session, channel, _eligible(bank, session))
    if not made:
        return {"dry_run": dry_run, **_NOTHING}
    members = [member for episode in made for member in episode.members]
    return {
        "dry_run": dry_run,
        "status": _status(dry_run),
        "items_consolidated": len(members),
        "summaries_created": len(made),
        "conflicts_resolved": 0,
        "llm_used": 0,
        "method": "aaak",
        "consolidated_ids": members,
        "degradation": degrade(bank, dry_run=dry_run),
    }


def _status(dry_run: bool) -> str:
    return "dry_run" if dry_run else "consolidated"


def _cutoff(bank: Bank) -> str:
    return dates.iso(bank.clock.now_ms() - SLEEP_AGE_MS)


@within_limits
def _sessions_due(bank: Bank) -> list[tuple[str, int]]:
    with bank.reading() as connection:
        return connection.execute(
            "SELECT COALESCE(session_id, 'default'), count(*) FROM working_memory"
            " WHERE timestamp < ? AND consolidated_at IS NULL GROUP BY session_id ORDER BY min(timestamp)",
            (_cutoff(bank),),
        ).fetchall()


@within_limits
def due(bank: Bank) -> int:
    """Count the memories that :func:`sleep` would consolidate now."""
    with bank.reading() as connection:
        found = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM working_memory WHERE {_UNCONSOLIDATED} AND {_OLD} LIMIT :most)",
            _due_values(bank, bank.name),
        )
        return int(found.fetchone()[0])


@within_limits
def _eligible(bank: Bank, session: str) -> list[OldMemory]:
    return _memories(bank, _OLD, _due_values(bank, session), "LIMIT :most")


def _due_values(bank: Bank, session: str) -> dict[str, Any]:
    return {"session": session, "cutoff": _cutoff(bank), "most": bank.config.sleep_batch}


def _memories(bank: Bank, where: str, values: dict[str, Any], limit: str = "") -> list[OldMemory]:
    with bank.reading() as connection:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM working_memory WHERE {_UNCONSOLIDATED} AND {where}"
            f" ORDER BY timestamp, rowid {limit}",
            values,
        )
        return [OldMemory(row[0], as_text(row[1]) or "", *map(as_text, row[2:])) for row in rows]


def _consolidate(bank: Bank, session: str, channel: str, memories: Sequence[OldMemory]) -> list[Episode]:
    if not memories:
        return []
    now = dates.iso(bank.clock.now_ms())
    bank.connection.executemany(
        "UPDATE OR ABORT working_memory SET consolidated_at = ? WHERE id = ?", [(now, memory.id) for memory in memories]
    )
    graph = Graph(bank, session)
    made = list(episodes(memories, bank.config.max_episode_chars))
    for episode in made:
        _store(bank, graph, episode, channel, now)
    logged = {
        "session_id": session,
        "items_consolidated": len(memories),
        "summary_preview": f"{len(made)} summaries (aaak) from {len(memories)} items",
        "created_at": now,
    }
    rows.insert(bank.connection, "consolidation_log", logged)
    return made


def _store(bank: Bank, graph: Graph, episode: Episode, channel: str, now: str) -> None:
    episode_id = memory_id(episode.text, now, bank.ids.nonce())
    row = {
        "id": episode_id,
        "content": episode.text,
        "source": EPISODE_SOURCE,
        "timestamp": now,
        "session_id": graph.session,
        "importance": EPISODE_IMPORTANCE,
        "metadata_json": js.json_text(episode.metadata),
        "summary_of": ",".join(episode.members),
        "veracity": episode.veracity,
        "valid_until": episode.valid_until,
        "scope": episode.scope,
        "author_id": AUTHOR_ID,
        "author_type": AUTHOR_TYPE,
        "channel_id": channel,
        "created_at": now,
    }
    rows.insert(bank.connection, "episodic_memory", row)
    kept = {name: row[name] for name in ("content", "summary_of", "timestamp")}
    rows.check_stored(bank.connection, "episodic_memory", episode_id, kept)
    _store_patterns(FactRows(bank.connection, graph.session, episode_id, now), episode.text)
    graph.ingest(episode_id, episode.text)
    if bank.embedder is not None:
        bank.pending.append(Pending("embed", episode_id, episode.text))


def _store_patterns(rows: FactRows, text: str) -> None:
    for found in extract_patterns(text):
        rows.add_fact(found.type, found.key, found.value, found.importance, found.snippet)
        if found.event:
            rows.add_event(found.value, found.snippet)
    if js.units(text) > MAX_LENGTH:
        return
    rows.add_extracted(Extracted(facts=tuple(heuristic_facts(text))))
    for subject, object_ in extract_relations(text):
        rows.add_relation(subject, KG_PREDICATE, object_)
