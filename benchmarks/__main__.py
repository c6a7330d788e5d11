"""Measure ours and the real engine on the same banks: ``python -m benchmarks [--write]``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.measure import ROOT, Run


def main() -> None:
    """Take the runs, print the table, and write it to the documentation if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of memories, with commas between")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / ".benchmarks", help="where the banks are kept")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    runs = []
    for number in range(1, given.runs + 1):
        runs.append(Run(given.folder, number, lambda line: print(line, file=sys.stderr, flush=True)).all(sizes))
        (given.folder / "runs.json").write_text(json.dumps(runs, indent=1), encoding="utf-8")
    print(report.table(runs))
    if given.write:
        (ROOT / "docs" / "performance.md").write_text(report.page(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
