"""The magics on real bank files: what the user types ends in the file, and comes back as the exact text."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import BankError, BankNotFoundError, NotABankError, NotStoredError, ScopedRecallError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook.conftest import Notebook


def digest(folder: Path) -> dict[str, str]:
    """Return the hash of every file that holds data below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.stat().st_size}


@pytest.mark.claim("N-02", "N-03")
def test_what_is_retained_comes_back(real: Notebook) -> None:
    stored = real.run("%%retain --lines\nThe deploy target of the shop is fly.io.\nInvoices go out in May.")
    assert stored.outputs[0]["text/plain"] == "2 memories stored."
    ids = list(stored.result["id"])
    found = real.run("%recall what is the deploy target?")
    assert found.outputs[0]["text/plain"] == (
        "Found 1 relevant memory (as of 2026-06-01 12:00 UTC):\n\n"
        f"- The deploy target of the shop is fly.io. (id: {ids[0]}) [coding-agent-retain] (2026-06-01) "
        f"c:{found.result['score'].iloc[0]:.1f}"
    )
    assert found.result.attrs["query"] == "what is the deploy target?"
    assert found.result["bank"].iloc[0].startswith("shop-")
    shown = real.run(f"%memory show {ids[0]}").outputs[0]["text/plain"]
    assert shown.endswith("The deploy target of the shop is fly.io.")
    assert real.run("%recall nothing-such").outputs[0]["text/plain"] == "No relevant memories found."


@pytest.mark.claim("T-10")
def test_a_credential_is_redacted_on_its_way(real: Notebook) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ran = real.run(f"%retain the token is {secret}")
    assert secret not in str(ran.outputs) + ran.result.to_csv()
    assert "1" in "".join(ran.result.attrs["notes"])


@pytest.mark.claim("T-06")
def test_a_failed_write_is_an_error_and_not_the_success_text(real: Notebook, tmp_path: Path) -> None:
    real.run("%retain first")
    (bank,) = (tmp_path / "mem" / "banks").glob("*/mnemopi.db")
    real.run("%memory use mnemopi")
    with sqlite3.connect(bank) as connection:
        connection.execute("CREATE UNIQUE INDEX odd ON working_memory(source)")
    connection.close()
    ran = real.run("%retain second")
    assert isinstance(ran.error, NotStoredError)
    assert ran.stdout.startswith("NotStoredError: 1 of 1 memor")
    assert "not stored in bank shop-" in ran.stdout
    assert ran.outputs == []


def test_reading_one_bank_or_without_touch_changes_no_byte(real: Notebook, tmp_path: Path) -> None:
    real.run("%retain The deploy target is fly.io.")
    bank = next((tmp_path / "mem" / "banks").glob("*/mnemopi.db")).parent.name
    real.run("%memory use mnemopi")
    before = digest(tmp_path / "mem")
    for cell in ("%recall --no-touch deploy", f"%recall --bank {bank} deploy", f"%reflect --bank {bank} deploy?"):
        assert "fly.io" in real.run(cell).outputs[0]["text/plain"]
    real.run("%memory use mnemopi")
    assert digest(tmp_path / "mem") == before
    ran = real.run(f"%recall --bank {bank[:-1]} deploy")
    assert isinstance(ran.error, BankNotFoundError)
    assert bank in ran.stdout


def test_any_bank_file_can_be_opened_for_reading(real: Notebook, tmp_path: Path) -> None:
    real.run("%retain The deploy target is fly.io.")
    source = next((tmp_path / "mem" / "banks").glob("*/mnemopi.db"))
    real.run("%memory use mnemopi")
    elsewhere = tmp_path / "a copy" / "old bank.sqlite"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(source.read_bytes())
    before = digest(elsewhere.parent)
    assert source.parent.name in real.run(f"%memory open {elsewhere}").outputs[0]["text/plain"]
    found = real.run("%recall deploy target")
    assert "fly.io" in found.outputs[0]["text/plain"]
    assert isinstance(real.run("%retain more").error, NotStoredError)
    assert "fly.io" in real.run(f"%memory show {found.result['id'].iloc[0]}").outputs[0]["text/plain"]
    status = real.run("%memory").outputs[0]["text/plain"]
    assert "old bank.sqlite" in status
    assert digest(elsewhere.parent) == before
    real.run("%memory use mnemopi")
    assert "old bank" not in real.run("%memory").outputs[0]["text/plain"]


@pytest.mark.parametrize(("content", "kind"), [(None, BankNotFoundError), (b"not a database", NotABankError)])
def test_what_is_no_bank_is_not_opened(
    real: Notebook, tmp_path: Path, content: bytes | None, kind: type[BankError]
) -> None:
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    ran = real.run(f"%memory open {path}")
    assert isinstance(ran.error, kind)
    assert ran.stdout.count("\n") == 1
    assert content is None or path.read_bytes() == content


def test_status_says_where_each_setting_comes_from(real: Notebook, tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_text("mnemopi:\n  recallLimit: 3\n")
    real.run("%memory scope per-project-tagged")
    rows = {row[0]: row[1:] for row in real.run("%memory status").result.rows}
    assert rows["backend"] == ("mnemopi", "session")
    assert rows["scope"] == ("per-project-tagged", "session")
    assert rows["retain bank"][0].startswith("shop-")
    assert rows["recall banks"][0].endswith(", default")
    assert rows["mnemopi.recallLimit"] == ("3", "~/config.yml:2")
    assert rows["vectors"][0].startswith("not in use: ")
    assert not (tmp_path / "mem").exists()


def test_status_says_when_the_working_directory_has_changed(
    real: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    real.magics.cwd = ""
    real.run("%memory record on")
    assert "working directory" not in real.run("%memory").outputs[0]["text/plain"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "working directory is now" in real.run("%memory").outputs[0]["text/plain"]
    real.run("%memory record off")
    assert "working directory is now" not in real.run("%memory").outputs[0]["text/plain"]


@pytest.mark.claim("R-22")
def test_a_group_of_errors_is_one_line_too(real: Notebook, tmp_path: Path) -> None:
    real.run("%memory scope per-project-tagged")
    real.run("%retain first")
    real.run("%memory use mnemopi")
    for bank in [*tmp_path.rglob("shop-*/mnemopi.db"), tmp_path / "mem" / "mnemopi.db"]:
        bank.write_bytes(b"not a bank" * 500)
    ran = real.run("%recall first")
    assert isinstance(ran.error, ScopedRecallError)
    assert [type(error) for error in ran.error.exceptions] == [NotABankError, NotABankError]
    assert ran.stderr == ""
    assert ran.stdout.strip() == ran.error.one_line()


@pytest.mark.claim("M-06")
def test_an_edit_names_the_summary_that_still_says_the_same(real: Notebook) -> None:
    (memory_id,) = real.run("%retain The harbour opens at six.").result["id"]
    real.magics.world["clock"].advance(13 * 3_600_000)
    real.run("%memory consolidate")
    (summary,) = real.run("%memory browse --store episodic harbour").result["id"]
    edits = (f"update {memory_id} The harbour opens at seven.", f"invalidate {memory_id}", f"forget {memory_id}")
    for command in edits:
        assert f"%memory invalidate {summary}" in real.run(f"%memory {command}").outputs[0]["text/plain"]
    assert "Its summary" not in real.run(f"%memory invalidate {summary}").outputs[0]["text/plain"]
    assert real.run("%recall harbour").outputs[0]["text/plain"] == "No relevant memories found."
