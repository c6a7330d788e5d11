"""A JupyterLab of its own on a free port, and Chromium to look at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import BrowserContext, expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
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


@contextmanager
def running_lab(home: Path) -> Iterator[tuple[str, Path]]:
    """Run JupyterLab with all that it keeps in an empty folder; yield its address and the folder it serves."""
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


@contextmanager
def chromium(profile: Path, *, width: int = 1280, height: int = 1500) -> Iterator[BrowserContext]:
    """Run Chromium without a window; its profile is an empty folder."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert path, "Chromium is not on the PATH"
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=path,
            headless=True,
            args=SWITCHES,
            viewport={"width": width, "height": height},
        )
        context.set_default_timeout(SECONDS * 1000)
        expect.set_options(timeout=SECONDS * 1000)
        yield context
        context.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
