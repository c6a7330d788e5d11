"""The recall of one bank: what it reads, what it leaves alone, and that no query breaks it."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.schema import FULL_TEXT_TABLES
from ipy_memory.backends.mnemopi.db.visibility import Visibility
from ipy_memory.backends.mnemopi.recall import candidates, row_cache, scoring
from ipy_memory.backends.mnemopi.recall.facts import fact_recall
from ipy_memory.backends.mnemopi.recall.multi_bank import scoped_recall
from ipy_memory.backends.mnemopi.recall.row_cache import WORKING
from ipy_memory.backends.mnemopi.recall.single_bank import RecallOptions, recall, recall_enhanced, touch
from ipy_memory.backends.trace import Step, Trace
from ipy_memory.clock import FixedClock
from ipy_memory.errors import RecallCancelled
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
CLOCK = FixedClock(NOW)
IN_CHANNEL = RecallOptions(channel_id="proj")

ROWS = (
    {"id": "pool", "content": "The database pool size is 40"},
    {"id": "password", "content": "The database password rotates every 90 days"},
    {"id": "ferry", "content": "The ferry leaves at noon", "timestamp": "2026-05-01T08:00:00.000Z"},
    {"id": "gone", "content": "The database was moved", "valid_until": "2026-05-31T00:00:00.000Z"},
    {"id": "older", "content": "The database is old", "superseded_by": "pool"},
    {"id": "foreign", "content": "The database of others", "session_id": "else", "channel_id": "else"},
    {"id": "long", "content": "The database manual " + "x" * 600},
    {"id": "日本", "content": "データベースは東京にある 😀"},
)


def insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    full = {
        "timestamp": "2026-06-01T06:00:00.000Z",
        "session_id": "proj",
        "channel_id": "proj",
        "scope": "bank",
        "source": "notes",
        "importance": 0.75,
        "veracity": "stated",
    } | row
    marks = ", ".join("?" * len(full))
    connection.execute(f"INSERT INTO {table} ({', '.join(full)}) VALUES ({marks})", tuple(full.values()))


def fill(bank: Bank) -> None:
    with bank.transaction() as connection:
        for row in ROWS:
            insert(connection, "working_memory", dict(row))
        insert(connection, "episodic_memory", {"id": "ep", "content": "A ferry timetable", "summary_of": "x, ferry"})
        insert(connection, "episodic_memory", {"id": "ep2", "content": "Another database episode", "tier": 2})
        connection.execute(
            "INSERT INTO facts (fact_id, session_id, subject, predicate, object, confidence)"
            " VALUES ('f', 'proj', 'fact', 'entity', 'The user prefers ferry tickets', 0.7)"
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mnemopi.db"
    with Bank.open(path, "proj", clock=CLOCK) as bank:
        fill(bank)
    return path


@pytest.fixture
def bank(path: Path) -> Iterator[Bank]:
    with Bank.open(path, "proj", clock=CLOCK) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    with Bank.open(tmp_path_factory.mktemp("shared") / "mnemopi.db", "proj", clock=CLOCK) as opened:
        fill(opened)
        yield opened


def dump(path: Path) -> dict[str, list[dict[str, Any]]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    shadows = tuple(f"{name}_" for name in FULL_TEXT_TABLES)  # SQLite's own: they follow the virtual tables
    tables = [name for name in names if not name.startswith(shadows)]
    found = {table: [dict(row) for row in connection.execute(f"SELECT * FROM {table}")] for table in tables}
    connection.close()
    return found


def ids(hits: list[Any]) -> list[str]:
    return [hit.id for hit in hits]


def test_only_visible_rows_are_found(bank: Bank) -> None:
    found = set(ids(recall_enhanced(bank, "database", 8, IN_CHANNEL)))
    assert {"pool", "password", "long", "ep2"} <= found
    assert found.isdisjoint({"gone", "older", "foreign"})


@pytest.mark.claim("R-11", "R-12")
def test_a_long_content_is_a_preview_that_says_so(bank: Bank) -> None:
    hit = next(h for h in recall_enhanced(bank, "database manual", 8, IN_CHANNEL) if h.id == "long")
    assert js.units(hit.content) == 500
    assert hit.content.endswith("x…")
    assert (hit.truncated, hit.full_length) == (True, 620)
    whole = next(
        h for h in recall(bank, "database manual", 8, RecallOptions(content_preview_chars=0)) if h.id == "long"
    )
    assert (whole.truncated, len(whole.content)) == (False, 620)
    short = next(
        h for h in recall(bank, "database manual", 8, RecallOptions(content_preview_chars=7)) if h.id == "long"
    )
    assert short.content == "The da…"


def test_an_episode_gives_way_to_its_own_memory(bank: Bank) -> None:
    trace = Trace()
    found = ids(recall_enhanced(bank, "ferry", 8, IN_CHANNEL, trace))
    assert "ferry" in found
    assert "ep" not in found
    assert trace.of("ep")[0].step is Step.SUMMARISED
    assert trace.of("ep")[0].by == "ferry"


def test_recalling_writes_nothing(path: Path, bank: Bank) -> None:
    before, changes = dump(path), bank.connection.total_changes
    for query in ("database", "ferry yesterday", "", "zzz", "current database pool size limit"):
        recall_enhanced(bank, query, 8, IN_CHANNEL)
    assert bank.connection.total_changes == changes
    assert dump(path) == before


@pytest.mark.claim("R-34")
def test_counting_changes_two_columns_of_the_returned_rows(path: Path, bank: Bank) -> None:
    before = dump(path)
    hits = scoped_recall([bank], "database", 8).hits
    after = dump(path)
    counted = set()
    for table, rows in before.items():
        assert len(rows) == len(after[table])
        for old, new in zip(rows, after[table], strict=True):
            changed = {name for name in old if old[name] != new[name]}
            if changed:
                assert changed == {"recall_count", "last_recalled"}
                assert (new["recall_count"], new["last_recalled"]) == (old["recall_count"] + 1, NOW)
                counted.add(new["id"])
    assert counted == {hit.id for hit in hits if hit.tier != "fact"}


@pytest.mark.claim("R-34")
def test_a_bank_that_cannot_be_written_is_recalled_from(path: Path, bank: Bank) -> None:
    expected = scoped_recall([bank], "database", 8, should_touch=False).hits
    before = dump(path)
    with Bank.open_readonly(path, "proj", clock=CLOCK) as readonly:
        assert scoped_recall([readonly], "database", 8).hits == expected
    bank.connection.execute("PRAGMA query_only = ON")
    assert scoped_recall([bank], "database", 8).hits == expected
    assert dump(path) == before


@pytest.mark.claim("R-30")
def test_recall_opens_no_connection(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", refuse)
    assert scoped_recall([bank], "database", 8).hits


SPECIAL = st.sampled_from(
    [
        "\0",
        "\ud800",
        "\udfff",
        '"',
        "'",
        "*",
        "AND",
        " OR ",
        "NOT ",
        "NEAR(a b)",
        "^",
        "col:",
        "(",
        ")",
        "-",
        "😀",
        "日本",
        ";",
    ]
)


@given(st.lists(st.one_of(SPECIAL, st.text(max_size=8), st.sampled_from(["database", "ferry"])), max_size=12))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_query_breaks_recall(shared_bank: Bank, parts: list[str]) -> None:
    query = "".join(parts)
    hits = recall_enhanced(shared_bank, query, 8, IN_CHANNEL)
    assert len(hits) <= 8
    assert hits == recall_enhanced(shared_bank, query, 8, IN_CHANNEL)
    assert all(hit.score is not None and hit.bank == "proj" for hit in hits)


@pytest.mark.parametrize(
    "query",
    [
        "x" * 100_000,
        "database " * 12_000,
        "日本語" * 33_000,
        "\ud83d" * 100_000,
        "\0" * 1000,
        "AND OR NOT NEAR/2 {a b}:*",
    ],
)
def test_long_and_odd_queries_give_an_answer(bank: Bank, query: str) -> None:
    assert len(recall_enhanced(bank, query, 8, IN_CHANNEL)) <= 8


def test_operators_are_only_text(bank: Bank) -> None:
    for query in ("database*", '"database"', "database AND", "content:database", "-database", "(database"):
        assert "pool" in ids(recall_enhanced(bank, query, 8, IN_CHANNEL))


def test_a_foreign_bank_with_odd_cells_is_read(path: Path) -> None:
    connection = sqlite3.connect(path)
    for id_, column, value in (
        ("pool", "timestamp", b"\xff\xfe"),
        ("password", "importance", "much"),
        ("long", "content", b"database \xff\xfe\x00 bytes"),
        ("ferry", "veracity", 17),
    ):
        connection.execute(f"UPDATE working_memory SET {column} = ? WHERE id = ?", (value, id_))
    connection.execute("UPDATE working_memory SET source = CAST(x'ff41' AS TEXT) WHERE id = 'pool'")
    connection.execute("UPDATE working_memory SET content = ? WHERE id = 'ferry'", ("ferry " + "y" * 3_000_000,))
    connection.execute("UPDATE episodic_memory SET tier = 'two', summary_of = 5")
    connection.commit()
    connection.close()
    with Bank.open_readonly(path, "proj", clock=CLOCK) as bank:
        hits = recall_enhanced(bank, "database ferry", 20, IN_CHANNEL)
    assert {"pool", "password", "ferry"} <= set(ids(hits))
    assert next(hit for hit in hits if hit.id == "pool").source == "\ufffdA"
    assert next(hit for hit in hits if hit.id == "password").importance == 0.5


def test_an_empty_text_to_search_is_none(path: Path) -> None:
    with Bank.open(path, "proj", clock=CLOCK) as bank:
        bank.connection.execute("UPDATE working_memory SET embed_text = CASE id WHEN 'pool' THEN '' ELSE 'x' END")
        found = recall_enhanced(bank, "atabas", 20, IN_CHANNEL)
    assert [hit.id for hit in found if hit.tier == "working"] == ["pool"]


def test_an_older_bank_is_read_without_being_changed(path: Path) -> None:
    connection = sqlite3.connect(path)
    for name, table in (
        ("idx_wm_channel", "channel_id"),
        ("idx_wm_event_date", "event_date"),
        ("idx_wm_session_recall", "last_recalled"),
    ):
        connection.execute(f"DROP INDEX {name}")
        connection.execute(f"ALTER TABLE working_memory DROP COLUMN {table}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with Bank.open_readonly(path, "proj", clock=CLOCK) as bank:
        assert "pool" in ids(recall_enhanced(bank, "database", 8, IN_CHANNEL))
    assert path.read_bytes() == before


def test_a_lost_index_is_taken_for_an_empty_one(bank: Bank) -> None:
    bank.connection.execute("DROP TABLE fts_working")
    hits = recall_enhanced(bank, "database", 8, IN_CHANNEL)
    assert "pool" in ids(hits)
    assert all("fallback" in (hit.explanation or "") for hit in hits if hit.tier == "working")


@pytest.mark.claim("R-25")
def test_an_interrupt_leaves_the_bank_usable(path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = scoped_recall([bank], "database", 8, should_touch=False).hits
    before = dump(path)

    def interrupt(*_: object) -> float:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was not delivered")

    with monkeypatch.context() as patched:
        patched.setattr(scoring, "lexical_score", interrupt)
        with pytest.raises(KeyboardInterrupt):
            scoped_recall([bank], "database", 8)
    assert not bank.connection.in_transaction
    assert dump(path) == before
    assert scoped_recall([bank], "database", 8, should_touch=False).hits == expected


@pytest.mark.claim("R-25")
def test_a_token_cancels_before_and_during_the_work(path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    token = threading.Event()
    token.set()
    before = dump(path)
    with pytest.raises(RecallCancelled):
        scoped_recall([bank], "database", 8, cancel=token)
    late = threading.Event()

    def cancel(bank: Bank, *_: object) -> list[Any]:
        late.set()
        return []

    monkeypatch.setattr(candidates, "full_text", cancel)
    with pytest.raises(RecallCancelled):
        scoped_recall([bank], "database", 8, cancel=late)
    assert bank.cancel is None
    assert not bank.connection.in_transaction
    assert dump(path) == before


def test_texts_are_kept_only_while_the_bank_stays_the_same(path: Path, bank: Bank) -> None:
    assert "pool" in ids(recall_enhanced(bank, "database", 8, IN_CHANNEL))
    other = sqlite3.connect(path)
    other.execute("UPDATE working_memory SET content = 'about harbours' WHERE id = 'pool'")
    other.commit()
    other.close()
    assert "pool" not in ids(recall_enhanced(bank, "database", 8, IN_CHANNEL))
    assert "pool" in ids(recall_enhanced(bank, "harbours", 8, IN_CHANNEL))

    visible = Visibility(NOW, "proj", "proj")

    def change_and_fail() -> None:
        with bank.transaction() as connection:
            connection.execute("UPDATE working_memory SET content = 'database again' WHERE id = 'pool'")
            assert row_cache.by_rowid(bank, WORKING, visible, [1])[1].document.text == "database again"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    assert "pool" not in ids(recall_enhanced(bank, "database", 8, IN_CHANNEL))


class Vectors:
    model = "stub"

    def embed(self, texts: list[str]) -> list[list[float] | None]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float] | None:
        return None if text == "none" else [1.0, 0.0]


def test_vectors_find_what_words_do_not(path: Path) -> None:
    with Bank.open(path, "proj", clock=CLOCK, embedder=Vectors()) as bank:
        with bank.transaction() as connection:
            for id_, vector in (
                ("ferry", "[0.9, 0.1, 0]"),
                ("pool", "[0, 1]"),
                ("password", "no json"),
                ("long", "[]"),
            ):
                connection.execute(
                    "INSERT INTO memory_embeddings (memory_id, embedding_json) VALUES (?, ?)", (id_, vector)
                )
        hits = recall_enhanced(bank, "sailing", 8, IN_CHANNEL)
        assert ids(hits) == ["ferry"]
        assert hits[0].parts.dense == pytest.approx(0.9939, abs=1e-4)
        assert hits[0].explanation is not None
        assert hits[0].explanation.startswith("working vec dense=")
        assert recall_enhanced(bank, "none", 8, IN_CHANNEL) == []
        with bank.transaction() as connection:
            connection.execute("UPDATE memory_embeddings SET embedding_json = '[0, 1]'")
        assert recall_enhanced(bank, "sailing", 8, IN_CHANNEL) == []


def test_numpy_is_not_met_without_a_query_vector(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from ipy_memory.backends.mnemopi.db.bank import Bank; from ipy_memory.clock import FixedClock;"
        "from ipy_memory.backends.mnemopi.recall.multi_bank import scoped_recall;"
        f"bank = Bank.open(sys.argv[1], 'proj', clock=FixedClock({NOW!r}));"
        "scoped_recall([bank], 'x', 8); bank.close();"
        "print(sorted({'numpy', 'pandas', 'httpx', 'IPython', 'sqlite_utils'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m.db"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_account_tells_where_each_row_left(bank: Bank) -> None:
    trace = Trace(frozenset({"gone", "older", "foreign", "ferry", "absent"}))
    hits = recall_enhanced(bank, "database password pool", 2, IN_CHANNEL, trace)
    assert [trace.of(id_)[0].step for id_ in ids(hits)] == [Step.RETURNED] * len(hits)
    assert [trace.of(hit.id)[0].place for hit in hits] == list(range(len(hits)))
    assert trace.of("gone")[0].step is Step.EXPIRED
    assert (trace.of("older")[0].step, trace.of("older")[0].by is None) == (Step.SUPERSEDED, False)
    assert trace.of("foreign")[0].step is Step.OUT_OF_REACH
    assert trace.of("foreign")[0].detail == "of another session"
    assert trace.of("ferry")[0].step is Step.NO_SHARED_TERM
    assert trace.of("absent") == ()
    dropped = [c for c in trace.candidates.values() if c.step is Step.CUT]
    assert dropped
    assert all(candidate.score <= min(hit.score for hit in hits) for candidate in dropped)
    assert hits == recall_enhanced(bank, "database password pool", 2, IN_CHANNEL)


def test_the_account_names_the_floor(bank: Bank) -> None:
    trace = Trace()
    recall_enhanced(bank, "ferry zebra quagga", 8, IN_CHANNEL, trace)
    assert trace.floor is not None
    below = [c for c in trace.candidates.values() if c.step is Step.BELOW_FLOOR]
    assert below
    assert all(c.parts.keyword is not None and c.value < c.floor == trace.floor for c in below)


@pytest.mark.claim("R-18")
def test_facts_join_the_memories(bank: Bank) -> None:
    with_facts = ids(recall_enhanced(bank, "ferry tickets", 8, IN_CHANNEL))
    without = ids(recall_enhanced(bank, "ferry tickets", 8, RecallOptions(include_facts=False, channel_id="proj")))
    assert "f" in with_facts
    assert set(with_facts) - set(without) == {"f"}


@pytest.mark.claim("R-18")
@pytest.mark.parametrize(("k", "count"), [(1, 1), (2, 2), (4, 3), (6, 3), (8, 4)])
def test_half_of_an_answer_may_be_facts_and_three_of_it_anyway(tmp_path: Path, k: int, count: int) -> None:
    with Bank.open(tmp_path / "mnemopi.db", "proj", clock=CLOCK) as bank:
        with bank.transaction() as connection:
            for number in range(9):
                connection.execute(
                    "INSERT INTO facts (fact_id, session_id, subject, predicate, object, confidence)"
                    " VALUES (?, 'proj', 'fact', 'entity', ?, 0.7)",
                    (f"f{number}", f"The ferry of pier {number}"),
                )
        assert len(recall_enhanced(bank, "ferry", k, IN_CHANNEL)) == count


def test_a_number_of_facts_that_is_not_whole_is_cut(bank: Bank) -> None:
    (found,) = fact_recall(bank, "ferry tickets", 1)
    assert [hit.id for hit in fact_recall(bank, "ferry tickets", 1.9)] == [found.id]
    assert fact_recall(bank, "ferry tickets", 0.9) == []


def test_touch_leaves_invisible_rows_alone(path: Path, bank: Bank) -> None:
    touch(bank, {("working", "pool"): 2, ("working", "gone"): 1, ("fact", "f"): 1})
    counts = {row["id"]: row["recall_count"] for row in dump(path)["working_memory"]}
    assert (counts["pool"], counts["gone"]) == (2, 0)


def test_hits_are_json_ready(bank: Bank) -> None:
    from dataclasses import asdict

    assert json.dumps([asdict(hit) for hit in recall_enhanced(bank, "database", 8, IN_CHANNEL)])


@pytest.mark.parametrize(
    ("query", "importance", "ahead", "first"),
    [
        ("quarry heron lantern", 0.30, 0.0586, "plain"),  # three words: the score alone decides
        ("quarry heron lantern walnut", 0.58, 0.0578, "repeated"),
        ("quarry heron lantern walnut", 0.60, 0.0617, "plain"),
    ],
)
def test_a_word_more_is_worth_six_hundredths_from_four_words_on(
    tmp_path: Path, query: str, importance: float, ahead: float, first: str
) -> None:
    with Bank.open(tmp_path / "mnemopi.db", "proj", clock=CLOCK) as bank:
        with bank.transaction() as connection:
            insert(connection, "working_memory", {"id": "plain", "content": "quarry heron", "importance": importance})
            insert(connection, "working_memory", {"id": "repeated", "content": "quarry heron heron", "importance": 0.0})
        scores = {hit.id: hit.score or 0.0 for hit in recall(bank, query, 2, IN_CHANNEL)}
        assert scores["plain"] - scores["repeated"] == pytest.approx(ahead, abs=1e-9)
        assert ids(recall(bank, query, 1, IN_CHANNEL)) == [first]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (RecallOptions(source=""), {"none", "empty", "bob"}),
        (RecallOptions(author_id=""), {"empty"}),
        (RecallOptions(author_id="bob", channel_id=""), {"bob", "far"}),
        (RecallOptions(channel_id=""), {"none", "empty", "bob"}),
    ],
)
def test_what_an_empty_text_asks_for(tmp_path: Path, options: RecallOptions, found: set[str]) -> None:
    with Bank.open(tmp_path / "authors.db", "proj", clock=CLOCK) as bank:
        for id_, author, session in (
            ("none", None, "proj"),
            ("empty", "", "proj"),
            ("bob", "bob", "proj"),
            ("far", "bob", "else"),
        ):
            row = {"id": id_, "content": "alpha", "author_id": author, "session_id": session, "channel_id": ""}
            insert(bank.connection, "working_memory", row)
        assert set(ids(recall(bank, "alpha", 9, options))) == found


def test_half_a_row_more_than_fifty_leaves_no_full_text(tmp_path: Path) -> None:
    with Bank.open(tmp_path / "half.db", "proj", clock=CLOCK) as bank:
        insert(bank.connection, "working_memory", {"id": "a", "content": "alpha beta"})
        origins = [(recall(bank, "alpha", k)[0].explanation or "").split()[1] for k in (2.7, 18, 18.5, 19)]
    assert origins == ["fts", "fts", "fallback", "fts"]


def test_a_cell_of_bytes_is_no_text(tmp_path: Path) -> None:
    with Bank.open(tmp_path / "bytes.db", "proj", clock=CLOCK) as bank:
        insert(bank.connection, "working_memory", {"id": "a", "content": "alpha", "source": b"x", "timestamp": b"2026"})
        insert(bank.connection, "working_memory", {"id": "b", "content": b"alpha"})
        insert(bank.connection, "working_memory", {"id": "c", "content": "alpha", "embed_text": b"beta"})
        hits = {hit.id: hit for hit in recall(bank, "alpha beta", 9)}
    assert {id_: hit.parts.keyword for id_, hit in hits.items()} == {"a": 0.5, "c": 0.5}
    assert (hits["a"].source, hits["a"].timestamp) == (None, None)


@pytest.mark.parametrize("subject", ["entity", "Entity", " FACT\t", "\u00a0fact", "ENTITY "])
def test_the_noise_words_of_facts_are_no_words_of_theirs(tmp_path: Path, subject: str) -> None:
    """D07: trimmed, in any case."""
    with Bank.open(tmp_path / "noise.db", "proj", clock=CLOCK) as bank:
        bank.connection.execute(
            "INSERT INTO facts (fact_id, session_id, subject, predicate, object, timestamp, confidence)"
            " VALUES ('f', 'proj', ?, 'uses', 'Redis', '2026-06-01T11:00:00.000Z', 0.6)",
            (subject,),
        )
        assert fact_recall(bank, "entity fact", 5) == []
        assert [hit.content for hit in fact_recall(bank, "redis", 5)] == ["Redis"]
