"""Which files hold settings, in which order, and what a project's files may not say by themselves."""

from __future__ import annotations

import itertools
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.settings.resolve import Settings, load_settings
from ipy_memory.settings.table import SETTINGS
from ipy_memory.settings.trust import PROJECT_FILES, read_sources, trust_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES = [str(file.path) for file in PROJECT_FILES]
OTHERS = {
    "boolean": lambda setting: not setting.default,
    "number": lambda setting: (setting.default or 0) + 7,
    "string": lambda setting: "https://stranger.example/x",
    "array": lambda setting: ["opinion"],
    "enum": lambda setting: next(value for value in setting.values if value != setting.default),
}
GUARDED = {name for name, setting in SETTINGS.items() if setting.guard != "never"}
NOW = "2026-06-01T12:00:00.000Z"


def other(name: str) -> Any:
    """Return a value that a setting can have and has not by default."""
    return OTHERS[SETTINGS[name].type](SETTINGS[name])


def written(name: str, value: Any) -> str:
    """Return the text of a file that gives one value; JSON is YAML too."""
    section, _, rest = name.partition(".")
    return json.dumps({section: {rest: value}})


class Place:
    """An agent's folder and a project."""

    def __init__(self, root: Path) -> None:
        self.root, self.agent, self.project = root, root / "agent", root / "project"
        self.agent.mkdir()
        self.project.mkdir()

    def own(self, text: str, name: str = "config.yml") -> None:
        (self.agent / name).write_text(text)

    def says(self, text: str, name: str = ".omp/config.yml") -> Path:
        path = self.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def load(self, env: Mapping[str, str] | None = None, *, trust: bool | None = None, **given: object) -> Settings:
        overrides = {name.replace("__", "."): value for name, value in given.items()}
        return load_settings(self.agent, self.project, env or {}, overrides, trust=trust)

    def trust(self) -> None:
        trust_folder(self.agent, self.project, {}, NOW)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# Order --------------------------------------------------------------------------------------------------------------


@pytest.mark.claim("C-02")
@pytest.mark.parametrize(("weak", "strong"), [*itertools.combinations(FILES, 2)])
def test_of_two_project_files_the_agent_s_order_decides(place: Place, weak: str, strong: str) -> None:
    """D04: as the real agent 18.2.3 answers for each pair."""
    place.own("mnemopi: {recallLimit: 1}")
    place.says(written("mnemopi.recallLimit", 2), weak)
    assert place.load().get("mnemopi.recallLimit") == 2
    path = place.says(written("mnemopi.recallLimit", 3), strong)
    assert (place.load().get("mnemopi.recallLimit"), place.load().origin("mnemopi.recallLimit")) == (3, f"{path}:1")
    place.says(written("mnemopi.recallContextTurns", 5), strong)
    assert (place.load().get("mnemopi.recallLimit"), place.load().get("mnemopi.recallContextTurns")) == (2, 5)


@pytest.mark.parametrize(
    "name",
    [
        ".omp/config.yaml",
        ".omp/settings.yml",
        ".claude/settings.local.json",
        ".vscode/settings.json",
        ".codex/settings.json",
        ".pi/settings.json",
        ".omp/config.json",
        "package.json",
        ".env",
    ],
)
def test_no_other_file_of_a_project_is_read(place: Place, name: str) -> None:
    place.says(written("mnemopi.recallLimit", 3), name)
    assert place.load().get("mnemopi.recallLimit") == 8


def test_files_of_the_folders_above_and_below_are_not_read(place: Place) -> None:
    place.says(written("mnemopi.recallLimit", 3))
    for folder in (place.project / "sub", place.root):
        folder.mkdir(exist_ok=True)
        assert load_settings(place.agent, folder, {}).get("mnemopi.recallLimit") == 8


def test_the_agent_s_own_files_are_asked_in_turn(place: Place) -> None:
    place.own('// old\n{"mnemopi": {"bank": "third",},}', "settings.json")
    assert place.load().get("mnemopi.bank") == "third"
    place.own("mnemopi: {bank: second}", "config.yaml")
    assert place.load().get("mnemopi.bank") == "second"
    place.own("")
    assert place.load().get("mnemopi.bank") is None


