"""Where memories lie: all banks with reasons, and what each scoping mode means for a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.inspect.banks import bank_rows, banks
from ipy_memory.inspect.scopes import scope_rows, scopes
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.scoping.mnemopi import bank_scope
from ipy_memory.session import MemorySession, open_session
from tests.inspect.conftest import CWD, NOW, OpenSession, fingerprint


def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def rows_of(session: MemorySession) -> dict[str, tuple[str, str]]:
    return {row.name: (row.use, row.reason) for row in bank_rows(session)}


@pytest.fixture
def folder(open_here: OpenSession, tmp_path: Path) -> Path:
    """A database folder with banks of every kind."""
    with open_here("global") as shared:
        shared.retain("Everybody prefers tea")
    with open_here(cwd="/work/other") as other:
        other.retain(["Other note", "Another note"])
    with open_here() as own:
        own.retain("Own note")
    folder = home(tmp_path) / "banks"
    own_name = bank_scope(None, CWD, "per-project").bank
    (folder / "shop-before").mkdir()
    (folder / "shop-before" / "mnemopi.db").write_bytes((folder / own_name / "mnemopi.db").read_bytes())
    (folder / "empty-folder").mkdir()
    (folder / "words").mkdir()
    (folder / "words" / "mnemopi.db").write_text("no database at all, only words in a file")
    return folder


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
    assert not home(tmp_path).exists()


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


@pytest.mark.claim("S-02", "S-06", "S-07", "S-08")
def test_each_mode_reads_and_writes_what_its_scope_says(folder: Path, open_here: OpenSession, tmp_path: Path) -> None:
    before = fingerprint(tmp_path)
    session = open_here()
    own = bank_scope(None, CWD, "per-project").bank
    rows = {(row.backend, row.mode): row for row in scope_rows(session, "note")}
    assert len(rows) == 6
    local = rows["mnemopi", "per-project"]
    assert (local.in_force, local.writes, local.reads) == (True, own, (own, "shop-before"))
    assert (local.rescued, local.exists) == (("shop-before",), True)
    assert local.file == f"~/home/banks/{own}/mnemopi.db"
    assert local.top == "Own note"
    tagged = rows["mnemopi", "per-project-tagged"]
    assert (tagged.in_force, tagged.reads) == (False, (own, "default", "shop-before"))
    assert rows["mnemopi", "global"].reads == ("default",)
    assert rows["mnemopi", "global"].hits == ()
    served = rows["hindsight", "per-project-tagged"]
    assert (served.writes, served.write_tags, served.reads) == ("omp", ("project:shop",), ("omp",))
    assert served.read_filter == "project:shop + untagged"
    assert served.hits is None
    assert served.note == "not asked: the session is not on this server"
    for mode in ("global", "per-project", "per-project-tagged"):
        with open_here(mode) as real:
            assert [hit.id for hit in real.recall("note", touch=False).hits] == list(rows["mnemopi", mode].hits or ())
    session.close()
    assert fingerprint(tmp_path) == before


def test_another_folder_has_other_banks(folder: Path, open_here: OpenSession) -> None:
    session = open_here()
    row = next(row for row in scope_rows(session, cwd="/work/other") if row.mode == "per-project")
    assert row.writes == bank_scope(None, "/work/other", "per-project").bank
    assert not row.in_force
    assert row.hits is None
    frame = scopes(session, "note", cwd="/work/other")
    assert frame.attrs == {"query": "note", "cwd": "/work/other"}
    assert frame["hits"].map(lambda hits: None if hits is None else len(hits)).tolist()[1] == 2


def test_a_bank_whose_name_leads_outside_is_a_note(open_here: OpenSession, tmp_path: Path) -> None:
    folder = home(tmp_path) / "banks"
    folder.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (folder / bank_scope(None, CWD, "per-project").bank).symlink_to(tmp_path / "outside")
    notes = [row.note for row in scope_rows(open_here("global")) if row.backend == "mnemopi"]
    assert notes[0] is None
    assert "leads outside the banks folder" in str(notes[1])


def test_a_bank_of_an_older_form_is_counted(open_here: OpenSession, tmp_path: Path) -> None:
    with open_here() as session:
        session.retain("Own note")
        path = home(tmp_path) / "banks" / session.live_backend().retain_bank / "mnemopi.db"
        clock = session.clock
    with Bank.open(path, "x", clock=clock) as bank:
        bank.connection.execute("DROP TABLE triples")
        bank.connection.execute("ALTER TABLE working_memory RENAME COLUMN metadata_json TO something")
    row = bank_rows(open_here())[0]
    assert (row.tally.working, row.tally.triples, row.tally.cwds, row.error) == (1, 0, (), None)
