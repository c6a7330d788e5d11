"""Writing memories into a bank: new ones, known ones again, and several at once with a receipt."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.db import rows
from ipy_memory.backends.mnemopi.db.bank import AUTHOR_ID, AUTHOR_TYPE, Pending
from ipy_memory.backends.mnemopi.store.delete import cascade_delete, trim
from ipy_memory.backends.mnemopi.store.extraction import FactRows
from ipy_memory.backends.mnemopi.store.graph import Graph
from ipy_memory.backends.mnemopi.store.jobs import read_facts
from ipy_memory.clock import memory_id
from ipy_memory.errors import BankError
from ipy_memory.jscompat.dates import iso, parse_ms
from ipy_memory.jscompat.strings import cut, json_text, lower, well_formed
from ipy_memory.jscompat.strings import trim as js_trim
from ipy_memory.model import Failure, Receipt, RetainItem
from ipy_memory.redact import redact_counted, redact_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.backends.mnemopi.db.bank import Bank

_log = logging.getLogger("ipy_memory.backends.mnemopi")

RETAIN_SOURCE = "coding-agent-retain"

_VERACITIES = frozenset(("true", "false", "stated", "inferred", "tool", "imported", "unknown"))
_TRUST_TIERS = frozenset(("STATED", "DERIVED", "EXTERNAL_WRITE", "IMPORTED"))
_TRUST_BY_SOURCE = {
    **dict.fromkeys(("tool", "api", "system"), "EXTERNAL_WRITE"),
    **dict.fromkeys(("import", "imported", "backup"), "IMPORTED"),
}
_SPOKEN_SOURCES = frozenset(("", "conversation", "user", "assistant"))


@dataclass(frozen=True, slots=True)
class RememberOptions:
    """How one memory is written.

    ``timestamp`` is stored as given (now if ``None``); ``extract_text`` and ``embed_text`` stand in for the content
    where facts are read and where it is indexed. ``trim`` lets the write delete old rows as the real engine does:
    only for callers that have promoted what must not be lost.
    """

    source: str = "conversation"
    importance: float = 0.5
    timestamp: str | None = None
    scope: str = "session"
    veracity: str = "unknown"
    memory_type: str = "unknown"
    metadata: Mapping[str, Any] | None = None
    trust_tier: str | None = None
    valid_until: str | None = None
    extract: bool = False
    extract_entities: bool = False
    extract_text: str | None = None
    embed_text: str | None = None
    trim: bool = False


@dataclass(frozen=True, slots=True)
class _Written:
    id: str
    duplicate: bool
    extract_text: str | None


def redact_write(content: str, options: RememberOptions) -> tuple[str, RememberOptions, int]:
    """Return content and options without credentials, and how many were taken out."""
    content, in_content = redact_counted(content)
    options, in_options = _without_credentials(options)
    return content, options, in_content + in_options


def _without_credentials(options: RememberOptions) -> tuple[RememberOptions, int]:
    changes: dict[str, Any] = {}
    count = 0
    for name in ("source", "extract_text", "embed_text", "metadata"):
        changes[name], found = redact_value(getattr(options, name))
        count += found
    return replace(options, **changes), count


def remember(bank: Bank, content: str, options: RememberOptions | None = None) -> str:
    """Write one memory and return its id; the same content again refreshes the row that is there.

    The row, its index rows and the facts found by patterns are written together or not at all. Vectors and
    facts read by a language model wait in ``bank.pending``.

    Raises
    ------
    BankError
        Nothing was written.
    """
    content, options, _ = redact_write(content, options or RememberOptions())
    with bank.savepoint():
        written = _write(bank, content, options, _Graphs(bank))
        _extract(bank, written)
    _schedule(bank, written, content, options)
    return written.id


def retain_items(
    bank: Bank, items: Sequence[RetainItem], *, session_id: str, cwd: str, trim_old: bool = False
) -> Receipt:
    """Write the items of one retain call, in order, in one transaction.

    A failing item is taken back alone, logged, and named in the receipt; if the bank takes nothing, every
    item is named. Only what the receipt has an id for is stored.
    """
    prepared = _retained(items, session_id, cwd, trim_old=trim_old)
    graphs = _Graphs(bank)
    written: dict[int, _Written] = {}
    failed: dict[int, Exception] = {}
    try:
        with bank.savepoint():
            for index, (content, options, _) in enumerate(prepared):
                try:
                    with bank.savepoint():
                        written[index] = _write(bank, content, options, graphs)
                except Exception as error:  # noqa: BLE001  one item must not take the others with it
                    graphs.forget()
                    failed[index] = error
            # Facts come after all rows of the call: their order in the file is part of what others read.
            for index in list(written):
                if index in written:
                    _extract_or_take_back(bank, index, written, failed)
    except Exception as whole:  # noqa: BLE001  the receipt carries it
        written, failed = {}, {index: failed.get(index, whole) for index in range(len(items))}
    for index, done in written.items():
        _schedule(bank, done, *prepared[index][:2])
    for index, reason in sorted(failed.items()):
        _log.warning("Mnemopi: memory not stored: bank=%s item=%d error=%s", bank.name, index + 1, reason)
    return Receipt(
        count=len(items),
        bank=bank.name,
        state="stored",
        ids=tuple(written[index].id if index in written else None for index in range(len(items))),
        failures=tuple(Failure(index, items[index].content, reason) for index, reason in sorted(failed.items())),
        redacted=sum(prepared[index][2] for index in written),
        duplicates=sum(done.duplicate for done in written.values()),
    )


def _retained(
    items: Sequence[RetainItem], session_id: str, cwd: str, *, trim_old: bool
) -> list[tuple[str, RememberOptions, int]]:
    """Return content, options and count of redactions of each item; items of one context share their options."""
    shared: dict[str | None, tuple[RememberOptions, int]] = {}
    prepared = []
    for item in items:
        if item.context not in shared:
            shared[item.context] = _without_credentials(
                RememberOptions(
                    source=RETAIN_SOURCE,
                    importance=0.75,
                    scope="bank",
                    veracity="tool",
                    memory_type="fact",
                    metadata={"session_id": session_id, "cwd": cwd, "context": item.context, "tool": "retain"},
                    extract=True,
                    extract_entities=True,
                    trim=trim_old,
                )
            )
        options, in_options = shared[item.context]
        content, in_content = redact_counted(item.content)
        prepared.append((content, options, in_content + in_options))
    return prepared


class _Graphs:
    """The graph of the bank, read when the first memory of a call needs it."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._graph: Graph | None = None

    def ingest(self, id_: str, content: str, *, statements: bool) -> None:
        if self._graph is None:
            self._graph = Graph(self._bank)
        self._graph.ingest(id_, content, statements=statements)

    def forget(self) -> None:
        self._graph = None


