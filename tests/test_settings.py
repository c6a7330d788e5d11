"""Settings: the table, what each source says, and who wins."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipy_memory.errors import SettingsError
from ipy_memory.settings import Settings, agent_directory, hindsight_config, load_settings, mnemopi_config
from ipy_memory.settings_table import SETTINGS

GOLDEN = Path(__file__).parent / "golden"
SECRETS = {"hindsight.apiToken", "mnemopi.embeddingApiKey", "mnemopi.llmApiKey"}


class Place:
    """An agent directory and a project, with what their files say."""

    def __init__(self, root: Path) -> None:
        self.agent, self.project = root / "agent", root / "project"
        self.agent.mkdir()
        (self.project / ".omp").mkdir(parents=True)
        self.agent_file = self.agent / "config.yml"
        self.project_file = self.project / ".omp" / "config.yml"

    def load(self, env: Mapping[str, str] | None = None, **overrides: object) -> Settings:
        given = {name.replace("__", "."): value for name, value in overrides.items()}
        return load_settings(self.agent, self.project, env or {}, given)

    def read(self, text: str) -> Settings:
        self.agent_file.write_text(text, encoding="utf-8")
        return self.load()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.claim("C-01", "C-08")
def test_the_table_is_the_recorded_one_and_ours() -> None:
    recorded = {case["name"] for case in json.loads((GOLDEN / "settings_defaults.json").read_text())["cases"]}
    assert {name for name, setting in SETTINGS.items() if not setting.ours} == recorded
    assert {name for name, setting in SETTINGS.items() if setting.ours} == {
        "hindsight.mentalModelRefreshIntervalMs",
        "hindsight.safeRetain",
    }
    assert {name for name, setting in SETTINGS.items() if setting.credential} == SECRETS
    for setting in SETTINGS.values():
        assert setting.help
        assert setting.default is None or setting.typed(setting.default) == setting.default
    assert Settings().get("memory.backend") == "off"
    assert SETTINGS["memory.backend"].values == ("off", "local", "hindsight", "mnemopi", "sharpshooter")


@pytest.mark.claim("C-03", "C-04", "C-10")
def test_hindsight_defaults() -> None:
    config = hindsight_config(Settings())
    assert (config.recall_budget, config.recall_max_tokens, config.recall_types) == (
        "mid",
        1024,
        ("world", "experience"),
    )
    assert (config.auto_retain, config.retain_every_n_turns, config.retain_overlap_turns) == (True, 3, 2)
    assert (config.retain_context, config.retain_mode) == ("omp", "full-session")
    assert (config.api_url, config.request_timeout_ms, config.recall_timeout_ms) == (
        "http://localhost:8888",
        30_000,
        30_000,
    )
    assert (config.reflect_timeout_ms, config.retain_timeout_ms) == (120_000, 60_000)
    assert (config.mental_model_refresh_interval_ms, config.safe_retain) == (300_000, False)


@pytest.mark.claim("C-05", "C-07")
def test_mnemopi_defaults_and_limits(place: Place) -> None:
    config = mnemopi_config(Settings(), "/home/x/.omp/agent")
    assert config.db_path == "/home/x/.omp/agent/memories/mnemopi/mnemopi.db"
    assert (config.auto_retain, config.retain_every_n_turns, config.recall_limit) == (True, 4, 8)
    assert (config.scoping, config.injection_token_limit) == ("per-project", 5000)
    low = place.read("mnemopi: {recallLimit: 0.9, retainEveryNTurns: -7, recallMaxQueryChars: 255.9, dbPath: '  '}")
    config = mnemopi_config(low, "/a")
    assert (config.recall_limit, config.retain_every_n_turns, config.recall_max_query_chars) == (1, 1, 256)
    assert config.db_path == "/a/memories/mnemopi/mnemopi.db"


@pytest.mark.claim("C-02")
def test_precedence(place: Place) -> None:
    name, env = "hindsight.bankId", {"HINDSIGHT_BANK_ID": "of-env"}
    assert (place.load().get(name), place.load().origin(name)) == (None, "default")
    place.agent_file.write_text("theme: dark\nhindsight:\n  bankId: of-agent\n")
    assert (place.load().get(name), place.load().origin(name)) == ("of-agent", f"{place.agent_file}:3")
    place.project_file.write_text("hindsight.bankId: of-project\n")
    assert (place.load().get(name), place.load().origin(name)) == ("of-project", f"{place.project_file}:1")
    found = place.load(env)
    assert (found.get(name), found.origin(name)) == ("of-env", "environment HINDSIGHT_BANK_ID")
    found = place.load(env, hindsight__bankId="of-session")
    assert (found.get(name), found.origin(name)) == ("of-session", "session")
    taken_back = found.with_overrides({name: None})
    assert (taken_back.get(name), found.get(name)) == ("of-env", "of-session")


@pytest.mark.claim("C-02")
def test_a_file_s_embedding_model_wins_over_the_variable(place: Place) -> None:
    env = {"MNEMOPI_EMBEDDING_MODEL": " of/env "}
    assert mnemopi_config(place.load(env), "/a").embedding_model == "of/env"
    place.agent_file.write_text("mnemopi.embeddingModel: of/file\n")
    assert mnemopi_config(place.load(env), "/a").embedding_model == "of/file"
    place.project_file.write_text("mnemopi.embeddingModel: '  '\n")
    assert mnemopi_config(place.load(env), "/a").embedding_model == "of/file"
    assert mnemopi_config(place.load(env, mnemopi__embeddingModel="mine"), "/a").embedding_model == "mine"
    place.agent_file.unlink()
    assert place.load(env).origin("mnemopi.embeddingModel") == "environment MNEMOPI_EMBEDDING_MODEL"
    place.project_file.write_text("mnemopi.embeddingVariant: multilingual\n")
    assert mnemopi_config(place.load(), "/a").embedding_model == "intfloat/multilingual-e5-large"


@pytest.mark.claim("C-02")
def test_the_second_file_name_counts_only_without_the_first(place: Place) -> None:
    second = place.agent / "config.yaml"
    second.write_text("mnemopi.bank: second\n")
    assert place.load().get("mnemopi.bank") == "second"
    place.agent_file.write_text("mnemopi.bank: first\n")
    assert place.load().get("mnemopi.bank") == "first"
    place.agent_file.write_text("{")
    assert place.load().get("mnemopi.bank") is None


@pytest.mark.parametrize(
    "text",
    [
        "mnemopi:\n  bank: x\n  recallLimit: 5\n",
        "mnemopi.bank: x\nmnemopi.recallLimit: 5\n",
        "mnemopi.bank: y\nmnemopi:\n  recallLimit: 5\n  bank: x\n",
        "base: &base {bank: x, recallLimit: 5}\nmnemopi: *base\n",
        '{"mnemopi": {"bank": "x", "recallLimit": 5.0}}',
    ],
)
def test_nested_and_flat_forms_mean_the_same(place: Place, text: str) -> None:
    found = place.read(text)
    assert (found.get("mnemopi.bank"), found.get("mnemopi.recallLimit"), found.warnings) == ("x", 5, ())


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("memory: {backend: off}", "memory.backend", "off"),
        ("memory.backend: 'off'", "memory.backend", "off"),
        ("mnemopi: {bank: no}", "mnemopi.bank", "no"),
        ("mnemopi: {bank: yes}", "mnemopi.bank", "yes"),
        ("mnemopi: {bank: on}", "mnemopi.bank", "on"),
        ("mnemopi: {bank: 007}", "mnemopi.bank", "007"),
        ("mnemopi: {bank: 1.10}", "mnemopi.bank", "1.10"),
        ("mnemopi: {bank: true}", "mnemopi.bank", "true"),
        ("mnemopi: {bank: 2026-06-01}", "mnemopi.bank", "2026-06-01"),
        ("mnemopi: {bank: }", "mnemopi.bank", None),
        ("mnemopi: {bank: ~}", "mnemopi.bank", None),
        ("mnemopi: {bank: 'null'}", "mnemopi.bank", "null"),
        ("hindsight: {apiUrl: ''}", "hindsight.apiUrl", ""),
        ("hindsight: {apiUrl: }", "hindsight.apiUrl", "http://localhost:8888"),
        ("mnemopi: {autoRecall: False}", "mnemopi.autoRecall", False),
        ("mnemopi: {recallLimit: 0x10}", "mnemopi.recallLimit", 16),
        ("mnemopi: {recallLimit: 0o17}", "mnemopi.recallLimit", 15),
        ("mnemopi: {recallLimit: 010}", "mnemopi.recallLimit", 10),
        ("mnemopi: {recallLimit: 1e1}", "mnemopi.recallLimit", 10),
        ("mnemopi: {recallLimit: 2.5}", "mnemopi.recallLimit", 2.5),
        ("hindsight: {recallTypes: [world, opinion]}", "hindsight.recallTypes", ("world", "opinion")),
        ("hindsight: {recallTypes: []}", "hindsight.recallTypes", ()),
    ],
)
def test_values_have_their_yaml_1_2_meaning(place: Place, text: str, name: str, value: object) -> None:
    found = place.read(text)
    assert found.get(name) == value
    assert type(found.get(name)) is type(value)
    assert found.warnings == ()


@pytest.mark.claim("C-06", "S-11")
@pytest.mark.parametrize(
    ("line", "fallback"),
    [
        ("hindsight.scoping: Global", "per-project-tagged"),
        ("mnemopi.scoping: weird", "per-project"),
        ("hindsight.retainMode: Last-Turn", "full-session"),
        ("hindsight.recallBudget: 3", "mid"),
        ("memory.backend: false", "off"),
        ("mnemopi.autoRecall: yes", True),
        ("mnemopi.autoRecall: 'true'", True),
        ("mnemopi.recallLimit: many", 8),
        ("mnemopi.recallLimit: .inf", 8),
        ("mnemopi.recallLimit: !!int abc", 8),
        ("mnemopi.recallLimit: true", 8),
        ("hindsight.recallTypes: world", ("world", "experience")),
        ("hindsight.recallTypes: [world, 3]", ("world", "experience")),
        ("hindsight.recallTypes: [[a]]", ("world", "experience")),
        ("mnemopi.bank: [a]", None),
        ("hindsight.apiUrl: {a: b}", "http://localhost:8888"),
    ],
)
def test_an_impossible_value_warns_with_its_line_and_falls_back(
    place: Place, line: str, fallback: object, caplog: pytest.LogCaptureFixture
) -> None:
    name = line.split(":")[0]
    found = place.read(f"# a comment\n{line}\n")
    (warning,) = found.warnings
    assert warning == f"{place.agent_file}, line 2: {name} must be {SETTINGS[name].expected}; its default is used"
    assert (found.get(name), found.origin(name)) == (fallback, "default")
    assert [(record.name, record.levelno, record.message) for record in caplog.records] == [
        ("ipy_memory.settings", logging.WARNING, warning)
    ]


def test_an_unknown_name_of_ours_is_told_and_all_others_are_not_our_business(place: Place) -> None:
    found = place.read("theme: dark\nmnemopi:\n  recalLimit: 3\n? [a, b]\n: c\nmodel: {mnemopi: 4}\nmemory: 5\n")
    assert found.warnings == (
        f"{place.agent_file}, line 3: mnemopi.recalLimit is no known setting",
        f"{place.agent_file}, line 7: memory is no known setting",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"mnemopi:\n  bank: x\n bad: [\n", ", line 3: not valid YAML; its settings are not used"),
        (b"mnemopi: {bank: x\n", ", line 2: not valid YAML; its settings are not used"),
        (b"a: *nowhere\n", ", line 1: not valid YAML; its settings are not used"),
        (b"a: 1\n---\nb: 2\n", ", line 2: not valid YAML; its settings are not used"),
        (b"- a\n- b\n", ", line 1: no mapping of settings; its settings are not used"),
        (b"just text", ", line 1: no mapping of settings; its settings are not used"),
        (b"\xff\xfe\xfa", " is not valid YAML; its settings are not used"),
        (b"a: \x00", " is not valid YAML; its settings are not used"),
        (b'a: "\\UFFFFFFFF"', " is not valid YAML; its settings are not used"),
        (b"[" * 100_000, " is not valid YAML; its settings are not used"),
        (b"#" * (1 << 20) + b"\n", " is no file of at most 1 MiB; its settings are not used"),
    ],
)
def test_a_bad_file_is_one_warning_and_never_fatal(place: Place, content: bytes, said: str) -> None:
    place.agent_file.write_bytes(content)
    place.project_file.write_text("mnemopi.bank: good\n")
    found = place.load()
    assert found.warnings == (f"{place.agent_file}{said}",)
    assert found.get("mnemopi.bank") == "good"


@pytest.mark.parametrize("content", ["", "# nothing\n", "~\n", "{}\n"])
def test_an_empty_file_says_nothing(place: Place, content: str) -> None:
    assert place.read(content).warnings == ()


def test_what_is_no_regular_file_is_not_opened(place: Place) -> None:
    os.mkfifo(place.agent_file)
    place.project_file.mkdir()
    said = "is no file of at most 1 MiB; its settings are not used"
    assert place.load().warnings == (f"{place.agent_file} {said}", f"{place.project_file} {said}")


def test_aliases_that_bite_their_tail_end(place: Place) -> None:
    found = place.read("mnemopi: &m\n  mnemopi: *m\n  bank: x\nhindsight: &h {recallTypes: &r [*r]}\n")
    assert found.get("mnemopi.bank") == "x"
    assert found.get("hindsight.recallTypes") == ("world", "experience")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_stops_a_session(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "any"
    root.mkdir(exist_ok=True)
    (root / "config.yml").write_bytes(content)
    found = load_settings(root, root, {})
    assert len(found.table()) == len(SETTINGS)
    assert (root / "config.yml").read_bytes() == content


@pytest.mark.claim("C-09")
def test_the_environment_names_are_the_recorded_ones() -> None:
    cases = json.loads((GOLDEN / "settings_hindsight.json").read_text())["cases"]
    recorded = next(case for case in cases if case["name"] == "all env")["input"]["env"]
    named = {setting.env for setting in SETTINGS.values() if setting.env}
    assert named == {*recorded, "MNEMOPI_EMBEDDING_MODEL"}


@pytest.mark.claim("C-06", "C-09")
@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("HINDSIGHT_BANK_ID", "  x ", "hindsight.bankId", "x"),
        ("HINDSIGHT_BANK_ID", "  ", "hindsight.bankId", "of-file"),
        ("HINDSIGHT_AUTO_RECALL", "YES", "hindsight.autoRecall", True),
        ("HINDSIGHT_AUTO_RECALL", "", "hindsight.autoRecall", False),
        ("HINDSIGHT_AUTO_RECALL", " true", "hindsight.autoRecall", False),
        ("HINDSIGHT_RECALL_MAX_TOKENS", " -12.9x", "hindsight.recallMaxTokens", -12),
        ("HINDSIGHT_RECALL_MAX_TOKENS", "+7", "hindsight.recallMaxTokens", 7),
        ("HINDSIGHT_RECALL_MAX_TOKENS", "\ufeff7", "hindsight.recallMaxTokens", 7),
        ("HINDSIGHT_RECALL_MAX_TOKENS", "９", "hindsight.recallMaxTokens", 1024),
        ("HINDSIGHT_RECALL_MAX_TOKENS", "9" * 400, "hindsight.recallMaxTokens", 1024),
        ("HINDSIGHT_SCOPING", "Global", "hindsight.scoping", "per-project"),
        ("HINDSIGHT_SCOPING", "global", "hindsight.scoping", "global"),
    ],
)
def test_variables(place: Place, variable: str, text: str, name: str, value: object) -> None:
    place.agent_file.write_text("hindsight: {bankId: of-file, scoping: per-project}\n")
    assert place.load({variable: text}).get(name) == value


def test_a_passed_over_variable_is_told_without_its_value(place: Place) -> None:
    found = place.load({"HINDSIGHT_SCOPING": "s3cret", "HINDSIGHT_RETAIN_MODE": ""})
    assert found.warnings == (
        "HINDSIGHT_SCOPING is passed over: it must be one of global, per-project, per-project-tagged",
    )


@pytest.mark.claim("S-11")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mnemopi.scoping", "Global"),
        ("memory.backend", "mem0"),
        ("mnemopi.autoRecall", "true"),
        ("mnemopi.recallLimit", True),
        ("mnemopi.recallLimit", float("nan")),
        ("mnemopi.recallLimit", 10**400),
        ("mnemopi.bank", 5),
        ("hindsight.recallTypes", "world"),
        ("hindsight.recallTypes", ["world", 5]),
    ],
)
def test_a_wrong_value_in_the_session_is_an_error_that_names_the_right_ones(name: str, value: object) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings().with_overrides({name: value})
    assert caught.value.message == f"{name} must be {SETTINGS[name].expected}"


def test_an_unknown_name_in_the_session_is_an_error_with_the_nearest() -> None:
    for ask in (Settings().get, Settings().origin, lambda name: Settings().with_overrides({name: 1})):
        with pytest.raises(SettingsError) as caught:
            ask("mnemopi.recalLimit")
        assert caught.value.hint == "did you mean mnemopi.recallLimit?"


@pytest.mark.claim("C-02")
def test_files_are_never_written_and_session_values_do_not_stay(place: Place) -> None:
    place.agent_file.write_text("mnemopi.bank: x\n")
    before = {path: path.stat().st_mtime_ns for path in place.agent.parent.rglob("*")}
    assert place.load(mnemopi__bank="y").get("mnemopi.bank") == "y"
    assert place.load().get("mnemopi.bank") == "x"
    assert {path: path.stat().st_mtime_ns for path in place.agent.parent.rglob("*")} == before


@pytest.mark.claim("E-03")
def test_no_display_shows_a_credential(place: Place) -> None:
    place.agent_file.write_text(
        "hindsight: {apiToken: s3cret-a, apiUrl: 'https://user:s3cret-b@host/x'}\n"
        "mnemopi: {embeddingApiKey: s3cret-c, llmApiKey: s3cret-d}\n"
    )
    found = place.load()
    rows = {row.name: row for row in found.table()}
    assert list(rows) == list(SETTINGS)
    assert {name for name, row in rows.items() if row.value == "(set)"} == SECRETS
    assert rows["hindsight.apiUrl"].value == "https://(set)@host/x"
    assert {row.value for row in Settings().table() if row.name in SECRETS} == {None}
    shown = f"{rows} {found!r} {mnemopi_config(found, '/a')!r}"
    assert "s3cret" not in shown
    assert "s3cret-a" not in repr(hindsight_config(found))
    assert hindsight_config(found).api_token == "s3cret-a"


@pytest.mark.claim("C-07")
def test_the_agent_directory() -> None:
    assert agent_directory({"HOME": "/home/x"}) == "/home/x/.omp/agent"
    assert agent_directory({"HOME": "/home/x", "PI_CODING_AGENT_DIR": "  "}) == "/home/x/.omp/agent"
    assert agent_directory({"HOME": "/home/x", "PI_CODING_AGENT_DIR": "/elsewhere"}) == "/elsewhere"
    assert agent_directory({"HOME": "/home/x", "PI_CODING_AGENT_DIR": "~/a"}) == "/home/x/a"


def test_yaml_is_imported_only_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "with" / "config.yml").write_text("mnemopi.bank: x\n")
    program = (
        "import sys; from ipy_memory.settings import load_settings; "
        "load_settings(sys.argv[1], sys.argv[1], {}); print('yaml' in sys.modules)"
    )
    for name, expected in (("without", "False"), ("with", "True")):
        command = [sys.executable, "-c", program, str(tmp_path / name)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == expected
