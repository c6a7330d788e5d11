"""Bank files as strangers hand them over: read-only places, traps inside, missing and unknown columns."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.crash

NOW = "2026-06-01T12:00:00.000Z"

_AS_READER = """
import os, sys, tempfile
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.session import open_session

def opened(path):
    return open_session("mnemopi", cwd="/", database=path, settings={"mnemopi.scoping": "global"},
                        agent_dir="/nowhere", env={"HOME": "/nowhere"})

# All that is imported late is imported now: the other user may not be able to read it.
with tempfile.TemporaryDirectory() as warm, opened(warm + "/mnemopi.db") as session:
    session.retain("warm")
    session.recall("warm")
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with opened(sys.argv[1]) as session:
    print(session.recall("harbour").text.splitlines()[-1])
    try:
        session.retain("The harbour closes at nine.")
    except MemoryToolkitError as error:
        print(error.one_line())
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Path]:
    """A folder that another user may pass through and read."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    yield shelf
    shelf.chmod(0o755)


def made(path: Path) -> None:
    with Bank.open(path, "default", clock=FixedClock(NOW), ids=FixedIds()) as bank:
        remember(bank, "The harbour opens at six.", RememberOptions(scope="bank"))


def looked_at(path: Path) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/",
        database=path,
        settings={"mnemopi.scoping": "global"},
        agent_dir=path.parent / "agent",
        env={"HOME": str(path.parent)},
        clock=FixedClock(NOW),
    )


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.claim("R-34")
@pytest.mark.parametrize("with_wal", [True, False])
def test_a_read_only_place_is_recalled_from_and_says_why_it_keeps_nothing(shelf: Path, with_wal: bool) -> None:
    path = shelf / "mnemopi.db"
    if with_wal:
        original = shelf / "original.db"
        bank = Bank.open(original, "default", clock=FixedClock(NOW), ids=FixedIds())
        remember(bank, "The harbour opens at six.", RememberOptions(scope="bank"))
        for end in ("", "-wal", "-shm"):
            shutil.copy(f"{original}{end}", f"{path}{end}")
        bank.close()
    else:
        made(path)
    for file in shelf.iterdir():
        file.chmod(0o444)
    shelf.chmod(0o555)
    before = digest(path)
    run = subprocess.run([sys.executable, "-c", _AS_READER, path], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    recalled, refused = run.stdout.splitlines()
    assert "The harbour opens at six." in recalled
    assert "not stored" in refused
    assert "readonly" in refused or "read" in refused
    assert digest(path) == before


TRAPS = {
    "a trigger that deletes": "CREATE TRIGGER trap AFTER UPDATE ON working_memory BEGIN DELETE FROM facts; END",
    "a view over the rows": "CREATE VIEW trap AS SELECT load_extension('/tmp/x') FROM working_memory",
    "an unknown column": "ALTER TABLE working_memory ADD COLUMN mood TEXT DEFAULT 'fine'",
    "an unknown table": "CREATE TABLE plans (step TEXT)",
    "a huge cell": "INSERT INTO working_memory (id, content, session_id) VALUES ('big', zeroblob(30000000), 'default')",
    "numbers and bytes for texts": (
        "INSERT INTO working_memory (id, content, source, timestamp, session_id, importance, metadata_json)"
        " VALUES (12, x'ff00fe', 3.5, 99, 'default', 'high', x'80')"
    ),
    "a text that is no UTF-8": (
        "INSERT INTO working_memory (id, content, session_id) VALUES ('u', CAST(x'68617262c3' AS TEXT), 'default')"
    ),
    "no vectors table": "DROP TABLE memory_embeddings",
    "no optional column": "ALTER TABLE working_memory DROP COLUMN validation_count",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_strange_bank_is_read_unchanged_and_the_memory_found(tmp_path: Path, trap: str) -> None:
    path = tmp_path / "mnemopi.db"
    made(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(TRAPS[trap])
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = digest(path)
    with looked_at(path) as session:
        result = session.recall("harbour opens", touch=False)
        result.frame()
        session.reflect("harbour opens", touch=False)
        session.stats()
        session.diagnose()
    assert "The harbour opens at six." in [hit.content for hit in result.hits]
    assert digest(path) == before


@pytest.mark.claim("L-01", "R-34")
def test_a_recall_runs_no_trigger_of_a_stranger(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    made(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(TRAPS["a trigger that deletes"].replace("DELETE FROM facts", "DELETE FROM annotations"))
        connection.commit()
        before = connection.execute("SELECT * FROM annotations").fetchall()
    assert before
    with looked_at(path) as session:
        assert session.recall("harbour").hits
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM annotations").fetchall() == before


def test_a_recall_of_an_older_bank_adds_nothing_to_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    made(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE working_memory DROP COLUMN validation_count")
        connection.execute("DROP TABLE consolidation_log")
        connection.commit()
        schema = connection.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    with looked_at(path) as session:
        assert session.recall("harbour").hits
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name, sql FROM sqlite_schema").fetchall() == schema
        assert connection.execute("SELECT recall_count FROM working_memory").fetchall() == [(1,)]


def test_a_missing_needed_column_is_said_and_the_file_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE working_memory (id TEXT, content TEXT)")
        connection.commit()
    before = digest(path)
    with looked_at(path) as session:
        for call in (lambda: session.recall("x"), lambda: session.retain("x")):
            with pytest.raises(MemoryToolkitError) as caught:
                call()
            assert "column" in caught.value.one_line()
    assert digest(path) == before


DAMAGE = {
    "no database": (b"not a database at all, but long enough to look like one" * 40, "NotABankError"),
    "half a database": (None, "CorruptBankError"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_named_and_never_overwritten(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "mnemopi.db"
    made(path)
    content, kind = DAMAGE[damage]
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2] if content is None else content)
    before = digest(path)
    with looked_at(path) as session, pytest.raises(MemoryToolkitError) as caught:
        session.recall("harbour")
    assert type(caught.value).__name__ == kind
    assert str(path) in caught.value.one_line()
    assert digest(path) == before


def test_reading_changes_no_byte_and_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mnemopi.db"
    made(path)
    before = digest(path)
    with looked_at(path) as session:
        session.recall("harbour", touch=False)
        session.recall("harbour", bank="default")
        session.stats()
        session.diagnose()
        session.describe()
        session.memory(session.recall("harbour", touch=False).hits[0].id or "")
    assert digest(path) == before
    assert {entry.name for entry in tmp_path.iterdir()} <= {"mnemopi.db", "mnemopi.db-wal", "mnemopi.db-shm"}
