"""Trust of folders from a shell: what is said of an untrusted project, and ``ipy-memory trust``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.shell.conftest import Program


@pytest.fixture
def project(tmp_path: Path) -> str:
    """A project whose file names a bank."""
    folder = tmp_path / "project"
    (folder / ".omp").mkdir(parents=True)
    (folder / ".omp" / "config.yml").write_text("mnemopi:\n  bank: team\n")
    return str(folder)


def test_a_command_says_what_is_ignored_and_which_command_trusts(own: Program, project: str) -> None:
    """A02."""
    for words in (("recall", "anything"), ("status",), ("banks",)):
        ended = own(*words, cwd=project)
        assert f"the folder {project} is not trusted: 1 setting of its files" in ended.err
        assert "ipy-memory trust uses them" in ended.err
        assert f"the agent takes mnemopi.bank = team ({project}/.omp/config.yml:2)" in ended.err
    assert any("is not trusted" in note for note in own("recall", "--json", "anything", cwd=project).data["notes"])


def test_a_folder_is_trusted_listed_and_no_longer_trusted(own: Program, project: str) -> None:
    ended = own("trust", cwd=project)
    assert ended.out == "setting       value  from\nmnemopi.bank  team   .omp/config.yml\n"
    assert ended.err == (
        f"Note: {project} is trusted: these settings count until one of them changes. To end it: ipy-memory trust"
        " --revoke\n"
    )
    assert own("recall", "anything", cwd=project).err == ""
    (listed,) = own("trust", "--list", "--json").data["rows"]
    assert (listed["folder"], listed["settings"]) == (project, "mnemopi.bank")
    assert (
        own("trust", "--revoke", project).out
        == f"{project} is no longer trusted: guarded settings of its files are not used.\n"
    )
    assert own("trust", "--list").out == "No folder is trusted.\n"
    assert "is not trusted" in own("recall", "anything", cwd=project).err


def test_a_folder_that_is_not_there_is_an_error(own: Program) -> None:
    assert "there is no folder /nowhere" in own("trust", "/nowhere", code=2).err
