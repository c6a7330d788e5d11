"""Editing over several banks, the page of a memory, undoing and purging."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipy_memory.backends.base import Edit
from ipy_memory.backends.mnemopi.db import connection
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.store import delete as removal
from ipy_memory.backends.mnemopi.store.delete import scrub
from ipy_memory.backends.mnemopi.store.edit import edit, find_in, read_address, undo
from ipy_memory.backends.mnemopi.store.memories import find, forget, invalidate, restore, update
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import (
    BankError,
    BusyBankError,
    ChangedSinceError,
    DiskFullError,
    EditRefusedError,
    MemoryNotFoundError,
    MemoryToolkitError,
    ReadOnlyBankError,
    ToolInputError,
)
from ipy_memory.model import Memory
from ipy_memory.text import memory_page as page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-06-01T12:00:00.000Z"
NOWHERE = "ffffffffffffffff"
EPISODE = "e" * 16


@pytest.fixture
def banks(tmp_path: Path) -> Iterator[list[Bank]]:
    clock, ids = FixedClock(NOW), FixedIds()
    opened = [Bank.open(tmp_path / f"{name}.db", name, clock=clock, ids=ids) for name in ("proj", "default")]
    yield opened
    for bank in opened:
        bank.close()


@pytest.fixture
def proj(banks: list[Bank]) -> Bank:
    return banks[0]


def _dump(bank: Bank) -> list[str]:
    """Return all rows; an index counts by what it holds, not by how it is laid out."""
    return [
        line
        for line in bank.connection.iterdump()
        if not line.startswith('INSERT INTO "fts_') or line.startswith('INSERT INTO "fts_working_content')
    ]


def _add_episode(bank: Bank, content: str, summary_of: str, scope: str = "session", session: str = "proj") -> None:
    bank.connection.execute(
        "INSERT INTO episodic_memory (id, content, session_id, summary_of, scope) VALUES (?, ?, ?, ?, ?)",
        (EPISODE, content, session, summary_of, scope),
    )


def _row(bank: Bank, id_: str, columns: str) -> Any:
    return bank.connection.execute(f"SELECT {columns} FROM working_memory WHERE id = ?", (id_,)).fetchone()


@pytest.mark.claim("M-02", "M-04")
def test_update(banks: list[Bank], proj: Bank) -> None:
    id_ = remember(proj, "before", RememberOptions(embed_text="other"))
    done = edit(banks, Edit("update", id_, content="uses secret_aB3dE5gH7jK9aB3d", importance=7))
    assert done.text == f"Memory {id_} updated in bank proj (working)."
    assert done.details == {"status": "updated", "bank": "proj", "store": "working"}
    assert _row(proj, id_, "content, importance, embed_text") == ("uses [REDACTED]", 1.0, None)
    assert proj.connection.execute("SELECT content FROM fts_working").fetchall() == [("uses [REDACTED]",)]
    assert done.before is not None
    assert done.before.content == "before"
    edit(banks, Edit("update", id_, importance=-1))
    assert _row(proj, id_, "content, importance") == ("uses [REDACTED]", 0.0)


@pytest.mark.claim("M-02")
def test_an_update_must_say_what_to_change(banks: list[Bank], proj: Bank) -> None:
    id_ = remember(proj, "x")
    before = _dump(proj)
    with pytest.raises(ToolInputError) as caught:
        edit(banks, Edit("update", id_))
    assert caught.value.message == "memory_edit update requires content or importance."
    assert _dump(proj) == before


@pytest.mark.claim("M-02")
@settings(max_examples=30, deadline=None)
@given(importance=st.floats(allow_nan=False))
def test_importance_is_held_within_its_bounds(tmp_path_factory: pytest.TempPathFactory, importance: float) -> None:
    path = tmp_path_factory.mktemp("bank") / "mnemopi.db"
    with Bank.open(path, "proj", clock=FixedClock(NOW), ids=FixedIds()) as bank:
        id_ = remember(bank, "x")
        edit([bank], Edit("update", id_, importance=importance))
        assert _row(bank, id_, "importance")[0] == min(1, max(0, importance))


@pytest.mark.claim("M-03", "M-04")
def test_forget_takes_everything_made_from_the_memory(banks: list[Bank], proj: Bank) -> None:
    empty = {
        table: proj.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("working_memory", "fts_working", "annotations", "facts", "memoria_facts", "memoria_preferences")
    }
    id_ = remember(proj, "I prefer tea", RememberOptions(extract=True, source="x"))
    assert edit(banks, Edit("forget", id_)).text == f"Memory {id_} deleted in bank proj (working)."
    assert {t: proj.connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in empty} == empty
    assert edit(banks, Edit("forget", id_)).details == {"status": "not_found"}


@pytest.mark.claim("M-03", "M-04")
@pytest.mark.parametrize("op", ["update", "forget"])
def test_an_episode_is_neither_updated_nor_forgotten(banks: list[Bank], proj: Bank, op: Any) -> None:
    _add_episode(proj, "a summary", "")
    before = _dump(proj)
    done = edit(banks, Edit(op, EPISODE, content="x"))
    assert done.text == f"Memory {EPISODE} was not found in bank proj (episodic)."
    assert done.details == {"status": "not_found", "bank": "proj", "store": "episodic"}
    assert _dump(proj) == before


@pytest.mark.claim("M-03", "M-04")
@pytest.mark.parametrize("op", ["update", "forget", "invalidate"])
def test_a_fact_is_read_only(banks: list[Bank], proj: Bank, op: Any) -> None:
    remember(proj, "I prefer tea", RememberOptions(extract=True))
    fact = proj.connection.execute("SELECT fact_id FROM facts").fetchone()[0]
    before = _dump(proj)
    done = edit(banks, Edit(op, fact, content="x"))
    assert done.details == {"status": "not_editable", "bank": "proj", "store": "fact"}
    assert done.text == (
        f"Memory {fact} is a read-only fact in bank proj (fact); it cannot be edited. Read it with memory://{fact}."
    )
    assert _dump(proj) == before


@pytest.mark.claim("M-03", "M-04")
def test_invalidate_and_undo(banks: list[Bank], proj: Bank) -> None:
    id_ = remember(proj, "x", RememberOptions(valid_until="2027-01-01"))
    _add_episode(proj, "a summary", "")
    before = _dump(proj)
    done = edit(banks, Edit("invalidate", id_, replacement_id="new"))
    assert done.text == f"Memory {id_} invalidated in bank proj (working)."
    assert _row(proj, id_, "valid_until, superseded_by") == (NOW, "new")
    episode = edit(banks, Edit("invalidate", EPISODE))
    assert episode.text == f"Memory {EPISODE} invalidated in bank proj (episodic)."
    assert done.undo is not None
    assert episode.undo is not None
    assert restore(proj, done.undo)
    assert restore(proj, episode.undo)
    assert _dump(proj) == before


def test_undoing_what_is_gone_does_nothing(proj: Bank) -> None:
    id_ = remember(proj, "x")
    undo = invalidate(proj, id_)
    assert undo is not None
    forget(proj, id_)
    assert not restore(proj, undo)


def test_an_undo_writes_only_what_the_edit_wrote(banks: list[Bank], proj: Bank) -> None:
    """B05: the undo of an importance leaves a text alone that somebody else wrote meanwhile, and the reverse."""
    id_ = remember(proj, "before", RememberOptions(embed_text="indexed"))
    weighed = edit(banks, Edit("update", id_, importance=0.9))
    proj.connection.execute("UPDATE working_memory SET content = 'of somebody else'")
    assert undo(proj, weighed)
    assert _row(proj, id_, "content, importance") == ("of somebody else", 0.5)
    written = edit(banks, Edit("update", id_, content="after"))
    proj.connection.execute("UPDATE working_memory SET importance = 0.1, embed_text = 'of another'")
    assert undo(proj, written)
    assert _row(proj, id_, "content, importance, embed_text") == ("of somebody else", 0.1, "indexed")
    ended = edit(banks, Edit("invalidate", id_))
    proj.connection.execute("UPDATE working_memory SET content = 'last'")
    assert undo(proj, ended)
    assert _row(proj, id_, "content, valid_until") == ("last", None)


@pytest.mark.parametrize(
    ("op", "given", "other", "shown"),
    [
        ("update", {"content": "after"}, {"content": "of somebody else"}, ("content", "before")),
        ("update", {"importance": 0.9}, {"importance": 0.1}, ("importance", 0.5)),
        ("update", {"content": "after", "importance": 0.9}, {"importance": 0.1}, ("importance", 0.5)),
        ("invalidate", {}, {"valid_until": None}, ("valid_until", "2027-01-01")),
        ("invalidate", {}, {"superseded_by": "a better one"}, ("superseded_by", None)),
    ],
)
def test_an_undo_of_what_was_changed_again_is_refused_unless_it_is_forced(
    banks: list[Bank],
    proj: Bank,
    op: Any,
    given: dict[str, Any],
    other: dict[str, Any],
    shown: tuple[str, object],
) -> None:
    """B05: both states are in the error, the memory's text is not in its message."""
    id_ = remember(proj, "before", RememberOptions(valid_until="2027-01-01"))
    done = edit(banks, Edit(op, id_, **given))
    [(column, value)] = other.items()
    proj.connection.execute(f"UPDATE working_memory SET {column} = ?", (value,))
    before = _dump(proj)
    with pytest.raises(ChangedSinceError) as refused:
        undo(proj, done)
    assert _dump(proj) == before
    name, former = shown
    assert (refused.value.now[name], refused.value.former[name]) == (value, former)
    assert not {"before", "of somebody else"} & set(refused.value.one_line().replace("'", " ").split())
    assert undo(proj, done, force=True)
    assert _row(proj, id_, name) == (former,)


