"""Variables that flags name, and results of magics in loops, branches and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from ipy_memory.errors import MagicError
from ipy_memory.notebook import ipython_compat

if TYPE_CHECKING:
    from tests.notebook.conftest import Notebook
    from tests.notebook.fakes import FakeSession

LOCAL = {
    "function": """
def store():
    note = "local"
    %retain --from note
store()
""",
    "parameter": """
def store(note):
    %retain --from=note
store("local")
""",
    "assigned": """
def store(note):
    done = %retain --from note
    return done
store("local");
""",
    "quiet": """
def store(note):
    %retain --context x --from note;
store("local")
""",
    "nested function": """
def outer():
    note = "local"
    def inner():
        %retain --from note
    inner()
outer()
""",
    "two functions up": """
def outer(note):
    def middle():
        def inner():
            return_value = %retain --from note
        inner()
    middle()
outer("local")
""",
    "method": """
class Store:
    def store(self, note):
        if note:
            %retain --from note
Store().store("local")
""",
    "class body": """
class Store:
    note = "local"
    %retain --from note
""",
    "generator": """
def store():
    for note in ["local"]:
        %retain --from note
        yield
list(store())
""",
    "coroutine": """
async def store(note):
    %retain --from note
await store("local")
""",
    "recursion": """
def store(depth, note="outer"):
    if depth:
        return store(depth - 1, "local")
    %retain --from note
store(1)
""",
}


@pytest.mark.parametrize("where", LOCAL)
def test_a_flag_takes_the_variable_of_the_code_around_it(notebook: Notebook, session: FakeSession, where: str) -> None:
    """C10: not the notebook's variable of the same name."""
    notebook.run("note = 'of the notebook'")
    ran = notebook.run(LOCAL[where])
    assert ran.error is None, ran.error
    assert [item.content for name, *(items, *_) in session.calls for item in items] == ["local"]
    assert notebook.run("note").result == "of the notebook"


@pytest.mark.parametrize(
    "line",
    ["%recall --from note", "%reflect --from note", "%memory update --from note 716b"],
)
def test_every_command_that_takes_a_text_takes_a_local_one(real: Notebook, line: str) -> None:
    """C10: a local that is not a text is refused, so that which one was taken shows."""
    real.run("note = 'of the notebook'")
    ran = real.run(f"def ask():\n    note = 5\n    {line}\nask()")
    assert isinstance(ran.error, MagicError)
    assert "holds a int" in ran.error.message


def test_a_selection_may_be_local(real: Notebook) -> None:
    """C10: ``--frame`` too."""
    real.run("%retain tea")
    ran = real.run("def end():\n    rows = %memory browse\n    %memory invalidate --frame rows --yes\nend()")
    assert ran.error is None, ran.error
    assert ran.outputs[-1]["text/plain"].startswith("1 memory invalidated")
    assert "rows" not in real.shell.user_ns


def test_the_notebooks_variables_are_seen_from_within_a_function(notebook: Notebook, session: FakeSession) -> None:
    notebook.run("note = 'of the notebook'")
    ran = notebook.run("def store():\n    %retain --from note\nstore()")
    assert ran.error is None
    assert session.calls[0][1][0].content == "of the notebook"
    ran = notebook.run("def store():\n    %retain --from missing\nstore()")
    assert isinstance(ran.error, MagicError)
    assert "no variable missing" in ran.error.message


def test_a_local_variable_is_not_kept_for_the_next_magic(notebook: Notebook) -> None:
    notebook.run("def store(note):\n    %retain --from note\nstore('local')")
    assert isinstance(notebook.run("%retain --from note").error, MagicError)


SHOWN = {
    "loop": ("for q in ('a', 'b', 'c'):\n    %recall --from q", 3),
    "branch": ("if True:\n    %recall a\nelse:\n    %recall b", 1),
    "function": ("def ask():\n    %recall a\nask()\nask()", 2),
    "with": ("import contextlib\nwith contextlib.nullcontext():\n    %recall a", 1),
    "try": ("try:\n    %recall a\nfinally:\n    %retain b", 2),
    "lines": ("%recall a\n%recall b\n%reflect c", 3),
    "then a comment": ("%recall a\n\n# the end", 1),
    "then code": ("%recall a\nx = 1", 1),
    "command": ("for word in 'ab':\n    %memory -h", 2),
    "last": ("%recall a", 1),
    "indented cell": ("    %recall a", 1),
    "assigned in a loop": ("for q in 'ab':\n    x = %recall --from q", 0),
    "assigned before": ("x = %recall a\ny = %recall b", 0),
    "item in a loop": ("found = {}\nfor q in 'ab':\n    found[q] = %recall --from q", 0),
    "quiet in a loop": ("for q in 'ab':\n    %recall --from q;", 0),
    "quiet before": ("%recall a;\n%recall b;", 0),
}


@pytest.mark.parametrize("cell", SHOWN)
def test_a_result_shows_wherever_the_magic_is_unless_it_is_assigned(notebook: Notebook, cell: str) -> None:
    """C10: in loops, branches and functions, and before other lines."""
    code, count = SHOWN[cell]
    ran = notebook.run(code)
    assert ran.error is None, ran.error
    assert len(ran.outputs) == count
    assert all(output["text/plain"] for output in ran.outputs)


def test_a_word_that_cannot_be_a_variable_stays_text(notebook: Notebook) -> None:
    ran = notebook.run("def ask():\n    %recall --from class\nask()")
    assert isinstance(ran.error, MagicError)
    ran = notebook.run("def ask():\n    %recall the flag --from nowhere is text\nask()")
    assert ran.error is None


def test_the_cell_is_still_python_of_as_many_lines() -> None:
    manager = TransformerManager()

    class Shell:
        input_transformer_manager = manager

    ipython_compat.install(Shell)  # type: ignore[arg-type]
    cell = "if a:\n    %recall x\n    # y\nelse:\n    z = %recall --from q\n%recall\n1\n"
    assert manager.transform_cell(cell) == (
        "if a:\n    display(get_ipython().run_line_magic('recall', 'x'))\n    # y\nelse:\n"
        "    z = get_ipython().run_line_magic('recall', '--from q', 1 or q)\n"
        "display(get_ipython().run_line_magic('recall', ''))\n1\n"
    )
