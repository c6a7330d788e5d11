"""``%memory trust``, and what a notebook says of settings before its first answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import MagicError, MemoryToolkitError
from tests.notebook.conftest import Notebook, plain

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(bare: Notebook, tmp_path: Path) -> Path:
    """A project whose file chooses the backend, a bank and a limit; the notebook works in it."""
    folder = tmp_path / "project"
    (folder / ".omp").mkdir(parents=True)
    file = folder / ".omp" / "config.yml"
    file.write_text("memory:\n  backend: mnemopi\nmnemopi:\n  bank: team\n  recallLimit: 3\n")
    bare.magics.world = {"env": {"HOME": str(tmp_path)}}
    bare.magics.cwd, bare.magics.agent_dir = str(folder), str(tmp_path / "agent")
    return file


def test_the_first_magic_says_what_is_ignored_whichever_it_is(bare: Notebook, project: Path) -> None:
    """A02, C02."""
    folder = project.parent.parent
    for line in ("%recall x", "df = %recall x", "%memory banks", "%memory status", "%%retain\nA note."):
        bare.magics.close_session()
        ran = bare.run(line)
        assert ran.stderr == (
            f"Settings: the folder {folder} is not trusted: 2 settings of its files, which the agent follows, are not "
            "used here; %memory trust uses them\n"
            f"Settings: the agent takes memory.backend = mnemopi ({project}:2); here it is off\n"
            f"Settings: the agent takes mnemopi.bank = team ({project}:4); here it is not set\n"
        )
        assert bare.run("%memory status").stderr == ""


def test_trusting_lists_what_counts_from_now_on(bare: Notebook, project: Path) -> None:
    bare.run("%memory status")
    assert plain(bare, "%memory trust") == (
        "setting         value    from\n"
        "memory.backend  mnemopi  .omp/config.yml\n"
        "mnemopi.bank    team     .omp/config.yml\n"
        "~/project is trusted: these settings count until one of them changes. To end it: %memory trust --revoke"
    )
    assert plain(bare, "%recall x") == "No relevant memories found."
    (today,) = [line.split()[1] for line in plain(bare, "%memory trust --list").splitlines() if "~/project" in line]
    assert plain(bare, "%memory trust --list") == (
        f"folder     since       settings\n~/project  {today}  memory.backend, mnemopi.bank"
    )
    assert plain(bare, "%memory trust --revoke") == (
        "~/project is no longer trusted: guarded settings of its files are not used."
    )
    assert plain(bare, "%memory trust --revoke") == "~/project was not trusted."
    assert plain(bare, "%memory trust --list") == "No folder is trusted."
    assert isinstance(bare.run("%recall x").error, MemoryToolkitError)


def test_a_lapsed_trust_is_told_by_the_next_session(bare: Notebook, project: Path) -> None:
    bare.run("%memory trust")
    project.write_text("memory:\n  backend: mnemopi\nmnemopi:\n  bank: theirs\n")
    bare.magics.close_session()
    assert "have changed since it was trusted" in bare.run("%memory status").stderr
    assert "no longer: its guarded settings changed" in plain(bare, "%memory status")
    assert "no longer: its guarded settings changed" in plain(bare, "%memory report")


def test_trust_of_what_was_not_shown_is_refused_once(bare: Notebook, project: Path) -> None:
    bare.run("%memory status")
    project.write_text("hindsight: {apiUrl: 'https://theirs.example'}\n")
    ran = bare.run("%memory trust")
    assert isinstance(ran.error, MemoryToolkitError)
    assert "hindsight.apiUrl = https://theirs.example" in ran.stderr
    assert "https://theirs.example" in plain(bare, "%memory trust")


def test_another_folder_and_a_folder_that_says_nothing(bare: Notebook, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert plain(bare, "%memory trust ~/other") == "The files of ~/other set nothing that needs trust."
    (other / "opencode.json").write_text(json.dumps({"hindsight": {"apiToken": "s3cret-key"}}))
    shown = plain(bare, "%memory trust $HOME/other")
    assert "hindsight.apiToken  (set)  opencode.json" in shown
    assert "~/other" in plain(bare, "%memory trust --list")
    assert plain(bare, "%memory trust --revoke ~/other").startswith("~/other is no longer trusted")


@pytest.mark.parametrize("line", ["%memory trust /nowhere", "%memory trust --list x", "%memory trust --list --revoke"])
def test_a_wrong_call_is_one_error(bare: Notebook, project: Path, line: str) -> None:
    assert project.exists()
    assert isinstance(bare.run(line).error, MagicError)


def test_a_change_of_the_folder_says_what_is_ignored_there(bare: Notebook, project: Path, tmp_path: Path) -> None:
    bare.magics.cwd = str(tmp_path)
    bare.run("%memory use mnemopi")
    assert bare.run("%recall x").stderr == ""
    ran = bare.run(f"%config MemoryMagics.cwd = {str(project.parent.parent)!r}")
    assert "mnemopi.bank = team" in ran.stderr
    assert bare.run("%recall x").stderr == ""


def test_a_stranger_s_value_steers_nothing(bare: Notebook, project: Path) -> None:
    project.write_text(json.dumps({"mnemopi": {"bank": "\x1b[2Jred\u202e\nnext <b>"}}))
    bare.run("%memory use mnemopi")
    ran = bare.run("%memory status")
    html = ran.outputs[-1]["text/html"]
    assert not set("\x1b\u202e") & set(ran.stderr + ran.outputs[-1]["text/plain"] + html)
    assert "<b>" not in html


def test_an_ignored_setting_says_so_in_status_and_report(bare: Notebook, tmp_path: Path) -> None:
    """C15."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "config.yml").write_text("mnemopi:\n  enhancedRecall: true\n  recallLimit: 3\n")
    bare.magics.world = {"env": {"HOME": str(tmp_path)}}
    bare.magics.cwd, bare.magics.agent_dir = str(tmp_path), str(tmp_path / "agent")
    bare.run("%memory use mnemopi")
    for command in ("status", "report"):
        shown = plain(bare, f"%memory {command}")
        assert "True (no effect: it changes no recall)" in shown
        assert "3 (no effect" not in shown


def test_a_folder_that_the_process_goes_to_says_what_is_ignored_there(
    bare: Notebook, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bare.magics.cwd = ""
    bare.run("%memory use mnemopi")
    assert bare.run("%recall x").stderr == ""
    monkeypatch.chdir(project.parent.parent)
    ran = bare.run("df = %recall x")
    assert "mnemopi.bank = team" in ran.stderr
    assert ran.outputs == []


def test_a_panel_opened_first_says_it_too(bare: Notebook, project: Path) -> None:
    bare.run("%memory use mnemopi")
    assert project.exists()
    ran = bare.run("%memory panel recall --static x")
    assert ran.error is None
    assert ran.stderr.count("mnemopi.bank = team") == 1
