"""A recall in JupyterLab: the picture of the README."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser


@pytest.mark.claim("N-02")
def test_a_recall_shows_the_text_and_a_table(lab: Lab) -> None:
    notebook = lab.open("recall", ["from ipy_memory import demo\ndemo.start();", "%recall deploy target"])
    notebook.page.set_viewport_size({"width": 1344, "height": 960})
    expect(notebook.run(0).locator(".jp-OutputArea-child")).to_have_count(0)
    output = notebook.run(1)
    expect(output.locator("pre")).to_contain_text("Found 5 relevant memories (as of 2026-06-01 12:00 UTC):")
    expect(output.locator("table tbody tr")).to_have_count(5)
    expect(output.locator(".jp-OutputArea-child")).to_have_count(1)
    notebook.picture("recall")
    assert notebook.errors == []
