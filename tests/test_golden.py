"""Every recorded case of ``tests/golden``, through the conformance runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.runner import corpus_files, kind_of, run_file

GOLDEN = Path(__file__).parent / "golden"

CLAIMS = {
    "recall/*": ["R-33"],
    "retain": ["T-14"],
    "tools": ["R-01", "T-01", "F-01", "M-01", "R-02"],
    "backend": ["M-04", "M-05", "M-07", "M-08", "R-13", "A-13"],
    "settings_*": ["C-08"],
    "redact*": ["T-10"],
}
"""Which claims a kind of file covers as a whole."""


def _files() -> list[object]:
    parameters = []
    for path in corpus_files(GOLDEN):
        kind = kind_of(GOLDEN, path)
        claims = [c for pattern, ids in CLAIMS.items() if Path(kind).match(pattern) for c in ids]
        marks = [pytest.mark.claim(*claims)] if claims else []
        parameters.append(pytest.param(path, id=path.relative_to(GOLDEN).as_posix(), marks=marks))
    return parameters


@pytest.mark.parametrize("path", _files())
def test_recorded_cases_are_equal(path: Path) -> None:
    outcomes = list(run_file(GOLDEN, path))
    assert outcomes
    assert not [(o.name, o.difference or o.unsupported) for o in outcomes if o.difference or o.unsupported]
