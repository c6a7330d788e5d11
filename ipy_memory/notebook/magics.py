"""``%recall``, ``%retain``, ``%reflect`` and ``%memory``; loading and unloading."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, needs_local_scope, no_var_expand
from traitlets import Bool, Enum, Integer, Unicode, observe, validate

from ipy_memory.commands.grammar import Command, Parsed, check, parse, text_of
from ipy_memory.commands.table import COMMANDS, MEMORY_USAGE, RECALL_FILTERS, backends, chosen
from ipy_memory.errors import MagicError, MemoryToolkitError, safe_line
from ipy_memory.notebook import commands, completer, directory, frontend, ipython_compat
from ipy_memory.paths import here, typed_path
from ipy_memory.ranking import RANKINGS
from ipy_memory.settings.table import SCOPING_SETTINGS, SCOPINGS
from ipy_memory.tools import typed_items

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from ipy_memory.backends.trace import Trace
    from ipy_memory.notebook.progress import Progress
    from ipy_memory.notebook.recorder import Recorder
    from ipy_memory.notebook.result import RecallFrame, ReflectResult, RetainFrame, TextResult
    from ipy_memory.notebook.widgets.session_hub import Desk
    from ipy_memory.session import MemorySession
    from ipy_memory.session.turns import Notice

_Magic = TypeVar("_Magic", bound=Callable[..., Any])
_Result = TypeVar("_Result")

INTERRUPTED = "KeyboardInterrupt: interrupted; nothing was half-written."
"""What a cell shows that was interrupted."""


def _documented(page: str) -> Callable[[_Magic], _Magic]:
    """Give a magic its usage page as docstring, so that ``%recall?`` shows what ``%recall -h`` does."""

    def document(magic: _Magic) -> _Magic:
        magic.__doc__ = page
        return magic

    return document


def _watched(magic: _Magic) -> _Magic:
    """Show signs of life meanwhile, and the whole traceback of the product's errors while ``debug`` is on."""

    @functools.wraps(magic)
    def call(self: MemoryMagics, *given: Any, local_ns: Mapping[str, Any] | None = None) -> Any:
        outer, self._local = self._local, local_ns or {}
        try:
            with self.signs_of_life():
                directory.follow(self, str(given[0]))
                self.hold_notices()
                return magic(self, *given)
        except KeyboardInterrupt as stop:
            if not self.debug:
                stop._render_traceback_ = lambda: [INTERRUPTED]  # type: ignore[attr-defined]
            raise
        except MemoryToolkitError as error:
            if self.debug:
                whole = self.shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
                error._render_traceback_ = lambda: whole  # type: ignore[method-assign]
            raise
        finally:
            self._local = outer
            self.show_notices()

    return call  # type: ignore[return-value]


class BackendName(Unicode[str, str]):
    """The name of a backend, or nothing."""

    def validate(self, obj: Any, value: Any) -> str:
        """Refuse a name that no backend has."""
        if value not in ("", *backends()):
            self.error(obj, value)
        return str(value)

    def info(self) -> str:
        """Return what is allowed."""
        return f"one of {', '.join(backends())}, or empty"


