"""Each command of the program in a process of its own: what it prints, its JSON, its exit code."""

from __future__ import annotations

import json
import shlex
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory import demo
from ipy_memory.commands.table import SHELL
from ipy_memory.shell.program import HANDLERS
from tests.shell.conftest import DEPLOY_TARGET, Program

if TYPE_CHECKING:
    from pathlib import Path

HEROKU = "31018c0cb5c53549"

JSON: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "compare": (["deploy"], {"compared": list, "variants": list}),
    "export": (["new.jsonl"], {"path": str, "rows": dict}),
    "diff": (["default", "default"], {"changes": list, "equal": int}),
    "status": ((), {"status": list}),
    "browse": (("heroku",), {"memories": list, "total": int, "offset": int, "next_offset": type(None)}),
    "show": ((DEPLOY_TARGET,), {"text": str, "memory": dict}),
    "chain": ((DEPLOY_TARGET,), {"memories": list, "missing": type(None)}),
    "banks": ((), {"banks": list}),
    "scopes": (("deploy", "target"), {"scopes": list}),
    "stats": ((), {"text": str}),
    "report": ((), {"text": str}),
    "diagnose": ((), {"text": str}),
    "doctor": ((), {"findings": list, "faults": int}),
    "trust": (("--list",), {"text": str, "rows": list}),
    "recall": (("--no-touch", "deploy", "target"), {"text": str, "hits": list}),
    "reflect": (("--no-touch", "deploys"), {"text": str, "hits": list}),
    "why": ((DEPLOY_TARGET, "deploy", "target"), {"text": str, "verdict": dict}),
    "flush": ((), {"text": str, "left": int}),
}
"""Commands that only read: what follows them, and the fields of their JSON."""


def test_every_command_of_the_table_is_carried_out() -> None:
    assert {*HANDLERS, "demo"} == set(SHELL)
    # What needs a server is in test_server.py, what needs a file in test_measuring.py and test_moving.py; the audit
    # writes an object a line.
    assert {*JSON, "retain", "queue", "operations", "evaluate", "import", "audit"} == set(HANDLERS)


@pytest.mark.parametrize("name", JSON)
def test_the_json_of_a_command_is_one_object_with_its_fields(program: Program, name: str) -> None:
    words, expected = JSON[name]
    data = program(name, "--json", *words).data
    assert {field: type(value) for field, value in data.items()} == expected | {"notes": list}


def test_a_recall_prints_exactly_what_the_agent_would_see(own: Program) -> None:
    said = own("--json", "recall", "deploy", "target").data
    assert list(said) == ["text", "notes", "hits"]
    plain = own("recall", "deploy  target", "--no-touch")
    assert plain.out.splitlines()[1:] == [*said["text"].splitlines()[1:]]
    assert plain.err == f"Note: {said['notes'][0]}\n"
    (hit,) = (hit for hit in said["hits"] if hit["id"] == DEPLOY_TARGET)
    assert list(hit)[:5] == ["id", "bank", "score", "date", "content"]
    assert hit["date"] == hit["timestamp"] == "2026-05-04T09:30:00.000Z"
    assert {hit["bank"] for hit in said["hits"]} >= {"default", "shop-before-move"}


def recall_count(home: demo.Demo, memory_id: str) -> int:
    for file in [home.database, *home.database.parent.glob("banks/*/mnemopi.db")]:
        with sqlite3.connect(file) as connection:
            row = connection.execute("SELECT recall_count FROM working_memory WHERE id = ?", [memory_id]).fetchone()
        connection.close()
        if row:
            return int(row[0])
    raise AssertionError(memory_id)


def test_a_recall_counts_as_the_tool_does_unless_asked_not_to(own: Program) -> None:
    own("recall", "--no-touch", "heroku", "deploy")
    assert recall_count(own.home, HEROKU) == 0
    own("recall", "heroku", "deploy")
    assert recall_count(own.home, HEROKU) == 1


@pytest.mark.parametrize(
    ("words", "hits"),
    [
        (("heroku", "mail"), 2),
        (("heroku mail",), 2),
        (("heroku", "--limit", "1", "mail"), 1),
        (("--limit=1", "heroku", "mail"), 1),
        (("-heroku", "mail"), 2),
        (("--", "--limit", "1"), 0),
        (("",), 0),
    ],
)
def test_words_are_joined_and_flags_may_stand_anywhere_before_the_dashes(
    program: Program, words: tuple[str, ...], hits: int
) -> None:
    data = program("recall", "--json", "--no-touch", "--bank", "shop-before-move", *words).data
    assert len([hit for hit in data["hits"] if "Heroku" in hit["content"]]) == hits


