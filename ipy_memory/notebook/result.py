"""What the magics give back: frames and texts that show as the exact text, and as safe HTML.

Memory text is data: in HTML it is escaped, and characters that steer a terminal or the direction of text are shown,
not obeyed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ipy_memory.frames.escape import escaped, visible
from ipy_memory.frames.safe import SafeFrame, safe
from ipy_memory.frames.tabular import cell, short, text_table
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.notebook.frontend import displayed, is_terminal, write_below

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import ToolResult

SHOWN = 500
"""How many rows of a list are shown at most; a front end takes seconds for thousands."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d)?", re.ASCII)
_WIDE = ("content", "memory", "text", "best hit")
"""Columns that are read, not looked up: they keep a width that can be read in."""

_RECALL_TABLE = ("id", "date", "score", "source", "bank", "tier", "type", "length")
_RETAIN_TABLE = ("id", "bank", "state", "context")


def plain(text: str) -> str:
    """Return text exactly as it is; for a terminal, which would obey them, with steering characters shown."""
    return visible(text) if is_terminal() else js.well_formed(text)


def html_block(text: str) -> str:
    """Return text as a preformatted block that keeps its lines, wraps, and is left alone by formula renderers."""
    style = "margin: 0 0 0.5em; white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; text-align: left"
    return f'<pre class="tex2jax_ignore mathjax_ignore" style="{style}">{escaped(text)}</pre>'


