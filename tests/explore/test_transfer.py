"""Moving banks: what leaves a bank comes back whole, is checked first, and nothing is overwritten or trimmed."""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory import open_session
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MagicError, MemoryToolkitError
from ipy_memory.explore.transfer import export, import_archive
from tests.explore.conftest import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory import MemorySession

TABLES = ("working_memory", "episodic_memory", "facts", "annotations", "gists", "graph_edges", "memoria_facts")


def opened(folder: Path, clock: FixedClock, **settings: Any) -> MemorySession:
    folder.mkdir(exist_ok=True)
    return open_session(
        "mnemopi",
        cwd="/proj/shop",
        database=folder / "mnemopi.db",
        settings={"mnemopi.scoping": "global"} | {f"mnemopi.{name}": value for name, value in settings.items()},
        agent_dir=folder,
        env={},
        clock=clock,
        ids=FixedIds(),
    )


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock("2026-06-01T12:00:00.000Z")


@pytest.fixture
def session(tmp_path: Path, clock: FixedClock) -> Iterator[MemorySession]:
    with opened(tmp_path / "one", clock) as made:
        made.retain(["Anna prefers green tea.", "The deploy target is Frankfurt.", "The gateway uses port 9077."])
        clock.advance(48 * 3_600_000)
        made.retain("Boris owns the billing service since March.")
        made.recall("tea")
        made.change("invalidate", made.memories()["id"].iloc[-1])
        yield made


