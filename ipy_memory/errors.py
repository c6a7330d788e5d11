"""The errors of the product: one family, each a sentence the user can act on.

::

    MemoryToolkitError
    ├── SettingsError            a setting has a value it cannot have
    ├── MagicError               a magic was typed wrongly
    ├── ToolInputError           a tool was called with wrong input
    ├── NoBackendError           no memory backend is chosen (or it is not configured)
    ├── NotInitialisedError      the chosen backend has no session state
    ├── NotSupportedError        the backend in use has no such ability
    ├── RecallCancelled          a recall was cancelled by its token
    ├── BankError                something about one bank or its file
    │   ├── BankNameError        a name that no bank can have
    │   ├── BankNotFoundError    no such bank or file
    │   ├── NotABankError        a file that is not a memory bank
    │   ├── CorruptBankError     a damaged file or index
    │   ├── NewerBankError       a bank made by a newer release
    │   ├── OlderBankError       a bank of an older form, which is not read
    │   ├── ReadOnlyBankError    a bank that cannot be written
    │   ├── BusyBankError        another process holds the bank
    │   └── DiskFullError        no room to write
    ├── MemoryNotFoundError      no memory has this id
    ├── EditRefusedError         an edit that would lose text
    │   └── ChangedSinceError    an undo of a memory that was changed again
    ├── PausedError              nothing is stored while memory is paused
    ├── ScopedRecallError        every bank in scope failed (an ExceptionGroup)
    ├── NotStoredError           some items of a retain were not stored
    ├── OutboxError              what waits for a server cannot be kept or read on this machine
    ├── PartlyDoneError          a change of several memories ended in the middle
    ├── CredentialError          a text with a credential was not sent
    ├── EmbeddingError           vectors cannot be computed
    ├── MissingFeatureError      this Python or environment lacks something needed
    └── HindsightError           the remote service answered with an error, or not at all
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHOWN = 500
"""How much of each part the one line shows; the whole message stays in ``message``."""
ASK_AGAIN = "nothing was changed; ask again"
"""What to do after a cancelled recall."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


class MemoryToolkitError(Exception):
    """Base of every error this package raises.

    Parameters
    ----------
    message
        What happened, exactly as a caller (or the real system) would word it.
    where
        The bank, file or URL it happened to; shown in the notebook line only.
    hint
        What to do next; shown in the notebook line only.
    """

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def one_line(self) -> str:
        """Return the error as the one line that a notebook shows."""
        return _one_line(self, self.message, self.where, self.hint)

    def _render_traceback_(self) -> list[str]:
        return [self.one_line()]


def _one_line(error: BaseException, message: str, where: str | None, hint: str | None) -> str:
    line = f"{type(error).__name__}: {_short(message)}"
    if where and where not in message:
        line += f" [{_short(where)}]"
    if hint:
        line += f" – {_short(hint)}"
    return _harmless(line)


def safe_line(text: str) -> str:
    """Return a text that may hold what others wrote as one line, not too long, that steers no terminal."""
    return _harmless(_short(text))


def _harmless(text: str) -> str:
    return _CONTROL.sub(" ", text).encode("utf-8", "replace").decode("utf-8")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class SettingsError(MemoryToolkitError):
    """A setting has a value it cannot have."""


class MagicError(MemoryToolkitError):
    """A magic was typed wrongly."""


class ToolInputError(MemoryToolkitError):
    """A tool was called with an unknown, missing or wrongly typed field."""


class NoBackendError(MemoryToolkitError):
    """No memory backend is chosen, or the chosen one is not configured."""


class NotInitialisedError(MemoryToolkitError):
    """The chosen backend has no session state."""


class NotSupportedError(MemoryToolkitError):
    """The backend in use does not support what was asked for."""


class RecallCancelled(MemoryToolkitError):
    """A recall was cancelled by its token."""


class BankError(MemoryToolkitError):
    """Something about one bank or its file."""


