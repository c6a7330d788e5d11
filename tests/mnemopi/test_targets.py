"""The bank files that settings and folder lead to: which are asked, in which order, and what a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import BankNotFoundError
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.store import RememberOptions, remember
from ipy_memory.mnemopi.targets import BanksInScope
from ipy_memory.scoping.mnemopi import mnemopi_scope
from ipy_memory.settings import load_settings, mnemopi_config

CLOCK = FixedClock("2026-06-01T12:00:00.000Z")
CWD = "/work/shop"


def in_scope(home: Path, scoping: str, cwd: str = CWD) -> BanksInScope:
    given = {"mnemopi.scoping": scoping, "mnemopi.dbPath": str(home / "mnemopi.db")}
    config = mnemopi_config(load_settings(home, cwd, {}, given), str(home))
    return BanksInScope(config, mnemopi_scope(config, cwd), clock=CLOCK, cwd=cwd, home=str(home))


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