def _write(bank: Bank, content: str, options: RememberOptions, graphs: _Graphs) -> _Written:
    now_ms = bank.clock.now_ms()
    content = well_formed(content)
    timestamp = well_formed(options.timestamp) if options.timestamp is not None else iso(now_ms)
    row = _row(bank, content, timestamp, options)
    known = (
        may_hold(bank, content)
        and bank.connection.execute(
            "SELECT id FROM working_memory WHERE content = ? AND session_id = ? LIMIT 1", (content, bank.name)
        ).fetchone()
    )
    if known:
        _refresh(bank, known[0], row)
        return _Written(known[0], duplicate=True, extract_text=None)
    instant = now_ms if options.timestamp is None else parse_ms(timestamp, bank.clock.tz)
    if instant is None:
        raise BankError("The memory's time cannot be read.", where=bank.where, hint="Give it as an ISO date or time.")
    row["id"] = memory_id(content, iso(instant), bank.ids.nonce())
    _insert(bank, row)
    text = content if options.extract_text is None else options.extract_text
    if bank.config.proactive_linking:
        graphs.ingest(row["id"], text, statements=options.extract_entities)
    if options.trim:
        trim(bank)
    return _Written(row["id"], duplicate=False, extract_text=text if options.extract and js_trim(text) else None)


def _row(bank: Bank, content: str, timestamp: str, options: RememberOptions) -> dict[str, Any]:
    veracity = lower(js_trim(options.veracity))
    embed_text = None if options.embed_text is None else well_formed(options.embed_text)
    return {
        "content": content,
        "embed_text": None if embed_text == content else embed_text,
        "source": well_formed(options.source),
        "timestamp": timestamp,
        "session_id": bank.name,
        "importance": options.importance,
        "metadata_json": None if options.metadata is None else json_text(options.metadata),
        "veracity": veracity if veracity in _VERACITIES else "unknown",
        "memory_type": well_formed(options.memory_type),
        "valid_until": options.valid_until,
        "scope": well_formed(options.scope),
        "author_id": AUTHOR_ID,
        "author_type": AUTHOR_TYPE,
        "channel_id": bank.name,
        "trust_tier": _trust_tier(options),
    }


def _trust_tier(options: RememberOptions) -> str:
    if options.trust_tier is not None:
        return options.trust_tier if options.trust_tier in _TRUST_TIERS else "STATED"
    return _TRUST_BY_SOURCE.get(lower(options.source), "STATED")


