"""The tables, indexes and triggers of a bank, and how a file is checked against them.

Only this module knows the SQL of the schema. Objects are created in a fixed order, because the planner breaks
ties between indexes by it, and ties decide the order of equal hits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ipy_memory.errors import NewerBankError, NotABankError, OlderBankError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

_MEMORY_TAIL = """
    recall_count INTEGER DEFAULT 0, last_recalled TIMESTAMP DEFAULT NULL, valid_until TIMESTAMP DEFAULT NULL,
    superseded_by TEXT DEFAULT NULL, scope TEXT DEFAULT 'global', author_id TEXT DEFAULT NULL,
    author_type TEXT DEFAULT NULL, channel_id TEXT DEFAULT NULL, trust_tier TEXT DEFAULT 'STATED',
    validator TEXT DEFAULT NULL, validated_at TIMESTAMP DEFAULT NULL, validation_count INTEGER DEFAULT 0,
    event_date TEXT DEFAULT NULL, event_date_precision TEXT DEFAULT 'unknown', temporal_tags TEXT DEFAULT '[]',
    corrected_by INTEGER DEFAULT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP"""
_SESSION = "session_id TEXT DEFAULT 'default'"

TABLES: Mapping[str, str] = {
    "working_memory": f"""
    id TEXT PRIMARY KEY, content TEXT NOT NULL, embed_text TEXT DEFAULT NULL, source TEXT, timestamp TEXT,
    {_SESSION}, importance REAL DEFAULT 0.5, metadata_json TEXT, veracity TEXT DEFAULT 'unknown',
    memory_type TEXT DEFAULT 'unknown', consolidated_at TEXT,{_MEMORY_TAIL}""",
    "episodic_memory": f"""
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, content TEXT NOT NULL, source TEXT,
    timestamp TEXT, {_SESSION}, importance REAL DEFAULT 0.5, metadata_json TEXT, summary_of TEXT DEFAULT '',
    veracity TEXT DEFAULT 'unknown', tier INTEGER DEFAULT 1, degraded_at TEXT,
    memory_type TEXT DEFAULT 'unknown', binary_vector BLOB,{_MEMORY_TAIL}""",
    "scratchpad": f"""
    id TEXT PRIMARY KEY, content TEXT NOT NULL, {_SESSION},
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP""",
    "memoria_facts": f"""
    id INTEGER PRIMARY KEY AUTOINCREMENT, {_SESSION}, message_idx INTEGER, fact_type TEXT, key TEXT, value TEXT,
    context_snippet TEXT, importance REAL DEFAULT 0.5, timestamp TEXT, version_id INTEGER DEFAULT 0,
    previous_value TEXT, updated_msg_idx INTEGER, valid_from_msg_idx INTEGER, valid_to_msg_idx INTEGER,
    source_memory_id TEXT""",
    "memoria_timelines": f"""
    event_id INTEGER PRIMARY KEY AUTOINCREMENT, {_SESSION}, date TEXT, message_idx INTEGER, description TEXT,
    source TEXT, source_memory_id TEXT""",
    "memoria_instructions": f"""
    id INTEGER PRIMARY KEY AUTOINCREMENT, {_SESSION}, message_idx INTEGER, instruction TEXT,
    active INTEGER DEFAULT 1, topic TEXT, context_snippet TEXT, source_memory_id TEXT""",
    "memoria_preferences": f"""
    id INTEGER PRIMARY KEY AUTOINCREMENT, {_SESSION}, message_idx INTEGER, preference TEXT, topic TEXT,
    evolution TEXT, context_snippet TEXT, source_memory_id TEXT""",
    "memoria_kg": f"""
    id INTEGER PRIMARY KEY AUTOINCREMENT, {_SESSION}, subject TEXT, predicate TEXT, object TEXT,
    message_idx INTEGER, confidence REAL DEFAULT 0.7, source_memory_id TEXT""",
    "consolidation_log": """
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, items_consolidated INTEGER, summary_preview TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP""",
    "memory_embeddings": """
    memory_id TEXT PRIMARY KEY, embedding_json TEXT NOT NULL, model TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP""",
    "memory_validations": """
    validation_id INTEGER PRIMARY KEY AUTOINCREMENT, memory_id TEXT NOT NULL, validator TEXT NOT NULL,
    validated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, action TEXT NOT NULL, new_content TEXT, note TEXT""",
    "facts": """
    fact_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, subject TEXT NOT NULL, predicate TEXT NOT NULL,
    object TEXT NOT NULL, timestamp TEXT, source_msg_id TEXT, confidence REAL DEFAULT 1.0,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP""",
    "annotations": """
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_id TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
    source TEXT, confidence REAL DEFAULT 1.0, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP""",
    "triples": """
    id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL,
    valid_from TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, valid_until TEXT, source TEXT,
    confidence REAL DEFAULT 1.0, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP""",
    "gists": """
    id TEXT PRIMARY KEY, text TEXT NOT NULL, timestamp TEXT, participants_json TEXT, location TEXT, emotion TEXT,
    time_scope TEXT, memory_id TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP""",
    "graph_edges": """
    id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, target TEXT NOT NULL, edge_type TEXT NOT NULL,
    weight REAL DEFAULT 1.0, timestamp TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    UNIQUE(source, target, edge_type)""",
}
"""Every ordinary table, and what it is created with, in the order of creation."""

_FULL_TEXT: Mapping[str, str] = {
    "fts_episodes": "content, content='episodic_memory', content_rowid='rowid'",
    "fts_working": "id UNINDEXED, content",
    "fts_facts": "subject, predicate, object, content='facts'",
}

_TRIGGER_PARTS: Mapping[str, tuple[str, str]] = {
    "em_ai": (
        "AFTER INSERT ON episodic_memory",
        "INSERT INTO fts_episodes(rowid, content) VALUES (new.rowid, new.content);",
    ),
    "em_ad": (
        "AFTER DELETE ON episodic_memory",
        "INSERT INTO fts_episodes(fts_episodes, rowid, content) VALUES ('delete', old.rowid, old.content);",
    ),
    "em_au": (
        "AFTER UPDATE ON episodic_memory",
        (
            "INSERT INTO fts_episodes(fts_episodes, rowid, content) VALUES ('delete', old.rowid, old.content);"
            " INSERT INTO fts_episodes(rowid, content) VALUES (new.rowid, new.content);"
        ),
    ),
    "wm_ai": (
        "AFTER INSERT ON working_memory",
        "INSERT INTO fts_working(id, content) VALUES (new.id, COALESCE(new.embed_text, new.content));",
    ),
    "wm_ad": ("AFTER DELETE ON working_memory", "DELETE FROM fts_working WHERE id = old.id;"),
    "wm_au": (
        "AFTER UPDATE OF content, embed_text ON working_memory",
        (
            "DELETE FROM fts_working WHERE id = old.id;"
            " INSERT INTO fts_working(id, content) VALUES (new.id, COALESCE(new.embed_text, new.content));"
        ),
    ),
    "trim_validations_to_3": (
        "AFTER INSERT ON memory_validations",
        (
            "DELETE FROM memory_validations WHERE memory_id = NEW.memory_id AND validation_id NOT IN"
            " (SELECT validation_id FROM memory_validations WHERE memory_id = NEW.memory_id"
            " ORDER BY validation_id DESC LIMIT 3);"
        ),
    ),
    "facts_ai": (
        "AFTER INSERT ON facts",
        (
            "INSERT INTO fts_facts(rowid, subject, predicate, object)"
            " VALUES (new.rowid, new.subject, new.predicate, new.object);"
        ),
    ),
    "facts_ad": (
        "AFTER DELETE ON facts",
        (
            "INSERT INTO fts_facts(fts_facts, rowid, subject, predicate, object)"
            " VALUES ('delete', old.rowid, old.subject, old.predicate, old.object);"
        ),
    ),
}

TRIGGERS: Mapping[str, str] = {
    name: f"CREATE TRIGGER {name} {event} BEGIN {body} END" for name, (event, body) in _TRIGGER_PARTS.items()
}
"""The statement that creates each trigger."""

REPLACED_TRIGGERS = frozenset({"wm_ai", "wm_au"})
"""Triggers that each opening for writing creates again: older banks index the content only."""

_INDEXES: Mapping[str, str] = {
    "idx_wm_session": "working_memory(session_id)",
    "idx_wm_timestamp": "working_memory(timestamp)",
    "idx_wm_source": "working_memory(source)",
    "idx_em_session": "episodic_memory(session_id)",
    "idx_em_timestamp": "episodic_memory(timestamp)",
    "idx_em_source": "episodic_memory(source)",
    "idx_em_tier": "episodic_memory(tier)",
    "idx_wm_unconsolidated": "working_memory(session_id, timestamp) WHERE consolidated_at IS NULL",
    "idx_sp_session": "scratchpad(session_id)",
    "idx_facts_key": "memoria_facts(key)",
    "idx_facts_type": "memoria_facts(fact_type)",
    "idx_facts_session": "memoria_facts(session_id)",
    "idx_timelines_date": "memoria_timelines(date)",
    "idx_timelines_session": "memoria_timelines(session_id)",
    "idx_instr_session": "memoria_instructions(session_id)",
    "idx_instr_active": "memoria_instructions(active)",
    "idx_pref_session": "memoria_preferences(session_id)",
    "idx_kg_subject": "memoria_kg(subject)",
    "idx_kg_predicate": "memoria_kg(predicate)",
    "idx_kg_session": "memoria_kg(session_id)",
    "idx_em_scope_imp": "episodic_memory(scope, importance) WHERE superseded_by IS NULL",
    "idx_wm_session_recall": "working_memory(session_id, last_recalled) WHERE valid_until IS NULL",
    "idx_mem_emb_type": "memory_embeddings(memory_id, model)",
    "idx_wm_author": "working_memory(author_id)",
    "idx_wm_channel": "working_memory(channel_id)",
    "idx_em_author": "episodic_memory(author_id)",
    "idx_em_channel": "episodic_memory(channel_id)",
    "idx_wm_validator": "working_memory(validator)",
    "idx_wm_validated_at": "working_memory(validated_at)",
    "idx_validations_memory": "memory_validations(memory_id)",
    "idx_validations_validator": "memory_validations(validator)",
    "idx_facts_subject": "facts(subject)",
    "idx_facts_source": "facts(source_msg_id)",
    "idx_wm_event_date": "working_memory(event_date)",
    "idx_em_event_date": "episodic_memory(event_date)",
    "idx_annot_memory_kind": "annotations(memory_id, kind)",
    "idx_annot_kind_value": "annotations(kind, value)",
    "idx_annot_unique": "annotations(memory_id, kind, value)",
    "idx_triples_subject": "triples(subject)",
    "idx_triples_predicate": "triples(predicate)",
    "idx_triples_object": "triples(object)",
    "idx_triples_valid_from": "triples(valid_from)",
    "idx_facts_predicate": "facts(predicate)",
    "idx_facts_object": "facts(object)",
    "idx_facts_source_msg": "facts(source_msg_id)",
    "idx_edges_source": "graph_edges(source)",
    "idx_edges_target": "graph_edges(target)",
    "idx_edges_type": "graph_edges(edge_type)",
}
_UNIQUE_INDEXES = frozenset({"idx_annot_unique"})

FULL_TEXT_TABLES = tuple(_FULL_TEXT)
"""The three full-text mirrors."""

NEEDED: Mapping[str, frozenset[str]] = {
    "working_memory": frozenset({"id", "content", "timestamp", "session_id", "importance", "source"}),
    "episodic_memory": frozenset({"rowid", "id", "content", "timestamp", "session_id", "importance", "source"}),
    "facts": frozenset({"fact_id", "session_id", "subject", "predicate", "object"}),
}
"""Columns without which a bank cannot be understood; what else is missing reads as its default."""

_SPACES = re.compile(r"\s+")


def create_schema(connection: sqlite3.Connection, now: str) -> None:
    """Create what is absent and leave everything else alone; a second call changes no byte.

    Parameters
    ----------
    connection
        Open for writing, inside a transaction.
    now
        ISO instant given to rows whose ``consolidated_at`` column did not exist.
    """
    existing = _objects(connection)
    for name, body in TABLES.items():
        if name not in existing:
            connection.execute(f"CREATE TABLE {name} ({body})")
        else:
            _add_columns(connection, name, now)
    for name, body in _FULL_TEXT.items():
        if name not in existing:
            connection.execute(f"CREATE VIRTUAL TABLE {name} USING fts5({body})")
    for name, statement in TRIGGERS.items():
        if name not in existing:
            connection.execute(statement)
        elif name in REPLACED_TRIGGERS and not same_sql(existing[name], statement):
            connection.execute(f"DROP TRIGGER {name}")
            connection.execute(statement)
    for name, target in _INDEXES.items():
        if name not in existing:
            unique = "UNIQUE " if name in _UNIQUE_INDEXES else ""
            connection.execute(f"CREATE {unique}INDEX {name} ON {target}")


def check_schema(connection: sqlite3.Connection, where: str) -> None:
    """Raise if the file is not a bank, or one that this release does not know.

    Raises
    ------
    NotABankError
        The table of working memories is missing, or something else has the name of a table.
    NewerBankError
        A version mark is set, or a needed column is missing while others are there that this release does not know.
    OlderBankError
        A needed column is missing, and nothing new is there.
    """
    for pragma in ("user_version", "application_id"):
        if connection.execute(f"PRAGMA {pragma}").fetchone()[0]:
            raise NewerBankError(
                f"The bank carries a {pragma} that this release does not know.",
                where=where,
                hint="Update ipy_memory; the file was not touched.",
            )
    check_kinds(connection, where)
    for table, needed in NEEDED.items():
        present = columns(connection, table)
        if not present:
            if table == "working_memory":
                raise NotABankError(
                    "The file holds no table working_memory, so it is not a memory bank.",
                    where=where,
                    hint="Check the path of the bank.",
                )
        elif missing := sorted(needed - set(present)):
            lacks = f"The table {table} lacks the column {missing[0]}"
            if unknown := sorted(set(present) - set(column_defaults(table))):
                raise NewerBankError(
                    f"{lacks} and has one that this release does not know ({unknown[0]}).",
                    where=where,
                    hint="Update ipy_memory; the file was not touched.",
                )
            raise OlderBankError(
                f"{lacks}: it is of an older form than this release reads.",
                where=where,
                hint="Open it with the program that wrote it; the file was not touched.",
            )


def check_kinds(connection: sqlite3.Connection, where: str) -> None:
    """Raise if a view or a virtual table has the name of a table of ours: a query of it could do or cost anything.

    Raises
    ------
    NotABankError
        Which name it is.
    """
    # Only views and virtual tables have no page of their own.
    for kind, name in connection.execute("SELECT type, lower(name) FROM main.sqlite_master WHERE rootpage = 0"):
        if (kind == "view" and name in _FULL_TEXT) or (kind in {"table", "view"} and name in TABLES):
            raise NotABankError(
                f"{name} is a {'view' if kind == 'view' else 'virtual table'} where a memory bank has a table.",
                where=where,
                hint="The file was made by another program; it was not touched.",
            )


def is_blank(connection: sqlite3.Connection) -> bool:
    """Return whether the file holds no object at all, so that a bank may be made in it."""
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, generated ones included; empty if there is no such table."""
    found = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", (table,))
    return tuple(row[0] for row in found)


