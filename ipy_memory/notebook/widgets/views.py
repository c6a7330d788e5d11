"""The live panels: widgets bound to a state. No ``Output`` widget; every callback ends in the status line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets

from ipy_memory.frames.escape import escaped
from ipy_memory.notebook.result import html_block, html_notes
from ipy_memory.notebook.widgets.memory import MemoryState
from ipy_memory.notebook.widgets.page import bank_table, hit_table, memory_facts, queue_table
from ipy_memory.notebook.widgets.parts import WIDE, HitTable, View, scope_box, show_scope, show_table
from ipy_memory.notebook.widgets.recall import BanksState, RecallState
from ipy_memory.notebook.widgets.retain import ReflectState, RetainState
from ipy_memory.notebook.widgets.state import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.notebook.widgets.state import PanelState

_ROW = {"flex_flow": "row wrap", **WIDE}


_ELEMENTS = {"-": "del", "+": "ins"}


class MemoryView(View[MemoryState]):
    """The memory panel; ``inside`` another one it has no box for the id and hides while no memory is open."""

    def __init__(self, state: MemoryState, *, inside: bool = False) -> None:
        super().__init__(state)
        self.inside = inside
        self.id = ipywidgets.Text(description="Id", placeholder="as recall shows it", continuous_update=False)
        self.facts = ipywidgets.HTML()
        self.text = ipywidgets.Textarea(
            description="Text", continuous_update=False, layout={"width": "auto", "height": "10em"}
        )
        self.weight = ipywidgets.BoundedFloatText(min=0, max=1, step=0.05, description="Importance")
        self.difference = ipywidgets.HTML()
        self.save = self.button("Save…", "Show what would change, then save", state.review)
        self.revert = self.button("Revert", "Throw the edit away", state.revert)
        self.end = self.button("Invalidate…", "No longer recall this memory; can be undone", lambda: state.invalidate())
        self.forget = self.button("Forget…", "Delete this memory for good", state.forget)
        self.undo = self.button("Undo", "Take the last edit back", state.undo)
        self.on_input(self.id, "value", state.open, "Reading…")
        self.on_input(self.text, "value", state.write)
        self.on_input(self.weight, "value", state.weigh)
        row = ipywidgets.HBox(
            [self.save, self.revert, self.end, self.forget, self.undo], layout={"flex_flow": "row wrap"}
        )
        self.body = ipywidgets.VBox([self.facts, self.text, self.weight, row, self.difference])
        head = [] if inside else [self.id]
        self.box.children = [*head, self.body, self.status, self.answer]
        self.redraw()

    def draw(self) -> None:
        """Show the memory, its draft, and what may be done to it."""
        state = self.state
        there = state.memory is not None or state.hit is not None
        if state.memory is not None:
            self.id.value = state.memory.id
        self.facts.value = facts_html(memory_facts(state)) if there else ""
        self.text.value = state.draft.replace("\r\n", "\n").replace("\r", "\n")
        self.text.disabled = not state.updatable
        self.weight.value = state.weight or 0.0
        self.weight.disabled = not state.updatable
        self.save.disabled = self.revert.disabled = not state.updatable
        self.forget.disabled = not state.updatable
        self.end.disabled = not state.endable
        self.undo.disabled = not state.undoable
        self.difference.value = difference_html(state.difference()) if state.question and state.memory else ""
        self.body.layout.display = None if there or state.undoable else "none"
        self.box.layout.display = None if there or state.status or not self.inside else "none"


def facts_html(facts: Sequence[tuple[str, str]]) -> str:
    """Return what is known of a memory as one flowing line."""
    shown = "".join(f"<span>{escaped(name)}: <strong>{escaped(value)}</strong></span> " for name, value in facts)
    return f'<p class="ipym-facts tex2jax_ignore mathjax_ignore">{shown}</p>'


def difference_html(lines: Sequence[str]) -> str:
    """Return a difference as HTML: what goes and what comes is marked by element and sign, not by colour alone."""
    if not lines:
        return ""
    shown = []
    for line in lines:
        element = _ELEMENTS.get(line[:1], "span")
        shown.append(f"<{element}>{escaped(line)}</{element}>")
    block = html_block("").removesuffix("</pre>")
    return f'<div class="ipym-diff">{block}{"".join(shown)}</pre></div>'


class RecallView(View[RecallState]):
    """Search, the hits, and the one that is picked."""

    def __init__(self, state: RecallState) -> None:
        super().__init__(state)
        self.query = ipywidgets.Text(
            description="Query",
            placeholder="what to look for; Enter searches",
            continuous_update=False,
            layout={"flex": "1 1 20em"},
        )
        self.search = self.button(
            "Recall", "Search memory", lambda: state.pressed(self.query.value), "Recalling…", "primary"
        )
        self.scope = scope_box(self)
        self.table = HitTable(markable=True)
        self.notes = ipywidgets.HTML()
        self.end = self.button(
            "Invalidate marked…", "No longer recall the ticked memories; can be undone", state.invalidate_marked
        )
        self.undo = self.button("Undo", "Make them valid again", state.undo)
        self.memory = MemoryView(state.memory, inside=True)
        self.on_input(self.query, "value", state.typed, "Recalling…")
        self.on_input(self.table, "selected", self._pick)
        self.on_input(self.table, "marked", state.mark)
        self.bulk = ipywidgets.HBox([self.end, self.undo], layout=_ROW)
        self.box.children = [
            ipywidgets.HBox([self.query, self.search, self.scope], layout=_ROW),
            self.table,
            self.notes,
            self.bulk,
            self.status,
            self.answer,
            self.memory.box,
        ]
        self.redraw()

    def _pick(self, key: str | None) -> None:
        if key is not None:
            self.state.select(key)

    def draw(self) -> None:
        """Show the query, the hits and the notes."""
        state = self.state
        self.query.value = state.query
        show_scope(self.scope, state.desk.scope)
        label = f"{count(len(state.hits))} recalled for {state.query}" if state.query else "no query yet"
        show_table(self.table, hit_table(state.hits, state.tz), label)
        self.table.selected = state.selected
        self.table.marked = list(state.marked)
        self.notes.value = html_notes(state.notes)
        self.end.disabled = not state.marked
        self.undo.disabled = not state.undoable
        self.bulk.layout.display = None if state.hits or state.undoable else "none"


class BanksView(View[BanksState]):
    """The scope, and every bank with its part in it."""

    def __init__(self, state: BanksState) -> None:
        super().__init__(state)
        self.scope = scope_box(self)
        self.again = self.button("Refresh", "Look at the files again", state.reread)
        self.table = HitTable()
        self.box.children = [ipywidgets.HBox([self.scope, self.again], layout=_ROW), self.status, self.table]
        self.redraw()

    def draw(self) -> None:
        """Show the scope and the banks."""
        show_scope(self.scope, self.state.scope)
        show_table(self.table, bank_table(self.state), f"{len(self.state.rows)} banks")


class RetainView(View[RetainState]):
    """A text to store, and the queue."""

    def __init__(self, state: RetainState) -> None:
        super().__init__(state)
        self.text = ipywidgets.Textarea(
            description="Text",
            placeholder="what to remember; stored as typed",
            layout={"width": "auto", "height": "6em"},
        )
        self.context = ipywidgets.Text(
            description="Context", placeholder="where it comes from (optional)", layout={"width": "auto"}
        )
        self.store = self.button("Retain", "Store the text as one memory", self._retain, "Storing…", "primary")
        self.send = self.button("Send now", "Send what waits, and again what failed", state.send, "Sending…")
        self.waiting = ipywidgets.HTML()
        self.table = HitTable()
        self.box.children = [
            self.text,
            self.context,
            ipywidgets.HBox([self.store, self.send], layout=_ROW),
            self.status,
            self.answer,
            self.waiting,
            self.table,
        ]
        self.redraw()

    def _retain(self) -> None:
        self.state.retain(self.text.value, self.context.value)
        self.text.value = ""

    def draw(self) -> None:
        """Show the queue, where there is one."""
        state = self.state
        self.send.layout.display = None if state.queues else "none"
        self.send.disabled = not state.rows
        self.waiting.value = html_notes([f"waiting to be sent: {len(state.rows)}"]) if state.queues else ""
        show_table(self.table, queue_table(state), f"{len(state.rows)} items wait")


class ReflectView(View[ReflectState]):
    """A question, its answer, and the memories behind it."""

    def __init__(self, state: ReflectState) -> None:
        super().__init__(state)
        self.query = ipywidgets.Text(description="Question", layout={"flex": "1 1 20em"})
        self.context = ipywidgets.Text(
            description="Context", placeholder="more to consider (optional)", layout={"width": "auto"}
        )
        self.reflect = self.button("Reflect", "Answer from memory", self._ask, "Reflecting…", "primary")
        self.answered = ipywidgets.HTML()
        self.table = HitTable()
        self.box.children = [
            ipywidgets.HBox([self.query, self.reflect], layout=_ROW),
            self.context,
            self.status,
            self.answered,
            self.table,
        ]
        self.query.value, self.context.value = state.query, state.context
        self.redraw()

    def _ask(self) -> None:
        self.state.reflect(self.query.value, self.context.value)

    def draw(self) -> None:
        """Show the answer and its hits."""
        self.answered.value = html_block(self.state.text) if self.state.text else ""
        show_table(
            self.table, hit_table(self.state.hits, self.state.tz), f"{count(len(self.state.hits))} behind the answer"
        )


_VIEWS: dict[type, Any] = {
    RecallState: RecallView,
    BanksState: BanksView,
    MemoryState: MemoryView,
    RetainState: RetainView,
    ReflectState: ReflectView,
}


def view(state: PanelState) -> View[Any]:
    """Return the live form of a panel."""
    made: View[Any] = _VIEWS[type(state)](state)
    return made
