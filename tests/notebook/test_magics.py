"""The magics in a real shell: literal text, one output, frames, variables, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from traitlets import TraitError

from ipy_memory.errors import BankError, MagicError, NoBackendError, ToolInputError
from ipy_memory.model import RetainItem, ToolResult
from ipy_memory.notebook.result import RecallFrame, ReflectResult, RetainFrame, SafeFrame
from ipy_memory.session.turns import Notice
from tests.notebook.fakes import NOTHING, TEXT, FakeSession

if TYPE_CHECKING:
    from tests.notebook.conftest import Notebook


def asked(session: FakeSession) -> Any:
    """Return the first argument of the last call."""
    return session.calls[-1][1]


@pytest.mark.claim("N-02")
def test_recall_is_one_output_with_the_exact_text(notebook: Notebook, session: FakeSession) -> None:
    ran = notebook.run("%recall deploy target")
    assert (ran.stdout, ran.stderr) == ("", "")
    (output,) = ran.outputs
    assert output["text/plain"] == TEXT
    assert set(output) == {"text/plain", "text/html"}
    assert isinstance(ran.result, RecallFrame)
    assert isinstance(ran.result, pd.DataFrame)
    assert ran.result.text == TEXT
    assert list(ran.result["id"]) == ["716b251a2adcd9e2", "e1de81a7fd9daff0"]
    assert session.calls == [("recall", "deploy target", None, True, None)]


@pytest.mark.claim("N-02")
def test_an_assigned_recall_shows_nothing(notebook: Notebook) -> None:
    ran = notebook.run("df = %recall deploy target")
    assert (ran.outputs, ran.stdout, ran.result) == ([], "", None)
    assert notebook.shell.user_ns["df"].attrs["query"] == "deploy target"


@pytest.mark.claim("N-02")
def test_an_empty_recall_has_the_same_columns(notebook: Notebook, session: FakeSession) -> None:
    filled = notebook.run("%recall x").result
    session.hits, session.text = (), NOTHING
    ran = notebook.run("%recall x")
    pd.testing.assert_series_equal(ran.result.dtypes, filled.dtypes)
    assert ran.outputs[0]["text/plain"] == NOTHING


def test_what_is_made_from_the_frame_is_an_ordinary_frame(notebook: Notebook) -> None:
    notebook.run("df = %recall x")
    for made in ("df[['content']]", "df[df.score > 0.5]", "df.head(1)", "df.copy()", "df.sort_values('score')"):
        ran = notebook.run(made)
        assert type(ran.result) is SafeFrame
        assert "Found 2" not in ran.outputs[0]["text/plain"]
    assert "Found 2" not in notebook.run("print(df)").stdout


def test_a_closing_semicolon_shows_nothing_and_is_not_asked_for(notebook: Notebook, session: FakeSession) -> None:
    ran = notebook.run("%recall deploy target;")
    assert (ran.outputs, ran.stdout) == ([], "")
    assert asked(session) == "deploy target"
    frame = notebook.shell.run_line_magic("recall", "deploy target;")
    assert frame.quiet
    assert len(frame) == 2
    assert notebook.run("frame = %recall alpha;\nframe").outputs == []


@pytest.mark.claim("N-07")
@pytest.mark.parametrize(
    "text",
    [
        "what is the deploy target?",
        "it's Bob's \"favourite",
        "{1+1} and {x} and $x and $HOME",
        '{"a": [1, 2]}',
        "-swarm mode",
        "C:\\temp\\",
        "a -- b --limit 3",
        "%recall inside",
        "日本語 🚀 \u202e",
    ],
)
def test_a_query_arrives_as_typed_in_both_forms(notebook: Notebook, session: FakeSession, text: str) -> None:
    notebook.shell.user_ns["x"] = "EXPANDED"
    notebook.run(f"%recall {text}")
    assert asked(session) == text
    notebook.run(f"%%recall\n{text}")
    assert asked(session) == text
    notebook.run(f"%%retain\n{text}\n\n")
    assert asked(session) == [RetainItem(f"{text}\n")]


def test_flags_reach_the_session(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("%recall --limit 3 --no-touch --bank shop-x deploy target")
    notebook.run("%%recall --limit 5\ndeploy\ntarget")
    notebook.run("%reflect --context 'last week' --no-touch why?")
    assert session.calls == [
        ("recall", "deploy target", 3, False, "shop-x"),
        ("recall", "deploy\ntarget", 5, True, None),
        ("reflect", "why?", "last week", False, None),
    ]


def test_filters_go_to_the_session_by_name(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("%recall --source cli --since 2026-05 --tag a,b --tag c --tokens 50 deploy target")
    where = {"source": "cli", "since": "2026-05", "tag": ("a", "b", "c"), "tokens": 50}
    assert session.calls == [("recall", "deploy target", None, True, None, where)]
    for wrong, said in (
        ("--at soon", "a date such as"),
        ("--tag a,,b", "separated by commas"),
        ("--tokens x", "whole"),
    ):
        assert said in str(notebook.run(f"%recall {wrong} deploy").error)


def test_a_query_can_come_from_a_variable(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("q = 'from {a} variable'")
    notebook.run("%recall --from q")
    assert asked(session) == "from {a} variable"
    notebook.run("n = 3")
    for cell, says in (
        ("%recall --from missing", "no variable missing"),
        ("%recall --from n", "holds a int"),
        ("%recall --from q more", "already says"),
    ):
        ran = notebook.run(cell)
        assert isinstance(ran.error, MagicError)
        assert says in ran.error.message


def test_out_binds_the_result_and_still_shows_it_once(notebook: Notebook) -> None:
    ran = notebook.run("%recall --out hits deploy")
    assert len(ran.outputs) == 1
    assert notebook.shell.user_ns["hits"] is ran.result
    assert ran.stdout == ""


@pytest.mark.claim("N-03", "T-03")
def test_retain_stores_the_text_as_one_item_and_shows_the_exact_text(notebook: Notebook, session: FakeSession) -> None:
    ran = notebook.run('%retain {"name": "Duck"}')
    assert ran.outputs[0]["text/plain"] == "1 memory stored."
    assert len(ran.outputs) == 1
    assert (ran.stdout, ran.stderr) == ("", "Note: 1 credential was redacted.\n")
    assert isinstance(ran.result, RetainFrame)
    assert asked(session) == [RetainItem('{"name": "Duck"}')]
    assert list(ran.result["content"]) == ['{"name": "Duck"}']
    notebook.run("%%retain\none\n\n- two\n")
    assert asked(session) == [RetainItem("one\n\n- two")]


@pytest.mark.claim("N-03")
def test_retain_takes_lines_json_and_a_context(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("%%retain --lines --context standup\n one\n\n  \ntwo ")
    assert asked(session) == [RetainItem(" one", "standup"), RetainItem("two ", "standup")]
    ran = notebook.run('%%retain --json\n[{"content": "a", "context": ""}, {"content": "b"}]')
    assert asked(session) == [RetainItem("a", ""), RetainItem("b")]
    assert ran.outputs[0]["text/plain"] == "2 memories stored."
    notebook.run("%retain --context= x")
    assert asked(session) == [RetainItem("x", "")]


@pytest.mark.parametrize(
    ("cell", "kind", "says"),
    [
        ("%%retain --json\n[{]", MagicError, "invalid JSON"),
        ('%%retain --json\n{"content": "x"}', MagicError, "must be a list"),
        ('%%retain --json\n[{"content": "x", "extra": 1}]', ToolInputError, "extra"),
        ("%%retain --json\n[]", ToolInputError, "items"),
        ("%%retain --json --lines\nx", MagicError, "exclude"),
        ("%%retain --lines\n\n  \n", MagicError, "blank"),
        ("%retain", MagicError, "needs a text"),
        ("%%recall\n", MagicError, "needs a text"),
        ("%%recall", MagicError, "needs a text"),
        ("%%recall deploy target", MagicError, "lines below"),
        ("%recall --limt 3 x", MagicError, "no flag --limt"),
    ],
)
def test_wrong_input_stores_nothing_and_is_one_error(
    notebook: Notebook, session: FakeSession, cell: str, kind: type[Exception], says: str
) -> None:
    ran = notebook.run(cell)
    assert type(ran.error) is kind
    assert says in str(ran.error)
    assert session.calls == []


@pytest.mark.claim("T-10")
def test_retain_says_how_many_credentials_were_redacted(notebook: Notebook) -> None:
    output = notebook.run("%retain x").outputs[0]
    assert "1 credential was redacted." in output["text/html"]
    assert output["text/plain"] == "1 memory stored."


def test_the_end_mark_gives_even_an_empty_text(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("%recall --")
    assert asked(session) == ""
    notebook.run("%retain -- --json is a flag")
    assert asked(session) == [RetainItem("--json is a flag")]


@pytest.mark.claim("N-03")
def test_reflect_shows_the_exact_text_and_keeps_the_hits(notebook: Notebook) -> None:
    ran = notebook.run("%reflect what do we deploy?")
    assert ran.outputs[0]["text/plain"] == "Based on recalled memories:\n\n- one"
    assert isinstance(ran.result, ReflectResult)
    assert list(ran.result.frame["id"]) == ["716b251a2adcd9e2", "e1de81a7fd9daff0"]
    assert str(ran.result) == ran.result.text
    quiet = notebook.run("answer = %reflect x;\nanswer")
    assert quiet.outputs == []


def test_an_error_is_one_line_of_its_own_class(notebook: Notebook, session: FakeSession) -> None:
    session.error = BankError("The file is damaged", where="shop", hint="restore a backup\x1b[31m")
    ran = notebook.run("%recall x")
    assert ran.error is session.error
    assert ran.stdout == "BankError: The file is damaged [shop] – restore a backup [31m\n"
    assert ran.outputs == []


def test_debug_shows_the_whole_traceback(notebook: Notebook, session: FakeSession) -> None:
    session.error = BankError("The file is damaged")
    notebook.run("%config MemoryMagics.debug = True")
    ran = notebook.run("%recall x")
    assert "Traceback" in ran.stdout
    assert "The file is damaged" in ran.stdout


@pytest.mark.claim("N-01")
@pytest.mark.parametrize("cell", ["%recall x", "%retain x", "%reflect x", "%%recall\nx"])
def test_without_a_backend_each_magic_says_how_to_choose_one(bare: Notebook, cell: str) -> None:
    ran = bare.run(cell)
    assert isinstance(ran.error, NoBackendError)
    assert ran.stdout.count("\n") == 1
    assert "%memory use" in ran.stdout


@pytest.mark.parametrize("magic", ["recall", "retain", "reflect"])
def test_help_shows_the_same_page_as_the_question_mark(notebook: Notebook, session: FakeSession, magic: str) -> None:
    ran = notebook.run(f"%{magic} -h")
    page = ran.outputs[0]["text/plain"]
    assert f"%%{magic}" in page
    assert "--from NAME" in page
    assert page == notebook.shell.find_line_magic(magic).__doc__
    assert session.calls == []


def test_config_lists_and_sets_the_options(notebook: Notebook, session: FakeSession) -> None:
    listed = notebook.run("%config MemoryMagics").stdout
    for name in ("backend", "database", "cwd", "limit", "scope"):
        assert f"MemoryMagics.{name}=" in listed
    notebook.run("%config MemoryMagics.limit = 2")
    notebook.run("%recall x")
    assert session.calls[-1] == ("recall", "x", 2, True, None)
    with pytest.raises(TraitError):
        notebook.magics.limit = -1
    notebook.run("%config MemoryMagics.backend = 'mnemopi'")
    assert session.closed == 1
    notebook.run("%recall x")
    assert session.opened["backend"] == "mnemopi"


def test_a_session_follows_the_choice_about_credentials(notebook: Notebook, session: FakeSession) -> None:
    """A16."""
    notebook.run("%recall x")
    assert session.outgoing.refuse is False
    notebook.run("%config MemoryMagics.refuse_credentials = True")
    assert session.outgoing.refuse is True
    notebook.magics.close_session()
    session.outgoing.refuse = False
    notebook.run("%recall x")
    assert session.outgoing.refuse is True


def test_a_warning_about_what_is_sent_is_shown_at_once(notebook: Notebook, session: FakeSession) -> None:
    """A16."""
    notebook.run("%recall x")

    def recall(*_: object, **__: object) -> ToolResult:
        session.notices.append(Notice("warning", "it seems to hold a password", "ipy_memory"))
        assert session.show_at_once is not None
        session.show_at_once()
        assert session.notices == []
        return ToolResult(session.text)

    session.recall = recall  # type: ignore[method-assign]
    assert "ipy_memory: it seems to hold a password" in notebook.run("%recall x").stderr


def test_one_session_serves_all_magics(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.run("%recall x")
    first = notebook.magics.session
    notebook.run("%retain x")
    assert notebook.magics.session is first
