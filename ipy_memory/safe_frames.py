"""DataFrames whose text is never markup: displayed, styled, and whatever pandas makes of them.

The values themselves are unchanged. What is taken out of these classes by hand (``pandas.DataFrame(frame)``, another
table library) is plain pandas again; :func:`safe` guards such a frame.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NoReturn

from pandas import DataFrame, Series
from pandas.io.formats.style import Styler

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.escape import css_text, escaped, escaped_page, escaped_value, latex_text, visible
from ipy_memory.frame_files import CONTAINERS, flat, for_workbook, write_workbook

_ESCAPE: ContextVar[Callable[[str], str]] = ContextVar("escape", default=escaped)
"""What makes a harmless text of memory text, in the format that is rendered now."""

# These make plain pandas objects even of a subclass.
_FRAME_METHODS = ("describe", "value_counts", "mode", "corr", "cov", "apply", "agg", "aggregate", "map")
_SERIES_METHODS = ("describe", "value_counts", "mode", "apply", "agg", "aggregate", "map")
_ACCESSORS = ("str", "cat", "dt", "list", "struct", "sparse")


def safe(data: Any) -> Any:
    """Return a pandas object as one whose text is never markup.

    Parameters
    ----------
    data
        A DataFrame or Series; anything else is returned as it is.

    Returns
    -------
    SafeFrame or SafeSeries
        The same values, not copied; ``attrs`` are kept.

    Examples
    --------
    >>> import pandas, ipy_memory
    >>> frame = pandas.DataFrame({"content": ["<b>bold</b>"]})
    >>> "&lt;b&gt;" in ipy_memory.safe(frame).style.to_html()
    True
    """
    for plain, kind in ((DataFrame, SafeFrame), (Series, SafeSeries)):
        if isinstance(data, plain) and not isinstance(data, kind):
            made = kind(data)
            made.attrs = dict(data.attrs)
            return made
    return data


def _keeping_safe(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of pandas return a safe object."""

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        return safe(method(*given, **named))

    return call


class _SafeAccessor:
    """An accessor of a column, such as ``.str``, all of whose results are safe objects."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._plain, name)
        return _keeping_safe(found) if callable(found) else safe(found)

    def __getitem__(self, key: Any) -> Any:
        return safe(self._plain[key])

    def __dir__(self) -> list[str]:
        return dir(self._plain)


def _accessor(kind: Any) -> property:
    return property(lambda series: _SafeAccessor(kind(series)), doc="The accessor of pandas, whose results are safe.")


class SafeSeries(Series):
    """A column of a :class:`SafeFrame`: printed with steering characters shown, and a frame again if widened."""

    @property
    def _constructor(self) -> Callable[..., Series]:
        return SafeSeries

    @property
    def _constructor_expanddim(self) -> Callable[..., DataFrame]:
        return SafeFrame

    def __repr__(self) -> str:
        return visible(super().__repr__())

    def to_string(self, *given: Any, **named: Any) -> Any:
        """Return the column as text, with steering characters shown by number; a file gets it as it is stored."""
        return _shown(super().to_string(*given, **named))

    def to_latex(self, *given: Any, **named: Any) -> Any:
        """Write the column as :meth:`SafeFrame.to_latex` does."""
        return self.to_frame().to_latex(*given, **named)

    def to_excel(self, *given: Any, **named: Any) -> None:  # type: ignore[misc]
        """Write the column as :meth:`SafeFrame.to_excel` does."""
        self.to_frame().to_excel(*given, **named)

    def to_sql(self, *given: Any, **named: Any) -> int | None:  # type: ignore[misc]
        """Write the column as :meth:`SafeFrame.to_sql` does."""
        return self.to_frame().to_sql(*given, **named)


class SafeFrame(DataFrame):
    """A DataFrame whose text is never markup in a display, and neither is what pandas makes of it."""

    @property
    def _constructor(self) -> Callable[..., DataFrame]:
        return SafeFrame

    @property
    def _constructor_sliced(self) -> Callable[..., Series]:
        return SafeSeries

    def __repr__(self) -> str:
        return visible(super().__repr__())

    def _repr_html_(self) -> str | None:
        shown = super()._repr_html_()  # type: ignore[misc]
        return None if shown is None else escaped_page(shown)

    @property
    def style(self) -> Styler:
        """The frame to be styled: every text of it is escaped, whatever formats are chained to it."""
        return SafeStyler(self, na_rep="")

    def to_html(self, buf: Any = None, **named: Any) -> Any:
        """Render the frame as HTML as pandas does.

        Raises
        ------
        MemoryToolkitError
            ``escape=False`` or ``render_links=True``: memory text would become markup.
        """
        if named.get("escape") is False or named.get("render_links"):
            _refuse("escape=False and render_links=True")
        for name in {"table_id", "classes"} & named.keys():
            named[name] = escaped_value(named[name])
        return super().to_html(buf, **named)

    def to_latex(self, buf: Any = None, *, escape: bool | None = True, **named: Any) -> Any:
        """Render the frame as LaTeX as pandas does; texts are escaped unless ``escape`` is false."""
        shown = self.map(_texts_of_containers) if escape else self
        return DataFrame(shown).to_latex(buf, escape=escape, **named)

    def to_string(self, *given: Any, **named: Any) -> Any:
        """Return the frame as text, with steering characters shown by number; a file gets it as it is stored."""
        return _shown(super().to_string(*given, **named))

    def to_excel(self, excel_writer: Any, sheet_name: str = "Sheet1", **named: Any) -> None:  # type: ignore[misc]
        """Write the frame to a workbook as pandas does: times in UTC, containers as JSON, no text as a formula."""
        write_workbook(DataFrame(for_workbook(self)).to_excel, excel_writer, sheet_name, **named)

    def to_sql(self, *given: Any, **named: Any) -> int | None:  # type: ignore[misc]
        """Write the frame to a table as pandas does, containers as JSON."""
        return DataFrame(flat(self, CONTAINERS)).to_sql(*given, **named)

    def to_parquet(self, *given: Any, **named: Any) -> Any:
        """Write the frame to a Parquet file as pandas does, mappings as JSON."""
        return DataFrame(flat(self, Mapping)).to_parquet(*given, **named)

    def to_feather(self, *given: Any, **named: Any) -> None:
        """Write the frame to a Feather file as pandas does, mappings as JSON."""
        DataFrame(flat(self, Mapping)).to_feather(*given, **named)


for _name in _FRAME_METHODS:
    setattr(SafeFrame, _name, _keeping_safe(getattr(DataFrame, _name)))
for _name in _SERIES_METHODS:
    setattr(SafeSeries, _name, _keeping_safe(getattr(Series, _name)))
for _name in _ACCESSORS:  # on the class of pandas this is the accessor's own class
    if hasattr(Series, _name):
        setattr(SafeSeries, _name, _accessor(getattr(Series, _name)))


def _shown(text: Any) -> Any:
    return visible(text) if isinstance(text, str) else text


def _texts_of_containers(value: Any) -> Any:
    """Return a container as its text, which pandas can escape."""
    return str(value) if isinstance(value, CONTAINERS) else value


def _refuse(what: str) -> NoReturn:
    raise MemoryToolkitError(
        f"{what} would turn memory text into markup.",
        hint="leave them out, or take the values out first: pandas.DataFrame(frame).to_html(...)",
    )


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
        return lambda value: function(escaped_value(value, _ESCAPE.get()))


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
