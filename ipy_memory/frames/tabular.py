"""Rows as aligned plain text: what every face shows where there is no HTML."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORT = 100
"""How many characters of a value a table shows."""

_MISSING = {"<NA>", "nan", "NaT"}


def cell(value: Any) -> str:
    """Return a value as text; a missing one is empty."""
    return "" if value is None or str(value) in _MISSING else str(value)


def short(value: Any) -> str:
    """Return a value as it fits into a table: on one line, and not too long."""
    if isinstance(value, list | tuple):
        return js.clip(", ".join(map(str, value)), SHORT)
    if isinstance(value, float) and value == value:
        return f"{value:.4g}"
    if isinstance(value, datetime) and value == value:
        return f"{value:%Y-%m-%d %H:%M}"
    return js.clip(" ".join(cell(value).split()), SHORT)


def width(text: str) -> int:
    """Return how many columns a text takes in a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in {"Mn", "Me"} for c in text)


def text_table(rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> str:
    """Return rows as aligned plain text, two blanks between columns."""
    whole = [list(headers), *map(list, rows)] if headers else [list(row) for row in rows]
    widths = [max(map(width, column)) for column in zip(*whole, strict=True)]
    return "\n".join(
        "  ".join(text + " " * (most - width(text)) for text, most in zip(row, widths, strict=True)).rstrip()
        for row in whole
    )


def filled(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the columns that have a value anywhere, and the rows cut down to them as short texts."""
    cells = [[short(value) for value in row] for row in rows]
    kept = [index for index in range(len(columns)) if any(row[index] for row in cells)]
    return [columns[index] for index in kept], [[row[index] for index in kept] for row in cells]
