"""A JupyterLab of the tests' own, and Chromium in front of it.

With ``IPY_MEMORY_PICTURES`` set, the pictures of the documentation are taken again.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.services.jupyterlab import ROOT, SECONDS, chromium, running_lab

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PICTURES = ROOT / "docs" / "img"


@dataclass
class Lab:
    """A running JupyterLab and the folder it serves."""

    url: str
    folder: Path
    context: BrowserContext
    pictures: Path

    def open(self, name: str, cells: Sequence[str]) -> Notebook:
        """Open a new notebook with these cells, its kernel ready."""
        notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / f"{name}.ipynb")
        page = self.context.new_page()
        opened = Notebook(page, self.pictures)
        page.on("pageerror", lambda error: opened.errors.append(str(error)))
        page.goto(f"{self.url}/lab/tree/{name}.ipynb?reset")
        page.locator(".jp-CodeCell").first.wait_for(timeout=SECONDS * 1000)
        # Before the kernel says it is idle, a keystroke that runs a cell is lost.
        page.get_by_text("| Idle").first.wait_for(timeout=SECONDS * 1000)
        return opened


@dataclass
class Notebook:
    """A notebook in a page: its cells are run as the user does."""

    page: Page
    pictures: Path
    errors: list[str] = field(default_factory=list)

    def run(self, index: int) -> Locator:
        """Run a cell with Shift+Enter and return its outputs."""
        cell = self.page.locator(".jp-CodeCell").nth(index)
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]:"))
        return cell.locator(".jp-OutputArea")

    def picture(self, name: str, of: Locator | None = None) -> None:
        """Keep a picture; of one output, or of the window."""
        self.page.mouse.move(0, 0)
        (of or self.page).screenshot(path=self.pictures / f"{name}.png", animations="disabled")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with running_lab(tmp_path_factory.mktemp("lab")) as served:
        yield served


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with chromium(tmp_path_factory.mktemp("chromium")) as context:
        yield context


@pytest.fixture
def lab(server: tuple[str, Path], browser: BrowserContext, tmp_path: Path) -> Iterator[Lab]:
    url, folder = server
    yield Lab(url, folder, browser, PICTURES if "IPY_MEMORY_PICTURES" in os.environ else tmp_path)
    for number, page in enumerate(browser.pages[1:]):
        # How it looked at the end, for whoever has to find out why a test failed.
        page.screenshot(path=tmp_path / f"page-{number}.png")
        page.close(run_before_unload=False)
