"""``python -m tests.conformance DIR [FILE…]``: compare the product with a corpus of recorded cases.

Exit status: 0 all equal, 1 a difference, 3 all that ran is equal but something is not supported yet.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .runner import corpus_files, run_file


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("dir", type=Path, help="folder of the corpus")
    parser.add_argument("file", nargs="*", help="case files, relative to DIR (default: all)")
    options = parser.parse_args(arguments)
    if not options.dir.is_dir():
        parser.error(f"{options.dir} is no folder")
    if missing := [name for name in options.file if not (options.dir / name).is_file()]:
        parser.error(f"no such file in {options.dir}: {', '.join(missing)}")
    passed = total = unsupported = 0
    for path in corpus_files(options.dir, options.file):
        outcomes = list(run_file(options.dir, path))
        good = sum(not o.difference and not o.unsupported for o in outcomes)
        open_ = sum(bool(o.unsupported) for o in outcomes)
        _say(f"{path.relative_to(options.dir).as_posix()} {good}/{len(outcomes)}" + _open(open_))
        for outcome in outcomes:
            if outcome.difference:
                _say(f"  {outcome.name}\n    {outcome.difference}")
        passed, total, unsupported = passed + good, total + len(outcomes), unsupported + open_
    _say(f"total {passed}/{total}" + _open(unsupported))
    if passed + unsupported < total:
        return 1
    return 3 if unsupported else 0


def _open(count: int) -> str:
    return f" ({count} not supported yet)" if count else ""


def _say(line: str) -> None:
    sys.stdout.write(line.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


if __name__ == "__main__":
    sys.exit(main())
