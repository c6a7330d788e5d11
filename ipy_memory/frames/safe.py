"""DataFrames whose text is never markup: displayed, styled, and whatever pandas makes of them.

The values themselves are unchanged. What is taken out of these classes by hand (``pandas.DataFrame(frame)``, another
table library) is plain pandas again; :func:`safe` guards such a frame.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn

from pandas import DataFrame, Series
from pandas.api.typing import Expanding, ExponentialMovingWindow, Rolling

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.frames.escape import escaped_page, escaped_value, visible
from ipy_memory.frames.files import CONTAINERS, flat, for_workbook, write_workbook

if TYPE_CHECKING:
    from ipy_memory.frames.styles import SafeStyler

# These make plain pandas objects even of a subclass.
_FRAME_METHODS = ("describe", "value_counts", "mode", "corr", "cov", "apply", "agg", "aggregate", "map")
_SERIES_METHODS = ("describe", "value_counts", "mode", "apply", "agg", "aggregate", "map")
_PAIRWISE = ("corr", "cov")
_WINDOW_METHODS = ("rolling", "expanding", "ewm")
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


def _safe_window(kind: Any) -> Any:
    """Return a class of windows whose pairwise statistics are safe objects, as all others are by themselves."""
    statistics = {name: _keeping_safe(getattr(kind, name)) for name in _PAIRWISE}
    return type(f"Safe{kind.__name__}", (kind,), statistics)


_WINDOWS = {kind: _safe_window(kind) for kind in (Rolling, Expanding, ExponentialMovingWindow)}


def _giving_safe_windows(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of pandas return a window of ours; it is one of pandas too, and stays one when it is narrowed."""

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        window = method(*given, **named)
        window.__class__ = _WINDOWS.get(type(window), type(window))
        return window

    return call


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

    def info(  # type: ignore[override]
        self, verbose: bool | None = None, buf: Any = None, **named: Any
    ) -> None:
        """Print a summary as pandas does, with steering characters of the labels shown by number."""
        lines = StringIO()
        super().info(verbose, lines, **named)
        (sys.stdout if buf is None else buf).write(visible(lines.getvalue()))

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
    def style(self) -> SafeStyler:
        """The frame to be styled: every text of it is escaped, whatever formats are chained to it.

        Needs jinja2, as styling in pandas does.
        """
        from ipy_memory.frames.styles import SafeStyler  # pandas styles with jinja2, which is not always installed

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

    def info(  # type: ignore[override]
        self, verbose: bool | None = None, buf: Any = None, **named: Any
    ) -> None:
        """Print a summary as pandas does, with steering characters of the labels shown by number."""
        lines = StringIO()
        super().info(verbose, lines, **named)
        (sys.stdout if buf is None else buf).write(visible(lines.getvalue()))

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
for _name in _WINDOW_METHODS:
    setattr(SafeFrame, _name, _giving_safe_windows(getattr(DataFrame, _name)))
    setattr(SafeSeries, _name, _giving_safe_windows(getattr(Series, _name)))
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
