"""The versions of the agent and of a server, beside those that were tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipy_memory import demo
from ipy_memory.explore.health import look_over
from ipy_memory.explore.status import TESTED_AGENT, TESTED_SERVER, agent_package, compared, status_rows, version_rows
from ipy_memory.session import open_session
from tests.interop.engine import VERSION

DOCS = Path(__file__).resolve().parents[2] / "docs"


def installed(node_modules: Path, version: object = TESTED_AGENT, name: str = "@oh-my-pi/pi-coding-agent") -> Path:
    """Make a package as a package manager leaves it; return its program."""
    folder = node_modules / "@oh-my-pi" / "pi-coding-agent"
    (folder / "dist").mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))
    program = folder / "dist" / "cli.js"
    program.write_text("#!/usr/bin/env bun\n")
    program.chmod(0o755)
    return program


def test_the_agent_is_found_through_its_program_on_the_path(tmp_path: Path) -> None:
    program = installed(tmp_path / "lib" / "node_modules", "18.3.0")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "omp").symlink_to(program)
    found = agent_package({"PATH": f"/nowhere:{tmp_path / 'bin'}"})
    assert found == ("18.3.0", program.parents[1] / "package.json")


def test_the_agent_is_found_beside_a_program_that_is_no_link(tmp_path: Path) -> None:
    installed(tmp_path / "lib" / "node_modules", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "omp").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "omp").chmod(0o755)
    assert (agent_package({"PATH": str(tmp_path / "bin")}) or ("",))[0] == "17.0.1"


@pytest.mark.parametrize("variable", ["HOME", "BUN_INSTALL"])
def test_the_agent_is_found_where_bun_installs_it(tmp_path: Path, variable: str) -> None:
    bun = tmp_path / ".bun" if variable == "HOME" else tmp_path
    installed(bun / "install" / "global" / "node_modules")
    assert (agent_package({variable: str(tmp_path)}) or ("",))[0] == TESTED_AGENT


@pytest.mark.parametrize(
    ("version", "name"),
    [("18.2.3\x1b[2J", "@oh-my-pi/pi-coding-agent"), (18, "@oh-my-pi/pi-coding-agent"), ("18.2.3", "another")],
)
def test_what_is_no_version_of_the_agent_is_not_shown(tmp_path: Path, version: object, name: str) -> None:
    installed(tmp_path / "install" / "global" / "node_modules", version, name)
    assert agent_package({"BUN_INSTALL": str(tmp_path)}) is None


def test_an_environment_without_an_agent_has_none(tmp_path: Path) -> None:
    assert agent_package({}) is None
    assert agent_package({"HOME": str(tmp_path), "PATH": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("18.2.3", "tested"),
        ("18.2.10", "newer than the tested 18.2.3"),
        ("18.10.0", "newer than the tested 18.2.3"),
        ("9.9.9", "older than the tested 18.2.3"),
        ("18.2.3-beta.1", "older than the tested 18.2.3"),
        ("18.2", "older than the tested 18.2.3"),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, says: str) -> None:
    assert compared(version, "18.2.3") == says


def test_status_and_doctor_name_the_agent(tmp_path: Path) -> None:
    bun = tmp_path / "bun"
    installed(bun / "install" / "global" / "node_modules", "99.0.0")
    home = demo.make(tmp_path / "home")
    world = home.world()
    world["env"] = {**world["env"], "BUN_INSTALL": str(bun)}
    with open_session(cwd=demo.PROJECT, agent_dir=home.agent_dir, **world) as session:
        says = f"oh-my-pi 99.0.0 (newer than the tested {TESTED_AGENT})"
        (row,) = (row for row in status_rows(session) if row.name == "agent")
        assert row.value == says
        assert f"agent: {says}." in look_over(session).notes


def test_a_server_that_does_not_answer_is_unknown(tmp_path: Path) -> None:
    settings = {"hindsight.apiUrl": "http://127.0.0.1:9"}
    with open_session("hindsight", cwd=tmp_path, agent_dir=tmp_path, env={}, settings=settings) as session:
        (row,) = version_rows(session)
    assert row.name == "server version"
    assert row.value.startswith("unknown: ")


def test_the_tested_versions_are_those_of_the_tests_and_of_the_page() -> None:
    assert TESTED_AGENT == VERSION
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8")
    assert f"oh-my-pi {TESTED_AGENT}" in page
    assert f"| Hindsight server | {TESTED_SERVER}," in page
