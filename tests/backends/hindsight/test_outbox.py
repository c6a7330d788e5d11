"""The outbox: what is on the disk before it is acknowledged, whose it is, and files that cannot be used."""

from __future__ import annotations

import sqlite3
import stat
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipy_memory import process
from ipy_memory.backends.hindsight.outbox import FAILED, LEASE_MS, UNKNOWN, WAITING, Outbox, Owner, Queued
from ipy_memory.errors import OutboxError

if TYPE_CHECKING:
    from pathlib import Path

SERVER, NOW = "http://server", 1_780_000_000_000


def idle() -> Owner:
    return Owner(lambda: False)


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path)


def queued(*contents: str, context: str | None = None) -> list[Queued]:
    return [Queued(content, context, "sess-1", NOW, ("project:demo",)) for content in contents]


def claim(outbox: Outbox, ids: list[int], owner: Owner, states: tuple[str, ...] = (WAITING,)) -> list[int]:
    found = outbox.claim(ids, states, owner, server=SERVER, batch="b", operation_id=None, now_ms=NOW)
    return [item.id for item in found]


def states(outbox: Outbox, now_ms: int = NOW) -> list[tuple[str, bool]]:
    return [(item.state, item.free) for item in outbox.items(now_ms)]


# ---- what is kept


@pytest.mark.parametrize("text", ["plain", "", "a\0b", "half \ud83d of a pair", "\U0001f980" * 400, "é\r\n\u202e"])
def test_a_text_comes_back_as_it_was_given(outbox: Outbox, text: str) -> None:
    ids = outbox.add(SERVER, text or "omp", queued(text, context=text), owner := idle(), NOW)
    (item,) = outbox.claim(ids, {WAITING}, owner, server=SERVER, batch="b", operation_id="op", now_ms=NOW + 1)
    assert item.queued == Queued(text, text, "sess-1", NOW, ("project:demo",))
    assert (item.server, item.bank, item.state) == (SERVER, text or "omp", WAITING)


def test_a_list_shows_the_beginning_of_long_texts(outbox: Outbox) -> None:
    outbox.add(SERVER, "omp", queued("🦀" * 100_000), idle(), NOW)
    (item,) = outbox.items(NOW)
    assert item.queued.content.startswith("🦀" * 99)
    assert len(item.queued.content) < 200


def test_an_item_is_deleted_without_a_trace(outbox: Outbox) -> None:
    ids = outbox.add(SERVER, "omp", queued("the launch code is kiwi"), idle(), NOW)
    assert b"kiwi" in outbox.path.read_bytes()
    outbox.delete(ids)
    assert b"kiwi" not in outbox.path.read_bytes()
    assert [path.name for path in outbox.path.parent.iterdir()] == ["outbox.db"]


