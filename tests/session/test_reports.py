"""A bank as a database of sqlite-utils, for reading only."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ipy_memory import open_session
from ipy_memory.errors import BankNotFoundError, NotSupportedError

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory import MemorySession


def opened(folder: Path, backend: str = "mnemopi", **settings: object) -> MemorySession:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return open_session(
        backend, cwd="/proj/shop", database=folder / "mnemopi.db", settings=given, agent_dir=folder, env={}
    )


def test_a_bank_is_a_database_that_reads_and_never_writes(tmp_path: Path) -> None:
    with opened(tmp_path, mnemopi__scoping="global") as session:
        session.retain(["The harbour opens at six.", "Tea is served at four."])
        database = session.database()
        rows = list(database["working_memory"].rows_where("content LIKE ?", ["%harbour%"]))
        assert [row["content"] for row in rows] == ["The harbour opens at six."]
        before = (tmp_path / "mnemopi.db").read_bytes()
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.execute("DELETE FROM scratchpad")
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.table("mine").insert({"a": 1})
        database.close()
        assert (tmp_path / "mnemopi.db").read_bytes() == before
        assert session.recall("harbour").hits


def test_another_bank_is_named_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    with opened(tmp_path, mnemopi__scoping="global") as shared:
        shared.retain("Shared.")
    with opened(tmp_path) as session:
        with pytest.raises(BankNotFoundError, match="no file yet"):
            session.database()
        database = session.database("default")
        assert database["working_memory"].count == 1
        database.close()
        with pytest.raises(BankNotFoundError):
            session.database("nowhere")


def test_a_server_has_no_file(tmp_path: Path) -> None:
    with (
        opened(tmp_path, "hindsight", hindsight__apiUrl="http://127.0.0.1:9") as session,
        pytest.raises(NotSupportedError, match="Hindsight does not support SQL"),
    ):
        session.database()


def test_the_library_is_loaded_on_first_use_only() -> None:
    code = "import sys, ipy_memory.session; assert 'sqlite_utils' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
