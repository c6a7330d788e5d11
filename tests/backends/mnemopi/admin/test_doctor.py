"""Looking a bank over and repairing it: nothing is written before it is asked for, and no memory is lost."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipy_memory.backends.mnemopi.admin.doctor import FILE, INDEX, ORPHANS, SCHEMA, VECTORS, Repair, examine
from ipy_memory.backends.mnemopi.admin.doctor import repair as repair_with_copy
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.copies import copies_of
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock
from ipy_memory.errors import CorruptBankError
from ipy_memory.session import open_session

NOW = "2026-06-01T12:00:00.000Z"
CLOCK = FixedClock(NOW)
GOLDEN = Path(__file__).parents[3] / "golden"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mnemopi.db"
    with Bank.open(path, "proj", clock=CLOCK) as bank:
        for text in ("The deploy target is fly.io", "Alice prefers dark mode", "Tests run under pytest"):
            remember(bank, text, RememberOptions(source="notes", extract=True))
        bank.connection.execute(
            "INSERT INTO facts (fact_id, session_id, subject, predicate, object, source_msg_id)"
            " SELECT 'f1', 'proj', 'deploy', 'target', 'fly.io', id FROM working_memory LIMIT 1"
        )
    return path


def backups(path: Path) -> list[Path]:
    return copies_of(path, path.parent / "ipy_memory" / "copies")


def repair(path: Path, name: str, clock: FixedClock) -> Repair:
    return repair_with_copy(path, name, clock, path.parent / "ipy_memory" / "copies")


def run(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def faults(path: Path) -> list[tuple[str, str]]:
    return [(fault.part, fault.name) for fault in examine(path, "proj", CLOCK).faults]


def rows(path: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT * FROM working_memory ORDER BY rowid").fetchall()
    connection.close()
    return found


def test_recorded_banks_are_sound(tmp_path: Path) -> None:
    for manifest in sorted((GOLDEN / "banks").glob("manifest*.json")):
        for number, entry in enumerate(json.loads(manifest.read_text(encoding="utf-8"))["files"]):
            if not entry["unpack_to"].endswith(".db"):
                continue
            plain = (GOLDEN / entry["file"]).read_bytes()
            path = tmp_path / f"{manifest.stem}-{number}.db"
            path.write_bytes(gzip.decompress(plain) if entry["gzip"] else plain)
            assert examine(path, "x", CLOCK).faults == (), entry["file"]


@pytest.mark.claim("M-08")
def test_an_examination_changes_no_byte(path: Path) -> None:
    run(path, "DELETE FROM fts_working_data WHERE id > 10")
    before = path.read_bytes()
    seen: list[str] = []
    assert faults(path) == [(INDEX, "fts_working")]
    examine(path, "proj", CLOCK, seen.append)
    assert seen == [FILE, SCHEMA, INDEX, VECTORS, ORPHANS]
    assert path.read_bytes() == before
    assert backups(path) == []


@pytest.mark.parametrize("index", ["fts_working", "fts_episodes", "fts_facts"])
@pytest.mark.parametrize("damage", ["DELETE FROM {}_data", "DELETE FROM {}_data WHERE id > 10", "DROP TABLE {}"])
def test_a_damaged_index_is_built_anew_from_the_rows(path: Path, index: str, damage: str) -> None:
    with Bank.open(path, "proj", clock=CLOCK) as bank:
        bank.connection.execute(
            "INSERT INTO episodic_memory (id, content, session_id, scope)"
            " VALUES ('e1', 'Fly deploys weekly', 'proj', 'bank')"
        )
    kept = rows(path)
    run(path, damage.format(index))
    assert {name.removeprefix("table ") for _, name in faults(path) if "fts" in name} >= {index}
    mended = repair(path, "proj", CLOCK)
    assert mended.after.faults == ()
    assert mended.backup is not None
    assert backups(path) == [mended.backup]
    assert rows(path) == kept
    with Bank.open(path, "proj", clock=CLOCK) as bank:
        hits = bank.connection.execute(f"SELECT count(*) FROM {index} WHERE {index} MATCH 'fly'").fetchone()
        remember(bank, "The fly rod is new", RememberOptions())
        assert hits[0] == 1
    assert faults(path) == []


def test_rows_that_the_index_lacks_or_has_too_many_are_found(path: Path) -> None:
    run(
        path,
        "DELETE FROM fts_working WHERE content LIKE 'Alice%'",
        "INSERT INTO fts_working (id, content) VALUES ('gone', 'secret')",
    )
    (fault,) = examine(path, "proj", CLOCK).faults
    assert fault.detail == "1 memories are not in it as they are stored, 1 entries belong to no memory of now"
    assert repair(path, "proj", CLOCK).after.faults == ()


def test_missing_parts_of_the_schema_are_added(path: Path) -> None:
    run(path, "DROP TABLE gists", "DROP TRIGGER wm_ai", "ALTER TABLE annotations DROP COLUMN confidence")
    found = {name.split(":")[0] for part, name in faults(path) if part == SCHEMA}
    assert {"table gists", "trigger wm_ai", "column annotations.confidence"} <= found
    mended = repair(path, "proj", CLOCK)
    assert mended.after.faults == ()
    assert any(done == "added table gists" for done in mended.done)


def test_what_belongs_to_no_memory_is_deleted_on_request_only(path: Path) -> None:
    run(
        path,
        "INSERT INTO memory_embeddings (memory_id, embedding_json, model) VALUES ('gone', '[1,2]', 'm')",
        "INSERT INTO facts (fact_id, session_id, subject, predicate, object, source_msg_id)"
        " VALUES ('f2', 'proj', 'a', 'b', 'c', 'gone'), ('f3', 'proj', 'a', 'b', 'd', NULL)",
    )
    assert faults(path) == [(ORPHANS, "memory_embeddings"), (ORPHANS, "facts")]
    mended = repair(path, "proj", CLOCK)
    assert mended.done == (
        "deleted 1 rows of memory_embeddings whose memory is gone",
        "deleted 1 rows of facts whose memory is gone",
    )
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT fact_id FROM facts ORDER BY 1").fetchall() == [("f1",), ("f3",)]
    connection.close()


def test_vectors_are_told_apart_and_left_to_a_reindex(path: Path) -> None:
    ids = [row[0] for row in rows(path)]
    run(
        path,
        f"INSERT INTO memory_embeddings (memory_id, embedding_json, model) VALUES ('{ids[0]}', '[1,2]', 'm'),"
        f" ('{ids[1]}', '[1,2,3]', 'm'), ('{ids[2]}', 'no json', 'm')",
    )
    found = examine(path, "proj", CLOCK)
    assert [(f.part, f.name, f.detail) for f in found.faults] == [
        (VECTORS, "readable", "1 cannot be read"),
        (VECTORS, "one length a model", "1 of m with 2 numbers, 1 of m with 3 numbers"),
    ]
    assert found.repairable == ()
    assert repair(path, "proj", CLOCK).backup is None


def test_a_damaged_file_is_refused_untouched(path: Path) -> None:
    run(path, "PRAGMA journal_mode = DELETE")
    whole = bytearray(path.read_bytes())
    whole[8192:16384] = b"\xff" * 8192
    path.write_bytes(whole)
    assert faults(path)[0][0] == FILE
    with pytest.raises(CorruptBankError, match="cannot be repaired"):
        repair(path, "proj", CLOCK)
    assert path.read_bytes() == bytes(whole)
    assert backups(path) == []


def test_a_file_that_is_no_bank_is_a_finding_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("no database, only words in a file")
    (fault,) = examine(tmp_path / "notes.db", "x", CLOCK).faults
    assert fault.part == FILE
    assert examine(tmp_path / "absent.db", "x", CLOCK).faults[0].part == FILE
    assert not (tmp_path / "absent.db").exists()


def test_a_running_session_names_the_damage_and_picks_the_repair_up(tmp_path: Path) -> None:
    with open_session(
        "mnemopi",
        "/work/shop",
        tmp_path / "mnemopi.db",
        {"mnemopi.scoping": "global"},
        agent_dir=tmp_path,
        env={"HOME": str(tmp_path)},
        clock=CLOCK,
    ) as session:
        session.retain(["The deploy target is fly.io", "Alice prefers dark mode"])
        assert len(session.recall("deploy").hits) == 1
        run(tmp_path / "mnemopi.db", "DELETE FROM fts_working_data")
        broken = session.recall("deploy")
        assert any("No memories are lost" in note and "doctor --repair" in note for note in broken.notes)
        assert repair(tmp_path / "mnemopi.db", "default", CLOCK).after.faults == ()
        mended = session.recall("deploy")
        assert len(mended.hits) == 1
        assert mended.notes == ()
        session.retain("The deploy day is Tuesday")
        assert len(session.recall("deploy").hits) == 2


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("empty", "The file is empty"),
        ("truncated", ""),
        ("words", "not a database"),
        ("newer", "user_version"),
        ("foreign", "no table working_memory"),
    ],
)
def test_each_kind_of_unusable_file_is_told_apart_and_left_alone(path: Path, damage: str, says: str) -> None:
    run(path, "PRAGMA journal_mode = DELETE")
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[: 4096 * 3 + 100])
    elif damage == "words":
        path.write_bytes(b"words " * 1000)
    elif damage == "newer":
        run(path, "PRAGMA user_version = 99")
    else:
        path.unlink()
        run(path, "CREATE TABLE notes (id TEXT)")
    before = path.read_bytes()
    fault = examine(path, "proj", CLOCK).faults[0]
    assert fault.part == FILE
    assert says in fault.detail
    with pytest.raises(CorruptBankError, match="cannot be repaired"):
        repair(path, "proj", CLOCK)
    assert path.read_bytes() == before
    assert backups(path) == []


BROKEN = {
    "its settings are gone": "DELETE FROM fts_working_config",
    "its settings are those of another release": "UPDATE fts_working_config SET v = 99",
    "a part of it is gone": "DROP TABLE fts_working_config",
    "its words are garbage": "UPDATE fts_working_data SET block = x'ffffffffffffffff'",
    "its texts are gone": "DELETE FROM fts_working_content",
    "it is an ordinary table": "DROP TABLE fts_working; CREATE TABLE fts_working (id, content)",
    "its options are unknown": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_master"
        " SET sql = 'CREATE VIRTUAL TABLE fts_working USING fts5(id UNINDEXED, content, odd=1)'"
        " WHERE name = 'fts_working'"
    ),
    "its module is unknown": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_master"
        " SET sql = 'CREATE VIRTUAL TABLE fts_working USING vec0(x)' WHERE name = 'fts_working'"
    ),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_an_index_that_sqlite_cannot_open_is_made_again_from_the_rows(path: Path, damage: str) -> None:
    """B11: a repair that the doctor offers also succeeds."""
    kept = rows(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(BROKEN[damage])
    assert (INDEX, "fts_working") in faults(path)
    assert repair(path, "proj", CLOCK).after.faults == ()
    assert rows(path) == kept
    with Bank.open(path, "proj", clock=CLOCK) as bank:
        remember(bank, "The fly rod is new", RememberOptions())
        found = bank.connection.execute("SELECT count(*) FROM fts_working WHERE fts_working MATCH 'fly'").fetchone()
    assert found == (2,)


def test_a_table_of_another_program_does_not_stop_the_doctor(path: Path) -> None:
    run(
        path,
        "PRAGMA writable_schema = ON",
        "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)"
        " VALUES ('table', 'vec', 'vec', 0, 'CREATE VIRTUAL TABLE vec USING vec0(embedding float[4])')",
    )
    found = examine(path, "proj", CLOCK)
    assert found.faults == ()
    [left] = [finding for finding in found.findings if finding.name == "table vec"]
    assert left.detail == "of another program, left alone: no such module: vec0"
    run(path, "DELETE FROM fts_working_config")
    assert repair(path, "proj", CLOCK).after.faults == ()
    assert [one.name for one in examine(path, "proj", CLOCK).findings if "vec" in one.name] == ["table vec"]


def test_what_a_foreign_file_has_is_named_and_left_alone(path: Path) -> None:
    """A05: triggers, and what can keep memories out; a repair promises nothing of them."""
    foreign = (
        "CREATE TRIGGER x AFTER INSERT ON working_memory BEGIN DELETE FROM working_memory; END",
        "CREATE TRIGGER y AFTER INSERT ON scratchpad BEGIN SELECT 1; END",
        "CREATE UNIQUE INDEX odd ON facts(object)",
    )
    run(
        path, *foreign, "DROP TRIGGER em_ai", "CREATE TRIGGER em_ai AFTER INSERT ON episodic_memory BEGIN SELECT 1; END"
    )
    run(path, "DROP TABLE gists", "CREATE TABLE gists (id TEXT PRIMARY KEY, text TEXT CHECK (text <> ''))")
    found = examine(path, "proj", CLOCK)
    names = {fault.name for fault in found.faults}
    assert names >= {"trigger x", "trigger y", "trigger em_ai", "index odd", "table gists"}
    assert {fault.name for fault in found.repairable} == {name for name in names if name.startswith("column gists.")}
    assert "DROP TRIGGER" in next(fault.detail for fault in found.faults if fault.name == "trigger x")
    assert {fault.name for fault in repair(path, "proj", CLOCK).after.faults} == names - {
        fault.name for fault in found.repairable
    }
    with closing(sqlite3.connect(path)) as connection:
        assert {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")} >= set(foreign)


def test_that_others_can_read_a_bank_is_mentioned(path: Path) -> None:
    """A13: the permissions of what is there stay as they are."""
    assert examine(path, "proj", CLOCK).readable_by_others == ()
    path.chmod(0o644)
    found = examine(path, "proj", CLOCK)
    assert found.faults == ()
    assert "(mode 0644); to change that: chmod 600 mnemopi.db" in found.readable_by_others[0].detail
    assert path.stat().st_mode & 0o777 == 0o644
