"""Banks of folders near by: found by their folders' paths, asked without counting, and never written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.explore import nearby
from ipy_memory.explore.nearby import near_banks, recall_notes, retain_notes
from ipy_memory.session import MemorySession, open_session
from tests.explore.conftest import fingerprint

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"

Opener = Callable[..., MemorySession]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("code/shop/.git", "code/shop/notebooks", "code/shop/src/app", "code/blog"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "code" / "shop" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return tmp_path


@pytest.fixture
def opened(home: Path) -> Opener:
    ids = FixedIds()

    def open_in(folder: str, **settings: Any) -> MemorySession:
        return open_session(
            "mnemopi",
            home / folder,
            settings=settings,
            agent_dir=home / "agent",
            env={"HOME": str(home)},
            clock=FixedClock(NOW),
            ids=ids,
        )

    return open_in


@pytest.fixture
def filled(opened: Opener) -> Opener:
    """The agent has worked in ``code/shop``, and in ``code/shop/src/app``."""
    with opened("code/shop") as session:
        session.retain(["The deploy target is fly.io.", "Every deploy is announced.", "Invoices are rendered."])
    with opened("code/shop/src/app") as session:
        session.retain("The app has a deploy button.")
    return opened


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("code/shop/notebooks", ["~/code/shop", "~/code/shop/src/app"]),
        ("code", ["~/code/shop"]),
        ("code/shop/src", ["~/code/shop", "~/code/shop/src/app"]),
        ("code/blog", []),
    ],
)
@pytest.mark.parametrize("scoping", ["per-project", "per-project-tagged"])
def test_folders_above_below_and_of_the_repository_are_near(
    filled: Opener, home: Path, folder: str, found: list[str], scoping: str
) -> None:
    """C19: a notebook one folder down, Jupyter one folder up, and a folder of the same repository."""
    with filled(folder, **{"mnemopi.scoping": scoping}) as session:
        before = fingerprint(home / "agent")
        near = near_banks(session, "deploy")
        assert [one.folder.replace(str(home), "~") for one in near] == found
        assert fingerprint(home / "agent") == before
        if found:
            assert (near[0].memories, near[0].hits) == (3, 2)


def test_the_note_names_the_missing_bank_and_the_way_to_the_other(filled: Opener) -> None:
    """C19: which bank is missing, which one has hits, and the command to go there."""
    with filled("code/shop/notebooks") as session:
        own = session.live_backend().retain_bank
        first, second, third = recall_notes(session, "deploy")
        assert first == f"Bank {own} of ~/code/shop/notebooks has no file yet."
        assert second.startswith("Bank shop-")
        assert second.endswith(
            " of ~/code/shop has 3 memories and 2 hits for this query. To go there: %memory rebind ~/code/shop"
        )
        assert "1 memory and 1 hit for" in third
        # What has hits comes first, wherever it is.
        assert "~/code/shop/src/app has 1 memory and 1 hit" in recall_notes(session, "button")[1]
        session.rebind("~/code/shop")
        assert len(session.recall("deploy").hits) == 2


def test_a_bank_that_was_made_by_mistake_is_told_too(filled: Opener) -> None:
    with filled("code/shop/notebooks") as session:
        receipt = session.retain("A note of the notebook").receipt
        assert receipt is not None
        assert receipt.new_bank
        assert [note.startswith("Bank shop-") for note in retain_notes(session)] == [True, False]
        assert recall_notes(session, "notebook", hits=1) == []
        own, other, _ = recall_notes(session, "deploy")
        assert own.endswith("has no hit.")
        assert "2 hits" in other
        assert recall_notes(session, "nothing like it") == []
        again = session.retain("Another note").receipt
        assert again is not None
        assert not again.new_bank
        session.change("forget", receipt.ids[0] or "")
        session.change("forget", again.ids[0] or "")
        assert recall_notes(session, "nothing like it")[0].endswith("is empty.")


def test_a_retain_says_that_it_makes_a_bank_in_the_per_project_modes_only(opened: Opener, home: Path) -> None:
    with opened("code/blog") as session:
        first, second = session.retain("one"), session.retain("two")
        assert first.notes == (f"This made a new bank: {session.live_backend().retain_bank}, of ~/code/blog.",)
        assert second.notes == ()
    with opened("code/blog", **{"mnemopi.scoping": "global"}) as session:
        assert session.retain("one").notes == ()
        assert (near_banks(session), recall_notes(session, "x"), retain_notes(session)) == ([], [], [])


def test_an_empty_file_that_the_agent_left_counts_as_no_bank(opened: Opener, home: Path) -> None:
    with opened("code/blog") as session:
        path = session.backend.target(session.backend.retain_bank).path  # type: ignore[union-attr]
        path.parent.mkdir(parents=True)
        path.touch()
        assert session.retain("one").notes[0].startswith("This made a new bank")


def test_a_damaged_or_empty_bank_near_by_is_passed_over(filled: Opener, home: Path) -> None:
    with filled("code/shop/notebooks") as session:
        for bank in (home / "agent").rglob("app-*/mnemopi.db"):
            bank.write_bytes(b"no database" * 100)
        assert [one.memories for one in near_banks(session, "deploy")] == [3]


def test_a_large_tree_is_not_looked_through_to_its_end(
    filled: Opener, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (home / "code" / f"a{number}").mkdir()
    for limit in ("_MOST_FOLDERS", "_MOST_ENTRIES"):
        with monkeypatch.context() as patched, filled("code") as session:
            patched.setattr(nearby, limit, 5)
            assert len(list(nearby._below(str(home / "code")))) <= 5
            assert near_banks(session) == near_banks(session)
    hidden = home / "code" / ".cache" / "x"
    hidden.mkdir(parents=True)
    (home / "code" / "loop").symlink_to(home / "code")
    below = list(nearby._below(str(home / "code")))
    assert not [folder for folder in below if ".cache" in folder or "loop" in folder]
    assert list(nearby._below(str(home / "nowhere"))) == []
