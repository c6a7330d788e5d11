"""Browsing what is stored: filters, pages, stores, chains, and selections ended and brought back as one."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.db.copies import copies_of
from ipy_memory.backends.mnemopi.store.browse import STORES
from ipy_memory.clock import FixedClock
from ipy_memory.errors import BankError, BankNotFoundError, EditRefusedError, MemoryNotFoundError, ToolInputError
from ipy_memory.explore.browse import chain
from ipy_memory.explore.selection import invalidate_all, restore_all, undo_last
from tests.explore.conftest import CWD, NOW, OpenSession, fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.session import MemorySession


def local(session: MemorySession) -> MnemopiBackend:
    backend = session.live_backend()
    assert isinstance(backend, MnemopiBackend)
    return backend


def contents(session: MemorySession, where: dict[str, object] | None = None, bank: str | None = None) -> list[str]:
    return list(session.memories(bank, where)["content"])


@pytest.fixture
def session(open_here: OpenSession) -> MemorySession:
    """A bank with memories of several kinds and times."""
    session = open_here()
    session.retain(["The deploy target is fly.io", "Chai is preferred over coffee", "STRASSE und Straße"])
    session.save("Prefers dark mode", source="settings")
    rows = [
        ("a1", "The first plan", "2026-01-05T10:00:00.000Z", "user", "episode", "stated", None, None, "{}"),
        ("a2", "The second plan", "2026-02-28T23:59:00.000Z", "user", "fact", "inferred", "a3", None, '{"cwd": "/x"}'),
        ("a3", "The third plan", "2026-03-01T00:00:00.000Z", "user", "fact", "stated", None, None, "no json"),
        ("a4", "Gone by May", None, None, None, None, None, "2026-05-01T00:00:00.000Z", None),
    ]
    with local(session).writer().transaction() as connection:
        connection.executemany(
            "INSERT INTO working_memory (id, content, timestamp, source, memory_type, veracity, superseded_by,"
            " valid_until, metadata_json, session_id, scope)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'elsewhere', 'session')",
            rows,
        )
        connection.execute("UPDATE working_memory SET superseded_by = 'a2' WHERE id = 'a1'")
        connection.execute(
            "INSERT INTO episodic_memory (id, content, timestamp, session_id, scope, summary_of)"
            " VALUES ('e1', 'Plans of spring', '2026-03-02T00:00:00.000Z', 'elsewhere', 'session', 'a2, a3')"
        )
        connection.execute(
            "INSERT INTO facts (fact_id, session_id, subject, predicate, object, source_msg_id, timestamp)"
            " VALUES ('f1', 'elsewhere', 'plan', 'is', 'third', 'a3', '2026-03-01T00:00:00.000Z')"
        )
        connection.execute(
            "INSERT INTO triples (subject, predicate, object, source) VALUES ('plan', 'is', 'good', 'a3')"
        )
        connection.execute(
            "INSERT INTO annotations (memory_id, kind, value) VALUES ('a3', 'occurred_on', '2026-03-01')"
        )
    return session


def test_memories_are_listed_newest_first_with_typed_columns(session: MemorySession) -> None:
    frame = session.memories()
    assert frame["content"].tolist()[-5:] == [
        "Plans of spring",
        "The third plan",
        "The second plan",
        "The first plan",
        "Gone by May",
    ]
    assert set(frame["content"].tolist()[:4]) == {
        "The deploy target is fly.io",
        "Chai is preferred over coffee",
        "STRASSE und Straße",
        "Prefers dark mode",
    }
    assert frame.set_index("id")["state"].loc[["a1", "a2", "a3", "a4"]].tolist() == [
        "superseded",
        "superseded",
        "live",
        "expired",
    ]
    assert frame.attrs["total"] == 9
    assert frame.attrs["next_offset"] is None
    assert isinstance(frame["date"].dtype, pd.DatetimeTZDtype)
    assert frame["cwd"].dropna().unique().tolist() == [CWD, "/x"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"source": "user"}, ["The third plan", "The second plan", "The first plan"]),
        ({"type": "episode"}, ["The first plan"]),
        ({"veracity": "inferred"}, ["The second plan"]),
        ({"session": "elsewhere", "state": "live"}, ["Plans of spring", "The third plan"]),
        ({"cwd": "/x"}, ["The second plan"]),
        ({"state": "superseded"}, ["The second plan", "The first plan"]),
        ({"state": "expired"}, ["Gone by May"]),
        ({"since": "2026-03-01", "until": "2026-03-01"}, ["The third plan"]),
        ({"until": "2026-02"}, ["The second plan", "The first plan"]),
        ({"since": dt.date(2026, 3, 1), "until": "2026-04-30"}, ["Plans of spring", "The third plan"]),
        ({"text": "PLAN", "source": "user", "state": "live"}, ["The third plan"]),
        ({"text": "straße"}, ["STRASSE und Straße"]),
        ({"text": "strasse UND"}, ["STRASSE und Straße"]),
        ({"id": "a3"}, ["The third plan"]),
        ({"about": "a2"}, ["Plans of spring"]),
        ({"text": "100%_'\"--"}, []),
        ({"source": None, "id": "a1"}, ["The first plan"]),
    ],
)
def test_filters_all_hold(session: MemorySession, where: dict[str, object], expected: list[str]) -> None:
    assert contents(session, where) == expected


STAMPS = {
    "engine": "2026-03-10T10:00:00.000Z",
    "offset": "2026-03-10T12:30:00+03:00",  # 09:30 UTC
    "python": "2026-03-10T11:00:00.123456+00:00",
    "sqlite": "2026-03-10 12:00:00",  # local: 11:00 UTC
    "words": "Mar 10, 2026 08:00 GMT",
    "date": "2026-03-10",
    "late": "2026-03-09T23:30:00-05:00",  # 04:30 UTC of the 10th
    "bytes": b"2026-03-10T07:00:00.000Z",
    "garbage": "yesterday",
    "missing": None,
    "odd": b"\xff\xfe",
    "far": "+012026-01-01T00:00:00.000Z",
}
BY_TIME = ["far", "python", "sqlite", "engine", "offset", "words", "bytes", "late", "date"]
"""The ids of :data:`STAMPS` that have a time, newest first, in a zone one hour east of UTC."""


@pytest.fixture
def stamped(open_here: OpenSession) -> MemorySession:
    """A bank whose times have the forms that other programs write."""
    session = open_here(clock=FixedClock(NOW, tz=dt.timezone(dt.timedelta(hours=1))))
    session.retain("The clock")
    with local(session).writer().transaction() as connection:
        connection.execute("DELETE FROM working_memory")
        connection.executemany(
            "INSERT INTO working_memory (id, content, timestamp, session_id, scope) VALUES (?, ?, ?, 'x', 'session')",
            [(id_, f"Note {id_}", stamp) for id_, stamp in STAMPS.items()],
        )
    return session


def test_rows_are_listed_in_the_order_of_their_instants(stamped: MemorySession) -> None:
    """C09: whatever the form of their times; those without a readable time come last."""
    listed = stamped.memories(limit=None)
    assert listed["id"].tolist()[: len(BY_TIME)] == BY_TIME
    assert set(listed["id"].tolist()[len(BY_TIME) :]) == {"garbage", "missing", "odd"}
    assert listed["date"].iloc[1 : len(BY_TIME)].is_monotonic_decreasing
    paged = [stamped.memories(limit=1, offset=at)["id"].item() for at in range(len(STAMPS))]
    assert paged == listed["id"].tolist()


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("2026-03-10T11:30:00+02:00", "2026-03-10T10:00:00Z", ["engine", "offset"]),
        ("2026-03-10T09:30", "2026-03-10 10:00", ["engine", "offset"]),
        ("2026-03-10 11:00:00.123+00:00", "2026-03-10 11:00 Z", ["python"]),
        ("2026-03-10 11:00", "2026-03-10 11:00", ["python", "sqlite"]),
        ("2026-03-10 11:00:00", "2026-03-10 11:00:00.0", ["sqlite"]),
        ("2026-03-10", "2026-03-10", BY_TIME[1:]),
        ("2026-03", "2026-03", BY_TIME[1:]),
        ("2026", "2026", BY_TIME[1:]),
        ("2026-03-11", None, ["far"]),
        (None, "2026-03-09", []),
        ("2026-03-10T00:00:00-05:00", "2026-03-10T03:00:00-0500", ["words", "bytes"]),
        (dt.date(2026, 3, 10), dt.date(2026, 3, 10), BY_TIME[1:]),
        (dt.datetime(2026, 3, 10, 9, 30), dt.datetime(2026, 3, 10, 10), ["engine", "offset"]),
        (pd.Timestamp("2026-03-10 11:30", tz="Europe/Kyiv"), pd.Timestamp("2026-03-10 10:00Z"), ["engine", "offset"]),
        (pd.Timestamp("2026-03-10 09:30"), np.datetime64("2026-03-10T10:00:00.000000000"), ["engine", "offset"]),
        (np.datetime64("2026-03-10"), pd.Period("2026-03", "M"), BY_TIME[1:]),
    ],
)
def test_since_and_until_compare_instants(stamped: MemorySession, since: Any, until: Any, expected: list[str]) -> None:
    """C09: a zone offset, objects of datetime, pandas and NumPy, and other forms of time in the bank."""
    found = stamped.memories(where={"since": since, "until": until})
    assert found["id"].tolist() == expected
    assert json.loads(json.dumps(found.attrs)) == found.attrs


def test_a_column_of_a_frame_bounds_the_rows(stamped: MemorySession) -> None:
    """C09: the dates that a frame shows are those that the filters compare."""
    listed = stamped.memories(limit=None)
    dates = listed.set_index("id")["date"]
    for id_ in BY_TIME[1:]:
        found = stamped.memories(where={"since": dates[id_], "until": dates[id_]})
        assert id_ in found["id"].tolist()


@pytest.mark.parametrize(
    "value", ["yesterday", "31.5.2026", "2026-02-30", "2026-13", "2026-05-31T25:00", "", pd.NaT, 5.5]
)
def test_a_limit_that_is_no_time_is_an_error_with_an_example(session: MemorySession, value: object) -> None:
    for name in ("since", "until"):
        with pytest.raises(ToolInputError, match=f"'{name}' takes a date or time") as caught:
            session.memories(where={name: value})
        assert "2026-05-31T14:00+02:00" in str(caught.value.hint)


def test_the_times_that_sqlite_writes_are_utc(open_here: OpenSession) -> None:
    """C09, C12: annotations are filtered, ordered and shown by the instant of their row."""
    session = open_here(clock=FixedClock(NOW, tz=dt.timezone(dt.timedelta(hours=5))))
    session.retain("The clock")
    with local(session).writer().transaction() as connection:
        connection.execute("DELETE FROM annotations")
        connection.executemany(
            "INSERT INTO annotations (memory_id, kind, value, created_at) VALUES ('a', 'mentions', ?, ?)",
            [("first", "2026-03-10 10:00:00"), ("second", "2026-03-10T10:00:01.000Z")],
        )
    found = session.memories(store="annotation", where={"since": "2026-03-10T10:00", "until": "2026-03-10T10:00"})
    assert found["content"].tolist() == ["second", "first"]
    assert found["date"].astype(str).tolist() == ["2026-03-10 10:00:01+00:00", "2026-03-10 10:00:00+00:00"]


def test_pages_follow_each_other_without_a_gap(session: MemorySession) -> None:
    whole = session.memories(limit=None)["id"].tolist()
    paged: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = session.memories(limit=2, offset=offset)
        assert page.attrs["total"] == len(whole)
        paged += page["id"].tolist()
        offset = page.attrs["next_offset"]
    assert paged == whole
    assert session.memories(limit=2, offset=100)["id"].tolist() == []


def test_what_was_made_from_memories_is_listed_alike(session: MemorySession) -> None:
    about = session.memories(where={"about": "a3"}, store="all")
    assert dict(zip(about["store"], about["content"], strict=True)) == {
        "episodic": "Plans of spring",
        "fact": "plan is third",
        "annotation": "2026-03-01",
        "entity": "plan",
        "triple": "plan is good",
    }
    for store in STORES:
        frame = session.memories(store=store)
        assert len(frame)
        assert frame["store"].unique().tolist() == [store]
        pd.testing.assert_series_equal(frame.dtypes, session.memories(store=store, where={"id": "none"}).dtypes)
    entity = session.memories(store="entity", where={"text": "plan"})
    assert entity.loc[0, "about"] == ["a3"] or entity.loc[0, "about"] == ("a3",)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"where": {"sauce": "x"}}, "no filter 'sauce'"),
        ({"where": {"state": "dead"}}, "no memory is 'dead'"),
        ({"where": {"text": 5}}, "takes a text"),
        ({"store": "drawer"}, "no store 'drawer'"),
        ({"limit": 0}, "limit"),
        ({"offset": -1}, "offset"),
    ],
)
def test_a_wrong_question_is_an_error_that_names_what_there_is(
    session: MemorySession, given: dict[str, object], says: str
) -> None:
    with pytest.raises(ToolInputError, match=says):
        session.memories(**given)  # type: ignore[arg-type]


def test_an_empty_home_gives_the_same_columns_and_makes_nothing(
    session: MemorySession, open_here: OpenSession, tmp_path: Path
) -> None:
    filled = session.memories()
    fresh = open_here(cwd="/work/fresh")
    before = fingerprint(tmp_path)
    empty = fresh.memories()
    assert empty.empty
    pd.testing.assert_series_equal(empty.dtypes, filled.dtypes)
    with pytest.raises(BankNotFoundError, match="no bank 'projct'"):
        fresh.memories("projct")
    assert fingerprint(tmp_path) == before


def test_a_bank_is_reached_by_the_name_it_has_on_disk(session: MemorySession, tmp_path: Path) -> None:
    local(session).banks.close()
    own = local(session).target(session.live_backend().retain_bank).path
    odd = own.parents[1] / "a b.c" / "mnemopi.db"
    odd.parent.mkdir()
    odd.write_bytes(own.read_bytes())
    assert "The third plan" in contents(session, bank="a b.c")
    assert len(session.memories("*")) == 2 * len(session.memories())
    assert session.recall("plan", bank="a b.c").text


def test_the_chain_of_a_memory_is_the_same_from_each_of_its_links(session: MemorySession) -> None:
    for start in ("a1", "a2", "a3"):
        assert chain(session, start)["id"].tolist() == ["a1", "a2", "a3"]
    with local(session).writer().transaction() as connection:
        connection.execute("UPDATE working_memory SET superseded_by = 'a1' WHERE id = 'a3'")
    assert sorted(chain(session, "a2")["id"]) == ["a1", "a2", "a3"]
    with pytest.raises(MemoryNotFoundError):
        chain(session, "none")


@pytest.mark.claim("M-06")
def test_a_selection_is_ended_only_when_confirmed_and_restored_as_one(open_here: OpenSession, tmp_path: Path) -> None:
    session = open_here()
    session.retain([f"Old note {number} about the ferry" for number in range(12)])
    rows = session.memories(where={"text": "ferry"})
    bank = local(session).target(session.live_backend().retain_bank).path
    before = fingerprint(tmp_path)
    planned = invalidate_all(session, rows)
    assert (planned.done, planned.count) == (False, 12)
    assert str(planned) == f"12 memories would be invalidated: 12 in bank {session.live_backend().retain_bank}."
    assert fingerprint(tmp_path) == before
    session.change("invalidate", rows["id"][0])
    done = invalidate_all(session, rows, replacement="new", confirm=True)
    assert (done.done, done.count, len(done.edits)) == (True, 12, 12)
    assert len(copies_of(bank, tmp_path / "agent" / "ipy_memory" / "copies")) == 1
    assert session.recall("ferry").hits == ()
    assert set(session.memories()["superseded_by"]) == {"new"}
    restored = restore_all(session, done)
    assert str(restored).startswith("12 memories restored")
    # The one that was ended before is as it was then.
    assert session.memories(where={"state": "expired"})["id"].tolist() == [rows["id"][0]]
    assert undo_last(session).startswith("1 memory restored")
    assert session.memories(where={"state": "live"}).shape[0] == 12
    with pytest.raises(EditRefusedError, match="nothing to undo"):
        undo_last(session)


def test_what_cannot_be_ended_is_counted_with_its_reason(session: MemorySession) -> None:
    everything = session.memories(store="all")
    planned = invalidate_all(session, everything)
    assert planned.count == 4
    text = str(planned)
    assert "of another session of this bank" in text
    assert "not a memory of this bank" in text
    with pytest.raises(ToolInputError, match="no column 'bank'"):
        invalidate_all(session, everything[["id"]])


def test_a_selection_may_span_banks_that_are_not_in_scope(open_here: OpenSession) -> None:
    with open_here(cwd="/work/old-app") as old:
        old.retain(["Old app deploys by ferry", "Old app sleeps"])
        name = old.live_backend().retain_bank
    session = open_here()
    session.retain("Deploys by train")
    rows = session.memories("*", {"text": "deploys"})
    done = invalidate_all(session, rows, confirm=True)
    assert done.counts == {name: 1, session.live_backend().retain_bank: 1}
    assert len(session.memories("*", {"state": "expired"})) == 2
    assert undo_last(session).startswith("2 memories restored")
    assert len(session.memories("*", {"state": "expired"})) == 0


@pytest.mark.parametrize("damage", ["a name that is not UTF-8", "half a file", "not a database"])
def test_a_damaged_bank_beside_healthy_ones_is_left_out_and_named(
    open_here: OpenSession, tmp_path: Path, damage: str
) -> None:
    """A14: in the scope, or anywhere in the folder; asked for by its name it is an error."""
    with open_here("global") as shared:
        shared.retain("Shared by all")
    session = open_here("per-project-tagged")
    session.retain("Of this project")
    bad = tmp_path / "home" / "mnemopi.db"
    if damage == "half a file":
        bad.write_bytes(bad.read_bytes()[:6000])
    elif damage == "not a database":
        bad.write_bytes(b"words " * 1000)
    else:
        with closing(sqlite3.connect(bad)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET name = CAST(x'67fffe' AS TEXT) WHERE name = 'gists'")
            connection.commit()
    for asked in (None, "*"):
        frame = session.memories(asked)
        assert list(frame["content"]) == ["Of this project"]
        [problem] = frame.attrs["problems"]
        assert problem.startswith("Bank default did not answer: ")
    with pytest.raises(BankError):
        session.memories("default")
    assert [hit.content for hit in session.recall("project").hits] == ["Of this project"]


_MANY = """
import resource, sys
from ipy_memory.session import open_session
database, folder = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
with open_session("mnemopi", "/work/shop", database, {"mnemopi.scoping": "global"}, agent_dir=folder,
                  env={"HOME": folder}) as session:
    frame = session.memories("*", limit=None)
    print(len(frame), len(set(frame["bank"])), frame.attrs["problems"])
    print(open("/dev/null").read() == "")
