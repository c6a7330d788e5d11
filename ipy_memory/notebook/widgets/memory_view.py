"""One memory, live: its whole text in a box, the difference before it is saved, and one step back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets

from ipy_memory.frames.escape import escaped
from ipy_memory.notebook.result import html_block
from ipy_memory.notebook.widgets.memory_state import MemoryState
from ipy_memory.notebook.widgets.page import memory_facts
from ipy_memory.notebook.widgets.parts import View

if TYPE_CHECKING:
    from collections.abc import Sequence

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
