"""Signs of life in JupyterLab: a line while a magic works, and no trace of it afterwards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.backends.hindsight.stub import StubServer

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

SLOW = {"delay_ms": 600_000, "body": {"results": [{"text": "alpha"}]}}


@pytest.mark.claim("N-02")
def test_a_magic_at_work_shows_a_line_that_vanishes(lab: Lab) -> None:
    with StubServer() as stub:
        chosen = f"import os\nos.environ['HINDSIGHT_API_URL'] = {stub.url!r}\n%load_ext ipy_memory\n"
        notebook = lab.open(
            "progress",
            [chosen + "%memory use hindsight\n%recall x;", "%recall alpha", "print('before')\n%recall alpha"],
        )
        notebook.run(0)
        stub.answer_with([SLOW])
        for index in (1, 2):
            stub.released.clear()
            cell = notebook.page.locator(".jp-CodeCell").nth(index)
            cell.locator(".cm-content").click()
            notebook.page.keyboard.press("Shift+Enter")
            expect(cell.locator(".jp-OutputArea")).to_contain_text("working…")
            stub.released.set()
            expect(cell.locator(".jp-OutputArea")).to_contain_text("Found 1 relevant memory")
            expect(cell.locator(".jp-OutputArea")).not_to_contain_text("working…")
        expect(cell.locator(".jp-OutputArea")).to_contain_text("before")
        assert notebook.errors == []
        notebook.page.keyboard.press("Control+s")
        notebook.page.wait_for_function("document.title && !document.querySelector('.jp-mod-dirty')")
    stored = json.loads((lab.folder / "progress.ipynb").read_text(encoding="utf-8"))
    assert "working" not in json.dumps(stored["cells"])
    assert [one["output_type"] for one in stored["cells"][1]["outputs"]] == ["execute_result"]
