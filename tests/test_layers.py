"""The house: each floor imports only the floors below it, and heavy guests stay in their rooms."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parent.parent / "ipy_memory"

FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "clock", "process", "sqlite_files"),
    ("jscompat", "own_files", "paths"),
    ("http", "redact", "model", "conversation"),
    ("frames", "credentials", "text"),
    ("settings",),
    ("scoping", "ranking"),
    ("audit",),
    ("backends.trace", "backends.filters"),
    ("backends.base",),
    ("backends.mnemopi.config", "backends.mnemopi.legacy"),
    ("backends.mnemopi.db",),
    ("backends.mnemopi.embeddings",),
    ("backends.mnemopi.store",),
    ("backends.mnemopi.recall", "backends.mnemopi.consolidation"),
    ("backends.mnemopi.admin", "backends.mnemopi.retention"),
    ("backends.mnemopi.pool",),
    ("backends.mnemopi.bank_files",),
    ("backends.mnemopi.by_id",),
    ("backends.mnemopi.backend",),
    ("backends.mnemopi.session", "backends.hindsight"),
    ("backends.registry",),
    ("tools",),
    ("session",),
    ("explore",),
    ("commands",),
    ("notebook",),
    ("replay",),
    ("demo",),
    ("shell",),
    ("__main__",),
)
"""From the ground up. Rooms of one floor do not import each other, the engine's and the service's least of all."""

ROOMS = tuple(sorted((room for floor in FLOORS for room in floor), key=len, reverse=True))

LAZY_UPWARD = {
    ("model", "frames"),
    ("session", "explore"),
}
"""Doors that open on first use only: ``ToolResult.frame()``, and what a session shows of itself."""

MOST_MODULES = 22
"""In one folder: more cannot be told apart at a look."""

GUESTS = {
    "IPython": {"notebook", "demo"},
    "ipywidgets": {"notebook"},
    "anywidget": {"notebook"},
    "matplotlib": {"notebook"},
    "pandas": {"frames", "notebook"},
    "httpx": {"http"},
}
"""Where a heavy library may be met."""


def _room(name: str) -> str | None:
    """Return the room of a module, or of what is imported from one; the name is without the package's."""
    return next((room for room in ROOMS if name == room or name.startswith(f"{room}.")), None)


def _modules() -> Iterator[tuple[str | None, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield _room(_name(path).removeprefix("ipy_memory.")), path


def _imports(path: Path, *, run: bool = False) -> Iterator[str]:
    """Yield what a module imports; with ``run`` only what is imported when the program runs, not for its types."""
    package = ("ipy_memory", *path.relative_to(PACKAGE).parts[:-1])
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if run and id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
            if not all(_is_module(name) for name in names):
                yield module  # something that the package itself holds
            yield from names


def _is_module(name: str) -> bool:
    place = PACKAGE.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or place.is_dir()


def _name(path: Path) -> str:
    return ".".join(("ipy_memory", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _floor(room: str) -> int:
    return next(level for level, rooms in enumerate(FLOORS) if room in rooms)


def test_every_module_has_a_floor() -> None:
    without = {_name(path) for room, path in _modules() if room is None}
    assert without == {"ipy_memory", "ipy_memory.backends", "ipy_memory.backends.mnemopi"}


def test_no_arrow_points_upward() -> None:
    wrong = set()
    for room, path in _modules():
        for name in _imports(path):
            other = _room(name.removeprefix("ipy_memory.")) if name.startswith("ipy_memory.") else None
            if room is None or other in {None, room} or (room, other) in LAZY_UPWARD:
                continue
            if _floor(str(other)) >= _floor(room):
                wrong.add(f"{path.relative_to(PACKAGE)} -> {other}")
    assert sorted(wrong) == []


def test_a_folder_can_be_taken_in_at_a_look() -> None:
    folders = [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())]
    sizes = {folder.name: len([path for path in folder.glob("*.py") if path.stem != "__init__"]) for folder in folders}
    assert {name: size for name, size in sizes.items() if size > MOST_MODULES} == {}
    engine = [path for path in (PACKAGE / "backends" / "mnemopi").iterdir() if not path.stem.startswith("__")]
    assert len(engine) <= 14
    assert len([path for path in engine if path.is_dir()]) == 6


def test_no_modules_import_each_other_in_a_circle() -> None:
    named = {_name(path): path for room, path in _modules() if room is not None}
    imported = {
        name: {other for other in _imports(path, run=True) if other in named and other != name}
        for name, path in named.items()
    }
    imported["ipy_memory.model"].remove("ipy_memory.frames.build")  # a door that opens on first use
    assert set(TopologicalSorter(imported).static_order()) == set(named)


@pytest.mark.parametrize("engine", ["mnemopi", "hindsight"])
def test_the_page_names_every_module_once(engine: str) -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| `{engine}/` \|.*\n\| ---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    modules = [path.stem for path in (PACKAGE / "backends" / engine).rglob("*.py") if path.stem != "__init__"]
    named = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    assert sorted(named) == sorted(modules)


@pytest.mark.parametrize("guest", sorted(GUESTS))
def test_a_heavy_library_is_met_only_in_its_rooms(guest: str) -> None:
    rooms = {room for room, path in _modules() for name in _imports(path, run=True) if name.split(".")[0] == guest}
    assert rooms <= GUESTS[guest]
