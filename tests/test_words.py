"""Messages, docstrings and pages are in one plain English, and no source names a claim."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ipy_memory"

WORDS = {
    r"\ba person\b": "the user",
    r"\banew\b": "again",
    r"\bmend(s|ed|ing)?\b": "repair, or fix",
    r"\bTell whether\b": "return whether",
    r"\blets? go of\b": "release",
    r"(?<!here )is no (JSON|number|path|file|text|date|memory bank)\b": "is not a …, or invalid …",
    r"\bwhatever (it is|the cadence)\b": "regardless of",
}
"""What is not written, and what is written in its place."""

EXACT = {"text.py", "tools.py", "prompts.py"}
"""Modules that hold the agent's exact texts."""

CLAIM = re.compile(r"\b[A-Z]-\d{2}\b")


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _found(text: str) -> list[str]:
    return [
        f"{match.group()!r}: write {instead}" for word, instead in WORDS.items() if (match := re.search(word, text))
    ]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_sources_use_the_words_of_the_rest(path: Path) -> None:
    if path.name in EXACT:
        return
    wrong = [f"{path.name}:{line}: {what}" for line, text in _strings(path) for what in _found(text)]
    assert wrong == []


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_source_names_a_claim(path: Path) -> None:
    assert CLAIM.findall(path.read_text(encoding="utf-8")) == []


# behaviour.md is a table of claims, in the words in which they were agreed.
PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "behaviour.md"]
PAGES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_pages_do_too(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [f"{number}: {what}" for number, line in enumerate(lines, 1) for what in _found(line)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_notebooks_do_too(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert [what for text in texts for what in _found(text)] == []


def test_a_word_that_is_not_written_is_found() -> None:
    assert _found("Tell whether a person mends it anew") != []
    assert _found("recommend, amend, renew") == []
