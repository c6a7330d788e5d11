"""The server's official Python client reads what this package wrote, and the reverse.

The client lives in the server's environment, and runs there as a program of its own.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.real_server.conftest import Agent

if TYPE_CHECKING:
    from tests.real_server.remote import Remote
    from tests.services.hindsight_server import HindsightServer

pytestmark = pytest.mark.hindsight

Open = Callable[..., Agent]
PROGRAM = """
import json, sys
from hindsight_client import Hindsight

given = json.load(sys.stdin)
with Hindsight(given["url"], api_key=given["key"]) as client:
    answer = getattr(client, given["call"])(**given["with"])
    print(json.dumps(answer.to_dict(), default=str))
"""


@pytest.fixture
def official(hindsight_server: HindsightServer) -> Callable[..., Any]:
    """Call one method of the official client: ``official("recall", bank_id=…, query=…)``."""

    def call(name: str, **given: Any) -> Any:
        asked = {"url": hindsight_server.base_url, "key": hindsight_server.api_key, "call": name, "with": given}
        ended = subprocess.run(
            [hindsight_server.python, "-I", "-c", PROGRAM],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return call


@pytest.mark.claim("Q-07", "Q-08")
def test_the_official_client_reads_what_this_package_wrote(agent: Open, remote: Remote, official: Any) -> None:
    me = agent("per-project-tagged", safeRetain=True)
    me.session.retain("The deploy target is fly.io, naïve 日本語", "release notes")
    me.session.flush()
    remote.settle(me.bank)
    ours = me.session.recall("deploy target")
    (theirs,) = official("recall", bank_id=me.bank, query="deploy target", tags=["project:demo"])["results"]
    (hit,) = ours.hits
    assert (theirs["id"], theirs["text"], theirs["type"]) == (hit.id, hit.content, hit.type)
    assert (theirs["context"], theirs["tags"]) == ("release notes", ["project:demo"])
    assert theirs["metadata"] == {"session_id": "session-1"}
    assert theirs["document_id"] == hit.document
    assert theirs["scores"]["final"] == pytest.approx(hit.score, abs=1e-4)  # it falls as time goes by
    (listed,) = official("list_memories", bank_id=me.bank)["items"]
    assert me.session.memories()["id"].tolist() == [listed["id"]]


@pytest.mark.claim("R-08", "R-23")
def test_this_package_reads_what_the_official_client_wrote(agent: Open, remote: Remote, official: Any) -> None:
    me = agent("per-project-tagged")
    stored = official(
        "retain",
        bank_id=me.bank,
        content="Deploys go out on Tuesdays",
        timestamp="2026-05-01T10:00:00Z",
        context="a talk",
        document_id="talk/1 é",
        metadata={"source": "talks", "page": "3"},
        tags=["project:demo", "ops"],
    )
    assert stored["success"] is True
    official("retain", bank_id=me.bank, content="Of another project", tags=["project:other"])
    result = me.session.recall("deploys")
    assert result.text.endswith("- Deploys go out on Tuesdays [world] (2026-05-01T10:00:00+00:00)")
    (row,) = result.frame().to_dict("records")
    assert (row["source"], row["document"], set(row["tags"])) == ("talks", "talk/1 é", {"project:demo", "ops"})
    assert row["metadata"] == {"source": "talks", "page": "3"}
    document = me.backend.service.client.get_document(me.bank, "talk/1 é")
    assert document["original_text"] == "Deploys go out on Tuesdays"
    answer = official("reflect", bank_id=me.bank, query="when do deploys go out?")
    assert me.session.reflect("when do deploys go out?").text == answer["text"]
