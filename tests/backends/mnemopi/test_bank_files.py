"""The bank files that settings and folder lead to: which are asked, in which order, and what a name means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.bank_files import BanksInScope
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import BankNameError, BankNotFoundError
from ipy_memory.explore.banks import banks
from ipy_memory.explore.health import look_over
from ipy_memory.scoping.modes import mnemopi_scope
from ipy_memory.session import MemorySession, open_session
from ipy_memory.settings.resolve import load_settings, mnemopi_config

if TYPE_CHECKING:
    from pathlib import Path

CLOCK = FixedClock("2026-06-01T12:00:00.000Z")
CWD = "/work/shop"


def in_scope(home: Path, scoping: str, cwd: str = CWD) -> BanksInScope:
    given = {"mnemopi.scoping": scoping, "mnemopi.dbPath": str(home / "mnemopi.db")}
    config = mnemopi_config(load_settings(home, cwd, {}, given), str(home))
    return BanksInScope(config, mnemopi_scope(config, cwd), clock=CLOCK, cwd=cwd, home=str(home))


def opened(home: Path, scoping: str) -> MemorySession:
    return open_session(
        "mnemopi",
        CWD,
        home / "mnemopi.db",
        {"mnemopi.scoping": scoping},
        agent_dir=home / "agent",
        env={"HOME": str(home)},
        clock=CLOCK,
        ids=FixedIds(),
    )


def make(path: Path, name: str, cwd: str = CWD) -> None:
    with Bank.open(path, name, clock=CLOCK, ids=FixedIds()) as bank:
        remember(bank, "a note", RememberOptions(metadata={"cwd": cwd}))


@pytest.mark.claim("R-13")
@pytest.mark.parametrize(
    ("scoping", "own", "asked", "reported"),
    [
        ("global", "default", ["default"], ["default"]),
        ("per-project", "shop", ["shop"], ["shop", "default"]),
        ("per-project-tagged", "shop", ["shop", "default"], ["shop", "default"]),
    ],
)
def test_each_scope_has_its_order(
    tmp_path: Path, scoping: str, own: str, asked: list[str], reported: list[str]
) -> None:
    banks = in_scope(tmp_path, scoping)
    named = {target.name: target.name.partition("-")[0] for target in banks.report_targets()}
    assert named[banks.retain_bank] == own
    assert [named[target.name] for target in banks.recall_targets()] == asked
    assert [named[target.name] for target in banks.edit_targets()] == asked
    assert [named[target.name] for target in banks.report_targets()] == reported
    assert [named[target.name] for target in banks.own_targets()] == asked
    assert list(tmp_path.iterdir()) == []


@pytest.mark.claim("L-01", "L-02")
def test_a_rescued_bank_is_asked_last_and_is_not_the_sessions_own(tmp_path: Path) -> None:
    make(tmp_path / "banks" / "shop-old" / "mnemopi.db", "before")
    banks = in_scope(tmp_path, "per-project")
    assert [(target.name, target.rescued) for target in banks.recall_targets()][1:] == [("shop-old", True)]
    assert "shop-old" not in [target.name for target in banks.own_targets()]
    assert banks.renamed == {"shop-old": "before"}
    assert in_scope(tmp_path, "global").legacy == ()


@pytest.mark.parametrize("scoping", ["per-project", "per-project-tagged"])
def test_rescued_banks_come_after_the_shared_one(tmp_path: Path, scoping: str) -> None:
    """D18, D19: the order of edits by id, and of reports."""
    make(tmp_path / "banks" / "shop-old" / "mnemopi.db", "shop-old")
    banks = in_scope(tmp_path, scoping)
    shared = ["default"] if scoping == "per-project-tagged" else []
    assert [target.name for target in banks.edit_targets()] == [banks.retain_bank, *shared, "shop-old"]
    assert [target.name for target in banks.report_targets()] == [banks.retain_bank, "default", "shop-old"]


def test_what_was_found_is_kept_until_it_is_looked_at_again(tmp_path: Path) -> None:
    banks = in_scope(tmp_path, "per-project")
    assert banks.legacy == ()
    make(tmp_path / "banks" / "shop-old" / "mnemopi.db", "shop-old")
    assert banks.legacy == ()
    banks.look_again()
    assert [verdict.name for verdict in banks.legacy] == ["shop-old"]
    assert banks.renamed == {}


def test_any_bank_can_be_named_and_an_unknown_one_names_the_near(tmp_path: Path) -> None:
    banks = in_scope(tmp_path, "per-project")
    assert banks.bank_names() == []
    with pytest.raises(BankNotFoundError) as caught:
        banks.named_target("harbour")
    assert caught.value.hint == "nothing has been retained yet"
    make(tmp_path / "mnemopi.db", "default")
    for name in ("harbor", "zebra", "odd name"):
        make(tmp_path / "banks" / name / "mnemopi.db", name)
    (tmp_path / "banks" / "empty").mkdir()
    assert banks.bank_names() == ["default", "harbor", "odd name", "zebra"]
    for name in banks.bank_names():
        assert banks.named_target(name).path.is_file()
    with pytest.raises(BankNotFoundError) as caught:
        banks.named_target("harbour")
    assert (caught.value.hint, caught.value.where) == ("there is harbor", "~/banks")


def test_a_linked_folder_is_not_followed_by_its_name(tmp_path: Path) -> None:
    """A17: neither listed nor read; the message says how to read the file that it leads to."""
    outside = tmp_path / "outside"
    with opened(tmp_path / "elsewhere", "global") as other:
        other.retain("Of somebody else")
    outside.mkdir()
    (tmp_path / "elsewhere" / "mnemopi.db").rename(outside / "mnemopi.db")
    with opened(tmp_path, "global") as session:
        session.retain("The harbour")
        (tmp_path / "banks").mkdir(exist_ok=True)
        (tmp_path / "banks" / "linked").symlink_to(outside)
        for read in (lambda: session.recall("else", bank="linked"), lambda: session.memories("linked")):
            with pytest.raises(BankNameError, match="is a link to another folder") as caught:
                read()
            assert f"%memory open {tmp_path / 'banks' / 'linked' / 'mnemopi.db'}" in (caught.value.hint or "")
        assert list(session.memories("*")["content"]) == ["The harbour"]
        assert "linked" not in list(banks(session)["name"])


def test_the_sessions_own_bank_folder_may_be_a_link(tmp_path: Path) -> None:
    """C14: it is followed as the agent does, and every command finds the same rows."""
    with opened(tmp_path, "per-project") as session:
        session.retain("The harbour opens at six")
        name = session.live_backend().retain_bank
    moved = tmp_path / "outside" / name
    moved.parent.mkdir()
    (tmp_path / "banks" / name).rename(moved)
    (tmp_path / "banks" / name).symlink_to(moved)
    with opened(tmp_path, "per-project") as session:
        [hit] = session.recall("harbour").hits
        assert session.recall("harbour", bank=name).hits[0].id == hit.id
        assert list(session.memories()["id"]) == list(session.memories(name)["id"]) == [hit.id]
        assert list(session.memories("*")["id"]) == [hit.id]
        assert session.memory(hit.id or "").content == "The harbour opens at six"
        assert [row.use for row in banks(session).itertuples()] == ["written, read"]
        assert session.change("update", hit.id, content="The harbour opens at seven").status == "updated"
        assert look_over(session).examinations[0].faults == ()
        session.clear()
    assert (moved / "mnemopi.db").exists()
