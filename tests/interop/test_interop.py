"""Banks of ours under the real engine and its banks under ours: the same rows, order, scores, and healthy files."""

from __future__ import annotations

import shutil
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.mnemopi.admin.stats import FAILED, diagnose
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.jscompat import collation, strings
from ipy_memory.jscompat import strings as js
from tests.interop.conftest import QUERIES, SEED, Life
from tests.interop.corpus import Source
from tests.interop.players import BANK, START, Ours, Theirs, differences, plain, tables

if TYPE_CHECKING:
    from tests.interop.engine import Engine

pytestmark = pytest.mark.interop

WRITERS = ("ours", "theirs")
ENGINE_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"includeWorking": False},
    {"contentPreviewChars": 30},
    {"source": "conversation"},
    {"fromDate": "2026-05-28"},
    {"fromDate": "2026-04-01", "toDate": "2026-06-01"},
    {"authorId": "coding-agent", "channelId": None},
    {"queryTime": "2026-05-20", "temporalWeight": 0.7, "temporalHalflife": 5},
    {"vecWeight": 0.2, "ftsWeight": 0.9, "importanceWeight": 0},
)


def test_the_same_life_leaves_the_same_rows(life: Life) -> None:
    assert plain(life.answers["ours"]) == plain(life.answers["theirs"])
    ours, theirs = tables(life.ours), tables(life.theirs)
    assert {name: len(rows) for name, rows in ours.items()} == {name: len(rows) for name, rows in theirs.items()}
    for name in theirs:
        assert ours[name] == theirs[name], name
    assert len(life.texts) >= 300
    assert ours["episodic_memory"]
    assert ours["facts"]
    assert bool(ours["memory_embeddings"]) is life.vectors
    assert any(row[1:] != [None] for row in ours["working_memory"])


@pytest.mark.parametrize("writer", WRITERS)
def test_a_bank_is_recalled_alike_whoever_wrote_it(life: Life, writer: str, engine: Engine, tmp_path: Path) -> None:
    source = Source(SEED + 7)
    draw = source.draw
    files = {reader: tmp_path / f"{reader}.db" for reader in WRITERS}
    clock = FixedClock(life.end_ms)
    shutil.copy(life.path(writer), files["theirs"])
    if life.vectors:
        # On opening, the real engine computes vectors that are missing (those of aged summaries); we never do.
        completing = Theirs(engine, files["theirs"], clock, vectors=True)
        completing.bank.drain()
        completing.close()
    shutil.copy(files["theirs"], files["ours"])
    ours = Ours(files["ours"], clock, vectors=life.vectors)
    theirs = Theirs(engine, files["theirs"], clock, vectors=life.vectors)
    wrong: list[str] = []
    hits = equal = 0
    for number in range(QUERIES):
        query, k = source.query(life.texts), draw.choice((1, 2, 3, 5, 8, 8, 8, 10, 20, 40))
        method = draw.choice(("recallEnhanced", "recallEnhanced", "recallEnhanced", "recall", "beam.factRecall"))
        options = {"includeFacts": True, "channelId": BANK} if method == "recallEnhanced" else {}
        if method == "recall":
            options = draw.choice(ENGINE_OPTIONS)
        real, own = theirs.ask(method, query, k, options), ours.ask(method, query, k, options)
        hits += len(real)
        found = differences(real, own)
        equal += not found
        wrong += [f"{number}: {method} {query!r} {k} {options}: {one}" for one in found]
    ours.close()
    theirs.close()
    print(f"seed {SEED}: {len(life.texts)} memories, {equal}/{QUERIES} queries equal, {hits} hits compared")
    assert wrong == []
    assert equal == QUERIES >= 200
    assert hits > 2 * QUERIES
    after = {reader: tables(files[reader]) for reader in WRITERS}
    assert after["ours"] == after["theirs"]
    assert after["ours"] != tables(life.path(writer))


@pytest.mark.parametrize("writer", WRITERS)
def test_either_diagnosis_finds_nothing_wrong(life: Life, writer: str, engine: Engine, tmp_path: Path) -> None:
    path = Path(shutil.copy(life.path(writer), tmp_path / "bank.db"))
    mine = diagnose(path, BANK, FixedClock(START))
    assert [check.finding for check in mine.checks if check.state == FAILED] == []
    assert mine.integrity == "OK"
    found = engine.diagnose(path)
    assert found["checks_failed"] == 0
    assert found["key_findings"] == []
    fresh = tmp_path / "fresh.db"
    engine.open(fresh, BANK).close()
    assert found["checks_passed"] == engine.diagnose(fresh)["checks_passed"]


