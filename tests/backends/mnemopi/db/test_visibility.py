"""Which rows may be seen, and every reason why one may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.visibility import EXPIRED, OTHER_SESSION, Visibility, condition, hidden, names_of
from ipy_memory.clock import FixedClock, FixedIds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
IN_CHANNEL = Visibility(NOW, "proj", "proj")
ROWS = {
    "own": {},
    "ends": {"valid_until": NOW},
    "lasts": {"valid_until": "2026-06-01T12:00:00.001Z"},
    "older": {"superseded_by": "own", "valid_until": "2026-05-01T00:00:00.000Z"},
    "else": {"session_id": "else"},
    "shared": {"session_id": "else", "scope": "global"},
    "channel": {"session_id": "else", "channel_id": "proj"},
    "early": {"timestamp": "2026-01-01T23:59:58.000Z", "source": "mail"},
}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    usual = {"content": "text", "session_id": "proj", "scope": "bank", "timestamp": NOW, "source": "notes"}
    with Bank.open(tmp_path / "mnemopi.db", "proj", clock=FixedClock(NOW), ids=FixedIds()) as bank:
        for id_, given in ROWS.items():
            row = {"id": id_, **usual, **given}
            bank.connection.execute(
                f"INSERT INTO working_memory ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()]
            )
        yield bank


def seen(bank: Bank, visible: Visibility) -> set[str]:
    where, values = condition(visible.rules(), names_of(bank, "working_memory"))
    return {row[0] for row in bank.connection.execute(f"SELECT id FROM working_memory WHERE {where}", values)}


@pytest.mark.parametrize(
    ("visible", "unseen"),
    [
        (IN_CHANNEL, {"ends", "older", "else"}),
        (Visibility(NOW, "proj"), {"ends", "older", "else", "channel"}),
        (Visibility(NOW, "proj", None, (("author_id", "me"),)), set(ROWS)),
        (Visibility(NOW, "proj", "proj", (("source", "mail"),)), set(ROWS) - {"early"}),
        (Visibility(NOW, "proj", "proj", (), "2026-01-02"), {"ends", "older", "else", "early"}),
        (Visibility(NOW, "proj", "proj", (), None, "2026-01-01"), set(ROWS) - {"early"}),
    ],
)
def test_a_row_is_hidden_for_a_reason_or_seen(bank: Bank, visible: Visibility, unseen: set[str]) -> None:
    found = hidden(bank, "working_memory", [*ROWS, "absent"], visible)
    assert {id_ for id_, state in found.items() if state.reasons} == unseen
    assert seen(bank, visible) == set(ROWS) - unseen


def test_every_reason_is_told(bank: Bank) -> None:
    found = hidden(bank, "working_memory", ROWS, IN_CHANNEL)
    assert found["ends"].reasons == (EXPIRED,)
    assert found["older"].reasons == (EXPIRED, "superseded by another memory")
    assert (found["older"].superseded_by, found["older"].valid_until) == ("own", "2026-05-01T00:00:00.000Z")
    assert found["else"].reasons == (OTHER_SESSION,)


def test_a_column_that_an_older_file_lacks_is_read_as_its_default(bank: Bank) -> None:
    bank.connection.execute("DROP INDEX IF EXISTS idx_wm_channel")
    bank.connection.execute("ALTER TABLE working_memory RENAME COLUMN channel_id TO something")
    bank.memo.clear()
    assert names_of(bank, "working_memory")["channel_id"] == "NULL"
    assert "channel" not in seen(bank, IN_CHANNEL)
