"""What every live panel is made of: guarded callbacks, buttons that rest while work is under way, yes and no."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anywidget
import ipywidgets
import traitlets

from ipy_memory.notebook.progress import Pulse, clock
from ipy_memory.settings.table import SCOPINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.notebook.widgets.page import Table
    from ipy_memory.notebook.widgets.state import PanelState

_State = TypeVar("_State", bound="PanelState")

WIDE = {"width": "100%"}


class View(Generic[_State]):
    """The base of the live panels: a box bound to a state.

    A view makes its widgets in ``__init__``, puts them into ``self.box`` and shows the state in :meth:`draw`.
    """

    def __init__(self, state: _State) -> None:
        self.state = state
        self.status = StatusLine()
        self.box = ipywidgets.VBox(layout={**WIDE, "overflow": "visible"})
        self.yes = ipywidgets.Button(button_style="warning", tooltip="Do it")
        self.no = ipywidgets.Button(description="Cancel", tooltip="Leave everything as it is")
        self.answer = ipywidgets.HBox([self.yes, self.no])
        self.buttons: list[Any] = [self.yes, self.no]
        self._drawing = False
        self.on_click(self.yes, state.confirm, "Working…")
        self.on_click(self.no, state.cancel)
        state.on_change = self.redraw

    @property
    def model_id(self) -> str:
        """Id of the widget that a front end shows."""
        return str(self.box.model_id)

    def draw(self) -> None:
        """Show the state."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Show the state, with its status and its question; what is set here is no input."""
        self._drawing = True
        try:
            try:
                self.draw()
            except Exception as error:  # noqa: BLE001  a callback's error would be seen by nobody
                self.state.status, self.state.failed = f"{type(error).__name__}: {error}", True
            self.status.set_trait("text", self.state.status)
            self.status.set_trait("failed", self.state.failed)
            question = self.state.question
            self.yes.description = question.yes if question else ""
            self.answer.layout.display = None if question else "none"
        finally:
            self._drawing = False

    def run(self, action: Callable[[], None], busy: str = "") -> None:
        """Carry an action out; buttons rest meanwhile, and a clock runs where it takes longer than a moment."""
        if busy:
            self.status.set_trait("text", busy)
            self.status.set_trait("failed", False)
        resting = [button for button in self.buttons if not button.disabled]
        for button in resting:
            button.disabled = True
        try:
            with Pulse(lambda seconds: self.status.set_trait("clock", clock(seconds))):
                self.state.attempt(action)
        finally:
            self.status.set_trait("clock", "")
            for button in resting:
                button.disabled = False
            self.redraw()

    def button(
        self, label: str, tooltip: str, action: Callable[[], None], busy: str = "Working…", style: str = ""
    ) -> Any:
        """Return a button that carries an action out."""
        made = ipywidgets.Button(
            description=label, tooltip=tooltip, button_style=style, layout={"width": "auto", "min_width": "7em"}
        )
        self.buttons.append(made)
        self.on_click(made, action, busy)
        return made

    def on_click(self, button: Any, action: Callable[[], None], busy: str = "") -> None:
        """Carry an action out when a button is pressed."""
        button.on_click(lambda _: self.run(action, busy))

    def on_input(self, widget: Any, trait: str, action: Callable[[Any], None], busy: str = "") -> None:
        """Carry an action out when the user changes a value; not when the panel itself does."""

        def changed(change: Any) -> None:
            if not self._drawing:
                self.run(lambda: action(change["new"]), busy)

        widget.observe(changed, trait)

    def close(self) -> None:
        """Take the panel away."""
        self.state.on_change = lambda: None
        _close(self.box)


def scope_box(view: View[Any]) -> Any:
    """Return the choice of the scoping mode; :func:`show_scope` draws it."""
    box = ipywidgets.Dropdown(
        options=SCOPINGS, value=None, description="Scope", tooltip="Which banks are written and read"
    )
    view.on_input(box, "value", view.state.switch, "Going over…")
    return box


def show_scope(box: Any, scope: str) -> None:
    """Show the scoping mode in force."""
    box.value = scope or None
    box.disabled = not scope


def show_table(widget: HitTable, table: Table, label: str) -> None:
    """Put a table into its widget, in one message."""
    with widget.hold_sync():
        widget.set_trait("label", label)
        widget.set_trait("columns", [dict(column) for column in table.columns])
        widget.set_trait("rows", [dict(row) for row in table.rows])


def _close(widget: Any) -> None:
    for child in getattr(widget, "children", ()):
        _close(child)
    widget.close()


_HERE = Path(__file__).parent


class HitTable(anywidget.AnyWidget):
    """A table whose rows are picked by key, with the mouse or the keyboard.

    Attributes
    ----------
    columns : list of dict
        ``name``, ``label``, and ``digits`` for a number or ``wide`` for a long text.
    rows : list of dict
        ``key`` and a value for each column.
    selected : str or None
        Key of the row that was picked last.
    marked : list of str
        Keys of the rows whose box is ticked; there are boxes where ``markable``.
    """

    _esm = _HERE / "hits.js"
    _css = _HERE / "hits.css"
    columns = traitlets.List(traitlets.Dict()).tag(sync=True)
    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    marked = traitlets.List(traitlets.Unicode()).tag(sync=True)
    markable = traitlets.Bool(False).tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)


class StatusLine(anywidget.AnyWidget):
    """One line of text that announces itself; ``clock``, beside it, is only seen."""

    _esm = _HERE / "status.js"
    _css = _HERE / "status.css"
    text = traitlets.Unicode("").tag(sync=True)
    failed = traitlets.Bool(False).tag(sync=True)
    clock = traitlets.Unicode("").tag(sync=True)