def test_files_that_the_environment_names_win_over_the_project(place: Place) -> None:
    home = place.root / "home"
    home.mkdir()
    (home / "mine.yml").write_text("mnemopi: {bank: mine, recallLimit: 4}")
    (place.root / "last.yml").write_text("mnemopi: {recallLimit: 5}")
    place.says("mnemopi: {recallLimit: 3}")
    env = {"HOME": str(home), "PI_CONFIG_FILES": f"~/mine.yml{os.pathsep}../last.yml"}
    found = place.load(env)
    assert (found.get("mnemopi.bank"), found.get("mnemopi.recallLimit"), found.warnings) == ("mine", 5, ())
    (gone,) = place.load({"PI_CONFIG_FILES": "nowhere.yml"}).warnings
    path = place.project / "nowhere.yml"
    assert gone == f"PI_CONFIG_FILES names {path}, which is not there; the agent does not start without it"


# Guard --------------------------------------------------------------------------------------------------------------


def test_what_is_guarded_is_what_decides_where_memories_go() -> None:
    always = {name for name, setting in SETTINGS.items() if setting.guard == "always"}
    addresses = {name for name in SETTINGS if name.endswith(("Url", "Key", "Token", "Path", "Model"))}
    assert addresses <= always
    assert always - addresses == {
        "memory.backend",
        "mnemopi.bank",
        "mnemopi.embeddingVariant",
        "mnemopi.llmMode",
        "hindsight.bankId",
        "hindsight.bankIdPrefix",
        "hindsight.bankMission",
        "hindsight.retainMission",
        "hindsight.retainContext",
    }
    switches = {name: setting.guard for name, setting in SETTINGS.items() if setting.guard in {"on", "off"}}
    assert switches == {
        "mnemopi.autoRecall": "on",
        "mnemopi.autoRetain": "on",
        "mnemopi.noEmbeddings": "off",
        "hindsight.autoRecall": "on",
        "hindsight.autoRetain": "on",
    }
    assert {name for name, setting in SETTINGS.items() if setting.credential} == {
        name for name, setting in SETTINGS.items() if setting.goes_to
    }


@pytest.mark.claim("C-02")
@pytest.mark.parametrize("file", FILES)
def test_each_guarded_setting_of_each_file_waits_for_trust_and_each_other_counts(place: Place, file: str) -> None:
    """A02."""
    switches = {"on": True, "off": False}
    for name, setting in SETTINGS.items():
        value = switches.get(setting.guard, other(name))
        # A switch is only thrown where the user had it the other way.
        place.own(written(name, not value) if setting.guard in switches else "")
        path = place.says(written(name, value), file)
        before, after = place.load(), place.load(trust=True)
        kept = tuple(value) if isinstance(value, list) else value
        # A key goes nowhere without an address beside it.
        assert after.get(name) == (None if setting.goes_to else kept)
        if name in GUARDED:
            assert before.get(name) == (not value if setting.guard in switches else setting.default)
            assert [each.name for each in before.ignored()] == [name]
            assert before.standing.state == "untrusted"
        else:
            assert (before.get(name), before.ignored(), before.notes()) == (kept, [], [])
            assert before.standing.state == "nothing"
            assert before.origin(name) == f"{path}:1"
        assert after.ignored() == []
        path.unlink()


@pytest.mark.parametrize("empty", ["null", '""', "0", "[]"])
def test_an_empty_or_impossible_guarded_value_takes_nothing_away(place: Place, empty: str) -> None:
    place.own('{"memory": {"backend": "hindsight"}, "hindsight": {"apiUrl": "http://mine", "apiToken": "k"}}')
    place.says(f'{{"memory": {{"backend": {empty}}}, "hindsight": {{"apiUrl": {empty}, "apiToken": {empty}}}}}')
    found = place.load()
    assert [found.get(name) for name in ("memory.backend", "hindsight.apiUrl", "hindsight.apiToken")] == [
        "hindsight",
        "http://mine",
        "k",
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mnemosyne: {dbPath: /theirs}", "mnemopi.dbPath"),
        ("memory: {backend: mnemosyne}", "memory.backend"),
        ("hindsight: {agentName: theirs}", "hindsight.bankId"),
    ],
)
def test_names_of_former_releases_are_guarded_too(place: Place, text: str, name: str) -> None:
    place.says(text)
    assert [each.name for each in place.load().ignored()] == [name]
    assert place.load().get(name) == SETTINGS[name].default


