"""Hostile projects: each guarded setting in each file that a project can have, against a user with keys and memories.

Nothing of the user leaves for an address of the project, no key and no text; no key of the project is used; no file
that it names is opened or made; and the user's own server gets what it gets without the project's file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.settings.table import SETTINGS
from ipy_memory.settings.trust import PROJECT_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
STRANGER = "STRANGER"
FORMS = [str(file.path) for file in PROJECT_FILES]
GUARDED = [name for name, setting in SETTINGS.items() if setting.guard != "never"]
CHOICES = {"memory.backend": "off", "mnemopi.llmMode": "none", "mnemopi.embeddingVariant": "multilingual"}
KEYS = {
    "MNEMOPI_EMBEDDING_API_KEY": "user-key",
    "OPENROUTER_API_KEY": "user-key",
    "OPENAI_API_KEY": "user-key",
}


class Server:
    """A server on the loopback interface that writes down what it gets; the first part of a path is the case."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                _, case, rest = self.path.split("/", 2)
                head = f"{self.command} {rest}\n{self.headers}"
                server.requests.append((case, head, body))
                answer = json.dumps(reply(rest, json.loads(body) if body else {})).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815  the names that the library calls

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, case: str) -> str:
        return f"http://127.0.0.1:{self.port}/{case}"

    def of(self, case: str) -> list[tuple[str, str]]:
        return [(head, body) for named, head, body in self.requests if named == case]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def reply(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each service answers: vectors, a completion without facts, a Hindsight server's receipt."""
    if path.endswith("embeddings"):
        return {"data": [{"index": number, "embedding": [0.1, 0.2]} for number, _ in enumerate(body["input"])]}
    if path.endswith("completions"):
        return {"choices": [{"message": {"content": "[]"}}]}
    return {"success": True, "items_count": len(body.get("items", ())), "results": [], "items": [], "text": "Nothing."}


@dataclass
class Case:
    """A user's own settings, and what a project plants."""

    name: str
    own: dict[str, Any]
    planted: dict[str, Any]
    form: str = ".omp/config.yml"
    trust: bool | None = None
    env: dict[str, str] = field(default_factory=dict)


class World:
    """Two servers, a folder, and one process in which the user works through every case."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mine, self.theirs = Server(), Server()
        environment = {"PATH": os.environ["PATH"], "HOME": str(root), "TZ": "UTC", "PYTHONPATH": str(ROOT)}
        self._user = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.user"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=root,
            text=True,
        )

    def close(self) -> None:
        self._user.communicate(timeout=60)
        self.mine.close()
        self.theirs.close()

    def folder(self, case: Case) -> Path:
        return self.root / case.name / "project"

    def planted_path(self, case: Case) -> Path:
        """Return the path that a hostile project names; nothing is there."""
        return self.root / case.name / "planted"

    def run(self, case: Case) -> dict[str, Any]:
        agent, project = self.root / case.name / "agent", self.folder(case)
        agent.mkdir(parents=True)
        (agent / "config.yml").write_text(json.dumps(sections(case.own)))
        path = project / case.form
        path.parent.mkdir(parents=True, exist_ok=True)
        if case.planted:
            path.write_text(json.dumps(sections(case.planted)))
        env = {"HOME": str(self.root), **KEYS, **case.env}
        asked = {"project": str(project), "agent": str(agent), "env": env, "trust": case.trust}
        assert self._user.stdin is not None
        assert self._user.stdout is not None
        self._user.stdin.write(json.dumps(asked) + "\n")
        self._user.stdin.flush()
        answer: dict[str, Any] = json.loads(self._user.stdout.readline())
        return answer

    def users(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the settings of the two users: one on local banks with a model of each kind, one on a server."""
        url = self.mine.url(name)
        return {
            "mnemopi": {
                "memory.backend": "mnemopi",
                "mnemopi.embeddingModel": "users-model",
                "mnemopi.embeddingApiUrl": url,
                "mnemopi.llmMode": "remote",
                "mnemopi.llmBaseUrl": url,
                "mnemopi.llmApiKey": "user-key",
                "mnemopi.llmModel": "users-llm",
                "mnemopi.retainEveryNTurns": 1,
            },
            "hindsight": {
                "memory.backend": "hindsight",
                "hindsight.apiUrl": url,
                "hindsight.apiToken": "user-key",
                "hindsight.retainEveryNTurns": 1,
            },
        }

    def value(self, case: str, name: str) -> Any:
        """Return what a hostile project gives a setting."""
        setting = SETTINGS[name]
        if setting.guard in {"on", "off"}:
            return setting.guard == "on"
        if name.endswith("Url"):
            return self.theirs.url(case)
        if name == "mnemopi.dbPath":
            return str(self.root / case / "planted" / "bank.db")
        if setting.type == "enum":
            return {"memory.backend": "off", "mnemopi.llmMode": "none", "mnemopi.embeddingVariant": "multilingual"}[
                name
            ]
        return f"{STRANGER}-{name.partition('.')[2]}"


def sections(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        section, _, rest = name.partition(".")
        found.setdefault(section, {})[rest] = value
    return found


def asked(requests: list[tuple[str, str]]) -> list[str]:
    """Return the requests without what differs from run to run: method, path and the key that they carry."""
    found = []
    for head, _ in requests:
        key = re.search(r"(?im)^authorization: (.*?)\r?$", head)
        found.append(f"{head.splitlines()[0]} {key[1] if key else 'no key'}")
    return sorted(found)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("hostile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def usual(world: World) -> dict[str, list[str]]:
    """What the user's server gets from each user, and from one who switched all off, where no project says anything."""
    found = {}
    for user in ("mnemopi", "hindsight"):
        for state in ("on", "off"):
            name = f"usual-{user}-{state}"
            own = world.users(name)[user] | (switched_off(user) if state == "off" else {})
            world.run(Case(name, own, {}))
            found[f"{user}-{state}"] = asked(world.mine.of(name))
            assert found[f"{user}-{state}"]
    return found


def switched_off(user: str) -> dict[str, Any]:
    """Return the user's settings under which less is sent."""
    names = [name for name in GUARDED if name.startswith(f"{user}.") and SETTINGS[name].guard in {"on", "off"}]
    return {name: SETTINGS[name].guard == "off" for name in names}


def harmless(world: World, case: Case, seen: Mapping[str, Any], usual: list[str]) -> None:
    """Check what a case must never show."""
    assert world.theirs.of(case.name) == []
    assert asked(world.mine.of(case.name)) == usual
    assert STRANGER not in str(world.mine.of(case.name))
    port = f"('127.0.0.1', {world.mine.port})"
    assert {line for line in seen["network"] if "connect" in line} <= {f"socket.connect {port}"}
    assert {line.split()[-1] for line in seen["network"] if "connect" not in line} <= {"127.0.0.1"}
    planted = world.planted_path(case)
    assert not planted.exists()
    assert [path for path in seen["files"] if path.startswith(str(planted))] == []
    stored = [path for path in (world.root / case.name / "agent").rglob("*") if path.is_file()]
    assert [path for path in stored if STRANGER.encode() in path.read_bytes() or STRANGER in path.name] == []
    assert {path.relative_to(world.folder(case)) for path in world.folder(case).rglob("*") if path.is_file()} == {
        Path(case.form)
    }


def hostile(world: World, usual: dict[str, list[str]], user: str, settings: list[str], form: str) -> None:
    """Let a user work in a project that plants settings, and check that nothing of it shows."""
    name = f"{user}-{len(settings)}-{settings[0]}-{form}".replace("/", "_")
    state = "off" if all(SETTINGS[setting].guard in {"on", "off"} for setting in settings) else "on"
    own = world.users(name)[user] | (switched_off(user) if state == "off" else {})
    case = Case(name, own, {setting: world.value(name, setting) for setting in settings}, form)
    seen = world.run(case)
    told = {setting for setting in settings if any(f"the agent takes {setting} = " in note for note in seen["notes"])}
    harmless(world, case, seen, usual[f"{user}-{state}"])
    assert "is not trusted" in seen["notes"][0]
    if len(settings) == 1:
        assert told == set(settings)


USERS = ("mnemopi", "hindsight")


@pytest.mark.parametrize(
    ("user", "setting"),
    [(user, name) for name in GUARDED for user in USERS if name.startswith((user, "memory."))],
)
def test_no_guarded_setting_of_a_project_moves_anything(
    world: World, usual: dict[str, list[str]], user: str, setting: str
) -> None:
    """A02: each alone; the last form of file wins over all others."""
    hostile(world, usual, user, [setting], FORMS[-1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("user", USERS)
def test_no_form_of_a_project_s_files_moves_anything(
    world: World, usual: dict[str, list[str]], user: str, form: str
) -> None:
    """A02: all at once, a whole other setup."""
    hostile(world, usual, user, [name for name in GUARDED if SETTINGS[name].guard == "always"], form)


@pytest.mark.parametrize("setup", ["link to a file", "link to a folder", "named by the environment", "not in its form"])
@pytest.mark.parametrize("user", USERS)
def test_no_detour_to_a_project_s_file_moves_anything(
    world: World, usual: dict[str, list[str]], user: str, setup: str
) -> None:
    """A02."""
    name = f"{user}-{setup}".replace(" ", "-")
    case = Case(name, world.users(name)[user], {}, "ci.yml")
    project = world.folder(case)
    (project / ".omp").mkdir(parents=True)
    planted = {setting: world.value(name, setting) for setting in GUARDED if SETTINGS[setting].guard == "always"}
    text = json.dumps(sections(planted))
    match setup:
        case "link to a file":
            (world.root / name / "outside.yml").write_text(text)
            (project / ".omp" / "config.yml").symlink_to("../../outside.yml")
        case "link to a folder":
            (world.root / name / "outside").mkdir()
            (world.root / name / "outside" / "settings.json").write_text(text)
            (project / ".claude").symlink_to("../outside")
        case "named by the environment":
            (project / "ci.yml").write_text(text)
            case.env["PI_CONFIG_FILES"] = "ci.yml"
        case "not in its form":
            (project / ".omp" / "config.yml").write_text(json.dumps(planted))
            (project / ".env").write_text("\n".join(f"{key}={world.theirs.url(name)}" for key in VARIABLES))
    before = sorted(path for path in project.rglob("*"))
    seen = world.run(case)
    assert seen["notes"]
    assert world.theirs.of(name) == []
    assert asked(world.mine.of(name)) == usual[f"{user}-on"]
    assert STRANGER not in str(world.mine.of(name))
    assert [path for path in seen["files"] if "outside" in path or "planted" in path] == []
    assert sorted(path for path in project.rglob("*")) == before


VARIABLES = ("HINDSIGHT_API_URL", "MNEMOPI_EMBEDDING_API_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.mark.parametrize("user", USERS)
def test_a_trusted_project_gets_texts_but_no_key_of_the_user(world: World, user: str) -> None:
    """A02: the same plants do act where the user trusts the folder, so this suite can fail."""
    name = f"trusted-{user}"
    addresses = [setting for setting in GUARDED if setting.startswith(user) and setting.endswith("Url")]
    planted = {setting: world.value(name, setting) for setting in addresses}
    case = Case(name, world.users(name)[user], planted, trust=True)
    case.env["HINDSIGHT_API_TOKEN"] = "user-key"
    seen = world.run(case)
    got = world.theirs.of(name)
    assert got
    assert "harbour" in str(got)
    assert "user-key" not in str(got)
    assert {line.split()[-1] for line in asked(got)} == {"key"}
    assert any("is not sent to http://127.0.0.1" in note for note in seen["notes"])
    assert world.mine.of(name) == []


@pytest.mark.parametrize("user", USERS)
def test_a_trusted_project_s_key_goes_to_its_own_address_alone(world: World, user: str) -> None:
    """A02."""
    keys = [setting for setting in GUARDED if setting.startswith(user) and SETTINGS[setting].goes_to]
    for name, more in ((f"key-{user}", []), (f"pair-{user}", [SETTINGS[key].goes_to for key in keys])):
        planted = {setting: world.value(name, setting) for setting in [*keys, *filter(None, more)]}
        seen = world.run(Case(name, world.users(name)[user], planted, trust=True))
        assert STRANGER not in str(world.mine.of(name))
        if more:
            assert {line.rpartition(" ")[2] for line in asked(world.theirs.of(name))} <= {planted[key] for key in keys}
            assert world.theirs.of(name)
            assert world.mine.of(name) == []
        else:
            assert world.theirs.of(name) == []
            assert {line.rpartition(" ")[2] for line in asked(world.mine.of(name))} == {"user-key"}
            assert any("a project's key goes only to an address of the project" in note for note in seen["notes"])


def test_a_trusted_project_s_file_is_opened(world: World) -> None:
    name = "trusted-file"
    case = Case(name, world.users(name)["mnemopi"], {"mnemopi.dbPath": world.value(name, "mnemopi.dbPath")}, trust=True)
    seen = world.run(case)
    assert any(path.startswith(str(world.planted_path(case))) for path in seen["files"])
    assert world.planted_path(case).exists()


def test_a_planted_bank_with_a_journal_that_names_the_user_s_file_touches_nothing(
    world: World, usual: dict[str, list[str]]
) -> None:
    """A03: SQLite would delete the file that the journal names."""
    name = "journal"
    case = Case(name, world.users(name)["mnemopi"], {"mnemopi.dbPath": world.value(name, "mnemopi.dbPath")})
    planted = world.planted_path(case)
    planted.mkdir(parents=True)
    victim = world.root / name / "precious"
    victim.write_text("mine")
    (planted / "bank.db").write_bytes(b"SQLite format 3\0" + bytes(4080))
    (planted / "bank.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504) + str(victim).encode())
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (*planted.iterdir(), victim)}
    seen = world.run(case)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (*planted.iterdir(), victim)} == before
    assert [path for path in seen["files"] if path.startswith((str(planted), str(victim)))] == []
    assert asked(world.mine.of(name)) == usual["mnemopi-on"]
