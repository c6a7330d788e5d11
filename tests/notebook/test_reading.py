"""What makes results readable: dates in one form, widths that fit a window, copies and counts said once, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.frames.build import DataFrame
from ipy_memory.jscompat import dates
from ipy_memory.notebook.commands.edit import counted
from ipy_memory.notebook.result import ListFrame, html_block, html_table
from tests.notebook.conftest import NOW, Notebook, plain, stored

if TYPE_CHECKING:
    from pathlib import Path

WHEN = "2026-06-01 12:00"


def html(notebook: Notebook, line: str) -> str:
    return notebook.run(line).outputs[0]["text/html"]


def refusal(notebook: Notebook, line: str) -> str:
    error = notebook.run(line).error
    assert isinstance(error, MemoryToolkitError)
    return error.one_line()


def test_a_date_is_never_broken_and_content_keeps_a_width() -> None:
    shown = html_table(("date", "content"), [(WHEN, "It is due on 2026-06-01 12:00."), ("2026-06-01", "x")])
    assert shown.count("nowrap") == 2
    assert f'white-space: nowrap">{WHEN}<' in shown
    assert shown.count("min-width") == 1
    assert 'min-width: 12em">content<' in shown


def test_a_block_stands_where_a_table_does() -> None:
    assert 'style="margin: 0 0 0.5em; ' in html_block("x")


def test_a_list_can_show_its_rows_otherwise_than_the_frame_holds_them() -> None:
    frame = ListFrame(DataFrame({"a": [1], "b": ["kept"]}), ("a", "c"), shown=DataFrame({"a": ["one"], "c": ["more"]}))
    assert list(frame.columns) == ["a", "b"]
    assert frame._repr_mimebundle_()["text/plain"] == "a    c\none  more"


@pytest.mark.parametrize("line", ["%recall deploy", "%memory browse", "%memory panel --static recall deploy"])
def test_a_date_is_shown_to_the_minute(real: Notebook, line: str) -> None:
    stored(real, "The deploy target is fly.io")
    shown = html(real, line)
    assert f">{WHEN}<" in shown
    assert ".000Z" not in shown


@pytest.mark.parametrize("line", ["%memory report", "%memory consolidate", "%memory panel --static banks"])
def test_a_date_in_a_text_is_to_the_minute(real: Notebook, line: str) -> None:
    stored(real, "The deploy target is fly.io")
    assert ".000Z" not in plain(real, line)


def test_the_panel_of_a_memory_shows_dates_to_the_minute(real: Notebook) -> None:
    memory_id = stored(real, "The deploy target is fly.io")
    plain(real, f"%memory invalidate {memory_id}")
    shown = plain(real, f"%memory panel --static memory {memory_id}")
    assert f"invalid since  {WHEN}" in shown
    assert ".000Z" not in shown


def test_a_chain_shows_dates_to_the_minute_and_its_frame_what_is_stored(real: Notebook) -> None:
    first, second = stored(real, "The plan is A"), stored(real, "The plan is B")
    plain(real, f"%memory invalidate --by {second} {first}")
    ran = real.run(f"%memory chain {first}")
    assert ran.outputs[0]["text/plain"].count(WHEN) == 3
    assert ran.result["valid_until"].tolist()[0] == NOW


def test_a_chain_goes_on_in_another_bank_in_scope(real: Notebook) -> None:
    real.run("%memory scope global")
    shared = stored(real, "Everybody drinks tea")
    real.run("%memory scope per-project-tagged")
    own = stored(real, "Everybody here drinks coffee")
    plain(real, f"%memory invalidate --by {shared} {own}")
    for start in (own, shared):
        found = real.run(f"%memory chain {start}").result
        assert found["id"].tolist() == [own, shared]
        assert found["bank"].nunique() == 2
    real.run("%memory scope per-project")
    shown = plain(real, f"%memory chain {own}")
    assert f"Memory {shared}, which comes next, is in no bank in scope." in shown


def test_a_copy_is_named_once_and_only_of_the_bank_that_was_edited(real: Notebook) -> None:
    real.run("%memory scope global")
    shared = stored(real, "Everybody drinks tea")
    real.run("%memory scope per-project-tagged")
    own, other = stored(real, "Coffee here"), stored(real, "Cocoa there")
    first = plain(real, f"%memory update {own} Coffee in the kitchen")
    assert first.count("Copy of the bank") == 1
    assert "/copies/shop-" in first
    assert "Copy" not in plain(real, f"%memory update {other} Cocoa in the kitchen")
    in_shared = plain(real, f"%memory invalidate {shared}")
    assert in_shared.count("Copy of the bank") == 1
    assert "/banks/" not in in_shared
    real.run("rows = %memory browse")
    assert "Copy" not in plain(real, "%memory invalidate --frame rows --yes")


def test_a_selection_names_the_copy_at_the_first_edit(real: Notebook) -> None:
    stored(real, "Coffee here")
    real.run("rows = %memory browse")
    assert plain(real, "%memory invalidate --frame rows --yes").count("Copy of the bank") == 1


@pytest.mark.parametrize(
    ("number", "table", "said"),
    [
        (1, "annotations", "1 annotation"),
        (2, "annotations", "2 annotations"),
        (1, "memoria_timelines", "1 event"),
        (3, "graph_edges", "3 links"),
        (1, "new_table", "1 row of new_table"),
        (2, "new_table", "2 rows of new_table"),
    ],
)
def test_rows_that_go_along_are_counted_in_words(number: int, table: str, said: str) -> None:
    assert counted(number, table) == said


def test_every_table_whose_rows_can_go_along_has_a_word() -> None:
    from ipy_memory.backends.mnemopi.store.delete import _OWNED
    from ipy_memory.notebook.commands.edit import _ROWS

    assert {table for table, _ in _OWNED} | {"graph_edges"} == set(_ROWS)


def test_the_scopes_are_a_few_columns_and_the_frame_has_all(real: Notebook) -> None:
    stored(real, "The deploy target is fly.io")
    ran = real.run("%memory scopes deploy")
    head = ran.outputs[0]["text/plain"].splitlines()[0].split()
    assert head == ["backend", "mode", "writes", "reads", "hits", "best", "hit"]
    assert "per-project (in force)" in ran.outputs[0]["text/html"]
    assert "default (no file yet)" in ran.outputs[0]["text/html"]
    assert {"file", "exists", "in_force", "rescued", "write_tags", "read_filter"} <= set(ran.result.columns)
    assert ran.result["in_force"].sum() == 1
    assert "not asked: the session is not on this server" in ran.outputs[0]["text/plain"]
    assert "hits" not in real.run("%memory scopes").outputs[0]["text/plain"].splitlines()[0]


def test_choosing_a_scope_says_what_it_writes_and_reads(real: Notebook, tmp_path: Path) -> None:
    assert plain(real, "%memory scope global").splitlines() == [
        "Memory scope of this notebook: global",
        "writes: default (no file yet)",
        "reads: default",
    ]
    real.run("%memory use hindsight")
    (tmp_path / "config.yml").write_text("hindsight:\n  apiUrl: http://127.0.0.1:9\n  bankId: omp\n")
    real.run("%memory use hindsight")
    written, read = plain(real, "%memory scope per-project-tagged").splitlines()[1:]
    assert written == "writes: omp, tagged project:shop"
    assert read.startswith("reads: omp; project:shop")
    real.run("%memory use off")
    assert plain(real, "%memory scope global") == "Memory scope of this notebook: global"


def test_a_report_names_the_home_folder_as_status_does(real: Notebook, tmp_path: Path) -> None:
    stored(real, "The deploy target is fly.io")
    shown = plain(real, "%memory report")
    assert str(tmp_path) not in shown
    assert "database: ~/mem/" in shown
    assert "(compare the settings above)" in shown


def test_a_recording_that_is_on_is_described_as_one(real: Notebook) -> None:
    real.run("%memory record on")
    assert plain(real, "%memory record preview").startswith("While recording is on, each cell's source")


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-01-15T10:00:00.000Z", "2026-01-15 10:00"),
        ("2026-01-15T10:00:59+02:00", "2026-01-15 08:00"),
        ("2026-01-15", "2026-01-15"),
        ("+012026-01-15T10:00:00.000Z", "+012026-01-15 10:00"),
        ("not said by anyone", "not said by anyone"),
        ("", ""),
    ],
)
def test_a_stored_time_is_shown_to_the_minute(stamp: str, shown: str) -> None:
    assert dates.shown_stamp(stamp, None) == shown


def test_a_memory_out_of_scope_is_shown_and_edited_by_naming_its_bank(real: Notebook) -> None:
    """C06: each command refuses, names the bank, and its hint works as it is printed."""
    real.run("%memory scope global")
    memory_id = stored(real, "Everybody drinks tea")
    real.run("%memory scope per-project")
    for command, more in (("show", ""), ("update", " Everybody drinks coffee"), ("invalidate", ""), ("forget", "")):
        refused = refusal(real, f"%memory {command} {memory_id}{more}")
        hint = f"%memory {command} --bank default {memory_id}"
        assert f"Memory {memory_id} is in bank default, which is out of scope (per-project)." in refused
        assert hint in refused
        assert memory_id in plain(real, f"{hint}{more}")
    real.run("%memory scope global")
    assert "No relevant memories found." in plain(real, "%recall tea coffee")


def test_an_edit_in_a_named_bank_is_undone_there(real: Notebook) -> None:
    real.run("%memory scope global")
    memory_id = stored(real, "Everybody drinks tea")
    real.run("%memory scope per-project")
    for edit in ("update --bank default {} coffee", "invalidate --bank default {}"):
        plain(real, "%memory " + edit.format(memory_id))
        plain(real, "%memory undo")
        page = plain(real, f"%memory show --bank default {memory_id}")
        assert page.endswith("Everybody drinks tea")
    real.run("%memory scope global")
    assert "Found 1 relevant memory" in plain(real, "%recall tea")


def test_a_selection_says_its_banks_itself(real: Notebook) -> None:
    stored(real, "Everybody drinks tea")
    real.run("rows = %memory browse")
    assert "the rows of --frame say their banks" in refusal(real, "%memory invalidate --frame rows --bank x --yes")
