"""Completion of flags, commands, bank names and scopes: from memory and disk, never from the network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from ipy_memory.commands.table import MAGICS, MEMORY
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.notebook.ipython_compat import NAMES
from ipy_memory.scoping.modes import banks_folder, banks_within

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from IPython.core.completer import SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from ipy_memory.commands.grammar import Command
    from ipy_memory.notebook.magics import MemoryMagics

_LINE = re.compile(rf"\s*(?:[\w.\[\]]+\s*=\s*)?%%?(?P<magic>{'|'.join(NAMES)})[ \t]+(?P<rest>.*)\Z")


class Completion:
    """What can stand at the cursor in a line that begins with one of our magics."""

    def __init__(self, magics: MemoryMagics) -> None:
        self.magics = magics
        self._banks_at: tuple[Path, int] | None = None
        self._banks: list[str] = []

    @context_matcher(identifier="ipy_memory.magics")  # type: ignore[untyped-decorator]
    def match(self, context: CompletionContext) -> SimpleMatcherResult:
        """Answer the shell's completer."""
        found = _LINE.match(context.text_until_cursor)
        if not found:
            return {"completions": []}
        *before, word = re.split(r"\s+", found["rest"])
        words = [each for each in self._candidates(found["magic"], before) if each.startswith(word)]
        return {
            "completions": [SimpleCompletion(text=each, type="param") for each in words],
            "matched_fragment": word,
            "suppress": bool(words),
        }

    def _candidates(self, magic: str, before: Sequence[str]) -> Sequence[str]:
        if magic in MAGICS:
            return self._of_command(MAGICS[magic], before)
        if not before:
            return [*MEMORY, "-h"]
        command = MEMORY.get(before[0])
        if command is None:
            return []
        candidates = self._of_command(command, before[1:])
        return [*command.options, *candidates] if len(before) == 1 else candidates

    def _of_command(self, command: Command, before: Sequence[str]) -> Sequence[str]:
        """Return the flags that can still come, or what the flag before the cursor can be."""
        flags = {f"--{flag.name}": flag for flag in command.flags}
        rest = list(before)
        used: set[str] = set()
        while rest:
            flag = flags.get(rest.pop(0))
            if flag is None:
                return []
            used.add(f"--{flag.name}")
            if flag.value is not None:
                if not rest:
                    return self._values(flag.name)
                rest.pop(0)
        return [name for name in flags if name not in used] + ([] if used else ["-h"])

    def _values(self, flag: str) -> Sequence[str]:
        if flag == "bank":
            return self.bank_names()
        if flag == "from":
            names = self.magics.shell.user_ns.items()
            return sorted(name for name, value in names if isinstance(value, str) and not name.startswith("_"))
        return []

    def bank_names(self) -> list[str]:
        """Return the banks of the database folder; looks again only when the folder has changed."""
        try:
            folder = banks_folder(self.magics.database_path())
            key = (folder, folder.stat().st_mtime_ns)
            if key != self._banks_at:
                self._banks = banks_within(folder)
                self._banks_at = key
        except (MemoryToolkitError, OSError):
            return []
        return self._banks


def install(shell: InteractiveShell, magics: MemoryMagics) -> None:
    """Add our completions to the shell's."""
    shell.Completer.custom_matchers.append(Completion(magics).match)


def remove(shell: InteractiveShell) -> None:
    """Take our completions out, those of an earlier import of this module too."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [one for one in matchers if getattr(one, "__module__", None) != __name__]
