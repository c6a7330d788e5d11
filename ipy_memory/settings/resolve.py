"""The settings in force and where each comes from: defaults, settings files, environment, this session.

Files are read, never written. A file that cannot be used, and a value that a setting cannot have, is one warning
with its line; it never stops anything and never repeats what the file says.

A key goes only where whoever set it wants it: a user's key never to an address that a project chose, a project's key
only to an address of the project.
"""

from __future__ import annotations

import difflib
import logging
import math
import posixpath
import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ipy_memory.errors import SettingsError, safe_line
from ipy_memory.jscompat.strings import WHITESPACE, lower, trim
from ipy_memory.redact import redact
from ipy_memory.settings.table import SETTINGS, Layer, Setting, Sourced, Value, number
from ipy_memory.settings.trust import Standing, read_sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

log = logging.getLogger(__name__)

RECALL_PROMPT_PREAMBLE = (
    "Relevant memories from past conversations (prioritize recent when conflicting). Only use memories that are "
    "directly useful to continue this conversation; ignore the rest:"
)
EMBEDDING_MODELS: Mapping[str, str] = {
    "en": "BAAI/bge-base-en-v1.5",
    "multilingual": "intfloat/multilingual-e5-large",
}

_LEAST: Mapping[str, int] = {
    "retain_every_n_turns": 1,
    "recall_limit": 1,
    "recall_context_turns": 1,
    "recall_max_query_chars": 256,
    "injection_token_limit": 256,
}
_TRUE_WORDS = {"true", "1", "yes"}
_LEADING_INTEGER = re.compile(rf"[{WHITESPACE}]*([+-]?[0-9]+)")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
_URL_REST = re.compile(r"(://[^?#\s]*[?#])\S+")
_ADDRESSES = {setting.goes_to for setting in SETTINGS.values() if setting.goes_to}
_ADDRESS_USER_INFO = re.compile(r"(?<=://)[^/]*@")
_ADDRESS_REST = re.compile(r"([?#]).+", re.DOTALL)


_BRIEF = 80
_SHELL_PART = re.compile(r"(?:^|/)(~(?=/|$)|\$\w+|\$\{\w+\})")
_PORTS = {"http": 80, "https": 443}
_LLM = ("mnemopi.llmBaseUrl", "mnemopi.llmApiKey", "mnemopi.llmModel")
_VECTORS = (
    "mnemopi.embeddingVariant",
    "mnemopi.embeddingModel",
    "mnemopi.embeddingApiUrl",
    "mnemopi.embeddingApiKey",
)


_NOTHING_GUARDED = Standing()


class SettingRow(NamedTuple):
    """One line of a status display; credentials are masked. ``unused`` says why the value changes nothing."""

    name: str
    value: Value
    origin: str
    unused: str = ""

    @property
    def words(self) -> str:
        """The value, and whether it has no effect."""
        return f"{self.value}{f' (no effect: {self.unused})' if self.unused else ''}"