def column_defaults(table: str) -> Mapping[str, str]:
    """Return column name -> SQL text of its default, for every column of a table of ours."""
    return {name: default for name, _, default in _column_parts(table)}


def _objects(connection: sqlite3.Connection) -> dict[str, str]:
    # SQLite tells names apart by more than their case.
    return {row[0].lower(): row[1] or "" for row in connection.execute("SELECT name, sql FROM sqlite_master")}


def is_own_index(name: str) -> bool:
    """Return whether the schema has an index of this name."""
    return name in _INDEXES


def quoted(name: str) -> str:
    """Return a name of any kind as SQL."""
    return '"' + name.replace('"', '""') + '"'


def same_sql(stored: str, ours: str) -> bool:
    """Return whether two statements are one but for their white space, case and ``IF NOT EXISTS``."""
    return _plain(stored) == _plain(ours)


def _plain(sql: str) -> str:
    return _SPACES.sub("", sql).lower().replace("ifnotexists", "")


def _add_columns(connection: sqlite3.Connection, table: str, now: str) -> None:
    present = set(columns(connection, table))
    for name, declaration, default in _column_parts(table):
        if name in present or "KEY" in declaration or "NOT NULL" in declaration:
            continue
        if default == "CURRENT_TIMESTAMP":  # SQLite adds no column whose default is not constant
            declaration = declaration.replace("CURRENT_TIMESTAMP", "NULL")
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {declaration}")
        if name == "consolidated_at":
            connection.execute(f"UPDATE OR ABORT {table} SET consolidated_at = ?", (now,))


def _column_parts(table: str) -> list[tuple[str, str, str]]:
    parts = []
    for piece in _SPACES.sub(" ", TABLES[table]).strip().split(", "):
        name = piece.split(" ", 1)[0]
        if name.startswith("UNIQUE(") or "(" in piece or ")" in piece:
            continue
        parts.append((name, piece, piece.partition(" DEFAULT ")[2] or "NULL"))
    return parts
