r"""Everything that reaches into IPython beyond its documented hooks: the part that a new release may break.

Input transformers hand our magics their text as it was typed, a handler shows groups of errors in one line, and
loading and unloading register, replace and put back magics.

IPython itself reads ``%recall what is it?`` as a call for help, joins a line that ends in ``\`` with the next, drops
blanks at the end of a line, and strips prompts such as ``>>>`` out of a cell magic's body.
"""

from __future__ import annotations

import keyword
import re
import tokenize
from typing import TYPE_CHECKING, Any, Self, cast

from IPython.core.inputtransformer2 import TokenTransformBase

from ipy_memory.errors import ScopedRecallError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.magic import Magics

NAMES = ("memory", "recall", "reflect", "retain")
"""The magics whose text is literal."""

_MAGIC = re.compile(rf"%(?P<name>{'|'.join(NAMES)})(?:[ \t](?P<text>.*))?\Z", re.DOTALL)
_MENTIONED = re.compile(rf"%(?:{'|'.join(NAMES)})")
_VARIABLE = re.compile(r"(?:^|\s)--(?:from|frame)(?:=|[ \t]+)([^\W\d]\w*)(?=\s|$)")
_LINES = re.compile(r"[^\n]*\n|[^\n]+\Z")
_CELL = re.compile(rf"%%(?P<name>{'|'.join(NAMES)})(?:[ \t](?P<text>.*))?\Z", re.DOTALL)


def literal_cell(lines: list[str]) -> list[str]:
    """Turn a cell that begins with one of our cell magics into its call, before anything else reads it."""
    cell = whole_lines(lines)
    first = next((index for index, line in enumerate(cell) if line.strip()), None)
    found = None if first is None else _CELL.match(_typed(cell[first]))
    if first is None or found is None:
        return lines
    # An empty body would end in the shell's own usage error, which test runners let pass.
    body = "".join(cell[first + 1 :]) or "\n"
    return [f"get_ipython().run_cell_magic({found['name']!r}, {found['text'] or ''!r}, {body!r})\n"]


# A terminal decides by the leading %% whether a cell is complete; this attribute keeps us out of that decision.
literal_cell.has_side_effects = True  # type: ignore[attr-defined]


def whole_lines(lines: list[str]) -> list[str]:
    """Let a line end at its newline only, in any cell that names our magics: IPython splits at U+2028 and the like."""
    cell = "".join(lines)
    return _LINES.findall(cell) if _MENTIONED.search(cell) else lines


class LiteralLine(TokenTransformBase):
    """One of our line magics, alone or assigned: wins over IPython's own reading of the same line."""

    priority = 1

    def __init__(self, start: tuple[int, int], magic_col: int) -> None:
        super().__init__(start)  # type: ignore[no-untyped-call]
        self.magic_col = magic_col

    @classmethod
    def find(cls, tokens_by_line: list[list[tokenize.TokenInfo]]) -> Self | None:
        """Find the first of our line magics in the cell."""
        for line in tokens_by_line:
            tokens = [token for token in line if token.type not in {tokenize.INDENT, tokenize.DEDENT}]
            at = _magic_at(tokens)
            if at is not None and _MAGIC.match(_rest(tokens[at])):
                return cls(tokens[0].start, tokens[at].start[1])
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """Write the call in place of the magic; one that is neither assigned nor closed by ``;`` shows its result."""
        head = _typed(lines[self.start_line])
        found = _MAGIC.match(head[self.magic_col :])
        if not found:
            raise SyntaxError(head)
        text = found["text"] or ""
        before = head[: self.magic_col]
        call = f"get_ipython().run_line_magic({found['name']!r}, {text!r}{_captured(text) if before else ''})"
        if text.rstrip().endswith(";"):
            call += ";"
        elif not before.strip() and (before or _go_on(lines[self.start_line + 1 :])):
            # The shell shows a result only where it is the last line of a cell: not in loops, branches and functions.
            call = f"display({call})"
        return [*lines[: self.start_line], f"{before}{call}\n", *lines[self.start_line + 1 :]]


def _captured(text: str) -> str:
    """Return a further argument that mentions, and does not read, the variables that flags name.

    A function within another has those of the outer one only where its code mentions them.
    """
    names = [name for name in _VARIABLE.findall(text) if not keyword.iskeyword(name)]
    return "".join(f", {' or '.join(['1', *names])}") if names else ""


def _go_on(lines: list[str]) -> bool:
    """Return whether anything follows but blank lines and comments."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in lines)


def _magic_at(tokens: list[tokenize.TokenInfo]) -> int | None:
    """Return the index of the ``%`` that begins a line or follows its ``=``."""
    if tokens and tokens[0].string == "%":
        return 0
    depth = 0
    for index, token in enumerate(tokens[:-1]):
        if token.string == "=" and depth == 0:
            same_line = tokens[index + 1].start[0] == tokens[0].start[0]
            return index + 1 if tokens[index + 1].string == "%" and same_line else None
        depth += (token.string in {"(", "[", "{"}) - (token.string in {")", "]", "}"})
    return None


def _rest(token: tokenize.TokenInfo) -> str:
    return _typed(token.line.split("\n")[0])[token.start[1] :]


def _typed(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def install(shell: InteractiveShell) -> None:
    """Put the transformers in front of the shell's own; a second call changes nothing."""
    remove(shell)
    manager = shell.input_transformer_manager
    manager.cleanup_transforms.insert(0, literal_cell)
    manager.line_transforms.insert(0, whole_lines)
    manager.token_transformers.insert(0, LiteralLine)


def remove(shell: InteractiveShell) -> None:
    """Take the transformers out, those of an earlier import of this module too."""
    manager = shell.input_transformer_manager
    for transforms in (manager.cleanup_transforms, manager.line_transforms, manager.token_transformers):
        transforms[:] = [transform for transform in transforms if getattr(transform, "__module__", None) != __name__]


_SHOWN = (ScopedRecallError,)


def install_errors(shell: InteractiveShell) -> None:
    """Show our groups of errors as our other errors, unless somebody else has a handler in the one place for it."""
    if not shell.custom_exceptions:
        shell.set_custom_exc(_SHOWN, _show)  # type: ignore[no-untyped-call]


def remove_errors(shell: InteractiveShell) -> None:
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


def set_unobserved(magics: Magics, name: str, value: object) -> None:
    """Set a trait without telling its observers."""
    magics._trait_values[name] = value


def replaced_magics(shell: InteractiveShell) -> dict[str, dict[str, Callable[..., Any]]]:
    """Return the magics of other owners that ours replace: IPython has a ``%recall`` of its own."""
    return {
        kind: {name: shell.find_magic(name, kind) for name in NAMES if name in table}  # type: ignore[no-untyped-call]
        for kind, table in shell.magics_manager.magics.items()
    }


def take_out(shell: InteractiveShell, name: str) -> Any:
    """Take a class of magics out of a shell, and put back what it replaced; ``None`` where it was not there."""
    manager = shell.magics_manager
    magics: Any = manager.registry.pop(name, None)
    if magics is None:
        return None
    for kind, table in manager.magics.items():
        for each in NAMES:
            owner: Any = getattr(table.get(each), "__self__", None)
            if owner is not magics:
                continue
            del table[each]
            if each in magics.replaced[kind]:
                table[each] = magics.replaced[kind][each]
    configurables = cast("list[object]", shell.configurables)
    configurables[:] = [one for one in configurables if one is not magics]
    return magics


def forget_loaded(shell: InteractiveShell, extension: str) -> None:
    """Let a shell load an extension again."""
    if (extensions := shell.extension_manager) is not None:
        extensions.loaded.discard(extension)
