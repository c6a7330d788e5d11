"""The table of commands: each is whole, carried out, and described on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ipy_memory.commands.grammar import Arity, Command, Group, check, parse
from ipy_memory.commands.table import (
    COMMANDS,
    MAGICS,
    MEMORY,
    MODELS_BY_ID,
    MODELS_OF_BANK,
    OPTIONS,
    OTHER_WORDS,
)
from ipy_memory.errors import MagicError
from ipy_memory.notebook import commands
from ipy_memory.notebook.commands import mm

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, SHELL_PAGE = ((DOCS / name).read_text(encoding="utf-8") for name in ("magics.md", "shell.md"))


def every(arity: Arity | None = None) -> pytest.MarkDecorator:
    """Run a test for each command, or for those of one arity."""
    chosen = {name: one for name, one in COMMANDS.items() if arity in {None, one.arity}}
    return pytest.mark.parametrize("command", chosen.values(), ids=chosen)


@every()
def test_a_command_says_what_it_does_what_it_is_for_and_what_it_takes(command: Command) -> None:
    assert re.fullmatch(r"[A-Z].{15,110}\.", command.summary)
    assert isinstance(command.group, Group)
    assert (command.arity is Arity.NOTHING) == (not command.takes)
    assert command.takes.startswith("[") <= (command.arity is Arity.OPTIONAL)
    for flag in command.flags:
        assert flag.help
        assert not flag.help.endswith(".")
    assert set(command.instead) <= {flag.name for flag in command.flags}
    if command.arity is Arity.WORD and not command.options:
        assert command.one == command.takes.lower()


@every()
def test_a_command_is_on_its_pages(command: Command) -> None:
    typed = f"{command.name} {command.takes}".strip().replace("|", "\\|")
    assert (f"| `{typed}` |" in SHELL_PAGE) is command.in_shell
    if not command.in_magic:
        return
    assert f"# `{command.magic}`\n\n{command.summary}\n" in PAGE
    for flag in command.flags:
        assert f"| `{flag.typed()}` |" in PAGE


@every()
def test_a_command_has_each_flag_once(command: Command) -> None:
    options = [option.shell_name for option in OPTIONS]
    for names in (command.flag_names, [*options, *(flag.shell_name for flag in command.shell_flags)]):
        assert len(set(names)) == len(names)


def test_every_command_of_memory_is_carried_out_and_nothing_else() -> None:
    assert set(commands.handlers()) == set(MEMORY)
    assert {*MAGICS, *MEMORY, *(name for name, one in COMMANDS.items() if not one.in_magic)} == set(COMMANDS)
    assert (tuple(mm.OF_BANK), tuple(mm.OF_MODEL)) == (MODELS_OF_BANK, MODELS_BY_ID)


def test_another_word_for_a_command_is_not_a_command_itself() -> None:
    assert not set(OTHER_WORDS) & set(COMMANDS)
    assert set(OTHER_WORDS.values()) <= set(COMMANDS)


@every(Arity.NOTHING)
def test_a_command_that_takes_nothing_more_refuses_a_text(command: Command) -> None:
    check(command, parse(command, "  "))
    with pytest.raises(MagicError, match=f"{command.magic} takes nothing more"):
        check(command, parse(command, "all"))


@every(Arity.WORD)
def test_a_command_of_one_word_refuses_none_and_two(command: Command) -> None:
    word = command.options[0] if command.options else "716b"
    check(command, parse(command, f" {word} "))
    for line in ("", " ", f"{word} {word}"):
        with pytest.raises(MagicError, match=f"takes one {command.one}"):
            check(command, parse(command, line))


@every(Arity.TEXT)
def test_a_command_that_needs_a_text_says_so(command: Command) -> None:
    check(command, parse(command, "text"))
    with pytest.raises(MagicError, match="needs a text"):
        check(command, parse(command, ""))


@pytest.mark.parametrize(("name", "flag"), [(one.name, flag) for one in COMMANDS.values() for flag in one.instead])
def test_a_flag_in_place_of_the_text_allows_no_text_beside_it(name: str, flag: str) -> None:
    command = COMMANDS[name]
    check(command, parse(command, f"--{flag} x"))
    with pytest.raises(MagicError, match=f"--{flag} already says"):
        check(command, parse(command, f"--{flag} x more"))
