"""The reasons for a score: they add up to it, for every hit of the recorded banks."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.multi_bank import scoped_recall
from ipy_memory.clock import FixedClock
from ipy_memory.explore.explain import BASE, COLUMNS, FACTOR, FACTORS, REASON_COLUMNS, TERM, explain, with_reasons
from ipy_memory.explore.why import through, verdicts_frame
from ipy_memory.frames.build import hits_frame
from ipy_memory.jscompat import strings as js
from ipy_memory.model import Hit, ScoreParts
from tests.conformance.kinds.recall import RecordedEmbedder, unpack

if TYPE_CHECKING:
    from ipy_memory.backends.trace import Trace
    from tests.explore.conftest import OpenSession

PACKAGE = Path(__file__).parents[2] / "ipy_memory"
ENGINE = PACKAGE / "backends" / "mnemopi"
KINDS = (TERM, BASE, FACTOR)
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("stem", ["working-episodic", "veracity", "degraded", "facts-heavy", "dense-small"])
def test_the_parts_add_up_to_the_score_of_every_recorded_hit(stem: str, tmp_path: Path) -> None:
    file = json.loads((GOLDEN / "recall" / f"{stem}.json").read_text(encoding="utf-8"))
    unpack(GOLDEN, stem, tmp_path)
    seen = 0
    for case in file["cases"]:
        asked = case["input"]
        vectors = asked.get("query_embeddings")
        banks = [
            Bank.open_readonly(
                tmp_path / "banks" / name / "mnemopi.db",
                name,
                clock=FixedClock(file["now"]),
                embedder=RecordedEmbedder(vectors) if vectors is not None else None,
            )
            for name in asked["recallBanks"]
        ]
        traces: list[Trace] = []
        hits = scoped_recall(banks, asked["query"], asked["recallLimit"], should_touch=False, traces=traces).hits
        rows = explain(hits, traces).to_dict("records")
        for place, hit in enumerate(hits, 1):
            effects = {kind: [r["effect"] for r in rows if (r["place"], r["kind"]) == (place, kind)] for kind in KINDS}
            (score,) = effects[BASE]
            assert sum(effects[TERM]) == pytest.approx(score)
            for factor in effects[FACTOR]:
                score *= factor
            assert js.round4(score) == hit.score
            seen += 1
        wide = with_reasons(hits_frame(hits), hits, traces)
        for row in wide.to_dict("records"):
            score = row["base"]
            for name in FACTORS:
                if row[f"{name}_factor"] == row[f"{name}_factor"]:
                    score *= row[f"{name}_factor"]
            assert js.round4(score) == row["score"]
            assert row["reason"].endswith(f"= {row['score']}")
        for bank in banks:
            bank.close()
    assert seen > 20


@pytest.mark.claim("N-02")
def test_an_explained_frame_keeps_its_columns_when_empty(open_here: OpenSession) -> None:
    session = open_here()
    empty, traces = session.recall("nothing"), []
    assert empty.hits == ()
    bare = with_reasons(empty.frame(), (), traces)
    session.retain("The deploy target is fly.io")
    found = session.recall("deploy", traces=traces)
    filled = with_reasons(found.frame(), found.hits, traces)
    pd.testing.assert_series_equal(filled.dtypes, bare.dtypes)
    assert list(filled.columns)[-len(REASON_COLUMNS) :] == list(REASON_COLUMNS)
    assert filled.loc[0, "matched"] == ["deploy"]
    assert (filled.loc[0, "score_rank"], filled.loc[0, "bank_rank"]) == (1, 1)
    assert list(explain((), ()).columns) == list(COLUMNS)
    pd.testing.assert_series_equal(explain((), ()).dtypes, explain(found.hits, traces).dtypes)


def test_the_matched_words_are_those_that_were_typed(open_here: OpenSession) -> None:
    session, traces = open_here(), []
    session.retain("Release day is Thursday")
    found = session.recall("release day, or shipping?", traces=traces)
    assert with_reasons(found.frame(), found.hits, traces).loc[0, "matched"] == ["release", "day"]


def test_a_servers_parts_are_reported_and_not_added_up() -> None:
    hits = [Hit("a", "text", score=0.8, parts=ScoreParts(semantic=0.5, reranker=0.9)), Hit("b", "text")]
    frame = explain(hits)
    assert frame[["part", "kind", "value"]].values.tolist() == [
        ["semantic", "reported", 0.5],
        ["reranker", "reported", 0.9],
    ]
    assert frame["effect"].isna().all()
    wide = with_reasons(hits_frame(hits), hits, ())
    assert wide["reason"].tolist() == [
        "the server reports semantic 0.5, reranker 0.9",
        "the server reports no parts of the score",
    ]
    assert wide["base"].isna().all()


def test_no_scoring_constant_stands_outside_the_scoring_module() -> None:
    # Any fraction in the way of a recall is one: it weighs something.
    allowed = {"scoring.py"}
    elsewhere = {"best.py", "query_dates.py", "query_tables.py", "query_terms.py"}
    files = [path for path in (ENGINE / "recall").glob("*.py") if path.name not in elsewhere]
    files += [ENGINE / "db" / "visibility.py", *(PACKAGE / "explore").glob("*.py")]
    found = [
        (path.name, node.lineno, node.value)
        for path in files
        if path.name not in allowed
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value not in (0.0, 1.0)
    ]
    assert found == []


def test_a_word_that_matched_through_another_one_says_which(open_here: OpenSession) -> None:
    session = open_here()
    session.retain("We release on Fridays, never before a holiday.")
    (memory,) = session.memories()["id"]
    verdict = session.why(memory, "deploy holiday")
    assert (verdict.matched, verdict.through) == (("deploy", "holiday"), {"deploy": "release"})
    assert verdict.reason.endswith("matched: deploy (through release), holiday")
    assert verdicts_frame([verdict]).loc[0, "through"] == {"deploy": "release"}
    traces: list[Trace] = []
    found = session.recall("deploy holiday", traces=traces)
    explained = with_reasons(found.frame(), found.hits, traces).loc[0, "reason"]
    assert str(explained).startswith("matched deploy (through release), holiday: ")


@pytest.mark.parametrize(
    ("word", "text", "other"),
    [
        ("deploy", "the deploy, then the release", None),
        ("deploy", "Deployments are slow", None),
        ("deployments", "a deploy is slow", None),
        ("db", "a DATABASE and a datastore", "database"),
        ("harbour", "no such thing", None),
    ],
)
def test_a_word_that_a_text_has_itself_went_through_none(word: str, text: str, other: str | None) -> None:
    assert through([word], text) == ({} if other is None else {word: other})
