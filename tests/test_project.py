"""The project's own files: one version, a dated changelog, and workflows that run what is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import ipy_memory

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_the_version_is_written_in_one_place() -> None:
    assert ipy_memory.__version__ == PROJECT["version"]
    written = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "ipy_memory").rglob("*.py")
        if PROJECT["version"] in path.read_text(encoding="utf-8")
    ]
    assert written == []


def test_loading_the_package_reads_no_metadata() -> None:
    script = "import ipy_memory, sys; assert 'importlib.metadata' not in sys.modules; print(ipy_memory.__version__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{PROJECT['version']}\n"


def test_the_changelog_has_unreleased_changes_and_a_date_for_each_release() -> None:
    headings = re.findall(r"^## \[(.*?)\](.*)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert dict(headings)[PROJECT["version"]]
    for version, date in headings[1:]:
        assert re.fullmatch(r" - \d{4}-\d\d-\d\d", date), version
        assert f"\n[{version}]: https://" in CHANGELOG
    assert "### Upgrade notes" in CHANGELOG.partition(f"## [{PROJECT['version']}]")[0]


def test_the_project_names_its_addresses() -> None:
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(PROJECT["urls"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_reads_only_and_ends(path: Path) -> None:
    found: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["permissions"] == {"contents": "read"}
    for job in found["jobs"].values():
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)


def test_the_workflows_do_what_they_are_for() -> None:
    steps = {path.stem: path.read_text(encoding="utf-8") for path in WORKFLOWS}
    assert set(steps) == {"ci", "release", "smoke", "weekly"}
    assert "bash .ci/run" in steps["ci"]
    assert "macos-latest, windows-latest" in steps["smoke"]
    assert "--upgrade pandas ipywidgets" in steps["weekly"]
    publish = yaml.safe_load(steps["release"])["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"


@pytest.mark.parametrize("path", [one for one in TEMPLATES if one.stem != "config"], ids=lambda path: path.stem)
def test_an_issue_template_has_a_name_and_questions(path: Path) -> None:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["name"]
    assert found["description"]
    assert any(part["type"] == "textarea" for part in found["body"])