def test_the_reasons_of_scores_follow_the_text(program: Program) -> None:
    ended = program("recall", "--no-touch", "--explain", "deploy")
    assert "= 0." in ended.out.splitlines()[-1]
    assert (
        "matched deploy" in program("recall", "--no-touch", "--explain", "--json", "deploy").data["hits"][0]["reason"]
    )


def test_retain_stores_words_and_stdin(own: Program) -> None:
    assert own("retain", "Lunch", "is", "at", "noon.").out == "1 memory stored.\n"
    assert own("retain", stdin="Überstunden ⛅\nzweite Zeile\n".encode()).out == "1 memory stored.\n"
    assert own("retain", "--lines", "-", stdin=b"one line\r\n\ntwo lines\n").out == "2 memories stored.\n"
    assert own("retain", "--json", "a plain text").data["items"][0]["content"] == "a plain text"
    items = own("retain", "--items", "--json", "--context", "c", stdin=b'[{"content": "an item"}]').data["items"]
    assert [(item["content"], item["context"], item["state"]) for item in items] == [("an item", "c", "stored")]
    found = own("browse", "--json", "--since", "2026-06-02").data["memories"]
    assert {memory["content"] for memory in found if memory["store"] == "working"} == {
        "Lunch is at noon.",
        "Überstunden ⛅\nzweite Zeile",
        "one line\r",
        "two lines",
        "a plain text",
        "an item",
    }
    assert own("show", items[0]["id"]).out.endswith("\nan item\n")


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        ((), b"", "stdin is empty"),
        ((), b" \n", "stdin is empty"),
        ((), b"caf\xe9", "stdin is not valid UTF-8: byte 3"),
        (("--items",), b"[{]", "invalid JSON"),
        (("--items",), b'{"content": "x"}', "must be a list"),
        (("--lines",), b"\n\n", "stdin is empty"),
        (("--lines", "--items", "x"), b"", "exclude each other"),
        ((b"caf\xe9",), b"", "not valid UTF-8"),
        (("password=hunter2-and-more",), b"", "--redact stores it without"),
        (("<private>all of it</private>",), b"", "nothing to store"),
    ],
)
def test_what_cannot_be_stored_is_refused_in_one_line(
    own: Program, words: tuple[str, ...], stdin: bytes, says: str
) -> None:
    ended = own("retain", *words, stdin=stdin, code=2)
    assert says in ended.err
    assert (ended.out, ended.err.count("\n")) == ("", 1)


@pytest.mark.claim("N-03")
def test_private_parts_and_credentials_are_left_out_and_said(own: Program) -> None:
    ended = own("retain", "--redact", "--json", "Use <private>my</private> password=hunter2-and-more")
    assert [item["content"] for item in ended.data["items"]] == ["Use  password=[REDACTED]"]
    assert ended.data["notes"][:2] == [
        "1 private part was left out.",
        "1 part that looked like a credential became [REDACTED].",
    ]


def test_browse_shows_pages_and_filters(program: Program) -> None:
    ended = program("browse", "--bank", "*", "--limit", "3")
    assert len(ended.out.splitlines()) == 4
    assert "Further rows: --page 2" in ended.err
    data = program("browse", "--json", "--bank", "*", "--limit", "3", "--page", "2").data
    assert (data["offset"], len(data["memories"])) == (3, 3)
    stored_from = program("browse", "--json", "--bank", "*", "--stored-from", "/demo/blog").data["memories"]
    assert [memory["content"] for memory in stored_from] == ["The blog's deploy target is a static bucket."]
    nothing = program("browse", "no such text")
    assert nothing.out == "No such memories.\n"


def test_why_says_it_for_one_memory_and_for_all(program: Program) -> None:
    assert program("why", DEPLOY_TARGET, "deploy", "target").out.startswith(f"{DEPLOY_TARGET} (bank shop-")
    data = program("why", "--all", "--json", "deploy target").data
    assert data["verdicts"][0]["place"] == 1
    assert "came back" in data["notes"][0]
    assert "takes an id and a query" in program("why", DEPLOY_TARGET, code=2).err


def test_status_json_has_whole_paths_and_no_secret(program: Program) -> None:
    env = {
        "MNEMOPI_EMBEDDING_API_KEY": "sk-very-secret-key-0123456789",
        "MNEMOPI_EMBEDDING_API_URL": "http://x.invalid",
    }
    ended = program("status", "--json", env=env)
    rows = {row["name"]: row["value"] for row in ended.data["status"]}
    assert rows["database"].startswith(str(program.home.folder))
    assert "very-secret" not in ended.out + ended.err
    assert program("status").out.splitlines()[0].split() == ["what", "value", "from"]


def test_banks_and_scopes_show_what_is_read(program: Program) -> None:
    found = {bank["name"]: bank for bank in program("banks", "--json").data["banks"]}
    assert found["two-projects"]["use"] == "not read"
    assert (found["default"]["working"], found["default"]["cwds"]) == (2, ["/demo/shop"])
    modes = program("scopes", "--json", "--folder", "/demo/blog").data["scopes"]
    assert {row["backend"] for row in modes} == {"mnemopi", "hindsight"}
    assert not any(row["in_force"] for row in modes)


