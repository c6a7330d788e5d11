"""Retain, recall, reflect and mental models on a real Hindsight server, in every scoping."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from ipy_memory.backends.hindsight.client import HindsightClient, Item
from ipy_memory.conversation import Message, transcript
from ipy_memory.model import RetainItem
from tests.real_server.conftest import Agent
from tests.real_server.remote import Remote, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.hindsight_server import HindsightServer

pytestmark = pytest.mark.hindsight

Open = Callable[..., Agent]
every_scoping = pytest.mark.parametrize("scoping", ["global", "per-project", "per-project-tagged"])

DEPLOY = "The deploy target is the north cluster"
TEA = "Anna prefers green tea"
LUNCH = "Lunch is at noon"


@pytest.fixture
def client(hindsight_server: HindsightServer) -> Iterator[HindsightClient]:
    made = HindsightClient(hindsight_server.base_url, hindsight_server.api_key)
    yield made
    made.close()


@every_scoping
@pytest.mark.claim("R-06", "R-08", "R-14", "T-04", "Q-03", "Q-06", "Q-07", "Q-08", "B-01", "E-04")
def test_what_is_retained_is_found(scoping: str, agent: Open, remote: Remote, client: HindsightClient) -> None:
    me = agent(scoping)
    assert me.session.retain([DEPLOY, TEA]).text == "2 memories queued."
    assert me.bank not in remote.banks()
    report = me.backend.flush()
    assert (report.sent, report.failed) == (2, 0)
    (operation,) = report.operations
    until("the operation is done", lambda: client.get_operation(me.bank, operation)["status"] == "completed")
    found = me.session.recall("deploy target")
    assert found.text.startswith("Found ")
    first = found.text.split("\n\n")[1]
    assert first == f"- {DEPLOY} [world] (2026-06-01T12:00:00+00:00)"
    assert found.text.startswith(f"Found {len(found.hits)} relevant memor")
    assert "(as of 2026-06-01 12:00 UTC):\n\n" in found.text
    stored = {item["text"]: item["tags"] for item in remote.memories(me.bank)}
    tags = ["project:demo"] if scoping == "per-project-tagged" else []
    assert stored == {DEPLOY: tags, TEA: tags}


@every_scoping
@pytest.mark.claim("R-14", "E-01")
def test_a_bank_without_an_answer_says_so(scoping: str, agent: Open, remote: Remote) -> None:
    me = agent(scoping)
    me.backend.service.ensure_bank()
    nothing = me.session.recall("deploy target")
    assert (nothing.text, nothing.useless) == ("No relevant memories found.", True)


@pytest.mark.claim("N-02", "R-12")
def test_the_frame_of_a_recall_has_the_servers_values(agent: Open, remote: Remote) -> None:
    me = agent("per-project-tagged")
    me.session.retain(DEPLOY, context="from a test")
    me.session.flush()
    (stored,) = remote.memories(me.bank)
    row = me.session.recall("deploy target").frame().iloc[0]
    assert (row["id"], row["content"], row["bank"]) == (stored["id"], DEPLOY, me.bank)
    assert row["date"].isoformat() == "2026-06-01T12:00:00+00:00"
    assert row["score"] > 0
    (hit,) = me.session.recall("deploy target").hits
    assert hit.tags == ("project:demo",)
    assert hit.metadata == {"session_id": "session-1"}
    assert hit.document
    assert hit.parts.semantic or hit.parts.keyword


@pytest.mark.claim("S-04")
def test_tags_keep_projects_apart_and_show_what_is_untagged(agent: Open, remote: Remote) -> None:
    one, two, shared = agent("per-project-tagged", project="One"), agent("per-project-tagged", project="Two"), agent()
    assert one.bank == two.bank == shared.bank
    for who, text in ((one, "Zebra of one"), (two, "Zebra of two"), (shared, "Zebra of all")):
        who.session.retain(text)
        who.session.flush()
    assert remote.texts(one.bank) == ["Zebra of all", "Zebra of one", "Zebra of two"]

    def seen(who: Agent) -> set[str]:
        return {hit.content for hit in who.session.recall("zebra").hits}

    assert seen(one) == {"Zebra of one", "Zebra of all"}
    assert seen(two) == {"Zebra of two", "Zebra of all"}
    assert seen(shared) == {"Zebra of one", "Zebra of two", "Zebra of all"}


@pytest.mark.claim("S-01", "S-02", "S-03")
def test_a_bank_for_each_project_shares_nothing(agent: Open, remote: Remote, hindsight_bank: str) -> None:
    one, two, shared = agent("per-project", project="One"), agent("per-project", project="Two"), agent()
    assert [one.bank, two.bank, shared.bank] == [f"{hindsight_bank}-one", f"{hindsight_bank}-two", hindsight_bank]
    for who in (one, two, shared):
        who.session.retain(f"Zebra of {who.bank}")
        who.session.flush()
        assert remote.texts(who.bank) == [f"Zebra of {who.bank}"]
    for who in (one, two, shared):
        assert [hit.content for hit in who.session.recall("zebra").hits] == [f"Zebra of {who.bank}"]


@every_scoping
@pytest.mark.claim("F-04", "F-06")
def test_reflect_answers_from_what_is_stored(scoping: str, agent: Open, remote: Remote) -> None:
    me = agent(scoping)
    me.session.retain(DEPLOY)
    me.session.flush()
    remote.settle(me.bank)
    answer = me.session.reflect("Where does the deploy go?", "deploy target")
    assert answer.text == remote.server.stub.answer
    asked = str([body["messages"] for path, body in remote.server.stub.requests if path.endswith("/chat/completions")])
    assert DEPLOY in asked
    assert "Where does the deploy go?" in asked


@pytest.mark.claim("F-04", "B-01")
def test_reflect_makes_the_bank_that_it_asks(agent: Open, remote: Remote) -> None:
    me = agent()
    assert me.session.reflect("anything?").text == remote.server.stub.answer
    assert me.bank in remote.banks()


SEEDED = {
    "global": {"user-preferences": []},
    "per-project": {"user-preferences": [], "project-conventions": [], "project-decisions": []},
    "per-project-tagged": {
        "user-preferences": [],
        "project-conventions-demo": ["project:demo"],
        "project-decisions-demo": ["project:demo"],
    },
}


@every_scoping
@pytest.mark.claim("B-03", "B-05", "B-06")
def test_mental_models_are_seeded_once_and_shown(scoping: str, agent: Open, remote: Remote) -> None:
    me = agent(scoping)
    me.session.retain(TEA)
    me.session.flush()
    remote.settle(me.bank)  # of an empty bank the server writes empty models
    me.backend.start()

    def models() -> dict[str, list[str]]:
        listed = remote.get(f"/{me.bank}/mental-models", detail="content")["items"]
        return {model["id"]: model["tags"] for model in listed}

    until("the models are seeded", lambda: models() == SEEDED[scoping])
    remote.settle(me.bank)
    assert me.backend.models.reload()
    block = me.backend.models.block
    assert block is not None
    assert block.count(remote.server.stub.answer) == len(SEEDED[scoping])
    assert block.index("# User Preferences") > 0
    assert block in me.backend.instructions()

    again = agent(scoping, session_id="session-2")
    again.backend.start()
    until("the models are loaded", lambda: again.backend.models.block)
    assert again.backend.models.block == block
    assert models() == SEEDED[scoping]


@pytest.mark.claim("B-05")
def test_models_of_another_project_are_not_shown(agent: Open, remote: Remote, client: HindsightClient) -> None:
    one, two = agent("per-project-tagged", project="One"), agent("per-project-tagged", project="Two")
    one.session.retain(TEA)
    one.session.flush()
    remote.settle(one.bank)
    client.create_mental_model(one.bank, "Of one", "What is one?", id="of-one", tags=["project:one"])
    client.create_mental_model(one.bank, "Of all", "What is all?", id="of-all")
    remote.settle(one.bank)
    assert one.backend.models.reload()
    assert two.backend.models.reload()
    assert "# Of one" in (one.backend.models.block or "")
    assert "# Of all" in (two.backend.models.block or "")
    assert "# Of one" not in (two.backend.models.block or "")


@pytest.mark.claim("B-01", "B-03")
def test_a_mental_model_is_read_refreshed_and_deleted(
    hindsight_bank: str, remote: Remote, client: HindsightClient
) -> None:
    client.create_bank(hindsight_bank, reflect_mission="Be brief", retain_mission="Keep facts")
    client.retain(hindsight_bank, Item(TEA), async_=True)
    remote.settle(hindsight_bank)
    client.create_mental_model(hindsight_bank, "Tea", "Which tea?", id="tea", max_tokens=256)
    remote.settle(hindsight_bank)
    assert client.get_mental_model(hindsight_bank, "tea")["content"].strip() == remote.server.stub.answer
    client.refresh_mental_model(hindsight_bank, "tea")
    remote.settle(hindsight_bank)
    assert isinstance(client.get_mental_model_history(hindsight_bank, "tea"), list)
    assert client.delete_mental_model(hindsight_bank, "tea") is True
    assert client.delete_mental_model(hindsight_bank, "tea") is False
    assert client.get_mental_model(hindsight_bank, "tea") is None


@pytest.mark.claim("E-04")
def test_a_document_is_replaced_or_appended_to(hindsight_bank: str, remote: Remote, client: HindsightClient) -> None:
    name = "notes ünd/more"

    def write(text: str, mode: str | None = None) -> None:
        client.retain(hindsight_bank, Item(text, document_id=name, update_mode=mode), async_=True)
        remote.settle(hindsight_bank)

    write(DEPLOY)
    write(TEA)
    assert client.get_document(hindsight_bank, name)["original_text"] == TEA
    assert remote.texts(hindsight_bank) == [TEA]
    write(LUNCH, "append")
    assert client.get_document(hindsight_bank, name)["original_text"] == f"{TEA}\n{LUNCH}"
    assert remote.texts(hindsight_bank) == [TEA, LUNCH]
    client.update_document(hindsight_bank, name, tags=["project:x"])
    assert {tuple(item["tags"]) for item in remote.memories(hindsight_bank)} == {("project:x",)}


@pytest.mark.claim("E-01")
def test_a_document_is_forgotten_with_its_memories(
    hindsight_bank: str, remote: Remote, client: HindsightClient
) -> None:
    items = [Item(DEPLOY, document_id="deploy"), Item(TEA, document_id="tea")]
    client.retain_batch(hindsight_bank, items, async_=True)
    assert remote.texts(hindsight_bank) == sorted([DEPLOY, TEA])
    assert client.delete_document(hindsight_bank, "deploy") is True
    assert client.delete_document(hindsight_bank, "deploy") is False
    assert client.get_document(hindsight_bank, "deploy") is None
    assert remote.texts(hindsight_bank) == [TEA]
    assert [found["text"] for found in client.recall(hindsight_bank, "deploy target tea")["results"]] == [TEA]


class Listening(httpx.HTTPTransport):
    """Carries requests, and keeps what the server said about parameters that it does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.ignored: list[str] = []
        self.answered: list[tuple[str, int]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self.answered.append((request.method, response.status_code))
        self.ignored += response.headers.get_list("x-ignored-params")
        return response


@pytest.mark.claim("R-23", "R-24", "F-04", "Q-08")
def test_the_server_knows_every_parameter_that_it_is_sent(agent: Open, remote: Remote) -> None:
    transport = Listening()
    me = agent("per-project-tagged", transport=transport, safeRetain=True)
    me.backend.start()
    until("the models were asked for", lambda: transport.answered.count(("GET", 200)) == 2)
    me.session.retain([DEPLOY], context="why")
    me.session.flush()
    me.backend.end_turn([Message("user", f"question {number}", None) for number in range(3)])
    me.session.recall("deploy")
    me.session.reflect("deploy?", "context")
    assert {status for _, status in transport.answered} == {200}
    assert [method for method, _ in transport.answered if method != "GET"] == ["PUT"] + ["POST"] * 7
    assert transport.ignored == []


def report_of(lines: int) -> str:
    """Return a text whose every line can be told apart, with a mark at each end."""
    body = " ".join(f"Line {number} of the report is about shipping." for number in range(lines))
    return f"START-MARK opens the report. {body} END-MARK closes the report."


def check_whole(me: Agent, remote: Remote, lines: int) -> None:
    """Check that every line of a long text is stored, and that both ends are found."""
    stored = {int(number) for text in remote.texts(me.bank) for number in re.findall(r"Line (\d+) of", text)}
    assert stored == set(range(lines))
    for mark in ("START-MARK", "END-MARK"):
        assert mark in me.session.recall(mark).hits[0].content


@pytest.mark.claim("Q-08")
@pytest.mark.parametrize(("lines", "safe"), [(900, False), (900, True), (1500, True)])
def test_b048_both_ends_of_a_long_item_are_found(lines: int, safe: bool, agent: Open, remote: Remote) -> None:
    # Without a document id the server keeps the first 10,000 tokens of an item, which 900 lines do not reach.
    me = agent(safeRetain=safe)
    me.session.retain(report_of(lines))
    assert me.backend.flush().sent == 1
    check_whole(me, remote, lines)


@every_scoping
@pytest.mark.claim("A-06")
def test_both_ends_of_a_long_session_are_found(scoping: str, agent: Open, remote: Remote) -> None:
    me = agent(scoping, retainEveryNTurns=1)
    text = report_of(1500)
    assert len(text) > 60_000
    me.backend.end_turn([Message("user", text, None)])
    check_whole(me, remote, 1500)


@pytest.mark.claim("E-01")
def test_b052_odd_characters_neither_stop_a_batch_nor_a_recall(agent: Open, remote: Remote) -> None:
    me = agent()
    odd = ["Half a pair \ud83d ends", "A NUL \x00 inside", "Whole 😀 naïve 日本語"]
    me.session.retain(odd)
    assert me.backend.flush().sent == 3
    texts = remote.texts(me.bank)
    assert len(texts) == 3
    assert "A NUL  inside" in texts
    assert "Whole 😀 naïve 日本語" in texts
    assert any(text.startswith("Half a pair ") and text.endswith(" ends") for text in texts)
    for query, expected in (("half\ud83d pair", "Half a pair"), ("\x00 NUL inside", "A NUL"), ("😀 naïve", "Whole")):
        assert me.session.recall(query).hits[0].content.startswith(expected)


@pytest.mark.claim("E-01", "E-02")
def test_a_query_without_a_word_is_the_servers_error(agent: Open) -> None:
    me = agent()
    me.backend.service.ensure_bank()
    with pytest.raises(Exception, match=r"^recall failed: ") as caught:
        me.session.recall("?!")
    assert caught.value.status_code == 422


@pytest.mark.claim("Q-01", "Q-02", "Q-04")
def test_a_full_queue_leaves_by_itself_and_nothing_is_sent_twice(agent: Open, remote: Remote) -> None:
    me = agent()
    me.session.retain([f"Item number {number:02}" for number in range(40)])
    until("the first sixteen have left", lambda: len(me.backend.queue_rows()) <= 24)
    me.session.flush()
    assert me.states() == []
    assert remote.texts(me.bank) == [f"Item number {number:02}" for number in range(40)]


@pytest.mark.claim("T-10")
def test_a_credential_never_reaches_the_server(agent: Open, remote: Remote) -> None:
    me = agent()
    me.session.retain("The key is sk-abcdefghijklmnopqrstuvwxyz0123456789 for now")
    me.session.flush()
    (text,) = remote.texts(me.bank)
    assert "abcdefghijklmnop" not in text
    assert "[REDACTED]" in text


@pytest.mark.claim("S-12")
def test_a_sub_agent_writes_to_its_parents_bank_under_its_own_id(agent: Open, remote: Remote) -> None:
    me = agent("per-project-tagged")
    child = me.backend.child("sub-agent", me.session.cwd)
    child.retain([RetainItem(DEPLOY)])
    child.close()
    me.session.flush()
    remote.settle(me.bank)
    (hit,) = me.session.recall("deploy target").hits
    assert hit.metadata == {"session_id": "sub-agent"}


@pytest.mark.claim("A-11")
def test_clear_leaves_the_bank_on_the_server(agent: Open, remote: Remote) -> None:
    me = agent()
    me.session.retain(TEA)
    assert me.bank in (me.backend.clear().warning or "")
    assert remote.texts(me.bank) == [TEA]


def conversation(turns: int) -> list[Message]:
    messages = []
    for number in range(1, turns + 1):
        messages.append(Message("user", f"Question {number} about zebras", f"2026-06-01T10:0{number}:00Z"))
        messages.append(Message("assistant", f"Answer {number} about zebras", f"2026-06-01T10:0{number}:30Z"))
    return messages


def written(messages: list[Message]) -> str:
    return transcript(messages, full=True, stamps=True).text


@every_scoping
@pytest.mark.claim("A-06", "A-07")
def test_a_session_is_one_growing_document(scoping: str, agent: Open, remote: Remote) -> None:
    me = agent(scoping, retainEveryNTurns=1)
    for turns in (1, 2, 4):
        me.backend.end_turn(conversation(turns))
        assert remote.documents(me.bank) == {"session-1": written(conversation(turns))}
        assert "".join(remote.texts(me.bank)).count("Question") == turns
    rewound = [*conversation(1), Message("user", "Another question about lions", "2026-06-01T11:00:00Z")]
    me.backend.end_turn(rewound)
    assert remote.documents(me.bank) == {"session-1": written(rewound)}
    assert "Question 2" not in "".join(remote.texts(me.bank))
    assert "lions" in me.session.recall("lions").text


@pytest.mark.claim("A-06")
def test_turns_are_retained_only_when_it_is_time(agent: Open, remote: Remote) -> None:
    me = agent(retainEveryNTurns=3)
    me.backend.service.ensure_bank()
    me.backend.end_turn(conversation(2))
    assert remote.documents(me.bank) == {}
    me.backend.end_turn(conversation(3))
    assert list(remote.documents(me.bank)) == ["session-1"]


@pytest.mark.claim("A-08")
def test_the_last_turns_are_documents_of_their_own(agent: Open, remote: Remote) -> None:
    me = agent("per-project-tagged", retainMode="last-turn", retainEveryNTurns=2, retainOverlapTurns=1)
    expected = {}
    for turns in (2, 4):
        me.clock.advance(1000)
        me.backend.end_turn(conversation(turns))
        expected[f"session-1-{me.clock.now_ms()}"] = written(conversation(turns)[-6:])
    assert remote.documents(me.bank) == expected
    assert {tuple(item["tags"]) for item in remote.memories(me.bank)} == {("project:demo",)}


@pytest.mark.claim("A-01", "A-03", "A-05")
def test_the_first_turn_recalls_into_the_instructions(agent: Open, remote: Remote) -> None:
    me = agent("per-project-tagged")
    me.session.retain(DEPLOY)
    me.session.flush()
    remote.settle(me.bank)
    prepared = me.backend.prepare_first_turn("Where is the deploy target?", [])
    assert prepared is not None
    assert DEPLOY not in me.backend.instructions()
    assert prepared.commit()
    assert f"- {DEPLOY} [world]" in me.backend.instructions()


LEAVING = """
import sys
from ipy_memory.session import open_session
url, token, bank, cwd = sys.argv[1:]
settings = {"hindsight.apiUrl": url, "hindsight.apiToken": token, "hindsight.bankId": bank}
session = open_session("hindsight", cwd, settings={**settings, "hindsight.scoping": "global"}, agent_dir=cwd, env={})
print(session.retain(["Left behind at exit", "And this too"]).text)
"""


@pytest.mark.claim("Q-10", "Q-02")
def test_what_waits_at_exit_is_sent(
    hindsight_server: HindsightServer, hindsight_bank: str, remote: Remote, tmp_path: Path
) -> None:
    words = [hindsight_server.base_url, hindsight_server.api_key or "", hindsight_bank, str(tmp_path)]
    ended = subprocess.run([sys.executable, "-c", LEAVING, *words], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2 memories queued.\n", "")
    assert remote.texts(hindsight_bank) == ["And this too", "Left behind at exit"]
