"""What every test shares: claim marks count only when the test really ran, Ctrl-C interrupts, no home is needed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest_plugins = ["tests.services.fixtures"]

# How long an example takes says more of the machine than of the code. In CI the examples are the same on every run, so
# that a change is judged by what it changed; everywhere else they are new each time.
settings.register_profile("untimed", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same" if os.environ.get("CI") else "untimed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test that covers a claim into a failure: a skipped check covers nothing."""
    report = yield
    if report.skipped and item.get_closest_marker("claim"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} covers a claim and was skipped: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> Iterator[None]:
    """Take Ctrl-C: what a shell runs in the background begins with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what shells, kernels and plots write out of the person's home, which may not be writable."""
    folder = tmp_path_factory.mktemp("places")
    with pytest.MonkeyPatch.context() as patched:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
            patched.setenv(name, str(folder / name.lower()))
        yield