def test_an_empty_value_of_the_project_replaces_the_user_s(place: Place) -> None:
    """D05: as the agent has it; what it replaces must not be guarded."""
    place.own("mnemopi: {recallLimit: 7, proactiveLinking: true}")
    place.says("mnemopi:\n  recallLimit:\n  proactiveLinking: ~\n")
    assert (place.load().get("mnemopi.recallLimit"), place.load().get("mnemopi.proactiveLinking")) == (0, False)
    place.says("mnemopi:\nhindsight: 5\n")
    assert place.load().get("mnemopi.recallLimit") == 7


def test_a_switch_is_guarded_only_the_way_that_sends_more(place: Place) -> None:
    place.says('{"mnemopi": {"autoRetain": false, "autoRecall": "", "noEmbeddings": "yes"}}')
    found = place.load()
    assert [found.get(f"mnemopi.{name}") for name in ("autoRetain", "autoRecall", "noEmbeddings")] == [
        False,
        False,
        True,
    ]
    assert found.standing.state == "nothing"
    place.own("mnemopi: {autoRetain: false, noEmbeddings: true}")
    place.says('{"mnemopi": {"autoRetain": "off", "noEmbeddings": null}}')
    found = place.load()
    assert (found.get("mnemopi.autoRetain"), found.get("mnemopi.noEmbeddings")) == (False, True)
    assert {each.name for each in found.ignored()} == {"mnemopi.autoRetain", "mnemopi.noEmbeddings"}


def test_what_the_user_says_too_is_nothing_to_tell(place: Place) -> None:
    place.own("memory: {backend: mnemopi}\nmnemopi: {bank: team}\n")
    place.says("memory: {backend: mnemopi}\nmnemopi: {bank: team, autoRetain: true}\n")
    found = place.load()
    assert (found.standing.state, found.ignored(), found.notes()) == ("untrusted", [], [])
    stronger = place.load({"HINDSIGHT_BANK_ID": "x"}, memory__backend="off")
    assert stronger.ignored() == []


@pytest.mark.claim("C-02")
def test_trust_holds_as_long_as_the_guarded_settings_do(place: Place) -> None:
    path = place.says("mnemopi:\n  bank: team\n  recallLimit: 3\n")
    place.trust()
    assert (place.load().get("mnemopi.bank"), place.load().standing.state) == ("team", "trusted")
    path.write_text("# more\nmnemopi:\n  recallLimit: 4\n  bank: team\ntheme: dark\n")
    assert (place.load().get("mnemopi.bank"), place.load().notes()) == ("team", [])
    path.write_text("mnemopi:\n  bank: theirs\n  recallLimit: 5\n")
    found = place.load()
    assert (found.get("mnemopi.bank"), found.get("mnemopi.recallLimit")) == (None, 5)
    assert found.standing.state == "changed"
    first, second = found.notes()
    assert first == (
        f"the files of {place.project} have changed since it was trusted (2026-06-01): 1 setting of its files, which "
        "the agent follows, is not used here; %memory trust uses them"
    )
    assert second == f"the agent takes mnemopi.bank = theirs ({path}:2); here it is not set"
    path.write_text("mnemopi: {bank: team}\nhindsight: {bankId: more}\n")
    assert place.load().standing.state == "changed"
    path.unlink()
    assert (place.load().standing.state, place.load().notes()) == ("nothing", [])
    place.says('{"mnemopi": {"bank": "team"}}', ".claude/settings.json")
    assert place.load().standing.state == "changed"


def test_trust_is_of_the_folder_itself(place: Place) -> None:
    place.says("mnemopi: {bank: team}")
    place.trust()
    copy, link, below = place.root / "copy", place.root / "link", place.project / "sub"
    for folder in (copy, below):
        (folder / ".omp").mkdir(parents=True)
        (folder / ".omp" / "config.yml").write_text("mnemopi: {bank: team}")
        assert load_settings(place.agent, folder, {}).get("mnemopi.bank") is None
    link.symlink_to(place.project)
    assert load_settings(place.agent, link, {}).get("mnemopi.bank") == "team"
    link.unlink()
    link.symlink_to(copy)
    assert load_settings(place.agent, link, {}).get("mnemopi.bank") is None


