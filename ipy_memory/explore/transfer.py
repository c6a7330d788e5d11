"""Moving banks: an archive with every column, checked before anything of it is taken in, and lossy forms to read."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ipy_memory.backends.mnemopi.db.schema import TABLES
from ipy_memory.backends.mnemopi.pool import WRITE
from ipy_memory.backends.mnemopi.store import transfer
from ipy_memory.errors import BankError, MagicError, MemoryToolkitError
from ipy_memory.explore.browse import find
from ipy_memory.explore.local import chosen_targets, local_backend, readable
from ipy_memory.paths import exists, typed_path
from ipy_memory.redact import redact

if TYPE_CHECKING:
    from ipy_memory.backends.mnemopi.store.transfer import Loaded, Row
    from ipy_memory.session import MemorySession

FORMAT, VERSION = "ipy_memory.bank", 1
FORMATS = ("jsonl", "csv", "markdown")
CONFLICTS = ("skip", "newer", "both")
_EXTENSIONS = {".jsonl": "jsonl", ".csv": "csv", ".md": "markdown"}
_LOSSY = "Only memories and their main columns were written; facts, links, vectors and counters were left out."
_MOST_LINE = 20_000_000
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_COLUMNS = ("id", "bank", "store", "timestamp", "source", "type", "importance", "veracity", "state", "content")

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the file, how many rows of which bank, and notes."""

    path: Path
    rows: dict[str, int]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        listed = ", ".join(f"{count:,} rows of bank {bank}" for bank, count in self.rows.items()) or "no bank"
        return f"Written: {self.path} ({listed})."


@dataclass(frozen=True, slots=True)
class Imported:
    """What was taken in, or would be, by bank."""

    done: bool
    banks: dict[str, Loaded]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [_line(name, loaded, done=self.done) for name, loaded in self.banks.items()]
        return "\n".join(lines) or "The archive holds no bank."


def _line(bank: str, loaded: Loaded, *, done: bool) -> str:
    def memories(counted: Counter[str]) -> int:
        return sum(counted[table] for table in transfer.MEMORIES)

    others = sum(loaded.added.values()) - memories(loaded.added)
    parts = [f"{memories(loaded.added)} added", f"{memories(loaded.known)} known already"]
    parts += [f"{memories(loaded.replaced)} replaced by newer ones"] if loaded.replaced else []
    verb = "" if done else "would be: "
    return f"Bank {bank}: {verb}memories {', '.join(parts)}; {others} facts, links and other rows added."


def export(
    session: MemorySession,
    path: str | os.PathLike[str],
    *,
    bank: str | None = None,
    form: str | None = None,
    vectors: bool = False,
    redacted: bool = False,
    progress: Progress = lambda *_: None,
) -> Exported:
    """Write banks to a file. No bank is changed, and no file is overwritten.

    Parameters
    ----------
    session
        On local banks.
    path
        A new file; its extension says the form unless ``form`` does.
    bank
        One bank by name, ``"*"`` for all of the database folder; by default those in scope.
    form
        ``"jsonl"`` holds every column that recall, edits and consolidation read; ``"csv"`` and ``"markdown"`` hold
        memories to read.
    vectors
        Write vectors too (JSONL).
    redacted
        Replace what looks like a credential.
    progress
        Told how many of how many rows are written.

    Raises
    ------
    MemoryToolkitError
        The form is unknown, the file is there already or cannot be written, or a bank cannot be read.
    """
    place = Path(typed_path(os.fspath(path), session.env))
    kind = form or _EXTENSIONS.get(place.suffix.lower())
    if kind not in FORMATS:
        raise MagicError(f"the form of {place.name} is unknown", hint=f"use --format, one of {', '.join(FORMATS)}")
    backend = local_backend(session, "exporting")
    targets = chosen_targets(backend, bank)
    clean = _redacted if redacted else _same
    with _new_file(place) as file:
        if kind == "jsonl":
            written: dict[str, int] = {}
            archive = _Archive(file)
            for target, opened in readable(backend, targets):
                if isinstance(opened, BankError):
                    raise opened
                with opened.snapshot():
                    counts = transfer.counts_of(opened, vectors=vectors)
                    archive.begin(target.name, counts)
                    total = sum(counts.values())
                    for number, (table, row) in enumerate(transfer.rows_of(opened, vectors=vectors), 1):
                        archive.row(table, {name: clean(value) for name, value in row.items()})
                        if not number % 500:
                            progress(number, total)
                written[target.name] = total
            archive.end()
            return Exported(place, written)
        rows = find(session, bank, {}, ("working", "episodic"), limit=None, offset=0).memories
        _write_readable(file, kind, [[clean(getattr(row, name)) for name in _COLUMNS] for row in rows])
        return Exported(place, dict(Counter(row.bank for row in rows)), (_LOSSY,))


