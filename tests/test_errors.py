"""Every error says what to do: whoever makes one gives it a hint, which reaches the one line that is shown."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import ipy_memory
from ipy_memory import errors

HOUSE = Path(ipy_memory.__file__).parent
CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.MemoryToolkitError)
}


def made(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield where an error of the family is made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in CLASSES:
                yield node


def has_hint(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    hint = given.get("hint")
    parts = [hint.body, hint.orelse] if isinstance(hint, ast.IfExp) else [hint]
    return all(part is not None and not (isinstance(part, ast.Constant) and not part.value) for part in parts)


def test_every_error_is_made_with_a_hint():
    calls = [(path, call) for path in HOUSE.rglob("*.py") for call in made(ast.parse(path.read_text("utf-8")))]
    assert calls
    assert not [f"{path.relative_to(HOUSE)}:{call.lineno}" for path, call in calls if not has_hint(call)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("BankError('a', hint='b')", True),
        ("errors.BankError('a', hint='b' if c else 'd')", True),
        ("BankError('a')", False),
        ("BankError('a', hint=None)", False),
        ("BankError('a', hint='b' if c else None)", False),
    ],
)
def test_an_error_without_a_hint_is_seen(source, found):
    assert [has_hint(call) for call in made(ast.parse(source))] == [found]


@pytest.mark.parametrize("name", CLASSES)
def test_the_hint_of_every_class_reaches_its_line(name):
    given = (["one"],) if name == "ScopedRecallError" else ()
    parts = [[ValueError(text) for text in some] for some in given]
    line = CLASSES[name]("It broke.", *parts, where="bank x", hint="repair it").one_line()
    assert line == f"{name}: It broke. [bank x] – repair it"
