"""Sleep, ageing, and that nothing retained is ever lost to a trim."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.consolidation.degrade import degrade, key_sentences
from ipy_memory.backends.mnemopi.consolidation.episodes import CUT_MARK, OldMemory, aggregate_veracity, episodes
from ipy_memory.backends.mnemopi.consolidation.sleep import promote_before_trim, sleep, sleep_all
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.single_bank import recall
from ipy_memory.backends.mnemopi.store.memories import find
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember, retain_items
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import BankError, ReadOnlyBankError
from ipy_memory.jscompat import strings as js
from ipy_memory.model import RetainItem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
HOUR = 3_600_000


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def bank(tmp_path: Path, clock: FixedClock) -> Iterator[Bank]:
    with _open(tmp_path / "mnemopi.db", clock) as opened:
        yield opened


def _open(path: Path, clock: FixedClock, **config: Any) -> Bank:
    return Bank.open(path, "proj", clock=clock, ids=FixedIds(), config=EngineConfig(**config))


def _old(memory_id: str, text: str, source: str | None = "s", **other: Any) -> OldMemory:
    given = {"valid_until": None, "scope": "session", "veracity": None, **other}
    return OldMemory(memory_id, text, source, **given)


def _column(bank: Bank, sql: str, *values: object) -> list[Any]:
    return [row[0] for row in bank.connection.execute(sql, values)]


def _session_write(bank: Bank, content: str) -> str:
    """Write as a session does, with the engine's own trim let loose right behind it."""
    with bank.transaction():
        promote_before_trim(bank, incoming=1)
        return remember(bank, content, RememberOptions(scope="bank", trim=True))


def _dump(bank: Bank) -> list[str]:
    return list(bank.connection.iterdump())


class TestEpisodes:
    def test_sources_make_groups_in_order_of_first_appearance(self) -> None:
        made = list(episodes([_old("1", "a", "x"), _old("2", "b", None), _old("3", "c", "x"), _old("4", "d", "")], 999))
        assert [(one.text, one.members) for one in made] == [
            ("[x] a | c", ("1", "3")),
            ("[unknown] b", ("2",)),
            ("[] d", ("4",)),
        ]

    def test_a_chunk_holds_what_fits(self) -> None:
        # 40 units: a heading of 4, then 16 + 3 + 17 = 36; one unit more begins a chunk.
        fits = [_old("1", "a" * 16), _old("2", "b" * 17)]
        assert [one.members for one in episodes(fits, 40)] == [("1", "2")]
        assert [one.members for one in episodes(fits, 39)] == [("1",), ("2",)]

    def test_a_single_long_memory_is_cut_with_a_mark_and_the_cut_is_told(self) -> None:
        (one,) = episodes([_old("1", "word " * 100)], 100)
        assert js.units(one.text) <= 100
        assert one.text.endswith(CUT_MARK)
        assert one.text.startswith("[s] word word")
        assert one.metadata == {
            "original_count": 1,
            "source": "s",
            "llm_used": False,
            "truncated": True,
            "original_chars": 500,
            "max_chars": 100,
        }

    def test_where_the_mark_has_no_room_the_text_is_just_cut(self) -> None:
        (one,) = episodes([_old("1", "word " * 100)], len(CUT_MARK))
        assert one.text == ("[s] " + "word " * 100)[: len(CUT_MARK)]

    def test_a_cut_within_a_pair_leaves_no_half(self) -> None:
        (one,) = episodes([_old("1", "😀" * 20)], 7)
        assert one.text == "[s] 😀\ufffd"

    def test_the_earliest_end_and_the_widest_scope_count(self) -> None:
        (one,) = episodes(
            [
                _old("1", "a", valid_until="2027-01-01", scope="bank"),
                _old("2", "b", valid_until="2026-12-01"),
                _old("3", "c", scope="global"),
                _old("4", "d", valid_until=""),
            ],
            999,
        )
        assert (one.valid_until, one.scope) == ("2026-12-01", "global")

    @pytest.mark.parametrize(
        ("values", "winner"),
        [
            ([], "unknown"),
            ([None, "unknown", "likely_true"], "unknown"),
            (["true", "tool"], "tool"),  # of equals the less trustworthy
            (["tool", "true", "true"], "true"),
            (["true", "stated"], "true"),  # equally trustworthy: the first
            (["stated", "tool", "stated", "tool"], "tool"),
            ([" TRUE "], "true"),
            (["false", "stated", "stated", "false"], "false"),
        ],
    )
    def test_veracity(self, values: list[str | None], winner: str) -> None:
        assert aggregate_veracity(values) == winner

    @given(
        st.lists(st.tuples(st.text(max_size=60), st.sampled_from(["a", "bb", None])), max_size=12), st.integers(1, 150)
    )
    def test_every_memory_is_in_exactly_one_episode_of_bounded_length(
        self, memories: list[tuple[str, str | None]], most: int
    ) -> None:
        made = list(episodes([_old(str(at), text, source) for at, (text, source) in enumerate(memories)], most))
        assert sorted((m for one in made for m in one.members), key=int) == [str(at) for at in range(len(memories))]
        assert all(js.units(one.text) <= most for one in made)


