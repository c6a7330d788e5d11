"""Frames as files can hold them: containers as JSON, and workbooks without zones, control characters and formulas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pandas import DataFrame, DatetimeTZDtype, ExcelWriter, Index, StringDtype

from ipy_memory.frames.escape import visible

CONTAINERS = (Mapping, list, tuple, set, frozenset)
"""What a cell may hold besides a single value."""


def _changed(frame: DataFrame, change: Callable[[Any], Any]) -> DataFrame:
    """Return a frame with every cell changed that holds an object or a text; numbers and times keep their type."""
    made = frame.copy()
    for place, dtype in enumerate(frame.dtypes):
        if dtype == "object" or isinstance(dtype, StringDtype):
            made.isetitem(place, frame.iloc[:, place].map(change).array)
    return made


def flat(frame: DataFrame, kinds: Any) -> DataFrame:
    """Return a frame with the containers of some kinds as JSON: few files can hold them."""
    return _changed(frame, lambda value: _json(value) if isinstance(value, kinds) else value)


def _json(value: Any) -> str:
    plain = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return json.dumps(plain, ensure_ascii=False, default=str)


def for_workbook(frame: DataFrame) -> DataFrame:
    """Return a frame with what a workbook can hold: times without a zone, no containers, no control characters."""
    made = _changed(frame, _cell)
    for place, dtype in enumerate(made.dtypes):
        if isinstance(dtype, DatetimeTZDtype):
            made.isetitem(place, made.iloc[:, place].dt.tz_convert("UTC").dt.tz_localize(None).array)
    made.index, made.columns = _labels(made.index), _labels(made.columns)
    return made


def _labels(labels: Index[Any]) -> Index[Any]:
    made = labels.map(lambda label: tuple(map(_cell, label)) if isinstance(label, tuple) else _cell(label))
    return made.set_names([_cell(name) for name in labels.names])


def _cell(value: Any) -> Any:
    if isinstance(value, CONTAINERS):
        value = _json(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return visible(value) if isinstance(value, str) else value


def write_workbook(write: Callable[..., Any], excel_writer: Any, sheet_name: str, **named: Any) -> None:
    """Write a sheet in which no text is a formula: one that begins with ``=`` would be calculated when it is opened."""
    if not isinstance(excel_writer, ExcelWriter):
        options = {name: named.pop(name) for name in ("engine", "engine_kwargs", "storage_options") if name in named}
        with ExcelWriter(excel_writer, **options) as writer:
            write_workbook(write, writer, sheet_name, **named)
        return
    book = excel_writer.book
    kept = {name: getattr(book, name) for name in ("strings_to_formulas", "strings_to_urls") if hasattr(book, name)}
    try:
        for name in kept:  # what XlsxWriter asks of a new sheet's workbook
            setattr(book, name, False)
        write(excel_writer, sheet_name=sheet_name, **named)
    finally:
        for name, value in kept.items():
            setattr(book, name, value)
    for cell in (cell for row in getattr(excel_writer.sheets[sheet_name], "iter_rows", tuple)() for cell in row):
        if cell.data_type == "f":  # openpyxl
            cell.data_type = "s"
