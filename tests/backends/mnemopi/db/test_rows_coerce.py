"""What a cell is read as."""

from __future__ import annotations

import pytest

from ipy_memory.backends.mnemopi.db import rows


@pytest.mark.parametrize(
    ("cell", "number"),
    [(None, 0), ("", 0), (" 7 ", 7), ("0x10", 16), ("much", 0.5), (b"1", 49), (b"12", 0.5), (2, 2), (1e999, 0.5)],
)
def test_a_cell_is_the_number_that_the_real_engine_takes_it_for(cell: object, number: float) -> None:
    assert rows.number_or(cell, 0.5) == number


@pytest.mark.parametrize(("cell", "text"), [(None, None), ("a", "a"), (b"\xffA", "\ufffdA"), (5, "5"), (1.5, "1.5")])
def test_a_cell_is_text_whatever_it_holds(cell: object, text: str | None) -> None:
    assert rows.as_text(cell) == text


def test_what_is_no_number_is_none() -> None:
    assert [rows.as_number(cell) for cell in (1, 1.5, "1", None)] == [1, 1.5, None, None]
    assert [rows.as_whole(cell) for cell in (1, 1.5, "1", None)] == [1, None, None, None]


def test_bytes_in_a_list_of_ids_match_nothing() -> None:
    assert rows.json_list(["日", 1, b"x"]) == '["日", 1, null]'
