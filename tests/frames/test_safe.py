"""Frames that cannot bite: whatever pandas displays of them, memory text stays text."""

from __future__ import annotations

import io
import json
import pickle
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

import ipy_memory
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.frames.build import hits_frame, memories_frame, retain_frame
from ipy_memory.frames.safe import SafeFrame, SafeSeries, safe
from ipy_memory.model import Hit, Memory, RetainItem, ToolResult
from tests.notebook.pages import Reader

SECURITY = Path(__file__).parents[2] / "docs" / "security.md"

PAYLOADS = [
    "<script>fired()</script>",
    "<img src=y onerror=fired()>",
    '"><svg onload=fired()>',
    "'><svg/onload=fired()>",
    "</td><td onclick=fired()>",
    "</style><img src=y onerror=fired()>",
    "</pre><iframe srcdoc='<script>parent.fired()</script>'>",
    "</table><script>fired()</script>",
    "<style>*{display:none}</style>",
    "<style>@import url(//x/y.css)</style>",
    "<link rel=stylesheet href=//x/y.css>",
    "<meta http-equiv=refresh content=0;url=//x>",
    "<base href=//x>",
    "<form action=//x><button>go",
    "<a href=javascript:fired()>x</a>",
    "<math><mtext></mtext><mglyph><svg><mtext><style><img src=y onerror=fired()></style>",
    "<object data=data:text/html,<script>fired()</script>>",
    "<embed src=//x>",
    "<video><source onerror=fired()>",
    "<details open ontoggle=fired()>",
    "<template><script>fired()</script></template>",
    "<!--><img src=y onerror=fired()>-->",
    "<![CDATA[<img src=y onerror=fired()>]]>",
    "<?xml version='1.0'?><x/>",
    "&lt;img src=y onerror=fired()&gt;",
    "&#60;script&#62;fired()&#60;/script&#62;",
    'x" onmouseover="fired()',
    'http://x/" onmouseover="fired()',
    "{{ 7 * 7 }} {% raw %}<b>",
    "\u202e<b>\u2066\x1b[31m\x00<b>",
]
PLAIN = {"style", "div", "table", "thead", "tbody", "tr", "th", "td", "caption", "span", "p"}
ATTRIBUTES = {"class", "id", "scope", "border", "style", "type", "rowspan", "colspan"}
ATTRIBUTES |= {"title", "scoped", "halign", "valign"}


def hit_of(payload: str) -> Hit:
    """Return a hit with the payload in every text of it."""
    return Hit(
        payload,
        payload,
        source=payload,
        bank=payload,
        tags=(payload,),
        document=payload,
        metadata={payload: [payload, {payload: payload}]},
        fact=(payload, payload),
        score=0.5,
    )


def hits() -> SafeFrame:
    """Return a frame of hits, a payload each, with the columns that hold texts in every form."""
    frame = ToolResult("text", hits=tuple(map(hit_of, PAYLOADS))).frame()
    return frame[["id", "content", "bank", "tags", "metadata", "score"]]


def others() -> Iterator[SafeFrame]:
    """Yield the other frames of the Python API."""
    yield hits_frame(tuple(map(hit_of, PAYLOADS)))
    memories = [Memory(text, text, "working", text, source=text, metadata=text, tags=(text,)) for text in PAYLOADS]
    yield memories_frame(memories)
    yield retain_frame([RetainItem(text, text) for text in PAYLOADS], None)
    yield safe(pd.DataFrame({"id": PAYLOADS, "content": PAYLOADS, PAYLOADS[0]: [[text] for text in PAYLOADS]}))


Path_ = Callable[[Any], Any]