def test_the_caller_can_trust_or_refuse_once(place: Place) -> None:
    place.says("mnemopi: {bank: team}")
    assert place.load(trust=True).get("mnemopi.bank") == "team"
    assert place.load().get("mnemopi.bank") is None
    place.trust()
    assert place.load(trust=False).get("mnemopi.bank") is None


def test_a_folder_without_guarded_settings_is_not_listed(place: Place) -> None:
    place.says("mnemopi: {recallLimit: 3}")
    place.trust()
    assert not (place.agent / "ipy_memory").exists()


def test_a_list_that_cannot_be_read_trusts_nobody_and_says_so(place: Place) -> None:
    place.says("mnemopi: {bank: team}")
    place.trust()
    (place.agent / "ipy_memory" / "trust.json").write_text("{")
    found = place.load()
    assert found.get("mnemopi.bank") is None
    assert any("The list of trusted folders cannot be read" in note for note in found.notes())


# Links and other ways out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_link_out_of_the_project_is_read_only_in_a_trusted_folder(place: Place, which: str) -> None:
    outside = place.root / "outside"
    outside.mkdir()
    (outside / "config.yml").write_text("mnemopi: {bank: linked, recallLimit: 3}")
    if which == "folder":
        (place.project / ".omp").symlink_to(outside)
    else:
        (place.project / ".omp").mkdir()
        (place.project / ".omp" / "config.yml").symlink_to(outside / "config.yml")
    os.utime(outside / "config.yml", ns=(0, 0))
    found = place.load()
    assert (found.get("mnemopi.bank"), found.get("mnemopi.recallLimit")) == (None, 8)
    assert found.warnings == (
        f"{place.project}/.omp/config.yml leads out of its project; it is not read unless the folder is trusted",
    )
    place.trust()
    found = place.load()
    assert (found.get("mnemopi.bank"), found.get("mnemopi.recallLimit"), found.warnings) == ("linked", 3, ())
    (outside / "config.yml").write_text("mnemopi: {bank: another}")
    assert (place.load().get("mnemopi.bank"), place.load().standing.state) == (None, "changed")


def test_a_link_within_the_project_is_read(place: Place) -> None:
    place.says("mnemopi: {recallLimit: 3}", "shared.yml")
    (place.project / ".omp").mkdir()
    (place.project / ".omp" / "config.yml").symlink_to("../shared.yml")
    assert place.load().get("mnemopi.recallLimit") == 3


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "huge", "loop"])
def test_an_odd_project_file_is_told_and_holds_nobody_up(place: Place, kind: str) -> None:
    path = place.says("")
    path.unlink()
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "loop":
            path.symlink_to(path)
    for trust in (None, True):
        (said,) = place.load(trust=trust).warnings
        assert said.startswith(str(path))


def test_a_file_that_the_environment_names_in_the_project_is_the_project_s(place: Place) -> None:
    place.says("mnemopi: {bank: theirs, recallLimit: 3}", "ci.yml")
    (place.root / "link.yml").symlink_to(place.project / "ci.yml")
    for named in ("ci.yml", "./ci.yml", str(place.root / "link.yml")):
        env = {"PI_CONFIG_FILES": named}
        assert (place.load(env).get("mnemopi.bank"), place.load(env).get("mnemopi.recallLimit")) == (None, 3)
        assert place.load(env, trust=True).get("mnemopi.bank") == "theirs"


def test_the_agent_s_own_file_is_no_project_s_even_there(place: Place) -> None:
    agent = place.project / ".omp"
    agent.mkdir()
    (agent / "config.yml").write_text("mnemopi: {bank: mine}")
    found = load_settings(agent, place.project, {})
    assert (found.get("mnemopi.bank"), found.standing.state) == ("mine", "nothing")


def test_the_project_is_not_written(place: Place) -> None:
    place.says("mnemopi: {bank: team}")
    before = {path: path.lstat().st_mtime_ns for path in place.project.rglob("*")}
    place.trust()
    place.load()
    read_sources(place.agent, place.project, {}, [])
    assert {path: path.lstat().st_mtime_ns for path in place.project.rglob("*")} == before
