"""``ipy-memory export`` and ``import`` in a process of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.shell.conftest import Program


def test_banks_go_to_a_file_and_into_another_bank(program: Program, tmp_path: Path) -> None:
    place = tmp_path / "banks.jsonl"
    written = program("export", "--json", "--bank", "default", str(place)).data
    assert written["path"] == str(place)
    assert list(written["rows"]) == ["default"]
    planned = program("import", "--json", "--dry-run", "--into", "fresh", str(place)).data
    assert planned["done"] is False
    taken = program("import", "--json", "--into", "fresh", str(place)).data
    assert taken["banks"]["fresh"]["added"]["working_memory"] >= 1
    again = program("import", "--json", "--into", "fresh", str(place)).data
    assert again["banks"]["fresh"]["added"] == {}
    assert "there already" in program("export", str(place), code=2).err
    assert "conflict cannot be" in program("import", "--on-conflict", "x", str(place), code=2).err