def test_the_doctor_says_no_where_there_are_faults_and_yes_after_the_repair(own: Program) -> None:
    assert "All is well" in own("doctor").err
    with sqlite3.connect(own.home.database) as connection:
        connection.execute("INSERT INTO annotations (memory_id, kind, value) VALUES ('gone', 'k', 'v')")
    connection.close()
    before = own("doctor", "--json", code=1).data
    assert before["faults"] == 1
    assert any("ipy-memory doctor --repair" in note for note in before["notes"])
    repaired = own("doctor", "--repair", "--json").data
    assert (repaired["faults"], "repaired" in {row["state"] for row in repaired["findings"]}) == (0, True)
    assert own("doctor", "--json").data["faults"] == 0


def test_the_audit_says_no_with_findings_and_writes_an_object_a_line(own: Program, tmp_path: Path) -> None:
    own("retain", "--keep", "the token is glpat-q7Zk2LwX9vB4nT6yR1mC")
    ended = own("audit", "secrets", "--json", code=1)
    (one,) = [json.loads(line) for line in ended.out.splitlines()]
    assert list(one)[:7] == ["kind", "id", "bank", "other", "severity", "evidence", "action"]
    assert (one["kind"], one["severity"], one["action"]) == ("secrets", "high", "redact")
    shown = own("audit", "secrets", code=1).out
    assert shown.startswith("1 finding in ")
    assert "glpat" not in shown
    (tmp_path / "before.jsonl").write_text(ended.out)
    clean = own("audit", "--baseline", str(tmp_path / "before.jsonl"), "secrets", "--json")
    assert (clean.out, "in the baseline" in clean.err) == ("", True)
    assert "accepted now" in own("audit", "secrets", "--accept", one["finding"]).err
    assert own("audit", "secrets").out.startswith("Nothing found in ")


def test_an_audit_of_an_unknown_kind_names_the_kinds(own: Program) -> None:
    assert "there are secrets, pii, duplicates" in own("audit", "words", code=2).err


def test_a_bank_that_cannot_be_read_is_a_finding(own: Program) -> None:
    own.home.database.write_bytes(b"no database at all, but long enough to look like one" * 40)
    ended = own("doctor", code=1)
    assert "fault" in ended.out


def test_a_folder_is_trusted_listed_and_no_longer_trusted(own: Program, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".omp").mkdir(parents=True)
    (project / ".omp" / "config.yml").write_text("hindsight:\n  apiUrl: http://localhost:9\n")
    assert own("trust", "--list", cwd=str(project)).out == "No folder is trusted.\n"
    trusted = own("trust", "--json", cwd=str(project)).data
    assert [row["setting"] for row in trusted["rows"]] == ["hindsight.apiUrl"]
    assert "ipy-memory trust --revoke" in trusted["notes"][0]
    assert str(project) in own("trust", "--list", cwd=None).out
    assert "no longer trusted" in own("trust", "--revoke", str(project), cwd=None).out
    assert own("trust", "--list").out == "No folder is trusted.\n"


def test_the_ranking_best_is_asked_for_by_name_and_counts_nothing(own: Program) -> None:
    assert own("recall", "--json", "--ranking", "best", "heroku", "deploy").data["hits"]
    assert recall_count(own.home, HEROKU) == 0
    assert "takes the agent's ranking apart" in own("recall", "--ranking", "best", "--explain", "x", code=2).err
    assert "agent, best" in own("recall", "--ranking", "worst", "x", code=2).err


def test_what_does_not_exist_is_an_error(program: Program) -> None:
    assert "ipy-memory browse" in program("show", "nope", code=2).err
    assert "there is default" in program("recall", "--bank", "nope", "x", code=2).err
    assert program("chain", "nope", code=2).out == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "needs a command"),
        (("recal", "x"), "did you mean recall?"),
        (("search", "x"), "did you mean recall?"),
        (("record", "on"), "works in IPython only – there it is %memory record"),
        (("recall",), "ipy-memory recall needs a text"),
        (("recall", "--limt", "3", "x"), "did you mean --limit?"),
        (("recall", "--limit"), "--limit needs a value: --limit N"),
        (("recall", "--limit", "0", "x"), "a whole number of at least 1"),
        (("recall", "--from", "name"), "has no flag --from"),
        (("status", "all"), "ipy-memory status takes nothing more"),
        (("show",), "takes one id"),
        (("--backend", "mnemopy", "status"), "did you mean mnemopi?"),
        (("--scope", "Global", "status"), "did you mean global?"),
        (("--demo", "--agent-dir", "x", "status"), "exclude each other"),
        (("--json", "demo"), "takes no --json"),
        (("demo", "--no-lab", "--execute"), "exclude each other"),
        (("why", "--everywhere", "x", "y"), "goes with --all"),
    ],
)
def test_a_wrong_command_line_is_one_line_that_says_what_is_right(
    program: Program, words: tuple[str, ...], says: str
) -> None:
    ended = program(*words, cwd=None, code=2)
    assert says in ended.err
    assert (ended.out, ended.err.count("\n")) == ("", 1)
    assert "MagicError" not in ended.err


