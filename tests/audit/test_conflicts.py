"""Statements that cannot both hold, and those that can."""

from __future__ import annotations

import pytest

from ipy_memory.audit.conflicts import conflicts
from tests.audit.notes import found, memory

CONFLICTING = """
The staging port is 8080|Staging port is now 9090
The API listens on port 8080|The API runs on port 9090
The owner of billing is Dana|Billing's owner is Erik
Dana owns billing|Erik owns billing
Billing is owned by Dana|Billing is owned by Erik Olsen
The cache is enabled|The cache is not enabled
We use Redis for sessions|We don't use Redis for sessions
The cache is enabled in production|The cache is disabled in production
The project uses npm for packages|The project uses pnpm, not npm, for packages
CI runs on Jenkins|We moved CI from Jenkins to GitHub Actions
The frontend is written in Vue|We replaced Vue with React in the frontend
The deploy target is fly.io|The deploy target is now Render
Standup starts at 09:00|Standup starts at 10:30
The upload limit is 5 MB|The upload limit is 20 MB
The project needs Python version 3.11|The project needs Python version 3.12
Auth tokens expire after 15 minutes|Auth tokens expire after 60 minutes
The web client targets Node 18|The web client targets Node 20
Nina is the on-call lead for payments|Omar is the on-call lead for payments
The package manager is npm|We use pnpm now, not npm, as the package manager
Package manager: npm|Package manager: pnpm
Alice lives in Berlin|Alice lives in Paris
The retention period is 30 days|The retention period is 90 days
Der Port von Staging ist 8080|Der Port von Staging ist jetzt 9090
Der Cache ist aktiviert|Der Cache ist nicht aktiviert
Das Team nutzt Jenkins für CI|Das Team nutzt GitHub Actions statt Jenkins für CI
Le port de staging est 8080|Le port de staging est 9090
Le cache est activé|Le cache n'est pas activé
La réunion commence à 9h|La réunion commence à 10h
El puerto de staging es 8080|El puerto de staging es 9090
El equipo usa npm para paquetes|El equipo no usa npm para paquetes
Il responsabile di billing è Dana|Il responsabile di billing è Erik
A porta do staging é 8080|A porta do staging é 9090
De eigenaar van billing is Dana|De eigenaar van billing is Erik
测试环境的端口是8080|测试环境的端口现在是9090
缓存已启用|缓存未启用
ステージングのポートは8080です|ステージングのポートは9090です
"""
COMPATIBLE = """
The API uses Redis|The API uses Postgres
The worker depends on redis|The worker depends on kafka
The job reads from s3|The job reads from gcs
The app logs to stdout|The app logs to syslog
Ticket 123 is closed|Ticket 124 is closed
Build 4512 is green|Build 4513 is green
The build on 2024-03-01 was green|The build on 2024-03-02 was green
Deployed api 1.2 on 2024-03-01|Deployed api 1.3 on 2024-03-05
Bob is a developer|Bob is a father
The API is documented|The API is tested
Dana fixed the login bug|Dana fixed the export bug
The staging port is 8080|The production port is 9090
Standup starts at 09:00|Retro starts at 10:00
The source is wiki|The source is slack
The session id is abc123|The session id is def456
Is the port 8080?|Is the port 9090?
The error is in parser.py|The error is in lexer.py
Dana works on Ticket 14|Dana works on Ticket 15
The release ran for 15 minutes|The release ran for 20 minutes
Dana likes tea|Dana likes coffee
Tool foo not found in the list|The list of tools has foo
Der Dienst liest von S3|Der Dienst liest von GCS
John: Wow, that is great|John: Yeah, that is great
"""


def _pairs(lines: str) -> list[list[str]]:
    return [line.split("|") for line in lines.strip().splitlines()]


@pytest.mark.parametrize(("older", "newer"), _pairs(CONFLICTING))
def test_the_newer_one_is_proposed_to_win(older: str, newer: str) -> None:
    (one,) = found(conflicts, older, "Something else entirely", newer)
    assert (one.id, one.other, one.action, one.reversible) == ("m0", ("m2",), "invalidate", True)
    (one,) = found(conflicts, memory(5, newer), memory(2, older))
    assert (one.id, one.other) == ("m2", ("m5",))


@pytest.mark.parametrize(("one", "other"), _pairs(COMPATIBLE))
def test_statements_that_can_both_hold(one: str, other: str) -> None:
    assert found(conflicts, one, other) == []


def test_the_latest_of_several_values_wins() -> None:
    texts = [f"The staging port is {port}" for port in (8080, 8081, 8082)]
    assert [(one.id, one.other) for one in found(conflicts, *texts)] == [("m0", ("m2",)), ("m1", ("m2",))]


def test_a_series_of_measurements_is_no_conflict() -> None:
    assert found(conflicts, *[f"The coverage is {number}%" for number in range(70, 90)]) == []


def test_the_evidence_names_the_values_but_no_secret() -> None:
    (one,) = found(conflicts, "The staging port is 8080", "The staging port is 9090")
    assert one.evidence == '"8080" here, "9090" in the newer memory'
    (one,) = found(conflicts, "The database password is hunter22x", "The database password is rabbit77y")
    assert "hunter" not in one.evidence
    assert "rabbit" not in one.evidence


def test_what_was_replaced_conflicts_with_nothing() -> None:
    ended = memory(0, "The staging port is 8080", state="superseded")
    assert found(conflicts, ended, memory(1, "The staging port is 9090")) == []