class TestSleep:
    def test_twelve_hours_exactly_are_too_young(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "The target is stable.")
        clock.advance(12 * HOUR)
        assert sleep(bank)["status"] == "no_op"
        clock.advance(1)
        assert sleep(bank)["items_consolidated"] == 1

    @pytest.mark.claim("A-13")
    def test_the_memory_stays_and_an_episode_comes(self, bank: Bank, clock: FixedClock) -> None:
        memory_id = remember(bank, "The target is stable.", RememberOptions(veracity="tool"))
        clock.advance(13 * HOUR)
        result = sleep(bank)
        assert result["consolidated_ids"] == [memory_id]
        assert find(bank, memory_id) is not None
        rows = bank.connection.execute("SELECT content, summary_of, veracity, metadata_json FROM episodic_memory")
        content, members, veracity, metadata = rows.fetchone()
        assert (content, members, veracity) == ("[conversation] The target is stable.", memory_id, "tool")
        assert json.loads(metadata) == {"original_count": 1, "source": "conversation", "llm_used": False}
        assert sleep(bank)["status"] == "no_op"

    def test_a_dry_run_answers_the_same_and_changes_nothing(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "Gateway uses 12 endpoints.")
        clock.advance(13 * HOUR)
        before = _dump(bank)
        planned = sleep(bank, dry_run=True)
        planned_all = sleep_all(bank, dry_run=True)
        assert _dump(bank) == before
        assert planned["status"] == planned_all["status"] == "dry_run"
        done = sleep(bank)
        assert planned["consolidated_ids"] == done["consolidated_ids"]
        assert planned_all["items_consolidated"] == done["items_consolidated"] == 1

    def test_a_dry_run_works_on_a_bank_that_is_only_read(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "Gateway uses 12 endpoints.")
        clock.advance(13 * HOUR)
        with Bank.open_readonly(bank.path, "proj", clock=clock) as read:
            assert sleep(read, dry_run=True)["items_consolidated"] == 1
            with pytest.raises(ReadOnlyBankError):
                sleep(read)

    def test_embed_text_stands_for_the_content(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "the long content", RememberOptions(embed_text="the short one"))
        clock.advance(13 * HOUR)
        sleep(bank)
        assert _column(bank, "SELECT content FROM episodic_memory") == ["[conversation] the short one"]

    def test_facts_of_the_summary_name_the_episode(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "I prefer tea. Gateway uses 12 endpoints. Deadline 2026-07-01; v1.2")
        clock.advance(13 * HOUR)
        sleep(bank)
        (episode,) = _column(bank, "SELECT id FROM episodic_memory")
        assert set(_column(bank, "SELECT source_msg_id FROM facts")) == {episode}
        assert _column(bank, "SELECT predicate FROM facts WHERE subject <> 'Gateway' ORDER BY rowid") == [
            "metric",
            "date",
            "version",
            "entity",
        ]
        assert _column(bank, "SELECT date FROM memoria_timelines") == ["2026-07-01"]
        assert _column(bank, "SELECT preference FROM memoria_preferences") == ["The user prefers tea"]
        assert _column(bank, "SELECT object FROM triples") == ["12 endpoints"]

    def test_the_batch_bounds_one_sleep(self, tmp_path: Path, clock: FixedClock) -> None:
        with _open(tmp_path / "small.db", clock, sleep_batch=2) as bank:
            for number in range(5):
                remember(bank, f"row {number}")
                clock.advance(1)
            clock.advance(13 * HOUR)
            assert [sleep(bank).get("items_consolidated") for _ in range(4)] == [2, 2, 1, None]

    def test_a_failure_takes_everything_back(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "Gateway uses 12 endpoints.")
        clock.advance(13 * HOUR)
        bank.connection.execute(
            "CREATE TEMP TRIGGER fail BEFORE INSERT ON main.consolidation_log"
            " BEGIN SELECT RAISE(ABORT, 'the write failed'); END"
        )
        before = _dump(bank)
        with pytest.raises(BankError):
            sleep(bank)
        assert _dump(bank) == before

    def test_every_session_name_is_visited_oldest_first(self, bank: Bank) -> None:
        for number, session in enumerate(["b", None, "", "a"]):
            bank.connection.execute(
                "INSERT INTO working_memory (id, content, session_id, timestamp) VALUES (?, 'x', ?, ?)",
                (f"w{number}", session, f"2026-01-0{number + 1}"),
            )
        result = sleep_all(bank)
        assert [(one["session_id"], one["status"]) for one in result["session_results"]] == [
            ("b", "consolidated"),
            ("default", "consolidated"),
            ("", "no_op"),
            ("a", "consolidated"),
        ]
        assert result["sessions_consolidated"] == 3
        assert _column(bank, "SELECT session_id FROM episodic_memory ORDER BY rowid") == ["b", "default", "a"]

    def test_nothing_to_do_says_so(self, bank: Bank) -> None:
        assert sleep_all(bank)["message"] == sleep(bank)["message"] == "No old working memories to consolidate"


