"""Which backends there are, by the value of ``memory.backend``, and the choice of one by the settings."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ipy_memory.errors import SettingsError
from ipy_memory.settings.table import SETTINGS, allow_backend

if TYPE_CHECKING:
    from ipy_memory.backends.base import Backend, SessionContext

Opener = Callable[["SessionContext"], "Backend | None"]
"""Makes a session's backend; nothing is opened, made or sent yet. ``None`` where the settings do not suffice."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One backend: its name in sentences, and ``"module:function"`` of its :data:`Opener`, imported on first use."""

    title: str
    opener: str | Opener

    def open(self, context: SessionContext) -> Backend | None:
        """Return a session's backend."""
        if not isinstance(self.opener, str):
            return self.opener(context)
        module, _, name = self.opener.partition(":")
        return cast("Opener", getattr(importlib.import_module(module), name))(context)


_ENTRIES: dict[str, Entry] = {
    "hindsight": Entry("Hindsight", "ipy_memory.backends.hindsight.backend:open_backend"),
    "mnemopi": Entry("Mnemopi", "ipy_memory.backends.mnemopi.session:open_backend"),
}


def names() -> tuple[str, ...]:
    """Return the values of ``memory.backend`` for which the tools exist."""
    return tuple(_ENTRIES)


def title(name: str) -> str:
    """Return a backend's name in sentences."""
    return _ENTRIES[name].title if name in _ENTRIES else name


def register(name: str, title: str, opener: str | Opener) -> None:
    """Add a backend, so that ``memory.backend`` can be set to its name.

    Parameters
    ----------
    name
        The value of ``memory.backend``; a plain word.
    title
        Its name in sentences.
    opener
        A function of a :class:`~ipy_memory.backends.base.SessionContext`, or ``"module:function"`` to import it on
        first use.

    Raises
    ------
    SettingsError
        The name is taken, or is not a plain word.
    """
    if name in SETTINGS["memory.backend"].values or not name.isidentifier():
        raise SettingsError(f"the backend name {name!r} is taken or not a plain word", hint="choose another name")
    _ENTRIES[name] = Entry(title, opener)
    allow_backend(name)


def unregister(name: str) -> None:
    """Remove a backend that :func:`register` added."""
    if name in ("hindsight", "mnemopi"):
        raise SettingsError(f"the backend {name} is built in", hint="only registered backends can be removed")
    if _ENTRIES.pop(name, None) is not None:
        allow_backend(name, allowed=False)


def resolve_backend(context: SessionContext) -> Backend | None:
    """Return the backend that the settings choose, or ``None``; nothing is opened, made or sent yet."""
    entry = _ENTRIES.get(str(context.settings.get("memory.backend")))
    return entry.open(context) if entry is not None else None
