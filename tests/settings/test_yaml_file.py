"""Settings files: what each form of file and value means, which is what the real agent (18.2.3) makes of it."""

from __future__ import annotations

import logging
import math
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipy_memory.settings.resolve import Settings, hindsight_config, load_settings, mnemopi_config
from ipy_memory.settings.table import SETTINGS
from ipy_memory.settings.yaml_file import File, Form, read_file

if TYPE_CHECKING:
    from pathlib import Path

FATAL = " (the agent does not start with it); its settings are not used"
NUMBERS = [name for name, setting in SETTINGS.items() if setting.type == "number"]
BOOLEANS = [name for name, setting in SETTINGS.items() if setting.type == "boolean"]


class Place:
    """An agent's folder and a project, with what their files say."""

    def __init__(self, root: Path) -> None:
        self.agent, self.project = root / "agent", root / "project"
        self.agent.mkdir()
        self.project.mkdir()
        self.file = self.agent / "config.yml"

    def read(self, text: str | bytes, name: str = "config.yml") -> Settings:
        (self.agent / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_settings(self.agent, self.project, {})

    def one(self, name: str, value: str) -> Settings:
        """Read a file that gives one value."""
        section, _, rest = name.partition(".")
        return self.read(f"{section}:\n  {rest}: {value}\n")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# Forms of YAML ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "mnemopi:\n  bank: x\n  recallLimit: 5\n",
        "base: &base {bank: x, recallLimit: 5}\nmnemopi: *base\n",
        "base: &base {bank: y, recallLimit: 5}\nmnemopi:\n  <<: *base\n  bank: x\n",
        "a: &a {bank: x}\nb: &b {bank: y, recallLimit: 5}\nmnemopi:\n  <<: [*a, *b]\n",
        "mnemopi: {bank: y, recallLimit: 9}\nmnemopi: {bank: x, recallLimit: 5}\n",
        "mnemopi:\n  bank: y\n  bank: x\n  recallLimit: 5\n",
        "%YAML 1.1\n---\nmnemopi:\n  bank: x\n  recallLimit: 5\n",
        "\ufeffmnemopi:\r\n  bank: x\r\n  recallLimit: 5\r\n",
        '{"mnemopi": {"bank": "x", "recallLimit": 5.0}}',
    ],
)
def test_every_form_of_a_mapping_is_read(place: Place, text: str) -> None:
    found = place.read(text)
    assert (found.get("mnemopi.bank"), found.get("mnemopi.recallLimit"), found.warnings) == ("x", 5, ())


def test_the_last_of_two_sections_counts_alone(place: Place) -> None:
    found = place.read("mnemopi: {bank: x}\nmnemopi: {recallLimit: 5}\n")
    assert (found.get("mnemopi.bank"), found.get("mnemopi.recallLimit")) == (None, 5)


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        ("mnemopi.recallLimit: 5\n", 1, "mnemopi.recallLimit"),
        ("memory.backend: mnemopi\n", 1, "memory.backend"),
        ("theme: x\n'mnemopi.scoping': global\n", 2, "mnemopi.scoping"),
        ("hindsight.nothing: 5\n", 1, "hindsight.nothing"),
        ("'mnemopi.a b': 5\n", 1, "a name"),
    ],
)
def test_a_flat_name_is_ignored_with_a_warning(place: Place, text: str, line: int, shown: str) -> None:
    """D03."""
    found = place.read(text)
    section = text.split(".")[0].split("'")[-1].strip()
    assert found.warnings == (
        f"{place.file}, line {line}: {shown} is ignored, by the agent too; nest it: {section}: and the rest below it",
    )
    assert [row for row in found.table() if row.origin != "default"] == []


