"""Break each exact sentence, each default and each scoring constant, one at a time: some test must fail each time.

``python -m tests.mutation [PART…]`` (parts: texts, blocks, tools, defaults, scoring; default all) prints a line per
mutant and ends with a count; it exits with 1 if a mutant lived. Each mutant is a copy of the package in which one
value of one module differs. The part's own tests run against the copy, in a forked process, until one fails; only if
none does, all tests that could know better have their say.
"""

from __future__ import annotations

import ast
import compileall
import contextlib
import importlib
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ipy_memory"


@dataclass(frozen=True)
class Part:
    """The values of one module that count, and the tests that hold them, the most likely ones first."""

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


_EQUAL_WAYS = {"_ENUMERATED_VARIANT"}
"""Constants where one way to compute gives over to a faster one with the same result: no value of them is wrong."""


def numbers(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the numbers of every constant at the module's top, and every fraction (0.6, not 0 or 1.0) below it."""
    for statement in tree.body:
        is_named = isinstance(statement, ast.Assign | ast.AnnAssign)
        if is_named and ast.unparse(statement).split()[0] in _EQUAL_WAYS:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and (is_named or node.value % 1):
                yield node


def changed(value: object) -> object:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.37 + 0.11 if isinstance(value, float) else value + max(1, abs(value) // 3)
    return f"{value}\u00a4"


def golden(*names: str) -> tuple[str, ...]:
    """Return the tests that play these recorded files."""
    return tuple(f"tests/test_golden.py::test_recorded_cases_are_equal[{name}.json]" for name in names)


PARTS = {
    "texts": Part("text.py", sentences, ("tests/test_text.py", *golden("tools", "backend", "retain"))),
    "blocks": Part("backends/hindsight/prompts.py", sentences, ("tests/backends/hindsight/test_prompts.py",)),
    "tools": Part("tools.py", sentences, ("tests/test_tools.py", *golden("tools"))),
    "defaults": Part(
        "settings/table.py",
        defaults,
        ("tests/settings/test_resolve.py", "tests/settings/test_yaml_file.py", *golden("settings_defaults")),
    ),
    "scoring": Part(
        "backends/mnemopi/recall/scoring.py",
        numbers,
        (
            "tests/backends/mnemopi/recall/test_scoring.py",
            *golden("recall/timestamps", "recall/dense-mixed", "recall/working-small"),
            "tests/backends/mnemopi/recall/test_candidates.py",
            "tests/backends/mnemopi/recall/test_single_bank.py",
        ),
    ),
}
"""Each names first what kills fastest."""
WIDER = (
    "tests/test_text.py",
    "tests/test_tools.py",
    "tests/settings/test_resolve.py",
    "tests/test_golden.py",
    "tests/backends/mnemopi",
    "tests/backends/hindsight",
    "tests/session/test_memory_session.py",
    "tests/session/test_turns.py",
    "tests/session/test_vectors.py",
    "tests/explore",
    "tests/notebook",
)
_TOLD = (0, 1, 2)
"""Exit statuses of pytest that say something: all passed, some failed, a module could not be imported."""
_HEAVY = ("IPython", "httpx", "hypothesis", "nbval.plugin", "pandas", "pytest")
"""Imported once rather than in every fork."""


def mutants(part: Part) -> Iterator[Mutant]:
    """Yield the module's mutants in the order of their lines, each with its whole source."""
    source = (PACKAGE / part.module).read_text(encoding="utf-8")
    for index in range(sum(1 for _ in part.chosen(ast.parse(source)))):
        tree = ast.parse(source)
        node = sorted(part.chosen(tree), key=lambda node: (node.lineno, node.col_offset))[index]
        was, node.value = node.value, changed(node.value)  # type: ignore[assignment]
        yield Mutant(part.module, node.lineno, was, ast.unparse(tree))


def fails(tests: tuple[str, ...], overlay: Path) -> bool:
    """Run tests against the overlay in a forked process; say whether one failed."""
    child = os.fork()
    if not child:
        status = 99
        with contextlib.suppress(Exception):
            status = _run(tests, overlay)
        os._exit(status)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    if ended not in _TOLD:
        sys.exit(f"the tests did not run to an end (exit {ended})")
    return ended != 0


def _run(tests: tuple[str, ...], overlay: Path) -> int:
    import pytest

    sys.path.insert(0, str(overlay))
    importlib.import_module("ipy_memory")  # before pytest puts the project's own folder in front
    os.environ |= {"PYTHONPATH": str(overlay), "CI": "true"}  # the examples are the same for every mutant
    sys.dont_write_bytecode = True
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        quick = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:randomly"]
        return int(pytest.main([*quick, "--rootdir", str(ROOT), *tests]))


@cache
def check_unchanged(tests: tuple[str, ...], overlay: Path) -> None:
    """Refuse tests that fail without any mutation."""
    if fails(tests, overlay):
        sys.exit(f"fails without any mutation: one of {', '.join(tests)}")


def killed(mutant: Mutant, tests: tuple[str, ...], overlay: Path) -> bool:
    """Put a mutant into the overlay and say whether a test fails: one of the part's, or one of all the others."""
    place = overlay / "ipy_memory" / mutant.module
    kept = place.read_bytes()
    for some in (tests, WIDER):
        check_unchanged(some, overlay)
        place.write_text(mutant.source, encoding="utf-8")
        try:
            if fails(some, overlay):
                return True
        finally:
            place.write_bytes(kept)
    return False


def main(names: list[str]) -> int:
    """Try every mutant of the named parts."""
    if wrong := [name for name in names if name not in PARTS]:
        sys.exit(f"no such part: {', '.join(wrong)}; there are {', '.join(PARTS)}")
    for heavy in _HEAVY:
        importlib.import_module(heavy)
    lived = total = 0
    with tempfile.TemporaryDirectory(prefix="ipy-memory-mutants-") as folder:
        overlay = Path(folder)
        shutil.copytree(PACKAGE, overlay / "ipy_memory", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(folder, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        for part in map(PARTS.__getitem__, names or PARTS):
            for mutant in mutants(part):
                dead = killed(mutant, part.tests, overlay)
                total, lived = total + 1, lived + (not dead)
                shown = repr(mutant.was)
                shown = shown if len(shown) <= 70 else shown[:70] + "…"
                print(f"{'killed' if dead else 'LIVED '} {mutant.module}:{mutant.line} {shown}", flush=True)
    print(f"{total - lived}/{total} mutants killed")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
