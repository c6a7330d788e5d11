"""The way from a command line to an exit code: options, the session, the command, what is written."""

from __future__ import annotations

import difflib
import os
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.backends import registry
from ipy_memory.commands.grammar import PROGRAM, Command, Group, Parsed, check, front_options, one_of, parse_words
from ipy_memory.commands.table import COMMANDS, OPTIONS, OTHER_WORDS, SHELL
from ipy_memory.errors import MagicError, MemoryToolkitError
from ipy_memory.paths import typed_path
from ipy_memory.settings.table import SCOPING_SETTINGS, SCOPINGS
from ipy_memory.shell import asking, looking, measuring, moving, output
from ipy_memory.shell.output import DONE, FAILED, INTERRUPTED, PIPE_CLOSED, Result

if TYPE_CHECKING:
    from ipy_memory.session import MemorySession

Handler = Callable[["MemorySession", Parsed], Result]

HANDLERS: Mapping[str, Handler] = {
    "status": looking.status,
    "browse": looking.browse,
    "show": looking.show,
    "chain": looking.chain,
    "banks": looking.banks,
    "scopes": looking.scopes,
    "stats": looking.stats,
    "report": looking.report,
    "diagnose": looking.diagnose,
    "doctor": looking.doctor,
    "audit": looking.audit,
    "trust": looking.trust,
    "recall": asking.recall,
    "reflect": asking.reflect,
    "retain": asking.retain,
    "why": asking.why,
    "evaluate": measuring.evaluate,
    "compare": measuring.compare,
    "diff": measuring.diff,
    "export": moving.export,
    "import": moving.take_in,
    "queue": asking.queue,
    "flush": asking.flush,
    "operations": asking.operations,
}
"""What carries out the commands on a session."""

_ALWAYS = tuple(option for option in OPTIONS if option.name == "debug")


def run(words: Sequence[str]) -> int:
    """Carry out a command line; return the exit code."""
    debug = "--debug" in words
    try:
        return _run(words)
    except MemoryToolkitError as error:
        if debug:
            traceback.print_exc()
        output.write_error(error)
        return FAILED
    except output.PipeClosedError:
        return PIPE_CLOSED
    except KeyboardInterrupt:
        output.write_line(f"{PROGRAM}: interrupted")
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        # The message may hold memory text; where it happened does not.
        place = traceback.extract_tb(error.__traceback__)[-1]
        output.write_line(
            f"{PROGRAM}: internal error ({type(error).__name__} in {Path(place.filename).name}, line {place.lineno})"
            " – --debug shows the traceback"
        )
        return FAILED
    finally:
        _leave_interrupts_to_the_system()


def _run(words: Sequence[str]) -> int:
    options, rest = front_options(words, OPTIONS)
    name = rest.pop(0) if rest else ""
    if name in {"-h", "--help"}:
        return _said(help_page())
    if name == "--version":
        from ipy_memory import __version__

        return _said(f"{PROGRAM} {__version__}")
    command = _command(name)
    allowed = OPTIONS if command.in_magic else _ALWAYS
    if others := [option.shell_name for option in OPTIONS if option.name in options and option not in allowed]:
        raise MagicError(f"%{name} takes no --{others[0]}", hint=f"see {PROGRAM} {name} -h")
    called = f"{PROGRAM} {name}"
    parsed = parse_words(called, (*command.shell_flags, *allowed), rest)
    if parsed.help:
        return _said(command.shell_usage(allowed))
    if not command.stdin:
        check(command, parsed)
    _check_encoding(parsed.text)
    if not command.in_magic:
        from ipy_memory.shell.demonstration import demonstrate

        return demonstrate(parsed.flags)
    options |= {one.name: parsed.flags[one.name] for one in OPTIONS if one.name in parsed.flags}
    with _opened(options) as session:
        result = HANDLERS[name](session, parsed)
    return _shown(replace(result, notes=[*result.notes, *_folder_notes(options)]), as_json="as-json" in options)


