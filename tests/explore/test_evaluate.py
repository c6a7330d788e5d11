"""Evaluating and comparing ways to recall, on real banks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ipy_memory import open_session
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MagicError
from ipy_memory.explore.compare import Variant, compare, queries_of, variants
from ipy_memory.explore.evaluate import (
    BelowFloorError,
    Pair,
    check_floor,
    evaluate,
    proxies,
    read_pairs,
    said,
    text_hash,
    write_trec,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory import MemorySession

TEXTS = (
    "The deploy target is the cluster in Frankfurt.",
    "Backups run every night at two.",
    "The gateway listens on port 9077.",
    "Anna owns the billing service.",
    "Who owns the billing service now?",
    "Since March Boris looks after it.",
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(
        "mnemopi",
        cwd="/proj/shop",
        database=tmp_path / "mnemopi.db",
        settings={"mnemopi.scoping": "global"},
        agent_dir=tmp_path,
        env={},
        clock=FixedClock("2026-06-01T12:00:00.000Z"),
        ids=FixedIds(),
    ) as made:
        made.retain(list(TEXTS))
        yield made


def ids_of(session: MemorySession) -> dict[str, str]:
    frame = session.memories()
    return dict(zip(frame["content"], frame["id"], strict=True))


def test_measures_cases_and_reasons(session: MemorySession) -> None:
    ids = ids_of(session)
    pairs = [
        Pair("which port does the gateway use", (ids[TEXTS[2]],)),
        Pair("when do backups run", (ids[TEXTS[1]],)),
        Pair("zebra", (ids[TEXTS[0]],)),
        Pair("backups", ("no-such-id",)),
    ]
    found = evaluate(session, pairs)
    assert [line.variant for line in found.lines] == ["agent", "best"]
    agent, best = found.lines
    assert (agent.k, agent.questions, agent.difference) == (8, 4, None)
    assert best.difference == pytest.approx(best.recall - agent.recall)
    assert best.low is not None
    assert best.high is not None
    assert best.difference is not None
    assert best.low <= best.difference <= best.high
    cases = {(case.query, case.variant): case for case in found.cases}
    assert cases["when do backups run", "best"].rank == 1
    assert cases["zebra", "agent"].rank is None
    assert cases["zebra", "agent"].why
    assert cases["zebra", "best"].why == "not among the first 1000: no word of the question leads to it"
    assert cases["backups", "best"].why == "no memory in scope has this id"
    assert "look at the cases" in found.notes[0]
    assert list(found.frame.columns) == ["query", "id", "variant", "rank", "why"]
    assert list(found.summary["variant"]) == ["agent", "best"]


def test_nothing_is_counted(session: MemorySession) -> None:
    before = session.memories()["recall_count"].tolist()
    evaluate(session, [Pair("backups", (ids_of(session)[TEXTS[1]],))])
    compare(session, ["backups"])
    assert session.memories()["recall_count"].tolist() == before


def test_a_perfect_ranking_has_measures_of_one_and_a_floor_holds(session: MemorySession) -> None:
    found = evaluate(session, [Pair("backups run night", (ids_of(session)[TEXTS[1]],))], "ranking=best", limit=3)
    (line,) = found.lines
    assert (line.variant, line.k, line.hit, line.recall, line.mrr, line.ndcg) == ("best", 3, 1.0, 1.0, 1.0, 1.0)
    check_floor(found, "hit@3=1")
    with pytest.raises(MagicError, match="no measure"):
        check_floor(found, "hit@8=.5")
    with pytest.raises(MagicError, match="invalid floor"):
        check_floor(found, "hit@3")
    missing = evaluate(session, [Pair("zebra", ("x",))], "ranking=best", limit=3)
    with pytest.raises(BelowFloorError, match=r"recall@3 is 0\.000, below 0\.5"):
        check_floor(missing, "recall@3=.5")


def test_an_edited_memory_is_noted(session: MemorySession) -> None:
    id_ = ids_of(session)[TEXTS[1]]
    known = Pair("backups", (id_,), (text_hash(TEXTS[1]),))
    assert not [note for note in evaluate(session, [known]).notes if "changed" in note]
    session.change("update", id_, content="Backups run every morning.")
    assert [note for note in evaluate(session, [known]).notes if id_ in note and "changed" in note]


def test_variants_are_all_combinations(session: MemorySession) -> None:
    assert variants(session, "") == [Variant("agent")]
    found = variants(session, "ranking,limit=3,8,scope=global")
    assert [one.name for one in found] == [
        "agent 3 global",
        "agent 8 global",
        "best 3 global",
        "best 8 global",
    ]
    assert found[1].settings == {"mnemopi.scoping": "global"}
    (one, other) = variants(session, "mnemopi.noEmbeddings=true,false")
    assert (one.settings, other.settings) == ({"mnemopi.noEmbeddings": True}, {"mnemopi.noEmbeddings": False})


@pytest.mark.parametrize(
    ("by", "says"),
    [
        ("colour", "cannot vary"),
        ("limit", "needs values"),
        ("limit=0", "whole number"),
        ("ranking=worst", "cannot be 'worst'"),
        ("no.such=1", "no setting"),
    ],
)
def test_what_cannot_vary_is_an_error(session: MemorySession, by: str, says: str) -> None:
    with pytest.raises(MagicError, match=says):
        variants(session, by)


def test_scopes_differ_by_what_they_read(session: MemorySession) -> None:
    id_ = ids_of(session)[TEXTS[1]]
    found = evaluate(session, [Pair("backups run night", (id_,))], "scope")
    assert {line.variant: line.recall for line in found.lines} == {
        "global": 1.0,
        "per-project": 0.0,
        "per-project-tagged": 1.0,
    }


def test_questions_come_from_files_and_records(tmp_path: Path) -> None:
    lines = tmp_path / "pairs.jsonl"
    lines.write_text(json.dumps({"query": "a", "ids": ["1", "2"]}) + "\n\n" + json.dumps({"query": "b", "id": "3"}))
    table = tmp_path / "pairs.csv"
    table.write_text("query,ids\na,1 2\nb,3\n")
    expected = [Pair("a", ("1", "2")), Pair("b", ("3",))]
    assert read_pairs(lines) == expected
    assert read_pairs(str(table)) == expected
    assert read_pairs([{"query": "a", "id": "1,2"}, {"query": "b", "ids": ("3",)}]) == expected


@pytest.mark.parametrize(
    ("content", "says"),
    [('{"query": "a"}\n', "row 1 has no query or no id"), ("{}x\n", "line 1 of pairs.jsonl: invalid JSON object")],
)
def test_a_broken_file_names_the_row(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(content)
    with pytest.raises(MagicError, match=says):
        read_pairs(path)
    with pytest.raises(MagicError, match="cannot be read"):
        read_pairs(tmp_path / "none.csv")


def test_no_question_is_an_error(session: MemorySession) -> None:
    with pytest.raises(MagicError, match="no question"):
        evaluate(session, [])


def test_proxies_are_questions_with_what_follows_and_are_labelled(session: MemorySession) -> None:
    ids = ids_of(session)
    (pair,) = proxies(session)
    assert pair == Pair("Who owns the billing service now?", (ids["Since March Boris looks after it."],))
    assert said(evaluate(session, [pair]), proxy=True)[0].startswith("Proxy:")


def test_trec_files_are_written_beside_each_other_and_over_nothing(session: MemorySession, tmp_path: Path) -> None:
    id_ = ids_of(session)[TEXTS[1]]
    found = evaluate(session, [Pair("backups run night", (id_,))], "ranking=best")
    write_trec(found, tmp_path / "mine")
    assert (tmp_path / "mine.qrels").read_text() == f"q1 0 {id_} 1\n"
    assert (tmp_path / "mine.run").read_text().startswith(f"q1 Q0 {id_} 1 1.000000 best\n")
    with pytest.raises(MagicError, match="was not written"):
        write_trec(found, tmp_path / "mine")


def test_compare_shows_ranks_side_by_side(session: MemorySession) -> None:
    ids = ids_of(session)
    frame = compare(session, ["when do backups run", "gateway port"], limit=3)
    assert list(frame.columns[:5]) == ["query", "id", "bank", "agent", "best"]
    row = frame[(frame["query"] == "when do backups run") & (frame["id"] == ids[TEXTS[1]])].iloc[0]
    assert row["best"] == 1
    alone = frame[frame["only in"] != ""]
    assert all(alone["agent"].isna() | alone["best"].isna())


def test_queries_are_one_text_or_the_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "queries.txt"
    path.write_text("one\n\ntwo\none\n")
    assert queries_of("  as typed", None, {}) == ["  as typed"]
    assert queries_of("", str(path), {}) == ["one", "two"]
    for text, file in (("", None), ("x", str(path))):
        with pytest.raises(MagicError, match="type one query"):
            queries_of(text, file, {})