class Ignored(NamedTuple):
    """A setting of the project that does not count here: what the agent takes, from where, and what holds instead.

    The values are as they may be shown.
    """

    name: str
    agent: str
    origin: str
    here: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force; a change in the session makes a new one.

    Attributes
    ----------
    warnings
        What was passed over, in reading order.
    standing
        Whether what the project's files say of guarded settings counts.
    """

    files: tuple[Layer, ...] = field(default=(), repr=False)
    environment: Layer = field(default_factory=dict, repr=False)
    session: Layer = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    standing: Standing = _NOTHING_GUARDED
    as_agent: tuple[Layer, ...] = field(default=(), repr=False)
    """The files' layers as the agent takes them, which trusts every project."""

    def get(self, name: str) -> Any:
        """Return the value in force."""
        return self._find(name).value

    def origin(self, name: str) -> str:
        """Return where the value comes from: ``default``, ``<file>:<line>``, ``environment NAME`` or ``session``."""
        return self._find(name).origin

    def table(self) -> list[SettingRow]:
        """Return every setting with its value and origin; a credential shows as ``(set)``."""
        rows = []
        for name, setting in SETTINGS.items():
            found = self._find(name)
            unused = self._unused(name) if found.origin != "default" else ""
            rows.append(SettingRow(name, _masked(setting, found.value), found.origin, unused))
        return rows

    def ignored(self) -> list[Ignored]:
        """Return what the project's files say and the agent follows, but is not used here without trust."""
        if self.standing.counts:
            return []
        agent = replace(self, files=self.as_agent, standing=Standing())
        found = []
        for name in dict.fromkeys(each.name for each in self.standing.guarded):
            here, there = self._find(name), next(agent._candidates(SETTINGS[name]))
            if there.project and there.value != here.value:
                found.append(Ignored(name, shown_value(name, there.value), there.origin, shown_value(name, here.value)))
        return found

    def notes(self) -> list[str]:
        """Return what the user should know of the settings: what is ignored, withheld or read in another way."""
        return [*self._trust_notes(), *self._key_notes(), *self._path_notes(), *self.warnings]

    def _trust_notes(self) -> Iterator[str]:
        ignored = self.ignored()
        if not ignored:
            return
        number, folder = len(ignored), self.standing.folder
        count = f"{number} setting{'' if number == 1 else 's'}"
        if self.standing.state == "changed":
            why = f"the files of {folder} have changed since it was trusted ({self.standing.since[:10]})"
        else:
            why = f"the folder {folder} is not trusted"
        yield (
            f"{why}: {count} of its files, which the agent follows, {'is' if number == 1 else 'are'} not used here; "
            "%memory trust uses them"
        )
        for name, agent, origin, here in ignored:
            yield f"the agent takes {name} = {agent} ({origin}); here it is {here}"

    def _key_notes(self) -> Iterator[str]:
        for name, setting in SETTINGS.items():
            if setting.goes_to is None:
                continue
            address = self._find(setting.goes_to)
            for key in self._candidates(setting):
                if self._may_go(key, setting.goes_to):
                    break
                if not key.value:
                    continue
                place = origin_of(address.value) or "no address"
                if key.project:
                    yield f"{name} ({key.origin}) is not used: a project's key goes only to an address of the project"
                else:
                    yield (
                        f"{name} ({key.origin}) is not sent to {safe_line(place)}, which the project chose "
                        f"({address.origin}); set {setting.goes_to} yourself to send it there"
                    )

    def _path_notes(self) -> Iterator[str]:
        path = self._find("mnemopi.dbPath")
        if isinstance(path.value, str) and (found := _SHELL_PART.search(path.value)):
            yield (
                f"mnemopi.dbPath ({path.origin}) holds {found[1]}, which the agent takes as the name of a folder; "
                "write the whole path"
            )

    def with_overrides(self, overrides: Mapping[str, object]) -> Settings:
        """Return the settings with values set for this session; ``None`` takes one back.

        Raises
        ------
        SettingsError
            If a name is unknown or a value is none the setting can have.
        """
        session = dict(self.session)
        for name, given in overrides.items():
            setting = _known(name)
            session.pop(name, None)
            if given is not None:
                value = setting.typed(given)
                if value is None:
                    raise SettingsError(
                        f"{name} must be {setting.expected}", hint=f"its default is {setting.default!r}"
                    )
                session[name] = Sourced(value, "session")
        return replace(self, session=session)

    def engine(self) -> tuple[Value | bool, ...]:
        """Return what the local engine is made with; a change needs another engine."""
        names = ("mnemopi.noEmbeddings", *_VECTORS, "mnemopi.llmMode", *_LLM)
        return *(self.get(name) for name in names), self.user_keys_may_go("mnemopi.embeddingApiUrl")

    def user_keys_may_go(self, address: str) -> bool:
        """Return whether keys of the user may be sent to the address in force of a setting."""
        return self._may_go(Sourced(None, ""), address)

    def _find(self, name: str) -> Sourced:
        setting = _known(name)
        found = self._candidates(setting)
        if setting.goes_to is None:
            return next(found)
        # The last one, the default, holds no key.
        return next(one for one in found if not one.value or self._may_go(one, setting.goes_to))

    def _candidates(self, setting: Setting) -> Iterator[Sourced]:
        """Yield what the sources say, the one that wins first."""
        name = setting.name
        files = [layer[name] for layer in reversed(self.files) if name in layer]
        environment = [self.environment[name]] if name in self.environment else []
        if name in self.session:
            yield self.session[name]
        if setting.env_last:
            yield from (entry for entry in files if trim(str(entry.value or "")))
            yield from environment
        else:
            yield from environment
            yield from files
        yield Sourced(setting.default, "default")

    def _may_go(self, key: Sourced, address: str) -> bool:
        """Return whether a key may be sent to the address in force: it is from whom the key is, or is theirs too."""
        found = self._find(address)
        if key.project or not found.project:
            return key.project == found.project
        theirs = next(one for one in self._candidates(SETTINGS[address]) if not one.project)
        return origin_of(found.value) is not None and origin_of(found.value) == origin_of(theirs.value)

    def _unused(self, name: str) -> str:
        if name in _LLM and self.get("mnemopi.llmMode") != "remote":
            return "mnemopi.llmMode is not remote"
        if name in _VECTORS and self.get("mnemopi.noEmbeddings"):
            return "mnemopi.noEmbeddings switches embeddings off"
        if name == "mnemopi.embeddingVariant" and trim(self.get("mnemopi.embeddingModel") or ""):
            return "mnemopi.embeddingModel names a model"
        return SETTINGS[name].unused


