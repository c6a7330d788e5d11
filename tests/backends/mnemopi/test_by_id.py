"""Memories by their ids: the agent's path stays in the banks that it asks; the user names another bank."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.session import MnemopiSession
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import BankNotFoundError, MemoryNotFoundError, MemoryToolkitError, NotABankError
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CLOCK = FixedClock("2026-06-01T12:00:00.000Z")
CWD = "/work/shop"
SCOPINGS = ("global", "per-project", "per-project-tagged")
TEXT = "The lantern is lit at dusk."


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], MemorySession]]:
    """Opens a session by its scoping on the banks of ``tmp_path``."""
    sessions: list[MemorySession] = []

    def opened(scoping: str) -> MemorySession:
        sessions.append(
            open_session(
                "mnemopi",
                CWD,
                tmp_path / "mnemopi.db",
                {"mnemopi.scoping": scoping},
                agent_dir=tmp_path,
                env={"HOME": str(tmp_path)},
                clock=CLOCK,
                ids=FixedIds(100),
            )
        )
        return sessions[-1]

    yield opened
    for session in sessions:
        session.close()


def made(path: Path, name: str, content: str = TEXT, **options: Any) -> str:
    with Bank.open(path, name, clock=CLOCK, ids=FixedIds(len(content))) as bank:
        return remember(bank, content, RememberOptions(scope="bank", **options))


def rescued(home: Path, content: str) -> str:
    """Make a legacy bank of the session's folder; return the id of its memory."""
    return made(home / "banks" / "shop-old" / "mnemopi.db", "shop-old", content, metadata={"cwd": CWD})


def backend_of(session: MemorySession) -> MnemopiSession:
    assert isinstance(session.backend, MnemopiSession)
    return session.backend


