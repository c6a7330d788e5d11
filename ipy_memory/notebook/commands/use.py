"""``%memory use`` and ``%memory scope``: which backend and which banks, for this notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.notebook.commands import command, one_word
from ipy_memory.notebook.parse import Parsed, one_of
from ipy_memory.notebook.specs import BACKENDS
from ipy_memory.settings_table import SCOPINGS

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


@command(
    "use",
    "|".join(BACKENDS),
    "Choose the memory backend for this notebook: a Hindsight server, the local banks (mnemopi), or none.",
    choices=lambda _: BACKENDS,
)
def use(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Choose the backend; the next magic opens its session."""
    from ipy_memory.notebook.result import TextResult

    chosen = one_of(
        "the backend", one_word(parsed, "one backend", "use"), BACKENDS, "; mnemopi is the one in local files"
    )
    magics.close_session()
    magics.backend = chosen
    return TextResult(f"Memory backend of this notebook: {magics.backend}")


@command(
    "scope",
    "|".join(SCOPINGS),
    "Choose which banks are written and read, for this notebook.",
    choices=lambda _: SCOPINGS,
)
def scope(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Choose the scoping; what waits to be sent goes to the old bank first (S-13)."""
    from ipy_memory.inspect.scopes import read, scope_in_force, written
    from ipy_memory.notebook.result import TextResult

    chosen = one_of("the scope", one_word(parsed, "one scope", "scope"), SCOPINGS)
    magics.scope = chosen
    lines = [f"Memory scope of this notebook: {magics.scope}"]
    if row := scope_in_force(magics.session):
        lines += [f"writes: {written(row)}", f"reads: {read(row)}"]
    return TextResult("\n".join(lines))