PATHS: dict[str, Path_] = {
    "itself": lambda h: h,
    "columns": lambda h: h[["content"]],
    "rows": lambda h: h.head(1),
    "mask": lambda h: h[h.id == h.id.iloc[0]],
    "loc": lambda h: h.loc[:, ["id", "content"]],
    "iloc": lambda h: h.iloc[:1, :3],
    "copy": lambda h: h.copy(),
    "index": lambda h: h.set_index("content"),
    "two levels": lambda h: h.set_index(["content", "id"]),
    "transposed": lambda h: h.set_index("content")[["id"]].T,
    "renamed column": lambda h: h.rename(columns={"id": h.content.iloc[0]}),
    "renamed index": lambda h: h.set_index("content").rename_axis(h.content.iloc[0]),
    "named columns": lambda h: h.rename_axis(columns=h.content.iloc[0]),
    "sorted": lambda h: h.sort_values("content"),
    "assigned": lambda h: h.assign(again=h.content + "!"),
    "melted": lambda h: h.melt(id_vars="id", value_vars="content"),
    "pivot": lambda h: h.assign(one=1).pivot_table(index="content", columns="id", values="one"),
    "plain pivot": lambda h: h.assign(one=1).pivot(index="content", columns="id", values="one"),
    "grouped size": lambda h: h.groupby("content").size().to_frame("size"),
    "grouped count": lambda h: h.groupby(["content", "id"]).size().reset_index(),
    "grouped first": lambda h: h.groupby("id").first(),
    "grouped agg": lambda h: h.groupby("id").agg({"content": "first"}),
    "grouped apply": lambda h: h.groupby("id")[["content"]].apply(lambda part: part.head(1)),
    "grouped counts": lambda h: h.groupby("id")["content"].value_counts().to_frame(),
    "counted": lambda h: h["content"].value_counts().to_frame(),
    "counted rows": lambda h: h[["id", "content"]].value_counts().to_frame(),
    "described": lambda h: h[["id", "content"]].describe(),
    "described column": lambda h: h["content"].describe().to_frame(),
    "mode": lambda h: h[["content"]].mode(),
    "applied": lambda h: h.apply(lambda row: pd.Series({"x": row["content"]}), axis=1),
    "aggregated": lambda h: h[["id", "content"]].agg(["min", "max"]),
    "concatenated": lambda h: pd.concat([h[["content"]], h[["content"]]]),
    "side by side": lambda h: pd.concat([h["id"], h["content"]], axis=1),
    "widened column": lambda h: h["content"].to_frame(),
    "unstacked": lambda h: h.set_index(["id", "content"]).assign(one=1)["one"].unstack(),
    "stacked": lambda h: h[["id", "content"]].stack().to_frame(),
    "exploded": lambda h: h.assign(parts=[[text] for text in h.content]).explode("parts"),
    "merged": lambda h: h[["id"]].merge(h[["id", "content"]], on="id"),
    "joined": lambda h: h[["id"]].join(h[["content"]]),
    "mapped": lambda h: h[["content"]].map(lambda text: text),
    "filled": lambda h: h[["content"]].fillna("x"),
    "upper": lambda h: h["content"].str.strip().to_frame(),
    "replaced": lambda h: h[["content"]].replace("zzz", "y"),
    "split": lambda h: h["content"].str.split(" ", expand=True),
    "extracted": lambda h: h["content"].str.extract("(<.*)"),
    "joined texts": lambda h: h["content"].str.cat(h["id"]).to_frame(),
    "first characters": lambda h: h["content"].str[:9].to_frame(),
    "categories": lambda h: h.set_index("id")["content"].astype("category").cat.codes.to_frame(),
    "years": lambda h: h.assign(day=pd.Timestamp(2026, 1, 1)).set_index("content")["day"].dt.year.to_frame(),
    "unpickled": lambda h: pickle.loads(pickle.dumps(h)),
}

DISPLAYS: dict[str, Path_] = {
    "display": lambda f: f._repr_html_(),
    "to_html": lambda f: f.to_html(),
    "style": lambda f: f.style._repr_html_(),
    "style.to_html": lambda f: f.style.to_html(),
    "format": lambda f: f.style.format(precision=2).to_html(),
    "format nothing": lambda f: f.style.format(None, escape=None).to_html(),
    "format html": lambda f: f.style.format(escape="html").to_html(),
    "format text": lambda f: f.style.format("{}").to_html(),
    "format call": lambda f: f.style.format(lambda value: f"{value}").to_html(),
    "format parts": lambda f: f.style.format({f.columns[0]: "{}!"}).to_html(),
    "format links": lambda f: f.style.format(escape="html", na_rep="-", thousands=" ").to_html(),
    "format labels": lambda f: f.style.format_index(str, axis=0).format_index(str, axis=1).to_html(),
    "hidden": lambda f: f.style.hide(axis="index").to_html(),
    "highlighted": lambda f: f.style.highlight_null().to_html(),
    "tool tips": lambda f: f.style.set_tooltips(f.astype(str)).to_html(),
    "title tips": lambda f: f.style.set_tooltips(f.astype(str), as_title_attribute=True).to_html(),
    "classes": lambda f: f.style.set_td_classes(f.astype(str)).to_html(),
    "caption": lambda f: f.style.set_caption(str(f.iloc[0, 0])).to_html(),
    "css of text": lambda f: f.style.map(lambda value: f"content: {value!s}".replace(";", " ")).to_html(),
    "bold": lambda f: f.style.to_html(bold_headers=True, table_uuid="u"),
    "under": lambda f: f.style.concat(f.style).to_html(),
    "links of text": lambda f: f.style.format(hyperlinks="html").to_html(),
    "links of labels": lambda f: f.style.format_index(axis=1, hyperlinks="html").to_html(),
    "relabelled": lambda f: f.style.relabel_index(labels_of(f.index), axis=0).to_html(),
    "relabelled columns": lambda f: f.style.relabel_index(labels_of(f.columns), axis=1).to_html(),
    "id": lambda f: f.style.set_uuid(str(f.iloc[0, 0])).to_html(),
    "id of the page": lambda f: f.style.to_html(table_uuid=str(f.iloc[0, 0])),
    "selector": lambda f: f.style.set_table_styles([{"selector": PAYLOADS[5], "props": "color: red"}]).to_html(),
    "property": lambda f: f.style.map(lambda _: f"{PAYLOADS[5]}: red").to_html(),
    "exported": lambda f: f.style.use(f.style.format("{}").export()).to_html(),
    "id of the table": lambda f: f.to_html(table_id=PAYLOADS[2], classes=[PAYLOADS[2]]),
}
"""Displays that need unique labels are tried on frames that have them only."""


