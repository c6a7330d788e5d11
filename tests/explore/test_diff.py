"""Differences between banks, files and copies, and since a moment."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory import open_session
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MagicError, MemoryToolkitError
from ipy_memory.explore.diff import UNKNOWN, asked, compared, diff, since, word_diff
from ipy_memory.model import Memory
from tests.explore.conftest import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory import MemorySession

MEMORY = Memory("1", "b", "working", "The port is 9077.", timestamp="2026-05-01T00:00:00.000Z", importance=0.5)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(
        "mnemopi",
        cwd="/proj/shop",
        database=tmp_path / "mnemopi.db",
        settings={"mnemopi.scoping": "global"},
        agent_dir=tmp_path,
        env={},
        clock=FixedClock("2026-06-01T12:00:00.000Z"),
        ids=FixedIds(),
    ) as made:
        yield made


def test_a_copy_and_its_bank_differ_by_what_was_done_since(session: MemorySession, tmp_path: Path) -> None:
    kept, changed, ended, gone = (
        session.retain(text).receipt.ids[0]  # type: ignore[union-attr]
        for text in ("Tea at four.", "The port is 9077.", "Anna owns billing.", "Use tabs.")
    )
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(tmp_path / "mnemopi.db")) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    session.change("update", changed or "", content="The port is 9078.")
    session.change("invalidate", ended or "")
    session.change("forget", gone or "")
    new = session.retain("Boris owns billing.").receipt.ids[0]  # type: ignore[union-attr]
    before = fingerprint(tmp_path)
    found = diff(session, str(copy), "default")
    assert fingerprint(tmp_path) == before
    working = {(one.change, one.id) for one in found.changes if one.store == "working"}
    assert working == {("added", new), ("removed", gone), ("changed", changed), ("ended", ended)}
    (text,) = (one.content for one in found.changes if one.change == "changed")
    assert text == "The port is [-9077.-]{+9078.+}"
    assert kept not in {one.id for one in found.changes}
    assert found.summary.startswith("1 added, 1 removed, 1 changed, 1 ended")
    assert list(found.frame.columns) == ["change", "id", "bank", "store", "before", "after", "content"]
    assert diff(session, "default", "default").changes == ()


def test_since_tells_what_a_bank_keeps_and_says_what_it_does_not(session: MemorySession) -> None:
    clock = session.clock
    assert isinstance(clock, FixedClock)
    old = session.retain("Old.").receipt.ids[0]  # type: ignore[union-attr]
    clock.advance(48 * 3_600_000)
    new = session.retain("New.").receipt.ids[0]  # type: ignore[union-attr]
    session.change("invalidate", old or "")
    found = since(session, "2026-06-03")
    working = {(one.change, one.id) for one in found.changes if one.store == "working"}
    assert working == {("added", new), ("ended", old)}
    assert found.notes == (UNKNOWN,)
    assert since(session, "2026-06-05").changes == ()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"content": "Other."}, "changed"),
        ({"state": "superseded"}, "ended"),
        ({"timestamp": "2026-05-02T00:00:00.000Z"}, "dated"),
        ({"importance": 0.9}, "importance"),
        ({"source": "me"}, "source"),
    ],
)
def test_each_kind_is_told_from_the_others(change: dict[str, object], kind: str) -> None:
    found = compared([MEMORY], [replace(MEMORY, **change)])  # type: ignore[arg-type]
    assert [one.change for one in found.changes] == [kind]
    back = compared([replace(MEMORY, **change)], [MEMORY])  # type: ignore[arg-type]
    assert [one.change for one in back.changes] == ["valid again" if kind == "ended" else kind]


def test_the_same_text_under_another_id_is_no_difference() -> None:
    found = compared([MEMORY], [replace(MEMORY, id="2")])
    assert (found.changes, found.equal) == ((), 1)
    twice = compared([MEMORY], [replace(MEMORY, id="2"), replace(MEMORY, id="3")])
    assert [one.change for one in twice.changes] == ["added"]


TEXT = st.text(alphabet="ab .", max_size=20)


@given(old=TEXT, new=TEXT)
def test_both_texts_can_be_read_out_of_a_word_diff(old: str, new: str) -> None:
    shown = word_diff(old, new)
    assert re.sub(r"\[-.*?-\]", "", shown, flags=re.DOTALL).replace("{+", "").replace("+}", "") == new
    assert re.sub(r"\{\+.*?\+\}", "", shown, flags=re.DOTALL).replace("[-", "").replace("-]", "") == old


@given(rows=st.lists(st.tuples(st.integers(0, 5), TEXT), max_size=6, unique_by=lambda row: row[0]))
def test_a_bank_does_not_differ_from_itself(rows: list[tuple[int, str]]) -> None:
    memories = [replace(MEMORY, id=str(number), content=text) for number, text in rows]
    assert compared(memories, list(reversed(memories))).changes == ()


@pytest.mark.parametrize(("words", "moment"), [("", None), ("one", None), ("a b", "2026"), ("a b c", None)])
def test_other_words_are_an_error(session: MemorySession, words: str, moment: str | None) -> None:
    with pytest.raises(MagicError, match="name two banks"):
        asked(session, words, moment)


def test_a_missing_bank_or_file_is_an_error(session: MemorySession, tmp_path: Path) -> None:
    session.retain("x y z")
    with pytest.raises(MagicError, match="no file"):
        diff(session, str(tmp_path / "none.db"), "default")
    with pytest.raises(MemoryToolkitError):
        diff(session, "nowhere", "default")
    shutil.copy(__file__, tmp_path / "text.db")
    with pytest.raises(MemoryToolkitError):
        diff(session, str(tmp_path / "text.db"), "default")
