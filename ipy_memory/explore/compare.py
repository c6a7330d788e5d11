"""The same queries asked in several ways, side by side: what moved, and what only one of them gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MagicError
from ipy_memory.explore import variants as asking
from ipy_memory.paths import typed_path

if TYPE_CHECKING:
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.session import MemorySession


@dataclass(frozen=True, slots=True)
class Compared:
    """One memory that some variant gives for a query, with its rank in each.

    ``moved`` is the largest difference between two of its ranks; ``only_in`` names the one variant that gives it.
    """

    query: str
    id: str
    bank: str
    content: str
    ranks: dict[str, int] = field(default_factory=dict)

    def moved(self) -> int:
        """Return how far it moves between the variants that give it."""
        return max(self.ranks.values()) - min(self.ranks.values())

    def only_in(self, names: Sequence[str]) -> str:
        """Return the variant that alone gives it, if there are others."""
        return next(iter(self.ranks)) if len(self.ranks) == 1 and len(names) > 1 else ""


def compare(
    session: MemorySession,
    queries: Sequence[str],
    by: str = "ranking",
    *,
    limit: int | None = None,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> DataFrame:
    """Return what each variant gives for each query. Nothing is counted or written.

    Parameters
    ----------
    session
        On any backend.
    queries
        Taken literally; at least one.
    by
        What varies, as :func:`ipy_memory.explore.variants.variants` takes it.
    limit
        The most hits of each variant where the limit does not vary; 8 by default.
    progress
        Told how many of how many recalls are done.

    Returns
    -------
    DataFrame
        ``query``, ``id``, ``bank``, a column with the rank for each variant, ``moved``, ``only in`` and ``content``;
        in the order of the best rank.
    """
    from ipy_memory.frames import build

    rows, names = compared(session, queries, by, limit=limit, progress=progress)
    dtypes: dict[str, Any] = dict.fromkeys(("query", "id", "bank"), build.TEXT) | dict.fromkeys(names, build.WHOLE)
    dtypes |= {"moved": build.WHOLE, "only in": build.TEXT, "content": build.TEXT}
    values: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in ("query", "id", "bank")}
    values |= {name: [row.ranks.get(name) for row in rows] for name in names}
    values["moved"] = [row.moved() for row in rows]
    values["only in"] = [row.only_in(names) for row in rows]
    values["content"] = [row.content for row in rows]
    return build.table(values, dtypes)


def compared(
    session: MemorySession,
    queries: Sequence[str],
    by: str = "ranking",
    *,
    limit: int | None = None,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> tuple[list[Compared], list[str]]:
    """Return the rows of :func:`compare`, and the names of the variants."""
    if not queries:
        raise MagicError("there is no query to compare", hint="type one, or name a file with --file")
    chosen = asking.variants(session, by, limit)
    found: dict[tuple[str, str], Compared] = {}
    for number, variant in enumerate(chosen):
        with asking.opened(session, variant) as one:
            for done, query in enumerate(queries, 1):
                for rank, hit in enumerate(asking.hits(one, variant, query), 1):
                    row = Compared(query, hit.id or "", hit.bank or "", hit.content)
                    found.setdefault((query, row.id or row.content), row).ranks[variant.name] = rank
                progress(number * len(queries) + done, len(chosen) * len(queries))
    place = {query: at for at, query in enumerate(queries)}
    rows = sorted(found.values(), key=lambda row: (place[row.query], min(row.ranks.values())))
    return rows, [variant.name for variant in chosen]


def queries_of(text: str, file: str | None, env: Mapping[str, str] | None) -> list[str]:
    """Return what is to be asked: the text as typed, or each line of a file.

    Raises
    ------
    MagicError
        Both or neither are given, or the file cannot be read.
    """
    if (file is None) is not bool(text.strip()):
        raise MagicError("type one query, or name a file with --file", hint="see %memory compare -h")
    return [text] if file is None else _lines(Path(typed_path(file, env)))


def _lines(path: Path) -> list[str]:
    """Return the lines of a text file that are not blank, each once."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise MagicError(
            f"{path} cannot be read: {type(error).__name__}", hint="name a file with one query a line"
        ) from None
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
