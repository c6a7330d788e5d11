"""The settings in force and where each comes from: defaults, configuration files, environment, this session.

Files are read, never written. A file that cannot be used, and a value that a setting cannot have, is one warning
with its line; it never stops anything and never repeats what the file says.
"""

from __future__ import annotations

import difflib
import logging
import math
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from ipy_memory.errors import SettingsError
from ipy_memory.js import WHITESPACE, lower, trim
from ipy_memory.redact import redact
from ipy_memory.settings_file import read_file
from ipy_memory.settings_table import SETTINGS, Layer, Setting, Sourced, Value, number

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


class SettingRow(NamedTuple):
    """One line of a status display; credentials are masked."""

    name: str
    value: Value
    origin: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force (C-02); a change in the session makes a new one.

    ``warnings`` says what was passed over, in reading order.
    """

    files: tuple[Layer, ...] = field(default=(), repr=False)
    environment: Layer = field(default_factory=dict, repr=False)
    session: Layer = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()

    def get(self, name: str) -> Any:
        """Return the value in force."""
        return self._find(name).value

    def origin(self, name: str) -> str:
        """Return where the value comes from: ``default``, ``<file>:<line>``, ``environment NAME`` or ``session``."""
        return self._find(name).origin

    def table(self) -> list[SettingRow]:
        """Return every setting with its value and origin; a credential shows as ``(set)`` (E-03)."""
        return [SettingRow(name, _masked(SETTINGS[name], self.get(name)), self.origin(name)) for name in SETTINGS]

    def with_overrides(self, overrides: Mapping[str, object]) -> Settings:
        """Return the settings with values set for this session; ``None`` takes one back.

        Raises
        ------
        SettingsError
            If a name is unknown or a value is none the setting can have (S-11).
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
        return Settings(self.files, self.environment, session, self.warnings)

    def _find(self, name: str) -> Sourced:
        setting = _known(name)
        files = [layer[name] for layer in reversed(self.files) if name in layer]
        environment = [self.environment[name]] if name in self.environment else []
        if setting.env_last:
            found = [entry for entry in files if trim(str(entry.value))] + environment
        else:
            found = environment + files
        session = [self.session[name]] if name in self.session else []
        return (session + found + [Sourced(setting.default, "default")])[0]


def load_settings(
    agent_dir: str | Path,
    cwd: str | Path,
    env: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Read the settings of a session (C-02).

    Parameters
    ----------
    agent_dir
        The agent's directory; its ``config.yml``, else ``config.yaml``, is read.
    cwd
        The session's directory; its ``.omp/config.yml`` wins over the agent directory's file.
    env
        Environment variables, which win over files.
    overrides
        What a person sets for this session, which wins over all.
    """
    warnings: list[str] = []
    agent = read_file(Path(agent_dir, "config.yml"), warnings)
    if agent is None:
        agent = read_file(Path(agent_dir, "config.yaml"), warnings)
    project = read_file(Path(cwd, ".omp", "config.yml"), warnings)
    files = tuple(layer for layer in (agent, project) if layer is not None)
    environment = _read_environment(env, warnings)
    for warning in warnings:
        log.warning("%s", warning)
    return Settings(files, environment, {}, tuple(warnings)).with_overrides(overrides or {})


def agent_directory(env: Mapping[str, str]) -> str:
    """Return the agent's directory: ``PI_CODING_AGENT_DIR`` (``~`` is the home), else ``~/.omp/agent`` (C-07)."""
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
        """Return whether there is a server to talk to (R-02)."""
        return bool(self.api_url)


@dataclass(frozen=True, slots=True)
class MnemopiConfig:
    """What a session on the local engine needs, in the words of the ``mnemopi.*`` settings.

    The banks follow from ``bank``, ``scoping`` and the directory: :func:`ipy_memory.scoping.mnemopi.mnemopi_scope`.
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
    """Return the Hindsight side of the settings; numbers are as given, not held to any range (C-09)."""
    blanks = {name: settings.get(f"hindsight.{_camel(name)}") or "" for name in ("bank_id_prefix", "bank_mission")}
    return HindsightConfig(**(_section(HindsightConfig, "hindsight", settings) | blanks))


def mnemopi_config(settings: Settings, agent_dir: str | Path, cwd: str = "") -> MnemopiConfig:
    """Return the local engine's side of the settings (C-05, C-07).

    A relative database path is one of the folder in which the agent works, ``cwd``.
    """
    values = _section(MnemopiConfig, "mnemopi", settings)
    if not trim(values["db_path"] or ""):
        values["db_path"] = str(Path(agent_dir, "memories", "mnemopi", "mnemopi.db"))
    values["db_path"] = posixpath.join(cwd, values["db_path"])
    model = trim(values["embedding_model"] or "")
    values["embedding_model"] = model or EMBEDDING_MODELS[settings.get("mnemopi.embeddingVariant")]
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


def _masked(setting: Setting, value: Value) -> Value:
    if setting.credential and value is not None:
        return "(set)"
    # A key may have been put where none belongs.
    if not isinstance(value, str):
        return value
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
