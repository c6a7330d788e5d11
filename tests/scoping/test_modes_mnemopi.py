"""Bank names and bank files of the local engine."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipy_memory.errors import BankNameError, SettingsError
from ipy_memory.jscompat.strings import units
from ipy_memory.scoping.modes import (
    bank_path,
    bank_scope,
    check_bank_name,
    mnemopi_scope,
    project_bank,
    project_segment,
    sanitise,
)
from ipy_memory.settings.resolve import Settings, mnemopi_config

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
HOSTILE = ["..", ".", "/", "//", "../../etc", "..%2f..", "/tmp/x", "a/../../b", "CON", "\u202e", "a" * 300, "~", "-"]
HOSTILE += ["", " ", "a\x00b", "a\\..\\b", "C:\\x", "banks/../..", "\ud800", ".hidden", "a\n", "*", "a b", "ü" * 65]
ANY_NAME = st.one_of(
    st.text(max_size=80),
    st.text(alphabet="./\\~ab%\x00-_ \u202e", max_size=80),
    st.lists(st.sampled_from(["..", ".", "a", "banks", "", "%2e", "~"]), max_size=8).map("/".join),
    st.sampled_from(HOSTILE),
)


@pytest.mark.claim("S-06")
def test_global_is_the_shared_bank_alone() -> None:
    for configured, shared in ((None, "default"), ("  ", "default"), ("Team Bank", "Team-Bank")):
        scope = bank_scope(configured, "/proj/demo", "global")
        assert (scope.retain_bank, scope.recall_banks) == (shared, (shared,))


@pytest.mark.claim("S-07")
def test_per_project_is_one_bank_of_the_directory() -> None:
    scope = bank_scope(None, "/proj/demo", "per-project")
    assert scope.retain_bank == scope.bank == "demo-1atfzjjejbapn"
    assert scope.recall_banks == ("demo-1atfzjjejbapn",)
    assert mnemopi_scope(mnemopi_config(Settings(), "/agent"), "/proj/demo") == scope


@pytest.mark.claim("S-08")
def test_tagged_reads_the_project_then_the_shared_bank() -> None:
    scope = bank_scope("team", "/proj/demo", "per-project-tagged")
    assert scope.retain_bank == "team-demo-1atfzjjejbapn"
    assert scope.recall_banks == ("team-demo-1atfzjjejbapn", "team")
    assert scope.global_bank == scope.base_bank == "team"


@pytest.mark.claim("S-09")
def test_the_path_alone_decides(tmp_path: Path) -> None:
    project = tmp_path / "My App"
    project.mkdir()
    before = project_bank(None, str(project))
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert project_bank(None, str(project)) == before
    assert before.startswith("My-App-")
    assert project_bank(None, f"{project}/x/../") == before
    assert project_bank(None, "My App", process_cwd=str(tmp_path)) == before
    assert project_bank(None, "", process_cwd=str(project)) == before
    assert project_bank(None, str(tmp_path / "other" / "My App")) != before
    assert project_segment("/").startswith("default-")


@pytest.mark.claim("S-10")
@given(st.one_of(st.none(), ANY_NAME), st.text(max_size=100))
@example("n" * 64, "/x")
@example("n" * 61 + "-" * 9, "/x")
@settings(max_examples=1000)
def test_names_are_valid_whatever_the_settings_say(configured: str | None, cwd: str) -> None:
    for scoping in ("global", "per-project", "per-project-tagged"):
        scope = bank_scope(configured, cwd, scoping, process_cwd="/w")
        for name in {scope.bank, scope.global_bank, *scope.recall_banks}:
            assert NAME.match(name)
            assert check_bank_name(name) == name


@pytest.mark.claim("S-10")
@given(ANY_NAME)
@settings(max_examples=1000)
def test_sanitising_twice_changes_nothing_more(value: str) -> None:
    once = sanitise(value)
    assert once is None or (NAME.match(once) and not once.startswith("-") and sanitise(once) == once)


def test_names_that_differ_after_the_cut_stay_apart() -> None:
    first, second = sanitise("n" * 80 + "a"), sanitise("n" * 80 + "b")
    assert first is not None
    assert second is not None
    assert first != second
    assert first[:50] == second[:50]


@pytest.mark.claim("S-11")
def test_a_wrong_mode_in_a_call_names_the_right_ones() -> None:
    with pytest.raises(SettingsError) as caught:
        bank_scope(None, "/x", "Global")
    assert "global, per-project, per-project-tagged" in caught.value.one_line()


@pytest.mark.claim("C-07")
def test_files_of_banks() -> None:
    assert bank_path("/d/my.db", "team", "team") == Path("/d/my.db")
    assert bank_path("/d/my.db", "default", "team") == Path("/d/mnemopi.db")
    assert bank_path("/d/my.db", "x", "team") == Path("/d/banks/x/mnemopi.db")


@pytest.mark.claim("C-07")
def test_asking_for_a_file_makes_nothing(tmp_path: Path) -> None:
    bank_path(tmp_path / "d" / "mnemopi.db", "x")
    assert list(tmp_path.iterdir()) == []


@given(ANY_NAME)
@settings(max_examples=5000)
def test_no_name_leads_outside_the_banks_folder(name: str) -> None:
    try:
        path = bank_path("/data/m/mnemopi.db", name)
    except BankNameError:
        return
    if name in {"", "default"}:
        assert path == Path("/data/m/mnemopi.db")
        return
    assert Path(os.path.normpath(path)).parent.parent == Path("/data/m/banks")
    assert NAME.match(name)
    assert units(name) <= 64


def test_a_refused_name_is_shown_on_one_line() -> None:
    with pytest.raises(BankNameError) as caught:
        bank_path("/d/mnemopi.db", "a\n\u202e/..")
    assert caught.value.one_line().isprintable()


@pytest.mark.parametrize("inside", ["folder", "file"])
def test_links_out_of_the_banks_folder_are_refused(tmp_path: Path, inside: str) -> None:
    outside, banks = tmp_path / "outside", tmp_path / "d" / "banks"
    outside.mkdir()
    (outside / "mnemopi.db").touch()
    banks.mkdir(parents=True)
    if inside == "folder":
        (banks / "x").symlink_to(outside)
    else:
        (banks / "x").mkdir()
        (banks / "x" / "mnemopi.db").symlink_to(outside / "mnemopi.db")
    with pytest.raises(BankNameError, match="leads outside the banks folder"):
        bank_path(tmp_path / "d" / "mnemopi.db", "x")


def test_links_within_the_banks_folder_and_of_the_whole_folder_are_followed(tmp_path: Path) -> None:
    banks = tmp_path / "elsewhere"
    (banks / "new").mkdir(parents=True)
    (banks / "old").symlink_to("new")
    (tmp_path / "banks").symlink_to(banks)
    assert bank_path(tmp_path / "mnemopi.db", "old") == tmp_path / "banks" / "old" / "mnemopi.db"
