"""``ipy-memory evaluate`` and ``compare`` in a process of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.shell.conftest import Program


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"query": "deploy target", "ids": ["a976218f7ebea1ed"]}) + "\n")
    return path


def test_measures_are_printed_and_a_floor_is_an_answer_of_no(program: Program, pairs: Path) -> None:
    ended = program("evaluate", "--json", "--fail-under", "hit@8=1.1", str(pairs), code=1)
    data = json.loads(ended.out)
    assert [line["variant"] for line in data["measures"]] == ["agent", "best"]
    assert {case["variant"] for case in data["cases"]} == {"agent", "best"}
    assert [note for note in data["notes"] if "below 1.1" in note]
    assert program("evaluate", "--fail-under", "hit@8=0", str(pairs)).code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("evaluate",), "name one source of questions"),
        (("evaluate", "--proxy", "x.csv"), "name one source of questions"),
        (("evaluate", "nowhere.csv"), "cannot be read"),
        (("compare",), "type one query"),
        (("compare", "--by", "colour", "x"), "cannot vary"),
    ],
)
def test_wrong_words_are_one_line_and_an_error(program: Program, words: tuple[str, ...], says: str) -> None:
    ended = program(*words, code=2)
    assert ended.code == 2
    assert says in ended.err
    assert ended.out == ""


def test_a_query_is_compared_by_ranking_and_limit(program: Program) -> None:
    ended = program("compare", "--json", "--by", "ranking,limit=2,4", "deploy")
    assert ended.code == 0
    data = json.loads(ended.out)
    assert data["variants"] == ["agent 2", "agent 4", "best 2", "best 4"]
    assert data["compared"]
