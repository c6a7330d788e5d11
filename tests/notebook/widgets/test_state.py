"""What the panels know and do, without a widget."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.explore.aging import consolidate_now
from ipy_memory.explore.selection import invalidate_all
from ipy_memory.model import Hit, RetainItem
from ipy_memory.notebook.widgets.memory import MemoryState
from ipy_memory.notebook.widgets.recall import SAME_MOMENT, BanksState, RecallState
from ipy_memory.notebook.widgets.retain import ReflectState
from ipy_memory.notebook.widgets.session_hub import Desk
from ipy_memory.notebook.widgets.state import PanelState, keyed
from ipy_memory.session import MemorySession, open_session
from tests.notebook.widgets.conftest import HETZNER, POSTGRES, id_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def asked(session: MemorySession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that the session is asked."""
    asked: list[str] = []
    recall = session.recall

    def counting(query: str, **options: object) -> object:
        asked.append(query)
        return recall(query, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "recall", counting)
    return asked


class Watch:
    """A watch that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_typing_and_clicking_is_one_search(desk: Desk, asked: list[str]) -> None:
    watch = Watch()
    state = RecallState(desk, now=watch)
    state.typed("deploy target")
    state.pressed("deploy target")
    assert asked == ["deploy target"]
    watch.now += SAME_MOMENT
    state.pressed("deploy target")
    assert asked == ["deploy target"] * 2
    state.typed("deploy target")
    assert asked == ["deploy target"] * 2
    state.pressed("postgres")
    assert asked[2:] == ["postgres"]


def test_searching_counts_no_recall(desk: Desk, session: MemorySession) -> None:
    state = RecallState(desk)
    state.typed("deploy target")
    assert state.status.startswith("Found 5 relevant memories")
    assert [session.memory(str(hit.id)).recall_count for hit in state.hits.values()] == [0] * 5


def test_a_blank_query_is_an_error_in_the_status(desk: Desk, asked: list[str]) -> None:
    state = RecallState(desk)
    state.attempt(lambda: state.pressed("  "))
    assert state.failed
    assert "no query" in state.status
    assert asked == []


def test_keys_name_each_row_also_without_an_id_or_with_one_twice() -> None:
    hits = [Hit("a", "1"), Hit(None, "2"), Hit("a", "3")]
    assert list(keyed(hits)) == ["a", "#2", "a#3"]


def test_whatever_goes_wrong_is_said_and_not_raised(desk: Desk) -> None:
    state = PanelState(desk)
    drawn = []
    state.on_change = lambda: drawn.append(state.status)

    def fail(error: BaseException) -> None:
        raise error

    for error in (MemoryToolkitError("no", hint="try"), ZeroDivisionError("by\x1b[31m zero"), KeyboardInterrupt()):
        state.attempt(lambda error=error: fail(error))  # type: ignore[misc]
        assert state.failed
    assert drawn[0] == "MemoryToolkitError: no – try"
    assert drawn[1] == "ZeroDivisionError: by⟨U+001B⟩[31m zero"
    assert drawn[2].startswith("Interrupted")
    state.attempt(lambda: state.say("fine"))
    assert (state.failed, drawn[3]) == (False, "fine")


@pytest.mark.claim("M-06")
def test_the_whole_text_is_opened_and_edited_never_the_preview(desk: Desk) -> None:
    recall = RecallState(desk)
    recall.typed("deploy target")
    key = next(key for key, hit in recall.hits.items() if hit.truncated)
    recall.select(key)
    memory = recall.memory
    assert memory.text.endswith("a script could have done.")
    assert memory.text == memory.draft
    assert len(memory.text) > len(recall.hits[key].content)
    memory.write(recall.hits[key].content)
    memory.review()
    memory.attempt(memory.confirm)
    assert memory.failed
    assert "cut preview" in memory.status
    assert desk.session.memory(key).content.endswith("a script could have done.")


@pytest.mark.claim("M-06")
def test_an_edit_is_shown_confirmed_and_can_be_undone(desk: Desk, session: MemorySession) -> None:
    memory = MemoryState(desk)
    memory.open(id_of(session, POSTGRES))
    edited = POSTGRES.replace("16", "17")
    memory.write(edited)
    memory.weigh(0.9)
    assert memory.difference() == [f"-{POSTGRES}", f"+{edited}", "- importance 0.75", "+ importance 0.9"]
    memory.review()
    assert memory.question is not None
    assert session.memory(memory.memory.id).content == POSTGRES  # type: ignore[union-attr]
    memory.confirm()
    assert (memory.text, memory.weight) == (edited, 0.9)
    assert memory.undoable
    memory.undo()
    assert (memory.text, memory.draft, memory.weight) == (POSTGRES, POSTGRES, 0.75)
    assert not memory.undoable


@pytest.fixture
def other(session: MemorySession) -> Iterator[MemorySession]:
    """Another session on the same banks, as another process has it."""
    given = {"cwd": session.cwd, "agent_dir": session.agent_dir, "env": session.env, "clock": session.clock}
    with open_session(**given) as other:  # type: ignore[arg-type]
        yield other


def test_revert_reads_what_is_stored_now(desk: Desk, session: MemorySession, other: MemorySession) -> None:
    """B09: a text that another process wrote is shown, and said to be another one."""
    memory = MemoryState(desk)
    memory.open(id_of(session, POSTGRES))
    memory.write("a draft")
    memory.revert()
    assert (memory.text, memory.draft, memory.status) == (POSTGRES, POSTGRES, "The text is as stored.")
    memory.write("a draft")
    other.change("update", memory.memory.id, content="of another process")  # type: ignore[union-attr]
    memory.revert()
    assert memory.text == memory.draft == "of another process"
    assert memory.status == "The text is as stored; it was changed since it was read."
    other.change("forget", memory.memory.id)  # type: ignore[union-attr]
    memory.attempt(memory.revert)
    assert memory.failed


@pytest.mark.parametrize("verb", ["forget", "invalidate", "review"])
def test_nothing_is_done_to_a_text_that_nobody_has_seen(
    desk: Desk, session: MemorySession, other: MemorySession, verb: str
) -> None:
    """B09: forget and invalidate refuse as Save does when the text is another one by now."""
    memory = MemoryState(desk)
    memory.open(id_of(session, POSTGRES))
    assert memory.memory is not None
    id_ = memory.memory.id
    memory.write("a draft")
    getattr(memory, verb)()
    other.change("update", id_, content="of another process")
    memory.attempt(memory.confirm)
    assert memory.failed
    assert "changed or removed by somebody else" in memory.status
    stored = session.memory(id_)
    assert (stored.content, stored.valid_until) == ("of another process", None)


def test_an_undo_of_what_was_changed_again_asks_with_both_texts(
    desk: Desk, session: MemorySession, other: MemorySession
) -> None:
    """B05: in a panel."""
    memory = MemoryState(desk)
    memory.open(id_of(session, POSTGRES))
    assert memory.memory is not None
    memory.write("mine")
    memory.review()
    memory.confirm()
    other.change("update", memory.memory.id, content="of another process")
    memory.attempt(memory.undo)
    assert memory.question is not None
    assert "content now: of another process" in memory.question.text
    assert POSTGRES in memory.question.text
    memory.cancel()
    assert session.memory(memory.memory.id).content == "of another process"
    memory.undo()
    memory.confirm()
    assert memory.text == POSTGRES
    assert not memory.undoable


def test_a_further_edit_takes_the_open_question_back(desk: Desk, session: MemorySession) -> None:
    memory = MemoryState(desk)
    memory.open(id_of(session, POSTGRES))
    memory.write("a")
    memory.review()
    memory.write("b")
    memory.confirm()
    assert session.memory(memory.memory.id).content == POSTGRES  # type: ignore[union-attr]
    memory.review()
    memory.cancel()
    assert memory.status == "Nothing was changed."
    memory.revert()
    assert memory.draft == POSTGRES
    memory.review()
    assert memory.question is None


def test_a_credential_is_announced_and_shown_as_it_will_be_stored(desk: Desk, session: MemorySession) -> None:
    memory = MemoryState(desk)
    memory.open(id_of(session, POSTGRES))
    memory.write("key " + "AKIA" + "ABCDEFGHIJKLMNOP")
    memory.review()
    assert memory.difference()[1] == "+key [REDACTED]"
    assert "1 credential" in memory.status


def test_line_breaks_survive_the_text_box(desk: Desk, session: MemorySession) -> None:
    session.retain("first\r\nsecond")
    memory = MemoryState(desk)
    memory.open(id_of(session, "first\r\nsecond"))
    memory.write("first\nsecond")
    assert memory.difference() == []
    memory.write("first\nthird")
    memory.review()
    memory.confirm()
    assert memory.text == "first\r\nthird"


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(desk: Desk, session: MemorySession) -> None:
    memory = MemoryState(desk)
    memory.open(id_of(session, POSTGRES))
    memory.write("mine")
    memory.review()
    session.change("update", memory.memory.id, content="theirs")  # type: ignore[union-attr]
    memory.attempt(memory.confirm)
    assert memory.failed
    assert "changed or removed" in memory.status
    assert memory.draft == "mine"
    assert session.memory(memory.memory.id).content == "theirs"  # type: ignore[union-attr]


def test_a_memory_is_invalidated_and_brought_back(desk: Desk, session: MemorySession) -> None:
    memory = MemoryState(desk)
    memory.open(id_of(session, HETZNER))
    memory.invalidate()
    assert memory.question is not None
    memory.confirm()
    assert memory.memory is not None
    assert memory.memory.valid_until is not None
    assert not memory.endable
    memory.undo()
    assert memory.memory.valid_until is None
    assert memory.endable


def test_forgetting_asks_and_is_final(desk: Desk, session: MemorySession) -> None:
    memory = MemoryState(desk)
    memory.open(gone := id_of(session, HETZNER))
    memory.forget()
    assert "cannot be undone" in memory.status
    memory.confirm()
    assert memory.memory is None
    assert not memory.undoable
    memory.attempt(lambda: memory.open(gone))
    assert memory.failed
    assert "MemoryNotFoundError" in memory.status


def test_two_panels_on_one_bank_agree(desk: Desk, session: MemorySession) -> None:
    one, two, third = RecallState(desk), RecallState(desk), MemoryState(desk)
    one.typed("postgres migrations")
    two.typed("shop uses")
    key = id_of(session, POSTGRES)
    third.open(key)
    one.select(key)
    one.memory.write("The shop uses SQLite now.")
    one.memory.review()
    one.memory.confirm()
    assert two.hits[key].content == third.text == third.draft == "The shop uses SQLite now."
    third.forget()
    third.confirm()
    assert key not in one.hits
    assert key not in two.hits
    assert one.memory.memory is None


def test_a_draft_survives_what_other_panels_do(desk: Desk, session: MemorySession) -> None:
    one, two = MemoryState(desk), MemoryState(desk)
    one.open(id_of(session, POSTGRES))
    two.open(id_of(session, POSTGRES))
    two.write("half a sentence")
    one.write("done")
    one.review()
    one.confirm()
    assert (two.text, two.draft) == ("done", "half a sentence")
    assert two.difference() == ["-done", "+half a sentence"]


def test_a_desk_keeps_no_panel_alive(desk: Desk) -> None:
    RecallState(desk)
    gc.collect()
    desk.changed()
    assert not list(desk._watchers)


def test_marked_ones_are_counted_confirmed_ended_and_restored(desk: Desk, session: MemorySession) -> None:
    """B130."""
    state = RecallState(desk)
    state.typed("deploy target")
    before = list(state.hits)
    state.attempt(state.invalidate_marked)
    assert state.failed
    state.mark(before)
    state.invalidate_marked()
    assert "5 memories would be invalidated" in state.status
    state.cancel()
    assert not state.undoable
    state.invalidate_marked()
    state.confirm()
    assert not set(before) & set(state.hits)
    assert state.status.startswith("5 memories invalidated")
    state.undo()
    assert list(state.hits) == before
    state.attempt(state.undo)
    assert state.failed


@pytest.mark.claim("L-05")
def test_every_bank_is_listed_with_its_part_and_the_reason(desk: Desk) -> None:
    rows = {row.name: (row.use, row.why) for row in BanksState(desk).rows}
    assert rows["shop-before-move"] == ("rescued", "all rows (2) come from this directory")
    assert rows["two-projects"] == ("not read", "1 of 2 rows come from another directory or name none")
    assert rows["default"][0] == "read"
    assert next(iter(rows)).startswith("shop-")


def test_another_scope_reaches_every_panel(desk: Desk) -> None:
    recall, banks, other = RecallState(desk), BanksState(desk), BanksState(desk)
    recall.typed("deploy target")
    banks.attempt(lambda: banks.switch("global"))
    assert banks.status == "Scope global: writes default, reads default."
    assert [hit.bank for hit in recall.hits.values()] == ["default"]
    assert other.scope == desk.scope == "global"
    banks.attempt(lambda: banks.switch("sideways"))
    assert banks.failed
    assert desk.scope == "global"


def test_a_reflection_keeps_its_hits(desk: Desk) -> None:
    state = ReflectState(desk)
    state.reflect("deploy target")
    assert state.text.startswith("Based on recalled memories:")
    assert len(state.hits) == 5
    state.attempt(lambda: state.reflect(" "))
    assert state.failed


def test_an_edit_of_a_memory_that_is_gone_is_an_error(desk: Desk, session: MemorySession, other: MemorySession) -> None:
    memory = MemoryState(desk)
    memory.open(id_of(session, HETZNER))
    memory.invalidate()
    other.change("forget", memory.memory.id)  # type: ignore[union-attr]
    memory.attempt(memory.confirm)
    assert memory.failed
    assert "was not found." in memory.status


@pytest.mark.claim("M-06")
def test_an_edit_names_the_summary_that_stays(tmp_path: Path) -> None:
    clock = FixedClock("2026-06-01T12:00:00.000Z")
    place = {"settings": {"mnemopi.scoping": "global"}, "agent_dir": tmp_path, "env": {}, "clock": clock}
    with open_session("mnemopi", tmp_path, tmp_path / "mnemopi.db", ids=FixedIds(), **place) as session:
        session.retain([RetainItem("The harbour opens at six."), RetainItem("The harbour closes at ten.")])
        clock.advance(13 * 3_600_000)
        consolidate_now(session)
        (summary,) = session.memories(store="episodic")["id"]
        first, second = session.memories(store="working")["id"]
        for op, given in (("update", {"content": "The harbour opens at seven."}), ("invalidate", {}), ("forget", {})):
            for dry in (True, False):
                assert session.change(op, first, dry_run=dry, **given).summaries == (summary,)  # type: ignore[arg-type]
        desk = Desk(lambda: session, lambda _: None)
        recall = RecallState(desk)
        recall.typed("harbour")
        recall.mark([key for key, hit in recall.hits.items() if hit.id == second])
        recall.invalidate_marked()
        assert f"Their summary {summary} stays and can be recalled." in recall.status
        recall.cancel()
        memory = MemoryState(desk)
        memory.open(second)
        memory.forget()
        memory.confirm()
        assert memory.status.endswith(f"Its summary {summary} stays and can be recalled.")
        whole = invalidate_all(session, session.memories(store="episodic"))
        assert (whole.count, whole.summaries) == (1, ())
        assert session.change("invalidate", summary).summaries == ()
