"""A session on real bank files: scope, tools, states, aliases, reading by id, failures."""

from __future__ import annotations

import logging
import sqlite3
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store.write import retain_items
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.conversation import Message
from ipy_memory.errors import (
    BankNotFoundError,
    MemoryNotFoundError,
    MemoryToolkitError,
    NoBackendError,
    NotInitialisedError,
    NotStoredError,
    RecallCancelled,
    ScopedRecallError,
    SettingsError,
    ToolInputError,
)
from ipy_memory.model import RetainItem
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
PROJECT = "demo-1atfzjjejbapn"


def opened(folder: Path, backend: str | None = "mnemopi", cwd: str = "/proj/demo", **settings: Any) -> MemorySession:
    return open_session(
        backend,
        cwd=cwd,
        database=folder / "mnemopi.db",
        settings={name.replace("__", "."): value for name, value in settings.items()},
        agent_dir=folder / "agent",
        env={"HOME": str(folder)},
        clock=FixedClock(NOW),
        ids=FixedIds(),
        session_id="sess-1",
    )


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        found = connection.execute(query).fetchall()
    connection.close()
    return found


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with opened(tmp_path) as one:
        yield one


def bank_file(folder: Path, name: str = PROJECT) -> Path:
    return folder / "banks" / name / "mnemopi.db"


@pytest.mark.claim("R-02", "N-01")
def test_without_a_backend_there_are_no_tools_and_a_call_says_how_to_choose(tmp_path: Path) -> None:
    session = opened(tmp_path, "off")
    assert session.tools == {}
    with pytest.raises(NoBackendError) as caught:
        session.recall("x")
    assert "%memory use mnemopi" in caught.value.one_line()


@pytest.mark.claim("C-01")
def test_the_backend_is_off_by_default(tmp_path: Path) -> None:
    assert opened(tmp_path, None).chosen == "off"


def test_a_wrong_backend_is_refused_with_the_valid_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"hindsight.*mnemopi"):
        opened(tmp_path, "mnemosyne")


@pytest.mark.claim("R-16", "R-17", "T-09")
@pytest.mark.parametrize(("chosen", "title"), [("mnemopi", "Mnemopi"), ("hindsight", "Hindsight")])
def test_the_backend_is_read_anew_and_a_missing_state_is_said(tmp_path: Path, chosen: str, title: str) -> None:
    session = opened(tmp_path, "hindsight" if chosen == "mnemopi" else "mnemopi")
    session.settings = session.settings.with_overrides({"memory.backend": chosen})
    for call in (lambda: session.recall("x"), lambda: session.retain("x"), lambda: session.reflect("x")):
        with pytest.raises(NotInitialisedError) as caught:
            call()
        assert caught.value.message == f"{title} backend is not initialised for this session."
    session.close()


