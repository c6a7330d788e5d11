"""How well recall finds what it should, measured on questions whose memories are known."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MagicError, MemoryNotFoundError, MemoryToolkitError
from ipy_memory.explore import compare as asking
from ipy_memory.explore.browse import find
from ipy_memory.explore.why import why
from ipy_memory.ranking import measures

if TYPE_CHECKING:
    from ipy_memory.explore.compare import Variant
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.model import Memory
    from ipy_memory.session import MemorySession

FEW = 30
"""Below so many questions the cases say more than the mean."""
_MOST_BYTES = 50_000_000
_DEEP = 1_000
"""How far the ranking `best` is followed to say where a missed memory stands."""
_QUERY_UNITS = 300

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and the ids of the memories that answer it; ``hashes`` of their texts show later edits."""

    query: str
    ids: tuple[str, ...]
    hashes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What one variant made of one memory of a question: its rank from 1, or why it was missed."""

    query: str
    id: str
    variant: str
    rank: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """The measures of one variant, and how they differ from those of the first one.

    ``low`` and ``high`` bound the difference of ``recall`` with 95 % confidence; ``needs`` says how many questions
    would show a difference as large.
    """

    variant: str
    k: int
    questions: int
    hit: float
    recall: float
    mrr: float
    ndcg: float
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    needs: int | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The measures by variant, the cases behind them, and notes on how far they can be trusted."""

    lines: tuple[Line, ...]
    cases: tuple[Case, ...]
    runs: Mapping[str, Mapping[str, Sequence[str]]]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> DataFrame:
        """The measures as a frame, one row a variant."""
        from ipy_memory.frames import build

        whole, number = ("k", "questions", "needs"), ("hit", "recall", "mrr", "ndcg", "difference", "low", "high")
        dtypes: dict[str, Any] = {"variant": build.TEXT}
        dtypes |= dict.fromkeys(whole[:2], build.WHOLE) | dict.fromkeys(number, build.NUMBER) | {"needs": build.WHOLE}
        return build.table({name: [getattr(line, name) for line in self.lines] for name in dtypes}, dtypes)

    @property
    def frame(self) -> DataFrame:
        """The cases as a frame: query, id, variant, rank, why."""
        from ipy_memory.frames import build

        dtypes: dict[str, Any] = dict.fromkeys(("query", "id", "variant"), build.TEXT)
        dtypes |= {"rank": build.WHOLE, "why": build.TEXT}
        return build.table({name: [getattr(case, name) for case in self.cases] for name in dtypes}, dtypes)

    def value(self, measure: str) -> float:
        """Return a measure of the first variant by its name, such as ``hit@8``, ``recall@8``, ``mrr`` or ``ndcg``.

        Raises
        ------
        MagicError
            No such measure was taken.
        """
        name, _, k = measure.partition("@")
        line = self.lines[0]
        if name not in ("hit", "recall", "mrr", "ndcg") or (k and k != str(line.k)):
            raise MagicError(
                f"there is no measure {measure!r}", hint=f"there are hit@{line.k}, recall@{line.k}, mrr, ndcg"
            )
        return float(getattr(line, name))

    def trec(self) -> tuple[str, str]:
        """Return judgements and runs in the forms of TREC, for other tools: ``qrels`` and ``run``."""
        qrels = [f"q{number} 0 {id_} 1" for number, pair in enumerate(self.pairs, 1) for id_ in pair.ids]
        run = [
            f"q{number} Q0 {id_} {rank} {1 / rank:.6f} {variant.replace(' ', '_')}"
            for variant, answers in self.runs.items()
            for number, pair in enumerate(self.pairs, 1)
            for rank, id_ in enumerate(answers[pair.query], 1)
        ]
        return "\n".join([*qrels, ""]), "\n".join([*run, ""])