def labels_of(labels: pd.Index) -> list[Any]:
    """Return payloads for as many labels, in the form that they have."""
    texts = [PAYLOADS[place % len(PAYLOADS)] for place in range(len(labels))]
    return [(text,) * labels.nlevels for text in texts] if labels.nlevels > 1 else texts


MAIN = ("display", "style", "format", "format text")


def check(frame: SafeFrame, displays: Iterable[str]) -> None:
    """Check that displays of a frame add no element or attribute of the payloads to the page."""
    unique = frame.index.is_unique and frame.columns.is_unique
    for name in displays:
        if not unique and name not in {"display", "to_html"}:
            continue
        page = Reader(str(DISPLAYS[name](frame)))
        assert page.tags <= PLAIN, (name, page.tags)
        assert page.names <= ATTRIBUTES, (name, page.names)


@pytest.mark.parametrize("display", DISPLAYS)
def test_no_display_of_a_frame_holds_live_markup(display: str) -> None:
    """A01: through ``style`` and what is chained to it, in labels and containers too."""
    frame = hits()
    check(frame, [display])
    check(frame.set_index(["content", "id"]), [display])
    check(frame[["id", "bank"]].rename(columns=dict(zip(["id", "bank"], PAYLOADS, strict=False))), [display])
    check(frame.set_index("content")[["id"]].rename_axis(PAYLOADS[1]).T.rename_axis(PAYLOADS[2]), [display])


@pytest.mark.parametrize("path", PATHS)
def test_what_pandas_makes_of_a_frame_is_as_safe(path: str) -> None:
    """A01: cut, renamed, pivoted, grouped, joined, counted, described."""
    made = PATHS[path](hits())
    assert isinstance(made, SafeFrame)
    check(made, MAIN)


def test_every_frame_of_the_python_api_is_safe() -> None:
    """A01: frames of sessions too, not only those of the magics."""
    for frame in others():
        assert isinstance(frame, SafeFrame)
        check(frame, MAIN)


def test_values_are_what_is_stored_and_the_display_says_them() -> None:
    frame, text = hits(), PAYLOADS[0]
    assert frame["content"].iloc[0] == text
    assert frame["metadata"].iloc[0] == {text: [text, {text: text}]}
    shown = Reader(frame.style.to_html()).text
    for payload in PAYLOADS[:-1]:
        assert payload in shown


def test_every_public_method_that_needs_no_argument_gives_a_safe_object() -> None:
    """A01: neighbours in pandas that make a plain object of a subclass are found by trying all."""
    frame = hits_frame([Hit("a", "x", score=0.5)])[["id", "content", "score"]]
    for data in (frame, frame["content"], frame["score"]):
        for name in dir(data):
            if name.startswith("_") or name in {"plot", "hist", "boxplot", "style", "to_clipboard"}:
                continue
            try:
                made = getattr(data, name)()
            except Exception:  # noqa: BLE001  it needs an argument, or another kind of value
                continue
            if isinstance(made, pd.DataFrame | pd.Series):
                assert isinstance(made, SafeFrame | SafeSeries), name


