"""Frames that cannot bite: whatever pandas displays of them, memory text stays text."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ipy_memory
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.frames import hits_frame, memories_frame, retain_frame
from ipy_memory.model import Hit, Memory, RetainItem, ToolResult
from ipy_memory.safe_frames import SafeFrame, SafeSeries, safe
from tests.notebook.pages import Reader

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
}
"""Displays that need unique labels are tried on frames that have them only."""


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


def test_latex_and_text_are_not_full_of_entities() -> None:
    frame = hits_frame([Hit("a", "R&D <x>")])[["content"]]
    assert "R&D <x>" in frame.style.to_string()
    assert "&amp;" not in frame.style.to_latex()


def test_steering_characters_are_shown_by_number_in_every_printed_form() -> None:
    """A10: a carriage return, zero-width and direction characters too."""
    frame = hits_frame([Hit("a\u200b", "x\r\x1b[31m\u202ey")])
    for shown in (repr(frame), repr(frame["content"]), repr(frame[["content"]].T), frame._repr_html_() or ""):
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
