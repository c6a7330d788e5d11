"""The same queries asked in several ways, side by side: what moved, and what only one of them gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.clock import ProcessIds
from ipy_memory.errors import MagicError
from ipy_memory.paths import typed_path
from ipy_memory.ranking import RANKINGS
from ipy_memory.settings.table import SCOPINGS, SETTINGS

if TYPE_CHECKING:
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Hit
    from ipy_memory.session import MemorySession

DIMENSIONS = ("ranking", "scope", "backend", "limit")
"""What can vary besides settings."""
LIMIT = 8
"""The most hits of a variant, unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to ask: its name in tables, the ranking, the most hits, and the settings that differ."""

    name: str
    ranking: str = "agent"
    limit: int = LIMIT
    settings: Mapping[str, Any] = field(default_factory=dict)


def variants(session: MemorySession, by: str, limit: int | None = None) -> list[Variant]:
    """Return every combination of what varies.

    Parameters
    ----------
    session
        Its backend decides which scopes and rankings there are.
    by
        Names separated by commas: ``ranking``, ``scope``, ``backend``, ``limit=3,8``, or a setting with its values,
        such as ``mnemopi.noEmbeddings=true,false``. Empty: as the agent recalls.
    limit
        The most hits where the limit does not vary.

    Raises
    ------
    MagicError
        Something cannot vary, or has no value.
    """
    choices = {name: _values(name, values) for name, values in _parts(by).items()}
    found = []
    for combined in product(*choices.values()):
        asked = dict(zip(choices, combined, strict=True))
        ranking, most = asked.pop("ranking", "agent"), asked.pop("limit", limit or LIMIT)
        words = [str(value) for value in combined]
        backend = asked.pop("backend", session.chosen)
        settings: dict[str, Any] = {} if backend == session.chosen else {"memory.backend": backend}
        if "scope" in asked:
            settings[f"{backend}.scoping"] = asked.pop("scope")
        found.append(Variant(" ".join(words) or ranking, ranking, int(most), settings | asked))
    return found


def _parts(by: str) -> dict[str, list[str]]:
    """Return what varies with the values that are given for it."""
    found: dict[str, list[str]] = {}
    latest = ""
    for part in filter(None, (each.strip() for each in by.split(","))):
        name, equals, value = part.partition("=")
        if equals or part in DIMENSIONS:
            latest = name
            found.setdefault(name, []).extend([value] if equals else [])
        elif latest and found[latest]:
            found[latest].append(part)
        else:
            raise MagicError(
                f"{part!r} cannot vary", hint=f"use {', '.join(DIMENSIONS)}, or a setting with values, as in limit=3,8"
            )
    return found


def _values(name: str, given: Sequence[str]) -> list[Any]:
    usual: Mapping[str, Sequence[str]] = {
        "ranking": RANKINGS,
        "scope": SCOPINGS,
        "backend": ("mnemopi", "hindsight"),
    }
    if name not in DIMENSIONS and name not in SETTINGS:
        raise MagicError(f"there is no setting {name!r}", hint="%memory status lists settings by name")
    values = list(given) or list(usual.get(name, ()))
    if not values:
        raise MagicError(f"{name} needs values", hint=f"as in {name}=3,8")
    if name == "limit":
        if not all(value.isascii() and value.isdecimal() and int(value) for value in values):
            raise MagicError("a limit must be a whole number of at least 1", hint="as in limit=3,8")
        return [int(value) for value in values]
    if wrong := [value for value in values if name in usual and value not in usual[name]]:
        raise MagicError(f"{name} cannot be {wrong[0]!r}", hint=f"valid are {', '.join(usual[name])}")
    return values if name in usual else [_typed(value) for value in values]


def _typed(value: str) -> Any:
    """Return a setting's value as its type: true, false, a number, or text."""
    if value in {"true", "false"}:
        return value == "true"
    try:
        return int(value) if value.lstrip("-").isdecimal() else float(value)
    except ValueError:
        return value


@contextmanager
def opened(session: MemorySession, variant: Variant) -> Iterator[MemorySession]:
    """Open a session like another one under a variant's settings, with ids of its own; the same one if none differ."""
    if not variant.settings:
        yield session
        return
    made = type(session)(
        session.settings.with_overrides(variant.settings),
        cwd=session.cwd,
        agent_dir=session.agent_dir,
        env=session.env,
        clock=session.clock,
        ids=ProcessIds(),
        timers=session.timers,
        session_id=session.session_id,
        embedder=session.embedder,
    )
    made.install_backend()
    with made:
        yield made


def hits(session: MemorySession, variant: Variant, query: str) -> tuple[Hit, ...]:
    """Return what a variant gives for a query; nothing is counted."""
    return session.recall(query, ranking=variant.ranking, limit=variant.limit, touch=False).hits


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
        What varies, as :func:`ipy_memory.explore.compare.variants` takes it.
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
    chosen = variants(session, by, limit)
    found: dict[tuple[str, str], Compared] = {}
    for number, variant in enumerate(chosen):
        with opened(session, variant) as one:
            for done, query in enumerate(queries, 1):
                for rank, hit in enumerate(hits(one, variant, query), 1):
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