@pytest.mark.parametrize("asked", [{"escape": False}, {"render_links": True}])
def test_html_without_escapes_is_refused_with_the_way_to_get_it(asked: dict[str, bool]) -> None:
    frame = hits_frame([Hit("a", "<b>")])
    with pytest.raises(MemoryToolkitError, match="would turn memory text into markup") as caught:
        frame.to_html(**asked)
    assert "pandas.DataFrame(frame)" in str(caught.value.hint)
    assert "<b>" in pd.DataFrame(frame).to_html(escape=False)


def test_a_frame_that_left_is_guarded_by_name() -> None:
    frame = hits_frame([Hit("a", "<b>bold</b>")])
    outside = pd.DataFrame(frame)[["id", "content"]]
    guarded = ipy_memory.safe(outside)
    assert isinstance(guarded, SafeFrame)
    assert "b" not in Reader(guarded.style.to_html()).tags
    assert guarded["content"].iloc[0] == "<b>bold</b>"
    assert safe(3) == 3
    assert isinstance(safe(outside["content"]), SafeSeries)


def test_each_format_has_its_own_escapes() -> None:
    r"""A01: ``to_latex`` and ``to_string``; LaTeX would run ``\input``."""
    frame = hits_frame([Hit("a", "R&D <x> \\input{/etc/passwd}\x1b[31m", metadata={"k": "\\input{x}"})])
    frame = frame[["content", "metadata"]]
    styled = frame.style.set_caption("R&D").format("{}").relabel_index(["R&D", "{0}"], axis=1)
    assert "R&D <x> \\input{/etc/passwd}⟨U+001B⟩[31m" in styled.to_string()
    for latex in (styled.to_latex(), frame.to_latex(), frame["content"].to_latex()):
        assert "R\\&D <x> \\textbackslash" in latex
        assert "\\input" not in latex
        assert "&amp;" not in latex
    assert "\\caption{R\\&D}" in styled.to_latex()
    container = safe(pd.DataFrame({"a": [{"k": ["$x$ % &"]}]})).style.to_latex()
    assert "\\$x\\$ \\% \\&" in container
    assert "\\\\$" not in container
    assert "R&amp;D" in styled.to_html()
    assert frame.style.relabel_index(["{", "{0}"], axis=1).to_html().count(">{<") == 1


def test_typst_prints_memory_text_and_obeys_none_of_it() -> None:
    """A01: ``to_typst``, in cells, labels and captions; Typst would run ``#read``."""
    text = '#read("/etc/passwd") $x$ *b* https://x.y @r ] [ \\u{23} `c`\n= y'
    frame = safe(pd.DataFrame({"content": [text], "meta": [{"k": text}], text: 1}, index=[text]))
    for styled in (frame.style, frame.style.format("{}").relabel_index(["a", text, "c"], axis=1)):
        typst = styled.to_typst()
        table = typst[typst.index("[") :].rpartition("]")[0]
        assert (
            '\\#read\\(\\"\\/etc\\/passwd\\"\\) \\$x\\$ \\*b\\* https\\:\\/\\/x\\.y \\@r \\] \\[ \\\\u\\{23\\}' in table
        )
        assert "&#" not in table
        assert not re.findall(r"(?<!\\)(?:\\\\)*[#$*@`=]", table)


def test_a_summary_shows_steering_characters_of_labels_by_number(capsys: pytest.CaptureFixture[str]) -> None:
    """A10: a pivoted frame has memory text as labels."""
    frame = safe(pd.DataFrame({"\x1b[31m": [1]}, index=["\r\u202e"]))
    frame.info()
    frame["\x1b[31m"].info()
    file = io.StringIO()
    frame.info(buf=file, verbose=True, memory_usage=False)
    for shown in (capsys.readouterr().out, file.getvalue()):
        assert not {"\x1b", "\r", "\u202e"} & set(shown)
        assert "⟨U+001B⟩[31m" in shown


def test_steering_characters_are_shown_by_number_in_every_printed_form() -> None:
    """A10: a carriage return, zero-width and direction characters too."""
    frame = hits_frame([Hit("a\u200b", "x\r\x1b[31m\u202ey")])
    printed = (repr(frame), repr(frame["content"]), repr(frame[["content"]].T), frame._repr_html_() or "")
    for shown in (*printed, frame.to_string(), frame["content"].to_string(), frame.style.to_string()):
        assert not {"\r", "\x1b", "\u202e", "\u200b"} & set(shown)


SECRET = "the whole memory text"


