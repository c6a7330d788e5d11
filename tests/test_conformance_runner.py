"""The conformance runner on small corpora made by hand: each passes as written, and fails with one value changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.runner import Outcome, corpus_files, run_file

HEADER = {"about": "made by hand", "now": "2026-06-01T12:00:00.000Z", "tz": "UTC"}
GOLDEN = Path(__file__).parent / "golden"


def play(corpus: Path, stem: str, given: Any, expected: Any, name: str = "case") -> Outcome:
    """Write a corpus of one case and run it."""
    path = corpus / f"{stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = HEADER | {"cases": [{"name": name, "input": given, "expected": expected}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    (outcome,) = run_file(corpus, path)
    return outcome


def check(corpus: Path, stem: str, given: Any, expected: Any, at: list[Any], wrong: Any) -> None:
    """The case is equal as written, and different with the value at the place changed."""
    assert play(corpus, stem, given, expected) == Outcome("case")
    changed = copy.deepcopy(expected)
    holder = changed
    for key in at[:-1]:
        holder = holder[key]
    assert holder[at[-1]] != wrong
    holder[at[-1]] = wrong
    difference = play(corpus, stem, given, changed).difference
    assert difference is not None
    assert "raised" not in difference


# ---- legacy banks


@pytest.mark.parametrize("cwd", ["/srv/other", "/srv/other/"])
def test_rows_of_a_legacy_case_carry_the_folder_of_the_case(tmp_path: Path, cwd: str) -> None:
    entries = [
        {"name": "old", "kind": "db"},
        {"name": "a", "kind": "symlink-db"},
        {"name": "b", "kind": "symlink-db"},
        {"name": "fixed", "kind": "db", "rows": [{"content": "x", "meta": '{"cwd":"/proj/demo"}'}]},
    ]
    expected = {"prefix": ["now"], "extras_sorted": ["a", "b", "old"], "extras_follow_directory_order": True}
    given = {"resolved": ["now"], "cwd": cwd, "entries": entries}
    check(tmp_path, "legacy_rescue", given, expected, ["extras_sorted"], ["a", "b", "fixed", "old"])


def test_generated_rows_are_of_this_folder_or_not_as_the_case_says(tmp_path: Path) -> None:
    made = [{"name": f"b{n}", "kind": "db", "cwd_ok": n != 1} for n in range(3)]
    given = {
        "resolved": [],
        "cwd": "/srv/other",
        "entries": {"count": 3, "generated": True, "entries": made},
    }
    expected = {"prefix": [], "extras_count": 2, "extras_subset_of_good": True, "extras_follow_directory_order": True}
    check(tmp_path, "legacy_rescue", given, expected, ["extras_count"], 3)


def test_modes_of_a_legacy_bank_are_those_of_its_note(tmp_path: Path) -> None:
    entries = [
        {"name": "first", "kind": "db", "note": "directory 0777, file 0666"},
        {"name": "second", "kind": "db", "note": "file mode 000"},
    ]
    given = {"resolved": [], "cwd": "/srv/other", "entries": entries}
    expected = {"prefix": [], "extras_sorted": ["first"], "extras_follow_directory_order": True}
    check(tmp_path, "legacy_rescue", given, expected, ["extras_sorted"], ["first", "second"])


# ---- the Hindsight client and session


def request(method: str, path: str, body: Any) -> dict[str, Any]:
    headers = {"user-agent": "test"} | ({} if body is None else {"content-type": "application/json"})
    return {"method": method, "url": path, "headers": headers, "body": body}


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("recall", ["b", "q"]),
        ("reflect", ["b", "q"]),
        ("createBank", ["b"]),
        ("listMemories", ["b"]),
        ("listDocuments", ["b"]),
        ("updateDocument", ["b", "d"]),
        ("listMentalModels", ["b"]),
        ("getMentalModel", ["b", "m"]),
        ("createMentalModel", ["b", "n", "q"]),
        ("retain", ["b", "content"]),
        ("retainBatch", ["b", [{"content": "c"}]]),
    ],
)
def test_empty_options_of_a_call_are_as_none(tmp_path: Path, method: str, args: list[Any]) -> None:
    played = []
    for given in (args, [*args, {}]):
        steps = [{"op": "api", "method": method, "args": given, "out": "value"}]
        api = {"base_url": "http://127.0.0.1:PORT", "api_key": None, "user_agent": "test"}
        wrong: dict[str, Any] = {"requests": [], "out": {"value": {}}}
        played.append(play(tmp_path, "hindsight_http", {"api": api, "responses": [], "steps": steps}, wrong).difference)
    assert played[0] == played[1]
    assert played[0] == "expected.requests: 1 entries, expected 0"


def test_metadata_keys_of_a_call_stay_and_an_answer_without_a_mark_is_not_compared(tmp_path: Path) -> None:
    steps = [{"op": "api", "method": "retain", "args": ["b", "c", {"metadata": {"myKey": "v"}}]}]
    api = {"base_url": "http://127.0.0.1:PORT", "api_key": None, "user_agent": "test"}
    body = {"items": [{"content": "c", "metadata": {"myKey": "v"}}]}
    sent = request("POST", "/v1/default/banks/b/memories", body)
    given = {"api": api, "responses": [], "steps": steps}
    expected = {"requests": [sent], "out": {}}
    check(tmp_path, "hindsight_http", given, expected, ["requests", 0, "body", "items", 0, "metadata"], {"my_key": "v"})


def test_reset_tracking_resets_recall_and_retention(tmp_path: Path) -> None:
    entries = [{"type": "message", "message": {"role": "user", "content": "I like small modules a lot"}}]
    first = {"op": "first_turn", "prompt": "which modules?", "as": "object"}
    steps = [
        {"op": "entries", "entries": entries},
        {"op": "agent_end"},
        {"op": "last_retained_turn", "out": "retained"},
        first | {"out": "first"},
        {"op": "commit"},
        first | {"out": "second"},
        {"op": "reset_tracking"},
        {"op": "last_retained_turn", "out": "reset"},
        first | {"out": "again"},
    ]
    given = {
        "cwd_basename": "demo",
        "settings": {"hindsight.retainEveryNTurns": 1},
        "session_id": "sess-9",
        "header": None,
        "responses": [],
        "steps": steps,
    }
    out = {
        "retained": 1,
        "first": {"has": True, "context": None},
        "second": {"has": False, "context": None},
        "reset": 0,
        "again": {"has": True, "context": None},
    }
    assert difference(tmp_path, given, {"out": out}).startswith("expected.requests: unexpected")  # the out is equal
    changed = out | {"again": {"has": False, "context": None}}
    assert difference(tmp_path, given, {"out": changed}) == "expected.out.again.has: true, expected false"


def difference(corpus: Path, given: Any, expected: Any) -> str:
    return play(corpus, "hindsight_http", given, expected).difference or ""


# ---- the local backend and retention


ENTRIES = [{"type": "message", "message": {"role": "user", "content": "I like small modules a lot"}}]
COUNT = "SELECT count(*) FROM working_memory"


def backend(steps: list[dict[str, Any]]) -> dict[str, Any]:
    settings = {"mnemopi.scoping": "global", "mnemopi.dbPath": "$DIR/$B.db"}
    return {"settings": settings, "cwd": "/srv/other", "steps": steps, "raw_ids": {}, "id_counter": 0}


def test_enqueue_after_clear_answers_null_and_does_nothing(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"op": "sql", "query": COUNT, "as": "value"}
    entries: dict[str, Any] = {"op": "entries", "entries": ENTRIES}
    steps: list[dict[str, Any]] = [
        {"op": "start"},
        entries,
        {"op": "enqueue", "out": "before"},
        rows | {"out": "kept"},
        {"op": "clear"},
    ]
    steps += [{"op": "enqueue", "out": "after"}, rows | {"out": "none"}, {"op": "start"}, {"op": "enqueue"}]
    steps += [rows | {"out": "again"}]
    expected = {"before": None, "kept": 1, "after": None, "none": 0, "again": 1}
    check(tmp_path, "backend", backend(steps), expected, ["none"], 1)


def test_a_recall_without_hits_says_so_in_a_backend_case(tmp_path: Path) -> None:
    steps = [{"op": "start"}, {"op": "recall", "query": "nothing", "out": "none"}]
    expected = {"none": {"text": "No relevant memories found.", "useless": True}}
    check(tmp_path, "backend", backend(steps), expected, ["none", "useless"], False)


def test_hooks_without_a_state_answer_null_and_names_of_the_folder_are_hidden(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"op": "first_turn", "prompt": "p", "out": "first"},
        {"op": "compaction", "messages": [], "out": "compaction"},
        {"op": "enqueue", "out": "enqueue"},
        {"op": "state_installed", "out": "state"},
        {"op": "start"},
        {"op": "save", "input": {"content": {"prefix": "in $DIR: ", "repeat": "ab", "times": 3}}},
        {"op": "sql", "query": "SELECT content FROM working_memory", "as": "value", "out": "content"},
        {"op": "files", "out": "files"},
    ]
    expected = {
        "first": None,
        "compaction": None,
        "enqueue": None,
        "state": False,
        "content": "in $DIR: ababab",
        "files": ["$B.db"],
    }
    check(tmp_path, "backend", backend(steps), expected, ["content"], "in $DIR: abab")


def test_reset_tracking_of_a_retain_case_answers_zero(tmp_path: Path) -> None:
    at = {"now": "2026-07-02T00:00:00.000Z"}
    steps: list[dict[str, Any]] = [
        {"op": "agent_end", "entries_seen": 1} | at,
        {"op": "force_retain", "entries_seen": 1} | at,
        {"op": "reset_tracking"} | at,
        {"op": "force_retain_again", "entries_seen": 1} | at,
        {"op": "entries", "entries": ENTRIES},
    ]
    config: Any = {"scoping": "global", "retainBank": "mine", "recallBanks": ["mine"], "proactiveLinking": False}
    given: dict[str, Any] = {
        "config": config,
        "shared_bank": "mine",
        "settings": {},
        "llm_answer": None,
        "id_counter": 41,
    }
    given |= {"session_id": "sess-9", "cwd": "/srv/other", "steps": steps, "raw_ids": {}}
    wrong = play(tmp_path, "retain", given, {"results": [0, 1, 0, 1, None]}).difference
    assert wrong is not None
    assert wrong.startswith("expected.tables: unexpected")
    wrong = play(tmp_path, "retain", given, {"results": [0, 1, 1, 1, None]}).difference
    assert wrong == "expected.results[2]: 0, expected 1"


# ---- every kind that was recorded


@pytest.mark.parametrize("name", [path.relative_to(GOLDEN).as_posix() for path in corpus_files(GOLDEN)])
def test_a_changed_value_is_reported_in_every_file(tmp_path: Path, name: str) -> None:
    """The first case of a file is equal; with one more thing expected it is not."""
    (tmp_path / "banks").symlink_to(GOLDEN / "banks")
    (tmp_path / "differences.json").symlink_to(GOLDEN / "differences.json")
    document = json.loads((GOLDEN / name).read_text("utf-8"))
    case = document["cases"][0]
    recorded = case["expected"]
    changed = recorded | {"a key of no case": 1} if isinstance(recorded, dict) else [recorded, "changed"]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for expected, equal in ((recorded, True), (changed, False)):
        path.write_text(json.dumps(document | {"cases": [case | {"expected": expected}]}), encoding="utf-8")
        (outcome,) = run_file(tmp_path, path)
        assert (outcome.difference is None) is equal
