"""The player of recorded exchanges: the recorded answers in their order, and a refusal of everything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from ipy_memory import demo
from ipy_memory import replay as recorded
from ipy_memory.errors import HindsightError, MemoryToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def exchange(path: str, status: int, answer: object) -> dict[str, object]:
    return {"method": "POST", "path": path, "body": {"query": "x", "tags": ["y"]}, "status": status, "answer": answer}


@pytest.fixture
def player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[recorded.Player]:
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    exchanges = [exchange("/a", 200, {"n": 1}), exchange("/b", 404, {"detail": "no"}), exchange("/a", 200, {"n": "é"})]
    (tmp_path / "some.json").write_text(json.dumps({"server": "none", "exchanges": exchanges}))
    made = recorded.Player("some").start()
    yield made
    made.stop()


def test_answers_come_in_the_order_of_the_recording_and_the_last_one_stays(player: recorded.Player) -> None:
    with httpx.Client(base_url=player.url) as http:
        asked = [http.post("/a", json={"tags": ["y"], "query": "x"}).json()["n"] for _ in range(3)]
        assert asked == [1, "é", "é"]
        assert http.post("/b", json={"tags": ["y"], "query": "x"}).status_code == 404


@pytest.mark.parametrize(("method", "path", "body"), [("PUT", "/a", None), ("POST", "/c", {}), ("POST", "/a", {})])
def test_what_was_not_recorded_is_refused_in_words(
    player: recorded.Player, method: str, path: str, body: object
) -> None:
    with httpx.Client(base_url=player.url) as http:
        answer = http.request(method, path, json=body)
    assert answer.status_code == 501
    assert "not among the recorded exchanges" in answer.json()["detail"]


def test_an_unknown_recording_is_named_with_those_there_are(player: recorded.Player) -> None:
    with pytest.raises(MemoryToolkitError) as raised:
        recorded.Player("other")
    assert "some" in raised.value.one_line()


@pytest.mark.parametrize("name", recorded.names())
def test_a_recording_holds_no_key_and_no_address(name: str) -> None:
    text = (recorded.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert recorded.load(name)
    assert "127.0.0.1" not in text
    assert "authorization" not in text.lower()


def test_a_session_of_the_demo_talks_to_the_player(tmp_path: Path) -> None:
    player = recorded.Player("scoping").start()
    home = demo.Demo(demo.make(tmp_path / "home").folder, player.url)
    with home.session(backend="hindsight") as session:
        assert session.backend.status()["server"] == player.url  # type: ignore[union-attr]
        with pytest.raises(HindsightError, match="not among the recorded exchanges"):
            session.recall("something else")
    player.stop()


def test_a_linked_worktree_of_the_demo_belongs_to_its_checkout(tmp_path: Path) -> None:
    from ipy_memory.scoping.project import project_label

    home = demo.Demo(tmp_path)
    checkout = home.checkout("Shop")
    assert project_label(f"{checkout}/src") == "shop"
    assert project_label(home.checkout("fix", worktree_of="Shop")) == "shop"
    assert project_label(home.checkout("other")) == "other"
