"""The commands that look and repair, on real bank files: what they show, what they refuse, what they leave alone."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from ipy_memory.errors import (
    BankNotFoundError,
    ChangedSinceError,
    CorruptBankError,
    EditRefusedError,
    MagicError,
    MemoryNotFoundError,
    NoBackendError,
    ToolInputError,
)
from ipy_memory.explore.explain import REASON_COLUMNS
from ipy_memory.notebook.result import SafeFrame
from tests.explore.conftest import fingerprint
from tests.notebook.conftest import NOW, Notebook, plain, stored
from tests.notebook.pages import Reader

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.claim("N-02")
def test_explain_adds_reasons_to_the_frame_and_keeps_the_exact_text(real: Notebook) -> None:
    stored(real, "The deploy target is fly.io")
    bare = real.run("%recall --no-touch deploy")
    explained = real.run("%recall --no-touch --explain deploy")
    assert explained.outputs[0]["text/plain"] == bare.outputs[0]["text/plain"]
    assert list(explained.result.columns) == [*bare.result.columns, *REASON_COLUMNS]
    assert explained.result["matched"].iloc[0] == ["deploy"]
    assert "matched deploy" in explained.outputs[0]["text/html"]
    assert explained.result.text == bare.outputs[0]["text/plain"]
    empty = real.run("%recall --explain zebra").result
    pd.testing.assert_series_equal(empty.dtypes, explained.result.dtypes)


def test_why_answers_for_a_hit_and_for_a_miss(real: Notebook) -> None:
    hit, miss = stored(real, "The deploy target is fly.io"), stored(real, "Tea is preferred")
    assert "hit 1 of 1" in plain(real, f"%memory why {hit} deploy target")
    assert "shares no word" in plain(real, f"%memory why memory://{miss} deploy target")
    whole = real.run("%memory why --all deploy target")
    assert whole.result["verdict"].tolist().count("returned") == 1
    assert whole.outputs[0]["text/plain"].endswith("1 of 2 memories came back.")
    assert all(text in whole.outputs[0]["text/plain"] for text in whole.result["content"])
    assert real.run("%memory why --all deploy;").outputs == []


@pytest.mark.parametrize(
    ("line", "kind", "says"),
    [
        ("%memory why", MagicError, "an id and a query"),
        ("%memory why 716b", MagicError, "an id and a query"),
        ("%memory why --all", MagicError, "takes a query"),
        ("%memory why --everywhere x y", MagicError, "goes with --all"),
        ("%memory why nothing deploy", MemoryNotFoundError, "browse"),
        ("%memory why nothing deploy", MemoryNotFoundError, "why --all"),
        ("%memory why 716b --limit 3 deploy", MagicError, "in front"),
        ("%memory browse --bank projct", BankNotFoundError, "no bank 'projct'"),
        ("%memory browse --state dead", ToolInputError, "superseded"),
        ("%memory browse --store drawer", ToolInputError, "episodic"),
        ("%memory browse --limit none", MagicError, "whole number"),
        ("%memory browse --since yesterday", MagicError, "a date such as 2026-05-31"),
        ("%memory browse --until 31.5.2026", MagicError, "a date such as 2026-05-31"),
        ("%memory chain", MagicError, "one id"),
        ("%memory banks all", MagicError, "nothing more"),
        ("%memory update", MagicError, "an id and a text"),
        ("%memory update 716b", MagicError, "nothing to change"),
        ("%memory update --importance 2 716b", MagicError, "from 0 to 1"),
        ("%memory update --from nothing 716b", MagicError, "no variable nothing"),
        ("%memory update 716b text", MemoryNotFoundError, "716b"),
        ("%memory update 716b --importance 0.9", MagicError, "%memory update -- ID TEXT"),
        ("%memory update 716b --dry-run=1 text", MagicError, "in front"),
        ("%memory forget", MagicError, "one id"),
        ("%memory forget 716b", MemoryNotFoundError, "716b"),
        ("%memory invalidate 716b", MemoryNotFoundError, "716b"),
        ("%memory invalidate --frame nothing", MagicError, "no variable nothing"),
        ("%memory invalidate --frame NOW 716b", MagicError, "leave the id out"),
        ("%memory undo all", MagicError, "nothing more"),
        ("%memory undo", EditRefusedError, "nothing to undo"),
        ("%memory doctor all", MagicError, "nothing more"),
        ("%memory audit words", ToolInputError, "there are secrets, pii"),
        ("%memory audit --all --bank shop", MagicError, "exclude each other"),
        ("%memory report all", MagicError, "nothing more"),
    ],
)
def test_a_wrong_line_is_one_line_that_says_what_is_right(
    real: Notebook, line: str, kind: type[Exception], says: str
) -> None:
    ran = real.run(line)
    assert isinstance(ran.error, kind)
    assert ran.stdout.count("\n") == 1
    assert says in ran.stdout


@pytest.mark.claim("M-08")
@pytest.mark.parametrize(
    "line",
    [
        *("%memory browse", "%memory browse --store all", "%memory banks", "%memory scopes tea", "%memory stats"),
        *("%memory diagnose", "%memory doctor", "%memory report", "%memory consolidate --dry-run"),
        *("%memory audit", "%memory audit --all pii", "%memory why --all tea", "%recall --no-touch --explain tea"),
    ],
)
def test_looking_writes_nothing_on_an_empty_home_or_a_full_one(real: Notebook, line: str, tmp_path: Path) -> None:
    folder = tmp_path / "mem"
    plain(real, line)
    assert not folder.exists()
    stored(real, "Tea is preferred")
    real.magics.close_session()
    before = fingerprint(folder)
    plain(real, line)
    real.magics.close_session()
    assert fingerprint(folder) == before


def test_browse_filters_pages_and_binds_the_frame(real: Notebook) -> None:
    real.run("%%retain --lines\n" + "\n".join(f"Note {number} on tea" for number in range(7)))
    stored(real, "Coffee is bitter")
    first = real.run("%memory browse --limit 5 TEA")
    assert len(first.result) == 5
    assert first.outputs[0]["text/plain"].endswith("Rows 1 to 5 of 7.\nFurther rows: --page 2")
    assert "<table" in first.outputs[0]["text/html"]
    second = real.run("%memory browse --limit 5 --page 2 --out rest tea")
    assert len(second.result) == 2
    assert real.run("rest.shape").result == second.result.shape
    assert type(second.result[["id"]]) is SafeFrame
    assert plain(real, "%memory browse --since 2027") == "No such memories."
    assert plain(real, "%memory browse --until 2026-06-02T00:00") != "No such memories."
    assert (
        plain(real, "%memory browse --since 2026-06-01T14:00+02:00 --until '2026-06-01 12:00'") != "No such memories."
    )
    assert plain(real, "%memory browse --since 2026-06-01T14:01+02:00") == "No such memories."
    assert plain(real, "%memory browse tea --limit 5").startswith("No such memories. --limit was searched for")
    assert plain(real, "%memory browse -- tea --limit 5") == "No such memories."
    assert real.run("%memory browse;").outputs == []
    assert real.run("kept = %memory browse").outputs == []


@pytest.mark.claim("M-06")
def test_update_shows_the_difference_and_can_be_undone(real: Notebook, tmp_path: Path) -> None:
    memory_id = stored(real, "The deploy target\nis fly.io")
    dry = plain(real, f"%memory update --dry-run {memory_id} The deploy target")
    assert dry.startswith("Dry run: nothing was written.")
    assert "-is fly.io" in dry
    assert list(tmp_path.rglob("*.backup")) == []
    done = plain(real, f'%memory update {memory_id} The deploy target is "hetzner"  $HOME {{1+1}}')
    assert done.startswith(f"Memory {memory_id} updated in bank shop-")
    assert ".2026-06-01T120000Z.backup" in done
    assert str(tmp_path) not in done
    assert plain(real, f"%memory show {memory_id}").endswith('The deploy target is "hetzner"  $HOME {1+1}')
    real.run("whole = 'First line\\nSecond line'")
    plain(real, f"%memory update --from whole {memory_id}")
    assert plain(real, f"%memory show {memory_id}").endswith("First line\nSecond line")
    assert "as it was before" in plain(real, "%memory undo")
    assert plain(real, f"%memory show {memory_id}").endswith("{1+1}")
    plain(real, f"%memory update --importance 0.9 {memory_id}")
    assert "importance: 0.9" in plain(real, f"%memory show {memory_id}")


def test_a_text_that_begins_like_a_flag_is_taken_behind_the_end_mark(real: Notebook) -> None:
    memory_id = stored(real, "The deploy target is fly.io")
    real.run(f"%memory update {memory_id} --importance 0.9")
    assert real.run(f"%memory show {memory_id}").outputs[0]["text/plain"].endswith("fly.io")
    plain(real, f"%memory update -- {memory_id} --importance is a flag")
    assert real.run(f"%memory show {memory_id}").outputs[0]["text/plain"].endswith("--importance is a flag")
    plain(real, f"%memory update {memory_id} Push with --force and care")


@pytest.mark.claim("M-06", "R-11")
def test_an_update_that_is_the_cut_preview_is_refused_unless_forced(real: Notebook) -> None:
    whole = "deploy " + "x" * 960 + " TAIL-MARK"
    memory_id = stored(real, whole)
    real.run("found = %recall deploy")
    real.run("cut = found['content'].iloc[0]")
    ran = real.run(f"%memory update --from cut {memory_id}")
    assert isinstance(ran.error, EditRefusedError)
    assert "TAIL-MARK" in plain(real, f"%memory show {memory_id}")
    plain(real, f"%memory update --force --from cut {memory_id}")
    assert "TAIL-MARK" not in plain(real, f"%memory show {memory_id}")


def test_a_credential_in_an_update_is_redacted_and_said(real: Notebook) -> None:
    memory_id = stored(real, "The token is elsewhere")
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    shown = plain(real, f"%memory update {memory_id} The token is {secret}")
    assert secret not in shown
    assert "1 credential redacted." in shown


@pytest.mark.claim("M-03")
def elsewhere(folder: Path, statement: str) -> None:
    """Let another process change the only bank."""
    [bank] = folder.rglob("mnemopi.db")
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    subprocess.run([sys.executable, "-c", program, str(bank), statement], check=True)


def test_an_undo_of_a_memory_that_was_changed_again_shows_both_texts(real: Notebook, tmp_path: Path) -> None:
    """B05: refused with both texts shown; --force writes the former one."""
    id_ = stored(real, "The deploy target is fly.io")
    real.run(f"%memory update {id_} The deploy target is hetzner")
    elsewhere(tmp_path / "mem", "UPDATE working_memory SET content = 'The deploy target\x1b[2J is aws'")
    ran = real.run("%memory undo")
    assert isinstance(ran.error, ChangedSinceError)
    assert "%memory undo --force" in ran.stdout
    assert "aws" not in ran.stdout
    [output] = ran.outputs
    assert output["text/plain"].splitlines() == [
        "--- as it is now",
        "+++ as it would be after the undo",
        "- The deploy target\u27e8U+001B\u27e9[2J is aws",
        "+ The deploy target is fly.io",
    ]
    assert "aws" in plain(real, f"%memory show {id_}")
    assert "as it was before" in plain(real, "%memory undo --force")
    assert "fly.io" in plain(real, f"%memory show {id_}")
    assert isinstance(real.run("%memory undo").error, EditRefusedError)


def test_an_undone_selection_leaves_alone_what_was_changed_again(real: Notebook, tmp_path: Path) -> None:
    first, second = stored(real, "The first harbour"), stored(real, "The second harbour")
    real.run("both = %memory browse harbour")
    real.run("%memory invalidate --frame both --yes")
    elsewhere(tmp_path / "mem", f"UPDATE working_memory SET superseded_by = 'x' WHERE id = '{first}'")
    text = plain(real, "%memory undo")
    assert text.startswith("1 memory restored")
    assert "1 left alone: changed again since; %memory undo --force brings it back all the same." in text
    assert list(real.run("%recall --no-touch harbour").result["id"]) == [second]
    assert plain(real, "%memory undo --force").startswith("1 memory restored")
    assert set(real.run("%recall --no-touch harbour").result["id"]) == {first, second}


def test_invalidate_forget_and_undo(real: Notebook) -> None:
    memory_id, other = stored(real, "The deploy target is fly.io"), stored(real, "The deploy target is hetzner")
    assert "invalidated" in plain(real, f"%memory invalidate --by {other} {memory_id}")
    assert real.run(f"%memory chain {other}").result["id"].tolist() == [memory_id, other]
    assert f"superseded by {other}" in plain(real, f"%memory why {memory_id} deploy")
    assert plain(real, "%memory undo").startswith("1 memory restored")
    assert len(real.run("%recall deploy").result) == 2
    assert "The deploy target is fly.io" in plain(real, f"%memory forget --dry-run {memory_id}")
    assert len(real.run("%recall deploy").result) == 2
    assert "With it: 2 annotations." in plain(real, f"%memory forget {memory_id}")
    assert len(real.run("%recall deploy").result) == 1


@pytest.mark.claim("M-06")
def test_a_purge_names_the_copies_that_still_hold_the_text(real: Notebook, tmp_path: Path) -> None:
    memory_id, other = stored(real, "The deploy target is xyloquartz"), stored(real, "Tea")
    plain(real, f"%memory update {other} Green tea")
    shown = plain(real, f"%memory forget --purge {memory_id}")
    assert "Earlier copies of the bank may still hold the text: ~/ipy_memory/copies/" in shown
    real.magics.close_session()
    holding = [path.suffix for path in tmp_path.rglob("*") if path.is_file() and b"xyloquartz" in path.read_bytes()]
    assert holding == [".backup"]


@pytest.mark.claim("M-03")
def test_a_fact_is_read_and_not_edited(real: Notebook, tmp_path: Path) -> None:
    stored(real, "The deploy target is fly.io")
    (path,) = (tmp_path / "mem").rglob("mnemopi.db")
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO facts (fact_id, session_id, subject, predicate, object, timestamp)"
        " VALUES ('fact1', ?, 'ferry', 'leaves', 'pier nine', ?)",
        (path.parent.name, NOW),
    )
    connection.commit()
    assert "fact1" in real.run("%recall ferry pier").result["id"].tolist()
    assert "pier nine" in plain(real, "%memory show fact1")
    for line in ("update fact1 x", "forget fact1", "invalidate fact1"):
        ran = real.run(f"%memory {line}")
        assert isinstance(ran.error, EditRefusedError)
        assert "read-only" in ran.stdout
    assert connection.execute("SELECT object FROM facts").fetchall() == [("pier nine",)]
    connection.close()


@pytest.mark.claim("M-06")
def test_a_frame_is_ended_as_one_only_with_yes(real: Notebook) -> None:
    real.run("%%retain --lines\n" + "\n".join(f"Note {number} on tea" for number in range(12)))
    real.run("old = %memory browse tea")
    for line in ("%memory invalidate --frame old", "%memory invalidate --frame old --yes --dry-run"):
        shown = plain(real, line)
        assert shown.startswith("12 memories would be invalidated: 12 in bank shop-")
        assert shown.endswith("To do it: %memory invalidate --frame old --yes")
    assert plain(real, "%memory invalidate --frame old --yes").startswith("12 memories invalidated")
    assert real.run("%recall tea").result.empty
    assert plain(real, "%memory undo").startswith("12 memories restored")
    assert len(real.run("%recall tea").result) == 8


def test_banks_scopes_and_their_reasons_are_shown(real: Notebook) -> None:
    stored(real, "The deploy target is fly.io")
    listed = real.run("%memory banks")
    assert "the bank of this folder" in listed.outputs[0]["text/plain"]
    assert listed.result["working"].tolist() == [1]
    compared = real.run("%memory scopes deploy")
    assert len(compared.result) == 6
    assert "The deploy target is fly.io" in compared.outputs[0]["text/plain"]
    assert "omp" in real.run("%memory scopes --folder /elsewhere").outputs[0]["text/plain"]


@pytest.mark.claim("M-08")
def test_stats_and_diagnose_begin_with_the_exact_tables(real: Notebook) -> None:
    stored(real, "The deploy target is fly.io")
    session = real.magics.session
    stats = plain(real, "%memory stats")
    assert stats.startswith(session.stats() + "\n")
    assert "1 of 1 working memories are not summed up" in stats
    assert "24 hours" in stats
    assert plain(real, "%memory diagnose") == session.diagnose()


def test_the_doctor_shows_every_bank_when_one_cannot_be_repaired(real: Notebook, tmp_path: Path) -> None:
    """C20: the repair of the first bank is not hidden by the refusal of the second."""
    real.run("%memory scope per-project-tagged")
    stored(real, "The deploy target is fly.io")
    real.run("%memory use mnemopi")
    [bank] = (tmp_path / "mem" / "banks").rglob("mnemopi.db")
    connection = sqlite3.connect(bank)
    connection.execute("DROP INDEX idx_wm_session")
    connection.commit()
    connection.close()
    shared = tmp_path / "mem" / "mnemopi.db"
    shared.write_bytes(b"no database" * 1000)
    ran = real.run("%memory doctor --repair")
    assert ran.error is None
    text = ran.outputs[0]["text/plain"]
    assert f"{bank.parent.name}: added index idx_wm_session" in text
    assert "Copy of the bank: " in text
    assert "Not repaired: The file itself cannot be repaired" in text
    assert "1 faults in 2 banks." in text
    assert shared.read_bytes() == b"no database" * 1000
    assert isinstance(real.run("%memory doctor --repair --bank default").error, CorruptBankError)


def test_the_doctor_mends_in_the_same_kernel(real: Notebook, tmp_path: Path) -> None:
    stored(real, "The deploy target is fly.io")
    (path,) = (tmp_path / "mem").rglob("mnemopi.db")
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM fts_working_data")
    connection.commit()
    connection.close()
    assert "No memories are lost" in real.run("%recall deploy").outputs[0]["text/html"]
    assert "fault" in plain(real, "%memory doctor")
    assert "repaired" in plain(real, "%memory doctor --repair")
    assert len(real.run("%recall deploy").result) == 1
    assert "All is well in 1 banks." in plain(real, "%memory doctor")


def test_the_audit_begins_with_a_summary_and_gives_a_frame(real: Notebook) -> None:
    for text in ("The staging port is 8080", "The staging port is 9090", "Write to <b>dana</b>@corp.io, a@corp.io"):
        stored(real, text)
    ran = real.run("found = %memory audit --out kept conflicts pii")
    assert ran.error is None
    frame = real.shell.user_ns["kept"]
    assert list(frame["kind"]) == ["conflicts", "pii"]
    assert frame.attrs["summary"] == "2 findings in 3 memories: 1 conflicts, 1 pii (2 medium)."
    shown = real.run("%memory audit conflicts pii").outputs[0]
    assert shown["text/plain"].startswith("2 findings in ")
    assert shown["text/html"].index("2 findings in ") < shown["text/html"].index("<table")
    name = frame["finding"].iloc[0]
    assert "accepted now" in plain(real, f"%memory audit --accept {name} conflicts")
    assert "Nothing found in 3 memories." in plain(real, "%memory audit conflicts")


def test_consolidate_and_report_are_texts(real: Notebook) -> None:
    stored(real, "The deploy target is fly.io")
    assert "younger than twelve hours" in plain(real, "%memory consolidate")
    assert "memory.backend = mnemopi (session)" in plain(real, "%memory report")


@pytest.mark.claim("N-01")
@pytest.mark.parametrize(
    "line",
    [
        *("browse", "why id tea", "why --all tea", "chain id", "banks", "doctor", "audit", "consolidate"),
        *("update id text", "invalidate id", "forget id", "undo"),
    ],
)
def test_without_a_backend_one_line_says_how_to_choose_one(bare: Notebook, line: str) -> None:
    ran = bare.run(f"%memory {line}")
    assert isinstance(ran.error, NoBackendError)
    assert ran.stdout.count("\n") == 1
    assert "%memory use mnemopi" in ran.stdout


def test_stored_text_runs_and_steers_nothing(real: Notebook) -> None:
    payload = "tea <script>alert(1)</script> <img src=x onerror=y> \x1b[2J \u202e </table> $x^2$ [a](javascript:b)"
    real.shell.user_ns["payload"] = payload
    memory_id = str(real.run("%retain --from payload").result["id"].iloc[0])
    lines = [
        "%memory browse",
        "%memory why --all tea",
        "%memory scopes tea",
        f"%memory update --dry-run {memory_id} new",
    ]
    for line in [*lines, f"%memory forget --dry-run {memory_id}", "%recall --explain tea"]:
        (output,) = real.run(line).outputs
        tags = Reader(output["text/html"]).tags
        assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "pre", "p", "small"}, line
        assert "\x1b" not in output["text/html"]
        assert "\u202e" not in output["text/html"]
        if "recall" not in line:
            assert "\x1b" not in output["text/plain"], line


def test_best_is_chosen_by_a_flag_or_for_the_notebook(real: Notebook) -> None:
    stored(real, "Where shall we put the backups of the shop?")
    stored(real, "Lisbon, it is cheap.")
    assert len(real.run("%recall backup").result) == 1
    found = real.run("%recall --ranking best backup")
    assert len(found.result) == 2
    assert "the agent does not use" in found.stderr
    real.run("%config MemoryMagics.ranking = 'best'")
    assert len(real.run("%recall backup").result) == 2
    assert len(real.run("%recall --ranking agent backup").result) == 1
    refused = real.run("%recall --explain backup")
    assert "takes the agent's ranking apart" in str(refused.error)


def test_evaluate_shows_measures_and_keeps_the_cases(real: Notebook) -> None:
    port = stored(real, "The gateway listens on port 9077.")
    real.run(f"pairs = __import__('pandas').DataFrame({{'query': ['which port'], 'ids': [{port!r}]}})")
    ran = real.run("%memory evaluate --by ranking --frame pairs")
    assert ran.error is None
    assert list(ran.result["variant"]) == ["agent", "best"]
    assert ran.result.attrs["cases"][-1] == {
        "query": "which port",
        "id": port,
        "variant": "best",
        "rank": 1,
        "why": "",
    }
    assert "look at the cases" in ran.outputs[0]["text/plain"] + ran.stderr
    failed = real.run("%memory evaluate --frame pairs --limit 2 --fail-under mrr@2=2")
    assert "below 2" in str(failed.error)
    assert "name one source" in str(real.run("%memory evaluate").error)
    assert "not a frame" in str(real.run("pairs = 3\n%memory evaluate --frame pairs").error)


def test_compare_shows_one_query_by_its_variants(real: Notebook) -> None:
    stored(real, "The gateway listens on port 9077.")
    ran = real.run("%memory compare --by limit=1,2 which port")
    assert ran.error is None
    assert list(ran.result.columns) == ["query", "id", "bank", "1", "2", "moved", "only in", "content"]
    assert "9077" in ran.outputs[0]["text/plain"]