class BankNameError(BankError):
    """A name that no bank can have."""


class BankNotFoundError(BankError):
    """No such bank or bank file."""


class NotABankError(BankError):
    """The file is not a memory bank (not SQLite, or without the tables)."""


class CorruptBankError(BankError):
    """The file or one of its indexes is damaged; it was not touched."""


class NewerBankError(BankError):
    """The bank was made by a release this one does not know; it was not touched."""


class OlderBankError(BankError):
    """The bank lacks what every release that can be read has; it was not touched."""


class ReadOnlyBankError(BankError):
    """The bank cannot be written; recall still works."""


class BusyBankError(BankError):
    """Another process holds the bank longer than the wait allows."""


class DiskFullError(BankError):
    """There was no room to write; what was stored before is untouched."""


class MemoryNotFoundError(MemoryToolkitError):
    """No memory in scope has this id."""


class EditRefusedError(MemoryToolkitError):
    """An edit was refused because it would lose text."""


class ChangedSinceError(EditRefusedError):
    """An edit cannot be undone because the memory was changed again after it.

    Parameters
    ----------
    message
        What happened, without any text of the memory.
    now, former
        The values as they are stored now and as an undo would write them, by column.
    where, hint
        What it happened to, and what to do.
    """

    def __init__(
        self,
        message: str,
        now: Mapping[str, object] | None = None,
        former: Mapping[str, object] | None = None,
        *,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.now = dict(now or {})
        self.former = dict(former or {})


class PausedError(MemoryToolkitError):
    """Something was to be stored while memory is paused."""


class ScopedRecallError(MemoryToolkitError, ExceptionGroup):
    """Every bank in scope failed; holds each bank's own error, in bank order."""

    def __new__(cls, message: str, errors: Sequence[Exception], **_: Any) -> Self:
        """Build the group half; the product's half is set by ``__init__``."""
        return ExceptionGroup.__new__(cls, message, errors)

    def __init__(
        self, message: str, errors: Sequence[Exception], *, where: str | None = None, hint: str | None = None
    ) -> None:
        ExceptionGroup.__init__(self, message, errors)
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def derive(self, excs: Sequence[Exception]) -> ScopedRecallError:  # type: ignore[override]
        """Make the group of the same message over a part of the errors."""
        return ScopedRecallError(self.message, excs, where=self.where, hint=self.hint)


class NotStoredError(MemoryToolkitError):
    """Some items of a retain were not stored; ``failures`` says which and why."""

    def __init__(
        self,
        message: str,
        failures: Sequence[tuple[int, str, Exception]] = (),
        *,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.failures = tuple(failures)


class OutboxError(MemoryToolkitError):
    """The file of memories that wait for a server cannot be written or read."""


class PartlyDoneError(MemoryToolkitError):
    """A change of several memories ended in the middle; the message says what was done and what was not.

    ``done`` is what was done or may have been, for :func:`ipy_memory.explore.selection.restore_all`.
    """

    def __init__(self, message: str, done: object = None, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, where=where, hint=hint)
        self.done = done


class CredentialError(MemoryToolkitError):
    """A text seems to hold a credential and was kept on this machine."""


class EmbeddingError(MemoryToolkitError):
    """Vectors cannot be computed; recall goes on by text."""


class MissingFeatureError(MemoryToolkitError):
    """This Python or environment lacks something that is needed (FTS5, an extra)."""


class HindsightError(MemoryToolkitError):
    """The remote service answered with an error, or not at all.

    Parameters
    ----------
    message
        Exact.
    status_code
        HTTP status, or ``None`` when no answer came.
    details
        The parsed body, or its text.
    unknown
        Whether the server may have carried out the request although no answer came.
    where, hint
        What it happened to, and what to do.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        details: object = None,
        unknown: bool = False,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.status_code = status_code
        self.details = details
        self.unknown = unknown
