"""The commands around a session's life: view, enqueue, clear, rebind; and on a server: queue, flush, mm, banks."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import HindsightError, MagicError, MemoryToolkitError, OutboxError
from tests.backends.hindsight.stub import StubServer, confirmed
from tests.notebook.test_loading import traces

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook.conftest import Notebook

NOW = "2026-06-01T12:00:00.000Z"
MODEL = {
    "id": "team",
    "name": "Team",
    "content": "Two people.",
    "tags": ["project:shop"],
    "last_refreshed_at": "2026-05-01",
}


@pytest.fixture
def local(bare: Notebook, tmp_path: Path) -> Notebook:
    """A notebook on an empty database, with the clock standing still."""
    magics = bare.magics
    magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock(NOW), "ids": FixedIds()}
    (tmp_path / "shop").mkdir()
    magics.cwd, magics.agent_dir = str(tmp_path / "shop"), str(tmp_path)
    magics.database = str(tmp_path / "mem" / "mnemopi.db")
    bare.run("%memory use mnemopi")
    return bare


@pytest.fixture
def served(bare: Notebook, stub: StubServer, tmp_path: Path) -> Notebook:
    """A notebook on a stand-in Hindsight server."""
    magics = bare.magics
    magics.world = {"env": {"HOME": str(tmp_path)}, "clock": FixedClock(NOW), "ids": FixedIds()}
    (tmp_path / "shop").mkdir()
    magics.cwd, magics.agent_dir = str(tmp_path / "shop"), str(tmp_path)
    (tmp_path / "config.yml").write_text(f"hindsight:\n  apiUrl: {stub.url}\n")
    bare.run("%memory use hindsight")
    return bare


def shown(notebook: Notebook, cell: str) -> str:
    ran = notebook.run(cell)
    assert ran.error is None, ran.stdout
    return ran.outputs[0]["text/plain"]


def refused(notebook: Notebook, cell: str, kind: type[Exception] = MagicError) -> str:
    ran = notebook.run(cell)
    assert isinstance(ran.error, kind)
    assert ran.stdout.count("\n") == 1
    return ran.stdout


def sent(stub: StubServer) -> list[str]:
    return [f"{r['method']} {r['url'].removeprefix('/v1/default/banks')}" for r in stub.requests]


# ---- on local banks


@pytest.mark.claim("A-05")
def test_view_shows_what_memory_adds_to_the_instructions(local: Notebook) -> None:
    local.run("%retain The deploy target is fly.io.")
    assert "fly.io" not in shown(local, "%memory view")
    session = local.magics.session
    with session.turn("What is the deploy target?") as turn:
        turn.answer("fly.io")
    assert shown(local, "%memory view") == session.developer_instructions()
    assert "<memories>" in shown(local, "%memory view")


@pytest.mark.claim("A-11")
def test_clear_names_what_goes_refuses_and_copies_first(local: Notebook, tmp_path: Path) -> None:
    local.run("%retain The deploy target is fly.io.")
    [bank] = (tmp_path / "mem" / "banks").glob("*/mnemopi.db")
    line = refused(local, "%memory clear")
    assert f"~/mem/banks/{bank.parent.name}/mnemopi.db" in line
    assert "--yes" in line
    assert "fly.io" in shown(local, "%recall deploy target")
    done = shown(local, "%memory clear --yes")
    assert f"Cleared: ~/mem/banks/{bank.parent.name}/mnemopi.db" in done
    [copy] = tmp_path.rglob("*.backup")
    assert copy.parent.parts[-2:] == ("ipy_memory", "copies")
    assert f"Copy made first: ~/{copy.relative_to(tmp_path)}" in done
    assert shown(local, "%recall deploy target") == "No relevant memories found."
    assert "fly.io" in shown(local, f"%memory open {copy};\n%recall deploy target")


@pytest.mark.claim("A-11")
def test_clear_without_copies_and_with_a_rescued_bank(local: Notebook, tmp_path: Path) -> None:
    local.run("%retain Old.")
    local.run("%memory use mnemopi")
    [bank] = (tmp_path / "mem" / "banks").glob("*/mnemopi.db")
    bank.parent.rename(bank.parent.with_name("old"))
    old = tmp_path / "mem" / "banks" / "old" / "mnemopi.db"
    local.run("%memory scope global\n%retain Shared.\n%memory scope per-project\n%retain New.")
    local.run("%memory clear --yes --no-backup")
    assert old.exists()
    assert (tmp_path / "mem" / "mnemopi.db").exists()
    assert "old/mnemopi.db" in refused(local, "%memory clear --rescued old")
    assert "Cleared: ~/mem/banks/old/mnemopi.db" in shown(local, "%memory clear --yes --rescued old --no-backup")
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT count(*) FROM working_memory").fetchone() == (0,)
    assert (tmp_path / "mem" / "mnemopi.db").exists()
    assert list(tmp_path.rglob("*.backup")) == []


@pytest.mark.claim("A-12")
def test_enqueue_stores_the_conversation(local: Notebook) -> None:
    session = local.magics.session
    session.add_turn("Where do we deploy to?", "To fly.io, every Tuesday.")
    assert session.retain("x").receipt
    assert "shop-" in shown(local, "%memory enqueue")
    assert "every Tuesday" in shown(local, "%recall Tuesday")


@pytest.mark.claim("S-13")
def test_rebind_goes_on_in_another_folder(local: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = local.magics.session
    (tmp_path / "else where").mkdir()
    line = shown(local, f"%memory rebind {tmp_path / 'else where'}")
    assert "~/else where" in line
    assert "else-where-" in line
    assert local.magics.session is session
    monkeypatch.chdir(tmp_path / "shop")
    assert "~/shop" in shown(local, "%memory rebind")
    assert "no folder" in refused(local, "%memory rebind /nothing/such")
    assert session.cwd == str(tmp_path / "shop")


@pytest.mark.claim("S-13", "C-02")
def test_another_scope_keeps_the_session(local: Notebook) -> None:
    session = local.magics.session
    local.run("%memory scope global")
    assert local.magics.session is session
    assert session.live_backend().retain_bank == "default"


@pytest.mark.parametrize(
    "cell", ["view x", "enqueue x", "clear x", "queue x", "flush x", "operations x", "flush --unknown", "queue"]
)
def test_wrong_words_are_refused(local: Notebook, cell: str) -> None:
    refused(local, f"%memory {cell}")


def test_flush_on_local_banks_says_so(local: Notebook) -> None:
    assert "in its bank" in shown(local, "%memory flush")


# ---- on a server


@pytest.mark.claim("Q-09", "Q-10")
def test_the_queue_is_a_frame_and_can_be_sent_again(served: Notebook, stub: StubServer) -> None:
    assert "everything was sent" in shown(served, "%memory queue")
    served.run("%retain The deploy target is fly.io.")
    ran = served.run("%memory queue")
    assert ran.result.frame.to_dict("records") == [
        {
            "item": "1",
            "state": "waiting",
            "queued at": NOW,
            "text": "The deploy target is fly.io.",
            "error": "",
            "bank": "omp",
            "other server": "",
        }
    ]
    assert "waiting  2026-06-01 12:00  omp" in ran.outputs[0]["text/plain"]
    full = {"status": 503, "headers": {"retry-after": "7"}, "body": {"detail": "overloaded"}}
    stub.answer_with([{"method": "PUT"}, full])
    ran = served.run("%memory flush")
    assert ran.stderr == (
        "Hindsight: Memory retention failed for 1 memory: retainBatch failed: overloaded"
        " – HTTP 503; the server is busy: try again in 7 s; kept: see %memory queue\n"
    )
    assert "1 memory not known to have arrived" in ran.outputs[0]["text/plain"]
    [row] = served.run("%memory queue").result.frame.to_dict("records")
    assert row["state"] == "failed"
    assert row["error"] == "retainBatch failed: overloaded (HTTP 503; the server is busy: try again in 7 s)"
    assert served.run("%memory queue").stderr == ""
    stub.answer_with([])
    assert (
        shown(served, "%memory flush")
        == "0 memories sent to bank omp.\n1 memory not known to have arrived: see %memory queue."
    )
    assert shown(served, "%memory flush --resend") == (
        "1 memory sent to bank omp.\nThe server named no work that it took on for them: see %memory operations."
    )


def test_what_may_have_arrived_is_sent_again_only_on_demand(served: Notebook, stub: StubServer, tmp_path: Path) -> None:
    with (tmp_path / "config.yml").open("a") as config:
        config.write("  retainTimeoutMs: 100\n")
    served.run("%memory use hindsight")
    served.run("%retain The deploy target is fly.io.")
    stub.answer_with([{"method": "PUT"}, {"delay_ms": 60_000}])
    served.run("%memory flush")
    assert "unknown" in shown(served, "%memory queue")
    stub.answer_with([])
    assert shown(served, "%memory flush --resend").startswith("0 memories")
    assert shown(served, "%memory flush --resend --unknown").startswith("1 memory sent")
    assert "everything was sent" in shown(served, "%memory queue")


def test_b049_a_flush_says_queued_until_the_server_says_stored(served: Notebook, stub: StubServer) -> None:
    taken = confirmed(["one"], operation_id="op1")
    pending = {"operation_id": "op1", "status": "pending", "operation_type": "batch_retain"}
    done = pending | {"status": "completed", "result_metadata": {"unit_ids_count": 2, "items_count": 1}}
    for answer, outcome in ((pending, "queued"), (done, "completed, 2 memories"), ({}, "unknown")):
        stub.answer_with([{"method": "PUT"}, {"method": "POST", "body": taken}, {"method": "GET", "body": answer}])
        served.run("%retain The deploy target is fly.io.")
        assert shown(served, "%memory flush") == f"1 memory sent to bank omp.\nOperation op1: {outcome}."
    stub.answer_with([{"method": "POST", "body": taken}, {"method": "GET", "status": 500}])
    served.run("%retain The deploy target is fly.io.")
    assert "op1: queued" in shown(served, "%memory flush")


def test_b072_a_document_without_a_memory_is_a_warning(served: Notebook, stub: StubServer) -> None:
    done = {"operation_id": "op1", "status": "completed", "result_metadata": {"unit_ids_count": 0}}
    documents = {"items": [{"id": "empty", "memory_unit_count": 0}, {"id": "full", "memory_unit_count": 3}]}
    listed = {
        "operations": [done, {"id": "op2", "status": "pending", "child_operations": [{"error_message": "no model"}]}]
    }
    stub.answer_with(
        [
            {"method": "POST", "body": confirmed(["one"], operation_id="op1")},
            {"url_contains": "/operations/op1", "body": done},
            {"url_contains": "/operations?", "body": listed | {"total": 45}},
            {"url_contains": "/documents", "body": documents},
        ]
    )
    served.run("%retain …")
    flushed = shown(served, "%memory flush")
    assert "Operation op1: stored, but nothing recallable." in flushed
    assert "Document empty: stored, but nothing recallable." in flushed
    assert "Document full" not in flushed
    text = shown(served, "%memory operations --page 2")
    assert "stored, but nothing recallable" in text
    assert "pending: no model" in text
    assert "21 to 22 of 45; --page 3 shows more." in text
    assert "Document empty" in text


@pytest.mark.claim("B-03", "B-05")
def test_mental_models_are_listed_shown_renewed_and_deleted(served: Notebook, stub: StubServer) -> None:
    history = [
        {"previous_content": "One person.", "changed_at": "2026-05-01"},
        {"previous_content": "", "changed_at": "2026-04-01"},
    ]
    stub.answer_with(
        [
            {"method": "GET", "url_contains": "/history", "body": history},
            {"method": "POST", "url_contains": "/refresh", "body": {"operation_id": "op9", "status": "queued"}},
            {"method": "GET", "url_contains": "/mental-models/none", "status": 404, "body": {"detail": "not found"}},
            {"method": "DELETE", "url_contains": "/mental-models/none", "status": 404, "body": {"detail": "not found"}},
            {"method": "GET", "url_contains": "/mental-models/team", "body": MODEL},
            {"method": "GET", "url_contains": "/mental-models?", "body": {"items": [MODEL]}},
        ]
    )
    line = "- team: Team [project:shop] (refreshed 2026-05-01)"
    assert shown(served, "%memory mm") == shown(served, "%memory mm list") == line
    assert shown(served, "%memory mm show team") == f"{line}\n\nTwo people."
    assert shown(served, "%memory mm history team") == (
        "changed at 2026-05-01:\n- One person.\n+ Two people.\n\nchanged at 2026-04-01:\n+ One person."
    )
    assert "op9" in shown(served, "%memory mm refresh team")
    assert "--yes" in refused(served, "%memory mm delete team")
    assert not [one for one in sent(stub) if one.startswith("DELETE")]
    assert "was deleted" in shown(served, "%memory mm --yes delete team")
    assert sent(stub)[-1] == "DELETE /omp/mental-models/team"
    for cell in ("show none", "history none", "--yes delete none", "show", "list x", "shwo team"):
        refused(served, f"%memory mm {cell}")


@pytest.mark.claim("B-03", "B-04", "B-06")
def test_seeding_makes_what_is_missing_and_reload_shows_it(served: Notebook, stub: StubServer) -> None:
    there = {"items": [{"id": "user-preferences", "name": "P", "content": "Tea.", "tags": []}]}
    stub.answer_with([{"method": "GET", "body": there}])
    assert shown(served, "%memory mm seed") == "Made: project-conventions-shop, project-decisions-shop."
    assert sent(stub)[:2] == ["PUT /omp", "GET /omp/mental-models?detail=metadata"]
    assert "Tea." in shown(served, "%memory mm reload")
    assert "Tea." in shown(served, "%memory view")
    stub.answer_with([{"status": 500, "body": {"detail": "down"}}])
    refused(served, "%memory mm seed", HindsightError)
    refused(served, "%memory mm reload")
    assert "Tea." in shown(served, "%memory view")


def test_b060_banks_are_paged_and_looking_makes_none(served: Notebook, stub: StubServer) -> None:
    banks = [{"bank_id": f"b{n}", "fact_count": n, "last_write_at": None} for n in range(50)]
    stub.answer_with(
        [{"method": "GET", "url": "/v1/default/banks?limit=50&offset=0", "body": {"banks": banks, "total": 70}}]
    )
    assert "1 to 50 of 70; --page 2 shows more." in shown(served, "%memory banks")
    stub.answer_with([{"method": "GET", "body": {"banks": [{"bank_id": "omp"}, {"odd": 1}]}}])
    text = shown(served, "%memory banks")
    assert "in use" in text
    assert "1 to 1 of 1." in text
    stub.answer_with([{"method": "GET", "body": {"banks": []}}])
    assert "not there yet" in shown(served, "%memory banks")
    stub.answer_with([{"status": 404, "body": {"detail": "Bank 'omp' not found"}}])
    assert "None of 0" in shown(served, "%memory operations")
    assert {one.split()[0] for one in sent(stub)} == {"GET"}


@pytest.mark.claim("A-11", "R-17", "Q-10")
def test_clearing_a_server_session_names_the_bank_that_stays(served: Notebook, stub: StubServer) -> None:
    served.run("%retain The deploy target is fly.io.")
    assert "the bank on the server stays" in refused(served, "%memory clear")
    assert sent(stub) == []
    assert "delete_bank" in shown(served, "%memory clear --yes")
    assert sent(stub) == ["PUT /omp", "POST /omp/memories"]
    ran = served.run("%recall x")
    assert "Hindsight backend is not initialised for this session." in ran.stdout


@pytest.mark.claim("N-06", "Q-10")
@pytest.mark.parametrize("status", [200, 500])
def test_unloading_sends_what_waits_and_leaves_nothing_behind(served: Notebook, stub: StubServer, status: int) -> None:
    before = threading.active_count()
    session = served.magics.session
    stub.answer_with([{"method": "POST", "status": status}])  # first, since a recorded turn's end may send the queue
    served.run("%memory record on")
    served.run("x = 1")
    served.run("%retain one")
    ran = served.run("%unload_ext ipy_memory")
    batches = [r["body"]["items"] for r in stub.requests if r["url"].endswith("/memories")]
    assert sorted(item["content"][:12] for items in batches for item in items) == ["[role: user]", "one"]
    assert ("1 memory was not sent to the Hindsight bank omp" in ran.stderr) is (status == 500)
    assert session.backend is None
    wait_for(lambda: threading.active_count() <= before)
    assert {event: len(calls) for event, calls in served.shell.events.callbacks.items()} == idle(served)


def idle(notebook: Notebook) -> dict[str, int]:
    notebook.run("%load_ext ipy_memory")
    calls: Any = traces(notebook)["callbacks"]
    notebook.run("%unload_ext ipy_memory")
    return {**calls, "post_execute": calls["post_execute"] - 1}  # the one that writes notes


def wait_for(true: Any) -> None:
    from tests.backends.hindsight.stub import until

    until(true)


# ---- what waits outlives the session


def refuse(stub: StubServer) -> None:
    stub.answer_with([{"method": "PUT"}, {"method": "POST", "status": 401, "body": {"detail": "no such key"}}])


def waits(notebook: Notebook) -> list[tuple[str, str]]:
    found: Any = notebook.run("%memory queue").result
    return [(row["state"], row["text"]) for row in found.frame.to_dict("records")]


@pytest.mark.claim("Q-10", "Q-11")
@pytest.mark.parametrize(
    "cell",
    [
        "%memory use mnemopi",
        "%memory use hindsight",
        "%config MemoryMagics.backend = 'mnemopi'",
        "%memory clear --yes",
        "%reload_ext ipy_memory",
        "%unload_ext ipy_memory\n%load_ext ipy_memory",
    ],
)
def test_what_was_not_sent_outlives_its_session(served: Notebook, stub: StubServer, cell: str) -> None:
    """B02: it can be seen, also with another backend, and sent once the server takes it."""
    place = {"cwd": served.magics.cwd, "agent_dir": served.magics.agent_dir}
    world = served.magics.world
    served.run("%retain one")
    refuse(stub)
    served.run(cell)
    magics: Any = served.shell.magics_manager.registry["MemoryMagics"]
    magics.world, magics.cwd, magics.agent_dir = world, place["cwd"], place["agent_dir"]
    assert waits(served) == [("failed", "one")]
    assert "everything was sent" not in shown(served, "%memory queue")
    served.run("%memory use hindsight")
    stub.answer_with([])
    assert shown(served, "%memory queue --resend").startswith("1 memory sent to bank omp.")
    assert "everything was sent" in shown(served, "%memory queue")


def test_the_demonstration_leaves_what_waits_alone(served: Notebook, stub: StubServer, tmp_path: Path) -> None:
    """B02: a made-up home has an outbox of its own."""
    served.run("%retain one")
    refuse(stub)
    place = (served.magics.world, served.magics.cwd, served.magics.agent_dir)
    served.run("from ipy_memory import demo\nhome = demo.start(fresh=True)")
    before = (tmp_path / "ipy_memory" / "outbox.db").read_bytes()
    served.run("other = home.session(backend='hindsight', settings={'hindsight.apiUrl': 'http://127.0.0.1:9'})")
    served.run("other.retain('made up')\nother.close()")
    assert (tmp_path / "ipy_memory" / "outbox.db").read_bytes() == before
    served.magics.live_in(place[0], cwd=place[1], agent_dir=place[2])
    assert waits(served) == [("failed", "one")]


def test_sending_again_takes_the_key_of_today(served: Notebook, stub: StubServer, tmp_path: Path) -> None:
    """B02: no other session is needed after the key was put right."""
    served.run("%retain one")
    refuse(stub)
    served.run("%memory flush")
    with (tmp_path / "config.yml").open("a") as config:
        config.write("  apiToken: the-right-key\n")
    stub.answer_with([])
    assert shown(served, "%memory queue --resend").startswith("1 memory sent")
    assert stub.requests[-1]["headers"]["authorization"] == "Bearer the-right-key"
    served.run("%retain two\n%memory flush")
    assert stub.requests[-1]["headers"]["authorization"] == "Bearer the-right-key"


def test_after_a_move_of_the_server_the_user_names_the_old_address(
    served: Notebook, stub: StubServer, tmp_path: Path
) -> None:
    """B02: items are bound to the address that they were queued for."""
    served.run("%retain one")
    refuse(stub)
    served.run("%memory flush")
    with StubServer() as moved:
        (tmp_path / "config.yml").write_text(f"hindsight:\n  apiUrl: {moved.url}\n")
        assert shown(served, "%memory queue --resend").startswith("0 memories sent")
        listed = shown(served, "%memory queue")
        assert f"1 memory was queued for {stub.url}" in listed
        assert f"--moved-from {stub.url}" in listed
        assert [request for request in moved.requests if request["method"] == "POST"] == []
        ran = served.run("%memory queue --resend --moved-from http://nowhere")
        assert "Nothing is queued for that server" in ran.stdout
        assert shown(served, f"%memory queue --resend --moved-from {stub.url}").startswith("1 memory sent")
        assert moved.requests[-1]["body"]["items"][0]["content"] == "one"
    assert "everything was sent" in shown(served, "%memory queue")


def test_items_are_dropped_by_number_and_only_after_a_yes(served: Notebook, stub: StubServer) -> None:
    served.run("%%retain --lines\none\ntwo\nthree")
    assert "--yes" in refused(served, "%memory queue --drop all")
    assert [text for _, text in waits(served)] == ["one", "two", "three"]
    assert shown(served, "%memory queue --drop 1,3 --yes") == "2 memories dropped."
    assert [text for _, text in waits(served)] == ["two"]
    ran = served.run("%memory queue --drop 7 --yes")
    assert "no item 7" in ran.stdout
    served.run("%memory flush")
    assert [item["content"] for item in stub.requests[-1]["body"]["items"]] == ["two"]
    for cell in ("--yes", "--unknown", "--moved-from x", "--drop all --resend"):
        refused(served, f"%memory queue {cell}")


def test_the_doctor_asks_each_part_of_the_way_to_the_server(served: Notebook, stub: StubServer) -> None:
    stub.answer_with([{"url_contains": "/health", "status": 503, "body": {"detail": "warming up"}}])
    ran = served.run("%memory doctor")
    assert ran.error is None
    frame = ran.result
    assert frame["what"].tolist() == ["server", "health", "bank", "accepted work", "queue"]
    health = frame[frame["what"] == "health"].iloc[0]
    assert (health["bank"], health["state"]) == ("omp", "fault")
    assert "warming up" in health["detail"]
    assert frame[frame["what"] == "queue"].iloc[0]["state"] == "good"
    assert "cannot be examined or repaired from here" in refused(served, "%memory doctor --repair", MemoryToolkitError)


def test_an_outbox_that_cannot_be_used_refuses_and_hides_nothing(
    served: Notebook, stub: StubServer, tmp_path: Path
) -> None:
    (tmp_path / "ipy_memory").mkdir(exist_ok=True)
    (tmp_path / "ipy_memory" / "outbox.db").write_bytes(b"no database" * 100)
    for cell in ("%retain one", "%memory queue"):
        line = refused(served, cell, OutboxError)
        assert "not a database" in line
    assert "not a database" in shown(served, "%memory status")
    assert not any(request["method"] == "POST" for request in stub.requests)
