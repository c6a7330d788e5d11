"""Bank and tags of a Hindsight session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import SettingsError
from ipy_memory.scoping.modes import HindsightScope, hindsight_scope
from ipy_memory.settings.resolve import Settings, hindsight_config

if TYPE_CHECKING:
    from pathlib import Path

DEFAULTS = hindsight_config(Settings())


def scope(cwd: Path, scoping: str, bank: str | None = None, prefix: str = "") -> HindsightScope:
    return hindsight_scope(replace(DEFAULTS, scoping=scoping, bank_id=bank, bank_id_prefix=prefix), str(cwd))


@pytest.mark.claim("S-01", "S-02")
@pytest.mark.parametrize(
    ("prefix", "bank", "expected"),
    [
        ("", None, "omp"),
        ("acme", None, "acme-omp"),
        (" acme ", " te am/ü ", "acme-te am/ü"),
        ("  ", "  ", "omp"),
        ("", "team", "team"),
    ],
)
def test_global_is_the_base_bank_without_tags(tmp_path: Path, prefix: str, bank: str | None, expected: str) -> None:
    assert scope(tmp_path, "global", bank, prefix) == HindsightScope(expected)


@pytest.mark.claim("S-03")
def test_per_project_is_a_bank_of_its_own_without_tags(tmp_path: Path) -> None:
    assert scope(tmp_path / "Demo", "per-project", "team", "acme") == HindsightScope("acme-team-demo")


@pytest.mark.claim("S-04")
def test_tagged_shares_the_base_bank(tmp_path: Path) -> None:
    assert DEFAULTS.scoping == "per-project-tagged"
    tags = ("project:demo",)
    assert hindsight_scope(DEFAULTS, str(tmp_path / "Demo")) == HindsightScope("omp", tags, tags, "any")


@pytest.mark.claim("S-11")
def test_a_wrong_mode_in_a_call_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        scope(tmp_path, "tagged")
    assert "per-project-tagged" in caught.value.one_line()