def test_a_dotted_name_below_its_section_is_unknown(place: Place) -> None:
    """D03."""
    found = place.read("mnemopi:\n  recall.limit: 5\n")
    (warning,) = found.warnings
    assert warning.startswith(f"{place.file}, line 2: mnemopi.recall.limit is not a known setting")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mnemosyne: {bank: old, recallLimit: 3}", {"mnemopi.bank": "old", "mnemopi.recallLimit": 3}),
        ("mnemosyne: {bank: old, recallLimit: 3}\nmnemopi: {bank: new}", {"mnemopi.bank": "new"}),
        ("memory: {backend: mnemosyne}", {"memory.backend": "mnemopi"}),
        ("hindsight: {agentName: old}", {"hindsight.bankId": "old"}),
        ("hindsight: {agentName: old, bankId: new}", {"hindsight.bankId": "new"}),
        ("hindsight: {agentName: omp}", {}),
        ("hindsight: {agentName: ''}", {}),
        ("hindsight: {dynamicBankId: true}", {"hindsight.scoping": "per-project"}),
        ("hindsight: {dynamicBankId: true, scoping: global}", {"hindsight.scoping": "global"}),
        ("hindsight: {dynamicBankId: false}", {}),
        ("hindsight: {dynamicBankId: 'true'}", {}),
        ("hindsight: 5\nmemory: [5]\nmnemosyne: 5", {}),
    ],
)
def test_names_of_former_releases_mean_what_the_agent_makes_of_them(
    place: Place, text: str, found: dict[str, object]
) -> None:
    read = place.read(text)
    assert {row.name: row.value for row in read.table() if row.origin != "default"} == found
    assert not any("not a known setting" in warning for warning in read.warnings)


# Values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("memory.backend", "off", "off"),
        ("mnemopi.bank", "no", "no"),
        ("mnemopi.bank", "yes", "yes"),
        ("mnemopi.bank", "on", "on"),
        ("mnemopi.bank", "2026-06-01", "2026-06-01"),
        ("mnemopi.bank", "1_000", "1_000"),
        ("mnemopi.bank", "'null'", "null"),
        ("mnemopi.bank", "'007'", "007"),
        ("mnemopi.bank", "!!str 7", "7"),
        ("mnemopi.bank", "!x y", "y"),
        ("mnemopi.dbPath", "' x '", " x "),
        ("hindsight.apiUrl", "''", ""),
        ("mnemopi.autoRecall", "False", False),
        ("mnemopi.recallLimit", "0x10", 16),
        ("mnemopi.recallLimit", "0o17", 15),
        ("mnemopi.recallLimit", "010", 10),
        ("mnemopi.recallLimit", "+7", 7),
        ("mnemopi.recallLimit", "1e1", 10),
        ("mnemopi.recallLimit", "2.5", 2.5),
        ("hindsight.recallTypes", "[world, opinion]", ("world", "opinion")),
        ("hindsight.recallTypes", "[]", ()),
    ],
)
def test_values_have_their_yaml_1_2_meaning(place: Place, name: str, text: str, value: object) -> None:
    found = place.one(name, text)
    assert found.get(name) == value
    assert type(found.get(name)) is type(value)
    assert found.origin(name) == f"{place.file}:2"
    assert found.warnings == ()


@pytest.mark.claim("C-02")
@pytest.mark.parametrize("empty", ["", "~", "null"])
def test_an_empty_value_is_what_the_agent_makes_of_it(place: Place, empty: str) -> None:
    """D05: nothing is no value of its own, but 0, off, no text or no list."""
    lines = {name: f"  {name.partition('.')[2]}: {empty}\n" for name in SETTINGS if name != "memory.backend"}
    enums = [name for name, setting in SETTINGS.items() if setting.type == "enum"]
    text = "".join(
        f"{section}:\n"
        + "".join(line for name, line in lines.items() if name.startswith(section) and name not in enums)
        for section in ("mnemopi", "hindsight")
    )
    found = place.read(text)
    assert found.warnings == ()
    local, remote = mnemopi_config(found, "/a"), hindsight_config(found)
    assert (local.recall_limit, local.retain_every_n_turns, local.recall_context_turns) == (1, 1, 1)
    assert (local.recall_max_query_chars, local.injection_token_limit) == (256, 256)
    assert {found.get(name) for name in BOOLEANS} == {False}
    assert local.db_path == "/a/memories/mnemopi/mnemopi.db"
    assert (local.bank, local.embedding_model, local.embedding_api_url) == (None, "BAAI/bge-base-en-v1.5", None)
    assert (remote.api_url, remote.configured, remote.api_token, remote.bank_id) == ("", False, None, None)
    assert (remote.bank_id_prefix, remote.bank_mission, remote.retain_context) == ("", "", "omp")
    assert (remote.retain_every_n_turns, remote.recall_max_query_chars, remote.recall_types) == (0, 0, ())
    assert (remote.recall_timeout_ms, remote.request_timeout_ms, remote.retain_timeout_ms) == (30_000, 30_000, 60_000)


