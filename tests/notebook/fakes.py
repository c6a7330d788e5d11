"""A session that answers from lists, and notes what it was asked."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ipy_memory.clock import FixedClock
from ipy_memory.credentials import Guard
from ipy_memory.errors import MemoryToolkitError, NoBackendError
from ipy_memory.model import Hit, Receipt, RetainItem, ToolResult
from ipy_memory.session.reports import StatusRow
from ipy_memory.settings.resolve import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.session.turns import Notice

HITS = (
    Hit(
        "716b251a2adcd9e2",
        "The deploy target is fly.io.",
        source="coding-agent-retain",
        timestamp="2026-05-30T10:00:00.000Z",
        score=0.6573,
        bank="shop",
        tier="working",
        type="fact",
        importance=0.75,
        full_length=28,
    ),
    Hit("e1de81a7fd9daff0", "Deploys go out on Tuesdays…", score=0.25, bank="default", truncated=True, full_length=812),
)
TEXT = "Found 2 relevant memories (as of 2026-06-01 12:00 UTC):\n\n- The deploy target is fly.io.\n\n- Deploys go out…"
NOTHING = "No relevant memories found."


@dataclass
class FakeSession:
    """Answers every query with the same hits."""

    opened: dict[str, Any] = field(default_factory=dict)
    hits: tuple[Hit, ...] = HITS
    text: str = TEXT
    error: MemoryToolkitError | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    closed: int = 0
    notices: list[Notice] = field(default_factory=list)
    outgoing: Guard = field(default_factory=lambda: Guard(lambda _: None))
    show_at_once: Callable[[], object] | None = None
    clock: FixedClock = field(default_factory=lambda: FixedClock("2026-06-01T12:00:00.000Z"))
    settings: Settings = field(default_factory=Settings)
    chosen: str = "mnemopi"
    paused: bool = False
    backend: None = None
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = field(default_factory=os.getcwd)

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        touch: bool = True,
        bank: str | None = None,
        ranking: str = "agent",
        as_agent_start: bool = False,
        as_of: str | None = None,
        where: dict[str, Any] | None = None,
    ) -> ToolResult:
        self._call("recall", query, limit, touch, bank, *([where] if where else []))
        return ToolResult(self.text, hits=self.hits, attrs={"query": query, "backend": self.chosen})

    def reflect(
        self, query: str, context: str | None = None, *, touch: bool = True, bank: str | None = None
    ) -> ToolResult:
        self._call("reflect", query, context, touch, bank)
        return ToolResult("Based on recalled memories:\n\n- one", hits=self.hits, attrs={"query": query})

    def retain(self, items: list[RetainItem], context: str | None = None) -> ToolResult:
        self._call("retain", items, context)
        count = len(items)
        text = f"{count} {'memory' if count == 1 else 'memories'} stored."
        receipt = Receipt(count, "shop", "stored", tuple(f"{index:016x}" for index in range(count)))
        return ToolResult(text, {"count": count}, notes=("1 credential was redacted.",), receipt=receipt)

    def show(self, id: str, *, bank: str | None = None) -> str:  # noqa: A002
        self._call("show", id, bank)
        return f"id: {id}\n\nThe whole <b>text</b>."

    def status(self) -> list[StatusRow]:
        return [StatusRow("backend", self.chosen, "session"), StatusRow("scope", "per-project")]

    def close(self) -> None:
        self.closed += 1

    def _call(self, *call: Any) -> None:
        if self.chosen == "off":
            raise NoBackendError("No memory backend is chosen.", hint="choose one with `%memory use mnemopi`")
        if self.error:
            raise self.error
        self.calls.append(call)
