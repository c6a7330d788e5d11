"""IPython hands our magics their text as typed."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from ipy_memory.notebook import ipython_compat


class _Shell:
    def __init__(self) -> None:
        self.input_transformer_manager = TransformerManager()


SHELL: Any = _Shell()
ipython_compat.install(SHELL)
MANAGER = SHELL.input_transformer_manager


def calls(cell: str) -> list[tuple[Any, ...]]:
    """Return the arguments of every call to the shell's magics in a cell."""
    tree = ast.parse(MANAGER.transform_cell(cell))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [tuple(ast.literal_eval(argument) for argument in node.args) for node in found]


@pytest.mark.claim("N-07")
# From Python 3.12 on no line that has a NUL in it can be read at all.
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=40))
def test_a_line_magic_gets_its_line_as_typed(text: str) -> None:
    cell = f"%recall {text}\nprint(1)\n%recall {text}"
    assert calls(cell)[:2] == [("recall", text), ("recall", text)]


@pytest.mark.claim("N-07")
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60))
def test_a_cell_magic_gets_its_cell_as_typed(text: str) -> None:
    assert calls(f"%%retain --lines\n{text}\n") == [("retain", "--lines", f"{text}\n")]


@pytest.mark.claim("N-07")
@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%recall what is the deploy target?", "what is the deploy target?"),
        ("df = %recall what is it??", "what is it??"),
        ("%recall it's fine?", "it's fine?"),
        ('%recall """ and (', '""" and ('),
        ("%recall C:\\temp\\", "C:\\temp\\"),
        ("%recall\ttabbed  ", "tabbed  "),
        ("%recall", ""),
        (">>> %recall pasted?", "pasted?"),
        ("    %recall indented?", "indented?"),
        ("if True:\n    df['a'] = %recall nested?", "nested?"),
        ("!echo it's\n%recall don't?", "don't?"),
    ],
)
def test_questions_quotes_and_backslashes_are_text(cell: str, text: str) -> None:
    assert ("recall", text) in calls(cell)


@pytest.mark.parametrize("cell", ["%recall?", "%%recall?", "%recall??"])
def test_help_on_the_magic_itself_stays_help(cell: str) -> None:
    assert calls(cell)[0][0].startswith("pinfo")


@pytest.mark.parametrize(
    "cell", ["text = '''\n%recall what?\n'''\n", "x = 7 %recall\n", "print('%recall x')\n", "%recalled it\n", "\n"]
)
def test_other_code_is_left_alone(cell: str) -> None:
    assert MANAGER.transform_cell(cell) == TransformerManager().transform_cell(cell)


@pytest.mark.parametrize("cell", ["%recall x;", "%recall what? ; "])
def test_a_closing_semicolon_also_closes_the_call(cell: str) -> None:
    assert MANAGER.transform_cell(cell).endswith(");\n")


def test_a_terminal_still_waits_for_the_end_of_a_cell_magic() -> None:
    assert MANAGER.check_complete("%%retain\ntext")[0] == "incomplete"
    assert MANAGER.check_complete("%%retain\ntext\n\n")[0] == "complete"
    assert MANAGER.check_complete("%recall it's (what")[0] == "complete"


def test_installing_twice_and_removing_leaves_the_shell_as_it_was() -> None:
    shell: Any = _Shell()
    manager = shell.input_transformer_manager
    before = (list(manager.cleanup_transforms), list(manager.line_transforms), list(manager.token_transformers))
    ipython_compat.install(shell)
    ipython_compat.install(shell)
    assert len(manager.token_transformers) == len(before[2]) + 1
    ipython_compat.remove(shell)
    assert (manager.cleanup_transforms, manager.line_transforms, manager.token_transformers) == before