def origin_of(address: Value) -> str | None:
    """Return scheme, host and port of an address; ``None`` if it has none."""
    try:
        parts = urlsplit(str(address or "").strip())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.scheme and parts.hostname else None


def load_settings(
    agent_dir: str | Path,
    cwd: str | Path,
    env: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    *,
    trust: bool | None = None,
) -> Settings:
    """Read the settings of a session.

    Parameters
    ----------
    agent_dir
        The agent's directory; its ``config.yml``, else ``config.yaml``, else ``settings.json``, is read.
    cwd
        The session's directory; its project files win over the agent directory's file. Of guarded settings they
        count only in a trusted folder.
    env
        Environment variables, which win over files.
    overrides
        What the user sets for this session, which wins over all.
    trust
        Whether the directory is trusted; by default what the user's list of trusted folders says.
    """
    warnings: list[str] = []
    sources = read_sources(agent_dir, cwd, env, warnings, trust=trust)
    environment = _read_environment(env, warnings)
    for warning in warnings:
        log.warning("%s", warning)
    found = Settings(sources.in_force, environment, {}, tuple(warnings), sources.standing, sources.layers)
    return found.with_overrides(overrides or {})


def agent_directory(env: Mapping[str, str]) -> str:
    """Return the agent's directory: ``PI_CODING_AGENT_DIR`` (``~`` is the home), else ``~/.omp/agent``."""
    home = env.get("HOME") or str(Path.home())
    named = trim(env.get("PI_CODING_AGENT_DIR", "")) or "~/.omp/agent"
    return str(Path(home + named[1:] if named == "~" or named.startswith("~/") else named).absolute())


@dataclass(frozen=True, slots=True)
class HindsightConfig:
    """What a Hindsight session needs, in the words of the ``hindsight.*`` settings."""

    api_url: str = field(repr=False)
    api_token: str | None = field(repr=False)
    bank_id: str | None
    bank_id_prefix: str
    scoping: str
    bank_mission: str
    retain_mission: str | None
    auto_recall: bool
    auto_retain: bool
    retain_mode: str
    retain_every_n_turns: float
    retain_overlap_turns: float
    retain_context: str
    recall_budget: str
    recall_max_tokens: float
    recall_types: tuple[str, ...]
    recall_context_turns: float
    recall_max_query_chars: float
    debug: bool
    request_timeout_ms: float
    reflect_timeout_ms: float
    recall_timeout_ms: float
    retain_timeout_ms: float
    mental_models_enabled: bool
    mental_model_auto_seed: bool
    mental_model_refresh_interval_ms: float
    mental_model_max_render_chars: float
    safe_retain: bool
    recall_prompt_preamble: str = RECALL_PROMPT_PREAMBLE

    @property
    def configured(self) -> bool:
        """Return whether there is a server to talk to."""
        return bool(self.api_url)


