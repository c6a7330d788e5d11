"""Every setting: name, type, default, allowed values, environment name, help, and who may set it.

No default and no such rule is written elsewhere.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ipy_memory.jscompat import strings as js

Value = str | bool | int | float | tuple[str, ...] | None
Kind = Literal["enum", "string", "boolean", "number", "array"]
Guard = Literal["never", "always", "on", "off"]
"""Which values of a setting a project's files may give only once the user trusts the folder."""

_EXPECTED = {"boolean": "true or false", "number": "a number", "string": "a text", "array": "a list of texts"}

SCOPING_SETTINGS = ("hindsight.scoping", "mnemopi.scoping")
SCOPINGS = ("global", "per-project", "per-project-tagged")
"""The scoping modes both backends know."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    ``label`` and ``description`` are those of the agent's own settings screen, where it shows the setting;
    ``note`` stands in for a missing description. ``env_last`` marks a variable that counts only where no file
    says anything, ``ours`` a setting that the agent does not know, ``empty`` what an empty value means where the
    type does not say it, ``goes_to`` the setting whose address a key is sent to, ``unused`` why it changes nothing.

    ``guard`` says what a project's files may not set by themselves, because it decides where data or keys go, which
    account or file is used, or what is stored: any value, or only one that switches something on or off.
    """

    name: str
    type: Kind
    default: Value = None
    values: tuple[str, ...] = ()
    env: str | None = None
    env_last: bool = False
    credential: bool = False
    label: str | None = None
    description: str | None = None
    note: str = ""
    ours: bool = False
    guard: Guard = "never"
    goes_to: str | None = None
    unused: str = ""
    empty: Literal["by type", "default", "blank"] = "by type"

    def guards(self, value: Value) -> bool:
        """Return whether a project's files may give this value only in a trusted folder."""
        if self.guard in {"on", "off"}:
            return value is (self.guard == "on")
        return self.guard == "always"

    @property
    def help(self) -> str:
        """Return one sentence on what the setting does."""
        return self.description or self.note

    @property
    def expected(self) -> str:
        """Return what a value has to be, in words."""
        return f"one of {', '.join(self.values)}" if self.type == "enum" else _EXPECTED[self.type]

    def read(self, given: object, written: str | None) -> Reading:
        """Return what a value in a settings file means, which is what the agent makes of it.

        Parameters
        ----------
        given
            The value as JSON or YAML has it.
        written
            A single value as it is written in the file.
        """
        wrong = f"must be {self.expected}"
        if given is None and self.empty != "by type":
            return Reading(self.default if self.empty == "default" else "")
        match self.type, given:
            case "boolean", bool():
                return Reading(given)
            case "boolean", None:
                return Reading(False)
            case "boolean", _:
                on = given not in ("", 0)
                return Reading(on, f"{wrong}; the agent reads this value as {str(on).lower()}")
            case "number", str() | bool() | int() | float() | None:
                read = number(js.to_number(given) if isinstance(given, str) else given or 0)
                if read is not None:
                    odd = isinstance(given, bool)
                    return Reading(read, f"{wrong}; the agent reads this value as {read}" if odd else "")
            case "string", None:
                return Reading(None)
            case "string", bool() | int() | float():
                return Reading(written, f"{wrong}: put it in quotes; the agent does not read it as a text")
            case "array", None:
                return Reading(())
            case _ if (value := self.typed(given)) is not None:
                return Reading(value)
        return Reading(self.default, f"{wrong}; its default is used{self._nearest(given)}", usable=False)

    def _nearest(self, given: object) -> str:
        near = difflib.get_close_matches(given.lower(), self.values, n=1) if isinstance(given, str) else []
        return f" (did you mean {near[0]}?)" if near else ""

    def typed(self, given: object) -> Value:
        """Return a value in the form this setting has, or ``None`` where it is no value of the setting."""
        match self.type, given:
            case "boolean", bool():
                return given
            case "number", int() | float() if not isinstance(given, bool):
                return number(given)
            case "string", str():
                return given
            case "enum", str() if given in self.values:
                return given
            case "array", list() | tuple() if all(isinstance(item, str) for item in given):
                return tuple(given)
        return None


class Reading(NamedTuple):
    """What a value in a settings file means, and what is wrong with it; the default where it is not ``usable``."""

    value: Value
    problem: str = ""
    usable: bool = True