@pytest.mark.claim("S-13")
def test_a_setting_changed_later_does_not_move_the_session(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.settings = session.settings.with_overrides({"mnemopi.scoping": "global"})
        session.retain("The harbour opens at six.")
        assert bank_file(tmp_path).exists()
        assert not (tmp_path / "mnemopi.db").exists()


@pytest.mark.parametrize(
    ("scoping", "written", "read"),
    [
        pytest.param("global", "default", ["default"], marks=pytest.mark.claim("S-06")),
        pytest.param("per-project", PROJECT, [PROJECT], marks=pytest.mark.claim("S-07")),
        pytest.param("per-project-tagged", PROJECT, [PROJECT, "default"], marks=pytest.mark.claim("S-08")),
    ],
)
def test_a_scoping_mode_writes_one_bank_and_reads_its_own(
    tmp_path: Path, scoping: str, written: str, read: list[str]
) -> None:
    with opened(tmp_path, mnemopi__scoping=scoping) as session:
        session.retain("The harbour opens at six.")
        result = session.recall("harbour")
    files = {"default": tmp_path / "mnemopi.db", PROJECT: bank_file(tmp_path)}
    assert [name for name, path in files.items() if path.exists()] == [written]
    assert result.attrs["banks"] == read
    assert [hit.bank for hit in result.hits] == [written]


@pytest.mark.claim("T-05", "T-07")
def test_retain_writes_the_rows_of_the_real_tool_before_it_returns(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        result = session.retain(["The harbour opens at six.", RetainItem("Ferries run hourly.", "")], context="notes")
        found = rows(
            bank_file(tmp_path),
            "SELECT content, source, importance, scope, veracity, memory_type, metadata_json FROM working_memory",
        )
    assert (result.text, result.details) == ("2 memories stored.", {"count": 2})
    head = '{"session_id":"sess-1","cwd":"/proj/demo","context":'
    tail = ',"tool":"retain"}'
    assert found == [
        ("The harbour opens at six.", "coding-agent-retain", 0.75, "bank", "tool", "fact", f'{head}"notes"{tail}'),
        ("Ferries run hourly.", "coding-agent-retain", 0.75, "bank", "tool", "fact", f'{head}""{tail}'),
    ]


@pytest.mark.claim("T-08")
def test_the_same_text_again_keeps_one_row_and_is_counted(session: MemorySession, tmp_path: Path) -> None:
    session.retain("The harbour opens at six.")
    session.clock.advance(60_000)  # type: ignore[attr-defined]
    result = session.retain("The harbour opens at six.")
    assert result.text == "1 memory stored."
    assert rows(bank_file(tmp_path), "SELECT timestamp FROM working_memory") == [("2026-06-01T12:01:00.000Z",)]
    assert any("known already" in note for note in result.notes)


@pytest.mark.claim("T-06")
def test_a_failing_item_is_named_and_the_others_are_stored(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.retain("First.")
        with sqlite3.connect(bank_file(tmp_path)) as connection:
            connection.execute("CREATE UNIQUE INDEX odd ON working_memory(content = 'bad') WHERE content = 'bad'")
            connection.execute("INSERT INTO working_memory (id, content, session_id) VALUES ('x', 'bad', 'another')")
        connection.close()
        with pytest.raises(NotStoredError) as caught:
            session.retain(["good", "bad", "also good"])
        assert (
            caught.value.message
            == f"1 of 3 memories were not stored in bank {PROJECT}: UNIQUE constraint failed: index 'odd'"
        )
        assert [(index, content) for index, content, _ in caught.value.failures] == [(1, "bad")]
        assert [failure.content for failure in session.failures] == ["bad"]
        tool = session.tools["retain"](items=[{"content": "bad"}])
        assert (tool.text, tool.details) == ("1 memory stored.", {"count": 1})
    stored = [row[0] for row in rows(bank_file(tmp_path), "SELECT content FROM working_memory")]
    assert stored == ["First.", "bad", "good", "also good"]


@pytest.mark.claim("T-10")
def test_credentials_are_neither_stored_nor_shown_and_counted(session: MemorySession, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    result = session.retain([{"content": f"key is {secret}", "context": f"from {secret}"}])
    assert any("2 credentials" in note for note in result.notes)
    session.close()
    raw = b"".join(path.read_bytes() for path in bank_file(tmp_path).parent.iterdir())
    assert secret.encode() not in raw


@pytest.mark.claim("R-13", "M-05")
def test_a_memory_is_read_by_its_id_from_the_first_bank_that_has_it(tmp_path: Path) -> None:
    with opened(tmp_path, mnemopi__scoping="global") as everyone:
        everyone.retain("Shared: the harbour opens at six.")
        [shared] = everyone.recall("harbour").hits
    with opened(tmp_path, mnemopi__scoping="per-project-tagged") as session:
        assert session.memory(shared.id or "").content == "Shared: the harbour opens at six."
        assert session.read(f"memory://{shared.id}").endswith("\n---\n\nShared: the harbour opens at six.")
        with pytest.raises(MemoryNotFoundError):
            session.memory("ffffffffffffffff")


def test_an_id_of_another_project_is_not_found(tmp_path: Path) -> None:
    with opened(tmp_path) as other:
        other.retain("The harbour opens at six.")
        [hit] = other.recall("harbour").hits
    with opened(tmp_path, cwd="/proj/else") as session, pytest.raises(MemoryNotFoundError) as caught:
        session.memory(hit.id or "")
    assert "harbour" not in caught.value.one_line()


@pytest.mark.claim("R-21")
def test_a_damaged_bank_is_named_and_the_healthy_one_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(tmp_path) as session:
        session.retain("The harbour opens at six.")
    (tmp_path / "mnemopi.db").write_bytes(b"no database at all" * 100)
    with opened(tmp_path, mnemopi__scoping="per-project-tagged") as session, caplog.at_level(logging.WARNING):
        result = session.recall("harbour")
    assert len(result.hits) == 1
    assert any("default" in note for note in result.notes)
    assert any(
        "Mnemopi: scoped recall target failed" in r.getMessage() and "default" in r.getMessage() for r in caplog.records
    )


@pytest.mark.claim("R-22")
def test_when_every_bank_fails_each_error_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "mnemopi.db", bank_file(tmp_path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no database at all" * 100)
    with opened(tmp_path, mnemopi__scoping="per-project-tagged") as session, pytest.raises(ScopedRecallError) as caught:
        session.recall("harbour")
    assert isinstance(caught.value, MemoryToolkitError)
    assert caught.value.message.startswith(f"Mnemopi recall failed for all scoped targets ({PROJECT}: ")
    assert "; default: " in caught.value.message
    assert [type(error).__name__ for error in caught.value.exceptions] == ["NotABankError", "NotABankError"]
    with opened(tmp_path) as session, pytest.raises(MemoryToolkitError) as alone:
        session.recall("harbour")
    assert not isinstance(alone.value, ScopedRecallError)


@pytest.mark.claim("R-25")
def test_a_cancelled_recall_raises_and_the_next_one_is_the_same(session: MemorySession, tmp_path: Path) -> None:
    session.retain("The harbour opens at six.")
    token = Event()
    token.set()
    with pytest.raises(RecallCancelled):
        session.recall("harbour", cancel=token)
    assert rows(bank_file(tmp_path), "SELECT recall_count FROM working_memory") == [(0,)]
    first = session.recall("harbour", touch=False).text
    assert session.recall("harbour").text == first


@pytest.mark.claim("R-26")
def test_the_tool_changes_no_session_state(session: MemorySession) -> None:
    session.retain("The harbour opens at six.")
    before = session.developer_instructions()
    session.recall("harbour")
    session.reflect("harbour")
    assert session.developer_instructions() == before
    assert session.describe()["lastRecall"] is False


@pytest.mark.claim("R-27")
def test_the_tool_does_not_use_the_context_settings(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.retain("The harbour opens at six.")
        usual = session.recall("harbour " * 100, touch=False).text
    with opened(tmp_path, mnemopi__recallMaxQueryChars=256, mnemopi__recallContextTurns=1) as session:
        assert session.recall("harbour " * 100, touch=False).text == usual


@pytest.mark.claim("R-29")
def test_the_limit_is_floored_and_at_least_one(tmp_path: Path) -> None:
    for limit, count in ((2.9, 2), (0, 1), (-3, 1)):
        with opened(tmp_path, mnemopi__recallLimit=limit) as session:
            session.retain([f"Harbour note number {n}." for n in range(5)])
            assert len(session.recall("harbour note").hits) == count


@pytest.mark.claim("R-34")
def test_counts_are_kept_only_where_they_may_be(session: MemorySession, tmp_path: Path) -> None:
    session.retain("The harbour opens at six.")
    session.recall("harbour", touch=False)
    session.recall("harbour", bank=PROJECT)
    assert rows(bank_file(tmp_path), "SELECT recall_count, last_recalled FROM working_memory") == [(0, None)]
    session.recall("harbour")
    assert rows(bank_file(tmp_path), "SELECT recall_count, last_recalled FROM working_memory") == [(1, NOW)]


def test_reading_makes_no_file_or_folder(tmp_path: Path) -> None:
    with opened(tmp_path, mnemopi__scoping="per-project-tagged") as session:
        assert session.recall("anything").text == "No relevant memories found."
        assert session.reflect("anything").text == "No relevant information found to reflect on."
        session.stats(), session.diagnose(), session.status(), session.describe()
        with pytest.raises(MemoryNotFoundError):
            session.memory("x")
        with pytest.raises(BankNotFoundError):
            session.recall("x", bank="nothing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scoping", ["global", "per-project", "per-project-tagged"])
def test_an_empty_file_is_a_bank_that_nobody_has_made_yet(tmp_path: Path, scoping: str) -> None:
    shared = tmp_path / "mnemopi.db"
    shared.touch()
    with opened(tmp_path, mnemopi__scoping=scoping) as session:
        answer = session.recall("harbour")
        assert (answer.text, answer.notes) == ("No relevant memories found.", ())
        assert session.memories().empty
        session.stats(), session.diagnose(), session.describe()
        assert shared.read_bytes() == b""
        session.retain("The harbour opens at six.")
        assert session.recall("harbour").notes == ()
    assert (shared.read_bytes() == b"") == (scoping != "global")


def test_an_unknown_bank_names_those_that_are_near(session: MemorySession, tmp_path: Path) -> None:
    session.retain("The harbour opens at six.")
    with pytest.raises(BankNotFoundError) as caught:
        session.recall("x", bank=PROJECT[:-1] + "x")
    assert PROJECT in caught.value.one_line()
    assert [path.name for path in (tmp_path / "banks").iterdir()] == [PROJECT]


@pytest.mark.claim("L-01", "L-06", "R-34")
def test_a_legacy_bank_is_read_and_only_its_counts_change(tmp_path: Path) -> None:
    path = bank_file(tmp_path, "old name!")
    with Bank.open(path, "old name!", clock=FixedClock(NOW), ids=FixedIds()) as bank:
        retain_items(bank, [RetainItem("The harbour opens at six.")], session_id="old", cwd="/proj/demo")
    with opened(tmp_path) as session:
        result = session.recall("harbour opens")
        assert "old name!" in result.attrs["banks"]
        session.retain("New.")
    assert [hit.content for hit in result.hits] == ["The harbour opens at six."]
    assert rows(path, "SELECT content, recall_count FROM working_memory") == [("The harbour opens at six.", 1)]


@pytest.mark.claim("S-12")
def test_a_child_shares_everything_but_its_id_and_folder(session: MemorySession, tmp_path: Path) -> None:
    child = session.child(session_id="sub-1", cwd="/elsewhere")
    child.retain("From the child.")
    [(metadata,)] = rows(bank_file(tmp_path), "SELECT metadata_json FROM working_memory")
    assert metadata == '{"session_id":"sub-1","cwd":"/elsewhere","context":null,"tool":"retain"}'
    turn = [Message("user", "a long enough question"), Message("assistant", "a long enough answer")]
    assert child.first_turn("child") is None
    child.end_turn(turn)
    child.force_retain(turn)
    child.close()
    assert len(rows(bank_file(tmp_path), "SELECT 1 FROM working_memory")) == 1
    assert session.recall("child").hits


@pytest.mark.claim("S-12")
def test_a_child_without_a_parent_state_has_none(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.close()
    with pytest.raises(NotInitialisedError):
        session.child().recall("x")


@pytest.mark.claim("A-01", "A-03", "A-05")
def test_the_first_turn_recalls_once_and_only_its_commit_reaches_the_instructions(session: MemorySession) -> None:
    session.retain("The harbour opens at six.")
    prepared = session.first_turn("When does the harbour open?")
    assert prepared is not None
    assert "harbour opens at six" in (prepared.context or "")
    assert "<memories>" not in session.developer_instructions().split("completed turns.")[1]
    assert prepared.commit()
    assert session.developer_instructions().endswith(prepared.context or "x")
    assert not prepared.commit()
    assert session.first_turn("And again?") is None


@pytest.mark.claim("A-03", "A-04")
def test_a_failed_first_recall_is_logged_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = bank_file(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database at all" * 100)
    with opened(tmp_path) as session:
        assert session.first_turn("harbour") is None
        assert any("automatic recall failed" in record.getMessage() for record in caplog.records)
        path.unlink()
        session.retain("The harbour opens at six.")
        assert session.first_turn("harbour opens") is not None


@pytest.mark.claim("A-09", "A-10", "A-04")
def test_turns_are_retained_every_fourth_and_never_twice(tmp_path: Path) -> None:
    log = []
    for n in range(1, 9):
        log += [Message("user", f"Question number {n} about the harbour"), Message("assistant", f"Answer {n}.")]
        with opened(tmp_path) as session:
            session.end_turn(log)
    stored = rows(bank_file(tmp_path), "SELECT content FROM working_memory ORDER BY rowid")
    assert len(stored) == 2
    assert [text.count("[role: user]") for (text,) in stored] == [4, 4]


@pytest.mark.claim("A-11")
def test_clear_names_its_files_and_spares_rescued_and_shared_banks(tmp_path: Path) -> None:
    with opened(tmp_path, mnemopi__scoping="global") as everyone:
        everyone.retain("Shared.")
    with opened(tmp_path) as old:
        old.retain("Old.")
    bank_file(tmp_path).parent.rename(tmp_path / "banks" / "old")
    with opened(tmp_path) as session:
        session.retain("The harbour opens at six.")
        backend: Any = session.backend
        assert [target.path for target in backend.clear_targets()] == [bank_file(tmp_path)]
        assert backend.clear().emptied == (bank_file(tmp_path),)
        assert session.recall("harbour").hits == ()
        session.retain("Afresh.")
    assert rows(bank_file(tmp_path), "SELECT content FROM working_memory") == [("Afresh.",)]
    assert rows(tmp_path / "mnemopi.db", "SELECT content FROM working_memory") == [("Shared.",)]
    assert rows(bank_file(tmp_path, "old"), "SELECT content FROM working_memory") == [("Old.",)]


@pytest.mark.claim("R-30", "T-12", "F-06")
def test_nothing_local_opens_a_connection(session: MemorySession, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket", refuse)
    session.retain("The harbour opens at six.")
    session.flush()
    assert "harbour" in session.recall("harbour").text
    assert "- The harbour opens at six. (" in session.reflect("harbour").text


@pytest.mark.claim("F-02")
def test_reflect_adds_a_context_that_says_something(session: MemorySession) -> None:
    session.retain("The harbour opens at six.")
    asked: list[str] = []
    backend: Any = session.backend
    original = backend.ask
    backend.ask = lambda request: asked.append(request.query) or original(request)
    session.reflect("  harbour  ", "  opening  ")
    session.reflect("  harbour  ", "   ")
    session.reflect("  harbour  ")
    assert asked == ["harbour\n\nAdditional context:\nopening", "  harbour  ", "  harbour  "]


def test_a_bank_replaced_by_another_process_is_opened_anew(session: MemorySession, tmp_path: Path) -> None:
    session.retain("The harbour opens at six.")
    assert session.recall("harbour").hits
    for path in bank_file(tmp_path).parent.iterdir():
        path.unlink()
    assert session.recall("harbour").hits == ()
    session.retain("The harbour opens at seven.")
    assert [hit.content for hit in session.recall("harbour").hits] == ["The harbour opens at seven."]


@pytest.mark.parametrize("items", [7, None])
def test_what_is_no_list_is_refused_as_by_the_tool(session: MemorySession, items: Any) -> None:
    with pytest.raises(ToolInputError) as caught:
        session.retain(items)
    assert caught.value.message == f"retain: field 'items' must be an array, not {type(items).__name__}"


def test_an_empty_list_is_refused(session: MemorySession) -> None:
    with pytest.raises(ToolInputError):
        session.retain([])


@pytest.mark.claim("E-03")
def test_status_shows_no_secret(tmp_path: Path) -> None:
    token = "tok" + "3n" * 12
    with opened(tmp_path, "hindsight", hindsight__apiToken=token) as session:
        shown = repr(session) + repr(session.status()) + repr(session.backend) + repr(session.settings)
    assert token not in shown


@pytest.mark.claim("A-13")
def test_nothing_retained_is_lost_over_hours_restarts_and_large_calls(tmp_path: Path) -> None:
    texts: list[str] = []
    clock = FixedClock(NOW)
    for hour in range(30):
        with opened(tmp_path) as session:
            session.clock = clock
            backend: Any = session.backend
            backend.banks.clock = clock
            batch = [f"Harbour log entry {hour} {n}" for n in range(2500 if hour == 3 else 3)]
            session.retain(batch)
            texts += batch
        clock.advance(3_600_000)
    stored = [row[0] for row in rows(bank_file(tmp_path), "SELECT content FROM working_memory ORDER BY rowid")]
    assert stored == texts
    open_rows = "SELECT count(*) FROM working_memory WHERE consolidated_at IS NULL"
    assert rows(bank_file(tmp_path), open_rows)[0][0] <= 1000


@pytest.mark.claim("M-07", "M-08")
@pytest.mark.parametrize("backend", ["mnemopi", "hindsight", "off"])
def test_memory_commands_say_what_a_backend_does_not_have(tmp_path: Path, backend: str) -> None:
    """C13: the agent's sentences; only Mnemopi's are about a state that is missing."""
    with open_session(backend, "/work/shop", agent_dir=tmp_path, env={"HOME": str(tmp_path)}) as session:
        session.backend = session.backend if backend == "hindsight" else None
        none = {"backend": backend, "query": "q", "count": 0, "items": []}
        gone = "Mnemopi backend is not initialised for this session."
        unavailable = {
            what: f"Memory {what} is not available for the {backend} backend." for what in ("search", "save")
        }
        said = dict.fromkeys(("search", "save"), gone) if backend == "mnemopi" else unavailable
        assert session.search("q") == none | {"message": said["search"]}
        assert session.save("x") == {"backend": backend, "stored": 0, "message": said["save"]}
        status = {
            "mnemopi": gone,
            "hindsight": "This memory backend does not expose structured status.",
            "off": "Memory backend is off.",
        }[backend]
        assert session.describe() == {
            "backend": backend,
            "active": backend == "hindsight",
            "writable": False,
            "searchable": False,
            "message": status,
        }
