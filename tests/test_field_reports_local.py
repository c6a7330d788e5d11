"""What went wrong for people on local banks, and what happens here instead: one small test a kind."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds, ProcessIds
from ipy_memory.commands.grammar import variable
from ipy_memory.errors import (
    BankError,
    BankNameError,
    BankNotFoundError,
    CorruptBankError,
    MagicError,
    MemoryNotFoundError,
    MemoryToolkitError,
    NotABankError,
    NotStoredError,
    SettingsError,
    ToolInputError,
)
from ipy_memory.explore.banks import open_bank_file
from ipy_memory.explore.health import look_over
from ipy_memory.explore.scopes import scope_rows
from ipy_memory.jscompat.strings import json_text, number_text, round4
from ipy_memory.model import RetainItem
from ipy_memory.paths import check_path, exists
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOW = "2026-06-01T12:00:00.000Z"
NO_PATHS = ["a\x00b", "\ud83d", "x" * 5000, "/" + "x/" * 3000]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "proj").mkdir()
    return tmp_path


@pytest.fixture
def session(home: Path) -> Iterator[MemorySession]:
    with opened(home) as made:
        yield made


def opened(home: Path, **given: Any) -> MemorySession:
    return open_session(
        "mnemopi",
        **{
            "cwd": home / "proj",
            "agent_dir": home / "agent",
            "env": {"HOME": str(home)},
            "clock": FixedClock(NOW),
            "ids": FixedIds(),
        }
        | given,
    )


def file_of(session: MemorySession) -> Path:
    backend = session.live_backend()
    assert isinstance(backend, MnemopiBackend)
    return backend.target(backend.retain_bank).path


def altered(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def names(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


class TestPaths:
    """G12, B122: whatever is given as a path is one clear line, and makes nothing."""

    @pytest.mark.parametrize("given", NO_PATHS)
    @pytest.mark.parametrize("where", ["cwd", "agent_dir", "database"])
    def test_what_can_be_no_path_is_said(self, home: Path, where: str, given: str) -> None:
        before = names(home)
        with pytest.raises(SettingsError) as caught:
            opened(home, **{where: given})
        assert len(caught.value.one_line()) < 500
        assert names(home) == before

    @pytest.mark.parametrize("given", NO_PATHS)
    def test_a_folder_or_a_file_that_is_none_is_said(self, session: MemorySession, given: str) -> None:
        for ask in (
            lambda: scope_rows(session, cwd=given),
            lambda: session.rebind(given),
            lambda: open_bank_file(given, env=session.env),
        ):
            with pytest.raises(MemoryToolkitError):
                ask()

    def test_a_user_who_is_not_there_is_no_traceback(self, session: MemorySession) -> None:
        with pytest.raises(BankNotFoundError):
            open_bank_file("~nobody-of-this-name/mnemopi.db", env=session.env)

    def test_a_loop_of_links_is_said_and_what_is_missing_is_fine(self, home: Path) -> None:
        loop = home / "loop"
        loop.symlink_to(loop)
        with pytest.raises(SettingsError):
            check_path(str(loop), "the folder")
        assert check_path(str(home / "nothing"), "the folder") == str(home / "nothing")

    def test_only_what_is_known_to_be_missing_is_missing(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert exists(home)
        assert not exists(home / "nothing")
        assert not exists(home / ("x" * 300))
        assert not exists(home / "a\x00b")

        def shut(*_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "stat", shut)
        assert exists(home / "nothing")
        with pytest.raises(BankError, match="Permission denied"):
            Bank.open_readonly(home / "nothing", "shut", clock=FixedClock(NOW))

    def test_a_working_directory_that_is_gone_is_said(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = home / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        with pytest.raises(SettingsError, match="working directory is gone"):
            opened(home, cwd=None)

    @pytest.mark.parametrize(
        "name",
        ["../../etc", "..%2f..", "/tmp/x", "a/../../b", "n" * 300, "\u202e", "", ".", "..", "a\x00b", "\ud83d"],
    )
    def test_a_bank_name_reaches_nothing_outside(self, session: MemorySession, home: Path, name: str) -> None:
        session.retain("a blue harbour")
        before = names(home)
        with pytest.raises((BankNameError, BankNotFoundError)):
            session.recall("harbour", bank=name)
        assert names(home) == before

    def test_a_database_that_is_a_folder_or_a_device_is_told_apart(self, home: Path) -> None:
        pipe = home / "pipe"
        os.mkfifo(pipe)
        for path, said in ((home, "folder"), (pipe, "device")):
            with opened(home, database=path, settings={"mnemopi.scoping": "global"}) as session:
                with pytest.raises(NotABankError, match=said):
                    session.recall("harbour")
                assert said in session.diagnose()


class TestOneLine:
    """An error is one line that can be read, however long what was typed."""

    def test_a_long_message_place_or_hint_is_cut(self) -> None:
        line = MagicError("m" * 9000, where="w" * 9000, hint="h" * 9000).one_line()
        assert len(line) < 1600
        assert line.count("…") == 3

    def test_the_whole_message_stays(self) -> None:
        assert MagicError("m" * 9000).message == "m" * 9000


class TestOddCells:
    """G7, B066: a cell of any type is read, and one odd row breaks nothing."""

    @pytest.mark.parametrize(
        "cell",
        [
            "x'ff41fe'",
            "9e999",
            "-9223372036854775808",
            "1e308",
            "''",
            "char(0)",
            "replace(hex(zeroblob(60000)),'0','[')",
        ],
    )
    @pytest.mark.parametrize(
        "column", ["content", "importance", "timestamp", "created_at", "recall_count", "metadata_json", "veracity"]
    )
    def test_every_look_at_it_answers(self, session: MemorySession, column: str, cell: str) -> None:
        session.retain(["a blue harbour", "a red harbour"])
        altered(file_of(session), f"UPDATE working_memory SET {column} = {cell} WHERE rowid = 1")
        first = session.memories()["id"][0]
        session.recall("harbour", touch=False)
        session.read(first)
        session.memories(where={"text": "harbour"})
        session.why(first, "harbour")
        assert "mnemopi.db" in session.stats() + session.diagnose()
        session.retain("one more harbour")
        session.enqueue()

    def test_a_text_that_is_no_utf8_is_searched_and_looked_over(self, session: MemorySession) -> None:
        session.retain(["a blue harbour", "a red harbour"])
        altered(file_of(session), "UPDATE working_memory SET content = CAST(x'ff41fe' AS TEXT) WHERE rowid = 1")
        assert list(session.memories(where={"text": "red"})["content"]) == ["a red harbour"]
        assert not [finding for one in look_over(session).examinations for finding in one.faults]

    def test_a_row_without_an_id_is_left_out_of_summaries(self, session: MemorySession) -> None:
        session.retain(["a blue harbour", "a red harbour"])
        altered(
            file_of(session),
            "UPDATE working_memory SET timestamp = '2026-01-01T00:00:00.000Z'",
            "UPDATE working_memory SET id = NULL WHERE rowid = 1",
        )
        session.enqueue()
        [summary] = session.memories(store="episodic")["content"]
        assert "red" in summary
        assert "blue" not in summary

    def test_a_vector_nested_without_end_is_unreadable(self, session: MemorySession) -> None:
        session.retain("a blue harbour")
        altered(
            file_of(session),
            "INSERT INTO memory_embeddings (memory_id, embedding_json, model)"
            " SELECT id, replace(hex(zeroblob(60000)), '0', '['), 'm' FROM working_memory",
        )
        details = [finding.detail for one in look_over(session).examinations for finding in one.findings]
        assert "1 cannot be read" in details

    def test_an_index_that_cannot_take_a_write_names_its_remedy(self, session: MemorySession) -> None:
        session.retain("I prefer the blue harbour")
        altered(file_of(session), "DELETE FROM fts_working_data")
        with pytest.raises(CorruptBankError) as caught:
            session.change("forget", session.memories()["id"][0])
        assert "doctor --repair" in caught.value.one_line()

    def test_what_ended_a_whole_call_is_the_reason_given(self, session: MemorySession) -> None:
        session.retain("a blue harbour")
        path = file_of(session)
        # No further row fits in: SQLite takes the whole transaction back by itself.
        altered(path, f"INSERT INTO memoria_facts (id, session_id) VALUES ({2**63 - 1}, 'x')")
        with pytest.raises(NotStoredError, match="full"):
            session.retain(["a red harbour", "I prefer the green harbour. My budget is 500 euros."])
        assert len(session.memories()) == 1

    def test_a_number_beyond_javascripts_is_infinite(self) -> None:
        assert number_text(10**400) == "Infinity"
        assert json_text({"n": -(10**400)}) == '{"n":null}'
        assert round4(1e308) == float("inf")

    def test_a_memory_of_an_older_bank_is_read_in_full(self, tmp_path: Path) -> None:
        path = tmp_path / "mnemopi.db"
        with Bank.open(path, "default", clock=FixedClock(NOW), ids=FixedIds()) as bank:
            made = remember(bank, "a blue harbour", RememberOptions(scope="bank"))
        altered(path, "ALTER TABLE working_memory DROP COLUMN veracity")
        with open_bank_file(path, env={"HOME": str(tmp_path)}) as session:
            assert session.memory(made).content == "a blue harbour"


class TestInterrupted:
    """R-25, G1: after Ctrl-C the session works on, and sees what others write."""

    @pytest.fixture
    def bank(self, tmp_path: Path) -> Iterator[Bank]:
        with Bank.open(tmp_path / "mnemopi.db", "default", clock=FixedClock(NOW), ids=FixedIds()) as bank:
            for number in range(30):
                remember(bank, f"harbour {number}", RememberOptions(scope="bank"))
            yield bank

    @pytest.mark.claim("R-25")
    def test_an_interrupted_reader_holds_nothing_back(self, bank: Bank) -> None:
        kept = []

        def read() -> None:
            with bank.reading() as connection:
                kept.append(connection.execute("SELECT id FROM working_memory"))  # as a traceback keeps it
                kept[0].fetchone()
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            read()
        with Bank.open(bank.path, "default", clock=FixedClock(NOW), ids=ProcessIds()) as other:
            remember(other, "of another process", RememberOptions(scope="bank"))
        with bank.reading() as connection:
            assert connection.execute("SELECT count(*) FROM working_memory").fetchone() == (31,)
            connection.execute("VACUUM")
        remember(bank, "after it", RememberOptions(scope="bank"))
        assert kept

    @pytest.mark.claim("R-25")
    def test_ctrl_c_in_a_function_of_ours_is_ctrl_c(self, bank: Bank) -> None:
        def interrupted(_: object) -> None:
            raise KeyboardInterrupt

        bank.connection.create_function("pressed", 1, interrupted)
        with pytest.raises(KeyboardInterrupt), bank.reading() as connection:
            connection.execute("SELECT pressed(id) FROM working_memory").fetchall()

    def test_a_purge_that_was_interrupted_can_be_finished(self, session: MemorySession) -> None:
        session.retain(["a blue harbour", "the secret word is xyzzyplugh"])
        [secret] = [row.id for row in session.memories().itertuples() if "secret" in row.content]
        path = file_of(session)
        session.change("forget", secret)
        with pytest.raises(MemoryNotFoundError):
            session.change("forget", secret, purge=True)
        session.close()
        assert b"xyzzyplugh" not in b"".join(
            file.read_bytes() for file in path.parent.glob("mnemopi.db*") if file.suffix != ".backup"
        )


class TestThreads:
    """B096: the one synchronous session is called from several threads, as ``asyncio.to_thread`` does."""

    def test_calls_at_the_same_time_take_turns(self, session: MemorySession) -> None:
        session.retain([f"harbour {number} and tower {number % 7}" for number in range(100)])

        async def all_at_once() -> list[Any]:
            calls: list[Callable[[], Any]] = [
                call
                for number in range(12)
                for call in (
                    lambda: session.recall("harbour tower"),
                    lambda number=number: session.retain(f"new {number}"),  # type: ignore[misc]
                    lambda: session.memories(limit=3),
                )
            ]
            return await asyncio.wait_for(asyncio.gather(*(asyncio.to_thread(call) for call in calls)), 60)

        assert len(asyncio.run(all_at_once())) == 36
        assert len(session.memories(limit=None)) == 112


class TestCalls:
    """B038, B054: what is called from Python is checked as what is typed."""

    def test_a_wrong_operation_changes_nothing(self, session: MemorySession) -> None:
        session.retain("a blue harbour")
        [wanted] = session.memories()["id"]
        with pytest.raises(ToolInputError, match="update, forget, invalidate"):
            session.change("delete", wanted)  # type: ignore[arg-type]
        with pytest.raises(ToolInputError, match="update, forget, invalidate"):
            session.edit_memory(op="delete", id=wanted)
        assert list(session.memories()["state"]) == ["live"]

    @pytest.mark.parametrize("importance", [float("nan"), "high"])
    def test_a_weight_is_a_number(self, session: MemorySession, importance: Any) -> None:
        session.retain("a blue harbour")
        [wanted] = session.memories()["id"]
        with pytest.raises(ToolInputError, match="importance"):
            session.change("update", wanted, importance=importance)

    @pytest.mark.parametrize("limit", [0, -1, 2.5, "5", True, float("nan")])
    def test_a_limit_is_a_whole_number_of_at_least_one(self, session: MemorySession, limit: Any) -> None:
        with pytest.raises(ToolInputError, match="limit"):
            session.recall("harbour", limit=limit)
        with pytest.raises(ToolInputError, match="limit"):
            session.memories(limit=limit)

    @pytest.mark.parametrize("limit", [10**9, 2**31, 10**30])
    def test_a_limit_beyond_every_bank_gives_all(self, session: MemorySession, limit: int) -> None:
        session.retain(["a blue harbour", "a red harbour"])
        assert len(session.recall("harbour", limit=limit).hits) == 2

    def test_one_mapping_is_one_item(self, session: MemorySession) -> None:
        session.retain({"content": "a blue harbour"})
        assert list(session.memories()["content"]) == ["a blue harbour"]

    @pytest.mark.parametrize("given", [5, [5], [b"x"], [RetainItem(5)], [{"text": "x"}], []])  # type: ignore[arg-type]
    def test_what_is_no_item_is_refused(self, session: MemorySession, home: Path, given: Any) -> None:
        before = names(home)
        with pytest.raises(ToolInputError, match="retain"):
            session.retain(given)
        assert names(home) == before

    @pytest.mark.parametrize("field", ["text", "id", "cwd", "about"])
    def test_half_an_emoji_filters_like_any_text(self, session: MemorySession, field: str) -> None:
        session.retain("a blue harbour")
        half, whole = (session.memories(where={field: text}, store="all") for text in ("\ud83d", "\ufffd"))
        assert list(half["id"]) == list(whole["id"])

    def test_a_keyword_is_no_variable(self) -> None:
        assert variable("found") == "found"
        with pytest.raises(ValueError, match="variable"):
            variable("class")


class TestRenamedBank:
    """B001, B126: a bank folder that was copied or renamed by hand."""

    @pytest.fixture
    def renamed(self, home: Path) -> str:
        with opened(home) as session:
            session.retain("the marmot sleeps in winter")
            folder = file_of(session).parent
        folder.rename(folder.with_name("a b.c"))
        return "a b.c"

    def test_its_name_shows_its_memories(self, home: Path, renamed: str) -> None:
        with opened(home) as session:
            assert "marmot" in session.recall("marmot", bank=renamed).text
            assert "marmot" in session.reflect("marmot", bank=renamed).text

    @pytest.mark.claim("R-18", "L-06")
    def test_a_recall_answers_as_the_agent_and_says_where_they_are(self, home: Path, renamed: str) -> None:
        with opened(home) as session:
            found = session.recall("marmot")
        assert found.hits == ()
        [note] = found.notes
        assert f"%recall --bank {renamed}" in note


@pytest.mark.claim("E-03")
def test_a_key_in_a_setting_that_takes_none_is_not_shown(home: Path) -> None:
    key = "ghp_" + "a" * 36
    with opened(home, settings={"hindsight.bankMission": f"use {key}"}) as session:
        assert key not in str(session.settings.table())