def test_writers_and_readers_of_both_kinds_take_turns_on_one_bank(engine: Engine, tmp_path: Path) -> None:
    source = Source(SEED + 11)
    draw = source.draw
    path = tmp_path / "shared.db"
    clock = FixedClock(START)
    players: list[Any] = [Ours(path, clock, ids=FixedIds(1_000_000)), Theirs(engine, path, clock)]
    ids: list[str] = []
    texts: list[str] = []
    compared = 0
    for number in range(240):
        writer = draw.choice(players)
        kind = draw.random()
        if kind < 0.7 or not ids:
            texts.append(f"{source.text()} n{number}")
            ids.append(writer.remember(texts[-1], {"extract": True, "scope": "bank"}))
        elif kind < 0.8:
            writer.change({"op": "update", "of": draw.randrange(len(ids)), "content": source.text()}, ids)
        elif kind < 0.9:
            writer.change({"op": "invalidate", "of": draw.randrange(len(ids)), "by": None}, ids)
        elif kind < 0.95:
            writer.change({"op": "forget", "of": draw.randrange(len(ids))}, ids)
        else:
            clock.advance(1000)
            players[1].change({"op": "advance", "ms": 0}, ids)
        query = source.query(texts[-20:])
        asked: dict[str, Any] = {"includeFacts": True, "channelId": BANK}
        answers = [player.ask("recallEnhanced", query, 8, asked) for player in draw.sample(players, 2)]
        # The second one sees the counters of the first.
        for answer in answers:
            for hit in answer:
                hit.pop("recall_count", None)
                hit.pop("last_recalled", None)
        assert differences(*sorted(answers, key=lambda answer: any("voice_scores" not in hit for hit in answer))) == []
        compared += len(answers[0])
    assert compared > 240
    for player in players:
        player.close()
    assert engine.diagnose(path)["checks_failed"] == 0


def test_both_write_one_bank_at_the_same_time(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "crowded.db"
    clock = FixedClock(START)
    ours = Ours(path, clock, ids=FixedIds(1_000_000))
    theirs = Theirs(engine, path, clock)
    took: list[float] = []

    def write_theirs() -> None:
        calls = [[f"their memory number {number}"] for number in range(150)]
        took.extend(engine.ask("timed", path=str(path), method="remember", calls=calls))

    other = threading.Thread(target=write_theirs)
    other.start()
    written = 0
    while other.is_alive() or written < 150:
        if written < 150:
            ours.remember(f"our memory number {written}", {})
            written += 1
        ours.ask("recallEnhanced", "memory number", 8, {"channelId": BANK})
    other.join()
    assert len(took) == 150
    ours.close()
    theirs.close()
    rows = Counter(str(cells[2]).split()[0] for cells in tables(path)["working_memory"])
    assert rows == {"their": 150, "our": 150}
    assert engine.diagnose(path)["checks_failed"] == 0


def test_equal_scores_are_ordered_as_the_runtime_orders_texts(engine: Engine) -> None:
    source = Source(SEED + 13)
    pairs = [(source.text()[:40], source.text()[:40]) for _ in range(1500)]
    pairs += [
        (word, source.draw.choice((word.upper(), word.capitalize(), source.word())))
        for word in (source.word() for _ in range(1500))
    ]
    signs = [(number > 0) - (number < 0) for number in engine.order(pairs)]
    apart = [pair for pair, sign in zip(pairs, signs, strict=True) if collation.compare(*pair) != sign]
    print(f"seed {SEED}: {len(pairs)} pairs of texts, {len(apart)} ordered differently: {apart[:20]}")
    assert apart == []


def test_the_letters_are_those_of_the_runtime(engine: Engine) -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    for pattern, ours in (
        (r"[\p{L}\p{N}_]", strings.is_word_character),
        (r"[\p{L}\p{N}]", strings.has_letter_or_digit),
        (r"\p{Lu}", strings.is_capital),
        (r"\p{Ll}", strings.is_small),
    ):
        assert set(filter(ours, every)) == engine.characters(pattern)
    assert list(map(js.lower, every)) == engine.lower(every)


@pytest.mark.parametrize(
    "newest", ["\U00031350\U00031351", "\U000323b0", "\U0002ebf0字", "\U00016ea0\U00016eb8", "\U0001e5f1"]
)
def test_memories_in_the_newest_letters_are_found_alike(newest: str, engine: Engine, tmp_path: Path) -> None:
    answers = {}
    for name in WRITERS:
        path, clock = tmp_path / f"{name}.db", FixedClock(START)
        player = Ours(path, clock) if name == "ours" else Theirs(engine, path, clock)
        player.remember(f"the sign {newest} is new", {})
        player.remember("plain words", {})
        queries = (newest, newest[:1], f"x{newest}", "sign")
        answers[name] = [player.ask("recallEnhanced", query, 5, {"channelId": BANK}) for query in queries]
        player.close()
    assert [differences(*pair) for pair in zip(answers["theirs"], answers["ours"], strict=True)] == [[]] * 4
    assert answers["theirs"][0]
