"""A disk that fails at any write: always an error of the family, nothing half-written, nothing acknowledged lost."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.crash

WHOLE = ["I prefer harbour tea", "Mira uses Redis"]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "faulty.so"
    source = Path(__file__).with_name("faulty.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, capture_output=True)
    return library


def played(shim: Path, folder: Path, action: str, error: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.faulty_worker", folder, action, str(error)],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        check=True,
        timeout=540,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def contents(path: str) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [text for (text,) in connection.execute("SELECT content FROM working_memory ORDER BY rowid")]


@pytest.mark.parametrize("action", ["retain", "recall", "update", "forget", "clear", "repair", "enqueue"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_whichever_write_fails_the_bank_is_whole_and_the_error_is_ours(
    shim: Path, tmp_path: Path, action: str, error: int
) -> None:
    """B14: every odd one goes on failing, every even one fails once."""
    runs = played(shim, tmp_path, action, error)
    assert len(runs) > 3
    assert [run["raw"] for run in runs if "raw" in run] == []
    assert any("error" in run or run.get("done") == [None] * 3 for run in runs) or action == "recall"
    new = [f"I prefer harbour {number}" for number in range(3)]
    for run in runs:
        held = contents(run["path"])
        if action == "retain":
            ids = run.get("done", [None] * 3)
            assert held == (WHOLE + new if all(ids) else WHOLE), run
        elif action == "update":
            changed = ["changed", WHOLE[1]]
            assert held in ([changed] if "done" in run else [WHOLE, changed]), run
        elif action == "forget":
            gone = "done" in run or "The memory is deleted" in run.get("error", "")
            assert held == (WHOLE[1:] if gone else WHOLE), run
        elif action == "clear":
            assert held in ([[]] if "done" in run else [WHOLE, []]), run
        else:
            assert held == WHOLE, run