@pytest.fixture
def result() -> SafeFrame:
    from ipy_memory.notebook.result import RecallFrame

    attrs = {"query": "q", "banks": ["shop"], "notes": ["a note"]}
    return RecallFrame(hits_frame([Hit("a", SECRET, score=1.0)], attrs=attrs), f"Found 1: {SECRET}")


def _parquet(frame: SafeFrame, path: Path) -> None:
    frame.to_parquet(path)


def _feather(frame: SafeFrame, path: Path) -> None:
    frame.to_feather(path)


def _hdf(frame: SafeFrame, path: Path) -> None:
    frame.to_hdf(path, key="x")


def _pickle(frame: SafeFrame, path: Path) -> None:
    frame.to_pickle(path)


def _json(frame: SafeFrame, path: Path) -> None:
    frame.to_json(path, orient="table")


@pytest.mark.parametrize("write", [_parquet, _feather, _hdf, _pickle, _json])
def test_a_file_of_some_columns_holds_no_text_of_the_others(
    result: SafeFrame, write: Callable[[SafeFrame, Path], None], tmp_path: Path
) -> None:
    """A08: attrs go into many kinds of files, so that they hold no memory text."""
    cut = result[["id", "score"]].astype({"id": "object"})
    write(cut, tmp_path / "file")
    assert SECRET.encode() not in (tmp_path / "file").read_bytes()
    assert SECRET not in json.dumps(cut.attrs)


def test_the_text_belongs_to_the_whole_result_alone(result: Any) -> None:
    """A08: a cut, copied or pickled frame has no text, and shows as a table."""
    assert result.text == f"Found 1: {SECRET}"
    for made in (result[["id"]], result.copy(), result.head(1), pickle.loads(pickle.dumps(result))):
        assert type(made) is SafeFrame
        assert not hasattr(made, "text")
        assert made.attrs["banks"] == ["shop"]
    assert b"Found 1" not in pickle.dumps(result)


def test_a_cut_frame_in_a_markdown_document_is_no_markdown() -> None:
    """A17: the table of a slice, as that of a whole result."""
    frame = hits_frame([Hit("a", "![image](http://x/y.png) www.x.org `code` $x$ _a_")])[["id", "content"]]
    page = frame._repr_html_() or ""
    for mark in ("](", "http://", "www.x", "`", "$x$", "_a_"):
        assert mark not in page
    assert "![image](http://x/y.png) www.x.org `code` $x$ _a_" in Reader(page).text


def stored(**more: Any) -> SafeFrame:
    """Return a frame with a value of every kind in it."""
    many = [Hit("a", "=1+1", tags=("x", "y"), metadata={"k": [1, {"z": None}]}, timestamp=NOW), Hit("b", "\x1b=2")]
    return hits_frame([*many, Hit("c", "c", metadata={})]).assign(**more)


NOW = "2026-06-01T12:00:00.000Z"


def test_a_workbook_holds_every_column(tmp_path: Path) -> None:
    """C17: times, containers and control characters; a text that begins with ``=`` is no formula."""
    frame = stored()
    for write in (frame.to_excel, frame.style.to_excel, frame.set_index(["content", "date"]).to_excel):
        write(tmp_path / "hits.xlsx")
        book = openpyxl.load_workbook(tmp_path / "hits.xlsx")
        values = [cell for row in book["Sheet1"].iter_rows() for cell in row]
        assert "f" not in {cell.data_type for cell in values}
        assert {"=1+1", '["x", "y"]', '{"k": [1, {"z": null}]}', "⟨U+001B⟩=2"} <= {cell.value for cell in values}
        assert datetime(2026, 6, 1, 12) in {cell.value for cell in values}
    frame["content"].to_excel(tmp_path / "column.xlsx", sheet_name="one")
    assert openpyxl.load_workbook(tmp_path / "column.xlsx")["one"]["B2"].value == "=1+1"


def test_a_sheet_of_another_workbook_leaves_its_formulas(tmp_path: Path) -> None:
    with pd.ExcelWriter(tmp_path / "own.xlsx") as writer:
        pd.DataFrame({"a": ["=1+1"]}).to_excel(writer, sheet_name="own")
        stored().to_excel(writer, sheet_name="memories")
    book = openpyxl.load_workbook(tmp_path / "own.xlsx")
    assert book["own"]["B2"].data_type == "f"
    assert "f" not in {cell.data_type for row in book["memories"].iter_rows() for cell in row}


