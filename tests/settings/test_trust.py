"""The list of trusted folders: what it holds, who can spoil it, and that nobody else is trusted by it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.settings.trust import (
    Guarded,
    Trusted,
    add_trusted,
    digest,
    real_folder,
    remove_trusted,
    trusted_folders,
)

if TYPE_CHECKING:
    from pathlib import Path

URL = Guarded(".omp/config.yml", "hindsight.apiUrl", "https://memory.example")
BANK = Guarded(".omp/config.yml", "mnemopi.bank", "team")


def entry(folder: Path, *guarded: Guarded) -> Trusted:
    names = tuple(each.name for each in guarded)
    return Trusted(real_folder(folder), digest(guarded), "2026-06-01T12:00:00.000Z", names)


def test_what_is_trusted_is_found_again_and_can_be_ended(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert trusted_folders(tmp_path) == {}
    add_trusted(tmp_path, entry(one, URL))
    add_trusted(tmp_path, entry(two, BANK))
    add_trusted(tmp_path, entry(two, URL, BANK))
    assert trusted_folders(tmp_path) == {str(one): entry(one, URL), str(two): entry(two, URL, BANK)}
    assert remove_trusted(tmp_path, one) is True
    assert remove_trusted(tmp_path, one) is False
    assert list(trusted_folders(tmp_path)) == [str(two)]


def test_a_folder_is_known_by_its_real_path(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    add_trusted(tmp_path, entry(link, URL))
    assert list(trusted_folders(tmp_path)) == [str(real)]
    link.unlink()
    real.rmdir()
    real.symlink_to(tmp_path)
    assert remove_trusted(tmp_path, str(real)), "a folder that became a link is still found by its name"


def test_the_hash_is_over_names_values_and_files_in_any_order() -> None:
    assert digest([URL, BANK]) == digest([BANK, URL])
    different = [
        digest([]),
        digest([URL]),
        digest([BANK]),
        digest([URL, BANK]),
        digest([URL._replace(value="https://memory.example/")]),
        digest([URL._replace(value=None)]),
        digest([URL._replace(file=".claude/settings.json")]),
        digest([URL._replace(name="mnemopi.llmBaseUrl")]),
        digest([Guarded("a", "b,c", "d")]),
        digest([Guarded("a,b", "c", "d")]),
        digest([BANK._replace(value=True)]),
        digest([BANK._replace(value="true")]),
    ]
    assert len(set(different)) == len(different)


def test_the_list_is_the_user_s_alone_and_holds_no_value(tmp_path: Path) -> None:
    secret = Guarded(".omp/config.yml", "hindsight.apiToken", "s3cret-token")
    add_trusted(tmp_path, entry(tmp_path, secret, URL))
    path = tmp_path / "ipy_memory" / "trust.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "s3cret" not in path.read_text()
    assert "memory.example" not in path.read_text()
    assert [each.name for each in path.parent.iterdir()] == ["trust.json"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 1}',
        '{"version": 2, "folders": {}}',
        '{"version": 1, "folders": []}',
        '{"version": 1, "folders": {"/p": {"digest": 5, "since": "", "settings": []}}}',
        '{"version": 1, "folders": {"/p": {"digest": "x", "since": "", "settings": [5]}}}',
        '{"version": 1, "folders": {"/p": null}}',
        '{"version": 1, "folders": ' + "[" * 100_000,
        '{"version": 1, "folders": {}}' + " " * (1 << 20),
    ],
)
def test_a_spoilt_list_trusts_nobody_and_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ipy_memory" / "trust.json"
    path.parent.mkdir()
    path.write_text(content)
    for attempt in (trusted_folders, lambda agent: add_trusted(agent, entry(tmp_path, URL))):
        with pytest.raises(MemoryToolkitError) as caught:
            attempt(tmp_path)
        assert caught.value.where == str(path)
        assert path.read_text() == content


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_no_file_in_its_place_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ipy_memory" / "trust.json"
    path.parent.mkdir()
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
    with pytest.raises(MemoryToolkitError, match="cannot be read"):
        trusted_folders(tmp_path)


def test_processes_that_trust_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from ipy_memory.settings.trust import Trusted, add_trusted\n"
        "for number in range(10): add_trusted(sys.argv[1], Trusted(f'/{sys.argv[2]}/{number}', 'x', 'now', ()))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [subprocess.Popen([*command, str(number)]) for number in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert len(trusted_folders(tmp_path)) == 40


def test_a_name_that_is_no_text_is_kept(tmp_path: Path) -> None:
    odd = os.fsdecode(b"/proj/caf\xe9 \"'\n")
    add_trusted(tmp_path, Trusted(odd, "x", "now", ()))
    assert list(trusted_folders(tmp_path)) == [odd]
    assert json.loads((tmp_path / "ipy_memory" / "trust.json").read_text())["version"] == 1
