"""The rows that a recall looks at, kept from one query to the next while the file does not change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db.rows import as_text, json_list, number_or
from ipy_memory.backends.mnemopi.db.visibility import condition, names_of
from ipy_memory.backends.mnemopi.recall.rerank import Preview
from ipy_memory.backends.mnemopi.recall.scoring import UNREADABLE_IMPORTANCE, Document
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.db.visibility import Visibility

_KEPT_ROWS = 10_000
_KEPT_TEXT = 10_000_000  # characters


@dataclass(frozen=True, slots=True)
class Tier:
    """One kind of memory and where it is kept.

    ``searched`` reads the text that words are looked for in, where that is not the content. The full-text index names
    its rows by id (``by_id``) or by rowid.
    """

    name: str
    table: str
    index: str
    searched: str
    by_id: bool
    extra: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The column that the full-text index names."""
        return "id" if self.by_id else "rowid"


WORKING = Tier("working", "working_memory", "fts_working", "{embed_text}", by_id=True)
EPISODIC = Tier("episodic", "episodic_memory", "fts_episodes", "NULL", by_id=False, extra=("summary_of", "tier"))

_COLUMNS = (
    *("valid_until", "source", "timestamp", "session_id", "importance", "veracity", "memory_type"),
    *("recall_count", "last_recalled", "scope", "event_date"),
)


@dataclass(slots=True)
class Row:
    """What scoring and a hit need of one row besides its texts."""

    source: str | None
    timestamp: str | None
    session_id: str | None
    importance: float
    veracity: str | None
    memory_type: str | None
    recall_count: int
    last_recalled: str | None
    scope: str | None
    event_date: str | None
    summary_of: str | None = None
    degradation: float | None = None

    @classmethod
    def of(cls, cells: list[Any]) -> Row:
        """Return the row of its cells as they were read."""
        source, timestamp, session, importance, veracity, kind, count, last, scope, event_date, *rest = cells
        return cls(
            _text(source),
            _text(timestamp),
            _text(session),
            number_or(importance, UNREADABLE_IMPORTANCE),
            _text(veracity),
            _text(kind),
            count if isinstance(count, int) else 0,
            _text(last),
            _text(scope),
            _text(event_date),
            *((_text(rest[0]), number_or(rest[1], 1)) if rest else ()),
        )


def _text(cell: object) -> str | None:
    return cell if isinstance(cell, str) else None


class Stored:
    """One row as it was read, with what has been worked out of it.

    ``is_live`` and ``is_visible`` say whether full-text search, and the whole recall, may see it.
    """

    __slots__ = ("_cells", "_preview", "_row", "content", "document", "id", "is_live", "is_visible", "rowid")

    def __init__(
        self, rowid: int, id_: str, content: str, searched: str, *, is_live: bool, is_visible: bool, cells: list[Any]
    ) -> None:
        self.rowid = rowid
        self.id = id_
        self.content = content
        self.document = Document(searched)
        self.is_live = is_live
        self.is_visible = is_visible
        self._cells = cells
        self._row: Row | None = None
        self._preview: tuple[int, Preview] | None = None

    @property
    def row(self) -> Row:
        """The other columns, read when they are first needed."""
        if self._row is None:
            self._row = Row.of(self._cells)
            self._cells = []
        return self._row

    def preview(self, size: int) -> Preview:
        """Return the content cut to so many units, all of it for 0 or less."""
        if self._preview is None or self._preview[0] != size:
            self._preview = size, Preview(js.clip(self.content, size) if size > 0 else self.content)
        return self._preview[1]


@dataclass(slots=True)
class _Kept:
    """Rows of a tier, read in one state of the file between two instants, in which they are as visible as they were."""

    state: tuple[object, ...]
    by_rowid: dict[int, Stored] = field(default_factory=dict)
    by_id: dict[object, Stored] = field(default_factory=dict)
    size: int = 0
    since: str = ""
    until: str | None = None

    def stands(self, state: tuple[object, ...], now: str) -> bool:
        return (
            self.state == state
            and self.since <= now
            and (self.until is None or now < self.until)
            and len(self.by_rowid) <= _KEPT_ROWS
            and self.size <= _KEPT_TEXT
        )


def by_id(bank: Bank, tier: Tier, visible: Visibility, ids: Iterable[object]) -> Mapping[object, Stored]:
    """Return rows by id: those asked for that there are, and perhaps others."""
    kept = _kept(bank, tier, visible)
    _read(bank, tier, visible, kept, "id", [id_ for id_ in ids if id_ not in kept.by_id])
    return kept.by_id


def by_rowid(bank: Bank, tier: Tier, visible: Visibility, rowids: Iterable[int]) -> Mapping[int, Stored]:
    """Return rows by rowid: those asked for that there are, and perhaps others."""
    kept = _kept(bank, tier, visible)
    _read(bank, tier, visible, kept, "rowid", [rowid for rowid in rowids if rowid not in kept.by_rowid])
    return kept.by_rowid


def count(bank: Bank, tier: Tier, times: Mapping[str, int] | None, now: str) -> None:
    """Note in the kept rows which were recalled (``None``: unknown), as no state of the file tells it."""
    kept: _Kept | None = bank.memo.get(tier.name)
    if kept is None or times is None:
        bank.memo.pop(tier.name, None)
        return
    for id_, more in times.items():
        if (found := kept.by_id.get(id_)) is not None:
            found.row.recall_count += more
            found.row.last_recalled = now


def _kept(bank: Bank, tier: Tier, visible: Visibility) -> _Kept:
    state = (bank.generation, visible.apart_from_now())
    kept: _Kept | None = bank.memo.get(tier.name)
    if kept is None or not kept.stands(state, visible.now):
        kept = bank.memo[tier.name] = _Kept(state)
    return kept


def _read(bank: Bank, tier: Tier, visible: Visibility, kept: _Kept, key: str, missing: list[Any]) -> None:
    if not missing:
        return
    names = names_of(bank, tier.table)
    live, live_values = condition(visible.live(), names)
    all_, all_values = condition(visible.rules(), names)
    others = [names.get(name, name) for name in (*_COLUMNS, *tier.extra)]
    columns = ("rowid", "id", "content", tier.searched.format_map(names), live, all_, *others)
    kept.since = visible.now
    for rowid, id_, content, searched, is_live, is_visible, until, *cells in bank.connection.execute(
        f"SELECT {', '.join(columns)} FROM {tier.table} WHERE {key} IN (SELECT value FROM json_each(?))",
        (*live_values, *all_values, json_list(missing)),
    ):
        # First, so that an interrupt leaves no row whose end is not known.
        if isinstance(until, str) and until > visible.now and (kept.until is None or until < kept.until):
            kept.until = until
        text = _text(content) or ""
        looked_in = _text(searched) or text
        stored = Stored(
            rowid, as_text(id_) or "", text, looked_in, is_live=bool(is_live), is_visible=bool(is_visible), cells=cells
        )
        kept.by_rowid[rowid] = kept.by_id[id_] = stored
        kept.size += len(text) + len(looked_in)