def test_text_that_was_stored_again_as_it_is_hinders_no_undo(banks: list[Bank], proj: Bank) -> None:
    id_ = remember(proj, "before")
    done = edit(banks, Edit("update", id_, content="after"))
    remember(proj, "after", RememberOptions(embed_text="indexed otherwise"))
    assert undo(proj, done)
    assert _row(proj, id_, "content, embed_text") == ("before", None)


@pytest.mark.parametrize("op", ["update", "invalidate", "forget"])
@pytest.mark.parametrize("purge", [False, True])
def test_every_edit_can_be_tied_to_the_text_that_was_read(banks: list[Bank], proj: Bank, op: Any, purge: bool) -> None:
    """B09: nobody ends or deletes a text that they have not seen."""
    id_ = remember(proj, "seen")
    proj.connection.execute("UPDATE working_memory SET content = 'unseen'")
    before = _dump(proj)
    with pytest.raises(EditRefusedError, match="changed or removed"):
        edit(banks, Edit(op, id_, content="x" if op == "update" else None, base="seen", purge=purge))
    assert _dump(proj) == before
    assert edit(banks, Edit(op, id_, content="x" if op == "update" else None, base="unseen", purge=purge)).before


@pytest.mark.claim("M-04", "R-13")
def test_the_first_bank_that_takes_it_wins(banks: list[Bank]) -> None:
    proj, shared = banks
    id_ = remember(shared, "shared")
    assert edit(banks, Edit("update", id_, content="edited")).text == f"Memory {id_} updated in bank default (working)."
    _add_episode(proj, "a summary", "")
    shared.connection.execute(
        "INSERT INTO working_memory (id, content, session_id) VALUES (?, 'twin', 'default')", (EPISODE,)
    )
    assert edit(banks, Edit("forget", EPISODE)).details["bank"] == "default"
    assert find_in(banks, EPISODE).store == "episodic"


