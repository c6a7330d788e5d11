"""Frames: columns, dtypes, dates and attrs."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from ipy_memory.frames.build import hits_frame, memories_frame, retain_frame
from ipy_memory.model import Hit, Memory, Receipt, RetainItem, ScoreParts, ToolResult

if TYPE_CHECKING:
    from pathlib import Path

FIRST = ["id", "source", "date", "score", "content", "bank", "tier", "type", "truncated", "full_length"]
PARTS = ["keyword_score", "dense_score", "fts_score", "importance_score", "recency_score", "temporal_score"]
FULL = Hit(
    "a1",
    "text",
    source="s",
    timestamp="2026-05-30T10:00:00.123Z",
    score=0.5,
    bank="shop",
    tier="working",
    type="fact",
    importance=0.75,
    veracity="tool",
    truncated=True,
    full_length=900,
    recall_count=3,
    last_recalled="2026-06-01T00:00:00.000Z",
    parts=ScoreParts(keyword=1.0, fts=0.25),
    fact=("deploy", "goes to"),
    tags=("a", "b"),
    metadata={"cwd": "/proj"},
)


@pytest.mark.claim("N-02")
def test_columns_and_dtypes_are_the_same_when_empty() -> None:
    filled = hits_frame([FULL, Hit(None, "x")])
    empty = hits_frame([])
    assert list(filled.columns[:12]) == [*FIRST, "importance", "veracity"]
    assert set(PARTS) < set(filled.columns[-8:])
    pd.testing.assert_series_equal(filled.dtypes, empty.dtypes)
    assert str(empty.dtypes["date"]) == "datetime64[ms, UTC]"
    assert empty.empty


@pytest.mark.claim("R-12")
def test_a_hit_keeps_everything_it_knows() -> None:
    row = hits_frame([FULL]).iloc[0]
    assert row["truncated"] is True or bool(row["truncated"])
    assert row["full_length"] == 900
    assert (row["id"], row["score"], row["keyword_score"], row["recall_count"]) == ("a1", 0.5, 1.0, 3)
    assert (row["subject"], row["predicate"], row["tags"], row["metadata"]) == (
        "deploy",
        "goes to",
        ("a", "b"),
        {"cwd": "/proj"},
    )
    assert pd.isna(row["dense_score"])


def test_missing_values_are_missing_and_not_text() -> None:
    row = hits_frame([Hit(None, "x")]).iloc[0]
    for name in ("id", "source", "date", "score", "bank", "full_length", "last_recalled", "subject"):
        assert pd.isna(row[name]), name


@pytest.mark.parametrize(
    ("stored", "date"),
    [
        ("2026-05-30T10:00:00.123Z", "2026-05-30 10:00:00.123000+00:00"),
        ("2026-05-30T10:00:00+02:00", "2026-05-30 08:00:00+00:00"),
        ("2026-05-30", "2026-05-30 00:00:00+00:00"),
        ("2026-05-30T10:00:00", "2026-05-30 07:00:00+00:00"),
        ("Sat, 30 May 2026 10:00:00 GMT", "2026-05-30 10:00:00+00:00"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31 23:59:59.999000+00:00"),
        ("not a date", "NaT"),
        ("", "NaT"),
    ],
)
def test_dates_are_utc_instants_read_as_the_engine_reads_them(stored: str, date: str) -> None:
    frame = hits_frame([Hit("a", "x", timestamp=stored)], tz=timezone(timedelta(hours=3)))
    assert str(frame["date"].iloc[0]) == date
    assert frame["timestamp"].iloc[0] == stored


def test_a_half_pair_at_the_cut_of_a_preview_can_be_printed_and_saved(tmp_path: Path) -> None:
    frame = hits_frame([Hit("a", "cut \ud83d…")])
    assert frame["content"].iloc[0] == "cut \ufffd…"
    frame.to_csv(tmp_path / "hits.csv")


@pytest.mark.claim("N-02")
def test_attrs_say_where_the_answer_came_from() -> None:
    frame = ToolResult("text", hits=(FULL,), notes=("a note",), attrs={"query": "q", "banks": ["shop"]}).frame()
    assert frame.attrs == {"query": "q", "banks": ["shop"], "notes": ["a note"]}


@pytest.mark.claim("T-10")
def test_a_retain_shows_the_items_as_they_were_stored() -> None:
    items = [RetainItem("token sk-abcdefghijklmnopqrstuvwxyz0123456789", "from a call"), RetainItem("plain")]
    frame = retain_frame(items, Receipt(2, "shop", "stored", ("a1", None)))
    assert list(frame.columns) == ["id", "content", "context", "bank", "state"]
    assert "sk-abc" not in frame.to_csv()
    assert "[REDACTED]" in frame["content"].iloc[0]
    assert frame["id"].tolist()[0] == "a1"
    assert pd.isna(frame["id"].iloc[1])
    assert pd.isna(frame["context"].iloc[1])
    assert frame["state"].tolist() == ["stored", "stored"]


def test_whole_memories_have_the_same_columns_when_empty() -> None:
    memory = Memory("a1", "shop", "working", "text", created_at="2026-06-01 12:00:00", recall_count=2)
    filled = memories_frame([memory], tz=timezone(timedelta(hours=3)))
    pd.testing.assert_series_equal(filled.dtypes, memories_frame([]).dtypes)
    assert str(filled["created_at"].iloc[0]) == "2026-06-01 12:00:00+00:00"
