"""Project labels in repositories of every layout, without git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.scoping.project import project_label, resolve_path

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "ref: refs/heads/main\n"


def repository(root: Path) -> Path:
    """Make what a walk sees of a repository."""
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text(HEAD)
    return root


def linked(root: Path, git_dir: Path, common: str | None) -> Path:
    """Make a checkout whose git directory lies elsewhere."""
    root.mkdir(parents=True)
    git_dir.mkdir(parents=True, exist_ok=True)
    (git_dir / "HEAD").write_text(HEAD)
    if common is not None:
        (git_dir / "commondir").write_text(common + "\n")
    (root / ".git").write_text(f"gitdir: {git_dir}\n")
    return root


@pytest.mark.claim("S-05")
def test_layouts(tmp_path: Path) -> None:
    main = repository(tmp_path / "Main")
    worktree = linked(tmp_path / "feature", main / ".git" / "worktrees" / "feature", "../..")
    inner = linked(main / ".trees" / "in", main / ".git" / "worktrees" / "in", "../..")
    bare = tmp_path / "Store.git"
    of_bare = linked(tmp_path / "checkout", bare / "worktrees" / "checkout", "../..")
    submodule = linked(main / "vendor" / "Lib", main / ".git" / "modules" / "other-name", None)
    moved = linked(tmp_path / "Work", tmp_path / "elsewhere.gitdir", None)
    named = {
        main: "main",
        main / "src" / "missing": "main",
        worktree: "main",
        worktree / "sub": "main",
        inner: "main",
        of_bare: "store.git",
        bare: "store.git",
        submodule: "lib",
        main / "vendor": "main",
        moved: "work",
        tmp_path / "Loose": "loose",
        tmp_path / "With Space" / "Ärger": "ärger",
    }
    assert {path: project_label(str(path)) for path in named} == named
    assert [project_label(path) for path in ("", "/", "//")] == ["unknown"] * 3
    assert project_label("C:\\Users\\X", str(tmp_path)) == "c:\\users\\x"
    assert project_label("src", str(main)) == "main"
    assert project_label("other", str(tmp_path)) == "other"
    assert project_label(f"{main}/") == "main"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content.encode("utf-8", "surrogateescape")) and None


@pytest.mark.claim("S-05")
@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        fifo,
        text(""),
        text("nonsense"),
        text("gitdir:"),
        text("gitdir: /nowhere/at/all"),
        text("x\ngitdir: ../outer/.git"),
        text("gitdir: \udcff"),
        text("gitdir: a\0b"),
        text("gitdir: ../.git" + " " * 100_000),
        lambda path: path.symlink_to("/nowhere"),
        lambda path: path.symlink_to(path.name),
    ],
)
def test_what_only_looks_like_a_repository_is_passed_by(tmp_path: Path, make: Callable[[Path], None]) -> None:
    outer = repository(tmp_path / "outer")
    (outer / "x").mkdir()
    make(outer / "x" / ".git")
    assert project_label(str(outer / "x" / "deep")) == "outer"


@pytest.mark.claim("S-05")
@pytest.mark.parametrize("written", ["../Real/.git", " \n ../Real/.git \r\n", "../x/../Real/./.git/"])
def test_a_pointer_to_another_checkout_takes_its_name(tmp_path: Path, written: str) -> None:
    repository(tmp_path / "Real")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / ".git").write_text(f"gitdir: {written}")
    assert project_label(str(tmp_path / "x")) == "real"


@pytest.mark.claim("S-05")
def test_no_program_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "system", refuse)
    assert project_label(str(repository(tmp_path / "r"))) == "r"


@given(st.text(alphabet="./ab", max_size=30))
def test_a_resolved_path_is_absolute_and_stays_as_it_is(path: str) -> None:
    resolved = resolve_path(path, "/w/d")
    assert resolved.startswith("/")
    assert "//" not in resolved
    assert not {".", ".."} & set(resolved.split("/"))
    assert resolve_path(resolved) == resolved
    assert resolve_path(path + "/", "/w/d") == resolved or not path
