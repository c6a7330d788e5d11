"""What is acknowledged is stored, whatever the tables of a foreign file are made to do with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipy_memory.backends.mnemopi.consolidation.sleep import sleep
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.schema import TABLES
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.session import MemorySession, open_session

NOW = "2026-06-01T12:00:00.000Z"
FACT = "I prefer harbour tea"
HOUR_MS = 3_600_000


def made(path: Path, *statements: str) -> None:
    """Make a file that is a bank but for what the statements make first."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("odd", 1, lambda value: value, deterministic=True)
        for statement in statements:
            connection.execute(statement)
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'working_memory'").fetchone():
            connection.execute(f"CREATE TABLE working_memory ({TABLES['working_memory']})")
    Bank.open(path, "default", clock=FixedClock(NOW)).close()


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def column(path: Path, query: str) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(query)]


def opened(path: Path, linking: bool = False) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/work/shop",
        database=path,
        settings={"mnemopi.scoping": "global", "mnemopi.proactiveLinking": linking},
        agent_dir=path.parent / "agent",
        env={"HOME": str(path.parent)},
        clock=FixedClock(NOW),
        ids=FixedIds(),
    )


def table(name: str, old: str, new: str) -> str:
    assert old in TABLES[name]
    return f"CREATE TABLE {name} ({TABLES[name].replace(old, new, 1)})"


SWALLOWING = {
    "a column that replaces others": table("working_memory", "source TEXT", "source TEXT UNIQUE ON CONFLICT REPLACE"),
    "a column that ignores a second": table("working_memory", "source TEXT", "source TEXT UNIQUE ON CONFLICT IGNORE"),
    "a key that replaces": (
        f"CREATE TABLE working_memory ({TABLES['working_memory']}, UNIQUE (scope) ON CONFLICT REPLACE)"
    ),
    "a column that may not be empty": table(
        "working_memory", "valid_until TIMESTAMP DEFAULT NULL", "valid_until TIMESTAMP NOT NULL ON CONFLICT IGNORE"
    ),
    "a column of another type": table("working_memory", "content TEXT NOT NULL", "content NUMERIC NOT NULL"),
    "a check that fails": f"CREATE TABLE working_memory ({TABLES['working_memory']}, CHECK (content <> '0123'))",
    "a check with an unknown function": table("working_memory", "source TEXT", "source TEXT CHECK (odd(source))"),
    "a generated column": table("working_memory", "author_id TEXT DEFAULT NULL", "author_id TEXT AS ('x')"),
    "a generated column that fails": table("working_memory", "source TEXT", "source TEXT, odd TEXT AS (abs(-1 << 63))"),
}


@pytest.mark.parametrize("kind", SWALLOWING)
def test_a_table_that_swallows_or_replaces_loses_nothing_acknowledged(tmp_path: Path, kind: str) -> None:
    """A05: each memory that has an id in the receipt is in the file, also after the later ones."""
    path = tmp_path / "mnemopi.db"
    made(path, SWALLOWING[kind])
    acknowledged: dict[str, str] = {}
    refused = 0
    with opened(path) as session:
        for texts in (["0123", "The second"], ["The third"], ["The fourth"]):
            receipt = session.tools["retain"](items=[{"content": text} for text in texts]).receipt
            assert receipt is not None
            acknowledged |= {id_: text for id_, text in zip(receipt.ids, texts, strict=True) if id_}
            refused += len(receipt.failures)
    with closing(sqlite3.connect(path)) as connection:
        stored = connection.execute("SELECT id, content FROM working_memory").fetchall()
    assert dict(stored) == acknowledged
    assert len(acknowledged) + refused == 4
    assert refused


@pytest.mark.parametrize("kind", ["facts", "annotations"])
def test_a_unique_index_that_swallows_a_part_is_an_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mnemopi.db"
    made(path)
    run(path, f"CREATE UNIQUE INDEX odd ON {kind}({'predicate' if kind == 'facts' else 'kind'})")
    with opened(path) as session:
        receipts = [
            session.tools["retain"](items=[{"content": text}]).receipt for text in (FACT, "I prefer mountain tea")
        ]
    ids = [receipt.ids[0] for receipt in receipts if receipt is not None]
    assert ids[0]
    assert ids[1] is None
    assert column(path, "SELECT id FROM working_memory") == ids[:1]
    assert len(column(path, "SELECT 1 FROM facts")) == 1