@magics_class
class MemoryMagics(Magics):
    """The magics and their one session, which is opened at the first use and reads the settings then."""

    shell: InteractiveShell
    backend = BackendName("", help="Memory backend; empty: as the settings say.").tag(config=True)
    scope = Enum(("", *SCOPINGS), "", help="Which banks are written and read; empty: as the settings say.").tag(
        config=True
    )
    database = Unicode("", help="Path of the Mnemopi database; empty: as the settings say.").tag(config=True)
    cwd = Unicode("", help="Project folder; empty: the working directory when the session opens.").tag(config=True)
    agent_dir = Unicode("", help="Folder of the agent's settings and memories; empty: the usual one.").tag(config=True)
    limit = Integer(0, min=0, help="At most this many hits; 0: as the settings say.").tag(config=True)
    ranking = Enum(RANKINGS, "agent", help="How %recall ranks: as the agent does, or best.").tag(config=True)
    refuse_credentials = Bool(
        False, help="Keep queries here that seem to hold a credential, instead of sending them to a server."
    ).tag(config=True)
    debug = Bool(False, help="Show whole tracebacks instead of one line.").tag(config=True)

    def __init__(self, shell: InteractiveShell, **traits: Any) -> None:
        self._session: MemorySession | None = None
        self.panels: Desk | None = None
        self._adopted = False
        self.paused = False
        self._local: Mapping[str, Any] = {}
        self.directory: str | None = None
        self.recorder: Recorder | None = None
        self.world: Mapping[str, Any] = {}
        self._progress: Progress | None = None
        self._held: list[Notice] = []
        self.replaced: dict[str, dict[str, Callable[..., Any]]] = {}
        super().__init__(shell, **traits)

    @validate("cwd", "database", "agent_dir")
    def _absolute(self, proposal: Mapping[str, Any]) -> str:
        """Keep a path where it leads when it is given, wherever the process goes."""
        return typed_path(proposal["value"], self.world.get("env"))

    @observe("backend", "database", "agent_dir")
    def _settings_changed(self, _change: object) -> None:
        self.close_session()

    @observe("scope", "cwd")
    def _place_changed(self, change: Mapping[str, Any]) -> None:
        """Let the session go on in the new scope or folder; what waits goes to the old bank first."""
        if self._session is None:
            return
        if not change["new"]:
            self.close_session()
            return
        self.end_recording()
        try:
            self._session.rebind(self.cwd or None, self._scoping())
        except BaseException:
            # The session is where it was, an interrupt too sees to that; so is the choice, which can be made again.
            ipython_compat.set_unobserved(self, change["name"], change["old"])
            raise
        self.show_notices()

    @property
    def open_session(self) -> MemorySession | None:
        """The session of this notebook, if one is open."""
        return self._session

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables that the code around the magic sees: those of its function, then the notebook's."""
        return ChainMap(cast("dict[str, Any]", self._local), self.shell.user_ns)

    @property
    def follows(self) -> bool:
        """Whether the project folder was chosen by nobody, and so is the working directory."""
        return not (self.cwd or self._adopted)

    @property
    def session(self) -> MemorySession:
        """The session of this notebook; opened when first asked for."""
        if self._session is None:
            from ipy_memory.session import open_session

            self._session = open_session(
                self.backend or None, database=self.database or None, settings=self._scoping(), **self.surroundings()
            )
            self._take_up()
            self.hold_notices()
        return self._session

    def _scoping(self) -> dict[str, str]:
        return dict.fromkeys(SCOPING_SETTINGS, self.scope) if self.scope else {}

    def surroundings(self) -> dict[str, Any]:
        """Return what a session of this notebook is opened in: folders, and clock, ids and environment if given."""
        return {"cwd": self.cwd or None, "agent_dir": self.agent_dir or None, **self.world}

    def live_in(self, world: Mapping[str, Any], *, cwd: str, agent_dir: str) -> None:
        """Move to other surroundings: clock, ids and environment (as ``open_session`` takes them), and folders."""
        self.close_session()
        self.world = world
        self.backend = self.scope = self.database = ""
        self.cwd, self.agent_dir = cwd, agent_dir

    def adopt(self, session: MemorySession) -> None:
        """Let the magics work on a session made elsewhere, until another is chosen."""
        self.close_session()
        self._session, self._adopted = session, True
        self._take_up()

    def _take_up(self) -> None:
        """Let the session follow what was chosen for the notebook."""
        self.set_paused(self.paused)
        if self._session is not None:
            self._session.outgoing.refuse = self.refuse_credentials
            self._session.show_at_once = self._show_now

    @observe("refuse_credentials")
    def _refusal_changed(self, _change: object) -> None:
        if self._session is not None:
            self._session.outgoing.refuse = self.refuse_credentials

    def _show_now(self) -> None:
        # A background thread has no cell to write into; its notices come with the next magic.
        if threading.current_thread() is threading.main_thread():
            self.show_notices()

    def set_paused(self, on: bool) -> None:
        """Pause memory or let it go on: the session of now, and those to come."""
        self.paused = on
        if self._session is None:
            return
        if on:
            self._session.pause()
        elif self._session.paused:
            self._session.resume()

    def database_path(self) -> Path:
        """Return where the Mnemopi database is, without opening a session."""
        from ipy_memory.settings.resolve import agent_directory, load_settings, mnemopi_config

        if self._session is not None:
            session = self._session
            return Path(mnemopi_config(session.settings, session.agent_dir, session.cwd).db_path)
        env = self.world.get("env", os.environ)
        agent_dir = self.agent_dir or agent_directory(env)
        cwd = self.cwd or here()
        settings = load_settings(agent_dir, cwd, env)
        return Path(self.database or mnemopi_config(settings, agent_dir, cwd).db_path)

    def close_session(self) -> None:
        """Finish and close the session, if one is open; the next magic opens another."""
        self.end_recording()
        session, self._session, self._adopted = self._session, None, False
        if session is not None:
            try:
                session.close()
            finally:
                self._show(session.notices)

    @contextmanager
    def signs_of_life(self) -> Iterator[None]:
        """Show how far a magic is while it runs; one within another is part of it."""
        if self._progress is not None:
            yield
            return
        from ipy_memory.notebook.progress import progress

        self._progress = progress(self.shell)
        try:
            with self._progress:
                yield
        finally:
            self._progress = None

    def progress(self, what: str) -> Callable[[int, int], None]:
        """Return what takes note of how many of how many are done in the magic that runs."""
        return self._progress.of(what) if self._progress is not None else lambda _done, _total: None

    def end_recording(self, *, told: bool = False) -> None:
        """Take no further cells; harmless when none are taken. What was not stored is a notice, if it is not told."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.end()
            if recorder.problem and not told:
                from ipy_memory.session.turns import OWN_SOURCE, Notice

                message = f"The last recorded cells were not stored: {recorder.problem}"
                self._held.append(Notice("warning", message, OWN_SOURCE))
                if self._progress is None:
                    self._show(self._held)

    def hold_notices(self) -> None:
        """Keep for the end of the magic what the session has to say, which its first answer would add to its notes."""
        if self._session is not None:
            self._held += self._session.notices
            self._session.notices.clear()
        if self._progress is None:
            self._show(self._held)

    def show_notices(self) -> None:
        """Show what the person should know and has not been shown yet."""
        self._show(self._held)
        if self._session is not None:
            self._show(self._session.notices)

    def show(self, result: object) -> None:
        """Show a result beside the one that a magic gives, or before its error."""
        from IPython.display import display

        if self._progress is not None:
            self._progress.end()  # which may clear what stands in the cell
        display(result)  # type: ignore[no-untyped-call]

    def _show(self, notices: list[Notice]) -> None:
        if notices and self._progress is not None:
            self._progress.end()  # which may clear what stands in the cell
        while notices:
            notice = notices.pop(0)
            hint = f" – {safe_line(notice.hint)}" if notice.hint else ""
            sys.stderr.write(safe_line(f"{notice.source}: {notice.text}") + hint + "\n")

    @_documented(COMMANDS["recall"].usage())
    @line_cell_magic
    @no_var_expand
    @needs_local_scope
    @_watched
    def recall(self, line: str, cell: str | None = None) -> RecallFrame | TextResult:
        """Search memory."""
        parsed = parse(COMMANDS["recall"], line, self._typed(cell))
        if parsed.help:
            return self._usage(COMMANDS["recall"], parsed)
        query = self._text(COMMANDS["recall"], parsed)
        session = self.session
        ask = functools.partial(
            session.recall,
            query,
            limit=parsed.flags.get("limit", self.limit or None),
            touch="no-touch" not in parsed.flags,
            bank=parsed.flags.get("bank"),
            ranking=parsed.flags.get("ranking", self.ranking),
            as_agent_start="as-agent-start" in parsed.flags,
            as_of=parsed.flags.get("as-of"),
            where=chosen(RECALL_FILTERS, parsed.flags),
        )
        if "explain" in parsed.flags and ask.keywords["ranking"] == "best":
            raise MagicError(
                "--explain takes the agent's ranking apart", hint="by best, the column explanation says why"
            )
        traces: list[Trace] = []
        result = ask(traces=traces) if "explain" in parsed.flags else ask()
        from ipy_memory.frames.build import hits_frame
        from ipy_memory.notebook.result import RecallFrame

        notes = [*result.notes, *self._near(query, parsed, len(result.hits))]
        hits = hits_frame(result.hits, attrs=result.attrs, notes=notes, tz=session.clock.tz)
        if "explain" in parsed.flags:
            from ipy_memory.explore.explain import with_reasons

            hits = with_reasons(hits, result.hits, traces)
        return self._out(RecallFrame(hits, result.text, quiet=parsed.quiet), parsed)

    @_documented(COMMANDS["retain"].usage())
    @line_cell_magic
    @no_var_expand
    @needs_local_scope
    @_watched
    def retain(self, line: str, cell: str | None = None) -> RetainFrame | TextResult:
        """Store what is typed."""
        parsed = parse(COMMANDS["retain"], line, self._typed(cell))
        if parsed.help:
            return self._usage(COMMANDS["retain"], parsed)
        typed = typed_items(self._text(COMMANDS["retain"], parsed), parsed.flags)
        from ipy_memory.credentials import for_memory
        from ipy_memory.tools import check_size

        items, left_out = for_memory(typed, parsed.flags)
        about_size = check_size(items, yes="yes" in parsed.flags)
        result = self.session.retain(items)
        from ipy_memory.frames.build import retain_frame
        from ipy_memory.notebook.result import RetainFrame

        notes = [*result.notes, *left_out, *about_size]
        if result.receipt is not None and result.receipt.new_bank:
            from ipy_memory.explore.nearby import retain_notes

            notes += retain_notes(self.session)
        stored = retain_frame(items, result.receipt, attrs=result.attrs, notes=notes)
        return self._out(RetainFrame(stored, result.text, quiet=parsed.quiet), parsed)

    @_documented(COMMANDS["reflect"].usage())
    @line_cell_magic
    @no_var_expand
    @needs_local_scope
    @_watched
    def reflect(self, line: str, cell: str | None = None) -> ReflectResult | TextResult:
        """Answer a question from memory."""
        parsed = parse(COMMANDS["reflect"], line, self._typed(cell))
        if parsed.help:
            return self._usage(COMMANDS["reflect"], parsed)
        question = self._text(COMMANDS["reflect"], parsed)
        session = self.session
        result = session.reflect(
            question,
            parsed.flags.get("context"),
            touch="no-touch" not in parsed.flags,
            bank=parsed.flags.get("bank"),
        )
        from ipy_memory.frames.build import hits_frame
        from ipy_memory.notebook.result import ReflectResult

        notes = [*result.notes, *self._near(question, parsed, len(result.hits))]
        hits = hits_frame(result.hits, attrs=result.attrs, notes=notes, tz=session.clock.tz)
        answer = ReflectResult(result, hits)
        answer.quiet = parsed.quiet
        return self._out(answer, parsed)

    @_documented(MEMORY_USAGE)
    @line_magic
    @no_var_expand
    @needs_local_scope
    @_watched
    def memory(self, line: str) -> object:
        """Run a command about the memory itself."""
        return commands.run(self, line)

    def _typed(self, cell: str | None) -> str | None:
        """Return a cell without the blank lines by which a terminal is told that it ends."""
        terminal = hasattr(self.shell, "simple_prompt")
        return cell.rstrip("\n") + "\n" if cell is not None and terminal else cell

    def _text(self, command: Command, parsed: Parsed) -> str:
        """Return the text to work on: as typed, or from the variable of ``--from``."""
        check(command, parsed)
        name = parsed.flags.get("from")
        return parsed.text if name is None else text_of(self.variables, name)

    def _near(self, query: str, parsed: Parsed, hits: int) -> list[str]:
        """Return what to say of banks near by, where the session's own gives nothing."""
        if "bank" in parsed.flags or chosen(RECALL_FILTERS, parsed.flags):
            return []
        from ipy_memory.explore.nearby import recall_notes

        return recall_notes(self.session, query, parsed.flags.get("limit", self.limit or None), hits=hits)

    def _out(self, result: _Result, parsed: Parsed) -> _Result:
        if "out" in parsed.flags:
            self.shell.user_ns[parsed.flags["out"]] = result
        return result

    def _usage(self, command: Command, parsed: Parsed) -> TextResult:
        from ipy_memory.notebook.result import TextResult

        page = TextResult(command.usage())
        page.quiet = parsed.quiet
        return page


def load(shell: InteractiveShell) -> None:
    """Add the magics to a shell; what an earlier load has left is taken out first."""
    unload(shell)
    magics = MemoryMagics(shell)
    magics.replaced = ipython_compat.replaced_magics(shell)
    shell.register_magics(magics)
    ipython_compat.install(shell)
    completer.install(shell, magics)
    ipython_compat.install_errors(shell)
    frontend.install(shell)


def unload(shell: InteractiveShell) -> None:
    """Take out everything that :func:`load` added, put back what it replaced, and close the session."""
    ipython_compat.remove(shell)
    completer.remove(shell)
    ipython_compat.remove_errors(shell)
    frontend.remove(shell)
    magics = cast("MemoryMagics | None", ipython_compat.take_out(shell, MemoryMagics.__name__))
    if magics is None:
        return
    try:
        magics.close_session()
    except BaseException:
        # All is taken out, whatever ended the wait; the shell alone would count the extension as loaded.
        ipython_compat.forget_loaded(shell, __name__.partition(".")[0])
        raise
