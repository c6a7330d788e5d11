"""Very long memories: noted, or stored only with a yes; the agent's own tool is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.errors import ToolInputError
from tests.notebook.conftest import Notebook, plain

if TYPE_CHECKING:
    from pathlib import Path


def test_a_very_long_memory_needs_a_yes_and_a_long_one_is_noted(real: Notebook) -> None:
    """C21: a note above 100 kB, --yes above 5 MB."""
    real.shell.user_ns |= {"long": "long words " * 10_000, "huge": "huge words " * 500_000}
    noted = real.run("%retain --from long")
    assert "more than 100 kB" in " ".join(noted.result.attrs["notes"])
    refused = real.run("%retain --from huge")
    assert isinstance(refused.error, ToolInputError)
    assert "5.5 MB" in refused.stdout
    assert "--yes" in refused.stdout
    assert real.run("%retain --yes --from huge").error is None
    assert real.run("%retain short").result.attrs["notes"] == []
    tool = real.magics.session.tools["retain"]
    assert tool(items=[{"content": "other " * 1_000_000}]).text == "1 memory stored."


def test_status_and_doctor_name_conflict_copies(real: Notebook, tmp_path: Path) -> None:
    """C21: in status and doctor."""
    real.run("%retain one")
    [bank] = (tmp_path / "mem").rglob("mnemopi.db")
    assert "warning" not in {row[0] for row in real.run("%memory status").result.rows}
    bank.with_name("mnemopi.sync-conflict-1.db").touch()
    rows = {row[0]: row[1] for row in real.run("%memory status").result.rows}
    assert "mnemopi.sync-conflict-1.db" in rows["warning"]
    assert "mnemopi.sync-conflict-1.db" in plain(real, "%memory doctor")
