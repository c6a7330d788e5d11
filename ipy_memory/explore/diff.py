"""What differs between two banks, bank files or copies, or what has changed in the scope since a moment."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MagicError
from ipy_memory.explore.banks import open_bank_file
from ipy_memory.explore.browse import checked, find
from ipy_memory.jscompat.dates import covered
from ipy_memory.jscompat.strings import number_text
from ipy_memory.paths import exists, typed_path

if TYPE_CHECKING:
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Memory
    from ipy_memory.session import MemorySession

STORES = ("working", "episodic", "fact")
"""What is compared: memories, and the facts that were made from them."""

KINDS = ("added", "removed", "changed", "ended", "valid again", "dated", "importance", "source")
"""What a row can have become, in the order of a report."""

COLUMNS = ("change", "id", "bank", "store", "before", "after", "content")

UNKNOWN = (
    "A bank does not keep when a text was changed or a memory deleted: compare with a copy, "
    "as in %memory diff COPY BANK."
)
"""What a look at one bank alone cannot say."""

_WORDS = re.compile(r"\s+|[^\s]+")
_MOST_WORDS = 4_000
"""Longer texts are not compared word by word."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; ``content`` is the text, with removed and added words marked where it was changed."""

    change: str
    id: str
    bank: str
    store: str
    before: str
    after: str
    content: str


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences, how many rows are equal, and notes."""

    changes: tuple[Change, ...]
    equal: int
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> DataFrame:
        """The differences as a frame, one row each."""
        from ipy_memory.frames import build

        dtypes: dict[str, Any] = dict.fromkeys(COLUMNS, build.TEXT)
        return build.table({name: [getattr(one, name) for one in self.changes] for name in COLUMNS}, dtypes)

    @property
    def summary(self) -> str:
        """How many rows of each kind there are, in a sentence."""
        counts = Counter(one.change for one in self.changes)
        parts = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
        return f"{', '.join(parts) or 'no difference'}; {self.equal} equal."


def diff(session: MemorySession, before: str, after: str) -> Difference:
    """Compare two banks. Nothing is counted or written.

    Parameters
    ----------
    session
        On local banks; names are looked for under its database folder.
    before, after
        Each the name of a bank, or the path of a bank file or of a copy.

    Returns
    -------
    Difference
        Rows are matched by id, and by text where only one side knows the id, as after a copy under new ids.

    Raises
    ------
    MemoryToolkitError
        There is no such bank, or it cannot be read.
    """
    old, new = _rows(session, before), _rows(session, after)
    return compared(old, new)


def since(session: MemorySession, moment: str) -> Difference:
    """Return what the banks in scope tell of changes since a moment: rows that were made, and memories that ended.

    Parameters
    ----------
    session
        On any backend that can be browsed.
    moment
        A date or time; UTC without a zone.
    """
    start = _at(checked({"since": moment})["since"])
    now = float(session.clock.now_ms())
    changes, equal = [], 0
    for row in find(session, None, {}, STORES, limit=None, offset=0).memories:
        if _made(row, now) >= start:
            changes.append(_change("added", row, "", row.timestamp or ""))
        elif row.valid_until and start <= _at(row.valid_until) <= now:
            changes.append(_change("ended", row, "", row.superseded_by or row.valid_until))
        else:
            equal += 1
    return Difference(tuple(_in_order(changes)), equal, (UNKNOWN,))


def _made(row: Memory, now: float) -> float:
    """Return when a row was made: what is imported has an old time, and a row that was made lately."""
    return max((at for at in (_at(row.timestamp), _at(row.created_at)) if at <= now), default=float("-inf"))


def compared(old: Sequence[Memory], new: Sequence[Memory]) -> Difference:
    """Return how the rows of one bank differ from those of another (pure)."""
    before, after = _by_key(old), _by_key(new)
    changes: list[Change] = []
    equal = 0
    gone = [row for key, row in before.items() if key not in after]
    fresh = [row for key, row in after.items() if key not in before]
    known = Counter((row.store, row.content) for row in gone)
    for row in fresh:
        if known[row.store, row.content] > 0:
            known[row.store, row.content] -= 1
            equal += 1
        else:
            changes.append(_change("added", row, "", row.timestamp or ""))
    for row in gone:
        if known[row.store, row.content] > 0:
            known[row.store, row.content] -= 1
            changes.append(_change("removed", row, row.timestamp or "", ""))
    for key, row in after.items():
        if key in before:
            found = list(_differences(before[key], row))
            changes += found
            equal += not found
    return Difference(tuple(_in_order(changes)), equal)


def _differences(old: Memory, new: Memory) -> Iterator[Change]:
    if old.content != new.content:
        yield _change("changed", new, old.content, new.content, word_diff(old.content, new.content))
    if (old.state in (None, "live")) != (new.state in (None, "live")):
        kind = "ended" if old.state in (None, "live") else "valid again"
        yield _change(kind, new, old.state or "live", new.superseded_by or new.state or "live")
    for kind, name in (("dated", "timestamp"), ("source", "source")):
        if getattr(old, name) != getattr(new, name):
            yield _change(kind, new, getattr(old, name) or "", getattr(new, name) or "")
    if old.importance != new.importance:
        yield _change("importance", new, _number(old.importance), _number(new.importance))


def _number(value: float | None) -> str:
    return "" if value is None else number_text(value)


def _change(kind: str, row: Memory, before: str, after: str, content: str | None = None) -> Change:
    return Change(kind, row.id, row.bank, row.store, before, after, row.content if content is None else content)


def _in_order(changes: Sequence[Change]) -> list[Change]:
    return sorted(changes, key=lambda one: KINDS.index(one.change))


def _by_key(rows: Sequence[Memory]) -> dict[tuple[str, str], Memory]:
    return {(row.store, row.id): row for row in rows}


def word_diff(old: str, new: str) -> str:
    """Return a text with removed words in ``[-…-]`` and added ones in ``{+…+}`` (pure).

    Examples
    --------
    >>> word_diff("The port is 9077.", "The port is 9078.")
    'The port is [-9077.-]{+9078.+}'
    """
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(one), len(other)) > _MOST_WORDS:
        return f"[-{old}-]{{+{new}+}}"
    parts = []
    for kind, start, end, from_, to in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        removed, added = "".join(one[start:end]), "".join(other[from_:to])
        if kind == "equal":
            parts.append(added)
            continue
        parts += [f"[-{removed}-]"] if removed else []
        parts += [f"{{+{added}+}}"] if added else []
    return "".join(parts)


def _at(stamp: str | None) -> float:
    """Return a time stamp as milliseconds; one that cannot be read lies before every moment."""
    found = covered(stamp or "")
    return float("-inf") if found is None else float(found[0])


def _rows(session: MemorySession, word: str) -> Sequence[Memory]:
    """Return the rows of a bank by its name, or of a file."""
    if not _is_path(word):
        return find(session, word, {}, STORES, limit=None, offset=0).memories
    if not exists(Path(typed_path(word, session.env))):
        raise MagicError(f"there is no file {word}", hint="name a bank, or the path of a bank file")
    given = {"cwd": session.cwd, "agent_dir": session.agent_dir, "env": session.env, "clock": session.clock}
    with open_bank_file(word, **given) as opened:
        return find(opened, None, {}, STORES, limit=None, offset=0).memories


def _is_path(word: str) -> bool:
    return os.sep in word or word.startswith("~") or word.endswith((".db", ".sqlite"))


def asked(session: MemorySession, words: str, moment: str | None) -> Difference:
    """Return what the command asks for: two banks by name or path, or ``--since``.

    Raises
    ------
    MagicError
        Neither or both are given.
    """
    named = words.split()
    if moment is not None and not named:
        return since(session, moment)
    if moment is None and len(named) == 2:
        return diff(session, *named)
    raise MagicError("name two banks or bank files, or --since DATE", hint="as in %memory diff copy.db default")
