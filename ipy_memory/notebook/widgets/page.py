"""What a panel shows where no widget can live: the same data as plain text and as HTML, the same on every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory.frames.escape import escaped, visible
from ipy_memory.frames.tabular import text_table
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.notebook.result import html_block, html_notes, html_table
from ipy_memory.notebook.widgets.memory import MemoryState
from ipy_memory.notebook.widgets.recall import BanksState, RecallState
from ipy_memory.notebook.widgets.retain import ReflectState, RetainState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from ipy_memory.model import Hit
    from ipy_memory.notebook.widgets.state import PanelState

HIT_COLUMNS: tuple[dict[str, Any], ...] = (
    {"name": "score", "label": "score", "digits": 4},
    {"name": "date", "label": "date"},
    {"name": "bank", "label": "bank"},
    {"name": "content", "label": "memory", "wide": True},
    {"name": "id", "label": "id"},
)
"""The columns of a table of hits."""

BANK_COLUMNS: tuple[dict[str, Any], ...] = (
    {"name": "name", "label": "bank"},
    {"name": "use", "label": "use"},
    {"name": "why", "label": "why", "wide": True},
    {"name": "working", "label": "working", "digits": 0},
    {"name": "episodic", "label": "episodic", "digits": 0},
    {"name": "newest", "label": "newest"},
    {"name": "file", "label": "file", "wide": True},
)
"""The columns of the table of banks."""

_ONE_LINE = 100


@dataclass(frozen=True, slots=True)
class Table:
    """A table as every face shows it: column descriptions, and one mapping a row with its ``key``."""

    columns: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]

    @property
    def cells(self) -> list[list[str]]:
        """Every cell as text."""
        return [[_text(row[column["name"]], column) for column in self.columns] for row in self.rows]

    @property
    def html(self) -> str:
        """The table as HTML; nothing without rows."""
        return html_table([column["label"] for column in self.columns], self.cells) if self.rows else ""

    @property
    def text(self) -> str:
        """The table as aligned text, each row on one line; nothing without rows."""
        if not self.rows:
            return ""
        cells = [[_short(cell) for cell in row] for row in self.cells]
        return text_table(cells, [column["label"] for column in self.columns])


def hit_table(hits: Mapping[str, Hit], tz: tzinfo | None) -> Table:
    """Return hits as a table; ``tz`` is the zone of stored times that name none."""
    rows = [
        {
            "key": key,
            "id": visible(hit.id or ""),
            "score": hit.score,
            "date": visible(shown_stamp(hit.timestamp or "", tz)),
            "bank": visible(hit.bank or ""),
            "content": visible(hit.content),
        }
        for key, hit in hits.items()
    ]
    return Table([column for column in HIT_COLUMNS if any(row[column["name"]] not in (None, "") for row in rows)], rows)


def bank_table(state: BanksState) -> Table:
    """Return banks as a table."""
    rows = [
        {
            "key": row.name,
            "name": visible(row.name),
            "use": row.use,
            "why": visible(row.why),
            "working": row.working,
            "episodic": row.episodic,
            "newest": visible(row.newest or ""),
            "file": visible(row.file),
        }
        for row in state.rows
    ]
    return Table(
        [column for column in BANK_COLUMNS if any(row[column["name"]] not in (None, "") for row in rows)], rows
    )


def queue_table(state: RetainState) -> Table:
    """Return what waits for the server as a table."""
    columns = [{"name": name, "label": name} for name in ("state", "since", "text", "error")]
    rows = [
        {
            "key": str(place),
            "state": row.state,
            "since": shown_stamp(row.queued_at, None),
            "text": visible(row.text),
            "error": visible(row.error or ""),
        }
        for place, row in enumerate(state.rows)
    ]
    return Table(columns if any(row["error"] for row in rows) else columns[:3], rows)


def memory_facts(state: MemoryState) -> list[tuple[str, str]]:
    """Return what is known of a memory beside its text."""
    memory = state.memory
    if memory is None:
        if state.hit is None:
            return []
        known: dict[str, object] = {
            "id": state.hit.id,
            "bank": state.hit.bank,
            "date": _when(state.hit.timestamp, state),
            "type": state.hit.type,
        }
    else:
        known = {
            "id": memory.id,
            "bank": memory.bank,
            "store": memory.store,
            "source": memory.source,
            "date": _when(memory.timestamp, state),
            "importance": memory.importance,
            "veracity": memory.veracity,
            "type": memory.type,
            "recalled": memory.recall_count,
            "invalid since": _when(memory.valid_until, state),
            "replaced by": memory.superseded_by,
        }
    return [(name, visible(str(value))) for name, value in known.items() if value is not None]


def _when(stamp: str | None, state: MemoryState) -> str | None:
    return None if stamp is None else shown_stamp(stamp, state.tz)


def page(state: PanelState) -> tuple[str, str]:
    """Return a panel as plain text and as HTML."""
    match state:
        case RecallState():
            parts = _recall(state)
        case BanksState():
            parts = [("line", f"scope: {state.scope}"), ("table", bank_table(state))]
        case MemoryState():
            parts = _memory(state)
        case RetainState():
            parts = _retain(state)
        case ReflectState():
            parts = [("line", f"question: {state.query or '(none yet)'}")]
            parts += [("block", state.text), ("table", hit_table(state.hits, state.tz))] if state.text else []
        case _:
            parts = []
    if state.status:
        parts.append(("status", state.status))
    title = f"Memory panel: {state.title}"
    text = [title, "", *(shown for kind, part in parts if (shown := _plain(kind, part)))]
    html = [f"<p><strong>{escaped(title)}</strong></p>", *(_html(kind, part) for kind, part in parts)]
    return "\n".join(text).rstrip(), "".join(html)


_Part = tuple[str, Any]


def _recall(state: RecallState) -> list[_Part]:
    parts: list[_Part] = [("line", f"query: {state.query or '(none yet)'}")]
    if state.banks:
        parts.append(("line", f"banks: {', '.join(state.banks)}"))
    parts.append(("table", hit_table(state.hits, state.tz)))
    parts += [("line", note) for note in state.notes]
    return parts + (_memory(state.memory) if state.memory.text else [])


def _memory(state: MemoryState) -> list[_Part]:
    facts = memory_facts(state)
    if not facts:
        return [("line", "memory: (none open)")]
    columns = [{"name": "what", "label": "what"}, {"name": "value", "label": "value"}]
    rows = [{"key": name, "what": name, "value": value} for name, value in facts]
    return [("table", Table(columns, rows)), ("block", state.text)]


def _retain(state: RetainState) -> list[_Part]:
    parts: list[_Part] = []
    if not state.failed:
        parts.append(("line", f"writes to: {state.bank}"))
    if state.queues:
        parts.append(("line", f"waiting to be sent: {len(state.rows)}"))
    parts.append(("table", queue_table(state)))
    return parts


def _plain(kind: str, part: Any) -> str:
    match kind:
        case "table":
            return f"{part.text}\n" if part.rows else ""
        case "block":
            return f"\n{visible(part)}\n"
        case _:
            return visible(str(part))


def _html(kind: str, part: Any) -> str:
    match kind:
        case "table":
            return str(part.html)
        case "block":
            return html_block(part)
        case "status":
            return f'<p role="status">{escaped(part)}</p>'
        case _:
            return html_notes([part])


def _text(value: Any, column: Mapping[str, Any]) -> str:
    if value is None:
        return ""
    return f"{value:.{column['digits']}f}" if "digits" in column else str(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _ONE_LINE else f"{line[: _ONE_LINE - 1]}…"
