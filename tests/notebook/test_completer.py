"""Completion of flags, commands, values and bank names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from IPython.core.completer import provisionalcompleter

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook.conftest import Notebook


def offered(notebook: Notebook, line: str) -> list[str]:
    """Return what we offer at the end of a line, as a kernel asks for it."""
    with provisionalcompleter():
        found = list(notebook.shell.Completer.completions(line, len(line)))
    return sorted(line[: each.start] + each.text for each in found if each.type == "param")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%recall --li", ["--limit"]),
        (
            "%%recall --",
            [
                "--as-agent-start",
                "--as-of",
                "--at",
                "--author",
                "--bank",
                "--budget",
                "--explain",
                "--from",
                "--limit",
                "--no-touch",
                "--out",
                "--ranking",
                "--since",
                "--source",
                "--tag",
                "--tokens",
                "--type",
                "--until",
            ],
        ),
        ("df = %recall --no", ["--no-touch"]),
        ("%recall --limit 3 --l", []),
        ("%retain --j", ["--json"]),
        ("%memory us", ["use"]),
        ("%memory use mn", ["mnemopi"]),
        ("%memory scope per-project-", ["per-project-tagged"]),
    ],
)
def test_flags_commands_and_values_are_offered(notebook: Notebook, line: str, words: list[str]) -> None:
    start = line[: len(line) - len(line.split(" ")[-1])]
    assert offered(notebook, line) == [start + word for word in words]


def test_a_query_is_not_offered_flags(notebook: Notebook) -> None:
    assert "%recall deploy --limit" not in offered(notebook, "%recall deploy --li")


def test_text_variables_are_offered(notebook: Notebook) -> None:
    notebook.run("question, number = 'why', 3")
    assert offered(notebook, "%recall --from que") == ["%recall --from question"]
    assert offered(notebook, "%recall --from numb") == []


def test_bank_names_come_from_disk_without_opening_anything(notebook: Notebook, tmp_path: Path) -> None:
    notebook.magics.database = str(tmp_path / "mem" / "mnemopi.db")
    assert offered(notebook, "%recall --bank sh") == []
    for name in ("shop-1a", "shop-2b", "other"):
        (tmp_path / "mem" / "banks" / name).mkdir(parents=True)
        (tmp_path / "mem" / "banks" / name / "mnemopi.db").touch()
    (tmp_path / "mem" / "banks" / "shop-empty").mkdir()
    assert offered(notebook, "%recall --bank sh") == ["%recall --bank shop-1a", "%recall --bank shop-2b"]
    assert not (tmp_path / "mem" / "mnemopi.db").exists()