@dataclass(frozen=True, slots=True)
class MnemopiConfig:
    """What a session on the local engine needs, in the words of the ``mnemopi.*`` settings.

    The banks follow from ``bank``, ``scoping`` and the directory: :func:`ipy_memory.scoping.modes.mnemopi_scope`.
    """

    db_path: str
    bank: str | None
    scoping: str
    auto_recall: bool
    auto_retain: bool
    polyphonic_recall: bool
    enhanced_recall: bool
    proactive_linking: bool
    no_embeddings: bool
    embedding_model: str
    embedding_api_url: str | None = field(repr=False)
    embedding_api_key: str | None = field(repr=False)
    embedding_user_keys: bool
    llm_mode: str
    llm_base_url: str | None = field(repr=False)
    llm_api_key: str | None = field(repr=False)
    llm_model: str | None
    retain_every_n_turns: int
    recall_limit: int
    recall_context_turns: int
    recall_max_query_chars: int
    injection_token_limit: int
    debug: bool


def hindsight_config(settings: Settings) -> HindsightConfig:
    """Return the Hindsight side of the settings; numbers are as given, not held to any range."""
    blanks = {name: settings.get(f"hindsight.{_camel(name)}") or "" for name in ("bank_id_prefix", "bank_mission")}
    return HindsightConfig(**(_section(HindsightConfig, "hindsight", settings) | blanks))


def mnemopi_config(settings: Settings, agent_dir: str | Path, cwd: str = "") -> MnemopiConfig:
    """Return the local engine's side of the settings.

    A relative database path is one of the folder in which the agent works, ``cwd``.
    """
    values = _section(MnemopiConfig, "mnemopi", settings)
    if not trim(values["db_path"] or ""):
        values["db_path"] = str(Path(agent_dir, "memories", "mnemopi", "mnemopi.db"))
    values["db_path"] = posixpath.join(cwd, values["db_path"])
    model = trim(values["embedding_model"] or "")
    values["embedding_model"] = model or EMBEDDING_MODELS[settings.get("mnemopi.embeddingVariant")]
    values["embedding_user_keys"] = settings.user_keys_may_go("mnemopi.embeddingApiUrl")
    for name, least in _LEAST.items():
        values[name] = max(least, math.floor(values[name]))
    return MnemopiConfig(**values)


def _section(config: type, section: str, settings: Settings) -> dict[str, Any]:
    names = {item.name: f"{section}.{_camel(item.name)}" for item in fields(config)}
    return {name: settings.get(full) for name, full in names.items() if full in SETTINGS}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _known(name: str) -> Setting:
    if name in SETTINGS:
        return SETTINGS[name]
    near = difflib.get_close_matches(name, SETTINGS, n=1)
    raise SettingsError(
        "no such setting",
        where=name[:80],
        hint=f"did you mean {near[0]}?" if near else "`session.settings.table()` lists them all",
    )


def shown_value(name: str, value: Value) -> str:
    """Return a setting's value in a few words: no credential, nothing long, nothing that steers a terminal."""
    shown = _masked(SETTINGS[name], value)
    text = "not set" if shown is None or shown == "" else safe_line(str(shown))
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…"


def _masked(setting: Setting, value: Value) -> Value:
    if setting.credential and value is not None:
        return "(set)"
    # A key may have been put where none belongs.
    if not isinstance(value, str):
        return value
    if setting.name in _ADDRESSES:
        value = _ADDRESS_REST.sub(r"\1(set)", _ADDRESS_USER_INFO.sub("(set)@", value))
    return redact(_URL_REST.sub(r"\1(set)", _USER_INFO.sub("(set)@", value)))


def _read_environment(env: Mapping[str, str], warnings: list[str]) -> Layer:
    found: dict[str, Sourced] = {}
    for setting in SETTINGS.values():
        if setting.env is None or setting.env not in env:
            continue
        value = _from_text(setting, env[setting.env])
        if value is not None:
            found[setting.name] = Sourced(value, f"environment {setting.env}")
        elif trim(env[setting.env]):
            warnings.append(f"{setting.env} is passed over: it must be {setting.expected}")
    return found


def _from_text(setting: Setting, text: str) -> Value:
    if setting.type == "boolean":
        return lower(text) in _TRUE_WORDS
    if setting.type == "number":
        leading = _LEADING_INTEGER.match(text)
        return number(leading.group(1)) if leading else None
    return setting.typed(text) if setting.type == "enum" else trim(text) or None
