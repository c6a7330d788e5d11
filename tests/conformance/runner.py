"""Find every case of a corpus, play each in a fresh place, and say how it compares."""

from __future__ import annotations

import json
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.embeddings.index import QUERIES

from . import kinds as _kinds  # noqa: F401  registers the adapters
from .compare import apply_differences, first_difference
from .dump import written_out
from .registry import Case, adapter_for, unsupported_operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FOLDERS = ("", "recall", "recall_tz", "units")


@dataclass(frozen=True)
class Outcome:
    """How one case went: ``difference`` is ``None`` when equal; ``unsupported`` says what is missing."""

    name: str
    difference: str | None = None
    unsupported: str | None = None


def corpus_files(corpus: Path, names: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the case files of a corpus (those JSON files that have ``cases``), or just the named ones."""
    wanted = [corpus / name for name in names] or [
        path for folder in FOLDERS for path in sorted((corpus / folder).glob("*.json"))
    ]
    for path in wanted:
        if "cases" in _load(path):
            yield path


def kind_of(corpus: Path, path: Path) -> str:
    """Return the kind of a file: its stem, and for the recall folders ``recall/<stem>``."""
    folder = path.relative_to(corpus).parent.as_posix()
    return f"recall/{path.stem}" if folder in {"recall", "recall_tz"} else path.stem


def run_file(corpus: Path, path: Path) -> Iterator[Outcome]:
    """Play every case of one file."""
    document = _load(path)
    QUERIES.clear()  # each file was recorded in a process of its own
    for case in document["cases"]:
        yield run_case(corpus, path, document, case)


def run_case(corpus: Path, path: Path, document: Mapping[str, Any], case: Mapping[str, Any]) -> Outcome:
    """Play one case in a fresh folder and compare it."""
    name, kind = case["name"], kind_of(corpus, path)
    adapter = adapter_for(kind)
    if adapter is None:
        return Outcome(name, unsupported=f"kind {kind}")
    if missing := unsupported_operation(kind, case["input"]):
        return Outcome(name, unsupported=f"operation {missing}")
    header = {key: value for key, value in document.items() if key != "cases"}
    expected = case["expected"]
    with tempfile.TemporaryDirectory(prefix="ipy-memory-case-") as scratch:
        playable = Case(kind, name, written_out(case["input"]), expected, header, corpus, Path(scratch))
        try:
            actual = adapter(playable)
        except Exception as error:  # noqa: BLE001  a case that raises is a difference to report
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome(name, f"expected: raised {error!r} at {Path(where.filename).name}:{where.lineno}")
    if rules := _differences(corpus, path, name):
        actual, expected = apply_differences(rules, actual, expected)
    return Outcome(name, first_difference(actual, expected))


def _differences(corpus: Path, path: Path, case: str) -> list[Mapping[str, Any]]:
    listed = corpus / "differences.json"
    if not listed.is_file():
        return []
    name = path.relative_to(corpus).as_posix()
    names = {name, name.removeprefix("units/")}
    return [r for r in _load(listed)["differences"] if r["file"] in names and r["case"] in {"*", case}]


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