class TestAgeing:
    def _add(self, bank: Bank, memory_id: str, content: str, tier: int, created: str) -> None:
        bank.connection.execute(
            "INSERT INTO episodic_memory (id, content, tier, created_at) VALUES (?, ?, ?, ?)",
            (memory_id, content, tier, created),
        )
        bank.connection.execute(
            "INSERT INTO memory_embeddings (memory_id, embedding_json, model) VALUES (?, '[1]', 'm')", (memory_id,)
        )

    def test_a_month_shortens_and_half_a_year_keeps_key_sentences(self, bank: Bank) -> None:
        self._add(bank, "month", "x" * 900, 1, "2026-05-02T11:59:59.999Z")
        self._add(bank, "young", "x" * 900, 1, "2026-05-02T12:00:00.000Z")
        self._add(bank, "half", "Never do. " + "filler " * 60, 2, "2025-12-03T11:00:00.000Z")
        self._add(bank, "short", "just short", 2, "2025-12-03T11:00:00.000Z")
        planned = degrade(bank, dry_run=True)
        assert degrade(bank) == {**planned, "status": "degraded"}
        assert (planned["tier1_to_tier2"], planned["tier2_to_tier3"]) == (1, 2)
        rows = {r[0]: r[1:] for r in bank.connection.execute("SELECT id, tier, length(content) FROM episodic_memory")}
        assert rows == {"month": (2, 800), "young": (1, 900), "half": (3, 9), "short": (3, 10)}
        assert _column(bank, "SELECT memory_id FROM memory_embeddings ORDER BY 1") == ["short", "young"]

    def test_a_row_takes_one_step_at_a_time(self, bank: Bank) -> None:
        self._add(bank, "old", "x" * 900, 1, "2020-01-01")
        assert degrade(bank)["tier2_to_tier3"] == 0
        assert degrade(bank)["tier2_to_tier3"] == 1

    @pytest.mark.parametrize(("batch", "second"), [(7, 3), (1, 1), (0, 1)])
    def test_the_second_step_takes_half_the_batch(
        self, tmp_path: Path, clock: FixedClock, batch: int, second: int
    ) -> None:
        with _open(tmp_path / "small.db", clock, degrade_batch=batch) as bank:
            for number in range(9):
                self._add(bank, f"one{number}", "x", 1, "2020-01-01")
                self._add(bank, f"two{number}", "x", 2, "2020-01-01")
            result = degrade(bank)
        assert (result["tier1_to_tier2"], result["tier2_to_tier3"]) == (batch, second)

    def test_the_weightiest_sentences_stay_in_order(self) -> None:
        text = "Zed one. it is so. You must never do. nothing here at all! Paris Rome Oslo."
        assert key_sentences(text, 44) == "You must never do. Paris Rome Oslo."
        assert key_sentences(text, 45) == "Zed one. You must never do. Paris Rome Oslo."

    def test_one_long_sentence_is_cut(self) -> None:
        assert key_sentences("word " * 100, 20) == "word word word [...]"

    @given(st.text(max_size=400), st.integers(7, 120))
    def test_key_sentences_never_pass_the_limit(self, text: str, limit: int) -> None:
        assert js.units(key_sentences(text, limit)) <= limit