@pytest.mark.claim("C-02")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'3'", 3),
        ("' 3 '", 3),
        ("'3.7'", 3.7),
        ("'0x10'", 16),
        ("'0b11'", 3),
        ("'1e1'", 10),
        ("'-5'", -5),
        ("''", 0),
        ("'  '", 0),
        ("!!int '5'", 5),
        ("|\n    3\n", 3),
    ],
)
def test_a_text_that_is_a_number_is_read_as_one(place: Place, text: str, value: float) -> None:
    """D06."""
    for name in NUMBERS:
        found = place.one(name, text)
        assert (found.get(name), found.warnings) == (value, ())
        assert found.origin(name) == f"{place.file}:2"
    assert mnemopi_config(place.one("mnemopi.recallLimit", text), "/a").recall_limit == max(1, math.floor(value))


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("off", True),
        ("no", True),
        ("yes", True),
        ("'false'", True),
        ("'0'", True),
        ("' '", True),
        ("1", True),
        ("[]", True),
        ("{}", True),
        ("0", False),
        ("0.0", False),
        ("''", False),
    ],
)
def test_a_switch_that_is_no_boolean_is_read_as_the_agent_does_with_a_warning(
    place: Place, text: str, taken: bool
) -> None:
    """C02: `autoRetain: off` is on for the agent, so it is on here, and the user is told."""
    for name in BOOLEANS:
        found = place.one(name, text)
        assert found.get(name) is taken
        assert found.warnings == (
            f"{place.file}, line 2: {name} must be true or false; the agent reads this value as {str(taken).lower()}",
        )


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("mnemopi.bank", "007", "007"),
        ("mnemopi.bank", "1.10", "1.10"),
        ("mnemopi.bank", "true", "true"),
        ("hindsight.apiToken", "0123", "0123"),
        ("mnemopi.llmModel", "5", "5"),
    ],
)
def test_a_text_without_quotes_that_is_none_to_the_agent_is_taken_as_written_with_a_warning(
    place: Place, name: str, text: str, value: str
) -> None:
    found = place.one(name, text)
    assert found.get(name) == value
    assert found.warnings == (
        f"{place.file}, line 2: {name} must be a text: put it in quotes; the agent does not read it as a text",
    )


def test_a_number_given_as_a_switch_is_told(place: Place) -> None:
    found = place.one("mnemopi.recallLimit", "true")
    assert found.get("mnemopi.recallLimit") == 1
    assert found.warnings == (
        f"{place.file}, line 2: mnemopi.recallLimit must be a number; the agent reads this value as 1",
    )


@pytest.mark.claim("C-06", "S-11")
@pytest.mark.parametrize(
    ("name", "text", "near"),
    [
        ("hindsight.scoping", "Global", "global"),
        ("mnemopi.scoping", "per-projekt", "per-project"),
        ("mnemopi.scoping", "weird", ""),
        ("mnemopi.scoping", "", ""),
        ("mnemopi.scoping", "~", ""),
        ("hindsight.retainMode", "Last-Turn", "last-turn"),
        ("hindsight.recallBudget", "3", ""),
        ("memory.backend", "mnemopy", "mnemopi"),
        ("memory.backend", "Hindsight", "hindsight"),
        ("memory.backend", "false", ""),
        ("memory.backend", "", ""),
        ("memory.backend", "[mnemopi]", ""),
        ("mnemopi.recallLimit", "many", ""),
        ("mnemopi.recallLimit", "3abc", ""),
        ("mnemopi.recallLimit", "1_000", ""),
        ("mnemopi.recallLimit", "'Infinity'", ""),
        ("mnemopi.recallLimit", ".inf", ""),
        ("mnemopi.recallLimit", "!!int abc", ""),
        ("mnemopi.recallLimit", "{a: 1}", ""),
        ("hindsight.recallTypes", "world", ""),
        ("hindsight.recallTypes", "[world, 3]", ""),
        ("hindsight.recallTypes", "[[a]]", ""),
        ("mnemopi.bank", "[a]", ""),
        ("hindsight.apiUrl", "{a: b}", ""),
    ],
)
def test_an_impossible_value_warns_with_its_line_and_falls_back(
    place: Place, name: str, text: str, near: str, caplog: pytest.LogCaptureFixture
) -> None:
    """C02."""
    found = place.one(name, text)
    (warning,) = found.warnings
    hint = f" (did you mean {near}?)" if near else ""
    assert warning == f"{place.file}, line 2: {name} must be {SETTINGS[name].expected}; its default is used{hint}"
    assert (found.get(name), found.origin(name)) == (SETTINGS[name].default, "default")
    assert [(record.name, record.levelno, record.message) for record in caplog.records] == [
        ("ipy_memory.settings.resolve", logging.WARNING, warning)
    ]


