"""Writing memories: rows, duplicates, receipts, and that nothing is ever half-written."""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.db import connection
from ipy_memory.backends.mnemopi.db.bank import Bank, Pending
from ipy_memory.backends.mnemopi.store.delete import TRIM_ROWS, trim
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember, retain_items
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import BankError, BusyBankError, DiskFullError, ReadOnlyBankError
from ipy_memory.model import Receipt, RetainItem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
FACTS = "I prefer tea. My name is Jordan."


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with _open(tmp_path / "mnemopi.db") as opened:
        yield opened


def _open(path: Path, **config: Any) -> Bank:
    completion = config.pop("completion", None)
    return Bank.open(
        path, "proj", clock=FixedClock(NOW), ids=FixedIds(), config=EngineConfig(**config), completion=completion
    )


def _retain(bank: Bank, *contents: str, trim_old: bool = False) -> Receipt:
    items = [RetainItem(content) for content in contents]
    return retain_items(bank, items, session_id="sess-1", cwd="/proj/demo", trim_old=trim_old)


def _column(bank: Bank, sql: str, *values: object) -> list[Any]:
    return [row[0] for row in bank.connection.execute(sql, values)]


def _counts(bank: Bank) -> dict[str, int]:
    tables = ("working_memory", "fts_working", "annotations", "facts", "memoria_facts", "gists", "graph_edges")
    return {table: _column(bank, f"SELECT count(*) FROM {table}")[0] for table in tables}


def _fail_on(bank: Bank, table: str, column: str, word: str, how: str = "ABORT") -> None:
    bank.connection.execute(
        f"CREATE TEMP TRIGGER fail BEFORE INSERT ON main.{table} WHEN instr(NEW.{column}, '{word}')"
        f" BEGIN SELECT RAISE({how}, 'the write failed'); END"
    )


@pytest.mark.claim("T-05", "T-07")
def test_a_retained_item_is_in_the_file_when_the_call_returns(bank: Bank) -> None:
    receipt = retain_items(
        bank,
        [RetainItem("one", "ctx"), RetainItem("two"), RetainItem("three", "")],
        session_id="sess-1",
        cwd="/proj/demo",
    )
    with sqlite3.connect(bank.path) as other:
        rows = other.execute(
            "SELECT id, content, source, importance, scope, veracity, memory_type, metadata_json FROM working_memory"
            " ORDER BY rowid"
        ).fetchall()
    other.close()
    assert [row[0] for row in rows] == list(receipt.ids)
    assert [row[1] for row in rows] == ["one", "two", "three"]
    assert {row[2:7] for row in rows} == {("coding-agent-retain", 0.75, "bank", "tool", "fact")}
    assert [row[7] for row in rows] == [
        f'{{"session_id":"sess-1","cwd":"/proj/demo","context":{context},"tool":"retain"}}'
        for context in ('"ctx"', "null", '""')
    ]
    assert receipt.failures == ()


@pytest.mark.claim("T-02")
@pytest.mark.parametrize("content", ["", "   ", "\n\t", " padded "])
def test_content_is_stored_as_given(bank: Bank, content: str) -> None:
    assert _retain(bank, content).failures == ()
    assert _column(bank, "SELECT content FROM working_memory") == [content]


def test_a_row_without_importance_stays_without(bank: Bank) -> None:
    remember(bank, "the same", RememberOptions())
    bank.connection.execute("UPDATE working_memory SET importance = NULL")
    remember(bank, "the same", RememberOptions(importance=0.9))
    assert _column(bank, "SELECT importance FROM working_memory") == [None]


@pytest.mark.claim("T-08")
def test_the_same_content_again_refreshes_its_row(bank: Bank) -> None:
    first = remember(bank, FACTS, RememberOptions(importance=0.9, metadata={"a": 1}, extract=True))
    bank.clock.advance(5000)  # type: ignore[attr-defined]
    receipt = _retain(bank, FACTS, FACTS)
    assert receipt.ids == (first, first)
    assert receipt.duplicates == 2
    row = bank.connection.execute("SELECT timestamp, importance, metadata_json FROM working_memory").fetchall()
    assert row == [("2026-06-01T12:00:05.000Z", 0.9, '{"a":1}')]
    assert len(_column(bank, "SELECT fact_id FROM facts")) == 2


