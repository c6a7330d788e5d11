"""Break each exact sentence, each default and each scoring constant, one at a time: some test must fail each time.

``python -m tests.mutation [PART…]`` (parts: texts, blocks, tools, defaults, scoring; default all) prints a line per
mutant and ends with a count; it exits with 1 if a mutant lived. Each mutant is a copy of the package in which one
value of one module differs; the tests named for its part run against the copy, in a forked process, until one fails.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ipy_memory"


@dataclass(frozen=True)
class Part:
    """The values of one module that count, and the tests that hold them."""

    module: str
    chosen: Callable[[ast.Module], Iterator[ast.Constant]]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """One changed value: where it stands and what it was."""

    module: str
    line: int
    was: object
    source: str


def _docstrings(tree: ast.Module) -> set[int]:
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _annotations(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            found |= {id(inner) for inner in ast.walk(part)} if part is not None else set()
    return found


def sentences(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield every piece of text with a letter that is no docstring, pattern or import."""
    skipped = _docstrings(tree) | _annotations(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"re.compile", "TypeVar"}:
            skipped |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in skipped:
            continue
        if any(char.isalpha() for char in node.value):
            yield node


def defaults(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the default of every setting: the third argument of a row, or its elements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Setting" and len(node.args) > 2:
            yield from (inner for inner in ast.walk(node.args[2]) if isinstance(inner, ast.Constant))


def numbers(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the numbers of every constant at the module's top."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for inner in ast.walk(node.value):
                if isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
                    yield inner


def changed(value: object) -> object:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.37 + 0.11 if isinstance(value, float) else value + max(1, abs(value) // 3)
    return f"{value}\u00a4"


_TOLD = (0, 1, 2)
"""Exit statuses of pytest that say something: all passed, some failed, a module could not be imported."""

PARTS = {
    "texts": Part(
        "text.py",
        sentences,
        (
            "tests/test_text.py",
            "tests/test_tools.py",
            "tests/test_session.py",
            "tests/mnemopi/test_edit.py",
            "tests/notebook",
            "tests/inspect",
            "tests/test_golden.py",
        ),
    ),
    "blocks": Part("hindsight/blocks.py", sentences, ("tests/hindsight", "tests/test_golden.py")),
    "tools": Part("tools.py", sentences, ("tests/test_tools.py", "tests/test_session.py", "tests/test_golden.py")),
    "defaults": Part("settings_table.py", defaults, ("tests/test_settings.py", "tests/test_golden.py")),
    "scoring": Part(
        "mnemopi/scoring.py",
        numbers,
        (
            "tests/mnemopi/test_scoring.py",
            "tests/mnemopi/test_windows.py",
            "tests/mnemopi/test_recall.py",
            "tests/mnemopi/test_rerank.py",
            "tests/test_golden.py",
        ),
    ),
}


def mutants(part: Part) -> Iterator[Mutant]:
    """Yield the module's mutants, each with its whole source."""
    path = PACKAGE / part.module
    source = path.read_text(encoding="utf-8")
    count = sum(1 for _ in part.chosen(ast.parse(source)))
    for index in range(count):
        tree = ast.parse(source)
        node = list(part.chosen(tree))[index]
        was, node.value = node.value, changed(node.value)  # type: ignore[assignment]
        yield Mutant(part.module, node.lineno, was, ast.unparse(tree))


def killed(mutant: Mutant, tests: tuple[str, ...], overlay: Path) -> bool:
    """Run the tests against the overlay with this mutant in it; say whether one failed."""
    place = overlay / "ipy_memory" / mutant.module
    kept = place.read_bytes()
    place.write_text(mutant.source, encoding="utf-8")
    try:
        child = os.fork()
        if not child:
            status = 99
            with contextlib.suppress(Exception):
                status = _run(tests, overlay)
            os._exit(status)
        _, status = os.waitpid(child, 0)
    finally:
        place.write_bytes(kept)
    ended = os.waitstatus_to_exitcode(status)
    if ended not in _TOLD:
        sys.exit(f"the tests did not run to an end (exit {ended})")
    return ended != 0


def _run(tests: tuple[str, ...], overlay: Path) -> int:
    import pytest

    sys.path.insert(0, str(overlay))
    importlib.import_module("ipy_memory")  # before pytest puts the project's own folder in front
    os.environ["PYTHONPATH"] = str(overlay)
    sys.dont_write_bytecode = True
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        there = [test for test in tests if (ROOT / test).exists()]
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", str(ROOT), *there]
        return int(pytest.main(arguments))


def main(names: list[str]) -> int:
    """Try every mutant of the named parts."""
    for heavy in ("IPython", "pandas", "pytest"):
        importlib.import_module(heavy)  # once here rather than in every fork
    if wrong := [name for name in names if name not in PARTS]:
        sys.exit(f"no such part: {', '.join(wrong)}; there are {', '.join(PARTS)}")
    lived = total = 0
    with tempfile.TemporaryDirectory(prefix="ipy-memory-mutants-") as folder:
        overlay = Path(folder)
        shutil.copytree(PACKAGE, overlay / "ipy_memory", ignore=shutil.ignore_patterns("__pycache__"))
        for name in names or PARTS:
            module = PARTS[name].module
            if killed(Mutant(module, 0, None, (PACKAGE / module).read_text("utf-8")), PARTS[name].tests, overlay):
                sys.exit(f"the tests of {name} fail without any mutation")
            for mutant in mutants(PARTS[name]):
                dead = killed(mutant, PARTS[name].tests, overlay)
                total, lived = total + 1, lived + (not dead)
                shown = repr(mutant.was)
                shown = shown if len(shown) <= 70 else shown[:70] + "…"
                print(f"{'killed' if dead else 'LIVED '} {mutant.module}:{mutant.line} {shown}", flush=True)
    print(f"{total - lived}/{total} mutants killed")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