class Sourced(NamedTuple):
    """A value and where it comes from; ``project`` marks what a project's own file says."""

    value: Value
    origin: str
    project: bool = False


Layer = Mapping[str, Sourced]
"""The settings that one source gives."""


def number(given: float | str) -> int | float | None:
    """Return a finite number, whole ones as ``int``; ``None`` for anything else."""
    try:
        value = float(given)
        return int(value) if value.is_integer() else value if math.isfinite(value) else None
    except (OverflowError, ValueError):
        return None


_ROWS = (
    Setting(
        "memory.backend",
        "enum",
        "off",
        values=("off", "local", "hindsight", "mnemopi", "sharpshooter"),
        label="Memory Backend",
        description="Off, local summary pipeline, Mnemopi SQLite, Hindsight remote memory, or Sharpshooter",
        guard="always",
    ),
    Setting(
        "mnemopi.dbPath",
        "string",
        label="Mnemopi DB Path",
        description="Optional SQLite DB path. Defaults to the agent memories directory.",
        guard="always",
    ),
    Setting(
        "mnemopi.bank",
        "string",
        label="Mnemopi Bank",
        description="Optional shared bank base name. Per-project modes derive project-local banks from it.",
        guard="always",
    ),
    Setting(
        "mnemopi.scoping",
        "enum",
        "per-project",
        values=SCOPINGS,
        label="Mnemopi Scoping",
        description=(
            "global = one shared bank; per-project = isolated bank per cwd; per-project-tagged = project-local writes"
            " plus global recall visibility"
        ),
    ),
    Setting(
        "mnemopi.embeddingVariant",
        "enum",
        "en",
        values=("en", "multilingual"),
        label="Embedding variant",
        description=(
            "Local embedding model family. en = stronger English model; multilingual = cross-language model. Changing"
            " this rebuilds existing memory embeddings on next start."
        ),
        guard="always",
    ),
    Setting(
        "mnemopi.autoRecall",
        "boolean",
        True,
        label="Mnemopi Auto Recall",
        description="Recall local memories into the first turn of each session",
        guard="on",
    ),
    Setting(
        "mnemopi.autoRetain",
        "boolean",
        True,
        label="Mnemopi Auto Retain",
        description="Retain completed conversation turns into local Mnemopi memory",
        guard="on",
    ),
    Setting(
        "mnemopi.polyphonicRecall",
        "boolean",
        False,
        label="Mnemopi Polyphonic Recall",
        description="Enable 4-voice recall (vector, graph, fact, temporal) fused with reciprocal rank fusion",
        unused="it changes no recall",
    ),
    Setting(
        "mnemopi.enhancedRecall",
        "boolean",
        False,
        label="Mnemopi Enhanced Recall",
        description="Enable the tiered query result cache for repeated and similar recall queries",
        unused="it changes no recall",
    ),
    Setting(
        "mnemopi.proactiveLinking",
        "boolean",
        False,
        label="Mnemopi Proactive Linking",
        description=(
            "Ingest new memories into the episodic graph as they are stored, linking them to related entities and "
            "memories"
        ),
    ),
    Setting(
        "mnemopi.noEmbeddings",
        "boolean",
        False,
        label="Mnemopi Disable Embeddings",
        description="Force deterministic FTS-only recall instead of vector embeddings",
        guard="off",
    ),
    Setting(
        "mnemopi.embeddingModel",
        "string",
        env="MNEMOPI_EMBEDDING_MODEL",
        env_last=True,
        label="Mnemopi Embedding Model",
        description=(
            "Advanced: explicit embedding model id that overrides the variant. Leave empty to use "
            "mnemopi.embeddingVariant."
        ),
        guard="always",
    ),
    Setting(
        "mnemopi.embeddingApiUrl",
        "string",
        label="Mnemopi Embedding API URL",
        description="Optional OpenAI-compatible embedding endpoint passed to Mnemopi",
        guard="always",
        env="MNEMOPI_EMBEDDING_API_URL",
        env_last=True,
    ),
    Setting(
        "mnemopi.embeddingApiKey",
        "string",
        credential=True,
        label="Mnemopi Embedding API Key",
        description="Optional embedding API key passed to Mnemopi",
        guard="always",
        goes_to="mnemopi.embeddingApiUrl",
        env="MNEMOPI_EMBEDDING_API_KEY",
        env_last=True,
    ),
    Setting(
        "mnemopi.llmMode",
        "enum",
        "smol",
        values=("none", "smol", "remote"),
        label="Mnemopi LLM Mode",
        description=(
            "Use no LLM, the online tiny model (the TINY role from /models, else @smol), or a remote OpenAI-"
            "compatible endpoint"
        ),
        guard="always",
    ),
    Setting(
        "mnemopi.llmBaseUrl",
        "string",
        label="Mnemopi LLM Base URL",
        description="Optional OpenAI-compatible LLM endpoint for Mnemopi remote mode",
        guard="always",
    ),
    Setting(
        "mnemopi.llmApiKey",
        "string",
        credential=True,
        label="Mnemopi LLM API Key",
        description="Optional LLM API key for Mnemopi remote mode",
        guard="always",
        goes_to="mnemopi.llmBaseUrl",
    ),
    Setting(
        "mnemopi.llmModel",
        "string",
        label="Mnemopi LLM Model",
        description="Optional LLM model name for Mnemopi remote mode",
        guard="always",
    ),
    Setting("mnemopi.retainEveryNTurns", "number", 4, note="User turns between two automatic retentions; at least 1"),
    Setting(
        "mnemopi.recallLimit", "number", 8, note="Most memories in one answer, after merging the banks; at least 1"
    ),
    Setting(
        "mnemopi.recallContextTurns", "number", 3, note="User turns that the first turn's query is made of; at least 1"
    ),
    Setting("mnemopi.recallMaxQueryChars", "number", 4000, note="Longest automatic query; at least 256"),
    Setting(
        "mnemopi.injectionTokenLimit",
        "number",
        5000,
        note="Room for memory in the instructions, in tokens of about four characters; at least 256",
    ),
    Setting(
        "mnemopi.debug",
        "boolean",
        False,
        note="Log more of what the local engine does",
        unused="this package logs the same without it",
    ),
    Setting(
        "hindsight.apiUrl",
        "string",
        "http://localhost:8888",
        env="HINDSIGHT_API_URL",
        label="Hindsight API URL",
        description="Hindsight server URL (Cloud or self-hosted)",
        guard="always",
        empty="blank",
    ),
    Setting(
        "hindsight.apiToken",
        "string",
        env="HINDSIGHT_API_TOKEN",
        credential=True,
        label="Hindsight API Token",
        description="Bearer token for authenticated Hindsight servers",
        guard="always",
        goes_to="hindsight.apiUrl",
    ),
    Setting(
        "hindsight.bankId",
        "string",
        env="HINDSIGHT_BANK_ID",
        label="Hindsight Bank ID",
        description="Memory bank identifier (default: project name)",
        guard="always",
    ),
    Setting(
        "hindsight.bankIdPrefix",
        "string",
        note="Put before the bank id with a dash; blank for none",
        guard="always",
    ),
    Setting(
        "hindsight.scoping",
        "enum",
        "per-project-tagged",
        values=SCOPINGS,
        env="HINDSIGHT_SCOPING",
        label="Hindsight Scoping",
        description=(
            "global = one shared bank; per-project = isolated bank per cwd; per-project-tagged = shared bank with "
            "project tags so global + project memories merge on recall"
        ),
    ),
    Setting(
        "hindsight.bankMission",
        "string",
        env="HINDSIGHT_BANK_MISSION",
        note="What the bank is for, told to the server when the bank is first used",
        guard="always",
    ),
    Setting(
        "hindsight.retainMission",
        "string",
        note="What the server should keep, told to it when the bank is first used",
        guard="always",
    ),
    Setting(
        "hindsight.autoRecall",
        "boolean",
        True,
        env="HINDSIGHT_AUTO_RECALL",
        label="Hindsight Auto Recall",
        description="Recall memories on the first turn of each session",
        guard="on",
    ),
    Setting(
        "hindsight.autoRetain",
        "boolean",
        True,
        env="HINDSIGHT_AUTO_RETAIN",
        label="Hindsight Auto Retain",
        description="Retain transcript every N turns and at session boundaries",
        guard="on",
    ),
    Setting(
        "hindsight.retainMode",
        "enum",
        "full-session",
        values=("full-session", "last-turn"),
        env="HINDSIGHT_RETAIN_MODE",
        label="Hindsight Retain Mode",
        description="full-session = upsert one document per session, last-turn = chunked",
    ),
    Setting(
        "hindsight.retainEveryNTurns",
        "number",
        3,
        env="HINDSIGHT_RETAIN_EVERY_N_TURNS",
        note="User turns between two automatic retentions",
    ),
    Setting("hindsight.retainOverlapTurns", "number", 2, note="Earlier turns sent along with each last-turn retention"),
    Setting(
        "hindsight.retainContext",
        "string",
        "omp",
        note="The context of items that bring none",
        guard="always",
        empty="default",
    ),
    Setting(
        "hindsight.recallBudget",
        "enum",
        "mid",
        values=("low", "mid", "high"),
        env="HINDSIGHT_RECALL_BUDGET",
        note="How hard the server searches",
    ),
    Setting(
        "hindsight.recallMaxTokens",
        "number",
        1024,
        env="HINDSIGHT_RECALL_MAX_TOKENS",
        note="Most tokens of memories in one answer",
        empty="default",
    ),
    Setting(
        "hindsight.recallContextTurns",
        "number",
        1,
        env="HINDSIGHT_RECALL_CONTEXT_TURNS",
        note="User turns that the first turn's query is made of",
    ),
    Setting(
        "hindsight.recallMaxQueryChars",
        "number",
        800,
        env="HINDSIGHT_RECALL_MAX_QUERY_CHARS",
        note="Longest automatic query; 0 for no limit",
    ),
    Setting("hindsight.recallTypes", "array", ("world", "experience"), note="Kinds of memories to recall"),
    Setting(
        "hindsight.debug",
        "boolean",
        False,
        env="HINDSIGHT_DEBUG",
        note="Log more of what the client does",
        unused="this package logs the same without it",
    ),
    Setting(
        "hindsight.requestTimeoutMs",
        "number",
        30_000,
        env="HINDSIGHT_REQUEST_TIMEOUT_MS",
        note="Longest wait for a request without a limit of its own",
        empty="default",
    ),
    Setting(
        "hindsight.reflectTimeoutMs",
        "number",
        120_000,
        env="HINDSIGHT_REFLECT_TIMEOUT_MS",
        note="Longest wait for a reflection",
        empty="default",
    ),
    Setting(
        "hindsight.recallTimeoutMs",
        "number",
        30_000,
        env="HINDSIGHT_RECALL_TIMEOUT_MS",
        note="Longest wait for a recall",
        empty="default",
    ),
    Setting(
        "hindsight.retainTimeoutMs",
        "number",
        60_000,
        env="HINDSIGHT_RETAIN_TIMEOUT_MS",
        note="Longest wait for a batch to be accepted",
        empty="default",
    ),
    Setting(
        "hindsight.mentalModelsEnabled",
        "boolean",
        True,
        label="Hindsight Mental Models",
        description=(
            "Read curated reflect summaries (mental models) into developer instructions at boot. Loads existing "
            "models on the bank — does not write. Pair with hindsight.mentalModelAutoSeed to also auto-create the "
            "built-in seed set."
        ),
    ),
    Setting(
        "hindsight.mentalModelAutoSeed",
        "boolean",
        True,
        label="Hindsight Mental Model Auto-Seed",
        description=(
            "At session start, create any built-in mental models (project-conventions, project-decisions, user-"
            "preferences) that do not yet exist on the bank."
        ),
    ),
    Setting(
        "hindsight.mentalModelMaxRenderChars",
        "number",
        16_000,
        note="Room for mental models in the instructions, in characters",
    ),
    Setting(
        "hindsight.mentalModelRefreshIntervalMs",
        "number",
        300_000,
        note="Age at which loaded mental models are read again after a turn; 0 for never",
        ours=True,
    ),
    Setting(
        "hindsight.safeRetain",
        "boolean",
        False,
        note=(
            "Give each batch an id, so that one whose outcome is unknown can be sent once more without storing it twice"
        ),
        ours=True,
    ),
)

SETTINGS: dict[str, Setting] = {row.name: row for row in _ROWS}
"""Name -> setting, in the order in which they are shown."""


def allow_backend(name: str, *, allowed: bool = True) -> None:
    """Let ``memory.backend`` be the name of a further backend, or no longer."""
    row = SETTINGS["memory.backend"]
    others = tuple(value for value in row.values if value != name)
    SETTINGS["memory.backend"] = replace(row, values=(*others, name) if allowed else others)
