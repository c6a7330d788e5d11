"""A panel as a value: a live widget where one can live, the same data as text and HTML everywhere."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ipy_memory.notebook.frontend import somebody_there
from ipy_memory.notebook.widgets.page import page

if TYPE_CHECKING:
    from collections.abc import Collection

    from ipy_memory.notebook.widgets.state import PanelState

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Panel:
    """One panel; shown by being a cell's value.

    Parameters
    ----------
    state
        What it shows and does; usable without any front end.
    static
        ``True`` leaves the widget out, ``False`` shows it wherever its libraries are there; by default it is shown
        where the user can answer: not in a terminal, and not in a notebook that is run by a program.
    """

    def __init__(self, state: PanelState, *, static: bool | None = None) -> None:
        self.state = state
        self.static = static
        self._widget: Any = None

    def __repr__(self) -> str:
        return page(self.state)[0]

    @property
    def widget(self) -> Any:
        """The live form, for use in one's own layout."""
        if self._widget is None:
            from ipy_memory.notebook.widgets.views import view

            self._widget = view(self.state)
        return self._widget

    @property
    def live(self) -> bool:
        """Whether the live form is shown."""
        if self.static or not _libraries():
            return False
        return self.static is False or somebody_there()

    def close(self) -> None:
        """Take the live form away."""
        if self._widget is not None:
            self._widget.close()
            self._widget = None

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        text, html = page(self.state)
        shown: dict[str, Any] = {"text/plain": text, "text/html": html}
        if self.live:
            shown[WIDGET_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return {
            kind: data
            for kind, data in shown.items()
            if (not include or kind in include) and (not exclude or kind not in exclude)
        }


def _libraries() -> bool:
    return all(find_spec(name) is not None for name in ("ipywidgets", "anywidget"))
