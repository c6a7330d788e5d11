"""Rescue of a directory's older banks: who joins, who does not and why, and that nothing is touched."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi import legacy
from ipy_memory.backends.mnemopi.legacy import LEGACY_BANK_SCAN_LIMIT, LegacyVerdict, legacy_banks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CWD = "/proj/demo"
MINE = json.dumps({"session_id": "s", "cwd": CWD})
TABLE = "CREATE TABLE working_memory (id INTEGER PRIMARY KEY, content TEXT, metadata_json)"


def bank(root: Path, name: str, metadata: Sequence[object] = (MINE,), *, setup: str = TABLE) -> Path:
    """Make a bank whose rows carry the given metadata."""
    path = root / "banks" / name / "mnemopi.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA synchronous=OFF;" + setup)
        for text in metadata:
            connection.execute("INSERT INTO working_memory (metadata_json) VALUES (?)", (text,))
        connection.commit()
    return path


def verdicts(root: Path, known: Sequence[str] = (), cwd: str = CWD) -> dict[str, LegacyVerdict]:
    return {verdict.name: verdict for verdict in legacy_banks(root / "mnemopi.db", cwd, known)}


def reason(root: Path) -> str:
    (only,) = legacy_banks(root / "mnemopi.db", CWD, ())
    assert not only.rescued
    return only.reason


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.claim("L-01", "L-02")
@pytest.mark.parametrize(
    ("metadata", "rescued"),
    [
        ([MINE], True),
        ([MINE, MINE], True),
        ([MINE, '{"cwd":"/else"}'], False),
        ([MINE, None], False),
        ([MINE, "{}"], False),
        ([MINE, '{"cwd":null}'], False),
        ([MINE, '{"cwd":5}'], False),
        ([MINE, f'{{"cwd":["{CWD}"]}}'], False),
        ([MINE, "{not json"], False),
        ([f'{{"cwd":"{CWD}/"}}'], False),
        (['{"cwd":"/PROJ/DEMO"}'], False),
        (['"/proj/demo"'], False),
        ([], False),
    ],
)
def test_all_rows_must_come_from_the_directory(tmp_path: Path, metadata: list[object], rescued: bool) -> None:
    path = bank(tmp_path, "old", metadata)
    verdict = verdicts(tmp_path)["old"]
    assert (verdict.rescued, verdict.path, verdict.by_path) == (rescued, path, False)


@pytest.mark.claim("L-01")
def test_the_directory_is_compared_in_its_absolute_form(tmp_path: Path) -> None:
    bank(tmp_path, "old")
    assert verdicts(tmp_path, cwd="/proj//x/../demo/")["old"].rescued


@pytest.mark.claim("L-01")
def test_order_is_the_directory_s_and_known_banks_are_left_out(tmp_path: Path) -> None:
    for name in ("c", "a", "d", "b"):
        bank(tmp_path, name)
    found = [verdict.name for verdict in legacy_banks(tmp_path / "mnemopi.db", CWD, ["a"])]
    assert found == [entry.name for entry in os.scandir(tmp_path / "banks") if entry.name != "a"]


@pytest.mark.claim("L-02", "L-05")
def test_a_linked_directory_never_joins(tmp_path: Path) -> None:
    bank(tmp_path / "outside", "good")
    (tmp_path / "banks").mkdir()
    (tmp_path / "banks" / "link").symlink_to(tmp_path / "outside" / "banks" / "good")
    (tmp_path / "banks" / "file").touch()
    assert reason(tmp_path) == "symbolic link"


@pytest.mark.claim("L-03", "L-05")
def test_no_more_than_the_limit_is_looked_at(tmp_path: Path) -> None:
    names = [f"bank{number:02d}" for number in range(LEGACY_BANK_SCAN_LIMIT + 6)]
    for name in names:
        bank(tmp_path, name)
    found = legacy_banks(tmp_path / "mnemopi.db", CWD, names[:2])
    assert [verdict.rescued for verdict in found] == [True] * LEGACY_BANK_SCAN_LIMIT + [False] * 4
    assert {verdict.reason for verdict in found[LEGACY_BANK_SCAN_LIMIT:]} == {
        f"not looked at: only the first {LEGACY_BANK_SCAN_LIMIT} folders are"
    }


def _file(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


@pytest.mark.claim("L-04", "L-05")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda _: None, "no database"),
        (Path.mkdir, "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (_file(b""), "empty file"),
        (_file(b"this is no database at all, it is text\n" * 30), "not a SQLite database"),
        (_file(b"SQLite format 3\0" + b"\xff" * 4096), "not a SQLite database"),
        (lambda path: path.symlink_to("/nowhere/x"), "no database"),
        (lambda path: path.symlink_to(path.name), "cannot be opened for reading"),
    ],
)
def test_what_is_no_bank_is_passed_over_with_a_reason(
    tmp_path: Path, make: Callable[[Path], None], expected: str
) -> None:
    folder = tmp_path / "banks" / "x"
    folder.mkdir(parents=True)
    make(folder / "mnemopi.db")
    before = sorted(folder.iterdir())
    assert reason(tmp_path) == expected
    assert sorted(folder.iterdir()) == before


@pytest.mark.claim("L-04", "L-05")
@pytest.mark.parametrize(
    ("setup", "metadata", "expected"),
    [
        ("CREATE TABLE other (id)", [], "no memories: the table working_memory or its metadata is missing"),
        ("CREATE TABLE working_memory (id)", [], "no memories: the table working_memory or its metadata is missing"),
        (TABLE, [], "no rows"),
        (TABLE, [MINE, None], "1 of 2 rows come from another directory or name none"),
        (TABLE, ["{"], "metadata that is not JSON"),
    ],
)
def test_reasons_of_real_databases(tmp_path: Path, setup: str, metadata: list[str], expected: str) -> None:
    bank(tmp_path, "x", metadata, setup=setup)
    before = contents(tmp_path)
    assert reason(tmp_path) == expected
    assert contents(tmp_path) == before


@pytest.mark.claim("L-04")
@pytest.mark.parametrize("where", ["missing", "file"])
def test_without_a_banks_folder_there_is_nothing_to_say(tmp_path: Path, where: str) -> None:
    if where == "file":
        (tmp_path / "banks").touch()
    assert legacy_banks(tmp_path / "mnemopi.db", CWD, ()) == []


@pytest.mark.claim("L-04")
def test_a_held_bank_is_passed_over(tmp_path: Path) -> None:
    with closing(sqlite3.connect(bank(tmp_path, "x"), isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        assert reason(tmp_path) == "held by another process"


@pytest.mark.claim("L-04")
def test_an_unfinished_write_is_left_for_a_writer(tmp_path: Path) -> None:
    with closing(sqlite3.connect(bank(tmp_path, "x"), isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_spill=1")
        writer.execute("PRAGMA cache_size=1")
        writer.execute("BEGIN IMMEDIATE")
        writer.executemany("INSERT INTO working_memory (content) VALUES (?)", [("x" * 4000,)] * 50)
        copy = tmp_path / "copy" / "banks" / "x"
        copy.mkdir(parents=True)
        for part in (tmp_path / "banks" / "x").iterdir():
            (copy / part.name).write_bytes(part.read_bytes())
    before = contents(tmp_path / "copy")
    assert len(before) == 2
    assert reason(tmp_path / "copy") == "needs recovery, which only a writer may do"
    assert contents(tmp_path / "copy") == before


@pytest.mark.claim("L-01")
def test_a_bank_in_wal_mode_is_read_without_changing_its_bytes(tmp_path: Path) -> None:
    path = bank(tmp_path, "x", [])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("INSERT INTO working_memory (metadata_json) VALUES (?)", (MINE,))
        copy = tmp_path / "copy" / "banks" / "x"
        copy.mkdir(parents=True)
        for name in ("mnemopi.db", "mnemopi.db-wal"):
            (copy / name).write_bytes(path.with_name(name).read_bytes())
    before = contents(tmp_path / "copy")
    assert verdicts(tmp_path / "copy")["x"].rescued
    after = contents(tmp_path / "copy")
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= {str(copy / "mnemopi.db-shm")}


@pytest.mark.claim("L-01")
def test_metadata_in_relaxed_json_is_read_where_sqlite_reads_it(tmp_path: Path) -> None:
    bank(tmp_path, "x", [MINE, f"{{cwd: '{CWD}',}}"])
    relaxed = sqlite3.sqlite_version_info >= (3, 42)
    expected = "all rows (2) come from this directory" if relaxed else "metadata that is not JSON"
    assert (verdicts(tmp_path)["x"].rescued, verdicts(tmp_path)["x"].reason) == (relaxed, expected)


@pytest.mark.claim("L-05", "L-06")
@pytest.mark.parametrize("name", [".hidden", "ünï code", "n" * 65, "a'b", "x?mode=rwc", "x%2e", "x#y", "default"])
def test_a_bank_that_its_name_does_not_lead_to_is_read_by_its_path(tmp_path: Path, name: str) -> None:
    path = bank(tmp_path, name)
    verdict = verdicts(tmp_path)[name]
    assert verdict.rescued
    assert verdict.by_path
    assert verdict.path == path
    assert "read by its path" in verdict.reason


@pytest.mark.claim("L-06")
def test_a_linked_file_is_read_by_its_path(tmp_path: Path) -> None:
    outside = bank(tmp_path / "outside", "good")
    folder = tmp_path / "banks" / "x"
    folder.mkdir(parents=True)
    (folder / "mnemopi.db").symlink_to(outside)
    verdict = verdicts(tmp_path)["x"]
    assert (verdict.rescued, verdict.by_path) == (True, True)


ENDLESS = """
CREATE VIEW working_memory (metadata_json) AS
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT '{}' FROM n
"""


@pytest.mark.claim("L-04")
def test_an_endless_bank_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "_CHECKS_PER_BANK", 5)
    bank(tmp_path, "x", [], setup=ENDLESS)
    bank(tmp_path, "good")
    found = verdicts(tmp_path)
    assert found["x"].reason == "takes too long to read"
    assert found["good"].rescued


def test_an_interrupt_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(_patience: object) -> bool:
        signal.raise_signal(signal.SIGINT)
        return False

    monkeypatch.setattr(legacy._Patience, "is_over", press)
    bank(tmp_path, "x", [], setup=ENDLESS)
    with pytest.raises(KeyboardInterrupt):
        legacy_banks(tmp_path / "mnemopi.db", CWD, ())


def test_oversized_metadata_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "_VALUE_LIMIT", 100_000)
    bank(tmp_path, "x", [MINE, json.dumps({"cwd": CWD, "pad": "x" * 200_000})])
    assert reason(tmp_path) == "oversized values"


@pytest.mark.claim("L-04")
@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_never_raise_and_never_change(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("damaged")
    path = bank(root, "x", [MINE] * 40)
    raw = bytearray(path.read_bytes())
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=30)):
        raw[at] = value
    del raw[data.draw(st.integers(1, len(raw))) :]
    path.write_bytes(raw)
    legacy_banks(root / "mnemopi.db", CWD, ())
    assert path.read_bytes() == raw
