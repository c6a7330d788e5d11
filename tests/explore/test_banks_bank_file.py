"""A session on one bank file changes nothing, and ends like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import ReadOnlyBankError
from ipy_memory.explore.banks import open_bank_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.explore.conftest import OpenSession


def test_a_session_on_one_file_reads_and_ends(open_here: OpenSession, tmp_path: Path) -> None:
    with open_here("global") as writing:
        writing.retain("The harbour is open at night.")
    with open_bank_file(tmp_path / "home" / "mnemopi.db", env={"HOME": str(tmp_path)}) as session:
        assert [hit.content for hit in session.recall("harbour").hits] == ["The harbour is open at night."]
        with pytest.raises(ReadOnlyBankError):
            session.change("forget", "0" * 16)
    assert session.backend is None
