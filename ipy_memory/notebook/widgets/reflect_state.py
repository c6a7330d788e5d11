"""The reflect panel: a question, answered from memory as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.errors import MagicError
from ipy_memory.notebook.widgets.state import PanelState, count, keyed

if TYPE_CHECKING:
    from ipy_memory.model import Hit
    from ipy_memory.notebook.widgets.session_hub import Desk


class ReflectState(PanelState):
    """The reflect panel: a question, the answer, and the hits it was made from."""

    title = "reflect"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.query = ""
        self.context = ""
        self.text = ""
        self.hits: dict[str, Hit] = {}

    def reflect(self, query: str, context: str = "") -> None:
        """Answer a question from memory as a whole."""
        if not query.strip():
            raise MagicError("there is no question yet", hint="type one")
        self.query, self.context, self.text, self.hits = query, context, "", {}
        result = self.desk.session.reflect(query, context or None, touch=False)
        self.text, self.hits = result.text, keyed(result.hits)
        self.say(f"Answered from {count(len(self.hits))}." if self.hits else "Answered.")
