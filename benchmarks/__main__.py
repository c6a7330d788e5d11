"""Measure ours and the real engine on the same banks, and the signs of life of a notebook.

``python -m benchmarks [--write]`` measures all; ``python -m benchmarks silence [--write]`` the signs of life alone;
``python -m benchmarks audit [--items FILE] [--write]`` how well the audit finds what is labelled.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import audit, report, silence
from benchmarks.measure import ROOT, Run

PAGE = ROOT / "docs" / "performance.md"
AUDIT_PAGE = ROOT / "docs" / "audit.md"


def main() -> None:
    """Take the runs, print the tables, and write them to the documentation if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("all", "silence", "audit"), default="all")
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of memories, with commas between")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / ".benchmarks", help="where the banks are kept")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument("--items", type=Path, help="audit: also count the findings in this file of JSON lines")
    given = parser.parse_args()
    if given.what == "audit":
        measure_audit([int(size) for size in given.sizes.split(",")], given.items, write=given.write)
        return
    if given.what == "all":
        sizes = [int(size) for size in given.sizes.split(",")]
        runs = []
        for number in range(1, given.runs + 1):
            runs.append(Run(given.folder, number, tell).all(sizes))
            (given.folder / "runs.json").write_text(json.dumps(runs, indent=1), encoding="utf-8")
        print(report.table(runs))
        if given.write:
            PAGE.write_text(report.page(runs), encoding="utf-8")
    silences = [silence.measure(given.folder, number, tell) for number in range(1, given.runs + 1)]
    print(silence.table(silences))
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(report.with_section(page, silence.section(silences)), encoding="utf-8")


def measure_audit(sizes: list[int], items: Path | None, *, write: bool) -> None:
    """Measure the audit on made-up memories, and count its findings in a file of others."""
    shown = audit.table(audit.measure(sizes))
    print(shown)
    if items is not None:
        print(audit.of_items(items))
    if write:
        AUDIT_PAGE.write_text(audit.with_table(AUDIT_PAGE.read_text(encoding="utf-8"), shown), encoding="utf-8")


def tell(line: str) -> None:
    """Say how far it is."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
