"""A fresh bank against the recorded schema."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipy_memory.backends.mnemopi.admin.doctor import FILE, examine
from ipy_memory.backends.mnemopi.admin.stats import diagnose
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.schema import FULL_TEXT_TABLES, TABLES, column_defaults, columns, create_schema
from ipy_memory.clock import FixedClock
from ipy_memory.errors import NewerBankError, NotABankError, OlderBankError
from ipy_memory.explore.banks import bank_rows
from ipy_memory.session import open_session

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "schema.json").read_text(encoding="utf-8"))
NOW = "2026-06-01T12:00:00.000Z"


@pytest.fixture
def fresh(tmp_path: Path):
    bank = Bank.open(tmp_path / "mnemopi.db", "proj", clock=FixedClock(NOW))
    yield bank.connection
    bank.close()


def objects(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    rows = connection.execute("SELECT name, type, tbl_name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    shadows = tuple(f"{name}_" for name in FULL_TEXT_TABLES)
    return {name: (kind, table) for name, kind, table in rows if not name.startswith((*shadows, "sqlite_"))}


def test_fresh_bank_has_the_recorded_objects(fresh) -> None:
    assert objects(fresh) == {o["name"]: (o["type"], o["tbl_name"]) for o in GOLDEN["objects"]}


@pytest.mark.parametrize("table", GOLDEN["columns"])
def test_fresh_bank_has_the_recorded_columns(fresh, table: str) -> None:
    got = [
        {"name": name, "type": type_, "notnull": notnull, "default": default, "pk": pk}
        for _, name, type_, notnull, default, pk in fresh.execute(f"PRAGMA table_info({table})")
    ]
    assert got == GOLDEN["columns"][table]


@pytest.mark.parametrize("name", GOLDEN["pragmas"])
def test_fresh_bank_has_the_recorded_pragmas(fresh, name: str) -> None:
    assert fresh.execute(f"PRAGMA {name}").fetchone()[0] == GOLDEN["pragmas"][name]


def test_full_text_mirrors_follow_their_tables(fresh) -> None:
    def found(table: str, word: str) -> int:
        return fresh.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (word,)).fetchone()[0]

    fresh.execute("INSERT INTO working_memory (id, content, embed_text) VALUES ('a', 'shown', 'indexed')")
    assert (found("fts_working", "indexed"), found("fts_working", "shown")) == (1, 0)
    fresh.execute("UPDATE working_memory SET embed_text = NULL WHERE id = 'a'")
    assert (found("fts_working", "indexed"), found("fts_working", "shown")) == (0, 1)
    fresh.execute("DELETE FROM working_memory")
    assert found("fts_working", "shown") == 0

    fresh.execute("INSERT INTO episodic_memory (id, content) VALUES ('e', 'first')")
    fresh.execute("UPDATE episodic_memory SET content = 'second'")
    assert (found("fts_episodes", "first"), found("fts_episodes", "second")) == (0, 1)
    fresh.execute("DELETE FROM episodic_memory")
    assert found("fts_episodes", "second") == 0

    fresh.execute(
        "INSERT INTO facts (fact_id, session_id, subject, predicate, object) VALUES ('f', 's', 'sub', 'pred', 'obj')"
    )
    assert found("fts_facts", "obj") == 1
    fresh.execute("DELETE FROM facts")
    assert found("fts_facts", "obj") == 0


def test_three_validations_are_kept(fresh) -> None:
    for number in range(5):
        fresh.execute(
            "INSERT INTO memory_validations (memory_id, validator, action) VALUES ('m', 'v', ?)", (str(number),)
        )
    assert [row[0] for row in fresh.execute("SELECT action FROM memory_validations")] == ["2", "3", "4"]


def test_second_open_changes_no_byte(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    Bank.open(path, "proj", clock=FixedClock(NOW)).close()
    before = path.read_bytes()
    Bank.open(path, "proj", clock=FixedClock(NOW)).close()
    assert path.read_bytes() == before


def test_older_bank_gets_its_columns_and_triggers() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    old = "id TEXT PRIMARY KEY, content TEXT NOT NULL, source TEXT, timestamp TEXT, session_id TEXT, importance REAL"
    connection.execute(f"CREATE TABLE working_memory ({old})")
    connection.execute("CREATE VIRTUAL TABLE fts_working USING fts5(id UNINDEXED, content)")
    connection.execute(
        "CREATE TRIGGER wm_ai AFTER INSERT ON working_memory BEGIN"
        " INSERT INTO fts_working(id, content) VALUES (new.id, new.content); END"
    )
    connection.execute("INSERT INTO working_memory (id, content) VALUES ('a', 'kept')")
    create_schema(connection, NOW)
    assert set(columns(connection, "working_memory")) == set(column_defaults("working_memory"))
    row = connection.execute("SELECT content, consolidated_at, veracity, created_at FROM working_memory").fetchone()
    assert row == ("kept", NOW, "unknown", None)
    trigger = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'wm_ai'").fetchone()[0]
    assert "embed_text" in trigger
    connection.close()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("PRAGMA user_version = 3", NewerBankError),
        ("PRAGMA application_id = 7", NewerBankError),
        ("ALTER TABLE facts RENAME COLUMN object TO thing", NewerBankError),
        ("DROP TABLE working_memory", NotABankError),
        ("DROP TABLE facts; CREATE TABLE facts (fact_id TEXT, subject TEXT)", OlderBankError),
        ("DROP TABLE episodic_memory; CREATE TABLE episodic_memory (id TEXT, content TEXT)", OlderBankError),
        ("DROP TABLE working_memory; CREATE TABLE working_memory (id TEXT, text TEXT)", NewerBankError),
    ],
)
def test_files_of_another_form_are_refused_and_not_touched(tmp_path: Path, change: str, error: type[Exception]) -> None:
    """C20: a file that lacks something is called older, one that has something new newer."""
    path = tmp_path / "mnemopi.db"
    clock = FixedClock(NOW)
    with Bank.open(path, "proj", clock=clock) as bank:
        if "facts" in change:
            bank.connection.executescript("DROP TRIGGER facts_ai; DROP TRIGGER facts_ad;")
        bank.connection.executescript(change)
    before = path.read_bytes()
    for opening in (Bank.open, Bank.open_readonly):
        with pytest.raises(error) as caught:
            opening(path, "proj", clock=clock)
        assert str(path) in caught.value.where
        assert caught.value.hint
    assert path.read_bytes() == before


def test_unknown_columns_and_tables_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    clock = FixedClock(NOW)
    with Bank.open(path, "proj", clock=clock) as bank:
        bank.connection.execute("ALTER TABLE working_memory ADD COLUMN novel TEXT DEFAULT 'x'")
        bank.connection.execute("CREATE TABLE novelty (a)")
    with Bank.open(path, "proj", clock=clock) as bank:
        assert "novel" in columns(bank.connection, "working_memory")
        assert columns(bank.connection, "novelty") == ("a",)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS content FROM n"


@pytest.mark.parametrize("name", [*TABLES, *FULL_TEXT_TABLES])
@pytest.mark.parametrize("kind", ["view", "virtual table"])
def test_nothing_else_may_have_the_name_of_a_table(tmp_path: Path, name: str, kind: str) -> None:
    """A15: a view there may never end; what is in the place of a table is said, beside banks that answer."""
    path, clock = tmp_path / "banks" / "odd" / "mnemopi.db", FixedClock(NOW)
    Bank.open(path, "odd", clock=clock).close()
    odd = (
        f"CREATE VIEW {name.upper()} AS {ENDLESS}" if kind == "view" else f"CREATE VIRTUAL TABLE {name} USING fts5(id)"
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TABLE {name}")
        connection.execute(odd)
        connection.commit()
    before = path.read_bytes()
    if kind == "virtual table" and name in FULL_TEXT_TABLES:
        Bank.open_readonly(path, "odd", clock=clock).close()
        return
    for opener in (Bank.open, Bank.open_for_recall, Bank.open_readonly):
        with pytest.raises(NotABankError, match=f"^{name} is a {kind} where a memory bank has a table") as caught:
            opener(path, "odd", clock=clock)
        assert caught.value.hint
    with open_session(
        "mnemopi",
        "/work",
        tmp_path / "mnemopi.db",
        {"mnemopi.scoping": "global"},
        agent_dir=tmp_path / "agent",
        env={"HOME": str(tmp_path)},
        clock=clock,
    ) as session:
        session.retain("The harbour")
        assert session.recall("harbour").hits
        assert {row.name: bool(row.error) for row in bank_rows(session)} == {"default": False, "odd": True}
        with pytest.raises(NotABankError):
            session.recall("harbour", bank="odd")
    assert diagnose(path, "odd", clock).integrity == "unknown"
    assert examine(path, "odd", clock).faults[0].part == FILE
    assert path.read_bytes() == before


def test_a_view_that_comes_while_a_bank_is_open_takes_no_write(tmp_path: Path) -> None:
    path, clock = tmp_path / "mnemopi.db", FixedClock(NOW)
    with Bank.open(path, "proj", clock=clock) as bank:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("ALTER TABLE gists RENAME TO elsewhere")
            connection.execute("CREATE VIEW gists AS SELECT * FROM elsewhere")
            connection.execute("CREATE TRIGGER x INSTEAD OF INSERT ON gists BEGIN SELECT 1; END")
            connection.commit()
        with pytest.raises(NotABankError, match="gists is a view"), bank.transaction():
            pytest.fail("the transaction must not begin")


def test_a_foreign_view_and_a_virtual_table_of_another_program_are_left_alone(tmp_path: Path) -> None:
    path, clock = tmp_path / "mnemopi.db", FixedClock(NOW)
    Bank.open(path, "proj", clock=clock).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE VIEW notes AS {ENDLESS}")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)"
            " VALUES ('table', 'vec', 'vec', 0, 'CREATE VIRTUAL TABLE vec USING vec0(embedding float[4])')"
        )
        connection.commit()
    for opener in (Bank.open, Bank.open_for_recall, Bank.open_readonly):
        with opener(path, "proj", clock=clock) as bank:
            names = {row[0] for row in bank.connection.execute("SELECT name FROM sqlite_master")}
        assert {"notes", "vec"} <= names
