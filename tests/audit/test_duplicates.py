"""Memories that say the same, and those that differ in what matters."""

from __future__ import annotations

import pytest

from ipy_memory.audit.duplicates import duplicates
from tests.audit.notes import found, memory

SAME = [
    ("The deploy script runs on Fridays.", "deploy scripts run on friday"),
    ("When the build fails, rerun it.", "Rerun it when the build fails"),
    ("The owner of billing is Dana", "Billing's owner is Dana"),
    ("In staging, the API uses port 8080", "The API uses port 8080 in staging"),
    ("Tests run nightly and deploys run weekly", "Deploys run weekly and tests run nightly"),
    ("Use pnpm", "use pnpm."),
    ("We don't use Redis", "we do not use redis"),
    ("Der Server l\u00e4uft in Berlin.", "server l\u00e4uft in Berlin"),
    ("Am Montag deployt das Team", "Das Team deployt am Montag"),
    ("Die B\u00fccher liegen im B\u00fcro", "b\u00fccher liegen im b\u00fcro!"),
    ("Le serveur est \u00e0 Paris", "les serveurs sont \u00e0 Paris"),
    ("El equipo usa los servidores nuevos", "equipo usa servidores nuevos"),
    (
        "\u90e8\u7f72\u811a\u672c\u6bcf\u5468\u4e94\u8fd0\u884c\uff0c\u65e5\u5fd7\u4fdd\u5b58\u4e09\u5341\u5929\u3002",
        "\u65e5\u5fd7\u4fdd\u5b58\u4e09\u5341\u5929\uff0c\u90e8\u7f72\u811a\u672c\u6bcf\u5468\u4e94\u8fd0\u884c",
    ),
]
DIFFERENT = [
    ("Alice reports to Bob", "Bob reports to Alice"),
    ("The client calls the server", "The server calls the client"),
    ("Copy data from staging to prod", "Copy data from prod to staging"),
    ("deploy before the tests", "deploy after the tests"),
    ("the cache is enabled", "the cache is not enabled"),
    ("it listens on port 8080", "it listens on port 8081"),
    ("it needs version 1.2", "it needs version 2.1"),
    ("begun on 2024-01-02", "begun on 2024-02-01"),
    ("10.0.0.1 is down", "10.0.1.0 is down"),
    ("Ticket ABC-12 is done", "Ticket ABC-21 is done"),
    ("calls getUser on start", "calls getUsers on start"),
    ("C is fast", "C++ is fast"),
    ("the rate is 5%", "the rate is 5"),
    ("\u90e8\u7f72\u5728\u5468\u4e94\u8fd0\u884c", "\u90e8\u7f72\u5728\u5468\u56db\u8fd0\u884c"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_texts_that_say_the_same(one: str, other: str) -> None:
    (cluster,) = found(duplicates, one, "Something else entirely", other)
    assert (cluster.id, cluster.other, cluster.action) == ("m0", ("m2",), "merge-into")


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_differ_in_what_matters(one: str, other: str) -> None:
    assert found(duplicates, one, other) == []


def test_equal_texts_are_one_cluster_and_count_more() -> None:
    (cluster,) = found(duplicates, *["The same note"] * 3)
    assert (cluster.severity, len(cluster.other)) == ("medium", 2)


def test_the_important_and_often_recalled_one_is_kept() -> None:
    rows = [memory(0, "A note"), memory(1, "A note", recall_count=4), memory(2, "A note", importance=0.9)]
    assert found(duplicates, *rows)[0].id == "m2"


def test_facts_summaries_and_ended_memories_are_no_duplicates() -> None:
    rows = [
        memory(0, "A note of some length"),
        memory(1, "A note of some length", store="fact", about=("m0",)),
        memory(2, "A note of some length", store="episodic", about=("m0",)),
        memory(3, "A note of some length", state="superseded"),
    ]
    assert found(duplicates, *rows) == []


def test_templated_notes_are_in_no_cluster() -> None:
    rows = [f"Deployed service-{number % 7} build {number} to region {number % 3}" for number in range(300)]
    assert found(duplicates, *rows) == []


def test_the_name_of_a_finding_depends_on_the_texts_alone() -> None:
    (one,) = found(duplicates, "A note", "a note.")
    (other,) = found(duplicates, memory(7, "a note."), memory(9, "A note"))
    assert one.finding == other.finding
    assert found(duplicates, "A note", "A note!")[0].finding != one.finding
