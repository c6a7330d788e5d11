"""A write must find its own text again whoever wrote it and however, or there would be two rows of it."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.memories import update
from ipy_memory.backends.mnemopi.store.write import may_hold, remember
from ipy_memory.clock import FixedClock, FixedIds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"


def opened(path: Path, first: int = 0) -> Bank:
    return Bank.open(path / "bank.db", "proj", clock=FixedClock(NOW), ids=FixedIds(first))


def by_another_process(path: Path, bank: Bank) -> None:
    with opened(path, 1000) as other:
        remember(other, "tea")


def by_an_edit(path: Path, bank: Bank) -> None:
    update(bank, remember(bank, "coffee"), content="tea")


def by_a_statement(path: Path, bank: Bank) -> None:
    bank.connection.execute("INSERT INTO working_memory (id, content, session_id) VALUES ('x', 'tea', 'proj')")


def after_a_rollback(path: Path, bank: Bank) -> None:
    with suppress(ZeroDivisionError), bank.transaction():
        remember(bank, "water")
        raise ZeroDivisionError
    update(bank, remember(bank, "coffee"), content="tea")


def as_bytes_that_are_no_text(path: Path, bank: Bank) -> None:
    bank.connection.execute("UPDATE working_memory SET content = CAST(x'74ff' AS TEXT)")
    remember(bank, "tea")


@pytest.mark.claim("T-08")
@pytest.mark.parametrize(
    "write",
    [by_another_process, by_an_edit, by_a_statement, after_a_rollback, as_bytes_that_are_no_text],
)
def test_a_known_text_is_found(write: Callable[[Path, Bank], None], tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        remember(bank, "milk")
        assert not may_hold(bank, "tea")
        write(tmp_path, bank)
        assert may_hold(bank, "tea")
        remember(bank, "tea")
        assert bank.connection.execute("SELECT count(*) FROM working_memory WHERE content = 'tea'").fetchone() == (1,)


def test_a_text_of_another_session_is_no_duplicate(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        bank.connection.execute("INSERT INTO working_memory (id, content, session_id) VALUES ('x', 'tea', 'other')")
        assert not may_hold(bank, "tea")
        assert remember(bank, "tea") != "x"


def test_nothing_of_it_is_left_in_the_file(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        remember(bank, "tea")
    objects = sqlite3.connect(tmp_path / "bank.db")
    try:
        assert objects.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'note_content%'").fetchone() == (0,)
        objects.execute("UPDATE working_memory SET content = 'coffee'")
    finally:
        objects.close()
