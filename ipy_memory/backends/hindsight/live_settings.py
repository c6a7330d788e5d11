"""Which settings a session on a server can change while it lives, and the change itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.errors import SettingsError
from ipy_memory.settings.resolve import hindsight_config

if TYPE_CHECKING:
    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.settings.resolve import HindsightConfig, Settings

FIXED = {
    "api_url": "apiUrl",
    "api_token": "apiToken",
    "bank_mission": "bankMission",
    "retain_mission": "retainMission",
    "request_timeout_ms": "requestTimeoutMs",
    "reflect_timeout_ms": "reflectTimeoutMs",
    "recall_timeout_ms": "recallTimeoutMs",
    "retain_timeout_ms": "retainTimeoutMs",
    "mental_models_enabled": "mentalModelsEnabled",
    "mental_model_auto_seed": "mentalModelAutoSeed",
    "safe_retain": "safeRetain",
}
"""What the connection, the queue or the loaded models are made from when a session begins."""


def follow(backend: HindsightBackend, settings: Settings, cwd: str) -> bool:
    """Let a session go on under other settings from its next call on; tell whether its bank is another one now.

    Parameters
    ----------
    backend
        Of the session. What waits goes to its old bank first.
    settings
        As they are to be.
    cwd
        The session's folder, from which the bank is named.

    Raises
    ------
    SettingsError
        One of them takes effect in another session only; nothing has changed.
    """
    config = hindsight_config(settings)
    _check(backend.config, config)
    moved = backend.follow(settings, cwd)
    backend.config = backend.service.config = config
    return moved


def _check(now: HindsightConfig, wanted: HindsightConfig) -> None:
    for field, name in FIXED.items():
        if getattr(now, field) != getattr(wanted, field):
            raise SettingsError(
                f"hindsight.{name} cannot change while a session lives",
                hint="set it in the agent's settings or the environment, then begin again: %memory use hindsight",
            )
