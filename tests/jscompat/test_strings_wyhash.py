"""The hash behind bank names, against recorded values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.jscompat.strings import hash36, well_formed, wyhash

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "wyhash.json").read_text(encoding="utf-8"))
LENGTHS = {len(well_formed(case["input"]).encode()) for case in GOLDEN["cases"]}


@pytest.mark.claim("S-09")
def test_equals_every_recorded_value() -> None:
    for case in GOLDEN["cases"]:
        data = well_formed(case["input"]).encode()
        assert str(wyhash(data)) == case["expected"]["decimal"], case["name"]
        assert hash36(case["input"]) == case["expected"]["base36"], case["name"]


def test_the_recorded_values_reach_every_branch() -> None:
    assert {0, 1, 3, 4, 8, 16, 17, 47, 48, 49, 96, 97} <= LENGTHS


@given(st.binary(max_size=200))
def test_is_a_64_bit_number_that_every_byte_decides(data: bytes) -> None:
    value = wyhash(data)
    assert 0 <= value < 1 << 64
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        assert wyhash(bytes(changed)) != value


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert hash36("a\ud83d") == hash36("a\ufffd") != hash36("a")