def html_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of text as a table."""
    head = "".join(
        f'<th scope="col" style="text-align: left{"; min-width: 12em" if header in _WIDE else ""}">'
        f"{escaped(header)}</th>"
        for header in headers
    )
    body = "".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in rows)
    return (
        f'<table class="dataframe tex2jax_ignore mathjax_ignore"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _html_cell(text: str) -> str:
    whole = "; white-space: nowrap" if _DATE.fullmatch(text) else ""
    return f'<td style="text-align: left{whole}">{escaped(text)}</td>'


def html_notes(notes: Sequence[str]) -> str:
    """Return notes for the user as small paragraphs."""
    return "".join(f"<p><small>{escaped(note)}</small></p>" for note in notes)


class _ShownFrame(SafeFrame):
    """A frame that shows as the exact text of the call behind it; what is made from it has no text and is not shown so.

    Attributes
    ----------
    text : str
        The exact text of the whole result.
    """

    def __init__(self, data: DataFrame, text: str, *, quiet: bool = False) -> None:
        super().__init__(data)  # type: ignore[call-arg]
        self.attrs = dict(data.attrs)
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_quiet", quiet)

    def __reduce__(self) -> Any:
        # Files get the rows alone: no text that nobody sees in them.
        rows = SafeFrame(self)
        rows.attrs = dict(self.attrs)
        return safe, (rows,)

    @property
    def text(self) -> str:
        """The exact text of the whole result."""
        return str(object.__getattribute__(self, "_text"))

    @property
    def quiet(self) -> bool:
        """Whether a closing ``;`` asked for no display."""
        return bool(object.__getattribute__(self, "_quiet"))

    def _ipython_display_(self) -> None:
        if self.quiet:
            return
        # Raising hands the display back to the bundle below.
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        notes = [*self.attrs.get("notes", ()), *_cut(self)]
        return bundle(self.text, self._html_table(), notes)

    def _beginning(self) -> list[dict[Any, Any]]:
        return self.head(SHOWN).to_dict("records")

    def _html_table(self) -> str:
        raise NotImplementedError


class RecallFrame(_ShownFrame):
    """The hits of a recall: a DataFrame that shows as the exact text the agent sees."""

    def _html_table(self) -> str:
        shown = [
            {
                **row,
                "date": short(row["date"]),
                "score": "" if row["score"] != row["score"] else f"{row['score']:.4f}",
                "length": f"{row['full_length']}, cut" if row["truncated"] else row["full_length"],
            }
            for row in self._beginning()
        ]
        explained = ("reason",) if "reason" in self.columns else ()
        return _filled_table((*_RECALL_TABLE, *explained), shown)


class RetainFrame(_ShownFrame):
    """What became of the items of a retain: a DataFrame that shows as the exact text."""

    def _html_table(self) -> str:
        return _filled_table(_RETAIN_TABLE, self._beginning())


class ListFrame(_ShownFrame):
    """Rows of any kind: a DataFrame that shows some of its columns as a table, and what should be known of them.

    Parameters
    ----------
    data
        The rows.
    columns
        Those to show; columns without any value are left out.
    shown
        The same rows as they are to be shown, where that differs.
    notes
        Sentences for the user, below the table.
    empty
        What to say when there are no rows.
    first
        Positions of the rows that matter most; they are shown where there are too many to show all.
    summary
        A sentence above the table.
    """

    def __init__(
        self,
        data: DataFrame,
        columns: Sequence[str],
        *,
        shown: DataFrame | None = None,
        notes: Sequence[str] = (),
        empty: str = "Nothing to list.",
        quiet: bool = False,
        first: Sequence[int] = (),
        summary: str = "",
    ) -> None:
        rows = data if shown is None else shown
        if len(rows) > SHOWN:
            notes = [*notes, *_cut(rows)]
            rows = rows.iloc[list(first)[:SHOWN] or slice(SHOWN)]
        filled = [name for name in columns if any(cell(value) for value in rows[name])]
        cells = [[short(row[name]) for name in filled] for row in rows[filled].to_dict("records")]
        table = text_table(cells, filled) if filled else empty
        above = [summary] if summary else []
        super().__init__(data, "\n".join([*above, table, *notes]), quiet=quiet)
        self.attrs["notes"] = list(notes)
        shown_table = html_table(filled, cells) if filled else html_block(empty)
        object.__setattr__(self, "_shown", html_notes(above) + shown_table)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        html = object.__getattribute__(self, "_shown") + html_notes(self.attrs["notes"])
        return {"text/plain": displayed(visible(self.text)), "text/html": html}


class TextResult:
    """A text to show, with a frame behind it where there is one.

    Parameters
    ----------
    text
        The exact text; ``str()`` gives it back.
    frame
        The rows behind the text.
    table
        An HTML table to show below the text.
    notes
        Sentences for the user; shown in HTML only.
    attrs
        Where the text came from.
    """

    def __init__(
        self,
        text: str,
        *,
        frame: DataFrame | None = None,
        table: str = "",
        notes: Sequence[str] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        self.text = text
        self.frame = frame
        self.notes = tuple(notes)
        self.attrs = dict(attrs or {})
        self.quiet = False
        self._table = table

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return js.well_formed(self.text)

    def _ipython_display_(self) -> None:
        if not self.quiet:
            raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return bundle(self.text, self._table, self.notes)


class ReflectResult(TextResult):
    """The answer of a reflect: shows as the exact text; ``frame`` holds the hits it was made from."""

    def __init__(self, result: ToolResult, frame: DataFrame) -> None:
        super().__init__(result.text, frame=frame, notes=result.notes, attrs=result.attrs)


class TableResult(TextResult):
    """Rows of text: an aligned plain text, an HTML table, and (when asked for) a frame.

    ``dates`` names columns of stored times, which are shown to the minute.
    """

    def __init__(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        dates: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> None:
        shown = [
            [shown_stamp(cell, None) if header in dates else cell for header, cell in zip(headers, row, strict=True)]
            for row in rows
        ]
        text = "\n".join([text_table(shown, headers), *notes])
        super().__init__(text, table=html_table(headers, shown), notes=notes)
        self.headers = tuple(headers)
        self.rows = [tuple(row) for row in rows]
        self.frame = SafeFrame(self.rows, columns=list(headers))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": displayed(plain(self.text)), "text/html": self._table + html_notes(self.notes)}


def bundle(text: str, table: str, notes: Sequence[str]) -> dict[str, str]:
    """Return the display of an exact text: plain, and as HTML with a table and notes below it.

    Where no HTML is shown the notes follow on stderr.
    """
    write_below(notes)
    return {"text/plain": displayed(plain(text)), "text/html": html_block(text) + table + html_notes(notes)}


def _cut(data: DataFrame) -> list[str]:
    """Say that not all rows are shown, where it is so."""
    return [f"Shown are {SHOWN} rows; the frame has all {len(data)}."] if len(data) > SHOWN else []


def _filled_table(columns: Sequence[str], rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return the columns that have a value anywhere; no table without rows."""
    cells = [[cell(row[column]) for column in columns] for row in rows]
    filled = [index for index in range(len(columns)) if any(row[index] for row in cells)]
    if not filled:
        return ""
    return html_table([columns[i] for i in filled], [[row[i] for i in filled] for row in cells])