def _same(value: Any) -> Any:
    return value


def _redacted(value: Any) -> Any:
    return redact(value) if isinstance(value, str) else value


def _write_readable(file: BinaryIO, kind: str, rows: list[list[Any]]) -> None:
    lines: list[str] = []
    if kind == "csv":
        with tempfile.SpooledTemporaryFile(mode="w+", encoding="utf-8", newline="") as table:
            writer = csv.writer(table)
            writer.writerow(_COLUMNS)
            writer.writerows([_as_text(value) for value in row] for row in rows)
            table.seek(0)
            file.writelines(line.encode("utf-8", "surrogatepass") for line in table)
        return
    for row in rows:
        known = dict(zip(_COLUMNS, row, strict=True))
        lines += [
            f"## {known['id']}",
            "",
            f"{known['timestamp'] or 'no date'}, bank {known['bank']}, {known['state']}",
            "",
        ]
        lines += [f"    {line}" for line in str(known["content"]).splitlines()] + [""]
    file.write("\n".join(lines).encode("utf-8", "surrogatepass"))


def _as_text(value: Any) -> str:
    """Return a cell for a table; one that a spreadsheet would carry out begins with an apostrophe."""
    text = "" if value is None else str(value)
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} and not isinstance(value, int | float) else text


@contextmanager
def _new_file(place: Path) -> Iterator[BinaryIO]:
    """Make a file that nobody else can read; it has its name once it is whole, and is written over no other."""
    if exists(place):
        raise MemoryToolkitError(f"{place} is there already.", hint="use another name; nothing was written")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    except OSError as error:
        raise MemoryToolkitError(f"{place} cannot be written: {error.strerror}", hint="use another folder") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(name, place)  # unlike a rename, this never replaces a file
        except OSError as error:
            raise MemoryToolkitError(f"{place} was not written: {error.strerror}", hint="use another name") from None
    finally:
        with suppress(OSError):
            Path(name).unlink()


