"""The local backend: edits as the user makes them, with a dry run, a copy before the first one, a purge without."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory import text
from ipy_memory.backends.base import Edit, Operation
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.copies import copies_of
from ipy_memory.backends.mnemopi.store.edit import edit
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import EditRefusedError, MemoryNotFoundError, MemoryToolkitError
from ipy_memory.own_files import state_path
from ipy_memory.scoping.modes import project_bank
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(
        "mnemopi",
        "/work/shop",
        tmp_path / "mnemopi.db",
        {"mnemopi.scoping": "global"},
        agent_dir=tmp_path,
        env={"HOME": str(tmp_path)},
        clock=FixedClock(NOW),
        ids=FixedIds(),
    ) as session:
        yield session


def copies(tmp_path: Path) -> list[Path]:
    return copies_of(tmp_path / "mnemopi.db", state_path(tmp_path, "copies"))


def stored(session: MemorySession, text: str) -> str:
    receipt = session.retain(text).receipt
    assert receipt is not None
    return str(receipt.ids[0])


@pytest.mark.claim("M-06")
def test_the_bank_is_copied_once_before_the_first_edit(session: MemorySession, tmp_path: Path) -> None:
    memory_id = stored(session, "The deploy target is fly.io")
    with pytest.raises(MemoryNotFoundError):
        session.change("update", "none", content="x")
    assert copies(tmp_path) == []
    session.change("update", memory_id, content="The deploy target is hetzner")
    (copy,) = copies(tmp_path)
    assert copy.name.endswith(".2026-06-01T120000Z.backup")
    with Bank.open_readonly(copy, "default", clock=FixedClock(NOW)) as old:
        rows = old.connection.execute("SELECT content FROM working_memory").fetchall()
        assert rows == [("The deploy target is fly.io",)]
    session.change("invalidate", memory_id)
    session.change("forget", memory_id)
    assert copies(tmp_path) == [copy]


@pytest.mark.claim("M-06")
def test_a_dry_run_says_the_same_and_writes_nothing(session: MemorySession, tmp_path: Path) -> None:
    memory_id = stored(session, "The deploy target is fly.io")
    before = (tmp_path / "mnemopi.db").read_bytes()
    for op in ("update", "invalidate", "forget"):
        planned = session.change(op, memory_id, content="new text" if op == "update" else None, dry_run=True)
        assert (planned.status, planned.bank, planned.store) == (
            {"update": "updated", "invalidate": "invalidated", "forget": "deleted"}[op],
            "default",
            "working",
        )
    assert (tmp_path / "mnemopi.db").read_bytes() == before
    assert session.memory(memory_id).content == "The deploy target is fly.io"
    assert copies(tmp_path) == []
    with pytest.raises(MemoryNotFoundError, match="none"):
        session.change("forget", "none", dry_run=True)


@pytest.mark.claim("M-03")
@pytest.mark.parametrize("op", ["update", "invalidate", "forget"])
def test_a_dry_run_foresees_every_kind_of_row(tmp_path: Path, op: Operation) -> None:
    clock = FixedClock(NOW)
    with Bank.open(tmp_path / "m.db", "proj", clock=clock, ids=FixedIds()) as bank:
        remember(bank, "Own working memory", RememberOptions(source="notes"))
        for table in ("working_memory", "episodic_memory"):
            for session in ("proj", "elsewhere"):
                for scope in ("bank", "global"):
                    bank.connection.execute(
                        f"INSERT INTO {table} (id, content, session_id, scope, timestamp)"
                        f" VALUES ('{table[:2]}-{session}-{scope}', 'text', '{session}', '{scope}', '{NOW}')"
                    )
        bank.connection.execute(
            "INSERT INTO facts (fact_id, session_id, subject, predicate, object) VALUES ('f1', 'proj', 'a', 'b', 'c')"
        )
        ids = [
            row[0]
            for row in bank.connection.execute("SELECT id FROM working_memory UNION SELECT id FROM episodic_memory")
        ]
        for memory_id in [*ids, "f1", "none"]:
            content = "other text" if op == "update" else None
            planned = edit([bank], Edit(op, memory_id, content=content, dry_run=True))
            done = edit([bank], Edit(op, memory_id, content=content))
            assert (planned.status, planned.bank, planned.store) == (done.status, done.bank, done.store), memory_id


@pytest.mark.claim("M-06")
def test_a_purge_makes_no_copy_and_leaves_no_byte(session: MemorySession, tmp_path: Path) -> None:
    memory_id = stored(session, "The deploy target is xyloquartz")
    assert session.change("forget", memory_id, purge=True).status == "deleted"
    session.close()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"xyloquartz" not in path.read_bytes()


@pytest.mark.claim("M-06")
def test_an_undone_edit_is_no_longer_the_last(session: MemorySession) -> None:
    memory_id = stored(session, "The deploy target is fly.io")
    done = session.change("update", memory_id, content="The deploy target is hetzner")
    assert session.undo(done)
    assert session.live_backend().edits == []  # type: ignore[attr-defined]
    long = "x" * 600
    other = stored(session, long)
    preview = session.recall("x" * 10).hits
    with pytest.raises(EditRefusedError, match="cut preview"):
        session.change("update", other, content=long[:499] + "…", dry_run=True)
    assert session.memory(other).content == long
    assert preview == () or preview[0].truncated


@pytest.mark.claim("M-03")
def test_forgetting_says_what_goes_along(session: MemorySession, tmp_path: Path) -> None:
    memory_id = stored(session, "The deploy target is fly.io")
    bank = session.live_backend().writer()  # type: ignore[attr-defined]
    with bank.transaction() as connection:
        connection.execute(
            "INSERT INTO facts (fact_id, session_id, subject, predicate, object, source_msg_id)"
            " VALUES ('f1', 'default', 'deploy', 'target', 'fly.io', ?)",
            (memory_id,),
        )
        connection.execute("INSERT INTO memory_embeddings (memory_id, embedding_json) VALUES (?, '[1]')", (memory_id,))
        connection.execute("INSERT INTO graph_edges (source, target, edge_type) VALUES ('x', 'f1', 'rel')")
        connection.execute(
            "INSERT INTO graph_edges (source, target, edge_type) VALUES (?, 'y', 'rel')", (f"gist_{memory_id}",)
        )
    expected = {"annotations": 2, "memory_embeddings": 1, "facts": 1, "graph_edges": 2}
    assert dict(session.change("forget", memory_id, dry_run=True).along) == expected
    assert dict(session.change("forget", memory_id).along) == expected
    for table in expected:
        assert bank.connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert bank.connection.execute("SELECT count(*) FROM fts_working").fetchone() == (0,)


@pytest.mark.parametrize("place", ["banks", "banks/shop"])
def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, place: str) -> None:
    """C20: not an empty answer, but the reason why there can be none."""
    (tmp_path / place).parent.mkdir(exist_ok=True)
    name = project_bank(None, "/work/shop")
    (tmp_path / place.replace("shop", name)).touch()
    given = {"agent_dir": tmp_path, "env": {"HOME": str(tmp_path)}, "clock": FixedClock(NOW), "ids": FixedIds()}
    with open_session("mnemopi", "/work/shop", tmp_path / "mnemopi.db", **given) as session:  # type: ignore[arg-type]
        calls: list[Callable[[], object]] = [
            lambda: session.recall("deploy"),
            lambda: session.retain("deploy"),
            lambda: session.memory("0" * 16),
            session.memories,
            lambda: session.change("forget", "0" * 16),
        ]
        for call in calls:
            with pytest.raises(MemoryToolkitError, match="a folder of its path is a file"):
                call()


def recalled(path: Path) -> list[tuple[str, int, str | None]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT content, COALESCE(recall_count, 0), last_recalled FROM working_memory ORDER BY rowid"
        ).fetchall()


@pytest.fixture
def writer(session: MemorySession, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Another writer's connection to the bank, which holds the write lock until it commits."""
    stored(session, "The deploy target is fly.io")
    with closing(sqlite3.connect(tmp_path / "mnemopi.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@pytest.mark.claim("R-34")
def test_counters_wait_for_another_writer_and_are_made_up_at_the_next_recall(
    session: MemorySession, writer: sqlite3.Connection, tmp_path: Path
) -> None:
    """C18: a recall does not wait for a bank whose write lock is held."""
    clock = session.clock
    assert isinstance(clock, FixedClock)
    begun = time.monotonic()
    for minute in range(3):
        clock.set(f"2026-06-01T12:0{minute}:00.000Z")
        found = session.recall("deploy target")
        assert len(found.hits) == 1
        assert [note for note in found.notes if "counted at the next recall" in note]
    assert time.monotonic() - begun < 4  # one wait of a writer alone is five seconds
    assert [row[1] for row in recalled(tmp_path / "mnemopi.db")] == [0]
    writer.execute("COMMIT")
    clock.set("2026-06-01T12:30:00.000Z")
    assert session.recall("deploy target", touch=False).notes == ()
    assert [row[1] for row in recalled(tmp_path / "mnemopi.db")] == [0]
    assert session.recall("nothing like it").notes == ()
    assert recalled(tmp_path / "mnemopi.db") == [("The deploy target is fly.io", 3, "2026-06-01T12:02:00.000Z")]
    found = session.recall("deploy target")
    assert (found.notes, found.hits[0].recall_count) == ((), 3)
    assert recalled(tmp_path / "mnemopi.db") == [("The deploy target is fly.io", 4, "2026-06-01T12:30:00.000Z")]


def test_counters_that_waited_keep_the_time_of_their_recall(
    session: MemorySession, writer: sqlite3.Connection, tmp_path: Path
) -> None:
    clock = session.clock
    assert isinstance(clock, FixedClock)
    session.recall("deploy target")
    writer.execute("COMMIT")
    clock.set("2026-06-02T12:00:00.000Z")
    stored(session, "Tea is served at four")
    session.recall("tea served")
    assert recalled(tmp_path / "mnemopi.db") == [
        ("The deploy target is fly.io", 1, NOW),
        ("Tea is served at four", 1, "2026-06-02T12:00:00.000Z"),
    ]


def test_counters_that_still_wait_are_written_at_the_end_of_the_session(
    session: MemorySession, writer: sqlite3.Connection, tmp_path: Path
) -> None:
    session.recall("deploy target")
    writer.execute("COMMIT")
    session.close()
    assert recalled(tmp_path / "mnemopi.db") == [("The deploy target is fly.io", 1, NOW)]


def test_counters_of_very_many_recalls_are_all_kept(
    session: MemorySession, writer: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipy_memory.backends.mnemopi.db.bank.COUNT_PATIENCE_MS", 0)
    monkeypatch.setattr("ipy_memory.backends.mnemopi.recall.single_bank._KEPT_BATCHES", 3)
    for _ in range(9):
        session.recall("deploy target")
    writer.execute("COMMIT")
    session.recall("deploy target")
    assert recalled(tmp_path / "mnemopi.db")[0][1] == 10


def test_a_user_is_told_what_the_agents_ranking_leaves_out(session: MemorySession) -> None:
    session.retain("The deploy target is hetzner")
    late = " ".join(f"word{number}" for number in range(12)) + " hetzner"
    assert text.words_not_read(["hetzner"]) in session.recall(late, touch=False).notes
    assert session.recall("deploy target", touch=False).notes == ()
    many = "hetzner " + " ".join(f"word{number}" for number in range(11))
    found = session.recall(many, touch=False)
    assert found.hits == ()
    assert text.ALL_BELOW_FLOOR in found.notes
    assert text.ALL_BELOW_FLOOR not in session.recall("zebra", touch=False).notes
    assert session.recall(many, ranking="best").hits
