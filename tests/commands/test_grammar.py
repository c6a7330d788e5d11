"""Flags come off the front; the rest is text, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.commands.grammar import Arity, Command, Flag, Group, names, parse, parse_words
from ipy_memory.commands.table import COMMANDS
from ipy_memory.errors import MagicError

RECALL, RETAIN = COMMANDS["recall"], COMMANDS["retain"]
TEXT = st.text(st.characters(codec="utf-16", exclude_categories=()), max_size=60)
FLAGS = st.lists(
    st.sampled_from([("--limit 3", {"limit": 3}), ("--no-touch", {"no-touch": True}), ("--bank=a-b", {"bank": "a-b"})]),
    unique_by=lambda flag: flag[0],
)


@pytest.mark.claim("N-07")
@given(TEXT, FLAGS)
def test_text_after_the_end_mark_is_kept_byte_for_byte(text: str, flags: list[tuple[str, dict[str, Any]]]) -> None:
    front = " ".join([*(typed for typed, _ in flags), "-- "])
    line = front + text
    quiet = line.rstrip().endswith(";")
    parsed = parse(RECALL, line)
    assert parsed.text == (line.rstrip()[:-1] if quiet else line)[len(front) :]
    assert parsed.quiet == quiet
    assert parsed.flags == {key: value for _, values in flags for key, value in values.items()}


@pytest.mark.claim("N-07")
@given(TEXT.filter(lambda text: not text.lstrip().startswith("--") and not text.rstrip().endswith(";")))
def test_text_without_flags_is_kept_byte_for_byte(text: str) -> None:
    if text.strip() != "-h":
        assert parse(RECALL, text).text == text


@pytest.mark.claim("N-07")
@given(TEXT)
def test_a_cell_is_kept_byte_for_byte_less_its_closing_newline(text: str) -> None:
    parsed = parse(RETAIN, "--lines", text + "\n")
    assert parsed.text == text
    assert parsed.flags == {"lines": True}


@pytest.mark.claim("N-07")
@pytest.mark.parametrize(
    ("line", "text", "flags"),
    [
        ("what's Bob's \"favourite", "what's Bob's \"favourite", {}),
        ("' padded '", "' padded '", {}),
        ("  two  blanks ", "  two  blanks ", {}),
        ("-swarm mode", "-swarm mode", {}),
        ("-h is a flag", "-h is a flag", {}),
        ("--- rule", "--- rule", {}),
        ("--, then", "--, then", {}),
        ("--5 degrees", "--5 degrees", {}),
        ("--limit 3 deploy", "deploy", {"limit": 3}),
        ("--limit 3  deploy", " deploy", {"limit": 3}),
        ("--limit=3 --limit inside", "inside", None),
        ("deploy --limit 3", "deploy --limit 3", {}),
        ("--no-touch -- --limit 3", "--limit 3", {"no-touch": True}),
        ("  --no-touch   --bank b x", "x", {"no-touch": True, "bank": "b"}),
        ("-- ", "", {}),
        ("--", "", {}),
        ("--bank 'my bank' x", "x", {"bank": "my bank"}),
        ("--bank 'tis x", "x", {"bank": "'tis"}),
        ("{1+1} $HOME `ls`", "{1+1} $HOME `ls`", {}),
    ],
)
def test_only_flags_in_front_are_options(line: str, text: str, flags: dict[str, Any] | None) -> None:
    if flags is None:
        with pytest.raises(MagicError, match="whole number"):
            parse(RECALL, line)
        return
    parsed = parse(RECALL, line)
    assert (parsed.text, parsed.flags) == (text, flags)


@pytest.mark.parametrize(
    ("line", "text", "quiet"),
    [("x;", "x", True), ("x ; ", "x ", True), ("x;;", "x;", True), ("a; b", "a; b", False), (";", "", True)],
)
def test_a_closing_semicolon_is_no_text_and_means_quiet(line: str, text: str, quiet: bool) -> None:
    parsed = parse(RECALL, line)
    assert (parsed.text, parsed.quiet) == (text, quiet)


def test_a_semicolon_that_ends_a_cell_is_text() -> None:
    parsed = parse(RECALL, "", "a;\n")
    assert (parsed.text, parsed.quiet) == ("a;", False)


@pytest.mark.parametrize("line", ["-h", " -h ", "--help", "-h;"])
def test_a_lone_h_asks_for_help(line: str) -> None:
    assert parse(RECALL, line).help
    assert parse(RECALL, line.rstrip(";"), "text\n").help


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--limt 3 x", ["--limt", "did you mean --limit", "--no-touch"]),
        ("--LIMIT 3 x", ["did you mean --limit"]),
        ("--zzz x", ["valid here: --from"]),
        ("--limit", ["--limit needs a value", "--limit N"]),
        ("--limit 0 x", ["whole number of at least 1", "'0'"]),
        ("--limit ٣ x", ["whole number of at least 1"]),
        ("--out 3x y", ["name of a variable"]),
        ("--no-touch=1 x", ["takes no value"]),
    ],
)
def test_a_wrong_flag_is_one_clear_error(line: str, says: list[str]) -> None:
    with pytest.raises(MagicError) as caught:
        parse(RECALL, line)
    shown = caught.value.one_line()
    assert "\n" not in shown
    for words in says:
        assert words in shown


def test_text_on_the_first_line_of_a_cell_magic_is_refused() -> None:
    with pytest.raises(MagicError, match="lines below"):
        parse(RECALL, "--limit 3 deploy", "target\n")


def test_the_help_page_names_every_flag() -> None:
    page = RETAIN.usage()
    for flag in RETAIN.flags:
        assert f"--{flag.name}" in page
        assert flag.help in page


def test_a_flag_of_many_values_is_one_tuple() -> None:
    command = Command("c", "", "C.", Group.FIND, Arity.TEXT, (Flag("tag", "t", "NAMES", names, many=True),))
    typed = "--tag a --tag=b,c"
    assert parse(command, f"{typed} text").flags == {"tag": ("a", "b", "c")}
    assert parse_words("c", command.flags, [*typed.split(), "text"]).flags == {"tag": ("a", "b", "c")}
    with pytest.raises(MagicError, match="--tag needs a name, or several separated by commas, not ','"):
        parse(command, "--tag , text")
