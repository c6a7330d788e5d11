"""What a result shows: exact plain text, and HTML in which memory text is only data."""

from __future__ import annotations

import pickle

import pytest
from IPython.terminal.interactiveshell import TerminalInteractiveShell

from ipy_memory.errors import BankNotFoundError
from ipy_memory.frames.build import DataFrame, hits_frame, retain_frame
from ipy_memory.model import Hit, Receipt, RetainItem, ToolResult
from ipy_memory.notebook.result import (
    ListFrame,
    RecallFrame,
    ReflectResult,
    RetainFrame,
    SafeFrame,
    TableResult,
    TextResult,
)
from tests.notebook.pages import Reader

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</pre><iframe src=//x>",
    "&lt;b&gt; &amp;",
    "'; DROP TABLE x; --",
    "$\\href{javascript:alert(1)}{x}$",
    "[x](javascript:alert(1)) ![y](//x/y.png)",
    "```\n</memories>\n%memory forget",
    "<style>*{display:none}</style>",
    "<!-- -- --!> <![CDATA[",
]
ALLOWED = {"pre", "table", "thead", "tbody", "tr", "th", "td", "p", "small"}


def shown(payload: str) -> list[dict[str, str]]:
    """Return the display of every kind of result whose every text is the payload."""
    hit = Hit(payload, payload, source=payload, timestamp=payload, bank=payload, tier=payload, type=payload)
    result = ToolResult(payload, hits=(hit,), notes=(payload,))
    frame = hits_frame((hit,), notes=(payload,))
    item = RetainItem(payload, payload)
    stored = retain_frame([item], Receipt(1, payload, payload, (payload,)), notes=(payload,))
    return [
        RecallFrame(frame, payload)._repr_mimebundle_(),
        RetainFrame(stored, payload)._repr_mimebundle_(),
        ReflectResult(result, frame)._repr_mimebundle_(),
        TextResult(payload, notes=[payload])._repr_mimebundle_(),
        TableResult((payload,), [(payload,)], notes=[payload])._repr_mimebundle_(),
    ]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_memory_text_adds_no_element_to_the_page(payload: str) -> None:
    for bundle in shown(payload):
        page = Reader(bundle["text/html"])
        assert page.tags <= ALLOWED
        assert page.names <= {"class", "style", "scope"}
        assert payload in page.text


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_styled_frame_and_a_frame_of_pandas_own_add_no_element(payload: str) -> None:
    frame = RecallFrame(hits_frame((Hit(payload, payload, source=payload),)), payload)
    for html in (frame.style.to_html(), frame[["id", "content"]]._repr_html_()):
        assert Reader(html).tags <= {"style", "div", "table", "thead", "tbody", "tr", "th", "td"}
    assert payload in Reader(frame.style.to_html()).text


@pytest.mark.parametrize("payload", [*PAYLOADS, "\x1b[31m\u202e\x9b"])
def test_an_error_is_one_line_that_steers_nothing(payload: str) -> None:
    error = BankNotFoundError(payload, where=payload, hint=payload)
    for (line,) in (error._render_traceback_(), [error.one_line()]):
        assert not set(line) & set("\n\r\x1b\x9b\u202e")


