"""DataFrames whose text is never markup: displayed, styled, and whatever pandas makes of them.

The values themselves are unchanged. What is taken out of these classes by hand (``pandas.DataFrame(frame)``, another
table library) is plain pandas again; :func:`safe` guards such a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from pandas import DataFrame, Series
from pandas.io.formats.style import Styler

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.escape import css_text, escaped, escaped_value, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

# These make plain pandas objects even of a subclass.
_FRAME_METHODS = ("describe", "value_counts", "mode", "corr", "cov", "apply", "agg", "aggregate", "map")
_SERIES_METHODS = ("describe", "value_counts", "mode", "apply", "agg", "aggregate", "map")


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
        return None if shown is None else visible(shown)

    @property
    def style(self) -> Styler:
        """The frame to be styled: in HTML every text of it is escaped, whatever formats are chained to it."""
        return SafeStyler(self, na_rep="")

    def to_html(self, *given: Any, **named: Any) -> Any:
        """Render the frame as HTML as pandas does.

        Raises
        ------
        MemoryToolkitError
            ``escape=False`` or ``render_links=True``: memory text would become markup.
        """
        if named.get("escape") is False or named.get("render_links"):
            _refuse("escape=False and render_links=True")
        return super().to_html(*given, **named)


for _name in _FRAME_METHODS:
    setattr(SafeFrame, _name, _keeping_safe(getattr(DataFrame, _name)))
for _name in _SERIES_METHODS:
    setattr(SafeSeries, _name, _keeping_safe(getattr(Series, _name)))


def _refuse(what: str) -> NoReturn:
    raise MemoryToolkitError(
        f"{what} would turn memory text into markup.",
        hint="leave them out, or take the values out first: pandas.DataFrame(frame).to_html(...)",
    )


class SafeStyler(Styler):
    """A Styler whose HTML holds memory text as text: in cells, labels, names, tool tips, classes and style sheets.

    Values reach a formatter escaped, so markup that a formatter itself adds stays markup. In LaTeX and plain text they
    are what pandas makes of them.
    """

    def format(self, *given: Any, **named: Any) -> Any:
        """Format values as pandas does; HTML is escaped in any case."""
        if named.get("escape") == "html":
            named["escape"] = None
        return super().format(*given, **named)

    def format_index(self, *given: Any, **named: Any) -> Any:
        """Format labels as pandas does; HTML is escaped in any case."""
        if named.get("escape") == "html":
            named["escape"] = None
        return super().format_index(*given, **named)

    def set_tooltips(self, ttips: DataFrame, *given: Any, **named: Any) -> Styler:
        """Show tool tips as pandas does, their text escaped."""
        as_title = named.get("as_title_attribute", False)
        return super().set_tooltips(ttips.map(escaped_cell if as_title else _in_style_sheet), *given, **named)

    def set_caption(self, caption: str | tuple[str, str] | list[str]) -> Styler:
        """Set the caption as pandas does, escaped."""
        return super().set_caption(escaped_value(caption))

    def set_td_classes(self, classes: DataFrame) -> Styler:
        """Set classes of cells as pandas does, escaped."""
        return super().set_td_classes(classes.map(escaped_cell))

    def _translate(self, *given: Any, **named: Any) -> dict[str, Any]:
        # HTML is the one format in which an empty corner is not empty.
        blank = named.get("blank", given[4] if len(given) > 4 else "&nbsp;")
        if not blank:
            return super()._translate(*given, **named)  # type: ignore[misc,no-any-return]
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
        return made


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
        return lambda value: function(escaped_value(value))


def _escape_names(made: dict[str, Any]) -> None:
    """Escape the names of levels, which pandas before 3 shows without any display function."""
    for cell in (cell for row in made.get("head", ()) for cell in row):
        shown = cell.get("display_value")
        if "index_name" in str(cell.get("class")) and isinstance(shown, str) and shown != "&nbsp;":
            cell["display_value"] = escaped(shown)


def _escape_style_sheet(made: dict[str, Any]) -> None:
    """Let no property of a style sheet end the style element."""
    for part in ("cellstyle", "cellstyle_index", "cellstyle_columns", "table_styles"):
        for rule in made.get(part) or ():
            rule["props"] = [(name, _css(value)) for name, value in rule["props"]]


def _css(value: Any) -> Any:
    return value.replace("<", "\\00003c") if isinstance(value, str) else value


def escaped_cell(value: Any) -> Any:
    """Return the text of a cell as escaped HTML; missing values stay missing."""
    return escaped(value) if isinstance(value, str) else value


def _in_style_sheet(value: Any) -> Any:
    return css_text(value) if isinstance(value, str) else value
