"""Styled frames whose text is never markup: what ``SafeFrame.style`` gives. It needs jinja2, as pandas does."""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pandas.io.formats.style import Styler

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.frames.escape import css_text, escaped, escaped_value, latex_text, typst_text, visible
from ipy_memory.frames.files import CONTAINERS, for_workbook, write_workbook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pandas import DataFrame

_ESCAPE: ContextVar[Callable[[str], str]] = ContextVar("escape", default=escaped)
"""What makes a harmless text of memory text, in the format that is rendered now."""


_WITH_BACKSLASHES = (latex_text, typst_text)


class _Label(str):
    """A label that a user gives in place of another one; pandas lets it hold ``{}`` for that one."""

    __slots__ = ()

    def format(self, *given: Any, **named: Any) -> str:
        """Fill the label in and escape it for the format that is rendered."""
        try:
            written = super().format(*given, **named)
        except (LookupError, ValueError, AttributeError):  # braces that are text
            written = str(self)
        return _ESCAPE.get()(written)


def _label(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(_label, value))
    return _Label(value) if isinstance(value, str) else value


class SafeStyler(Styler):
    """A Styler that shows memory text as text: in cells, labels, names, captions, tool tips, classes and style sheets.

    Values reach a formatter escaped for the format that is rendered, so markup that a formatter itself adds stays
    markup.
    """

    def format(self, *given: Any, **named: Any) -> Any:
        """Format values as pandas does; they are escaped in any case."""
        return super().format(*given, **named | {"escape": None})

    def format_index(self, *given: Any, **named: Any) -> Any:
        """Format labels as pandas does; they are escaped in any case."""
        return super().format_index(*given, **named | {"escape": None})

    def relabel_index(self, labels: Any, *given: Any, **named: Any) -> Any:
        """Relabel as pandas does; labels are escaped."""
        return super().relabel_index([_label(label) for label in labels], *given, **named)

    def concat(self, other: Styler) -> Any:
        """Append another styled frame as pandas does.

        Raises
        ------
        MemoryToolkitError
            The other one is not of this class: its text would be markup.
        """
        if not isinstance(other, SafeStyler):
            raise MemoryToolkitError(
                "The text of a Styler of pandas would be markup.", hint="append ipy_memory.safe(frame).style instead"
            )
        return super().concat(other)

    def set_tooltips(self, ttips: DataFrame, *given: Any, **named: Any) -> Styler:
        """Show tool tips as pandas does, their text escaped."""
        as_title = named.get("as_title_attribute", False)
        return super().set_tooltips(ttips.map(escaped_cell if as_title else _in_style_sheet), *given, **named)

    def set_td_classes(self, classes: DataFrame) -> Styler:
        """Set classes of cells as pandas does, escaped."""
        return super().set_td_classes(classes.map(escaped_cell))

    def set_uuid(self, uuid: str) -> Styler:
        """Set the name that ids begin with as pandas does; what cannot be part of an id is replaced by ``_``."""
        return super().set_uuid(re.sub(r"[^\w-]", "_", uuid))

    def to_excel(  # type: ignore[override]
        self, excel_writer: Any, sheet_name: str = "Sheet1", **named: Any
    ) -> None:
        """Write the styled frame to a workbook as :meth:`SafeFrame.to_excel` does."""
        kept: Any = self.data  # type: ignore[has-type]
        self.data = for_workbook(kept)
        try:
            write_workbook(super().to_excel, excel_writer, sheet_name, **named)
        finally:
            self.data = kept

    def _render_latex(self, *given: Any, **named: Any) -> Any:
        with _escaping(latex_text):
            return super()._render_latex(*given, **named)  # type: ignore[misc]

    def _render_typst(self, *given: Any, **named: Any) -> Any:
        with _escaping(typst_text):
            return super()._render_typst(*given, **named)  # type: ignore[misc]

    def _render_string(self, *given: Any, **named: Any) -> Any:
        with _escaping(visible):
            return super()._render_string(*given, **named)  # type: ignore[misc]

    def _translate(self, *given: Any, **named: Any) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in _DISPLAY if hasattr(self, name)}
        try:
            for name, functions in kept.items():
                setattr(self, name, _Escaping(functions))
            made: dict[str, Any] = super()._translate(*given, **named)  # type: ignore[misc]
        finally:
            for name, functions in kept.items():
                setattr(self, name, functions)
        if len(kept) < len(_DISPLAY):
            _escape_names(made)
        _escape_style_sheet(made)
        made["caption"] = escaped_value(made["caption"], _ESCAPE.get()) if made.get("caption") else made.get("caption")
        return made


@contextmanager
def _escaping(escape: Callable[[str], str]) -> Iterator[None]:
    """Escape memory text in a way of its own; also in the frames that stand below another one."""
    token = _ESCAPE.set(escape)
    try:
        yield
    finally:
        _ESCAPE.reset(token)


_DISPLAY = (
    "_display_funcs",
    "_display_funcs_index",
    "_display_funcs_columns",
    "_display_funcs_index_names",
    "_display_funcs_column_names",
)
"""Where a Styler keeps what makes a text of a value; the last two are there since pandas 3."""


class _Escaping:
    """The display functions of a Styler, each given its value escaped."""

    def __init__(self, functions: Mapping[Any, Callable[[Any], Any]]) -> None:
        self._functions = functions

    def __getitem__(self, place: Any) -> Callable[[Any], Any]:
        function = self._functions[place]
        return lambda value: function(_harmless(value))


def _harmless(value: Any) -> Any:
    """Return a value escaped for the format that is rendered now."""
    escape = _ESCAPE.get()
    if escape in _WITH_BACKSLASHES and isinstance(value, CONTAINERS):
        value = str(value)  # printed afterwards, its texts would have each backslash twice
    return escaped_value(value, escape)


def _escape_names(made: dict[str, Any]) -> None:
    """Escape the names of levels, which pandas before 3 shows without any display function."""
    for cell in (cell for row in made.get("head", ()) for cell in row):
        shown = cell.get("display_value")
        if "index_name" in str(cell.get("class")) and isinstance(shown, str) and shown != "&nbsp;":
            cell["display_value"] = _ESCAPE.get()(shown)


def _escape_style_sheet(made: dict[str, Any]) -> None:
    """Let nothing in a style sheet end the style element."""
    for part in ("cellstyle", "cellstyle_index", "cellstyle_columns", "table_styles"):
        for rule in made.get(part) or ():
            rule["props"] = [(_css(name), _css(value)) for name, value in rule["props"]]
            if "selector" in rule:
                rule["selector"] = _css(rule["selector"])


def _css(value: Any) -> Any:
    return value.replace("<", "\\00003c") if isinstance(value, str) else value


def escaped_cell(value: Any) -> Any:
    """Return the text of a cell as escaped HTML; missing values stay missing."""
    return escaped(value) if isinstance(value, str) else value


def _in_style_sheet(value: Any) -> Any:
    return css_text(value) if isinstance(value, str) else value