def test_a_fact_and_an_annotation_known_already_are_no_error(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    with Bank.open(path, "default", clock=FixedClock(NOW), ids=FixedIds()) as bank:
        remember(bank, f"{FACT}. {FACT}.", RememberOptions(extract=True))
        remember(bank, f"{FACT}. {FACT}.", RememberOptions(extract=True))
    assert column(path, "SELECT object FROM facts") == ["The user prefers harbour tea"]


@pytest.mark.parametrize("name", ["gists", "facts"])
def test_a_unique_index_makes_the_graph_delete_no_other_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mnemopi.db"
    made(path)
    run(path, f"CREATE UNIQUE INDEX odd ON {name}({'location' if name == 'gists' else 'confidence'})")
    run(
        path,
        "INSERT INTO gists (id, text, location) VALUES ('g', 'kept', NULL)",
        "INSERT INTO facts (fact_id, session_id, subject, predicate, object, confidence)"
        " VALUES ('f', 'default', 'a', 'b', 'c', 0.9)",
    )
    with opened(path, linking=True) as session:
        receipt = session.tools["retain"](items=[{"content": "Mira uses Redis for caching."}]).receipt
    assert receipt is not None
    assert "odd" in str(receipt.failures[0].error)
    assert column(path, "SELECT id FROM working_memory") == []
    assert column(path, "SELECT id FROM gists") == ["g"]
    assert column(path, "SELECT fact_id FROM facts") == ["f"]


@pytest.mark.parametrize("conflict", ["IGNORE", "REPLACE", "FAIL", "ROLLBACK"])
def test_an_episode_and_an_edit_are_stored_or_refused_too(tmp_path: Path, conflict: str) -> None:
    path = tmp_path / "mnemopi.db"
    made(
        path,
        table("episodic_memory", "source TEXT", f"source TEXT UNIQUE ON CONFLICT {conflict}"),
        table("working_memory", "superseded_by TEXT DEFAULT NULL", f"superseded_by TEXT UNIQUE ON CONFLICT {conflict}"),
    )
    clock = FixedClock(NOW)
    with Bank.open(path, "default", clock=clock, ids=FixedIds()) as bank:
        first = remember(bank, "The first")
        clock.advance(13 * HOUR_MS)
        assert sleep(bank)["summaries_created"] == 1
        second = remember(bank, "The second")
        clock.advance(13 * HOUR_MS)
        with pytest.raises(Exception, match=r"UNIQUE constraint failed: episodic_memory\.source"):
            sleep(bank)
    with opened(path) as session:
        assert session.change("invalidate", first, replacement_id="x").status == "invalidated"
        with pytest.raises(Exception, match="UNIQUE constraint failed"):
            session.change("invalidate", second, replacement_id="x")
    assert column(path, "SELECT content FROM working_memory ORDER BY rowid") == ["The first", "The second"]
    assert column(path, "SELECT summary_of FROM episodic_memory") == [first]
    assert column(path, "SELECT consolidated_at FROM working_memory WHERE content = 'The second'") == [None]


def test_an_edit_that_a_column_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    made(path, SWALLOWING["a column of another type"])
    with opened(path) as session:
        receipt = session.retain("some words").receipt
        assert receipt is not None
        with pytest.raises(Exception, match="reads back differently"):
            session.change("update", receipt.ids[0], content="0123")
        assert session.memory(str(receipt.ids[0])).content == "some words"


def test_no_statement_leaves_the_way_with_conflicts_to_the_file() -> None:
    import ipy_memory.backends.mnemopi as engine

    bare = [
        f"{path.name}: {line.strip()}"
        for path in Path(engine.__file__).parent.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if ("INSERT INTO " in line and "INSERT INTO {" not in line and "INSERT INTO fts_" not in line)
        or ("UPDATE " in line and " SET " in line and "UPDATE OR ABORT" not in line and "DO UPDATE" not in line)
    ]
    assert bare == []
