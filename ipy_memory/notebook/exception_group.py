"""The one line of an error that is a group; IPython alone would print the whole group, and tell no runner of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.errors import ScopedRecallError

if TYPE_CHECKING:
    from types import TracebackType

    from IPython.core.interactiveshell import InteractiveShell

_SHOWN = (ScopedRecallError,)


def install(shell: InteractiveShell) -> None:
    """Show our groups of errors as our other errors, unless somebody else has a handler in the one place for it."""
    if not shell.custom_exceptions:
        shell.set_custom_exc(_SHOWN, _show)  # type: ignore[no-untyped-call]


def remove(shell: InteractiveShell) -> None:
    """Take the handler out, if it is ours."""
    if shell.custom_exceptions == _SHOWN:
        shell.set_custom_exc((), None)  # type: ignore[no-untyped-call]


def _show(
    shell: InteractiveShell,
    kind: type[ScopedRecallError],
    error: ScopedRecallError,
    _trace: TracebackType | None,
    tb_offset: int | None = None,  # noqa: ARG001  IPython gives it by name
) -> None:
    shell._showtraceback(kind, error, error._render_traceback_())
