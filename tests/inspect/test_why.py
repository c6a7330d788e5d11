"""Why a memory came back or did not: every memory and query of the recorded banks, and each kind of verdict."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MemoryNotFoundError
from ipy_memory.inspect.why import FAILED, NOT_IN_SCOPE, judge, verdicts, verdicts_frame, why
from ipy_memory.mnemopi import listing
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.scoped import scoped_recall
from ipy_memory.mnemopi.trace import Trace
from ipy_memory.session import MemorySession, open_session
from tests.conformance.kinds.recall import RecordedEmbedder, unpack

GOLDEN = Path(__file__).parents[1] / "golden"
NOW = "2026-06-01T12:00:00.000Z"
PACKAGE = Path(__file__).parents[2] / "ipy_memory"


def recorded() -> list[Path]:
    files = [*(GOLDEN / "recall").glob("*.json"), *(GOLDEN / "recall_tz").glob("*.json")]
    return sorted(path for path in files if path.stem != "failures")


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_every_memory_of_the_recorded_banks_has_one_verdict_for_every_query(path: Path, tmp_path: Path) -> None:
    file = json.loads(path.read_text(encoding="utf-8"))
    clock = FixedClock(file["now"], ZoneInfo(file.get("tz") or "UTC"))
    for bankset in {case["input"]["bankset"] for case in file["cases"]}:
        unpack(GOLDEN, bankset, tmp_path / bankset)
    for case in file["cases"]:
        asked = case["input"]
        folder = tmp_path / asked["bankset"]
        vectors = asked.get("query_embeddings")
        banks = [
            Bank.open_readonly(
                folder / "mnemopi.db" if name == asked["globalBank"] else folder / "banks" / name / "mnemopi.db",
                name,
                clock=clock,
                embedder=RecordedEmbedder(vectors) if vectors is not None else None,
            )
            for name in asked["recallBanks"]
        ]
        rows = {bank.path: listing.every_row(bank) for bank in banks}
        traces: list[Trace] = []
        tagged = asked["scoping"] == "per-project-tagged"
        answer = scoped_recall(
            banks,
            asked["query"],
            asked["recallLimit"],
            project_bank=asked["retainBank"] if tagged else None,
            shared_bank=asked["globalBank"] if tagged else None,
            should_touch=False,
            traces=traces,
            watch=[row.id for some in rows.values() for row in some],
        )
        found = [
            verdict
            for bank in banks
            for verdict in judge(
                rows[bank.path], [t for t in traces if t.path == bank.path], answer.hits, asked["recallLimit"]
            )
        ]
        assert Counter((v.bank, v.store, v.id) for v in found) == Counter(
            (row.bank, row.store, row.id) for some in rows.values() for row in some
        )
        returned = sorted((v for v in found if v.returned), key=lambda v: v.place or 0)
        assert [(v.bank, v.store, v.id, v.score) for v in returned] == [
            (hit.bank, hit.tier, hit.id, hit.score) for hit in answer.hits
        ]
        assert all(v.reason for v in found)
        for bank in banks:
            bank.close()
