"""Findings that a user accepted, and those of an earlier audit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ipy_memory.audit.accepted import accept, accepted, baseline
from ipy_memory.errors import MemoryToolkitError

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"


def test_accepted_findings_are_remembered_once(tmp_path: Path) -> None:
    assert accepted(tmp_path) == frozenset()
    assert accept(tmp_path, ["junk-1", "pii-2", "junk-1"], NOW) == 2
    assert accept(tmp_path, ["junk-1", "junk-3"], NOW) == 1
    assert accepted(tmp_path) == {"junk-1", "pii-2", "junk-3"}


def test_the_file_is_the_users_alone_and_holds_names_only(tmp_path: Path) -> None:
    accept(tmp_path, ["junk-1"], NOW)
    path = tmp_path / "ipy_memory" / "audit-accepted.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()) == {"junk-1": NOW}


@pytest.mark.parametrize("content", ["no json", "[]"])
def test_a_damaged_file_is_an_error_and_is_not_overwritten(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ipy_memory" / "audit-accepted.json"
    path.parent.mkdir()
    path.write_text(content)
    for call in (lambda: accepted(tmp_path), lambda: accept(tmp_path, ["junk-1"], NOW)):
        with pytest.raises(MemoryToolkitError):
            call()
    assert path.read_text() == content


def test_a_baseline_is_a_file_of_findings(tmp_path: Path) -> None:
    path = tmp_path / "before.jsonl"
    path.write_text('{"finding": "junk-1", "id": "a"}\n\n{"finding": "pii-2"}\n')
    assert baseline(path) == {"junk-1", "pii-2"}


@pytest.mark.parametrize("content", ["words", '{"id": "a"}', "[1]"])
def test_another_file_is_no_baseline(tmp_path: Path, content: str) -> None:
    path = tmp_path / "before.jsonl"
    path.write_text(content)
    with pytest.raises(MemoryToolkitError, match="baseline"):
        baseline(path)
    with pytest.raises(MemoryToolkitError, match="baseline"):
        baseline(tmp_path / "missing.jsonl")
