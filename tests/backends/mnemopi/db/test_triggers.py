"""Foreign triggers in a bank never run from our connection, and stay in the file as they were."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.consolidation.sleep import sleep
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.schema import TRIGGERS
from ipy_memory.backends.mnemopi.db.triggers import foreign_triggers
from ipy_memory.backends.mnemopi.embeddings.index import store_vectors
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import BankError
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
TEXT = "I prefer harbour tea"
HOUR_MS = 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mnemopi.db"


@pytest.fixture
def session(path: Path) -> Iterator[MemorySession]:
    with opened(path) as session:
        yield session


def opened(path: Path, clock: FixedClock | None = None) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/work/shop",
        database=path,
        settings={"mnemopi.scoping": "global"},
        agent_dir=path.parent / "agent",
        env={"HOME": str(path.parent)},
        clock=clock or FixedClock(NOW),
        ids=FixedIds(),
    )


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def column(path: Path, query: str) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(query)]


def schema(path: Path) -> set[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


FOREIGN = {
    "deletes what is inserted": (
        "CREATE TRIGGER x AFTER INSERT ON working_memory BEGIN DELETE FROM working_memory WHERE id = new.id; END"
    ),
    "rewrites what is inserted": (
        "CREATE TRIGGER x AFTER INSERT ON working_memory"
        " BEGIN UPDATE working_memory SET content = 'theirs' WHERE id = new.id; END"
    ),
    "swallows the insert": ("CREATE TRIGGER x BEFORE INSERT ON working_memory BEGIN SELECT RAISE(IGNORE); END"),
    "swallows it in its condition": (
        "CREATE TRIGGER x BEFORE INSERT ON working_memory WHEN RAISE(IGNORE) BEGIN SELECT 1; END"
    ),
    "refuses the insert": ("CREATE TRIGGER x BEFORE INSERT ON working_memory BEGIN SELECT RAISE(ABORT, 'no'); END"),
    "empties the table on an update": (
        "CREATE TRIGGER x AFTER UPDATE ON working_memory BEGIN DELETE FROM working_memory; END"
    ),
    "undoes an update": ("CREATE TRIGGER x BEFORE UPDATE ON working_memory BEGIN SELECT RAISE(IGNORE); END"),
    "inserts for ever": (
        "CREATE TRIGGER x AFTER INSERT ON annotations"
        " BEGIN INSERT INTO annotations (memory_id, kind, value) SELECT hex(randomblob(8)), 'k', 'v'; END"
    ),
    "is on a table of the index": (
        "CREATE TRIGGER x AFTER INSERT ON fts_working_content BEGIN DELETE FROM working_memory; END"
    ),
    "is on the index's words": (
        "CREATE TRIGGER x AFTER INSERT ON fts_working_data BEGIN DELETE FROM working_memory; END"
    ),
    "is on facts": "CREATE TRIGGER x AFTER INSERT ON facts BEGIN DELETE FROM working_memory; END",
    "keeps a memory from being forgotten": (
        "CREATE TRIGGER x BEFORE DELETE ON working_memory BEGIN SELECT RAISE(IGNORE); END"
    ),
    "never ends": (
        "CREATE TRIGGER x AFTER INSERT ON working_memory BEGIN INSERT INTO scratchpad (id, content)"
        " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i), '' FROM n; END"
    ),
    "has a quoted name": (
        'CREATE TRIGGER "x "" y" AFTER INSERT ON working_memory BEGIN DELETE FROM working_memory; END'
    ),
    "belongs to a view": ("CREATE TRIGGER x INSTEAD OF INSERT ON notes BEGIN DELETE FROM working_memory; END"),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("moment", ["before", "after the first write"])
def test_a_foreign_trigger_never_runs(path: Path, kind: str, moment: str) -> None:
    """A05: whatever it would do, and whether it is there from the start or comes while a session is open."""
    with opened(path) as session:
        first = session.retain("The first harbour").receipt
    run(path, "CREATE VIEW notes AS SELECT content FROM working_memory")
    with opened(path) as session:
        if moment == "before":
            run(path, FOREIGN[kind])
        session.retain("The second harbour")
        if moment != "before":
            run(path, FOREIGN[kind])
        whole = schema(path)
        receipt = session.retain([TEXT, "The third harbour"]).receipt
        assert first is not None
        assert receipt is not None
        assert receipt.failures == ()
        texts = ["The first harbour", "The second harbour", TEXT, "The third harbour"]
        assert column(path, "SELECT content FROM working_memory ORDER BY rowid") == texts
        assert column(path, "SELECT content FROM fts_working ORDER BY rowid") == texts
        assert column(path, "SELECT object FROM facts") == ["The user prefers harbour tea"]
        assert len(session.recall("harbour").hits) == 5
        assert session.recall("second").hits
        assert len(column(path, "SELECT id FROM working_memory")) == 4
        assert session.change("update", receipt.ids[0], content="I prefer mountain tea").status == "updated"
        assert session.change("invalidate", receipt.ids[1]).status == "invalidated"
        assert session.change("forget", first.ids[0]).status == "deleted"
        left = ["The second harbour", "I prefer mountain tea", "The third harbour"]
        assert column(path, "SELECT content FROM working_memory ORDER BY rowid") == left
        assert column(path, "SELECT valid_until FROM working_memory ORDER BY rowid") == [None, None, NOW]
        assert column(path, "SELECT count(*) FROM annotations") == [6]
    assert schema(path) == whole


@pytest.mark.parametrize("kind", ["empties the table on an update", "is on facts", "deletes what is inserted"])
def test_consolidation_and_vectors_run_none_either(path: Path, kind: str) -> None:
    class Embedder:
        model, local, place, problem = "m", True, "here", None

        def embed(self, texts: list[str]) -> list[list[float] | None]:
            return [[1.0] for _ in texts]

        def embed_query(self, text: str) -> list[float] | None:
            return [1.0]

    clock = FixedClock(NOW)
    with Bank.open(path, "default", clock=clock, embedder=Embedder()) as bank:
        id_ = remember(bank, TEXT, RememberOptions(extract=True))
        run(
            path,
            FOREIGN[kind],
            "CREATE TRIGGER y AFTER INSERT ON episodic_memory BEGIN DELETE FROM working_memory; END",
            "CREATE TRIGGER z AFTER INSERT ON memory_embeddings BEGIN DELETE FROM working_memory; END",
        )
        clock.advance(13 * HOUR_MS)
        assert sleep(bank)["summaries_created"] == 1
        assert store_vectors(bank, {id_: TEXT}) == 1
    assert column(path, "SELECT content FROM working_memory") == [TEXT]
    assert column(path, "SELECT summary_of FROM episodic_memory") == [id_]


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_an_impostor_under_the_name_of_an_own_trigger_does_not_run(path: Path, name: str) -> None:
    """A trigger of ours is known by its whole text, not by its name."""
    with opened(path) as session:
        first = session.retain("I like the first harbour").receipt
        assert first is not None
    body = f"{TRIGGERS[name].partition(' BEGIN ')[0]} BEGIN DELETE FROM scratchpad; END"
    run(path, f"DROP TRIGGER {name}", body, "INSERT INTO scratchpad (id, content) VALUES ('kept', '')")
    clock = FixedClock(NOW)
    with opened(path, clock) as session:
        assert session.recall("harbour").hits
        receipt = session.retain(TEXT).receipt
        assert receipt is not None
        session.change("update", receipt.ids[0], content="I prefer mountain tea")
        clock.advance(13 * HOUR_MS)
        bank = session.live_backend().writer()  # type: ignore[attr-defined]
        assert sleep(bank)["summaries_created"] == 1
        assert "I prefer mountain tea" in [hit.content for hit in session.recall("mountain tea").hits]
        assert column(path, "SELECT count(*) FROM fts_episodes WHERE fts_episodes MATCH 'mountain'") == [1]
        session.change("forget", first.ids[0])
        [episode] = column(path, "SELECT id FROM episodic_memory")
        session.change("invalidate", episode)
        with bank.transaction() as connection:
            connection.execute("DELETE FROM episodic_memory")
            connection.executemany(
                "INSERT INTO memory_validations (memory_id, validator, action) VALUES ('m', 'v', ?)", [("a",)] * 4
            )
    assert column(path, "SELECT id FROM scratchpad") == ["kept"]
    assert column(path, "SELECT content FROM fts_working") == ["I prefer mountain tea"]
    assert column(path, "SELECT count(*) FROM fts_episodes WHERE fts_episodes MATCH 'mountain'") == [0]
    found, stored = "SELECT rowid FROM fts_facts WHERE fts_facts MATCH 'first'", "SELECT rowid FROM facts"
    assert column(path, found) == column(path, f"{stored} WHERE object LIKE '%first%'")
    assert column(path, "SELECT count(*) FROM memory_validations") == [3]
    # The engine itself creates two of them again at each opening.
    replaced = name in {"wm_ai", "wm_au"}
    now = column(path, f"SELECT sql FROM sqlite_master WHERE name = '{name}'")
    assert now == [TRIGGERS[name] if replaced else body]


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_an_own_trigger_with_a_condition_is_foreign(path: Path, name: str) -> None:
    Bank.open(path, "default", clock=FixedClock(NOW)).close()
    run(path, f"DROP TRIGGER {name}", TRIGGERS[name].replace(" BEGIN ", " WHEN 0 BEGIN ", 1))
    with closing(sqlite3.connect(path)) as connection:
        assert [trigger.name for trigger in foreign_triggers(connection)] == [name]


def test_a_recall_counts_nothing_where_a_foreign_trigger_would_run(session: MemorySession, path: Path) -> None:
    session.retain("The first harbour")
    session.recall("harbour")
    run(path, FOREIGN["empties the table on an update"])
    assert session.recall("harbour").hits
    assert column(path, "SELECT recall_count FROM working_memory") == [1]
    run(path, "DROP TRIGGER x")
    session.recall("harbour")
    assert column(path, "SELECT recall_count FROM working_memory") == [2]


def test_a_failed_write_leaves_the_triggers_in_the_file(session: MemorySession, path: Path) -> None:
    session.retain("The first harbour")
    run(path, FOREIGN["is on facts"])
    whole = schema(path)
    bank = session.live_backend().writer()  # type: ignore[attr-defined]

    def fail() -> None:
        with bank.transaction():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert schema(path) == whole


def test_others_see_the_triggers_during_a_write_of_ours(session: MemorySession, path: Path) -> None:
    session.retain("The first harbour")
    run(path, FOREIGN["is on facts"])
    bank = session.live_backend().writer()  # type: ignore[attr-defined]
    with bank.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'x'").fetchone() == (0,)
        assert column(path, "SELECT count(*) FROM sqlite_master WHERE name = 'x'") == [1]
    assert column(path, "SELECT count(*) FROM sqlite_master WHERE name = 'x'") == [1]


def test_a_trigger_that_could_not_be_put_back_is_a_refusal(path: Path) -> None:
    with Bank.open(path, "default", clock=FixedClock(NOW)) as bank:
        remember(bank, "kept")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(FOREIGN["is on facts"])
        connection.commit()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = CAST(CAST('CREATE TRIGGER x AFTER INSERT ON facts BEGIN SELECT ''' AS BLOB)"
            " || x'ff' || CAST('''; END' AS BLOB) AS TEXT) WHERE name = 'x'"
        )
        connection.commit()
    with pytest.raises(BankError, match="not valid UTF-8"):
        Bank.open(path, "default", clock=FixedClock(NOW))
    assert column(path, "SELECT content FROM working_memory") == ["kept"]
    assert column(path, "SELECT name FROM sqlite_master WHERE name = 'x'") == ["x"]
