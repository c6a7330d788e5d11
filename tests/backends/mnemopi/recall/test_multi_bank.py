"""Recall over several banks: who is asked what, how answers merge, and what a failing bank does."""

from __future__ import annotations

import itertools
import logging
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.multi_bank import ScopedAnswer, compare, fallback_query, merge, scoped_recall
from ipy_memory.backends.trace import Step, Trace
from ipy_memory.clock import FixedClock
from ipy_memory.errors import BankError, MemoryToolkitError, ScopedRecallError
from ipy_memory.model import Hit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"


def remember(bank: Bank, id_: str, content: str, importance: float = 0.75) -> None:
    with bank.transaction() as connection:
        connection.execute(
            "INSERT INTO working_memory (id, content, timestamp, session_id, importance, veracity, source)"
            " VALUES (?, ?, ?, ?, ?, 'stated', 'notes')",
            (id_, content, NOW, bank.name, importance),
        )


@pytest.fixture
def banks(tmp_path: Path) -> Iterator[list[Bank]]:
    opened = [
        Bank.open(tmp_path / name / "mnemopi.db", name, clock=FixedClock(NOW))
        for name in ("acme-web-kestrel", "default")
    ]
    remember(opened[0], "a", "Kestrel is deployed on Mondays", 0.5)
    remember(opened[0], "same", "Everybody prefers tea")
    remember(opened[1], "b", "Everything is deployed on Tuesdays", 0.9)
    remember(opened[1], "twin", "Everybody prefers tea", 0.2)
    remember(opened[1], "c", "Preferences are kept here")
    yield opened
    for bank in opened:
        bank.close()


def ask(banks: list[Bank], query: str, limit: int = 8, **given: object) -> ScopedAnswer:
    return scoped_recall(banks, query, limit, **given)  # type: ignore[arg-type]


@pytest.mark.claim("R-18")
def test_every_bank_is_asked_in_order(banks: list[Bank]) -> None:
    answer = ask(banks, "deployed")
    assert [(target.bank, target.query) for target in answer.per_target] == [
        ("acme-web-kestrel", "deployed"),
        ("default", "deployed"),
    ]
    assert [hit.id for hit in answer.hits] == ["b", "a"]
    assert [hit.bank for hit in answer.hits] == ["default", "acme-web-kestrel"]


@pytest.mark.claim("R-19")
def test_the_same_content_is_one_entry_and_the_better_stays(banks: list[Bank]) -> None:
    assert [hit.id for hit in ask(banks, "everybody tea").hits] == ["same"]


@pytest.mark.claim("R-20", "R-29")
@pytest.mark.parametrize(("limit", "count"), [(8, 2), (1, 1), (1.9, 1), (0, 1), (-3, 1)])
def test_the_limit_bounds_the_merged_list(banks: list[Bank], limit: float, count: int) -> None:
    assert len(ask(banks, "deployed", limit).hits) == count  # type: ignore[arg-type]


@pytest.mark.claim("R-31")
def test_the_shared_bank_is_asked_without_the_projects_words(banks: list[Bank]) -> None:
    answer = ask(banks, "acme kestrel preferences", project_bank=banks[0].name, shared_bank="default")
    assert [(target.bank, target.query) for target in answer.per_target][1:] == [
        ("default", "acme kestrel preferences"),
        ("default", "preferences"),
    ]
    assert "c" in [hit.id for hit in answer.hits]
    assert len(ask(banks, "acme kestrel preferences").per_target) == 2
    assert len(ask(banks, "preferences", project_bank=banks[0].name, shared_bank="default").per_target) == 2


@pytest.mark.claim("R-34")
def test_a_row_counts_once_for_each_query_that_returned_it(banks: list[Bank]) -> None:
    ask(banks, "kestrel preferences", limit=1, project_bank=banks[0].name, shared_bank="default")
    counts = dict(banks[1].connection.execute("SELECT id, recall_count FROM working_memory"))
    assert counts["c"] == 2
    assert ask(banks, "kestrel preferences", should_touch=False).hits
    assert dict(banks[1].connection.execute("SELECT id, recall_count FROM working_memory")) == counts