class _Archive:
    """Writes lines of an archive, and at its end how many there are with their checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._rows = 0

    def begin(self, bank: str, counts: dict[str, int]) -> None:
        """Begin a bank."""
        self._line({"format": FORMAT, "version": VERSION, "bank": bank, "counts": counts})

    def row(self, table: str, row: Row) -> None:
        """Write a row."""
        self._rows += 1
        self._line({"table": table, "row": {name: _plain(value) for name, value in row.items() if value is not None}})

    def end(self) -> None:
        """Write the last line."""
        self._line({"end": FORMAT, "rows": self._rows, "sha256": self._sum.hexdigest()})

    def _line(self, data: dict[str, Any]) -> None:
        line = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        self._sum.update(line)
        self._file.write(line)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def import_archive(
    session: MemorySession,
    path: str | os.PathLike[str],
    *,
    into: str | None = None,
    dry_run: bool = False,
    conflict: str = "skip",
    progress: Progress = lambda *_: None,
) -> Imported:
    """Take an archive into banks: each back under its name, or all into one; harmless when repeated.

    The archive is read and checked as a whole first. Each bank takes its rows in one transaction; one that was there
    is copied before. No text is changed.

    Parameters
    ----------
    session
        On local banks.
    path
        A JSONL archive that :func:`export` wrote.
    into
        The one bank that takes everything.
    dry_run
        Only say what would be taken in; nothing is written.
    conflict
        ``"skip"``, ``"newer"`` or ``"both"``: what becomes of a memory whose id is there already.
    progress
        Told how many of how many rows are read.

    Raises
    ------
    MemoryToolkitError
        The file is not such an archive, is cut or changed, or a bank cannot be written; nothing was taken in.
    """
    if conflict not in CONFLICTS:
        raise MagicError(f"a conflict cannot be {conflict!r}", hint=f"valid are {', '.join(CONFLICTS)}")
    place = Path(typed_path(os.fspath(path), session.env))
    backend = local_backend(session, "importing")
    total = _checked(place)
    found: dict[str, Loaded] = {}
    read = 0
    with backend.banks.lock:
        for name, rows in _banks(place):
            target = backend.target(into or name)
            had = exists(target.path)
            if dry_run and not had:
                found.setdefault(target.name, transfer.Loaded()).added.update(table for table, _ in rows)
                continue
            bank = backend.banks.get(target, WRITE)
            if bank is None:
                raise BankError("The bank cannot be opened for writing.", where=target.name, hint="check its folder")
            if had and not dry_run:
                backend.back_up_once(bank)
            with suppress(_DryRunError), bank.transaction():
                loaded = transfer.load(bank, rows, came_from=name, conflict=conflict)
                _merge(found.setdefault(target.name, transfer.Loaded()), loaded)
                if dry_run:
                    raise _DryRunError
            read += sum(sum(each.values()) for each in (loaded.added, loaded.known, loaded.replaced))
            progress(read, total)
    return Imported(not dry_run, found)


class _DryRunError(Exception):
    """Rolls back what a dry run wrote."""


def _merge(into: Loaded, more: Loaded) -> None:
    into.added += more.added
    into.known += more.known
    into.replaced += more.replaced


def _checked(place: Path) -> int:
    """Return how many rows an archive holds, if it is whole and every line can be read."""
    digest, rows, last = hashlib.sha256(), 0, None
    try:
        with place.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE), b""), 1):
                data = _read_line(line, number)
                if "end" in data:
                    last = data
                    break
                _check(data, number)
                digest.update(line)
                rows += "table" in data
    except OSError as error:
        raise MemoryToolkitError(f"{place} cannot be read: {error.strerror}", hint="name an archive") from None
    if last is None or last.get("sha256") != digest.hexdigest() or last.get("rows") != rows:
        raise MemoryToolkitError(
            "The archive is cut or was changed: its last line does not fit the others.",
            where=str(place),
            hint="nothing was taken in; export it again",
        )
    return rows


def _read_line(line: bytes, number: int) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise MagicError(f"line {number}: not a line of an archive", hint="import takes what %memory export wrote")
    return data


def _check(data: dict[str, Any], number: int) -> None:
    """Raise for a line that is neither the beginning of a bank nor a row of a known table."""
    if number == 1 and data.get("format") != FORMAT:
        raise MagicError("this is not an archive of banks", hint="import takes what %memory export wrote as JSONL")
    if "format" in data:
        if data["format"] != FORMAT or data.get("version") != VERSION or not _is_name(data.get("bank")):
            raise MagicError(f"line {number}: an archive of another version", hint="export it with this release")
        return
    row = data.get("row")
    if data.get("table") not in TABLES or not isinstance(row, dict) or not all(map(_is_cell, row.values())):
        raise MagicError(f"line {number}: not a row of a bank", hint="nothing was taken in")
    key = "id" if data["table"] in transfer.MEMORIES else None
    if key is not None and not all(isinstance(row.get(name), str) for name in (key, "content")):
        raise MagicError(f"line {number}: a memory without id or text", hint="nothing was taken in")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_cell(value: Any) -> bool:
    if isinstance(value, dict):
        return len(value) == 1 and all(map(_is_coded, value.items()))
    if isinstance(value, int) and not isinstance(value, bool):
        return -(1 << 63) <= value < 1 << 63
    return value is None or isinstance(value, str | float)


def _is_coded(item: tuple[str, Any]) -> bool:
    """Return whether a cell that JSON has no form for is written as export writes it."""
    kind, text = item
    if not isinstance(text, str):
        return False
    if kind == "number":
        return text in {"inf", "-inf", "nan"}
    return kind == "bytes" and _BASE64.fullmatch(text) is not None


def _banks(place: Path) -> Iterator[tuple[str, Iterator[tuple[str, Row]]]]:
    """Yield each bank of a checked archive with its rows, which must be read before the next one."""
    with place.open("rb") as file:
        lines = (json.loads(line) for line in file)
        head = next(lines)
        while "end" not in head:
            following: list[dict[str, Any]] = []
            rows = _rows_until(lines, following)
            yield head["bank"], rows
            for _ in rows:
                """Read what was not asked for."""
            head = following[0]


def _rows_until(lines: Iterator[dict[str, Any]], following: list[dict[str, Any]]) -> Iterator[tuple[str, Row]]:
    for data in lines:
        if "table" not in data:
            following.append(data)
            return
        yield data["table"], {name: _cell(value) for name, value in data["row"].items()}


def _cell(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return base64.b64decode(value["bytes"]) if "bytes" in value else float(value["number"])
