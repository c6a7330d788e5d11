"""Write the page of the magics, and the table of the shell page, from the commands: ``python -m docs.magics``."""

from __future__ import annotations

from pathlib import Path

from ipy_memory.commands.grammar import Command, Flag, Group
from ipy_memory.commands.table import MAGICS, MEMORY, SHELL

PAGE = Path(__file__).with_name("magics.md")
SHELL_PAGE = Path(__file__).with_name("shell.md")
_MARK = "<!-- This table is written by `python -m docs.magics`. -->\n\n"
HEAD = """\
# Magics

This page is written by `python -m docs.magics` from the help that `%recall -h` and `%memory COMMAND -h` show.

Flags stand in front of the text, and `--` ends them. Everything after them is taken as typed: quotes, braces, `$` and
a `-word` are text. A `;` at the end of a line magic shows nothing, and the result is still returned.

A result is shown unless it is assigned: also in loops, branches and functions, and before other lines. A variable that
a flag names (`--from`, `--frame`) is that of the function around the magic, else that of the notebook; `--out` always
binds one of the notebook.
"""


def rendered() -> str:
    """Return the page as it should be."""
    parts = [HEAD, *(_section(command, level="##") for command in MAGICS.values())]
    parts.append("## `%memory`\n\nWithout a command it is `%memory status`. The commands by what they are for:\n")
    groups = {group: [one for one in MEMORY.values() if one.group is group] for group in Group}
    parts += [f"- {group}: {', '.join(f'`{one.name}`' for one in found)}" for group, found in groups.items() if found]
    parts += ["", *(_section(command, level="###") for command in MEMORY.values())]
    return "\n".join(parts)


def shell_table() -> str:
    """Return the table of the shell page as it should be."""
    rows = [(one.group, f"`{_cell(f'{one.name} {one.takes}'.strip())}`", _cell(one.summary)) for one in SHELL.values()]
    lines = ["| for | command | what it does |", "| --- | --- | --- |", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def with_shell_table(page: str) -> str:
    """Return the shell page with its table as it should be."""
    before, _, after = page.partition(_MARK)
    rest = "\n".join(line for line in after.split("\n") if not line.startswith("|"))
    return f"{before}{_MARK}{shell_table()}\n\n{rest.lstrip()}"


def _section(command: Command, level: str) -> str:
    forms = "\n".join(command.magic_forms)
    lines = [f"{level} `{command.magic}`", "", command.summary, "", "```text", forms, "```", ""]
    if command.flags:
        lines += ["| flag | what it does |", "| --- | --- |"]
        lines += [f"| `{_typed(flag)}` | {_cell(flag.help)} |" for flag in command.flags] + [""]
    return "\n".join(lines)


def _typed(flag: Flag) -> str:
    return _cell(flag.typed())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
    SHELL_PAGE.write_text(with_shell_table(SHELL_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
