"""Which test or notebook cell covers which numbered behaviour: ``python -m tests.claims`` rewrites docs/behaviour.md.

A claim is covered by a test marked ``@pytest.mark.claim("R-07")`` or a notebook cell tagged ``claim:R-07``; nothing
else counts. The list itself (id and wording) is kept by hand in docs/behaviour.md, the last column is written here.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
BEHAVIOUR = ROOT / "docs" / "behaviour.md"
_ROW = re.compile(r"^\| (?P<id>[A-Z]-\d\d) \| (?P<text>.*?) \|(?: (?P<cover>[^|]*) \|)?$")


def listed() -> dict[str, str]:
    """Return every claim of docs/behaviour.md: id -> wording."""
    rows = map(_ROW.match, BEHAVIOUR.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["text"] for row in rows if row}


def covering() -> dict[str, list[str]]:
    """Return claim id -> the tests and cells that cover it, as ``path::name``."""
    found: dict[str, list[str]] = {}
    for claim, place in sorted({*_from_tests(), *_from_notebooks()}):
        found.setdefault(claim, []).append(place)
    return found


def _from_tests() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        relative = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for decorator in node.decorator_list:
                    yield from ((claim, f"{relative}::{node.name}") for claim in _marked(decorator))
            elif isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "CLAIMS" for t in node.targets
            ):
                for claim in re.findall(r"[A-Z]-\d\d", ast.unparse(node.value)):
                    yield claim, f"{relative}::CLAIMS"


def _marked(decorator: ast.expr) -> list[str]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.claim":
        return [a.value for a in decorator.args if isinstance(a, ast.Constant)]
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.parametrize":
        inner = [n for n in ast.walk(decorator) if isinstance(n, ast.Call) and n is not decorator]
        return [claim for call in inner for claim in _marked(call)]
    return []


def _from_notebooks() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            for tag in cell["metadata"].get("tags", ()):
                if tag.startswith("claim:"):
                    yield tag.removeprefix("claim:"), f"{path.relative_to(ROOT).as_posix()}::cell {number}"


def rendered() -> str:
    """Return docs/behaviour.md with its last column as it should be."""
    cover = covering()
    lines = []
    for line in BEHAVIOUR.read_text(encoding="utf-8").splitlines():
        row = _ROW.match(line)
        if row:
            places = sorted(dict.fromkeys(cover.get(row["id"], ())))
            shown = ", ".join(f"[{_short(place)}](../{place.split('::')[0]})" for place in places)
            line = f"| {row['id']} | {row['text']} | {shown} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _short(place: str) -> str:
    path, name = place.split("::")
    return f"`{Path(path).stem.removeprefix('test_')}::{name.removeprefix('test_')}`"


def main() -> int:
    """Rewrite the page; say what is uncovered or unknown; exit 1 if anything is."""
    BEHAVIOUR.write_text(rendered(), encoding="utf-8")
    claims, cover = listed(), covering()
    uncovered = [claim for claim in claims if claim not in cover]
    unknown = [claim for claim in cover if claim not in claims]
    print(f"{len(claims) - len(uncovered)}/{len(claims)} claims covered")
    print(f"uncovered: {' '.join(uncovered) or 'none'}; unknown: {' '.join(unknown) or 'none'}")
    return 1 if uncovered or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