def test_an_unknown_name_of_ours_is_told_and_all_others_are_not_our_business(place: Place) -> None:
    """C02."""
    found = place.read("theme: dark\nmnemopi:\n  recalLimit: 3\n  a b: 4\n? [a, b]\n: c\nmodel: {mnemopi: 4}\n")
    assert found.warnings == (
        f"{place.file}, line 3: mnemopi.recalLimit is not a known setting (did you mean mnemopi.recallLimit?)",
        f"{place.file}, line 4: a name is not a known setting",
    )


@pytest.mark.parametrize("value", ["5", "text", "[5]", "true"])
def test_a_section_that_is_no_mapping_is_told_and_replaces_nothing(place: Place, value: str) -> None:
    found = place.read(f"mnemopi: {value}\nhindsight:\nmemory: {{backend: mnemopi}}\n")
    assert found.get("memory.backend") == "mnemopi"
    assert found.warnings == (f"{place.file}, line 1: mnemopi must be a mapping of settings; it is not used",)


# Files that cannot be used ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"mnemopi:\n  bank: x\n bad: [\n", f", line 3: invalid YAML{FATAL}"),
        (b"mnemopi: {bank: x\n", f", line 2: invalid YAML{FATAL}"),
        (b"mnemopi:\n\tbank: x\n", f", line 2: invalid YAML{FATAL}"),
        (b"a: *nowhere\n", f", line 1: invalid YAML{FATAL}"),
        (b"a: 1\n---\nb: 2\n", f", line 2: invalid YAML{FATAL}"),
        (b"- a\n- b\n", f", line 1: expected a mapping of settings{FATAL}"),
        (b"just text", f", line 1: expected a mapping of settings{FATAL}"),
        (b"a: \x00", f" is not valid YAML{FATAL}"),
        (b'a: "\\UFFFFFFFF"', f" is not valid YAML{FATAL}"),
        (b"[" * 100_000, " is nested too deeply; its settings are not used"),
        (b"a: [" + b"1," * 30_000 + b"]", " holds more than 20000 values; its settings are not used"),
        (b"#" * (1 << 20) + b"\n", " is larger than 1 MiB; its settings are not used"),
    ],
)
def test_a_bad_file_is_one_warning_and_never_fatal(place: Place, content: bytes, said: str) -> None:
    """D06, C02."""
    (place.project / ".omp").mkdir()
    (place.project / ".omp" / "config.yml").write_text("mnemopi: {recallLimit: 3}\n")
    found = place.read(content)
    assert found.warnings == (f"{place.file}{said}",)
    assert found.get("mnemopi.recallLimit") == 3


@pytest.mark.parametrize("content", ["", "# nothing\n", "~\n", "{}\n"])
def test_an_empty_file_says_nothing(place: Place, content: str) -> None:
    assert place.read(content).warnings == ()


def test_bytes_that_are_no_utf_8_are_replaced(place: Place) -> None:
    assert place.read(b"mnemopi:\n  bank: caf\xe9\n").get("mnemopi.bank") == "caf\ufffd"


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "link to a device"])
def test_what_is_no_regular_file_is_not_opened(place: Place, kind: str) -> None:
    match kind:
        case "fifo":
            os.mkfifo(place.file)
        case "folder":
            place.file.mkdir()
        case "link to a device":
            place.file.symlink_to("/dev/zero")
        case "device":
            place.file.symlink_to("/dev/tty")
    found = load_settings(place.agent, place.project, {})
    assert found.warnings == (f"{place.file} is not a regular file; its settings are not used",)


def test_aliases_that_bite_their_tail_end(place: Place) -> None:
    found = place.read("mnemopi: &m\n  <<: *m\n  mnemopi: *m\n  bank: x\nhindsight: &h {recallTypes: &r [*r]}\n")
    assert found.get("mnemopi.bank") == "x"
    assert found.get("hindsight.recallTypes") == ("world", "experience")