@pytest.mark.claim("T-08")
@settings(max_examples=40, deadline=None)
@given(contents=st.lists(st.sampled_from(["a", "A", "a ", "b", "\ud83d", "\ufffd"]), min_size=1, max_size=8))
def test_one_row_for_each_different_content(tmp_path_factory: pytest.TempPathFactory, contents: list[str]) -> None:
    with _open(tmp_path_factory.mktemp("bank") / "mnemopi.db") as bank:
        receipt = _retain(bank, *contents)
        different = {content.replace("\ud83d", "\ufffd") for content in contents}
        assert len(_column(bank, "SELECT id FROM working_memory")) == len(different) == len(set(receipt.ids))
        assert receipt.duplicates == len(contents) - len(different)


@pytest.mark.claim("T-10")
def test_credentials_are_taken_out_before_anything_is_stored(bank: Bank) -> None:
    secret = "secret_aB3dE5gH7jK9aB3d"
    receipt = retain_items(bank, [RetainItem(f"I use {secret}", secret)], session_id="sess-1", cwd="/proj/demo")
    remember(
        bank, "x", RememberOptions(source=secret, embed_text=secret, extract_text=f"I like {secret}", extract=True)
    )
    bank.close()
    assert receipt.redacted == 2
    for file in bank.path.parent.iterdir():
        assert secret.encode() not in file.read_bytes()


@pytest.mark.claim("T-06")
def test_a_failing_item_is_taken_back_alone(bank: Bank, caplog: pytest.LogCaptureFixture) -> None:
    _fail_on(bank, "annotations", "memory_id", _id_of(bank, "two"))
    bank.ids.last = 0  # type: ignore[attr-defined]
    with caplog.at_level(logging.WARNING, "ipy_memory"):
        receipt = _retain(bank, "one", "two", FACTS)
    assert [failure.index for failure in receipt.failures] == [1]
    assert isinstance(receipt.failures[0].error, sqlite3.Error | BankError)
    assert receipt.ids[1] is None
    assert _column(bank, "SELECT content FROM working_memory ORDER BY rowid") == ["one", FACTS]
    assert "memory not stored" in caplog.text
    assert "two" not in caplog.text


def _id_of(bank: Bank, content: str) -> str:
    from ipy_memory.clock import memory_id

    return memory_id(content, NOW, "1:2:2")


@pytest.mark.claim("T-06")
def test_a_memory_whose_facts_fail_is_not_stored_without_them(bank: Bank) -> None:
    _fail_on(bank, "memoria_facts", "value", "Jordan")
    receipt = _retain(bank, "one", FACTS, FACTS, "two")
    assert [failure.index for failure in receipt.failures] == [1, 2]
    assert _column(bank, "SELECT content FROM working_memory ORDER BY rowid") == ["one", "two"]
    assert _counts(bank) == {
        "working_memory": 2,
        "fts_working": 2,
        "annotations": 4,
        "facts": 0,
        "memoria_facts": 0,
        "gists": 0,
        "graph_edges": 0,
    }


@pytest.mark.claim("T-06")
def test_when_the_whole_transaction_goes_every_item_is_named(bank: Bank) -> None:
    _fail_on(bank, "memoria_facts", "value", "Jordan", "ROLLBACK")
    receipt = _retain(bank, "one", FACTS, "two")
    assert [failure.index for failure in receipt.failures] == [0, 1, 2]
    assert receipt.ids == (None, None, None)
    assert set(_counts(bank).values()) == {0}
    bank.connection.execute("DROP TRIGGER fail")
    assert _retain(bank, "one").failures == ()


@pytest.mark.claim("T-06")
def test_a_full_disk_loses_nothing_and_says_so(bank: Bank) -> None:
    _retain(bank, "kept")
    pages = _column(bank, "PRAGMA page_count")[0]
    bank.connection.execute(f"PRAGMA max_page_count = {pages}")
    receipt = _retain(bank, "x" * 50_000)
    assert isinstance(receipt.failures[0].error, DiskFullError)
    bank.connection.execute("PRAGMA max_page_count = 1000000")
    assert _column(bank, "SELECT content FROM working_memory") == ["kept"]
    assert _column(bank, "PRAGMA integrity_check") == ["ok"]


