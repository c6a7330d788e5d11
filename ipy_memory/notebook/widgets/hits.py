"""Two small widgets of our own: the table of memories and the status line."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

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
