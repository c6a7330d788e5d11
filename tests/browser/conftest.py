"""A JupyterLab of its own on a free port, and Chromium in front of it.

With ``IPY_MEMORY_PICTURES`` set, the pictures of the documentation are taken anew.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "img"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
SWITCHES += ["--disable-component-update", "--disable-sync", "--force-color-profile=srgb"]
CONFIG = """\
c.ServerApp.token = ''
c.ServerApp.password = ''
c.ServerApp.ip = '127.0.0.1'
c.ServerApp.allow_root = True
c.ServerApp.open_browser = False
"""
NOTIFICATIONS = '{"fetchNews": "false", "checkForUpdates": false}'
SECONDS = 30


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
    """A notebook in a page: its cells are run as a person does."""

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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("lab")
    folder = home / "work"
    folder.mkdir()
    (home / "config.py").write_text(CONFIG + f"c.ServerApp.root_dir = {str(folder)!r}\n", encoding="utf-8")
    quiet = home / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(NOTIFICATIONS, encoding="utf-8")
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "run"}
    places |= {"IPYTHONDIR": "ipython", "HOME": ".", "MPLCONFIGDIR": "mpl"}
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "TZ": "UTC",
        **{name: str(home / place) for name, place in places.items()},
    }
    port = _free_port()
    command = [sys.executable, "-m", "jupyterlab", f"--config={home / 'config.py'}", f"--port={port}"]
    command += ["--ServerApp.port_retries=0"]
    with (home / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_for(url, process, home / "log.txt")
            yield url, folder
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{url}/api", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}") from None
            time.sleep(0.1)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert path, "these tests need Chromium"
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("chromium")),
            executable_path=path,
            headless=True,
            args=SWITCHES,
            viewport={"width": 1280, "height": 1500},
        )
        context.set_default_timeout(SECONDS * 1000)
        expect.set_options(timeout=SECONDS * 1000)
        yield context
        context.close()


@pytest.fixture
def lab(server: tuple[str, Path], browser: BrowserContext, tmp_path: Path) -> Iterator[Lab]:
    url, folder = server
    yield Lab(url, folder, browser, PICTURES if "IPY_MEMORY_PICTURES" in os.environ else tmp_path)
    for number, page in enumerate(browser.pages[1:]):
        # How it looked at the end, for whoever has to find out why a test failed.
        page.screenshot(path=tmp_path / f"page-{number}.png")
        page.close(run_before_unload=False)