"""


def test_more_banks_than_a_process_may_open_are_browsed(open_here: OpenSession, tmp_path: Path) -> None:
    """C14: each is closed before the next is opened, and other files can be opened afterwards."""
    session = open_here("global")
    session.retain("The harbour")
    session.close()
    shared = tmp_path / "home" / "mnemopi.db"
    for number in range(150):
        copy = tmp_path / "home" / "banks" / f"bank-{number}" / "mnemopi.db"
        copy.parent.mkdir(parents=True)
        shutil.copy(shared, copy)
    done = subprocess.run(
        [sys.executable, "-c", _MANY, shared, tmp_path], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["151 151 []", "True"]


def test_a_chain_in_a_bank_out_of_scope_names_that_bank(open_here: OpenSession) -> None:
    """C06: the row is there, so it is not said to be nowhere."""
    with open_here("global") as shared:
        (one,) = shared.retain("Everybody prefers tea").receipt.ids  # type: ignore[union-attr]
    session = open_here()
    session.retain("Own note")
    with pytest.raises(MemoryNotFoundError) as caught:
        chain(session, str(one))
    assert "default" in caught.value.message
    assert caught.value.hint == f"%memory chain --bank default {one}"
    assert chain(session, str(one), "default")["content"].tolist() == ["Everybody prefers tea"]
    with pytest.raises(MemoryNotFoundError, match="No memory has the id 0000"):
        chain(session, "0000")