def _refresh(bank: Bank, known: str, row: Mapping[str, Any]) -> None:
    bank.connection.execute(
        "UPDATE OR ABORT working_memory SET importance = MAX(importance, :importance), timestamp = :timestamp,"
        " source = :source, scope = :scope, memory_type = :memory_type, trust_tier = :trust_tier,"
        " valid_until = COALESCE(:valid_until, valid_until), author_id = COALESCE(:author_id, author_id),"
        " author_type = COALESCE(:author_type, author_type), channel_id = COALESCE(:channel_id, channel_id),"
        " embed_text = COALESCE(:embed_text, embed_text),"
        " veracity = CASE :veracity WHEN 'unknown' THEN veracity ELSE :veracity END, consolidated_at = NULL"
        " WHERE id = :id",
        {**row, "id": known},
    )
    rows.check_stored(bank.connection, "working_memory", known, _kept(row, "content", "timestamp", "source"))


def _insert(bank: Bank, row: Mapping[str, Any]) -> None:
    rows.insert(bank.connection, "working_memory", row)
    kept = _kept(row, "content", "session_id", "timestamp", "metadata_json")
    rows.check_stored(bank.connection, "working_memory", row["id"], kept)
    annotations = [("occurred_on", cut(row["timestamp"], 0, 10))]
    if row["source"] not in _SPOKEN_SOURCES:
        annotations.append(("has_source", row["source"]))
    for kind, value in annotations:
        annotation = {"memory_id": row["id"], "kind": kind, "value": value, "source": "", "confidence": 1.0}
        rows.insert_once(bank.connection, "annotations", annotation, ("memory_id", "kind", "value"))


def _kept(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _extract(bank: Bank, written: _Written) -> None:
    if (
        written.extract_text is not None
        and bank.completion is None
        and (found := read_facts(bank, written.extract_text))
    ):
        with bank.savepoint() as connection:
            FactRows(connection, bank.name, written.id, iso(bank.clock.now_ms())).add_extracted(found)


def _extract_or_take_back(bank: Bank, index: int, written: dict[int, _Written], failed: dict[int, Exception]) -> None:
    done = written[index]
    try:
        _extract(bank, done)
    except Exception as error:  # noqa: BLE001  a memory without its facts would be half-written
        with bank.savepoint():
            cascade_delete(bank.connection, [done.id])
        for other in [other for other in written if written[other].id == done.id]:
            del written[other]
            failed[other] = error


def _schedule(bank: Bank, written: _Written, content: str, options: RememberOptions) -> None:
    text = content if options.embed_text is None else options.embed_text
    if bank.embedder is not None and (not written.duplicate or text != content):
        bank.pending.append(Pending("embed", written.id, text))
    if written.extract_text is not None and bank.completion is not None:
        bank.pending.append(Pending("extract", written.id, written.extract_text))


_TRIGGERS = ("INSERT", "UPDATE OF content")


@dataclass(slots=True)
class _Known:
    """Hashes of at least all texts in the bank, as of a state of the file."""

    state: tuple[int, int]
    hashes: set[int] = field(default_factory=set)

    def note(self, content: bytes | None) -> None:
        self.hashes.add(hash(content))


def may_hold(bank: Bank, content: str) -> bool:
    """Return whether a row of the bank may have this very text; ``False`` is certain.

    Another process's commit, or a step taken back, makes the texts be read again. What this connection writes is noted
    by triggers of its own, which are no part of the file.
    """
    version: int = bank.connection.execute("PRAGMA data_version").fetchone()[0]
    state = (version, bank.taken_back)
    known: _Known | None = bank.memo.get("contents")
    if known is None or known.state != state:
        known = bank.memo["contents"] = _read(bank, state)
    return hash(well_formed(content).encode()) in known.hashes


def _read(bank: Bank, state: tuple[int, int]) -> _Known:
    known = _Known(state)
    bank.connection.create_function("note_content", 1, known.note)
    for number, event in enumerate(_TRIGGERS):
        bank.connection.execute(
            f"CREATE TEMP TRIGGER IF NOT EXISTS note_content_{number} AFTER {event} ON main.working_memory"
            " BEGIN SELECT note_content(CAST(NEW.content AS BLOB)); END"
        )
    known.hashes.update(
        hash(content)
        for (content,) in bank.connection.execute(
            "SELECT CAST(content AS BLOB) FROM working_memory WHERE session_id = ?", (bank.name,)
        )
    )
    return known