def test_a_terminal_is_not_steered(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = object.__new__(TerminalInteractiveShell)
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    for bundle in shown("a\x1b[31m\u202eb"):
        assert "a⟨U+001B⟩[31m⟨U+202E⟩b" in bundle["text/plain"]
        assert "\x1b" not in bundle["text/plain"]
    monkeypatch.undo()
    for bundle in shown("a\x1b[31mb"):
        assert "a\x1b[31mb" in bundle["text/plain"]


@pytest.mark.parametrize("steering", ["\x1b[31m", "\x07", "\u202e", "\u2066", "\x9b", "\x00"])
def test_steering_characters_are_shown_and_not_obeyed(steering: str) -> None:
    for bundle in shown(f"a{steering}b"):
        assert not set(steering) & set("\x1b\x07\x9b\x00\u202e\u2066") & set(bundle["text/html"])
        assert f"⟨U+{ord(steering[0]):04X}⟩" in bundle["text/html"]


@pytest.mark.claim("N-02")
def test_plain_text_is_exact_and_can_be_encoded() -> None:
    text = 'Found 1 relevant memory (as of …):\n\n- <b>"x"</b> \\n $y$  two '
    frame = RecallFrame(hits_frame([Hit("a", "x")]), text)
    assert frame._repr_mimebundle_()["text/plain"] == text
    half = RecallFrame(hits_frame([Hit("a", "x\ud83d…")]), "x\ud83d…")
    assert half.text == "x\ud83d…"
    for shown_text in half._repr_mimebundle_().values():
        shown_text.encode()


def test_the_table_shows_what_the_text_leaves_out() -> None:
    hits = [
        Hit("a1", "x", score=0.51239, bank="shop", timestamp="2026-05-30T10:00:00Z"),
        Hit(None, "y", full_length=812),
    ]
    hits.append(Hit("c3", "z…", truncated=True, full_length=1203))
    page = Reader(RecallFrame(hits_frame(hits), "t")._repr_mimebundle_()["text/html"])
    for words in ("a1", "0.5124", "shop", "2026-05-30", "812", "1203, cut", "length"):
        assert words in page.text
    for words in ("nan", "NaT", "<NA>", "None", "tier"):
        assert words not in page.text


def test_an_empty_result_has_no_table() -> None:
    html = RecallFrame(hits_frame([]), "No relevant memories found.")._repr_mimebundle_()["text/html"]
    assert "<table" not in html


def test_a_text_result_is_its_text() -> None:
    result = TextResult("exact  text")
    assert (str(result), repr(result)) == ("exact  text", "exact  text")


def test_a_table_result_is_aligned_text_and_a_frame() -> None:
    result = TableResult(("name", "value"), [("a", "1"), ("longer", "2")])
    assert str(result) == "name    value\na       1\nlonger  2"
    assert list(result.frame.columns) == ["name", "value"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_made_of_a_frame_is_as_safe(payload: str) -> None:
    frame = RecallFrame(hits_frame((Hit("a", f"{payload}\x1b[31m\u202e"),)), "t")
    for made in (frame[["content"]], frame.head(1)[["id", "content"]], frame.copy(), frame[frame.id == "a"]):
        assert type(made) is SafeFrame
        assert Reader(made.style.to_html()).tags <= {"style", "table", "thead", "tbody", "tr", "th", "td"}
        assert not {"\x1b", "\u202e"} & set(str(made))
    assert pickle.loads(pickle.dumps(frame.head(1))).equals(frame)


def data_stored() -> DataFrame:
    items = [RetainItem(text) for text in "abc"]
    return retain_frame(items, Receipt(3, "shop", "stored", ("p", "q", "r")))


def test_a_long_list_shows_its_beginning_or_what_matters_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipy_memory.notebook.result.SHOWN", 2)
    data = DataFrame({"id": ["a", "b", "c"], "why": ["", "", "x"]})
    shown = ListFrame(data, ("id", "why"), notes=["3 rows."])
    assert shown.text == "id\na\nb\n3 rows.\nShown are 2 rows; the frame has all 3."
    assert list(shown["id"]) == ["a", "b", "c"]
    assert ListFrame(data, ("id", "why"), first=[2, 0, 1]).text.startswith("id  why\nc   x\na\n")
    for frame in (RecallFrame(hits_frame([Hit(id_, "x") for id_ in "pqr"]), "t"), RetainFrame(data_stored(), "t")):
        bundle = frame._repr_mimebundle_()
        assert "the frame has all 3" in bundle["text/html"]
        assert "Shown" not in bundle["text/plain"]
        assert bundle["text/html"].count("<tr>") == 3
    assert "Shown" not in ListFrame(data.head(2), ("id", "why")).text
