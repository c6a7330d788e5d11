"""The backend of docs/add-a-backend.md carries out every magic, command and panel, or refuses in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends import registry
from ipy_memory.commands.table import MEMORY, PANELS, RECALL_FILTERS
from ipy_memory.errors import MemoryToolkitError, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.notebook.conftest import Notebook

PAGE = Path(__file__).parents[2] / "docs" / "add-a-backend.md"

REFUSED = {
    "chain": "replacements",
    "undo": "undoing",
    "consolidate": "consolidating",
    "doctor": "the doctor",
    "stats": "statistics",
    "diagnose": "diagnostics",
    "embeddings": "vectors",
    "clear": "clearing",
    "record": "recording",
    "queue": "queue",
    "operations": "operations",
    "mm": "mental models",
    "export": "exporting",
    "import": "importing",
    "open": "no such bank file",
}
"""The commands that a backend may leave out, with the word that names what it does not have."""

TYPED = {
    "show": "0",
    "why": "0 staging",
    "update": "0 Deploys go to production.",
    "invalidate": "1",
    "forget": "2",
    "chain": "0",
    "use": "list",
    "scope": "global",
    "panel": "recall",
    "rebind": ".",
    "evaluate": "--by limit=1,2 --frame pairs",
    "compare": "--by limit=1,2 staging",
    "diff": "--since 2020",
    "export": "new.jsonl",
    "import": "new.jsonl",
    "trust": "--list",
    "open": "none.db",
    "record": "on",
    "clear": "--yes",
}
"""What follows a command where it takes something."""


@pytest.fixture
def further(bare: Notebook, tmp_path: Path) -> Iterator[Notebook]:
    """A notebook on the backend of the page, with three memories."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(source, {"__name__": "example"})
    bare.magics.agent_dir = str(tmp_path / "agent")
    assert bare.run("%memory use list").error is None
    for text in ("Deploys go to staging.", "The API speaks JSON.", "Tea is served at four."):
        assert bare.run(f"%%retain\n{text}").error is None
    bare.run("pairs = __import__('pandas').DataFrame({'query': ['staging'], 'ids': ['0']})")
    yield bare
    bare.magics.close_session()
    registry.unregister("list")


@pytest.mark.parametrize("name", sorted(set(MEMORY)))
def test_every_command_answers_or_refuses_in_one_line(further: Notebook, name: str) -> None:
    error = further.run(f"%memory {name} {TYPED.get(name, '')}").error
    if MEMORY[name].name in REFUSED:
        assert isinstance(error, MemoryToolkitError)
        assert REFUSED[MEMORY[name].name] in error.one_line()
        assert "\n" not in error.one_line()
    else:
        assert error is None


def test_it_recalls_reflects_browses_shows_and_changes(further: Notebook) -> None:
    assert list(further.run("%recall deploys staging").result["id"]) == ["0"]
    assert "JSON" in further.run("%reflect json").outputs[0]["text/plain"]
    assert list(further.run("%memory browse").result["id"]) == ["2", "1", "0"]
    assert list(further.run("%memory browse tea").result["id"]) == ["2"]
    further.run("%memory update 1 The API speaks YAML.")
    assert "YAML" in further.run("%memory show 1").outputs[0]["text/plain"]
    assert list(further.run("%memory banks").result["name"]) == ["list"]


def test_it_filters_no_recall_and_says_so(further: Notebook) -> None:
    for flag in RECALL_FILTERS:
        value = {"type": "world", "budget": "low", "tokens": "5"}.get(flag.name, "2026")
        error = further.run(f"%recall --{flag.name} {value} staging").error
        assert isinstance(error, NotSupportedError)
        assert f"List does not support --{flag.name} in a recall" in error.one_line()
    assert further.run("%memory browse --tag a").result.empty


@pytest.mark.parametrize("kind", PANELS)
def test_every_panel_opens(further: Notebook, kind: str) -> None:
    ran = further.run(f"%memory panel {kind}")
    assert ran.error is None
    assert ran.outputs


def test_a_name_can_be_registered_once(further: Notebook) -> None:
    with pytest.raises(MemoryToolkitError, match="taken"):
        registry.register("list", "Another list", lambda _: None)
    with pytest.raises(MemoryToolkitError, match="built in"):
        registry.unregister("mnemopi")
