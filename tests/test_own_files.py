"""Files of this package: where they lie, and that planted names are refused."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from ipy_memory import own_files
from ipy_memory.errors import MemoryToolkitError

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_state_lies_in_one_folder_of_the_agents_and_never_among_the_banks(tmp_path: Path) -> None:
    for name in own_files.KINDS:
        assert own_files.state_path(tmp_path, name).parent == tmp_path / "ipy_memory"


def test_a_file_is_written_whole_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "ipy_memory" / "trust.json"
    own_files.replace(path, b"one")
    own_files.replace(path, b"two")
    assert path.read_bytes() == b"two"
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["trust.json"]


def test_a_planted_link_is_neither_followed_nor_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "authorized_keys"
    target.write_text("mine")
    (tmp_path / "planted").symlink_to(target)
    with pytest.raises(MemoryToolkitError, match="cannot write its own file"):
        own_files.create(tmp_path / "planted")
    assert target.read_text() == "mine"


def test_a_link_in_place_of_a_state_file_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    target = tmp_path / "authorized_keys"
    target.write_text("mine")
    folder = own_files.make_folder(tmp_path / "ipy_memory")
    (folder / "trust.json").symlink_to(target)
    own_files.replace(folder / "trust.json", b"new")
    assert target.read_text() == "mine"
    assert not (folder / "trust.json").is_symlink()


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "ipy_memory").symlink_to(elsewhere)
    with pytest.raises(MemoryToolkitError, match="a file or a link has this name"):
        own_files.make_folder(tmp_path / "ipy_memory")


def test_a_refusal_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoryToolkitError) as caught:
        own_files.replace(tmp_path / "file" / "trust.json", b"x")
    assert str(tmp_path / "file") in str(caught.value.where)