@pytest.mark.claim("M-03")
def test_rows_of_another_session_are_shown_but_not_edited(banks: list[Bank], proj: Bank) -> None:
    id_ = remember(proj, "x")
    proj.connection.execute("UPDATE working_memory SET session_id = 'other'")
    assert find(proj, id_) is not None
    for op in ("update", "forget", "invalidate"):
        assert edit(banks, Edit(op, id_, content="y")).details["status"] == "not_found"  # type: ignore[arg-type]
    proj.connection.execute("UPDATE working_memory SET scope = 'global'")
    assert edit(banks, Edit("invalidate", id_)).status == "invalidated"


@pytest.mark.claim("M-06")
def test_an_update_with_the_cut_preview_is_refused(banks: list[Bank], proj: Bank) -> None:
    whole = "x" * 600
    id_ = remember(proj, whole)
    preview = "x" * 499 + "…"
    with pytest.raises(EditRefusedError):
        edit(banks, Edit("update", id_, content=preview), preview_chars=500)
    assert _row(proj, id_, "content") == (whole,)
    assert edit(banks, Edit("update", id_, content=whole), preview_chars=500).status == "updated"
    assert edit(banks, Edit("update", id_, content=preview)).status == "updated"


def test_a_failing_edit_changes_nothing(banks: list[Bank], proj: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = remember(proj, "I prefer tea", RememberOptions(extract=True))
    before = _dump(proj)
    monkeypatch.setattr(connection, "BUSY_MS", 0)
    other = sqlite3.connect(proj.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for op in ("update", "forget", "invalidate"):
        with pytest.raises(BusyBankError):
            edit(banks, Edit(op, id_, content="y"))  # type: ignore[arg-type]
    other.close()
    proj.connection.execute(
        "CREATE TEMP TRIGGER fail BEFORE DELETE ON main.annotations BEGIN SELECT RAISE(ABORT, 'failed'); END"
    )
    with pytest.raises(BankError):
        edit(banks, Edit("forget", id_))
    proj.connection.execute("DROP TRIGGER fail")
    assert _dump(proj) == before


def test_a_bank_opened_for_reading_is_not_edited(proj: Bank) -> None:
    id_ = remember(proj, "x")
    with Bank.open_readonly(proj.path, "proj", clock=proj.clock) as frozen, pytest.raises(ReadOnlyBankError):
        update(frozen, id_, content="y")


@pytest.mark.claim("M-05", "R-13")
def test_the_page_of_a_memory(banks: list[Bank], proj: Bank) -> None:
    id_ = remember(proj, "all of it\nin full", RememberOptions(source="", importance=0, metadata={"a": "é"}))
    proj.connection.execute("UPDATE working_memory SET created_at = '2026-06-01 12:00:00'")
    assert read_address(banks, f"memory://{id_}/extra") == (
        f"---\nid: {id_}\nbank: proj\nstore: working\ntimestamp: {NOW}\ncreated_at: 2026-06-01 12:00:00\n"
        'importance: 0\nveracity: unknown\nsession_id: proj\nmetadata: "{\\"a\\":\\"é\\"}"\n---\n\nall of it\nin full'
    )


@pytest.mark.claim("M-05")
def test_the_page_of_a_fact(proj: Bank) -> None:
    source = remember(proj, "I prefer tea", RememberOptions(extract=True))
    fact = proj.connection.execute("SELECT fact_id FROM facts").fetchone()[0]
    memory = find(proj, fact)
    assert memory is not None
    assert memory.content == "fact entity The user prefers tea"
    assert json.loads(memory.metadata or "")["source_msg_id"] == source
    assert "importance: 0.7\nsession_id: proj\n" in page(memory)


@given(st.text(), st.text(min_size=1))
def test_a_page_ends_in_the_whole_text(content: str, metadata: str) -> None:
    shown = page(Memory(id="i", bank="b", store="working", content=content, metadata=metadata))
    assert shown.endswith(f"\n---\n\n{content}")


@pytest.mark.claim("R-13")
def test_addresses_with_nothing_behind_them(banks: list[Bank]) -> None:
    with pytest.raises(MemoryNotFoundError) as missing:
        read_address(banks, f"memory://{NOWHERE}")
    assert missing.value.message == (
        f"Mnemopi memory {NOWHERE} not found in the calling session's scoped bank. Use `recall` to list available ids."
    )
    with pytest.raises(MemoryToolkitError, match="requires a namespace: memory://root or memory://<memory-id>"):
        read_address(banks, "memory://")
    with pytest.raises(MemoryToolkitError, match=r"only exist with memory.backend=local \(active backend: mnemopi\)"):
        read_address(banks, "memory://root")


def test_reading_changes_nothing(banks: list[Bank], proj: Bank) -> None:
    id_ = remember(proj, "x")
    before = _dump(proj)
    read_address(banks, f"memory://{id_}")
    assert _dump(proj) == before


WORD = "Zanzibarquokka"


def test_a_purge_leaves_no_byte_of_the_text(proj: Bank) -> None:
    remember(proj, "a memory that stays: I prefer tea", RememberOptions(extract=True))
    id_ = remember(
        proj, f"I prefer {WORD} forever. " + "and more " * 600, RememberOptions(extract=True, extract_entities=True)
    )
    _add_episode(proj, f"[x] {WORD}", id_)
    proj.connection.execute(
        "INSERT INTO memory_embeddings (memory_id, embedding_json) VALUES (?, ?)", (id_, f"[{WORD}]")
    )
    proj.connection.execute(
        "INSERT INTO triples (subject, predicate, object, source) VALUES (?, 'p', 'o', ?)", (WORD, id_)
    )
    proj.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    update(proj, id_, importance=0.1)
    assert forget(proj, id_, purge=True)
    for file in proj.path.parent.glob("proj.db*"):
        held = file.read_bytes().lower()
        assert WORD.lower().encode() not in held
        assert WORD.lower()[1:].encode() not in held
    assert find(proj, id_) is None
    assert find(proj, EPISODE) is None
    for table, word in (("fts_working", "stays"), ("fts_facts", "tea")):
        found = proj.connection.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (word,)).fetchone()
        assert found == (1,)


def test_a_purge_of_a_part_of_a_summary_is_refused(proj: Bank) -> None:
    one, two = remember(proj, "one"), remember(proj, "two")
    _add_episode(proj, "[x] one | two", f"{one},{two}")
    before = _dump(proj)
    with pytest.raises(EditRefusedError, match="part of a summary of 2 memories"):
        forget(proj, one, purge=True)
    assert _dump(proj) == before
    assert forget(proj, one)


def test_a_purge_says_when_old_pages_had_to_stay(proj: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = remember(proj, WORD)
    monkeypatch.setattr(connection, "BUSY_MS", 0)
    reader = sqlite3.connect(proj.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM working_memory").fetchone()
    with pytest.raises(BusyBankError):
        forget(proj, id_, purge=True)
    reader.close()
    assert find(proj, id_) is None


def test_a_purge_on_a_full_disk_says_that_the_row_is_gone(proj: Bank) -> None:
    """B15: not that what was stored is untouched; a second purge finishes it."""
    id_ = remember(proj, WORD)
    remember(proj, "x" * 200_000)
    pages = proj.connection.execute("PRAGMA page_count").fetchone()[0]
    with pytest.MonkeyPatch.context() as patched:
        real = removal._rewrite

        def full(bank: Bank) -> None:
            bank.connection.execute(f"PRAGMA max_page_count = {pages}")
            with bank.rewriting() as connection, bank.transaction():
                connection.execute("INSERT INTO scratchpad (id, content) VALUES ('a', zeroblob(5000000))")
            real(bank)

        patched.setattr(removal, "_rewrite", full)
        with pytest.raises(DiskFullError, match=r"^The memory is deleted, but its text may still be") as caught:
            forget(proj, id_, purge=True)
    assert "untouched" not in caught.value.one_line()
    assert find(proj, id_) is None
    proj.connection.execute("PRAGMA max_page_count = 1073741823")
    scrub(proj)
    proj.close()
    assert WORD.encode() not in proj.path.read_bytes()
