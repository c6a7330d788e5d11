"""Where memories lie: all banks, with the reason why each is read or not."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.explore.banks import bank_rows, banks
from ipy_memory.scoping.modes import bank_scope
from ipy_memory.session import MemorySession, open_session
from tests.explore.conftest import CWD, NOW, OpenSession, fingerprint


def rows_of(session: MemorySession) -> dict[str, tuple[str, str]]:
    return {row.name: (row.use, row.reason) for row in bank_rows(session)}


@pytest.mark.claim("L-05")
def test_every_bank_says_why_it_is_read_or_not(folder: Path, open_here: OpenSession, tmp_path: Path) -> None:
    before = fingerprint(tmp_path)
    session = open_here()
    own = bank_scope(None, CWD, "per-project").bank
    found = rows_of(session)
    assert list(found)[:2] == [own, "shop-before"]
    assert found[own] == ("written, read", "the bank of this folder")
    assert found["shop-before"] == ("rescued", "all rows (1) come from this directory")
    assert found["empty-folder"] == ("not read", "no database")
    assert found["words"] == ("not read", "not a SQLite database")
    assert found["default"] == ("not read", "the shared bank, which the scope per-project does not read")
    other = next(name for name in found if name.startswith("other-"))
    assert found[other] == ("not read", "2 of 2 rows come from another directory or name none")
    session.close()
    assert fingerprint(tmp_path) == before


@pytest.mark.claim("L-02", "L-05")
def test_in_global_scope_no_bank_is_rescued(folder: Path, open_here: OpenSession) -> None:
    found = rows_of(open_here("global"))
    assert found["default"] == ("written, read", "the shared bank")
    assert found["shop-before"] == ("not read", "another bank, which the scope global does not read")


@pytest.mark.claim("M-08")
def test_the_frame_of_banks_counts_rows_bytes_and_folders(folder: Path, open_here: OpenSession) -> None:
    said: list[tuple[int, int]] = []
    frame = banks(open_here(), lambda done, total: said.append((done, total))).set_index("name")
    assert said == [(number, len(frame)) for number in range(1, len(frame) + 1)]
    other = next(name for name in frame.index if name.startswith("other-"))
    assert frame.loc[other, ["working", "episodic", "facts"]].tolist() == [2, 0, 0]
    assert frame.loc[other, "cwds"] == ["/work/other"]
    assert frame.loc[other, "last_memory"] == pd.Timestamp(NOW)
    path = Path(frame.loc[other, "path"])
    wal = path.with_name("mnemopi.db-wal")
    assert frame.loc[other, "size"] == path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)
    assert "not a database" in frame.loc["words", "error"]
    assert pd.isna(frame.loc["words", "working"])
    assert pd.isna(frame.loc["empty-folder", "size"])


def test_the_list_of_banks_of_an_empty_home_makes_nothing(open_here: OpenSession, tmp_path: Path) -> None:
    session = open_here("per-project-tagged")
    frame = banks(session)
    assert frame["reason"].tolist() == ["the bank of this folder; no file yet", "the shared bank; no file yet"]
    assert frame["use"].tolist() == ["written, read", "read"]
    assert not (tmp_path / "home").exists()


def test_a_server_has_no_bank_files(tmp_path: Path) -> None:
    with (
        open_session("hindsight", "/work", agent_dir=tmp_path, env={}) as session,
        pytest.raises(MemoryToolkitError, match="keeps no local banks"),
    ):
        bank_rows(session)


def test_a_bank_that_cannot_be_written_is_listed(folder: Path, open_here: OpenSession) -> None:
    path = folder / "shop-before" / "mnemopi.db"
    path.chmod(0o444)
    assert rows_of(open_here())["shop-before"][0] == "rescued"
    assert os.access(path, os.R_OK)


def test_a_bank_of_an_older_form_is_counted(open_here: OpenSession, tmp_path: Path) -> None:
    with open_here() as session:
        session.retain("Own note")
        path = tmp_path / "home" / "banks" / session.live_backend().retain_bank / "mnemopi.db"
        clock = session.clock
    with Bank.open(path, "x", clock=clock) as bank:
        bank.connection.execute("DROP TABLE triples")
        bank.connection.execute("ALTER TABLE working_memory RENAME COLUMN metadata_json TO something")
    row = bank_rows(open_here())[0]
    assert (row.tally.working, row.tally.triples, row.tally.cwds, row.error) == (1, 0, (), None)
