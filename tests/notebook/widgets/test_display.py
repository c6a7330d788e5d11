"""A panel as a cell's value: one bundle, static and live, the same bytes on every run."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ipy_memory.commands.table import PANELS
from ipy_memory.errors import MagicError, NoBackendError
from ipy_memory.notebook.frontend import STATIC_VARIABLE
from ipy_memory.notebook.widgets import display, panel
from ipy_memory.notebook.widgets.display import WIDGET_VIEW
from ipy_memory.notebook.widgets.memory import MemoryState
from ipy_memory.notebook.widgets.page import page
from ipy_memory.notebook.widgets.recall import RecallState
from ipy_memory.notebook.widgets.retain import ReflectState
from ipy_memory.notebook.widgets.views import difference_html, facts_html, view
from ipy_memory.session import MemorySession, open_session
from tests.notebook.pages import Reader
from tests.notebook.widgets.conftest import HETZNER, id_of

if TYPE_CHECKING:
    from ipy_memory.notebook.widgets.session_hub import Desk
    from tests.notebook.conftest import Notebook

TEXTS = {"recall": "deploy target", "reflect": "deploy target"}
PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></textarea></table><iframe src=//x>",
    "[x](javascript:alert(1)) ![y](//x/y.png)",
    "$\\href{javascript:alert(1)}{x}$ \\(x\\) $$y$$",
    "<style>*{display:none}</style>",
    "```\n</memories>\n%memory panel",
    "&lt;b&gt; &amp;",
]
STEERING = "\x1b[31m\x07\x9b\x00\u202e\u2066"


@pytest.mark.claim("N-04")
@pytest.mark.parametrize("kind", PANELS)
def test_the_same_data_as_text_and_html_and_the_same_bytes(session: MemorySession, kind: str) -> None:
    """B103."""
    text = id_of(session, HETZNER) if kind == "memory" else TEXTS.get(kind, "")
    first, second = (panel(session, kind, text)._repr_mimebundle_() for _ in range(2))
    assert first == second
    assert set(first) == {"text/plain", "text/html"}
    expected = {"recall": "Heroku", "memory": HETZNER, "reflect": "Top Facts", "banks": "rescued", "retain": "shop-"}
    for shown in first.values():
        assert expected[kind] in shown
    assert "0x" not in first["text/plain"]


def test_the_live_form_is_one_more_type_in_the_same_bundle(session: MemorySession) -> None:
    live = panel(session, "recall", "deploy target", static=False)
    bundle = live._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", WIDGET_VIEW}
    assert bundle[WIDGET_VIEW]["model_id"] == live.widget.box.model_id
    assert live._repr_mimebundle_() == bundle
    still = panel(session, "recall", "deploy target", static=True)._repr_mimebundle_()
    assert {kind: bundle[kind] for kind in still} == still
    assert set(live._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
    assert WIDGET_VIEW not in live._repr_mimebundle_(exclude={WIDGET_VIEW})
    live.close()
    assert live.widget.box.model_id != bundle[WIDGET_VIEW]["model_id"]


@pytest.mark.parametrize(
    ("kernel", "there"),
    [
        (None, False),
        ({"content": {"allow_stdin": True}}, True),
        ({"content": {"allow_stdin": False}}, False),
        ({}, True),
    ],
)
def test_the_widget_is_shown_only_where_a_person_can_answer(
    session: MemorySession, monkeypatch: pytest.MonkeyPatch, kernel: object, there: bool
) -> None:
    monkeypatch.delenv(STATIC_VARIABLE, raising=False)
    shell = SimpleNamespace(kernel=None if kernel is None else SimpleNamespace(get_parent=lambda: kernel))
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    assert panel(session).live is there
    monkeypatch.setenv(STATIC_VARIABLE, "1")
    assert not panel(session).live
    assert panel(session, static=False).live


def test_without_the_widget_libraries_the_static_form_remains(
    session: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display, "find_spec", lambda _: None)
    shown = panel(session, "recall", "deploy target", static=False)._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}


def test_a_panel_is_called_wrongly(session: MemorySession) -> None:
    with pytest.raises(MagicError, match="no 'tree' panel"):
        panel(session, "tree")
    with pytest.raises(MagicError, match="takes nothing more"):
        panel(session, "banks", "x")
    with pytest.raises(NoBackendError):
        panel(open_session("off", env={}))


def test_what_fails_at_the_start_is_in_the_panel(session: MemorySession) -> None:
    text, html = page(panel(session, "memory", "nonsense").state)
    assert "MemoryNotFoundError" in text
    assert '<p role="status">MemoryNotFoundError' in html


def filled(desk: Desk, payload: str) -> list[RecallState | MemoryState | ReflectState]:
    """Return panels that show the payload wherever memory text can be."""
    desk.session.retain([{"content": payload, "context": payload}])
    recall, memory, reflect = RecallState(desk), MemoryState(desk), ReflectState(desk)
    recall.typed(payload)
    key = next(key for key, hit in recall.hits.items() if hit.content.startswith(payload[:3]))
    recall.select(key)
    memory.open(key)
    reflect.reflect(payload)
    for state in (recall, memory, reflect):
        state.attempt(lambda: _fail(payload))
    return [recall, memory, reflect]


def _fail(payload: str) -> None:
    raise ValueError(payload)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_memory_text_adds_no_element_to_any_panel(desk: Desk, payload: str) -> None:
    for state in filled(desk, payload):
        html = Reader(page(state)[1])
        assert html.tags <= {"p", "strong", "small", "pre", "table", "thead", "tbody", "tr", "th", "td"}
        assert html.names <= {"class", "style", "scope", "role"}
        assert payload in html.text
        shown = view(state)
        for value in (one.value for one in _markup(shown.box)):
            live = Reader(value)
            assert live.tags <= {"p", "strong", "small", "span", "pre", "del", "ins", "div"}
            assert live.names <= {"class", "style"}
        shown.close()
    difference = Reader(difference_html([f"-{payload}", f"+{payload}"]))
    assert difference.tags == {"div", "pre", "del", "ins"}
    facts = Reader(facts_html([(payload, payload)]))
    assert facts.tags == {"p", "span", "strong"}
    assert payload in facts.text


def _markup(widget: object) -> list[object]:
    import ipywidgets

    inner = [one for child in getattr(widget, "children", ()) for one in _markup(child)]
    return [widget, *inner] if isinstance(widget, ipywidgets.HTML) else inner


def test_steering_characters_are_shown_and_not_obeyed(desk: Desk) -> None:
    for state in filled(desk, f"steer {STEERING} me"):
        for shown in page(state):
            assert not set(shown) & set("\x1b\x07\x9b\x00\u202e\u2066")
            assert "⟨U+202E⟩" in shown
        live = view(state)
        table = getattr(live, "table", None)
        if table is not None:
            rows = json.dumps(table.rows, ensure_ascii=False)
            assert not set(rows) & set("\x1b\x07\x9b\x00\u202e\u2066")
        assert not set(live.status.text) & set("\x1b\x07\x9b\x00\u202e\u2066")
        live.close()


def test_the_magic_opens_panels_that_follow_the_notebook(bare: Notebook) -> None:
    started = bare.run("from ipy_memory import demo\nhome = demo.start()")
    assert started.outputs == []
    (shown,) = bare.run("%memory panel recall deploy target").outputs
    assert shown["text/plain"].startswith("Memory panel: recall\n\nquery: deploy target")
    assert WIDGET_VIEW not in shown
    assert WIDGET_VIEW in bare.run("%memory panel --live banks").outputs[0]
    assert bare.run("%memory panel banks;").outputs == []
    made = bare.run("p = get_ipython().run_line_magic('memory', 'panel banks')")
    assert made.error is None
    bare.run("found = get_ipython().run_line_magic('memory', 'panel recall deploy target')")
    bare.run("%memory scope global")
    found = bare.shell.user_ns["found"].state
    assert [hit.bank for hit in found.hits.values()] == ["default"]
    asked = []
    found.on_change = lambda: asked.append(len(found.hits))
    bare.shell.user_ns["p"].state.switch("per-project-tagged")
    assert asked == [5]
    assert bare.magics.scope == "per-project-tagged"
    bare.run("%memory scope global")
    assert "scope: global" in bare.run("%memory panel banks").outputs[0]["text/plain"]
    assert bare.shell.user_ns["p"].state.desk.scope == "global"
    assert bare.run("%memory panel").outputs[0]["text/plain"].startswith("Memory panel: recall")
    for wrong in ("%memory panel recal", "%memory panel --static --live", "%memory panel banks x"):
        assert isinstance(bare.run(wrong).error, MagicError)
