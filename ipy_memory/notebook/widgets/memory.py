"""One memory, read in full and repaired: a draft, its difference, and one step back."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from ipy_memory.errors import ChangedSinceError, EditRefusedError, MagicError
from ipy_memory.notebook.widgets.state import PanelState
from ipy_memory.redact import redact_counted
from ipy_memory.text import bare_id

if TYPE_CHECKING:
    from ipy_memory.backends.base import Edited
    from ipy_memory.model import Hit, Memory
    from ipy_memory.notebook.widgets.session_hub import Desk

NOTHING_UNDONE = "only updates and invalidations made here can be undone, each once"
"""What to know where there is nothing to undo."""

_UPDATABLE, _ENDABLE = {"working"}, {"working", "episodic"}


class MemoryState(PanelState):
    """The memory panel: the whole text of one memory, and what may be done to it.

    Attributes
    ----------
    memory : Memory or None
        The memory as it was last read.
    hit : Hit or None
        What recall showed of it, where the backend cannot read it by its id.
    draft : str
        The text as edited; ``weight`` its importance.
    """

    title = "memory"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.memory: Memory | None = None
        self.hit: Hit | None = None
        self.draft = ""
        self.weight: float | None = None
        self.last: Edited | None = None

    @property
    def text(self) -> str:
        """The whole text, as stored."""
        if self.memory is not None:
            return self.memory.content
        return self.hit.content if self.hit is not None else ""

    @property
    def updatable(self) -> bool:
        """Whether text and importance can be changed, and the memory forgotten."""
        return self.memory is not None and self.memory.store in _UPDATABLE

    @property
    def endable(self) -> bool:
        """Whether the memory can be invalidated."""
        return self.memory is not None and self.memory.store in _ENDABLE and self.memory.valid_until is None

    @property
    def undoable(self) -> bool:
        """Whether the last edit can be taken back."""
        return self.last is not None

    def open(self, id: str) -> None:  # noqa: A002  the name that recall shows
        """Read one memory in full, by the id that recall shows."""
        wanted = bare_id(id.strip())
        if not wanted:
            raise MagicError("there is no id yet", hint="type the id that recall shows")
        self.close()
        self._take(self.desk.session.memory(wanted))
        self.say(f"Memory {wanted} of bank {self._memory.bank}, {len(self.text)} characters.")

    def open_hit(self, hit: Hit) -> None:
        """Read a hit's memory in full; where the backend gives no access by id, show the hit itself."""
        if hit.id and self.desk.session.live_backend().addressable:
            self.open(hit.id)
            return
        self.close()
        self.hit = hit
        self.draft = hit.content
        self.say("This backend shows a memory, and cannot change it.")

    def close(self) -> None:
        """Show no memory."""
        self.memory = self.hit = self.weight = self.last = self.question = None
        self.draft = ""

    def _take(self, memory: Memory) -> None:
        self.memory, self.draft, self.weight = memory, memory.content, memory.importance

    @property
    def _memory(self) -> Memory:
        if self.memory is None:
            raise MagicError("no memory is open", hint="pick one from the table, or type its id")
        return self.memory

    def write(self, text: str) -> None:
        """Take the edited text; a text box gives every line break as a line feed."""
        breaks = "\r\n" if "\r\n" in self.text else "\n"
        plain = self.text.replace("\r\n", "\n").replace("\r", "\n")
        draft = self.text if text == plain else text.replace("\n", breaks)
        if draft != self.draft:
            self.draft, self.question = draft, None

    def weigh(self, importance: float | None) -> None:
        """Take the edited importance."""
        if importance != self.weight:
            self.weight, self.question = importance, None

    def difference(self) -> list[str]:
        """Return what saving would change, line by line, as it would be stored: ``-`` goes, ``+`` comes."""
        before, after = self.text, redact_counted(self.draft)[0]
        found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
        lines = [line for line in list(found)[2:] if not line.startswith("@@")]
        if not lines and before != after:
            lines = [" (only line breaks change)"]
        old = self.memory.importance if self.memory else None
        if self.weight != old:
            lines += [f"- importance {old}", f"+ importance {self.weight}"]
        return lines

    def review(self) -> None:
        """Show the difference and ask whether to save it."""
        memory = self._memory
        if not self.difference():
            self.question = None
            self.say("There is nothing to save: text and importance are as stored.")
            return
        if not self.draft.strip():
            raise EditRefusedError("The new text is empty.", hint="invalidate or forget the memory instead")
        redacted = redact_counted(self.draft)[1]
        hidden = (
            f" {redacted} credential{'s' if redacted > 1 else ''} will be stored as [REDACTED]." if redacted else ""
        )
        self.ask(f"Save these changes to memory {memory.id} of bank {memory.bank}?{hidden}", "Save", self._save)

    def _save(self) -> None:
        memory = self._memory
        content = self.draft if self.draft != memory.content else None
        weight = self.weight if self.weight != memory.importance else None
        self._finish(
            self.desk.session.change("update", memory.id, content=content, importance=weight, base=memory.content)
        )

    def revert(self) -> None:
        """Discard the edit, and show what is stored now."""
        had = self._memory
        self._take(self.desk.session.memory(had.id))
        self.question = None
        now = self._memory
        same = (now.content, now.importance) == (had.content, had.importance)
        self.say("The text is as stored." if same else "The text is as stored; it was changed since it was read.")

    def invalidate(self, replacement: str = "") -> None:
        """Ask whether to end the memory now."""
        memory = self._memory
        instead = replacement.strip() or None
        by = f", replaced by {instead}" if instead else ""
        self.ask(
            f"Invalidate memory {memory.id} of bank {memory.bank}{by}? It is no longer recalled; it can be undone.",
            "Invalidate",
            lambda: self._finish(
                self.desk.session.change("invalidate", memory.id, replacement_id=instead, base=memory.content)
            ),
        )

    def forget(self) -> None:
        """Ask whether to delete the memory for good."""
        memory = self._memory
        self.ask(
            f"Forget memory {memory.id} of bank {memory.bank}? It is deleted for good; a summary made from it stays, "
            "and this cannot be undone.",
            "Forget for good",
            lambda: self._finish(self.desk.session.change("forget", memory.id, base=memory.content)),
        )

    def _finish(self, edited: Edited) -> None:
        self.last = None if edited.status == "deleted" else edited
        if edited.status == "deleted":
            self.memory = None
        self._settle()
        self.say(
            " ".join([edited.text, *(f"Its summary {one} stays and can be recalled." for one in edited.summaries)])
        )

    def _settle(self) -> None:
        # The draft is done with, so that every panel, this one too, takes what is stored now.
        self.draft, self.weight = self.text, self.memory.importance if self.memory else None
        self.desk.changed()

    def undo(self) -> None:
        """Undo the last edit; where the memory was changed again since, show both states and ask."""
        if self.last is None:
            raise EditRefusedError("There is nothing to undo.", hint=NOTHING_UNDONE)
        try:
            self._undo(self.last, force=False)
        except ChangedSinceError as error:
            last = self.last
            states = "; ".join(f"{name} now: {now}, former: {error.former[name]}" for name, now in error.now.items())
            self.ask(
                f"Memory {last.id} was changed again since ({states}). Write the former values all the same?",
                "Undo all the same",
                lambda: self._undo(last, force=True),
            )

    def _undo(self, last: Edited, *, force: bool) -> None:
        there = self.desk.session.undo(last, force=force)
        self.last = None
        self._settle()
        if not there:
            raise EditRefusedError(
                "The memory is not there any more.",
                where=f"bank {last.bank}",
                hint="somebody else has removed it; the copy of the bank beside it may hold it",
            )
        self.say(f"Undone: memory {last.id} is as it was before.")

    def reread(self) -> None:
        """Read the memory again; a draft that is being written is kept, and compared with the text of now."""
        if self.memory is None:
            return
        had, draft, weight = self.memory, self.draft, self.weight
        writing = (draft, weight) != (had.content, had.importance)
        self.memory, self.question = None, None
        if not writing:
            self.draft = ""
        self._take(self.desk.session.memory(had.id))
        if writing:
            self.draft, self.weight = draft, weight
