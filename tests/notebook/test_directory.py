"""A change of the working directory: what follows, what stays, and what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from tests.notebook.conftest import NOW, Notebook, plain

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two project folders; the process begins in the first."""
    made = (tmp_path / "first", tmp_path / "second")
    for folder in made:
        folder.mkdir()
    monkeypatch.chdir(made[0])
    return made


@pytest.fixture
def moving(bare: Notebook, folders: tuple[Path, Path], tmp_path: Path) -> Notebook:
    """A notebook whose project folder nobody has named."""
    bare.magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock(NOW), "ids": FixedIds()}
    bare.magics.agent_dir = str(tmp_path)
    bare.run("%memory use mnemopi")
    bare.run("%retain The first project deploys to fly.io.")
    return bare


def banks(tmp_path: Path) -> dict[str, int]:
    return {
        path.parent.name.partition("-")[0]: path.stat().st_size
        for path in (tmp_path / "memories" / "mnemopi" / "banks").glob("*/mnemopi.db")
    }


def test_memory_follows_a_folder_that_nobody_chose_and_says_so_once(
    moving: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B08: after %cd, the next magic writes to the new project's bank and says so in one line."""
    session = moving.magics.session
    moving.run(f"%cd {tmp_path / 'second'}")
    ran = moving.run("%retain The second project deploys to hetzner.")
    line = next(line for line in ran.stderr.splitlines() if line.startswith("ipy_memory: "))
    assert "the working directory is now ~/second, and memory follows: it writes to bank second-" in line
    assert line.endswith("; to go back: %memory rebind ~/first")
    assert moving.magics.session is session
    assert set(banks(tmp_path)) == {"first", "second"}
    again = moving.run("%recall deploys")
    assert again.stderr == ""
    assert list(again.result["content"]) == ["The second project deploys to hetzner."]
    assert "~/first" in plain(moving, "%memory rebind ~/first")
    assert "fly.io" in plain(moving, "%recall deploys")


def test_a_folder_that_was_chosen_stays(moving: Notebook, folders: tuple[Path, Path], tmp_path: Path) -> None:
    """B08: an explicit folder is kept, and how to move is said once for each change."""
    moving.run("%config MemoryMagics.cwd = '~/first'")
    assert moving.run("%recall deploys").stderr == ""
    moving.run(f"%cd {folders[1]}")
    ran = moving.run("%retain The first project has two workers.")
    assert ran.stderr == (
        "ipy_memory: the working directory is now ~/second; memory stays in the scope of ~/first (this folder was "
        f"chosen): it writes to bank {moving.magics.session.live_backend().retain_bank}; to move: %memory rebind\n"
    )
    assert set(banks(tmp_path)) == {"first"}
    assert moving.run("%recall deploys").stderr == ""
    assert "second-" in plain(moving, "%memory rebind")


def test_a_recorded_notebook_stays_where_its_turns_go(
    moving: Notebook, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    moving.run("%memory record on")
    moving.run("x = 1")
    moving.run(f"import os; os.chdir({str(folders[1])!r})")
    ran = moving.run("%memory record status")
    assert "(recording goes on there)" in ran.stderr
    assert "Recording is on" in ran.outputs[0]["text/plain"]
    assert set(banks(tmp_path)) == {"first"}
    moving.run("%memory record off")
    assert "memory follows" in moving.run("%recall deploys").stderr


def test_commands_that_choose_a_folder_themselves_need_no_note(moving: Notebook, folders: tuple[Path, Path]) -> None:
    for command, last in (("use mnemopi", "second"), (f"rebind {folders[0]}", "first")):
        moving.run(f"%cd {folders[1]}")
        ran = moving.run(f"%memory {command}")
        assert (ran.error, ran.stderr) == (None, "")
        assert moving.magics.session.cwd == str(folders[0].with_name(last))
        assert moving.run("%recall deploys").stderr == ""
        moving.run(f"%cd {folders[0]}")
        moving.run("%recall deploys")


def test_rebinding_without_a_name_keeps_following(moving: Notebook, folders: tuple[Path, Path]) -> None:
    moving.run("%memory rebind")
    moving.run(f"%cd {folders[1]}")
    assert "memory follows" in moving.run("%recall deploys").stderr


def test_a_bank_that_is_only_read_stays(moving: Notebook, folders: tuple[Path, Path], tmp_path: Path) -> None:
    [bank] = (tmp_path / "memories").rglob("mnemopi.db")
    moving.run(f"%cd {folders[1]}")
    assert moving.run(f"%memory open {bank}").stderr == ""
    moving.run(f"%cd {folders[0]}")
    moving.run(f"%cd {folders[1]}")
    assert moving.run("%recall deploys").stderr == ""
    moving.run(f"%cd {tmp_path}")
    ran = moving.run("%recall deploys")
    assert "memory stays" in ran.stderr
    assert len(ran.result) == 1


def test_a_directory_that_is_gone_changes_nothing(moving: Notebook, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    moving.run(f"%cd {tmp_path / 'gone'}")
    (tmp_path / "gone").rmdir()
    ran = moving.run("%recall deploys")
    assert (ran.error, ran.stderr) == (None, "")
    assert len(ran.result) == 1
    moving.run(f"%cd {tmp_path}")


def test_an_interrupted_move_is_made_at_the_next_magic(
    moving: Notebook, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = moving.magics.session

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    moving.run(f"%cd {folders[1]}")
    with monkeypatch.context() as patched:
        patched.setattr(session, "rebind", interrupted)
        assert isinstance(moving.run("%recall deploys").error, KeyboardInterrupt)
    assert session.cwd == str(folders[0])
    assert "memory follows" in moving.run("%recall deploys").stderr
    assert session.cwd == str(folders[1])


def test_a_panel_writes_where_a_magic_would(moving: Notebook, folders: tuple[Path, Path], tmp_path: Path) -> None:
    panel = moving.run("%memory panel --live retain").result
    moving.run(f"%cd {folders[1]}")
    panel.state.attempt(lambda: panel.state.retain("The second project has a panel."))
    assert set(banks(tmp_path)) == {"first", "second"}
    assert "memory follows" in moving.run("%recall panel").stderr


# ---- paths as they are typed


@pytest.mark.parametrize("name", ["x.db", "./x.db", "~/first/x.db", "$HOME/first/x.db", "${HOME}/first/x.db"])
def test_a_database_stays_where_its_path_led(
    moving: Notebook, folders: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    """B08 and C04: a relative path, a home folder or a variable means one file, wherever the process goes."""
    moving.run(f"%config MemoryMagics.database = {name!r}")
    moving.run("%memory scope global")
    moving.run("%retain one")
    moving.run(f"%cd {folders[1]}")
    moving.run("%memory use mnemopi")
    moving.run("%retain two")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("x.db")] == ["first/x.db"]
    assert len(moving.run("%recall one two").result) == 2


@pytest.mark.parametrize("trait", ["cwd", "agent_dir"])
def test_a_folder_is_filled_in_when_it_is_chosen(moving: Notebook, tmp_path: Path, trait: str) -> None:
    """C04: no folder named ~ or $HOME."""
    for typed, meant in (
        ("~/second", "second"),
        ("$HOME", ""),
        ("../second/x", "first/../second/x"),
        ("$NO_SUCH", None),
    ):
        moving.run(f"%config MemoryMagics.{trait} = {typed!r}")
        kept = getattr(moving.magics, trait)
        assert kept == (str(tmp_path / "first" / typed) if meant is None else f"{tmp_path}/{meant}".rstrip("/"))


# ---- banks near by


def test_a_recall_beside_the_agents_folder_names_the_bank_that_has_hits(moving: Notebook, tmp_path: Path) -> None:
    """C19: the exact text stays, the note stands under it, and its command leads there."""
    (tmp_path / "first" / "notebooks").mkdir()
    moving.run(f"%cd {tmp_path / 'first' / 'notebooks'}")
    ran = moving.run("%recall deploys")
    assert ran.outputs[0]["text/plain"] == "No relevant memories found."
    own, other = ran.result.attrs["notes"]
    assert own.endswith("of ~/first/notebooks has no file yet.")
    command = other.partition("To go there: ")[2]
    assert command == "%memory rebind ~/first"
    assert "1 hit for this query" in other
    assert moving.run("%recall --bank nowhere deploys").error is not None
    made = moving.run("%retain A note.").result.attrs["notes"]
    assert made[0].startswith("This made a new bank: notebooks-")
    assert "of ~/first has 1 memory." in made[1]
    moving.run(command)
    assert len(moving.run("%recall deploys").result) == 1
