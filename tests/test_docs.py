"""What the pages and docstrings show is true: examples run, links lead somewhere, lists are whole."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ipy_memory
from docs import magics
from ipy_memory import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]*)(?:#([^)]*))?\)")


def _blocks(path: Path, language: str) -> Iterator[str]:
    for found in _BLOCK.finditer(path.read_text(encoding="utf-8")):
        if found[1] == language:
            yield found[2]


def _modules() -> list[str]:
    found = pkgutil.walk_packages(ipy_memory.__path__, "ipy_memory.")
    return ["ipy_memory", *(module.name for module in found if not module.name.endswith("__main__"))]


def _run(test: doctest.DocTest) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    results = runner.run(test, out=said.append)
    assert results.failed == 0, "".join(said)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_api_page_runs() -> None:
    text = "\n".join(_blocks(DOCS / "api.md", "pycon"))
    _run(doctest.DocTestParser().get_doctest(text, {}, "docs/api.md", None, 0))


def test_every_public_name_has_an_example() -> None:
    names = [name for name in dir(MemorySession) if not name.startswith("_")]
    public = {*ipy_memory.__all__, *(f"MemorySession.{name}" for name in names)}
    sections = re.split(r"^### `(.*)`$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    with_example = {name for name, body in zip(sections[::2], sections[1::2], strict=True) if ">>>" in body}
    assert with_example == public


@pytest.mark.parametrize("name", _modules())
def test_docstrings_are_there_and_their_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    for owner, value in _public(module):
        assert inspect.getdoc(value), f"{owner} has no docstring"
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        _run(test)


def _public(module: object) -> Iterator[tuple[str, object]]:
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:  # type: ignore[attr-defined]
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            yield name, value
        if inspect.isclass(value):
            for inner, member in vars(value).items():
                named = inspect.isfunction(member) and not member.__name__.startswith("_")
                if not inner.startswith("_") and (named or isinstance(member, property)):
                    yield f"{name}.{inner}", member


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"`[^`\n]+`", "", _BLOCK.sub("", path.read_text(encoding="utf-8")))
    for target, anchor in _LINK.findall(prose):
        aim = (path.parent / target).resolve() if target else path
        assert aim.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", aim.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_compatibility_page_lists_every_recorded_difference() -> None:
    recorded = json.loads((ROOT / "tests/golden/differences.json").read_text(encoding="utf-8"))["differences"]
    rows = [f"| `{row['file']}` | {row['case']} | `{row['path']}` | {row['why']} |" for row in recorded]
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in page if re.match(r"\| `\w+\.json` ", line)] == rows


def _differences() -> list[str]:
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8")
    section = page.split("## In use\n")[1].split("\n## ")[0]
    paragraphs = [part for part in section.split("\n\n") if part and not part.startswith("### ")]
    return [" ".join(part.split()) for part in paragraphs[1:]]  # the first one says how to read them


@pytest.mark.parametrize("entry", _differences(), ids=lambda entry: entry.split("**")[1])
def test_a_difference_says_what_why_and_whether_a_text_changes_and_names_its_tests(entry: str) -> None:
    form = r"\*\*[^*]+\.\*\* (.+) \*Why:\* (.+)\. \*Text:\* (?:changed|unchanged)\b(.*)\. \*Test:\* (.+)"
    matched = re.fullmatch(form, entry)
    assert matched, entry
    assert _named_tests(matched[4])


def test_the_recorded_differences_name_the_test_that_holds_them() -> None:
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8")
    assert _named_tests(page.split("## In the recorded cases\n")[1].split("| file |")[0])


def _named_tests(text: str) -> list[str]:
    """Return the test functions that a text links to; each is there, in the module that the link leads to."""
    named = re.findall(r"\[`(\w+)::(\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", text)
    assert len(named) == text.count("::"), text
    for module, name, path in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert Path(path).name == f"test_{module}.py"
        assert f"test_{name}" in there, f"{path} has no test_{name}"
    return [name for _, name, _ in named]


def test_the_page_of_the_magics_is_up_to_date() -> None:
    assert magics.PAGE.read_text(encoding="utf-8") == magics.rendered(), "run: python -m docs.magics"


def test_the_table_of_the_shell_page_is_up_to_date() -> None:
    page = magics.SHELL_PAGE.read_text(encoding="utf-8")
    assert page == magics.with_shell_table(page), "run: python -m docs.magics"


@pytest.mark.parametrize("block", list(_blocks(DOCS / "shell.md", "console")), ids=lambda block: block.splitlines()[0])
def test_the_examples_of_the_shell_page_run(block: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ipy-memory"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ipy_memory "$@"\n')
    program.chmod(0o755)
    env = {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "IPY_MEMORY_DEMO": str(tmp_path / "demo"),
    }
    shown = ""
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", f"exec 2>&1\n{command}"],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=120,
        )
        shown += f"$ {command}\n{done.stdout.decode()}"
    assert shown == block


def test_the_readme_has_two_commands_for_a_fresh_machine() -> None:
    commands = [line for block in _blocks(ROOT / "README.md", "bash") for line in block.splitlines()]
    assert [line for line in commands if "venv" in line] == commands[:2]
    assert commands[0].endswith("ipy-memory demo")
    assert commands[1].endswith("python -m pytest")


def test_the_pipeline_runs_the_readme_test_command() -> None:
    assert "grep -E '^python3 -m venv .* -m pytest$' README.md" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_readme_examples_of_python_run() -> None:
    text = "\n".join(_blocks(ROOT / "README.md", "pycon"))
    assert text
    _run(doctest.DocTestParser().get_doctest(text, {}, "README.md", None, 0))


def test_the_readme_cells_run(tmp_path: Path) -> None:
    cells = list(_blocks(ROOT / "README.md", "python"))
    assert cells
    script = tmp_path / "cells.ipy"
    script.write_text("\n".join(["from ipy_memory import demo; demo.start()", *cells, "print('the end')"]))
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=nocolor", str(script)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "the end", done.stdout


def test_the_backend_of_the_page_is_a_backend(tmp_path: Path) -> None:
    from ipy_memory.backends import registry

    (source,) = _blocks(DOCS / "add-a-backend.md", "python")
    assert len(source.splitlines()) <= 120
    exec(source, {"__name__": "example"})
    try:
        with open_session("list", cwd=tmp_path, agent_dir=tmp_path, env={}) as session:
            session.retain(["Deploys go to staging.", "The API speaks JSON."])
            assert session.recall("DEPLOYS staging").text.endswith("- Deploys go to staging. (id: 0)")
            assert session.reflect("json").text == "The API speaks JSON."
            done = session.change("update", "1", content="The API speaks YAML.")
            assert session.show("1").endswith("The API speaks YAML.")
            session.undo(done)
            assert session.memory("1").content == "The API speaks JSON."
            assert session.scoping == "this process"
    finally:
        registry.unregister("list")


def test_no_example_imports_what_is_not_public() -> None:
    for path in PAGES:
        for block in _blocks(path, "pycon"):
            code = "\n".join(line[4:] for line in block.splitlines() if line[:4] in {">>> ", "... "})
            names = [node.module or "" for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
            assert not [name for name in names if "._" in name]


def test_the_reference_is_built_from_modules_that_exist() -> None:
    tree = ast.parse((ROOT / "docs" / "build.py").read_text(encoding="utf-8"))
    (listed,) = (node.value for node in tree.body if ast.unparse(node).startswith("MODULES ="))
    names = ast.literal_eval(listed)  # type: ignore[arg-type]
    assert len(names) > 5
    for name in names[1:]:
        assert find_spec(f"ipy_memory.{name}") is not None, name
