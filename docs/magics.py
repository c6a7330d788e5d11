"""Write the page of the magics from their own help: ``python -m docs.magics``."""

from __future__ import annotations

from pathlib import Path

from ipy_memory.notebook import commands
from ipy_memory.notebook.parse import Flag, Spec
from ipy_memory.notebook.specs import BY_NAME

PAGE = Path(__file__).with_name("magics.md")
HEAD = """\
# Magics

This page is written by `python -m docs.magics` from the help that `%recall -h` and `%memory COMMAND -h` show.

Flags stand in front of the text, and `--` ends them. Everything after them is taken as typed: quotes, braces, `$` and
a `-word` are text. A `;` at the end of a line magic shows nothing, and the result is still returned.
"""


def rendered() -> str:
    """Return the page as it should be."""
    parts = [HEAD, *(_section(f"%{name}", spec) for name, spec in BY_NAME.items())]
    parts.append("## `%memory`\n\nWithout a command it is `%memory status`.\n")
    parts += [_section(f"%memory {name}", one.spec, level="###") for name, one in commands.table().items()]
    return "\n".join(parts)


def _section(title: str, spec: Spec, level: str = "##") -> str:
    forms = "\n".join(spec.forms)
    lines = [f"{level} `{title}`", "", spec.summary, "", "```text", forms, "```", ""]
    if spec.flags:
        lines += ["| flag | what it does |", "| --- | --- |"]
        lines += [f"| `{_typed(flag)}` | {_cell(flag.help)} |" for flag in spec.flags] + [""]
    return "\n".join(lines)


def _typed(flag: Flag) -> str:
    return _cell(f"--{flag.name} {flag.value}" if flag.value else f"--{flag.name}")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
