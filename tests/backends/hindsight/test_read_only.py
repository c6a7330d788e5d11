"""An agent's folder that cannot be written: what is retained is refused or held, never acknowledged and lost."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.backends.hindsight.stub import StubServer

_DROP_FROM_BOUNDING_SET = 24
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2

PROGRAM = """
import json, sys
from pathlib import Path
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.session import open_session

folder, url, locked = sys.argv[1:]
said = {}

def attempt(name, work):
    try:
        said[name] = str(work())
    except MemoryToolkitError as error:
        said[name] = [type(error).__name__, error.message, error.hint]

with open_session("hindsight", cwd=folder, agent_dir=folder, env={"HOME": folder, "HINDSIGHT_API_URL": url}) as session:
    if locked:
        attempt("before", lambda: session.retain("held").text)
        Path(folder, locked).chmod(0o500)
    attempt("retain", lambda: session.retain("a secret").text)
    attempt("tool", lambda: session.tools["retain"](items=[{"content": "a secret"}]).text)
    attempt("recall", lambda: session.recall("q").text)
    attempt("queue", lambda: [row.text for row in session.backend.queue_rows()])
    attempt("flush", lambda: session.flush())
    said["notices"] = [notice.text for notice in session.notices]
print(json.dumps(said))
"""


def _as_others() -> None:
    """Give up what lets root write where the permissions do not; nothing to give up for anybody else."""
    if os.geteuid() != 0:
        return
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


def lived(folder: Path, stub: StubServer, locked: str = "") -> dict[str, Any]:
    """Return what a session of a process said that may not write where the permissions do not let it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), stub.url, locked],
        preexec_fn=_as_others,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "agent"
    folder.mkdir()
    yield folder
    for path in (folder, *folder.iterdir()):
        path.chmod(0o700)


def refused(said: dict[str, Any], reason: str) -> None:
    for name in ("retain", "tool"):
        kind, message, hint = said[name]
        assert kind == "OutboxError"
        assert message.endswith(f"cannot be used: {reason}.")
        assert hint.startswith("nothing was changed; check that the folder can be written")
    assert said["recall"] == "No relevant memories found."


def test_where_nothing_can_be_kept_nothing_is_acknowledged(folder: Path, stub: StubServer) -> None:
    folder.chmod(0o500)
    said = lived(folder, stub)
    refused(said, "Permission denied")
    assert (said["queue"], said["notices"]) == ("[]", [])
    assert list(folder.iterdir()) == []
    assert [request["url"].rpartition("/")[2] for request in stub.requests] == ["recall"]


def test_what_was_acknowledged_before_is_held_and_sent_when_the_folder_can_be_written(
    folder: Path, stub: StubServer
) -> None:
    said = lived(folder, stub, "ipy_memory")
    assert said["before"] == "1 memory queued."
    refused(said, "attempt to write a readonly database")
    assert said["queue"] == "['held']"
    (notice,) = said["notices"]
    assert notice.startswith("Memory retention failed for 1 memory: The outbox, ")
    assert notice.endswith("attempt to write a readonly database.")
    assert not any(request["url"].endswith("/memories") for request in stub.requests)
    (folder / "ipy_memory").chmod(0o700)
    env = {"HOME": str(folder), "HINDSIGHT_API_URL": stub.url}
    with open_session("hindsight", cwd=str(folder), agent_dir=str(folder), env=env) as session:
        session.retain("later")
    sent = [request["body"]["items"] for request in stub.requests if request["url"].endswith("/memories")]
    assert sorted(item["content"] for batch in sent for item in batch) == ["held", "later"]
