"""Settings: the table, what each source says, and who wins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import SettingsError
from ipy_memory.settings.resolve import Settings, agent_directory, hindsight_config, load_settings, mnemopi_config
from ipy_memory.settings.table import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

GOLDEN = Path(__file__).parents[1] / "golden"
SECRETS = {"hindsight.apiToken", "mnemopi.embeddingApiKey", "mnemopi.llmApiKey"}


class Place:
    """An agent directory and a project, with what their files say."""

    def __init__(self, root: Path) -> None:
        self.agent, self.project = root / "agent", root / "project"
        self.agent.mkdir()
        (self.project / ".omp").mkdir(parents=True)
        self.agent_file = self.agent / "config.yml"
        self.project_file = self.project / ".omp" / "config.yml"
        self.trust: bool | None = None

    def load(self, env: Mapping[str, str] | None = None, **overrides: object) -> Settings:
        given = {name.replace("__", "."): value for name, value in overrides.items()}
        return load_settings(self.agent, self.project, env or {}, given, trust=self.trust)

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
    place.project_file.write_text("hindsight: {bankId: of-project}\n")
    assert (place.load().get(name), place.load().origin(name)) == ("of-agent", f"{place.agent_file}:3")
    place.trust = True
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
    place.agent_file.write_text("mnemopi: {embeddingModel: of/file}\n")
    assert mnemopi_config(place.load(env), "/a").embedding_model == "of/file"
    place.trust = True
    place.project_file.write_text("mnemopi: {embeddingModel: '  '}\n")
    assert mnemopi_config(place.load(env), "/a").embedding_model == "of/file"
    assert mnemopi_config(place.load(env, mnemopi__embeddingModel="mine"), "/a").embedding_model == "mine"
    place.agent_file.unlink()
    assert place.load(env).origin("mnemopi.embeddingModel") == "environment MNEMOPI_EMBEDDING_MODEL"
    place.project_file.write_text("mnemopi: {embeddingVariant: multilingual}\n")
    assert mnemopi_config(place.load(), "/a").embedding_model == "intfloat/multilingual-e5-large"


@pytest.mark.claim("C-02")
def test_the_second_file_name_counts_only_without_the_first(place: Place) -> None:
    second = place.agent / "config.yaml"
    second.write_text("mnemopi: {bank: second}\n")
    assert place.load().get("mnemopi.bank") == "second"
    place.agent_file.write_text("mnemopi: {bank: first}\n")
    assert place.load().get("mnemopi.bank") == "first"
    place.agent_file.write_text("{")
    assert place.load().get("mnemopi.bank") is None


@pytest.mark.claim("C-09")
def test_the_environment_names_are_the_recorded_ones() -> None:
    cases = json.loads((GOLDEN / "settings_hindsight.json").read_text())["cases"]
    recorded = next(case for case in cases if case["name"] == "all env")["input"]["env"]
    named = {setting.env for setting in SETTINGS.values() if setting.env}
    ours = {f"MNEMOPI_EMBEDDING_{name}" for name in ("MODEL", "API_URL", "API_KEY")}
    assert named == {*recorded, *ours}


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
    place.agent_file.write_text("mnemopi: {bank: x}\n")
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
    (tmp_path / "with" / "config.yml").write_text("mnemopi: {bank: x}\n")
    program = (
        "import sys; from ipy_memory.settings.resolve import load_settings; "
        "load_settings(sys.argv[1], sys.argv[1], {}); print('yaml' in sys.modules)"
    )
    for name, expected in (("without", "False"), ("with", "True")):
        command = [sys.executable, "-c", program, str(tmp_path / name)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == expected


# Keys and where they go ---------------------------------------------------------------------------------------------

PAIRS = {
    "hindsight.apiToken": "hindsight.apiUrl",
    "mnemopi.embeddingApiKey": "mnemopi.embeddingApiUrl",
    "mnemopi.llmApiKey": "mnemopi.llmBaseUrl",
}
MINE, THEIRS = "https://mine.example/v1", "https://theirs.example/v1"
pairs = pytest.mark.parametrize(("key", "address"), [*PAIRS.items()])


def said(**values: str) -> str:
    """Return a settings file; ``hindsight_apiUrl`` stands for ``hindsight.apiUrl``."""
    sections: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        section, _, rest = name.replace("_", ".", 1).partition(".")
        sections.setdefault(section, {})[rest] = value
    return json.dumps(sections)


def name_of(setting: str) -> str:
    return setting.replace(".", "_", 1)


@pairs
def test_a_user_s_key_never_goes_to_an_address_that_a_project_chose(place: Place, key: str, address: str) -> None:
    """A02: not even in a trusted folder."""
    place.trust = True
    place.agent_file.write_text(said(**{name_of(key): "user-key", name_of(address): MINE}))
    assert (place.load().get(key), place.load().get(address)) == ("user-key", MINE)
    place.project_file.write_text(said(**{name_of(address): THEIRS}))
    found = place.load()
    assert (found.get(key), found.get(address), found.user_keys_may_go(address)) == (None, THEIRS, False)
    (note,) = found.notes()
    assert note == (
        f"{key} ({place.agent_file}:1) is not sent to https://theirs.example:443, which the project chose "
        f"({place.project_file}:1); set {address} yourself to send it there"
    )
    by_session = place.load(**{key.replace(".", "__"): "session-key"})
    assert by_session.get(key) is None
    accepted = by_session.with_overrides({address: THEIRS})
    assert (accepted.get(key), accepted.notes()) == ("session-key", [])


@pairs
@pytest.mark.parametrize(
    ("theirs", "same"),
    [
        ("https://mine.example/other", True),
        ("HTTPS://MINE.example:443", True),
        ("http://mine.example/v1", False),
        ("https://mine.example:444/v1", False),
        ("https://mine.example.theirs.example/v1", False),
        ("https://mine.example@theirs.example/v1", False),
        ("https://theirs.example/mine.example", False),
        ("mine.example", False),
        ("https://[::1", False),
        ("", False),
    ],
)
def test_a_user_s_key_goes_to_the_user_s_own_origin_whoever_names_it(
    place: Place, key: str, address: str, theirs: str, same: bool
) -> None:
    place.trust = True
    place.agent_file.write_text(said(**{name_of(key): "user-key", name_of(address): MINE}))
    place.project_file.write_text(said(**{name_of(address): theirs}))
    assert place.load().get(key) == ("user-key" if same or (not theirs and SETTINGS[address].env_last) else None)


@pairs
def test_a_project_s_key_goes_only_to_the_project_s_address(place: Place, key: str, address: str) -> None:
    """A02: a stranger's key would send memories to the stranger's account."""
    place.trust = True
    place.agent_file.write_text(said(**{name_of(key): "user-key", name_of(address): MINE}))
    place.project_file.write_text(said(**{name_of(key): "project-key"}))
    found = place.load()
    assert (found.get(key), found.get(address)) == ("user-key", MINE)
    (note,) = found.notes()
    assert note == (
        f"{key} ({place.project_file}:1) is not used: a project's key goes only to an address of the project"
    )
    place.agent_file.write_text(said(**{name_of(address): MINE}))
    assert place.load().get(key) is None
    place.agent_file.unlink()
    assert place.load().get(key) is None, "the default address is not the project's either"
    place.project_file.write_text(said(**{name_of(key): "project-key", name_of(address): THEIRS}))
    assert (place.load().get(key), place.load().notes()) == ("project-key", [])
    place.agent_file.write_text(said(**{name_of(key): "user-key", name_of(address): MINE}))
    assert (place.load().get(key), place.load().get(address)) == ("project-key", THEIRS)


def test_a_key_of_the_environment_is_the_user_s(place: Place) -> None:
    place.trust = True
    place.project_file.write_text(said(hindsight_apiUrl=THEIRS, mnemopi_embeddingApiUrl=THEIRS))
    env = {"HINDSIGHT_API_TOKEN": "env-key", "MNEMOPI_EMBEDDING_API_KEY": "env-key"}
    found = place.load(env)
    assert (found.get("hindsight.apiToken"), found.get("mnemopi.embeddingApiKey")) == (None, None)
    assert mnemopi_config(found, "/a").embedding_user_keys is False
    assert [note.partition(" (environment ")[0] for note in found.notes()] == [
        "mnemopi.embeddingApiKey",
        "hindsight.apiToken",
    ]
    found = place.load({**env, "HINDSIGHT_API_URL": THEIRS})
    assert found.get("hindsight.apiToken") == "env-key"


def test_an_address_of_the_environment_is_read_where_no_file_gives_one(place: Place) -> None:
    env = {"MNEMOPI_EMBEDDING_API_URL": MINE, "MNEMOPI_EMBEDDING_API_KEY": "env-key"}
    config = mnemopi_config(place.load(env), "/a")
    assert (config.embedding_api_url, config.embedding_api_key, config.embedding_user_keys) == (MINE, "env-key", True)
    place.agent_file.write_text(said(mnemopi_embeddingApiUrl=THEIRS))
    config = mnemopi_config(place.load(env), "/a")
    assert (config.embedding_api_url, config.embedding_api_key) == (THEIRS, "env-key")


def test_no_note_shows_a_key_or_obeys_a_stranger(place: Place) -> None:
    place.project_file.write_text(
        json.dumps(
            {
                "hindsight": {
                    "apiUrl": "https://user:s3cret-a@host/\u001b[2J\n\u202e?key=s3cret-b",
                    "apiToken": "s3cret-c",
                    "bankId": "x" * 10_000,
                },
                "mnemopi": {"llmModel": "sk-" + "A1b2C3d4E5" * 4, "embeddingApiUrl": "https://h/#s3cret-d"},
            }
        )
    )
    notes = place.load().notes()
    assert len(notes) == 6
    text = "\n".join(notes)
    assert "s3cret" not in text
    assert "A1b2C3d4E5" not in text
    assert not set("\x1b\u202e") & set(text)
    assert max(map(len, notes)) < 500


# What has no effect -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("mnemopi: {enhancedRecall: true}", "mnemopi.enhancedRecall", "it changes no recall"),
        ("mnemopi: {polyphonicRecall: true}", "mnemopi.polyphonicRecall", "it changes no recall"),
        ("mnemopi: {debug: true}", "mnemopi.debug", "this package logs the same without it"),
        ("hindsight: {debug: true}", "hindsight.debug", "this package logs the same without it"),
        ("mnemopi: {llmModel: m}", "mnemopi.llmModel", "mnemopi.llmMode is not remote"),
        ("mnemopi: {llmMode: none, llmBaseUrl: u}", "mnemopi.llmBaseUrl", "mnemopi.llmMode is not remote"),
        (
            "mnemopi: {embeddingVariant: multilingual, embeddingModel: m}",
            "mnemopi.embeddingVariant",
            "mnemopi.embeddingModel names a model",
        ),
        (
            "mnemopi: {noEmbeddings: true, embeddingApiUrl: u}",
            "mnemopi.embeddingApiUrl",
            "mnemopi.noEmbeddings switches embeddings off",
        ),
    ],
)
def test_a_setting_without_effect_says_so(place: Place, text: str, name: str, why: str) -> None:
    """C15."""
    rows = {row.name: row for row in place.read(text).table()}
    assert rows[name].unused == why
    assert rows[name].words.endswith(f" (no effect: {why})")
    assert {row.unused for row in Settings().table()} == {""}


@pytest.mark.parametrize("text", ["mnemopi: {llmMode: remote, llmModel: m}", "mnemopi: {embeddingModel: m}"])
def test_a_setting_with_effect_does_not(place: Place, text: str) -> None:
    assert {row.unused for row in place.read(text).table()} == {""}


@pytest.mark.parametrize(
    ("path", "part"),
    [("~/bank.db", "~"), ("$HOME/bank.db", "$HOME"), ("/data/${USER}/bank.db", "${USER}"), ("/a/~/bank.db", "~")],
)
def test_a_database_path_that_only_a_shell_would_expand_is_told(place: Place, path: str, part: str) -> None:
    """C04: the agent takes it as it is, and so does the session."""
    found = place.read(f"mnemopi: {{dbPath: '{path}'}}")
    assert mnemopi_config(found, "/a", "/proj").db_path.endswith(path)
    (note,) = found.notes()
    assert note == (
        f"mnemopi.dbPath ({place.agent_file}:1) holds {part}, which the agent takes as the name of a folder; "
        "write the whole path"
    )


@pytest.mark.parametrize("path", ["/data/a~b/x.db", "/data/~x/x.db", "/data/x$.db", "rel/x.db", "/a/x~"])
def test_an_ordinary_database_path_is_not(place: Place, path: str) -> None:
    assert place.read(f"mnemopi: {{dbPath: '{path}'}}").notes() == []