def _command(name: str) -> Command:
    if name in SHELL:
        return SHELL[name]
    if not name:
        raise MagicError(f"{PROGRAM} needs a command", hint=f"{PROGRAM} -h lists them")
    if name in COMMANDS:
        raise MagicError(f"{name} works in IPython only", hint=f"there it is {COMMANDS[name].magic}")
    near = [word] if (word := OTHER_WORDS.get(name)) in SHELL else difflib.get_close_matches(name, SHELL, n=1)
    nearest = f"did you mean {near[0]}? " if near else ""
    raise MagicError(f"{PROGRAM} has no command {name!r}", hint=f"{nearest}there are {', '.join(SHELL)}")


def _check_encoding(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise MagicError("the text is not valid UTF-8", hint="check the encoding of the terminal") from None


def help_page() -> str:
    """Return the help page of the program, with the commands by what they are for."""
    lines = [
        "Inspect, search and repair an AI agent's long-term memory.",
        "",
        f"    {PROGRAM} [options] COMMAND [flags] [text]",
        f"    {PROGRAM} COMMAND -h",
    ]
    width = max(len(f"{one.name} {one.takes}") for one in SHELL.values())
    for group in Group:
        found = [one for one in SHELL.values() if one.group is group]
        if found:
            lines += ["", f"{group}:", *(f"    {f'{one.name} {one.takes}':<{width}}  {_brief(one)}" for one in found)]
    shown = [(option.typed(option.shell_name), option.help) for option in OPTIONS] + [
        ("--version", "print the version")
    ]
    width = max(len(left) for left, _ in shown)
    lines += ["", "options of every command:", *(f"    {left:<{width}}  {right}" for left, right in shown)]
    return "\n".join(lines)


def _brief(command: Command) -> str:
    return command.summary.partition(";")[0].removesuffix(".")


@contextmanager
def _opened(options: Mapping[str, Any]) -> Iterator[MemorySession]:
    """Open the session that the options ask for; close it and say what the user should know of it."""
    with _world(options) as world:
        from ipy_memory.session import open_session

        settings = {}
        if "scope" in options:
            one_of("--scope", options["scope"], SCOPINGS)
            settings = dict.fromkeys(SCOPING_SETTINGS, options["scope"])
        if "backend" in options:
            one_of("--backend", options["backend"], registry.names())
        session = open_session(options.get("backend"), database=_path(options, "database"), settings=settings, **world)
        try:
            with session:
                yield session
        finally:
            for notice in session.notices:
                output.write_line(f"{notice.source}: {output.in_shell_words(notice.text)}")


@contextmanager
def _world(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the folders that a session is opened in; for a demonstration also its clock, ids and environment."""
    cwd = _path(options, "cwd")
    if "demo" not in options:
        yield {"cwd": cwd, "agent_dir": _path(options, "agent-dir")}
        return
    if "agent-dir" in options:
        raise MagicError("--demo and --agent-dir exclude each other", hint="leave one of the two out")
    from ipy_memory import demo

    with tempfile.TemporaryDirectory(prefix="ipy-memory-demo-") as passing:
        home = demo.make(os.environ.get(demo.FOLDER_VARIABLE) or Path(passing, "home"))
        yield {"cwd": cwd or demo.PROJECT, "agent_dir": str(home.agent_dir), **home.world()}


def _folder_notes(options: Mapping[str, Any]) -> list[str]:
    cwd = _path(options, "cwd")
    if cwd is None or "demo" in options or Path(cwd).is_dir():
        return []
    return [f"There is no folder {cwd}; the names of its banks follow from the path alone."]


def _path(options: Mapping[str, Any], name: str) -> str | None:
    return typed_path(options[name]) if name in options else None


def _shown(result: Result, *, as_json: bool) -> int:
    if as_json and result.lines is not None:
        if result.lines:
            output.write_result("\n".join(map(output.json_text, result.lines)))
        output.write_notes(result.notes)
    elif as_json:
        notes = [output.in_shell_words(note) for note in result.notes]
        first = {"text": result.data["text"]} if "text" in result.data else {}
        output.write_result(output.json_text({**first, "notes": notes, **result.data}))
    else:
        output.write_result(result.text)
        output.write_notes(result.notes)
    return result.code


def _said(text: str) -> int:
    output.write_result(text)
    return DONE


def _leave_interrupts_to_the_system() -> None:
    """Let Ctrl-C end the process without a traceback once all is done."""
    own = threading.current_thread() is threading.main_thread()
    if own and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