def test_a_database_table_holds_every_column() -> None:
    """C17: containers as JSON; the values of the frame stay as they are."""
    frame = stored(about=[{"b", "a"}, (), []])
    with closing(sqlite3.connect(":memory:")) as connection:
        assert frame.to_sql("hits", connection) == 3
        rows = connection.execute("SELECT content, tags, metadata, about FROM hits").fetchall()
        frame["content"].to_sql("texts", connection)
    assert rows[0] == ("=1+1", '["x", "y"]', '{"k": [1, {"z": null}]}', '["a", "b"]')
    assert frame["metadata"].iloc[0] == {"k": [1, {"z": None}]}


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_a_columnar_file_holds_every_column(kind: str, tmp_path: Path) -> None:
    """C17: metadata of any form, as JSON."""
    frame = stored()
    getattr(frame, f"to_{kind}")(tmp_path / "file")
    again = getattr(pd, f"read_{kind}")(tmp_path / "file")
    assert again["metadata"].tolist()[0] == '{"k": [1, {"z": null}]}'
    assert list(again["tags"].iloc[0]) == ["x", "y"]
    assert again["date"].iloc[0] == frame["date"].iloc[0]


def test_only_styling_needs_jinja2() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import pandas, ipy_memory.notebook.result\n"
        "frame = ipy_memory.safe(pandas.DataFrame({'content': ['<b>']}))\n"
        "print(frame._repr_html_().count('&lt;b&gt;'), str(frame).count('<b>'))\n"
        "try:\n    frame.style\n"
        "except ImportError as error:\n    print('jinja2' in str(error))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1", "True"]


WINDOWS: dict[str, Path_] = {
    "rolling": lambda f: f.rolling(2),
    "expanding": lambda f: f.expanding(),
    "weighted": lambda f: f.ewm(1),
}
NUMBERS: dict[str, Path_] = {
    "correlation": lambda w: w.corr(),
    "covariance": lambda w: w.cov(),
    "one column": lambda w: w["one"].corr(),
    "a column by name": lambda w: w.one.cov().to_frame("one"),
    "several columns": lambda w: w[["one"]].corr(),
    "mean": lambda w: w.mean(),
    "several": lambda w: w.agg(["mean", "sum"]),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("number", NUMBERS)
def test_what_windows_give_is_as_safe(window: str, number: str) -> None:
    frame = safe(pd.DataFrame({"one": range(len(PAYLOADS)), "two": 1.0}, index=PAYLOADS))
    frame = frame.assign(**{PAYLOADS[0]: 2.0})
    made = WINDOWS[window](frame)
    assert isinstance(made, type(WINDOWS[window](pd.DataFrame(frame))))
    given = NUMBERS[number](made)
    assert isinstance(given, SafeFrame | SafeSeries)
    pd.testing.assert_frame_equal(
        pd.DataFrame(given), pd.DataFrame(NUMBERS[number](WINDOWS[window](pd.DataFrame(frame))))
    )
    assert isinstance(WINDOWS[window](frame["two"]).corr(frame["two"]), SafeSeries)


def test_a_plain_style_is_not_appended() -> None:
    frame = safe(pd.DataFrame({"a": ["<b>"]}))
    with pytest.raises(MemoryToolkitError, match="would be markup") as caught:
        frame.style.concat(pd.DataFrame({"a": ["<i>"]}).style)
    assert "ipy_memory.safe" in (caught.value.hint or "")
    shown = frame.style.concat(safe(pd.DataFrame({"a": ["<i>"]})).style).to_html()
    assert "<i>" not in shown
    assert "&lt;i&gt;" in shown


def test_labels_by_themselves_are_shown_by_number_on_request() -> None:
    """The page of security names what prints them as they are."""
    frame = safe(pd.DataFrame({"\x1b[31m": [1]}, index=["\x1b[32m"]))
    for labels in (frame.index, frame.columns):
        assert "\x1b" not in repr(safe(labels.to_series()))
        assert "U+001B" in repr(safe(labels.to_series()))
    page = SECURITY.read_text(encoding="utf-8")
    assert "`ipy_memory.safe(frame.index.to_series())` shows them by number" in page


def test_what_a_user_gives_as_markup_stays_markup() -> None:
    frame = safe(pd.DataFrame({"a": ["<b>", None]}))
    shown = frame.style.format(na_rep="<i>none</i>").to_html()
    assert "<i>none</i>" in shown
    assert "&lt;b&gt;" in shown
    assert "na_rep" in SECURITY.read_text(encoding="utf-8")