def test_without_a_backend_every_command_says_how_to_choose_one(program: Program, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert "--backend mnemopi" in program("status", env=env).err
    assert "choose one with `--backend mnemopi`" in program("recall", "x", env=env, code=2).err
    assert program("recall", "--backend", "mnemopi", "x", env=env).out == "No relevant memories found.\n"
    assert list(tmp_path.iterdir()) == []


def test_options_choose_agent_scope_and_database(program: Program, tmp_path: Path) -> None:
    folder = str(program.home.agent_dir)
    env = {"HOME": str(tmp_path)}
    found = program("--agent-dir", folder, "recall", "--json", "--no-touch", "--scope", "global", "deploy", env=env)
    assert {hit["bank"] for hit in found.data["hits"]} == {"default"}
    elsewhere = program("status", "--json", "--agent-dir", folder, "--database", "~/other.db", env=env).data["status"]
    assert [row for row in elsewhere if row["value"].startswith(str(tmp_path))]


def test_the_demo_option_needs_no_home_and_leaves_none(program: Program, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    ended = program("--demo", "recall", "deploy", "target", env=env, cwd=None)
    with program.home.session() as session:
        assert ended.out == session.recall(demo.QUERY, touch=False).text + "\n"
    assert list(tmp_path.iterdir()) == []


def test_help_lists_the_commands_by_what_they_are_for(program: Program) -> None:
    page = program("-h", cwd=None).out
    for name, command in SHELL.items():
        assert f"\n    {name} " in page
        assert page.index(f"\n{command.group}:\n") < page.index(f"\n    {name} ")
    assert program("recall", "-h").out == program("recall", "deploy", "--help").out
    assert "--stored-from PATH" in program("browse", "-h").out
    assert program("--version", cwd=None).out.startswith("ipy-memory 0.")


@pytest.mark.parametrize("name", ["shop", "my shop"])
def test_an_answer_without_hits_names_the_banks_near_by(own: Program, tmp_path: Path, name: str) -> None:
    """C19: the exact text stays on stdout, the note and the command to go there are on stderr."""
    project, below = tmp_path / name, tmp_path / name / "notebooks"
    below.mkdir(parents=True)
    own("retain", "The lighthouse is green", cwd=str(project))
    ended = own("recall", "lighthouse", cwd=str(below))
    assert ended.out == "No relevant memories found.\n"
    *_, missing, other = ended.err.splitlines()  # first, what the agent will consolidate in the shared bank
    assert missing.endswith("/notebooks has no file yet.")
    assert "has 1 memory and 1 hit for this query. To go there: --cwd " in other
    there = shlex.split(other.partition("To go there: ")[2])
    assert "The lighthouse is green" in own(*there, "recall", "lighthouse", cwd=None).out
    assert other.removeprefix("Note: ") in own("recall", "--json", "lighthouse", cwd=str(below)).data["notes"]
    assert "no file yet" in own("reflect", "lighthouse", cwd=str(below)).err
    assert "To go there" not in own("recall", "--bank", "default", "lighthouse", cwd=str(below)).err
    made = own("retain", "A quokka of the notebook", cwd=str(below)).err.splitlines()
    assert made[0].startswith("Note: This made a new bank")
    assert made[1].startswith("Note: Bank ")
    assert "To go there" not in own("recall", "quokka", cwd=str(below)).err


def test_a_recall_with_filters_counts_nothing_and_says_what_was_asked(own: Program) -> None:
    filters = ["--source=coding-agent-retain", "--since=2026-05-04", "--until=2026-05-04", "--at=2026-05-05"]
    first, second = (own("recall", "--json", *filters, "deploy", "target").data for _ in range(2))
    assert [hit["id"] for hit in first["hits"]] == [DEPLOY_TARGET]
    assert first["hits"] == second["hits"]
    assert any(note.startswith("Asked with --source coding-agent-retain --since 2026-05-04") for note in first["notes"])


def test_a_filter_that_cannot_be_honoured_is_refused_by_name(own: Program) -> None:
    assert "Mnemopi does not support --tag" in own("recall", "--tag", "a", "deploy", code=2).err
    best = own("recall", "--ranking", "best", "--at", "2026", "deploy", code=2)
    assert "The ranking best does not support --at" in best.err