def contents(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT content FROM working_memory ORDER BY rowid")]


def fingerprint(folder: Path) -> dict[str, str]:
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*.db")}


@pytest.mark.claim("R-13", "M-04")
@pytest.mark.parametrize("scoping", SCOPINGS)
@pytest.mark.parametrize(
    ("given", "done"),
    [
        ({"op": "update", "content": "new"}, "updated"),
        ({"op": "invalidate"}, "invalidated"),
        ({"op": "forget"}, "deleted"),
    ],
)
def test_the_tool_reaches_the_shared_bank_only_where_it_is_recalled(
    opened: Callable[[str], MemorySession], tmp_path: Path, scoping: str, given: dict[str, Any], done: str
) -> None:
    """C06, D01: in per-project scoping the real agent has not opened the shared bank."""
    id_ = made(tmp_path / "mnemopi.db", "default")
    before = fingerprint(tmp_path)
    result = opened(scoping).tools["memory_edit"](id=id_, **given)
    if scoping == "per-project":
        assert result.text == f"Memory {id_} was not found."
        assert result.details == {"status": "not_found"}
        assert fingerprint(tmp_path) == before
    else:
        assert result.text == f"Memory {id_} {done} in bank default (working)."
        assert result.details == {"status": done, "bank": "default", "store": "working"}


@pytest.mark.claim("R-13")
@pytest.mark.parametrize("scoping", SCOPINGS)
def test_an_address_reaches_the_shared_bank_only_where_it_is_recalled(
    opened: Callable[[str], MemorySession], tmp_path: Path, scoping: str
) -> None:
    """C06, D01: the message is the agent's own, which names no bank."""
    id_ = made(tmp_path / "mnemopi.db", "default")
    session = opened(scoping)
    if scoping != "per-project":
        assert session.read(f"memory://{id_}").endswith(f"\n\n{TEXT}")
        return
    with pytest.raises(MemoryNotFoundError) as missing:
        session.read(f"memory://{id_}")
    assert missing.value.message == (
        f"Mnemopi memory {id_} not found in the calling session's scoped bank. Use `recall` to list available ids."
    )
    assert "default" not in missing.value.one_line()


@pytest.mark.claim("R-13", "M-04")
def test_of_one_id_in_two_banks_the_shared_one_comes_before_a_rescued_one(
    opened: Callable[[str], MemorySession], tmp_path: Path
) -> None:
    """D18."""
    id_ = rescued(tmp_path, TEXT)
    assert made(tmp_path / "mnemopi.db", "default") == id_
    session = opened("per-project-tagged")
    assert "\nbank: default\n" in session.read(f"memory://{id_}")
    assert session.tools["memory_edit"](op="update", id=id_, content="x").details["bank"] == "default"
    assert contents(tmp_path / "banks" / "shop-old" / "mnemopi.db") == [TEXT]


@pytest.mark.parametrize("where", ["shared", "of another project"])
def test_a_person_is_told_which_bank_out_of_scope_has_a_memory(
    opened: Callable[[str], MemorySession], tmp_path: Path, where: str
) -> None:
    """C06: show, update, invalidate and forget refuse and name the bank; nothing is written."""
    name = "default" if where == "shared" else "other-1abc"
    path = tmp_path / ("mnemopi.db" if where == "shared" else f"banks/{name}/mnemopi.db")
    id_ = made(path, name)
    before = fingerprint(tmp_path)
    session = opened("per-project")
    refused: dict[str, Callable[[], object]] = {
        "show": lambda: session.memory(id_),
        "update": lambda: session.change("update", id_, content="x"),
        "invalidate": lambda: session.change("invalidate", id_),
        "forget": lambda: session.change("forget", id_, purge=True),
    }
    for command, attempt in refused.items():
        with pytest.raises(MemoryNotFoundError) as missing:
            attempt()
        assert missing.value.message == f"Memory {id_} is in bank {name}, which is out of scope (per-project)."
        assert missing.value.hint == f"%memory {command} --bank {name} {id_}"
    with pytest.raises(MemoryNotFoundError, match="is in bank"):
        session.show(id_)
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("scoping", SCOPINGS)
def test_an_id_that_no_bank_has_is_just_not_found(
    opened: Callable[[str], MemorySession], tmp_path: Path, scoping: str
) -> None:
    made(tmp_path / "mnemopi.db", "default")
    session = opened(scoping)
    with pytest.raises(MemoryNotFoundError, match="Mnemopi memory none not found"):
        session.memory("none")
    with pytest.raises(MemoryNotFoundError, match="Memory none was not found"):
        session.change("update", "none", content="x")


def test_a_named_bank_is_read_and_edited_out_of_scope_with_a_copy_and_an_undo(
    opened: Callable[[str], MemorySession], tmp_path: Path
) -> None:
    id_ = made(tmp_path / "mnemopi.db", "default")
    session = opened("per-project")
    assert session.memory(id_, bank="default").content == TEXT
    assert session.show(f"memory://{id_}", bank="default").endswith(TEXT)
    done = session.change("update", id_, content="The lantern is out.", bank="default")
    assert done.text == f"Memory {id_} updated in bank default (working)."
    assert list(backend_of(session).backups) == [tmp_path / "mnemopi.db"]
    assert contents(tmp_path / "mnemopi.db") == ["The lantern is out."]
    assert session.undo(done)
    assert contents(tmp_path / "mnemopi.db") == [TEXT]
    assert session.change("forget", id_, bank="default").status == "deleted"
    assert contents(tmp_path / "mnemopi.db") == []


def test_a_bank_copied_by_hand_is_edited_and_restored_itself(
    opened: Callable[[str], MemorySession], tmp_path: Path
) -> None:
    """Its rows bear the name of the bank that it was copied from, which is another file."""
    original, copy = (tmp_path / "banks" / name / "mnemopi.db" for name in ("first", "copied"))
    id_ = made(original, "first")
    copy.parent.mkdir()
    copy.write_bytes(original.read_bytes())
    session = opened("per-project")
    done = session.change("update", id_, content="changed", bank="copied")
    assert (contents(copy), contents(original)) == (["changed"], [TEXT])
    assert session.undo(done)
    assert (contents(copy), contents(original)) == ([TEXT], [TEXT])


def test_a_named_bank_must_be_there_and_readable(opened: Callable[[str], MemorySession], tmp_path: Path) -> None:
    (tmp_path / "banks" / "broken").mkdir(parents=True)
    (tmp_path / "banks" / "broken" / "mnemopi.db").write_text("this is no database\n" * 100)
    session = opened("per-project")
    with pytest.raises(BankNotFoundError):
        session.memory("x", bank="nowhere")
    with pytest.raises(NotABankError):
        session.change("update", "x", content="y", bank="broken")


BROKEN = {
    "broken": lambda path: path.write_text("this is no database, but long enough to be one\n" * 40),
    "newer": lambda path: _newer(path),
}


def _newer(path: Path) -> None:
    made(path, "default")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
        connection.commit()


@pytest.mark.claim("R-13")
@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("scoping", ["per-project", "per-project-tagged"])
def test_a_shared_bank_that_cannot_be_opened_hinders_no_other(
    opened: Callable[[str], MemorySession], tmp_path: Path, scoping: str, how: str
) -> None:
    """C07."""
    BROKEN[how](tmp_path / "mnemopi.db")
    session = opened(scoping)
    receipt = session.retain(["one lantern", "two lanterns", "three lanterns"]).receipt
    assert receipt is not None
    one, two, three = (str(id_) for id_ in receipt.ids)
    assert session.memory(one).content == "one lantern"
    assert session.show(one).endswith("one lantern")
    assert session.read(f"memory://{one}").endswith("one lantern")
    assert session.change("update", one, content="1 lantern").status == "updated"
    assert session.tools["memory_edit"](op="invalidate", id=two).details["status"] == "invalidated"
    assert session.change("forget", three).status == "deleted"
    assert session.notices == []  # found before the shared bank was asked
    assert session.tools["memory_edit"](op="forget", id="none").text == "Memory none was not found."
    assert session.describe()["workingCount"] == 2
    told = [notice.text for notice in session.notices]
    expected = 2 if scoping == "per-project-tagged" else 0
    assert [text.startswith("Bank default was passed over: ") for text in told] == [True] * expected


def test_a_broken_own_bank_is_said_where_another_one_has_the_id(
    opened: Callable[[str], MemorySession], tmp_path: Path
) -> None:
    session = opened("per-project-tagged")
    id_ = made(tmp_path / "mnemopi.db", "default")
    own = backend_of(session).target(backend_of(session).retain_bank).path
    own.parent.mkdir(parents=True)
    BROKEN["broken"](own)
    assert session.read(id_).endswith(TEXT)
    (notice,) = session.notices
    assert notice.text == f"Bank {own.parent.name} was passed over: file is not a database"


@pytest.mark.claim("M-08")
@pytest.mark.parametrize("how", BROKEN)
def test_stats_count_the_banks_that_can_be_read(
    opened: Callable[[str], MemorySession], tmp_path: Path, how: str
) -> None:
    """C07."""
    BROKEN[how](tmp_path / "mnemopi.db")
    session = opened("per-project")
    session.retain("one lantern")
    table = session.stats()
    assert "| 1 | 0 | 0 | 2026-06-01T12:00:00.000Z |" in table
    assert "default" not in table
    (notice,) = session.notices
    assert notice.text.startswith("Bank default was passed over: ")


def test_where_no_bank_can_be_read_stats_say_why(opened: Callable[[str], MemorySession], tmp_path: Path) -> None:
    BROKEN["broken"](tmp_path / "mnemopi.db")
    with pytest.raises(NotABankError):
        opened("global").stats()


def test_only_what_is_asked_is_opened_and_for_reading(opened: Callable[[str], MemorySession], tmp_path: Path) -> None:
    made(tmp_path / "mnemopi.db", "default")
    session = opened("per-project-tagged")
    receipt = session.retain("a lantern").receipt
    assert receipt is not None
    session.close()
    session = opened("per-project-tagged")
    session.read(str(receipt.ids[0]))
    banks = backend_of(session).banks
    assert [(bank.name, bank.writable) for bank in banks.all()] == [(receipt.bank, False)]
    session.tools["memory_edit"](op="update", id="none", content="x")
    assert {bank.name: bank.writable for bank in banks.all()} == {receipt.bank: False, "default": False}


@pytest.mark.claim("M-08")
@pytest.mark.parametrize("scoping", SCOPINGS)
def test_status_counts_every_bank_that_is_recalled(
    opened: Callable[[str], MemorySession], tmp_path: Path, scoping: str
) -> None:
    """D12: the last memory is that of the first bank that has one."""
    made(tmp_path / "mnemopi.db", "default", timestamp="2026-06-01T11:30:00.000Z")
    rescued(tmp_path, "An old lantern.")
    session = opened(scoping)
    expected = {"global": 1, "per-project": 1, "per-project-tagged": 2}[scoping]
    assert session.describe()["workingCount"] == expected
    shared = "2026-06-01T11:30:00.000Z"
    assert session.describe()["lastMemory"] == (CLOCK_TEXT if scoping == "per-project" else shared)


CLOCK_TEXT = "2026-06-01T12:00:00.000Z"


@pytest.mark.claim("M-08")
def test_a_file_that_is_no_database_is_diagnosed_as_the_agent_does(
    opened: Callable[[str], MemorySession], tmp_path: Path
) -> None:
    BROKEN["broken"](tmp_path / "mnemopi.db")
    report = opened("global").diagnose()
    assert "| default | 3/8 | 1 | unknown | ~/mnemopi.db |" in report
    assert report.endswith("- default: open_or_inspect: file is not a database")


@pytest.mark.claim("M-05")
@pytest.mark.parametrize(
    ("address", "id_"),
    [
        ("memory://%20", " "),
        ("memory://a%2Fb", "a/b"),
        ("memory://a%2fb/c?d#e", "a/b"),
        ("memory://%C3%BC", "ü"),
        ("memory://%2525", "%25"),
        ("memory://a%00b", "a\0b"),
        ("memory://%zz", "%zz"),
        ("memory://a%2", "a%2"),
        ("memory://%ff", "%ff"),
        ("memory://%E4%BD", "%E4%BD"),
        ("memory://%ED%A0%80", "%ED%A0%80"),
        ("memory://%C3%BC%", "%C3%BC%"),
        ("memory://a+b", "a+b"),
        ("MEMORY://a", "a"),
        ("Memory://Root", "Root"),
        ("memory://root%20", "root "),
        ("memory:// a ", " a "),
        ("a%20b", "a b"),
    ],
)
def test_the_id_of_an_address_is_decoded(
    opened: Callable[[str], MemorySession], tmp_path: Path, address: str, id_: str
) -> None:
    """D19: as JavaScript decodes a part of an address; one that cannot be decoded is taken as it is."""
    with pytest.raises(MemoryNotFoundError) as missing:
        opened("global").read(address)
    assert missing.value.message.startswith(f"Mnemopi memory {id_} not found")


@pytest.mark.claim("M-05")
@pytest.mark.parametrize("backend", ["mnemopi", "hindsight"])
@pytest.mark.parametrize(
    ("address", "start"),
    [
        ("memory://%72oot", "File-backed memory artifacts only exist with memory.backend=local"),
        ("memory://root?x", "File-backed"),
        ("memory://root#x", "File-backed"),
        ("memory://root/x", "File-backed"),
        ("memory:a", "memory:// URL requires a namespace"),
        ("memory:/a", "memory:// URL requires a namespace"),
        ("memory:", "memory:// URL requires a namespace"),
        ("memory://?x", "memory:// URL requires a namespace"),
        ("memory:///x", "memory:// URL requires a namespace"),
    ],
)
def test_addresses_without_a_memory_say_what_they_need(tmp_path: Path, backend: str, address: str, start: str) -> None:
    with (
        open_session(backend, CWD, agent_dir=tmp_path, env={"HOME": str(tmp_path)}) as session,
        pytest.raises(MemoryToolkitError) as refused,
    ):
        session.read(address)
    assert refused.value.message.startswith(start)


def test_the_metadata_of_a_rescued_memory_is_shown_as_it_is_stored(
    opened: Callable[[str], MemorySession], tmp_path: Path
) -> None:
    id_ = rescued(tmp_path, TEXT)
    page = opened("per-project").read(id_)
    assert f"metadata: {json.dumps(json.dumps({'cwd': CWD}, separators=(',', ':')))}" in page