@pytest.mark.claim("A-13")
class TestPromotion:
    """Before a write of ours, what a trim would delete is consolidated; so no text is ever lost."""

    def _assert_all_there(self, bank: Bank, texts: dict[str, str]) -> None:
        for memory_id, text in texts.items():
            found = find(bank, memory_id)
            assert found is not None
            assert found.content == text
        assert not _column(
            bank,
            "SELECT id FROM working_memory WHERE id NOT IN (SELECT value FROM json_each(?))",
            json.dumps(list(texts)),
        )

    def test_a_session_open_for_thirty_hours(self, bank: Bank, clock: FixedClock) -> None:
        texts = {}
        for hour in range(30):
            text = f"In hour {hour} the beacon code was marker{hour}."
            texts[_session_write(bank, text)] = text
            clock.advance(HOUR)
        self._assert_all_there(bank, texts)
        for hour in range(30):
            assert any(f"marker{hour}." in hit.content for hit in recall(bank, f"marker{hour}", 5))

    def test_2500_items_in_one_call(self, bank: Bank) -> None:
        items = [RetainItem(f"Item {number} names token{number}") for number in range(2500)]
        texts: dict[str, str] = {}
        with bank.transaction():
            for start in range(0, len(items), 500):
                part = items[start : start + 500]
                promote_before_trim(bank, incoming=len(part))
                receipt = retain_items(bank, part, session_id="s", cwd="/p", trim_old=True)
                texts |= {str(id_): item.content for id_, item in zip(receipt.ids, part, strict=True)}
        assert len(texts) == 2500
        self._assert_all_there(bank, texts)
        for number in (0, 1, 999, 1000, 2499):
            assert f"Item {number} names token{number}" in [hit.content for hit in recall(bank, f"token{number}", 5)]
        # What another program's next write would trim is within its limit.
        assert _column(bank, "SELECT count(*) FROM working_memory WHERE consolidated_at IS NULL")[0] < 1000

    def test_one_by_one_far_over_the_limit(self, bank: Bank, clock: FixedClock) -> None:
        texts = {}
        with bank.transaction():  # one for all is just faster
            for number in range(1150):
                texts[_session_write(bank, f"note {number}")] = f"note {number}"
                clock.advance(1000)
        self._assert_all_there(bank, texts)
        # Early episodes hold many memories each: a full bank does not make one for every write.
        assert len(_column(bank, "SELECT id FROM episodic_memory")) <= 3

    def test_days_and_restarts(self, tmp_path: Path, clock: FixedClock) -> None:
        path, texts = tmp_path / "aged.db", {}
        for day in range(9):
            with _open(path, clock) as bank:
                text = f"Day {day} has the word word{day}."
                texts[_session_write(bank, text)] = text
            clock.advance((20 + 9 * day) * HOUR)
        with _open(path, clock) as bank:
            texts[_session_write(bank, "the last one")] = "the last one"
            self._assert_all_there(bank, texts)

    def test_a_batch_limit_does_not_leave_rows_behind(self, tmp_path: Path, clock: FixedClock) -> None:
        with _open(tmp_path / "small.db", clock, sleep_batch=1) as bank:
            texts = {_session_write(bank, f"note {number}"): f"note {number}" for number in range(5)}
            clock.advance(40 * HOUR)
            texts[_session_write(bank, "late")] = "late"
            self._assert_all_there(bank, texts)

    def test_rows_with_no_or_odd_times_survive_an_overflow(self, bank: Bank) -> None:
        for number, timestamp in enumerate([None, "", "2026-06-01", "9999", "not a time"]):
            bank.connection.execute(
                "INSERT INTO working_memory (id, content, session_id, timestamp) VALUES (?, ?, 'proj', ?)",
                (f"odd{number}", f"odd {number}", timestamp),
            )
        with bank.transaction():
            for number in range(1100):
                _session_write(bank, f"note {number}")
        assert len(_column(bank, "SELECT id FROM working_memory WHERE id LIKE 'odd%'")) == 5

    def test_nothing_is_done_while_nothing_is_in_danger(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "young")
        clock.advance(24 * HOUR)
        before = _dump(bank)
        assert promote_before_trim(bank, incoming=10) == []
        assert _dump(bank) == before
        clock.advance(1)
        assert len(promote_before_trim(bank)) == 1

    def test_imported_rows_and_other_sessions_are_no_reason(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "imported", RememberOptions(source="backup"))
        bank.connection.execute(
            "INSERT INTO working_memory (id, content, session_id, timestamp) VALUES ('x', 'x', 'other', '2020')"
        )
        clock.advance(48 * HOUR)
        assert promote_before_trim(bank) == []

    def test_the_write_and_its_promotion_stand_or_fall_together(self, bank: Bank, clock: FixedClock) -> None:
        remember(bank, "old")
        clock.advance(30 * HOUR)
        bank.connection.execute(
            "CREATE TEMP TRIGGER fail BEFORE INSERT ON main.working_memory BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        before = _dump(bank)
        with pytest.raises(BankError):
            _session_write(bank, "new")
        assert _dump(bank) == before

    def test_without_promotion_the_engine_would_delete(self, bank: Bank, clock: FixedClock) -> None:
        old = remember(bank, "old")
        clock.advance(25 * HOUR)
        remember(bank, "new", RememberOptions(trim=True))
        assert find(bank, old) is None


def test_consolidated_rows_are_seen_by_other_readers(bank: Bank, clock: FixedClock) -> None:
    remember(bank, "old")
    clock.advance(30 * HOUR)
    sleep(bank)
    with sqlite3.connect(bank.path) as other:
        assert other.execute("SELECT count(*) FROM working_memory WHERE consolidated_at IS NOT NULL").fetchone() == (1,)
    other.close()