@pytest.mark.claim("T-06")
def test_a_locked_bank_names_every_item(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_MS", 0)
    other = sqlite3.connect(bank.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    receipt = _retain(bank, "one", "two")
    other.close()
    assert [type(failure.error) for failure in receipt.failures] == [BusyBankError, BusyBankError]
    assert set(_counts(bank).values()) == {0}


def test_a_bank_opened_for_reading_takes_nothing(bank: Bank) -> None:
    with Bank.open_readonly(bank.path, "proj", clock=bank.clock) as frozen:
        assert isinstance(_retain(frozen, "one").failures[0].error, ReadOnlyBankError)
        with pytest.raises(ReadOnlyBankError):
            remember(frozen, "one")


class _Interrupted(FixedIds):
    def nonce(self) -> str:
        if self.last == 1:
            raise KeyboardInterrupt
        return super().nonce()


@pytest.mark.claim("R-25")
def test_an_interrupt_leaves_nothing_and_is_passed_on(tmp_path: Path) -> None:
    with Bank.open(tmp_path / "mnemopi.db", "proj", clock=FixedClock(NOW), ids=_Interrupted()) as bank:
        with pytest.raises(KeyboardInterrupt):
            _retain(bank, "one", "two")
        assert set(_counts(bank).values()) == {0}
        assert not bank.connection.in_transaction
        assert bank.pending == []


def test_an_unreadable_time_stores_nothing_and_takes_no_number(bank: Bank) -> None:
    with pytest.raises(BankError, match="time cannot be read"):
        remember(bank, "x", RememberOptions(timestamp="not a date"))
    assert set(_counts(bank).values()) == {0}
    assert bank.ids.last == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (RememberOptions(source="Tool"), ("EXTERNAL_WRITE", "unknown")),
        (RememberOptions(source="import", veracity=" STATED "), ("IMPORTED", "stated")),
        (RememberOptions(source="backup", trust_tier="DERIVED"), ("DERIVED", "unknown")),
        (RememberOptions(trust_tier="bogus", veracity="nonsense"), ("STATED", "unknown")),
    ],
)
def test_trust_and_veracity(bank: Bank, options: RememberOptions, expected: tuple[str, str]) -> None:
    remember(bank, "x", options)
    assert bank.connection.execute("SELECT trust_tier, veracity FROM working_memory").fetchall() == [expected]


def test_linking_reads_the_text_that_facts_are_read_from(tmp_path: Path) -> None:
    with _open(tmp_path / "mnemopi.db", proactive_linking=True) as bank:
        remember(bank, "framed", RememberOptions(extract_text="Bob uses Redis", extract_entities=True))
        remember(bank, "plain", RememberOptions(extract_entities=False))
        assert _column(bank, "SELECT text FROM gists ORDER BY rowid") == ["Bob uses Redis", "plain"]
        assert _column(bank, "SELECT object FROM facts") == ["Redis"]


def test_after_a_failing_item_nothing_is_tied_to_it(tmp_path: Path) -> None:
    with _open(tmp_path / "mnemopi.db", proactive_linking=True) as bank:
        _fail_on(bank, "gists", "text", "bad")
        receipt = _retain(bank, "Atlas runs bad things daily", "Atlas runs things daily")
        assert [failure.index for failure in receipt.failures] == [0]
        known = {*_column(bank, "SELECT id FROM working_memory"), *_column(bank, "SELECT id FROM gists")}
        assert {
            *_column(bank, "SELECT source FROM graph_edges"),
            *_column(bank, "SELECT target FROM graph_edges"),
        } <= known


def test_the_trim_of_the_engine_is_only_done_when_asked_for(bank: Bank) -> None:
    old = RememberOptions(timestamp="2026-05-31T11:59:59.999Z")
    remember(bank, "old", old)
    _retain(bank, "new")
    assert _column(bank, "SELECT content FROM working_memory ORDER BY rowid") == ["old", "new"]
    _retain(bank, "newer", trim_old=True)
    assert _column(bank, "SELECT content FROM working_memory ORDER BY rowid") == ["new", "newer"]
    assert len(_column(bank, "SELECT id FROM annotations")) == 4


def test_the_trim_spares_imported_consolidated_and_foreign_rows(bank: Bank) -> None:
    old = "2026-05-01T00:00:00.000Z"
    remember(bank, "imported", RememberOptions(timestamp=old, trust_tier="IMPORTED"))
    remember(bank, "done", RememberOptions(timestamp=old))
    remember(bank, "foreign", RememberOptions(timestamp=old))
    remember(bank, "gone", RememberOptions(timestamp=old))
    bank.connection.execute("UPDATE working_memory SET consolidated_at = ? WHERE content = 'done'", (NOW,))
    bank.connection.execute("UPDATE working_memory SET session_id = 'other' WHERE content = 'foreign'")
    with bank.transaction():
        assert len(trim(bank)) == 1
    assert _column(bank, "SELECT content FROM working_memory ORDER BY rowid") == ["imported", "done", "foreign"]