def test_merges_that_multiply_are_read_once_each(place: Place) -> None:
    more = (f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 20)}]}}" for n in range(1, 40))
    text = "\n".join(["m0: &m0 {bank: x}", *more, "mnemopi: *m39"])
    assert place.read(text).get("mnemopi.bank") == "x"


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_stops_a_session(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "any"
    (root / ".omp").mkdir(parents=True, exist_ok=True)
    names = ("config.yml", ".omp/settings.json", "opencode.jsonc")
    for name in names:
        (root / name).write_bytes(content)
    found = load_settings(root, root, {})
    assert len(found.table()) == len(SETTINGS)
    found.notes()
    assert {(root / name).read_bytes() for name in names} == {content}


# JSON ---------------------------------------------------------------------------------------------------------------


def read_json(
    tmp_path: Path, text: str, form: Form = "json", *, shared: bool = False
) -> tuple[dict[str, object], list[str]]:
    path = tmp_path / "settings.json"
    path.write_text(text, encoding="utf-8")
    warnings: list[str] = []
    layer = read_file(File(path, form, shared=shared), warnings)
    assert layer is not None
    return {name: (one.value, one.origin.rpartition(":")[2]) for name, one in layer.items()}, [
        warning.removeprefix(str(path)) for warning in warnings
    ]


def test_json_gives_the_same_settings_with_their_lines(tmp_path: Path) -> None:
    """D04."""
    text = (
        '{"theme": {"mnemopi": {"bank": "no"}},\n "mnemopi": {"bank": "\\u00fc \\ud83d\\ude00\u2028",\n'
        '  "recallLimit": "3", "autoRecall": null},\n "hindsight": {"recallTypes": ["world"],\n "debug": true}}'
    )
    assert read_json(tmp_path, text) == (
        {
            "mnemopi.bank": ("ü 😀\u2028", "2"),
            "mnemopi.recallLimit": (3, "3"),
            "mnemopi.autoRecall": (False, "3"),
            "hindsight.recallTypes": (("world",), "4"),
            "hindsight.debug": (True, "5"),
        },
        [],
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mnemopi": {"bank": "x"', ", line 1: invalid JSON; its settings are not used"),
        ('{\n"mnemopi": {"bank": "x",}}', ", line 2: invalid JSON; its settings are not used"),
        ('// no\n{"mnemopi": {}}', ", line 1: invalid JSON; its settings are not used"),
        ("mnemopi: {bank: x}", ", line 1: invalid JSON; its settings are not used"),
        ('{"mnemopi": {"recallLimit": NaN}}', " is not valid JSON; its settings are not used"),
        ('["mnemopi"]', ", line 1: expected a mapping of settings; its settings are not used"),
        ("", ", line 1: invalid JSON; its settings are not used"),
        ('{"a":' * 100_000, " is nested too deeply; its settings are not used"),
    ],
)
def test_bad_json_is_one_warning(tmp_path: Path, text: str, said: str) -> None:
    assert read_json(tmp_path, text) == ({}, [said])


@pytest.mark.parametrize(
    "text",
    [
        '// first\n{"mnemopi": /* a */ {"bank": "x // y, ]",}, // last\n}',
        '/* {"mnemopi": 1} */\n{"mnemopi": {"bank": "x // y, ]" /* , */ , /* } */ }}',
        '\n{"mnemopi": {"bank": "x // y, ]"}}//',
        '\n{"mnemopi": {"bank": "x // y, ]"}, "other": ["\\"//", [1, 2,],],}',
    ],
)
def test_comments_and_last_commas_are_left_out_where_the_agent_allows_them(tmp_path: Path, text: str) -> None:
    """D04."""
    assert read_json(tmp_path, text, "jsonc") == ({"mnemopi.bank": ("x // y, ]", "2")}, [])


@pytest.mark.parametrize("text", ["/* {", '{"mnemopi": "', "," * 300_000, "{,/*" * 200_000, '"' + '\\"' * 400_000])
def test_comments_without_an_end_take_no_time(tmp_path: Path, text: str) -> None:
    found, warnings = read_json(tmp_path, text, "jsonc")
    assert (found, len(warnings)) == ({}, 1)


def test_a_file_of_other_tools_is_only_asked_for_what_we_know(tmp_path: Path) -> None:
    assert read_json(tmp_path, '{"memory": {"theirs": 1}, "hindsight": 5, "mnemopi.x": 1}', shared=True) == ({}, [])
    assert read_json(tmp_path, "{ broken, but not about memories", shared=True) == ({}, [])
    assert read_json(tmp_path, '{"mnemopi": {"recallLimit": "x"}}', shared=True)[1] == [
        ", line 1: mnemopi.recallLimit must be a number; its default is used"
    ]
