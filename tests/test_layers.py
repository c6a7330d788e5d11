"""The house: each floor imports only the floors below it, and heavy guests stay in their rooms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "ipy_memory"

FLOORS: tuple[tuple[str, ...], ...] = (
    ("letters",),
    ("js", "errors", "clock", "transport", "process", "route", "sqlite_files"),
    ("jsdate_forms", "http_failure"),
    ("jsdate", "collation", "redact", "model", "http", "paths", "own_files", "escape", "tabular"),
    ("frame_files",),
    ("safe_styles", "credentials"),
    ("safe_frames", "privacy"),
    ("frames", "text", "turns", "settings_table"),
    ("settings_file", "trust"),
    ("settings_sources",),
    ("settings", "bystander"),
    ("scoping", "ranking"),
    ("mnemopi", "hindsight"),
    ("backends",),
    ("tools",),
    ("session_turns",),
    ("session",),
    ("inspect",),
    ("commands",),
    ("notebook",),
    ("recorded",),
    ("demo",),
    ("shell",),
    ("__main__",),
)
"""From the ground up. Rooms of one floor do not import each other, the engine's and the service's least of all."""

LAZY_UPWARD = {
    ("model", "frames"),
    ("session", "inspect"),
    ("__init__", "session"),
    ("__init__", "safe_frames"),
    ("__init__", "notebook"),
}
"""Doors that open on first use only: ``ToolResult.frame()``, what a session shows of itself, and the front door."""

GUESTS = {
    "IPython": {"notebook", "demo"},
    "ipywidgets": {"notebook"},
    "anywidget": {"notebook"},
    "matplotlib": {"notebook"},
    "pandas": {"frame_files", "frames", "safe_frames", "safe_styles", "notebook"},
    "httpx": {"http", "http_failure", "route", "transport"},
}
"""Where a heavy library may be met."""


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path


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
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _name(path: Path) -> str:
    return ".".join(("ipy_memory", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _floor(room: str) -> int | None:
    return next((level for level, rooms in enumerate(FLOORS) if room in rooms), None)


def test_every_module_has_a_floor() -> None:
    assert {room for room, _ in _modules() if _floor(room) is None} == {"__init__"}


def test_no_arrow_points_upward() -> None:
    wrong = set()
    for room, path in _modules():
        for name in _imports(path):
            parts = name.split(".")
            if parts[0] != "ipy_memory" or len(parts) < 2 or parts[1] == room:
                continue
            level, other = _floor(room), _floor(parts[1])
            if level is None or other is None or (room, parts[1]) in LAZY_UPWARD:
                continue
            if other >= level:
                wrong.add(f"{path.relative_to(PACKAGE)} -> {parts[1]}")
    assert sorted(wrong) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    named = {_name(path): path for room, path in _modules() if room != "__init__"}
    imported = {
        name: {other for other in _imports(path, run=True) if other in named and other != name}
        for name, path in named.items()
    }
    imported["ipy_memory.model"].remove("ipy_memory.frames")  # a door that opens on first use
    assert set(TopologicalSorter(imported).static_order()) == set(named)


@pytest.mark.parametrize("room", ["mnemopi", "hindsight"])
def test_the_page_names_every_module_once(room: str) -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| `{room}/` \| modules.*\n\| ---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    modules = [path.stem for path in (PACKAGE / room).glob("*.py") if path.stem != "__init__"]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(modules)


@pytest.mark.parametrize("guest", sorted(GUESTS))
def test_a_heavy_library_is_met_only_in_its_rooms(guest: str) -> None:
    rooms = {room for room, path in _modules() for name in _imports(path, run=True) if name.split(".")[0] == guest}
    assert rooms <= GUESTS[guest]
