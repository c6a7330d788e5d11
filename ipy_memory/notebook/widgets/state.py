"""What a panel knows and does, without a widget: the base of every panel.

A view binds to a state: it calls the verbs through :meth:`PanelState.attempt` and draws again when ``on_change`` is
called. A script or another front end can do the same.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.frames.escape import visible
from ipy_memory.notebook.widgets.session_hub import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from ipy_memory.model import Hit
    from ipy_memory.notebook.widgets.session_hub import Desk

log = logging.getLogger("ipy_memory")


@dataclass(frozen=True, slots=True)
class Question:
    """Something that needs a yes first: what is asked, what confirms it, and what a yes does."""

    text: str
    yes: str
    action: Callable[[], None]


class PanelState(Watcher):
    """The base of every panel: one line of status, one open question at most.

    Attributes
    ----------
    status : str
        The last thing that happened, for the status line.
    failed : bool
        Whether it is an error.
    question : Question or None
        What waits for a yes or a no.
    on_change : callable
        Called after anything may have changed; a view draws itself then.
    """

    title = ""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.status = ""
        self.failed = False
        self.question: Question | None = None
        self.on_change: Callable[[], None] = _nothing
        desk.join(self)

    @property
    def tz(self) -> tzinfo | None:
        """Zone of stored times that name none."""
        return self.desk.session.clock.tz

    def attempt(self, action: Callable[[], None]) -> None:
        """Carry an action out for a view; whatever goes wrong becomes the status, and nothing is raised."""
        try:
            action()
        except MemoryToolkitError as error:
            self._report(error.one_line())
        except KeyboardInterrupt:
            self._report("Interrupted; nothing was changed by what was under way.")
        except Exception as error:
            # An error that leaves a callback would be seen by nobody.
            log.debug("panel", exc_info=True)
            self._report(f"{type(error).__name__}: {error}")
        finally:
            self.on_change()

    def _report(self, line: str) -> None:
        self.status, self.failed, self.question = visible(line), True, None

    def say(self, line: str) -> None:
        """Set the status."""
        self.status, self.failed = visible(line), False

    def ask(self, text: str, yes: str, action: Callable[[], None]) -> None:
        """Ask before doing; :meth:`confirm` does it, :meth:`cancel` forgets it."""
        self.question = Question(text, yes, action)
        self.say(text)

    def confirm(self) -> None:
        """Do what was asked about."""
        question, self.question = self.question, None
        if question is not None:
            question.action()

    def cancel(self) -> None:
        """Leave everything as it is."""
        if self.question is not None:
            self.question = None
            self.say("Nothing was changed.")

    def switch(self, mode: str) -> None:
        """Go over to another scoping mode."""
        if mode != self.desk.scope:
            self.failed = False
            self.desk.rescope(mode)
            if not self.failed:
                self.say(f"Scope of this session: {mode}.")

    def refresh(self) -> None:
        """Read again what is shown; called after every write of any panel on the same memory."""
        self.attempt(self.reread)

    def reread(self) -> None:
        """Read from the backend what this panel shows."""


def keyed(hits: Sequence[Hit]) -> dict[str, Hit]:
    """Return hits by a key that names each row: its id, or its place where it has none of its own."""
    found: dict[str, Hit] = {}
    for place, hit in enumerate(hits, start=1):
        key = hit.id if hit.id and hit.id not in found else f"{hit.id or ''}#{place}"
        found[key] = hit
    return found


def count(number: int) -> str:
    """Return a number of memories in words."""
    return "1 memory" if number == 1 else f"{number} memories"


def _nothing() -> None:
    return None
