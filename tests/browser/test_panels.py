"""The panels in JupyterLab, used as the user does: with the mouse and with the keyboard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.backends.hindsight.stub import StubServer

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

START = "%load_ext ipy_memory\nfrom ipy_memory import demo\nhome = demo.start()"
COUNT = """\
from IPython import get_ipython
magics = get_ipython().magics_manager.registry["MemoryMagics"]
asked, recall = [], magics.session.recall
def counting(query, **options):
    asked.append(query)
    return recall(query, **options)
magics.session.recall = counting"""


@pytest.mark.claim("N-04", "M-06")
def test_recall_read_edit_invalidate_undo_and_switch_scope(lab: Lab) -> None:
    notebook = lab.open("panels", [START, COUNT, "%memory panel recall", "print(asked)", "%memory panel banks"])
    page = notebook.page
    expect(notebook.run(0).locator(".jp-OutputArea-child")).to_have_count(0)
    notebook.run(1)
    panel = notebook.run(2)
    expect(panel.locator(".jp-OutputArea-child")).to_have_count(1)

    # Enter searches once; leaving the box by a click on the button makes one search, not two.
    query = panel.get_by_role("textbox", name="Query")
    query.fill("deploy target")
    query.press("Enter")
    rows = panel.get_by_role("grid").locator("tbody tr")
    expect(rows).to_have_count(5)
    expect(panel.get_by_role("status").first).to_contain_text("Found 5 relevant memories")
    notebook.picture("panel-recall", panel)
    query.fill("postgres migrations")
    panel.get_by_role("button", name="Recall").click()
    expect(rows.first).to_contain_text("PostgreSQL")
    expect(notebook.run(3)).to_have_text("['deploy target', 'postgres migrations']\n")
    query.fill("deploy target")
    query.press("Enter")
    expect(rows).to_have_count(5)

    # A row picked with the mouse shows the whole text, past the preview's end.
    text = panel.get_by_role("textbox", name="Text")
    rows.nth(0).click()
    expect(rows.nth(0)).to_have_attribute("aria-selected", "true")
    expect(text).to_have_value(re.compile("a script could have done[.]$"))

    # And with the keyboard: arrows move, Space and Enter pick; sorting keeps the pick.
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(text).to_have_value("Deploy target of the shop: Hetzner, region fra.")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    expect(text).to_have_value("The shop uses PostgreSQL 16; migrations run before a deploy.")
    panel.get_by_role("button", name="date", exact=True).click()
    expect(panel.get_by_role("columnheader", name="date", exact=False)).to_have_attribute("aria-sort", "ascending")
    chosen = panel.locator("tr[aria-selected=true]")
    expect(chosen).to_have_count(1)
    expect(chosen).to_contain_text("PostgreSQL 16")

    # Edit: the difference is shown before anything is saved.
    text.fill("The shop uses PostgreSQL 17; migrations run before a deploy.")
    panel.get_by_role("button", name="Save…").click()
    expect(panel.locator("ins")).to_have_text("+The shop uses PostgreSQL 17; migrations run before a deploy.")
    expect(panel.locator("del")).to_have_text("-The shop uses PostgreSQL 16; migrations run before a deploy.")
    notebook.picture("panel-edit", panel)
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(panel.get_by_role("status").last).to_contain_text("updated")
    expect(panel.get_by_role("grid")).to_contain_text("PostgreSQL 17")

    # Invalidate, see it go, undo, see it come back.
    panel.get_by_role("button", name="Invalidate…").click()
    panel.get_by_role("button", name="Invalidate", exact=True).click()
    mended = rows.filter(has_text="PostgreSQL 17")
    expect(mended).to_have_count(0)
    panel.get_by_role("button", name="Undo").last.click()
    expect(mended).to_have_count(1)
    expect(panel.get_by_role("status").last).to_contain_text("as it was before")

    # Another scope, in a second panel: the first one follows.
    banks = notebook.run(4)
    expect(banks.get_by_role("grid").locator("tbody tr")).to_have_count(4)
    notebook.picture("panel-banks", banks)
    banks.get_by_role("combobox", name="Scope").select_option("global")
    expect(banks.get_by_role("status")).to_contain_text("writes default, reads default")
    expect(rows).to_have_count(1)
    expect(panel.get_by_role("combobox", name="Scope")).to_have_value("global")
    assert notebook.errors == []


@pytest.mark.claim("N-04")
def test_what_is_retained_waits_in_sight_until_the_server_has_it(lab: Lab) -> None:
    with StubServer() as stub:
        opened = f"s = open_session('hindsight', settings={{'hindsight.apiUrl': {stub.url!r}}}, cwd='/demo/shop')"
        start = f"from ipy_memory import open_session\nfrom ipy_memory.notebook.widgets import panel\n{opened}"
        notebook = lab.open("queue", [start, "panel(s, 'retain')", "s.close()"])
        notebook.run(0)
        panel = notebook.run(1)
        panel.get_by_role("textbox", name="Text", exact=True).fill("Deploys go out on Tuesdays.")
        panel.get_by_role("button", name="Retain").click()
        waiting = panel.get_by_role("grid").locator("tbody tr")
        expect(waiting).to_have_count(1)
        expect(waiting).to_contain_text("waiting")
        expect(panel.get_by_role("status")).to_contain_text("1 memory queued")
        notebook.picture("panel-retain", panel)
        # Nobody touches it: the queue's own timer sends, and the panel sees it.
        expect(panel.get_by_role("status")).to_have_text("Everything was sent.")
        expect(waiting).to_have_count(0)
        assert [request["body"]["items"][0]["content"] for request in stub.requests if request["method"] == "POST"] == [
            "Deploys go out on Tuesdays."
        ]
        notebook.run(2)
        assert notebook.errors == []


@pytest.mark.claim("N-04")
def test_several_are_invalidated_and_brought_back_with_one_confirmation_each(lab: Lab) -> None:
    """B130: filter, tick, invalidate with the count in sight, undo. B095: loading again breaks no panel."""
    notebook = lab.open("bulk", [START, "%memory panel recall deploy target", "%load_ext ipy_memory"])
    notebook.run(0)
    panel = notebook.run(1)
    rows = panel.get_by_role("grid").locator("tbody tr")
    expect(rows).to_have_count(5)
    notebook.run(2)
    panel.get_by_role("checkbox", name="mark all").check()
    panel.get_by_role("button", name="Invalidate marked…").click()
    expect(panel.get_by_role("status").first).to_contain_text("5 memories would be invalidated: ")
    panel.get_by_role("button", name="Invalidate 5").click()
    expect(panel.get_by_role("status").first).to_contain_text("5 memories invalidated")
    notebook.picture("panel-bulk", panel)
    panel.get_by_role("button", name="Undo").first.click()
    expect(panel.get_by_role("status").first).to_contain_text("5 memories restored: ")
    expect(rows).to_have_count(5)
    assert notebook.errors == []


@pytest.mark.claim("N-04")
def test_the_panels_read_well_in_the_dark(lab: Lab) -> None:
    notebook = lab.open("dark", [START, "%memory panel reflect deploy target"])
    notebook.run(0)
    panel = notebook.run(1)
    expect(panel.get_by_role("grid").locator("tbody tr")).to_have_count(5)
    try:
        _theme(notebook.page, "Dark")
        row = panel.get_by_role("grid").locator("tbody tr").nth(1)
        row.click()
        expect(row).to_have_attribute("aria-selected", "true")
        notebook.picture("panel-reflect-dark", panel)
    finally:
        _theme(notebook.page, "Light")


def _theme(page: Page, name: str) -> None:
    page.get_by_role("menuitem", name="Settings").click()
    page.get_by_text("Theme", exact=True).hover()
    page.get_by_text(f"JupyterLab {name}", exact=True).click()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", str(name == "Light").lower())