def rows(path: Path, table: str, *without: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
    return [{name: row[name] for name in row.keys() if name not in without} for row in found]  # noqa: SIM118


def test_everything_that_left_comes_back(session: MemorySession, clock: FixedClock, tmp_path: Path) -> None:
    before = fingerprint(tmp_path / "one")
    done = export(session, tmp_path / "bank.jsonl")
    assert fingerprint(tmp_path / "one") == before
    assert stat.S_IMODE((tmp_path / "bank.jsonl").stat().st_mode) == 0o600
    assert str(done).startswith(f"Written: {tmp_path / 'bank.jsonl'} (")
    with opened(tmp_path / "two", clock) as other:
        found = import_archive(other, tmp_path / "bank.jsonl")
        assert "known already" in str(found)
        for query in ("tea", "deploy target", "billing", "port"):
            mine, its = session.recall(query, touch=False), other.recall(query, touch=False)
            assert mine.text == its.text
            assert mine.hits == its.hits
        again = import_archive(other, tmp_path / "bank.jsonl")
        assert not sum(again.banks["default"].added.values())
    for table in TABLES:
        skipped = ("id",) if table in {"annotations", "graph_edges", "memoria_facts"} else ()
        one = rows(tmp_path / "one" / "mnemopi.db", table, "trust_tier", *skipped)
        two = rows(tmp_path / "two" / "mnemopi.db", table, "trust_tier", *skipped)
        assert one == two, table
    tiers = {
        row["trust_tier"]
        for row in rows(tmp_path / "two" / "mnemopi.db", "working_memory")
        if not row["consolidated_at"]
    }
    assert tiers <= {"IMPORTED"}


def test_old_rows_are_not_trimmed_by_what_is_stored_next(tmp_path: Path, clock: FixedClock) -> None:
    with opened(tmp_path / "one", clock) as first:
        first.retain([f"Note {number} of last year." for number in range(40)])
        with closing(sqlite3.connect(tmp_path / "one" / "mnemopi.db")) as connection:
            connection.execute("UPDATE working_memory SET timestamp = '2025-01-01T00:00:00.000Z'")
            connection.commit()
        export(first, tmp_path / "old.jsonl")
    with opened(tmp_path / "two", clock) as other:
        import_archive(other, tmp_path / "old.jsonl")
        other.retain("Something new.")
        assert len(other.memories(where={"text": "of last year"}, store="working", limit=None)) == 40


def test_into_another_bank_sessions_take_its_name(session: MemorySession, clock: FixedClock, tmp_path: Path) -> None:
    export(session, tmp_path / "bank.jsonl")
    with opened(tmp_path / "two", clock, bank="team") as other:
        import_archive(other, tmp_path / "bank.jsonl", into="team")
        assert other.recall("deploy target", touch=False).hits
        assert set(other.memories(limit=None)["session_id"]) == {"team"}


def test_a_dry_run_writes_nothing(session: MemorySession, clock: FixedClock, tmp_path: Path) -> None:
    export(session, tmp_path / "bank.jsonl")
    with opened(tmp_path / "two", clock) as other:
        assert "would be" in str(import_archive(other, tmp_path / "bank.jsonl", dry_run=True))
        assert not (tmp_path / "two" / "mnemopi.db").exists()
        other.retain("Mine.")
        before = len(other.memories(limit=None))
        found = import_archive(other, tmp_path / "bank.jsonl", dry_run=True)
        assert found.banks["default"].added["working_memory"] >= 1
        assert len(other.memories(limit=None)) == before


@pytest.mark.parametrize(
    ("way", "texts"), [("skip", {"Mine."}), ("newer", {"Theirs."}), ("both", {"Mine.", "Theirs."})]
)
def test_what_becomes_of_a_known_id(tmp_path: Path, clock: FixedClock, way: str, texts: set[str]) -> None:
    with opened(tmp_path / "one", clock) as first:
        id_ = first.retain("Theirs.").receipt.ids[0]  # type: ignore[union-attr]
        with closing(sqlite3.connect(tmp_path / "one" / "mnemopi.db")) as connection:
            connection.execute("UPDATE working_memory SET timestamp = '2026-06-01T13:00:00.000Z'")
            connection.commit()
        export(first, tmp_path / "bank.jsonl")
    with opened(tmp_path / "two", clock) as other:
        other.retain("Mine.")
        with closing(sqlite3.connect(tmp_path / "two" / "mnemopi.db")) as connection:
            connection.execute("UPDATE working_memory SET id = ?", (id_,))
            connection.commit()
        import_archive(other, tmp_path / "bank.jsonl", conflict=way)
        frame = other.memories(store="working", limit=None)
        assert set(frame["content"]) == texts
        assert frame["id"].is_unique


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("harm", ["cut", "changed", "more", "empty", "other"])
def test_a_damaged_archive_is_refused_before_anything_is_written(
    session: MemorySession, clock: FixedClock, tmp_path: Path, harm: str
) -> None:
    path = tmp_path / "bank.jsonl"
    export(session, path)
    lines = lines_of(path)
    harmed = {
        "cut": lines[:-1],
        "changed": [line.replace(b"Frankfurt", b"Frankfurd") for line in lines],
        "more": [*lines[:-1], lines[1], lines[-1]],
        "empty": [],
        "other": [b'{"memories": []}\n'],
    }[harm]
    path.write_bytes(b"".join(harmed))
    with opened(tmp_path / "two", clock) as other, pytest.raises(MemoryToolkitError):
        import_archive(other, path)
    assert not (tmp_path / "two" / "mnemopi.db").exists()


@pytest.mark.parametrize(
    "row",
    [
        {"table": "sqlite_master", "row": {"id": "x"}},
        {"table": "working_memory", "row": {"id": 1, "content": "x"}},
        {"table": "working_memory", "row": {"id": "x"}},
        {"table": "working_memory", "row": {"id": "x", "content": "x", "importance": 1 << 70}},
        {"table": "working_memory", "row": {"id": "x", "content": "x", "metadata_json": {"bytes": "?"}}},
        {"table": "working_memory", "row": {"id": "x", "content": "x", "metadata_json": [1]}},
    ],
)
def test_a_row_that_no_bank_holds_is_refused(session: MemorySession, tmp_path: Path, row: dict[str, Any]) -> None:
    path = tmp_path / "made.jsonl"
    head = {"format": "ipy_memory.bank", "version": 1, "bank": "default", "counts": {}}
    path.write_text("\n".join(json.dumps(line) for line in (head, row)) + "\n")
    before = fingerprint(tmp_path / "one")
    with pytest.raises(MagicError, match="line 2"):
        import_archive(session, path)
    assert fingerprint(tmp_path / "one") == before


@pytest.mark.parametrize("name", ["../../outside", "/etc/x", "a\0b", ""])
def test_a_bank_name_leads_nowhere_else(session: MemorySession, tmp_path: Path, name: str) -> None:
    import hashlib

    head = {"format": "ipy_memory.bank", "version": 1, "bank": name, "counts": {}}
    row = {"table": "working_memory", "row": {"id": "planted", "content": "planted"}}
    body = "".join(json.dumps(line) + "\n" for line in (head, row)).encode()
    end = {"end": "ipy_memory.bank", "rows": 1, "sha256": hashlib.sha256(body).hexdigest()}
    (tmp_path / "made.jsonl").write_bytes(body + json.dumps(end).encode() + b"\n")
    outside = {path for path in tmp_path.rglob("*") if tmp_path / "one" not in path.parents}
    with pytest.raises(MemoryToolkitError):
        import_archive(session, tmp_path / "made.jsonl")
    assert {path for path in tmp_path.rglob("*") if tmp_path / "one" not in path.parents} == outside


def test_no_file_is_overwritten_and_unknown_forms_are_named(session: MemorySession, tmp_path: Path) -> None:
    (tmp_path / "bank.jsonl").write_text("mine")
    with pytest.raises(MemoryToolkitError, match="there already"):
        export(session, tmp_path / "bank.jsonl")
    assert (tmp_path / "bank.jsonl").read_text() == "mine"
    with pytest.raises(MagicError, match="form"):
        export(session, tmp_path / "bank.xyz")
    with pytest.raises(MemoryToolkitError, match="cannot be written"):
        export(session, tmp_path / "no" / "folder.jsonl")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_forms_to_read_say_what_they_leave_out(session: MemorySession, tmp_path: Path) -> None:
    session.retain('=HYPERLINK("http://x","y") is text')
    done = export(session, tmp_path / "bank.csv")
    table = (tmp_path / "bank.csv").read_text()
    assert "'=HYPERLINK" in table
    assert "left out" in done.notes[0]
    export(session, tmp_path / "bank.md")
    assert "    The deploy target is Frankfurt." in (tmp_path / "bank.md").read_text()


def test_credentials_can_be_left_out(session: MemorySession, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    with closing(sqlite3.connect(tmp_path / "one" / "mnemopi.db")) as connection:
        connection.execute("UPDATE working_memory SET content = ? WHERE content LIKE '%Boris%'", (f"token {secret}",))
        connection.commit()
    export(session, tmp_path / "whole.jsonl")
    export(session, tmp_path / "clean.jsonl", redacted=True)
    assert secret in (tmp_path / "whole.jsonl").read_text()
    assert secret not in (tmp_path / "clean.jsonl").read_text()
