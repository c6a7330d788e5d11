"""Queries of a hundred kilobytes: their time follows their size, and they are told about.

The bound of time is only there to end a test that hangs.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from ipy_memory import text
from ipy_memory.backends.mnemopi.recall import query_terms, scoring
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 100_000
ANTI_HANG_SECONDS = 120.0

_draw = random.Random(7)
_WORDS = ["".join(_draw.choices("abcdefghijklmnopqrstuvwxyz", k=_draw.randint(2, 10))) for _ in range(20_000)]

QUERIES = {
    "words": "harbour lights " + " ".join(_draw.choices(_WORDS, k=SIZE // 7)),
    "few words": "harbour lights server " * (SIZE // 22),
    "one word": "a" * 300_000,
    "signs": "".join(chr(_draw.randint(0x4E00, 0x9FFF)) + " " for _ in range(SIZE // 4)),
    "spaces": "shop" + " " * SIZE + "harbour",
    "line breaks": "\n" * SIZE + "harbour",
    "marks": "?!.,;:" * (SIZE // 6),
    "and or": "and or " * (SIZE // 7),
    "the project's own words": "shop " * (SIZE // 5),
    "dates": "2026-05-20 yesterday in May 2026 3 days ago last monday " * (SIZE // 57),
    "quotes": '"' * SIZE,
    "hyphens": "a-" * (SIZE // 2),
    "halves of pairs": "\ud800" * SIZE,
}


@pytest.fixture
def session(tmp_path: Path) -> MemorySession:
    made = open_session(
        "mnemopi",
        "/work/shop",
        settings={"mnemopi.dbPath": str(tmp_path / "m.db"), "mnemopi.scoping": "per-project-tagged"},
        agent_dir=tmp_path,
        env={},
    )
    for number in range(200):
        made.retain(f"the harbour lights of pier {number} are on server {number}")
    return made


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_a_heavy_query_is_answered(session: MemorySession, query: str) -> None:
    """A11."""
    began = time.monotonic()
    answer = session.recall(query)
    session.reflect(query[: SIZE // 2], query[: SIZE // 2])
    assert time.monotonic() - began < ANTI_HANG_SECONDS
    assert text.long_query(query_terms.FTS_TOKENS) in answer.notes
    session.close()


def test_an_ordinary_query_is_not_told_about(session: MemorySession) -> None:
    answer = session.recall("harbour lights " * 40)
    assert answer.hits
    assert text.long_query(query_terms.FTS_TOKENS) not in answer.notes
    assert scoring.LONG_QUERY > 15 * 40
    session.close()