@pytest.mark.claim("Q-11")
def test_the_file_is_the_users_alone_and_made_with_the_first_item(outbox: Outbox) -> None:
    assert (outbox.items(NOW), outbox.count(), outbox.waiting(SERVER, "omp", NOW, idle())) == ([], 0, [])
    outbox.release(idle())
    assert not outbox.path.parent.exists()
    outbox.add(SERVER, "omp", queued("a"), idle(), NOW)
    assert stat.S_IMODE(outbox.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(outbox.path.parent.stat().st_mode) == 0o700


def test_all_items_of_a_call_are_kept_or_none(outbox: Outbox) -> None:
    outbox.add(SERVER, "omp", queued("a"), idle(), NOW)
    broken = [*queued("b", "c"), Queued("d", None, "sess-1", None)]  # type: ignore[arg-type]
    with pytest.raises(OutboxError, match="NOT NULL"):
        outbox.add(SERVER, "omp", broken, idle(), NOW)
    assert outbox.count() == 1


def test_many_threads_lose_nothing(outbox: Outbox) -> None:
    owner = idle()
    adding = [
        threading.Thread(target=lambda: [outbox.add(SERVER, "omp", queued("a"), owner, NOW) for _ in range(20)])
        for _ in range(4)
    ]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join()
    assert outbox.count() == 80


# ---- whose an item is


def test_only_one_of_two_claims_an_item(outbox: Outbox) -> None:
    first, second = idle(), idle()
    ids = outbox.add(SERVER, "omp", queued("a", "b"), first, NOW)
    assert claim(outbox, ids, second) == []
    assert claim(outbox, ids[:1], first) == ids[:1]
    first.retire()
    assert claim(outbox, ids, second) == ids[1:]
    assert claim(outbox, ids, second, (WAITING,)) == []


def test_an_item_whose_sender_is_gone_may_have_arrived(outbox: Outbox) -> None:
    sending = Owner(lambda: True)
    ids = outbox.add(SERVER, "omp", queued("a"), sending, NOW)
    claim(outbox, ids, sending)
    assert states(outbox) == [("sending", False)]
    assert outbox.drop(ids, NOW) == []
    sending.retire()
    assert states(outbox) == [(UNKNOWN, True)]
    assert claim(outbox, ids, idle()) == []
    assert outbox.drop(ids, NOW) == ids


def test_what_an_owner_releases_waits_for_anybody(outbox: Outbox) -> None:
    owner, other = Owner(lambda: True), idle()
    ids = outbox.add(SERVER, "omp", queued("a", "b"), owner, NOW)
    claim(outbox, ids[:1], owner)
    assert outbox.waiting(SERVER, "omp", NOW, other) == []
    outbox.release(owner)
    assert states(outbox) == [(UNKNOWN, True), (WAITING, True)]
    assert outbox.waiting(SERVER, "omp", NOW, other) == ids[1:]
    assert outbox.waiting("http://other", "omp", NOW, other) == []
    assert outbox.waiting(SERVER, "other", NOW, other) == []


@pytest.mark.parametrize(("runs", "free"), [(True, False), (False, True)])
def test_an_item_of_another_process_is_free_when_that_has_ended(
    outbox: Outbox, runs: bool, free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "is_running", lambda _: runs)
    owner = idle()
    owner.token = "machine/1/2/abc"
    outbox.add(SERVER, "omp", queued("a"), owner, NOW)
    assert states(outbox, NOW + 10 * LEASE_MS) == [(WAITING, free)]


def test_an_item_of_another_machine_is_free_after_its_lease(outbox: Outbox) -> None:
    owner = idle()
    owner.token = "elsewhere/1/2/abc"
    outbox.add(SERVER, "omp", queued("a"), owner, NOW)
    assert states(outbox, NOW + LEASE_MS) == [(WAITING, False)]
    assert states(outbox, NOW + LEASE_MS + 1) == [(WAITING, True)]


def test_a_fate_is_kept_with_its_reason(outbox: Outbox) -> None:
    ids = outbox.add(SERVER, "omp", queued("a", "b"), owner := idle(), NOW)
    claim(outbox, ids, owner)
    outbox.end(ids[:1], FAILED, "no \ud83d room")
    outbox.end(ids[1:], UNKNOWN)
    assert [(item.state, item.error) for item in outbox.items(NOW)] == [(FAILED, "no \ud83d room"), (UNKNOWN, None)]


# ---- files that cannot be used


def refused(outbox: Outbox) -> str:
    with pytest.raises(OutboxError) as caught:
        outbox.add(SERVER, "omp", queued("secret text"), idle(), NOW)
    line = caught.value.one_line()
    assert str(outbox.path) in line
    assert "secret" not in line
    return line


def test_a_planted_link_is_not_followed(outbox: Outbox, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    target.write_bytes(b"")
    outbox.path.parent.mkdir()
    outbox.path.symlink_to(target)
    assert "a link or a folder has its name" in refused(outbox)
    outbox.path.unlink()
    outbox.path.symlink_to(tmp_path / "nowhere")
    refused(outbox)
    assert (target.read_bytes(), (tmp_path / "nowhere").exists()) == (b"", False)


def test_a_linked_folder_is_refused(outbox: Outbox, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    outbox.path.parent.symlink_to(tmp_path / "elsewhere")
    refused(outbox)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_damaged_or_foreign_file_is_named_and_left_alone(outbox: Outbox) -> None:
    outbox.path.parent.mkdir()
    outbox.path.write_bytes(b"no database" * 100)
    assert "not a database" in refused(outbox)
    for call in (lambda: outbox.items(NOW), outbox.count):
        with pytest.raises(OutboxError, match="not a database"):
            call()
    assert outbox.path.read_bytes() == b"no database" * 100


def test_the_file_of_a_newer_release_is_left_alone(outbox: Outbox) -> None:
    outbox.add(SERVER, "omp", queued("a"), idle(), NOW)
    with closing(sqlite3.connect(outbox.path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    assert "a newer release" in refused(outbox)


def test_an_empty_file_that_a_killed_process_left_is_used(outbox: Outbox) -> None:
    outbox.path.parent.mkdir()
    outbox.path.write_bytes(b"")
    assert outbox.items(NOW) == []
    outbox.add(SERVER, "omp", queued("a"), idle(), NOW)
    assert outbox.count() == 1


def test_a_file_in_place_of_the_folder_is_refused(outbox: Outbox) -> None:
    outbox.path.parent.write_text("in the way")
    refused(outbox)
    assert outbox.path.parent.read_text() == "in the way"


def test_another_process_that_writes_for_too_long_is_named(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipy_memory.backends.hindsight.outbox.BUSY_SECONDS", 0.01)
    outbox.add(SERVER, "omp", queued("a"), idle(), NOW)
    with closing(sqlite3.connect(outbox.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert "locked" in refused(outbox)
