"""Hits, memories and receipts as DataFrames: columns, dtypes and attrs.

The only module that meets pandas; imported on the first result.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ipy_memory.frames.safe import SafeFrame
from ipy_memory.jscompat import dates
from ipy_memory.jscompat import strings as js
from ipy_memory.model import ScoreParts
from ipy_memory.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import tzinfo

    from ipy_memory.model import Hit, Memory, Receipt, RetainItem

__all__ = ["DataFrame", "hits_frame", "memories_frame", "moments", "retain_frame", "table"]

# Named in full, since the default differs between versions of pandas and with the presence of Arrow.
TEXT = pd.StringDtype("python")
WHOLE = pd.Int64Dtype()
NUMBER = "float64"
INSTANT = pd.DatetimeTZDtype("ms", "UTC")
"""Milliseconds hold every date that the stores can hold; nanoseconds would not."""

_HIT_COLUMNS: dict[str, Any] = {
    "id": TEXT,
    "source": TEXT,
    "date": INSTANT,
    "score": NUMBER,
    "content": TEXT,
    "bank": TEXT,
    "tier": TEXT,
    "type": TEXT,
    "truncated": "bool",
    "full_length": WHOLE,
    "importance": NUMBER,
    "veracity": TEXT,
    "timestamp": TEXT,
    "session_id": TEXT,
    "scope": TEXT,
    "recall_count": WHOLE,
    "last_recalled": INSTANT,
    "rank": NUMBER,
    "explanation": TEXT,
    "subject": TEXT,
    "predicate": TEXT,
    "tags": "object",
    "document": TEXT,
    "metadata": "object",
    "degradation_tier": WHOLE,
}
_PARTS = tuple(part.name for part in fields(ScoreParts))
_MEMORY_COLUMNS: dict[str, Any] = {
    "id": TEXT,
    "source": TEXT,
    "date": INSTANT,
    "content": TEXT,
    "bank": TEXT,
    "store": TEXT,
    "type": TEXT,
    "importance": NUMBER,
    "veracity": TEXT,
    "timestamp": TEXT,
    "created_at": INSTANT,
    "session_id": TEXT,
    "scope": TEXT,
    "metadata": TEXT,
    "valid_until": TEXT,
    "superseded_by": TEXT,
    "recall_count": WHOLE,
    "last_recalled": INSTANT,
    "tags": "object",
    "document": TEXT,
    "state": TEXT,
    "cwd": TEXT,
    "about": "object",
}
_RETAIN_COLUMNS: dict[str, Any] = {
    "id": TEXT,
    "content": TEXT,
    "context": TEXT,
    "bank": TEXT,
    "state": TEXT,
}


def hits_frame(
    hits: Sequence[Hit],
    *,
    attrs: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    tz: tzinfo | None = None,
) -> DataFrame:
    """Return hits as a frame: the same columns and dtypes whether empty or not.

    Parameters
    ----------
    hits
        One row each, in the order given.
    attrs
        Where the answer came from (query, backend, scope, banks, as-of time).
    notes
        Sentences for the user, kept in ``attrs["notes"]``.
    tz
        The local zone, for stored times that name none; the system's by default.
    """
    moment = moments(tz)
    special: dict[str, Callable[[Hit], Any]] = {
        "date": lambda hit: moment(hit.timestamp),
        "last_recalled": lambda hit: moment(hit.last_recalled),
        "subject": lambda hit: hit.fact[0] if hit.fact else None,
        "predicate": lambda hit: hit.fact[1] if hit.fact else None,
    }
    frame = table(
        {name: [special[name](hit) if name in special else getattr(hit, name) for hit in hits] for name in _HIT_COLUMNS}
        | {f"{part}_score": [getattr(hit.parts, part) for hit in hits] for part in _PARTS},
        _HIT_COLUMNS | {f"{part}_score": NUMBER for part in _PARTS},
    )
    frame.attrs |= {**(attrs or {}), "notes": list(notes)}
    return frame


def memories_frame(memories: Sequence[Memory], *, tz: tzinfo | None = None) -> DataFrame:
    """Return whole memories as a frame; ``date`` is when a thing was said, ``created_at`` when its row was made."""
    moment = moments(tz)
    special: dict[str, Callable[[Memory], Any]] = {
        # SQLite writes the times of annotations.
        "date": lambda memory: (_stamp if memory.store == "annotation" else moment)(memory.timestamp),
        "created_at": lambda memory: _stamp(memory.created_at),
        "last_recalled": lambda memory: moment(memory.last_recalled),
    }
    return table(
        {
            name: [special[name](memory) if name in special else getattr(memory, name) for memory in memories]
            for name in _MEMORY_COLUMNS
        },
        _MEMORY_COLUMNS,
    )


def retain_frame(
    items: Sequence[RetainItem],
    receipt: Receipt | None,
    *,
    attrs: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> DataFrame:
    """Return what became of the items of a retain, one row an item, as they were stored."""
    ids: Sequence[str | None] = receipt.ids if receipt and len(receipt.ids) == len(items) else [None] * len(items)
    frame = table(
        {
            "id": list(ids),
            "content": [redact(item.content) for item in items],
            "context": [item.context and redact(item.context) for item in items],
            "bank": [receipt.bank if receipt else None] * len(items),
            "state": [receipt.state if receipt else None] * len(items),
        },
        _RETAIN_COLUMNS,
    )
    frame.attrs |= {**(attrs or {}), "notes": list(notes)}
    return frame


def table(columns: Mapping[str, Sequence[Any]], dtypes: Mapping[str, Any]) -> DataFrame:
    """Return columns as a frame, each with its stated dtype, also without rows."""
    return SafeFrame({name: _column(values, dtypes[name]) for name, values in columns.items()})


def _column(values: Sequence[Any], dtype: Any) -> Any:
    if dtype is INSTANT:
        return pd.Series(np.array(values, dtype="datetime64[ms]")).dt.tz_localize("UTC")
    if dtype is TEXT:
        # A preview may end in half a surrogate pair, which can be neither printed nor saved.
        values = [value if value is None else js.well_formed(value) for value in values]
    if dtype == "object":
        column = np.empty(len(values), dtype="object")
        for index, value in enumerate(values):
            column[index] = value
        return pd.Series(column)
    return pd.Series(values, dtype=dtype)


def moments(tz: tzinfo | None) -> Callable[[str | None], int | None]:
    """Return a function that reads a stored time as milliseconds since 1970 in UTC."""

    def moment(text: str | None) -> int | None:
        ms = dates.parse_ms(text, tz) if text else None
        return None if ms is None else round(ms)

    return moment


def _stamp(text: str | None) -> int | None:
    # SQLite's CURRENT_TIMESTAMP is UTC and does not say so.
    return moments(UTC)(text)
