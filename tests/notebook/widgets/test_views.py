"""The live panels without a browser: ``set_state`` is what a front end sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets
import pytest

from ipy_memory.model import Failure, Receipt
from ipy_memory.notebook.widgets.memory import MemoryState
from ipy_memory.notebook.widgets.parts import View
from ipy_memory.notebook.widgets.recall import BanksState, RecallState
from ipy_memory.notebook.widgets.retain import ReflectState, RetainState
from ipy_memory.notebook.widgets.views import BanksView, MemoryView, RecallView, ReflectView, RetainView, view
from tests.notebook.widgets.conftest import HETZNER, POSTGRES, id_of

if TYPE_CHECKING:
    from ipy_memory.notebook.widgets.session_hub import Desk
    from ipy_memory.session import MemorySession

STATES = [RecallState, BanksState, MemoryState, RetainState, ReflectState]


def within(widget: Any) -> list[Any]:
    """Return a widget and everything in it."""
    return [widget, *(one for child in getattr(widget, "children", ()) for one in within(child))]


@pytest.mark.parametrize("state", STATES)
def test_no_panel_has_an_output_widget_and_every_control_a_name(desk: Desk, state: Any) -> None:
    """B108."""
    widgets = within(view(state(desk)).box)
    assert not any(isinstance(one, ipywidgets.Output) for one in widgets)
    for one in widgets:
        if isinstance(one, ipywidgets.Text | ipywidgets.Textarea | ipywidgets.Dropdown | ipywidgets.BoundedFloatText):
            assert one.description
    buttons = [one for one in widgets if isinstance(one, ipywidgets.Button)]
    assert all(one.tooltip for one in buttons)


def test_search_pick_edit_and_save(desk: Desk, session: MemorySession) -> None:
    panel = RecallView(RecallState(desk))
    panel.query.set_state({"value": "postgres"})
    key = id_of(session, POSTGRES)
    assert key in [row["key"] for row in panel.table.rows]
    assert panel.status.text.startswith("Found ")
    panel.table.set_state({"selected": key})
    inner = panel.memory
    assert inner.text.value == POSTGRES
    assert inner.box.layout.display is None
    inner.text.set_state({"value": "edited"})
    inner.save.click()
    assert "<ins>+edited</ins>" in inner.difference.value
    assert inner.yes.description == "Save"
    assert inner.answer.layout.display is None
    inner.yes.click()
    assert session.memory(key).content == "edited"
    assert inner.answer.layout.display == "none"
    assert inner.difference.value == ""
    inner.undo.click()
    assert inner.text.value == POSTGRES


def test_an_error_in_a_callback_is_in_the_status_line_and_buttons_come_back(
    desk: Desk, session: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = RecallView(RecallState(desk))

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(session, "recall", broken)
    panel.query.set_state({"value": "x"})
    panel.search.click()
    assert (panel.status.text, panel.status.failed) == ("ZeroDivisionError: oh", True)
    assert not panel.search.disabled


def test_an_error_while_drawing_is_in_the_status_line(desk: Desk) -> None:
    class Broken(View[BanksState]):
        def draw(self) -> None:
            raise KeyError("column")

    panel = Broken(BanksState(desk))
    panel.redraw()
    assert (panel.status.text, panel.status.failed) == ("KeyError: 'column'", True)


def test_buttons_rest_while_a_search_runs(desk: Desk, session: MemorySession, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = RecallView(RecallState(desk))
    seen = []
    recall = session.recall

    def watched(query: str, **options: Any) -> Any:
        seen.append((panel.search.disabled, panel.status.text))
        return recall(query, **options)

    monkeypatch.setattr(session, "recall", watched)
    panel.query.set_state({"value": "deploy"})
    assert seen == [(True, "Recalling…")]
    assert not panel.search.disabled


def test_marks_and_bulk_edits(desk: Desk) -> None:
    panel = RecallView(RecallState(desk))
    panel.query.set_state({"value": "deploy target"})
    assert panel.end.disabled
    keys = [row["key"] for row in panel.table.rows[:2]]
    panel.table.set_state({"marked": keys})
    panel.end.click()
    assert panel.yes.description == "Invalidate 2"
    panel.no.click()
    assert panel.answer.layout.display == "none"
    panel.end.click()
    panel.yes.click()
    assert not set(keys) & {row["key"] for row in panel.table.rows}
    panel.undo.click()
    assert keys == [row["key"] for row in panel.table.rows[:2]]


def test_the_scope_is_chosen_and_followed(desk: Desk) -> None:
    panel, other = BanksView(BanksState(desk)), RecallView(RecallState(desk))
    panel.scope.set_state({"index": panel.scope.options.index("per-project")})
    assert panel.status.text.startswith("Scope per-project: writes shop-")
    assert other.scope.value == "per-project"


def test_a_memory_is_opened_by_its_id(desk: Desk, session: MemorySession) -> None:
    panel = MemoryView(MemoryState(desk))
    assert panel.body.layout.display == "none"
    panel.id.set_state({"value": "nonsense"})
    assert panel.status.failed
    panel.id.set_state({"value": f"memory://{id_of(session, HETZNER)}"})
    assert panel.text.value == HETZNER
    assert not panel.text.disabled
    panel.end.click()
    panel.yes.click()
    assert panel.end.disabled
    assert "invalid since" in panel.facts.value


def test_what_is_typed_is_retained(desk: Desk, session: MemorySession) -> None:
    panel = RetainView(RetainState(desk))
    panel.store.click()
    assert panel.status.failed
    panel.text.set_state({"value": "  The build takes nine minutes.  "})
    panel.context.set_state({"value": "measured"})
    panel.store.click()
    assert panel.status.text == "1 memory stored."
    assert panel.text.value == ""
    assert panel.send.layout.display == "none"
    found = [hit.content for hit in session.recall("the build takes nine minutes", touch=False).hits]
    assert "  The build takes nine minutes.  " in found


@pytest.mark.claim("N-03")
def test_private_parts_are_left_out_and_a_credential_stays_in_the_box(desk: Desk) -> None:
    panel = RetainView(RetainState(desk))
    panel.text.set_state({"value": "a lighthouse <private>at home</private>"})
    panel.store.click()
    assert panel.status.text == "1 memory stored. 1 private part was left out."
    panel.text.set_state({"value": "password=hunter2-and-more"})
    panel.store.click()
    assert panel.status.failed
    assert "%retain --redact" in panel.status.text
    assert panel.text.value == "password=hunter2-and-more"


@pytest.mark.claim("T-06")
def test_what_was_not_stored_is_an_error_and_stays_in_the_box(
    desk: Desk, session: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Receipt(1, "shop", "stored", (None,), (Failure(0, "x", OSError("disk full")),))
    monkeypatch.setattr(session.backend, "retain", lambda _: failed)
    panel = RetainView(RetainState(desk))
    panel.text.set_state({"value": "x"})
    panel.store.click()
    assert panel.status.failed
    assert "1 of 1 memories were not stored in bank shop: disk full" in panel.status.text
    assert panel.text.value == "x"


def test_a_question_is_answered(desk: Desk) -> None:
    panel = ReflectView(ReflectState(desk))
    panel.query.set_state({"value": "deploy target"})
    panel.reflect.click()
    assert "Top Facts" in panel.answered.value
    assert len(panel.table.rows) == 5


def test_closing_takes_every_widget_away(desk: Desk) -> None:
    panel = view(RecallState(desk))
    widgets = within(panel.box)
    bystander = ipywidgets.Button(description="x")
    panel.close()
    assert all(one.comm is None for one in widgets)
    assert bystander.comm is not None
