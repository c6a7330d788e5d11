"""What each scoping mode means for a folder: what it writes, what it reads, what it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.explore.scopes import scope_rows, scopes
from ipy_memory.scoping.modes import bank_scope
from tests.explore.conftest import CWD, OpenSession, fingerprint

if TYPE_CHECKING:
    from pathlib import Path


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


def test_a_bank_whose_folder_is_a_link_is_asked_where_it_leads(open_here: OpenSession, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "banks"
    folder.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (folder / bank_scope(None, CWD, "per-project").bank).symlink_to(tmp_path / "outside")
    notes = [row.note for row in scope_rows(open_here("global")) if row.backend == "mnemopi"]
    assert notes[0] is None
    assert notes[1] is None
