"""What `%retain` and the retain panel leave out, and what they ask about, before anything is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import CredentialError
from ipy_memory.redact import MARK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook.conftest import Notebook

SECRET = "hunter2-and-more"


@pytest.mark.claim("N-03")
def test_the_magic_asks_before_it_stores_a_credential(real: Notebook, tmp_path: Path) -> None:
    refused = real.run(f"%retain the password is: {SECRET}")
    assert isinstance(refused.error, CredentialError)
    assert "--redact" in refused.stdout
    assert SECRET not in refused.stdout
    assert not list((tmp_path / "mem").rglob("mnemopi.db"))
    stored = real.run(f"%retain --redact the password is: {SECRET} <private>at home</private>").result
    assert stored["content"].tolist() == [f"the password is: {MARK} "]
    assert stored.text == "1 memory stored."
    assert stored.attrs["notes"][-2:] == [
        "1 private part was left out.",
        f"1 part that looked like a credential became {MARK}.",
    ]
    kept = real.run("%retain --keep password=hunter22 and sk-abcdefghijklmnopqrstuvwxyz0123456789").result
    assert kept["content"].tolist() == [f"password=hunter22 and {MARK}"]  # as the agent's tool stores it
    tool = real.magics.session.tools["retain"]
    assert tool(items=[{"content": f"<private>x</private> password={SECRET}"}]).text == "1 memory stored."