def evaluate(
    session: MemorySession,
    pairs: Sequence[Pair],
    by: str = "ranking",
    *,
    limit: int | None = None,
    progress: Progress = lambda *_: None,
) -> Evaluation:
    """Measure recall on questions whose memories are known. Nothing is counted or written.

    Parameters
    ----------
    session
        On any backend.
    pairs
        The questions, as :func:`read_pairs` or :func:`proxies` gives them.
    by
        What varies, as :func:`ipy_memory.explore.compare.variants` takes it; the first variant is the one that the
        others are compared with.
    limit
        The ``k`` of all measures where the limit does not vary; 8 by default.
    progress
        Told how many of how many questions are done.

    Returns
    -------
    Evaluation
        Measures, and each case with its rank or the reason why it was missed.

    Raises
    ------
    MagicError
        There is no question, or something cannot vary.
    """
    if not pairs:
        raise MagicError("there is no question to evaluate", hint='give lines such as {"query": …, "ids": ["…"]}')
    chosen = asking.variants(session, by, limit)
    lines: list[Line] = []
    cases: list[Case] = []
    runs: dict[str, dict[str, list[str]]] = {}
    first: list[float] = []
    for number, variant in enumerate(chosen):
        with asking.opened(session, variant) as one:
            answers: dict[str, list[str]] = {}
            for done, pair in enumerate(pairs, 1):
                answers[pair.query] = [hit.id or "" for hit in asking.hits(one, variant, pair.query)]
                cases += _cases(one, variant, pair, answers[pair.query])
                progress(number * len(pairs) + done, len(chosen) * len(pairs))
        found = [measures.scores(answers[pair.query], pair.ids, variant.limit) for pair in pairs]
        recalls = [score.recall for score in found]
        line = Line(
            variant.name,
            variant.limit,
            len(pairs),
            measures.mean([score.hit for score in found]),
            measures.mean(recalls),
            measures.mean([score.reciprocal for score in found]),
            measures.mean([score.gain for score in found]),
        )
        if number:
            differences = [mine - other for mine, other in zip(recalls, first, strict=True)]
            low, high = measures.interval(differences)
            line = _compared(line, measures.mean(differences), low, high, measures.needed(differences))
        else:
            first = recalls
        lines.append(line)
        runs[variant.name] = answers
    return Evaluation(tuple(lines), tuple(cases), runs, tuple(pairs), tuple(_notes(session, pairs)))


def _compared(line: Line, difference: float, low: float, high: float, needs: int | None) -> Line:
    return Line(
        line.variant, line.k, line.questions, line.hit, line.recall, line.mrr, line.ndcg, difference, low, high, needs
    )


def _cases(session: MemorySession, variant: Variant, pair: Pair, ranked: Sequence[str]) -> list[Case]:
    return [
        Case(pair.query, id_, variant.name, ranked.index(id_) + 1)
        if id_ in ranked
        else Case(pair.query, id_, variant.name, None, _missed(session, variant, pair.query, id_))
        for id_ in pair.ids
    ]


def _missed(session: MemorySession, variant: Variant, query: str, memory_id: str) -> str:
    """Return why a memory is not among a variant's hits."""
    try:
        if variant.ranking == "agent":
            return why(session, memory_id, query, limit=variant.limit).reason
        deep = [hit.id for hit in session.recall(query, ranking=variant.ranking, limit=_DEEP, touch=False).hits]
        if memory_id in deep:
            return f"ranked {deep.index(memory_id) + 1}, beyond the limit of {variant.limit}"
        session.memory(memory_id)
    except MemoryNotFoundError:
        return "no memory in scope has this id"
    except MemoryToolkitError as error:
        return error.message
    return f"not among the first {_DEEP}: no word of the question leads to it"


def _notes(session: MemorySession, pairs: Sequence[Pair]) -> list[str]:
    notes = []
    if len(pairs) < FEW:
        least = measures.seen_difference(len(pairs))
        notes.append(
            f"{len(pairs)} question{'' if len(pairs) == 1 else 's'} can show differences of about {least:.2f} and more:"
            " look at the cases, not at the mean."
        )
    if edited := [id_ for pair in pairs for id_ in _edited(session, pair)]:
        notes.append(f"The text of {len(edited)} memories has changed since they were named: {', '.join(edited[:3])}")
    return notes


def _edited(session: MemorySession, pair: Pair) -> list[str]:
    found = []
    for id_, known in zip(pair.ids, pair.hashes, strict=False):
        try:
            if known and text_hash(session.memory(id_).content) != known:
                found.append(id_)
        except MemoryToolkitError:
            continue
    return found


class BelowFloorError(MagicError):
    """A measure is below what was asked for."""