@pytest.mark.claim("R-34")
def test_rows_that_the_merge_cuts_are_counted_too(banks: list[Bank]) -> None:
    assert len(ask(banks, "deployed", limit=1).hits) == 1
    for bank, id_ in zip(banks, "ab", strict=True):
        row = bank.connection.execute("SELECT recall_count, last_recalled FROM working_memory WHERE id = ?", (id_,))
        assert row.fetchone() == (1, NOW)


@pytest.mark.claim("R-21")
def test_b062_a_failing_bank_is_logged_and_others_answer(banks: list[Bank], caplog: pytest.LogCaptureFixture) -> None:
    banks[0].connection.execute("DROP TABLE working_memory")
    with caplog.at_level(logging.WARNING, "ipy_memory"):
        answer = ask(banks, "deployed")
    assert [hit.id for hit in answer.hits] == ["b"]
    assert [bank for bank, _ in answer.failures] == ["acme-web-kestrel"]
    assert [(r.levelname, r.message) for r in caplog.records] == [
        (
            "WARNING",
            "Mnemopi: scoped recall target failed: bank=acme-web-kestrel error=no such table: working_memory",
        )
    ]


@pytest.mark.claim("R-22")
def test_no_bank_answering_is_an_error_never_an_empty_list(banks: list[Bank]) -> None:
    for bank in banks:
        bank.connection.execute("DROP TABLE working_memory")
    with pytest.raises(ScopedRecallError) as caught:
        ask(banks, "deployed")
    assert isinstance(caught.value, ExceptionGroup)
    assert isinstance(caught.value, MemoryToolkitError)
    assert caught.value.message == (
        "Mnemopi recall failed for all scoped targets"
        " (acme-web-kestrel: no such table: working_memory; default: no such table: working_memory)"
    )
    assert [type(error) for error in caught.value.exceptions] == [BankError, BankError]
    assert [bank.name in str(e.where) for bank, e in zip(banks, caught.value.exceptions, strict=True)] == [True, True]
    with pytest.raises(BankError, match="no such table: working_memory"):
        ask(banks[:1], "deployed")


def test_a_failing_extra_query_does_not_lose_the_first(banks: list[Bank], monkeypatch: pytest.MonkeyPatch) -> None:
    from ipy_memory.backends.mnemopi.recall import multi_bank as scoped

    real = scoped.recall_enhanced

    def fail(bank: Bank, query: str, *rest: object) -> list[Hit]:
        if query == "deployed":
            raise BankError("broken")
        return real(bank, query, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(scoped, "recall_enhanced", fail)
    answer = ask(banks[1:], "kestrel deployed", project_bank=banks[0].name, shared_bank="default")
    assert [hit.id for hit in answer.hits] == ["b"]
    assert [str(error) for _, error in answer.failures] == ["broken"]


HITS = st.lists(
    st.builds(
        Hit,
        id=st.sampled_from(["a", "b", "c", None]),
        content=st.sampled_from(["x", "y", "z", "X"]),
        score=st.sampled_from([0.1, 0.5, None]),
        timestamp=st.sampled_from([None, "2026-01-01", "2026-02-01"]),
    ),
    max_size=10,
)


@pytest.mark.claim("R-19", "R-20")
@given(HITS)
def test_merged_entries_are_few_and_in_order(hits: list[Hit]) -> None:
    merged = merge(hits, 8)
    assert all(compare(one, other) <= 0 for one, other in itertools.pairwise(merged))
    assert all(any(hit.id == one.id or hit.content == one.content for one in hits) for hit in merged)
    assert len(merged) <= len({hit.content for hit in hits})
    assert all(compare(merged[0], hit) <= 0 for hit in hits)


@pytest.mark.claim("R-20")
def test_ties_go_by_time_then_content() -> None:
    def hit(score: float, timestamp: str | None, content: str) -> Hit:
        return Hit(id=content, content=content, score=score, timestamp=timestamp)

    best = [
        hit(0.9, None, "z"),
        hit(0.5, "2026-02-01", "z2"),
        hit(0.5, "2026-01-01", "ä"),
        hit(0.5, "2026-01-01", "b"),
        hit(0.5, "2026-01-01", "B"),
        hit(0.5, None, "a"),
    ]
    assert merge(reversed(best), 8) == best


@pytest.mark.claim("R-31")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what does kestrel prefer?", "what does prefer?"),
        ("Kestrel", None),
        ("kestrel 日本", None),
        ("preferences", None),
        ("acme-web_kestrel  rules", "rules"),
        ("tests and kestrel, please", "tests , please"),
        ("tests or kestrel", "tests"),
        ("kestrels nest", None),
        ("KESTREL nest", "nest"),
        ("", None),
    ],
)
def test_the_fallback_query(query: str, expected: str | None) -> None:
    assert fallback_query(query, "acme-web-kestrel") == expected