def test_the_trim_keeps_the_newest_thousand(bank: Bank) -> None:
    with bank.transaction():
        for number in range(TRIM_ROWS + 3):
            remember(bank, f"row {number}")
        trim(bank)
    kept = _column(bank, "SELECT content FROM working_memory ORDER BY rowid")
    assert (len(kept), kept[0]) == (TRIM_ROWS, "row 3")


@pytest.mark.claim("T-13")
def test_facts_of_a_language_model_wait_and_can_be_waited_for(tmp_path: Path) -> None:
    asked: list[str] = []

    def complete(prompt: str) -> str:
        asked.append(prompt)
        return '{"facts":["The port is 8080"]}'

    with _open(tmp_path / "mnemopi.db", completion=complete) as bank:
        _retain(bank, FACTS)
        assert (asked, len(bank.pending)) == ([], 1)
        assert drain(bank) == 0
        assert FACTS in asked[0]
        assert _column(bank, "SELECT object FROM facts") == ["The port is 8080"]


@pytest.mark.claim("T-13")
@pytest.mark.parametrize("answer", ["", "NO_FACTS", None, "{}"])
def test_a_model_that_finds_nothing_leaves_the_patterns(tmp_path: Path, answer: str | None) -> None:
    with _open(tmp_path / "mnemopi.db", completion=lambda _prompt: answer) as bank:
        _retain(bank, FACTS)
        drain(bank)
        assert len(_column(bank, "SELECT object FROM facts")) == 2


@pytest.mark.claim("T-13")
def test_a_failing_model_never_reaches_the_caller(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def complete(_prompt: str) -> str:
        raise RuntimeError("key sk-aB3dE5gH7jK9aB3d refused")

    with _open(tmp_path / "mnemopi.db", completion=complete) as bank:
        _retain(bank, FACTS)
        with caplog.at_level(logging.WARNING, "ipy_memory"):
            assert drain(bank) == 0
        assert "fact extraction failed" in caplog.text
        assert "aB3d" not in caplog.text
        assert _column(bank, "SELECT object FROM facts") == []
        assert _column(bank, "SELECT content FROM working_memory") == [FACTS]


@pytest.mark.claim("T-13")
def test_work_the_bank_could_not_take_waits_on(tmp_path: Path) -> None:
    with _open(tmp_path / "mnemopi.db", completion=lambda _prompt: "- a fact that is long") as bank:
        _retain(bank, FACTS, "other")
        _fail_on(bank, "memoria_facts", "value", "fact")
        assert drain(bank) == 2
        bank.connection.execute("DROP TRIGGER fail")
        assert drain(bank) == 0
        assert len(_column(bank, "SELECT object FROM facts")) == 2


def test_facts_of_a_memory_that_is_gone_are_not_stored(tmp_path: Path) -> None:
    with _open(tmp_path / "mnemopi.db", completion=lambda _prompt: "- a fact that is long") as bank:
        bank.pending.append(Pending("extract", "0123456789abcdef", FACTS))
        assert drain(bank) == 0
        assert _column(bank, "SELECT object FROM facts") == []


@pytest.mark.claim("T-12")
def test_retaining_opens_no_connection(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert _retain(bank, FACTS).failures == ()
    assert drain(bank) == 0


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["I use a", "I use b", "c"]), st.booleans()), max_size=8))
def test_index_rows_always_match_the_memories(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]]
) -> None:
    with _open(tmp_path_factory.mktemp("bank") / "mnemopi.db", proactive_linking=True) as bank:
        _fail_on(bank, "memoria_facts", "value", "uses b")
        for content, with_other in steps:
            _retain(bank, content, *(["I use b"] if with_other else []))
        ids = set(_column(bank, "SELECT id FROM working_memory"))
        assert set(_column(bank, "SELECT id FROM fts_working")) == ids
        assert set(_column(bank, "SELECT memory_id FROM annotations")) == ids
        assert set(_column(bank, "SELECT memory_id FROM gists")) == ids
        assert set(_column(bank, "SELECT source_memory_id FROM memoria_facts")) <= ids
        assert "I use b" not in _column(bank, "SELECT content FROM working_memory")