def check_floor(found: Evaluation, floor: str) -> None:
    """Raise :class:`BelowFloorError` where a measure of the first variant is below a floor such as ``hit@8=.8``."""
    name, _, value = floor.partition("=")
    try:
        least = float(value)
    except ValueError:
        raise MagicError(f"invalid floor {floor!r}", hint="as in hit@8=.8") from None
    if (reached := found.value(name)) < least:
        raise BelowFloorError(
            f"{name} is {reached:.3f}, below {least:g}", hint="see which questions were missed, and why"
        )


def said(found: Evaluation, *, proxy: bool) -> list[str]:
    """Return what is to be said below the measures: what they are of, and the first misses with their reasons."""
    notes = ["Proxy: the questions come from the bank itself; this is no measure of quality."] if proxy else []
    first = found.lines[0].variant
    missed = [case for case in found.cases if case.variant == first and case.rank is None]
    if missed:
        notes.append(
            f"{first} missed {len(missed)}, such as {missed[0].id} for {missed[0].query[:60]!r}: {missed[0].why}"
        )
    return notes


def write_trec(found: Evaluation, place: Path) -> list[str]:
    """Write judgements and runs beside each other, over no file that is there; return what was written.

    Raises
    ------
    MagicError
        A file is there already, or cannot be written.
    """
    written = []
    for kind, text in zip(("qrels", "run"), found.trec(), strict=True):
        path = place.with_name(f"{place.name}.{kind}")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise MagicError(f"{path} was not written: {error.strerror}", hint="use another name") from None
        written.append(f"Written: {path}")
    return written


def text_hash(text: str) -> str:
    """Return the short hash by which a later edit of a memory is noticed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_pairs(given: str | Path | Iterable[Mapping[str, Any]]) -> list[Pair]:
    """Return questions from a file, a frame's records or mappings.

    Parameters
    ----------
    given
        A CSV, TSV or JSONL file, or mappings, with the fields ``query`` and ``ids`` (or ``id``: one id, a list, or
        ids separated by blanks or commas) and optionally ``hashes``.

    Raises
    ------
    MagicError
        The file cannot be read, or a row lacks a query or an id; the message says which.
    """
    rows = _file_rows(Path(given)) if isinstance(given, str | Path) else list(given)
    found = []
    for number, row in enumerate(rows, 1):
        query, ids = row.get("query"), _texts(row.get("ids") if row.get("ids") is not None else row.get("id"))
        if not isinstance(query, str) or not query.strip() or not ids:
            raise MagicError(f"row {number} has no query or no id", hint='as in {"query": "…", "ids": ["…"]}')
        found.append(Pair(query, ids, _texts(row.get("hashes"))))
    return found


def _file_rows(path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise MagicError(f"{path.name} is larger than {_MOST_BYTES // 1_000_000} MB", hint="use fewer questions")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise MagicError(f"{path} cannot be read: {type(error).__name__}", hint="name a CSV or JSONL file") from None
    if path.suffix.lower() in {".csv", ".tsv"}:
        return [*csv.DictReader(io.StringIO(text), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")]
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise MagicError(
                f"line {number} of {path.name}: invalid JSON object", hint='as in {"query": …, "ids": […]}'
            )
        rows.append(row)
    return rows


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    return tuple(str(one) for one in value) if isinstance(value, list | tuple) else ()


def proxies(session: MemorySession, most: int = 500) -> list[Pair]:
    """Return questions made from the banks themselves: a stand-in for your own, and no measure of quality.

    A memory that asks is taken to be answered by the one after it; a summary by the memories that it was made from.
    They put two rankings in the right order more often than not; words drawn at random from a memory would not.

    Parameters
    ----------
    session
        On local banks.
    most
        The most questions.
    """
    rows = find(session, None, {}, ("working", "episodic"), limit=None, offset=0).memories
    oldest_first = [row for row in reversed(rows) if row.store == "working"]
    found = [_asked(one, after) for one, after in pairwise(oldest_first)]
    found += [Pair(row.content[:_QUERY_UNITS], row.about) for row in rows if row.store == "episodic" and row.about]
    return [pair for pair in found if pair is not None][:most]


def _asked(one: Memory, after: Memory) -> Pair | None:
    is_question = one.content.rstrip().endswith(("?", "？")) and len(one.content) <= _QUERY_UNITS
    return Pair(one.content, (after.id,)) if is_question and one.bank == after.bank else None
