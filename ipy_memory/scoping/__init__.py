"""Which banks a session writes and reads, decided from settings and the working directory."""

from __future__ import annotations

from ipy_memory.errors import SettingsError
from ipy_memory.settings.table import SCOPINGS


def check_scoping(scoping: str) -> str:
    """Return a scoping mode, or raise :class:`SettingsError` naming the valid ones."""
    if scoping not in SCOPINGS:
        raise SettingsError("unknown scoping mode", hint=f"one of {', '.join(SCOPINGS)}")
    return scoping
