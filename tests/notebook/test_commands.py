"""``%memory`` and its table of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.commands.table import MEMORY
from ipy_memory.errors import MagicError

if TYPE_CHECKING:
    from tests.notebook.conftest import Notebook
    from tests.notebook.fakes import FakeSession


def test_an_empty_line_is_status(notebook: Notebook) -> None:
    assert notebook.run("%memory").outputs == notebook.run("%memory status").outputs
    output = notebook.run("%memory").outputs[0]
    assert output["text/plain"].splitlines()[1].split() == ["backend", "mnemopi", "session"]
    assert ">per-project</td>" in output["text/html"]
    assert notebook.run("%memory status;").outputs == []


@pytest.mark.claim("N-01")
def test_status_without_a_backend_says_how_to_choose_one(notebook: Notebook, session: FakeSession) -> None:
    session.chosen = "off"
    assert "%memory use mnemopi" in notebook.run("%memory").outputs[0]["text/plain"]


def test_use_and_scope_choose_for_the_next_session(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("%recall x")
    assert "mnemopi" in notebook.run("%memory use mnemopi").outputs[0]["text/plain"]
    notebook.run("%memory scope per-project-tagged")
    assert session.closed == 1
    notebook.run("%recall x")
    assert session.opened["backend"] == "mnemopi"
    assert session.opened["settings"] == {
        "mnemopi.scoping": "per-project-tagged",
        "hindsight.scoping": "per-project-tagged",
    }


@pytest.mark.claim("S-11")
@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%memory use mnemo", ["did you mean mnemopi", "hindsight, mnemopi, off"]),
        ("%memory use files", ["hindsight, mnemopi, off", "%memory use -h"]),
        ("%memory scope Global", ["did you mean global", "per-project-tagged"]),
        ("%memory use", ["one backend", "-h"]),
        ("%memory scope global per-project", ["one scope"]),
        ("%memory shw x", ["did you mean show"]),
        ("%memory recall x", ["did you mean %recall?"]),
        ("%memory delete x", ["did you mean %memory forget?"]),
        ("%memory help", ["did you mean %memory -h?"]),
        ("%memory show", ["one id"]),
        ("%memory status all", ["nothing more"]),
        ("%memory show --full x", ["no flag --full"]),
    ],
)
def test_a_wrong_command_or_value_is_an_error_that_names_the_valid_ones(
    notebook: Notebook, cell: str, says: list[str]
) -> None:
    ran = notebook.run(cell)
    assert isinstance(ran.error, MagicError)
    assert ran.stdout.count("\n") == 1
    for words in says:
        assert words in ran.stdout


def test_show_shows_one_memory_escaped(notebook: Notebook, session: FakeSession) -> None:
    output = notebook.run("%memory show 716b251a2adcd9e2").outputs[0]
    assert output["text/plain"] == "id: 716b251a2adcd9e2\n\nThe whole <b>text</b>."
    assert "&lt;b&gt;" in output["text/html"]
    notebook.run("%memory show --bank other memory://716b")
    assert session.calls[-1] == ("show", "memory://716b", "other")


def test_every_command_has_help_and_is_listed(notebook: Notebook) -> None:
    listed = notebook.run("%memory -h").outputs[0]["text/plain"]
    for name, command in MEMORY.items():
        assert f"%memory {name}" in listed
        page = notebook.run(f"%memory {name} -h").outputs[0]["text/plain"]
        assert command.summary in page