_QUERY_PARTS = st.sampled_from(
    ["and", "or", "AND ", " ", "\n", "\u3000", "?", ".", "x", "é", "_", "kestrel", "kestrels"]
)


@given(st.lists(_QUERY_PARTS, max_size=12).map("".join))
def test_a_fallback_query_is_cleaned_as_the_patterns_say(query: str) -> None:
    left = query
    for token in (r"acme[\s_-]+web[\s_-]+kestrel", "acme", "web", "kestrel"):
        left = re.sub(rf"(?a:\b){token}(?a:\b)", " ", left, flags=re.IGNORECASE)
    left = re.sub(r"\s+([?!.,;:])", r"\1", left)
    left = re.sub(r"(?a:\b)(?:and|or)(?a:\b)\s*(?=[?!.,;:]|\Z)", "", left, flags=re.IGNORECASE)
    left = re.sub(r"\s{2,}", " ", left).strip()
    assert fallback_query(query, "acme-web-kestrel") in (left, None)


@given(st.text(max_size=40), st.sampled_from(["a", "acme-web", "日本", ""]))
def test_a_fallback_query_says_something_new(query: str, bank: str) -> None:
    found = fallback_query(query, bank)
    if found is not None:
        assert found != query
        assert any(char.isascii() and char.isalnum() for char in found)


def test_the_account_knows_what_the_merge_did(banks: list[Bank]) -> None:
    traces: list[Trace] = []
    ask(banks, "everybody tea", traces=traces)
    assert [trace.bank for trace in traces] == [bank.name for bank in banks]
    twin = traces[1].of("twin")[0]
    assert (twin.step, twin.by) == (Step.DEDUPLICATED, "same")
    traces.clear()
    cut = ask(banks, "deployed", 1, traces=traces)
    assert [hit.id for hit in cut.hits] == ["b"]
    assert traces[0].of("a")[0].step is Step.CUT
    assert traces[1].of("b")[0].step is Step.RETURNED


@pytest.mark.claim("R-31")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("deploy and x1 ?", "deploy ?"),
        ("x1 deploy or x1, fast", "deploy , fast"),
        ("deploy  and  x1  !  now", "deploy ! now"),
        ("x-1\nor.", "x-1\n."),
        ("target x1-9?or ?X1: ", "target -9??:"),
        ("AND x1-9  and/or:x1? foo x1 bar ? ", "AND -9 and/:? foo bar?"),
        ("foo x1 barx1.or:deploy. x1,  ", "foo barx1.:deploy.,"),
    ],
)
def test_a_word_left_before_a_mark_goes_without_the_blank_before_it(query: str, expected: str | None) -> None:
    """D19: as the real agent asks the shared bank."""
    assert fallback_query(query, "x1") == expected


def scored(id_: str, content: str, score: float) -> Hit:
    return Hit(id=id_, content=content, score=score)


def test_an_id_and_a_text_lead_to_the_entry_that_had_them_last() -> None:
    """D19: a bank that was copied and then edited holds an id with another text."""
    first, second = scored("one", "text a", 0.9), scored("two", "text b", 0.5)
    copied, later = scored("one", "text b", 0.4), scored("three", "text b", 0.3)
    assert [found.id for found in merge([first, second, copied, later], 8)] == ["one", "two"]
    better = scored("three", "text b", 0.95)
    assert [(found.id, found.content) for found in merge([first, second, copied, better], 8)] == [
        ("three", "text b"),
        ("two", "text b"),
    ]
