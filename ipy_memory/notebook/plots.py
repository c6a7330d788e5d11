"""Pictures of recalls and banks: each takes a frame and returns matplotlib ``Axes`` to style further (extra ``plot``).

Nothing is shown or saved here. Memory text and names are drawn as they are, never as formulas.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MissingFeatureError, ToolInputError
from ipy_memory.frames.escape import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

    from ipy_memory.frames.build import DataFrame

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#555555")
"""The Okabe-Ito colours, which people who see few colours can tell apart."""

TIERS = {"working": COLOURS[0], "episodic": COLOURS[1], "facts": COLOURS[2], "fact": COLOURS[2]}
"""What has a colour of its own, the same in every picture."""

_DAY_MS = 86_400_000
_MANY_DAYS = 62


def score_parts(hits: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the parts of each hit's score as a bar, best hit on top, with the score at its end.

    Parameters
    ----------
    hits
        Of a recall. With ``%recall --explain`` the bars show what each part adds; without it, the parts as the
        backend reports them, which are not on one scale.
    ax
        Where to draw; a new figure by default.
    """
    _need(hits, "score", "score_parts")
    explained = [name for name in hits.columns if name.endswith("_term")]
    columns = explained or [name for name in hits.columns if name.endswith("_score")]
    parts = hits[columns].dropna(axis="columns", how="all").fillna(0.0)
    parts = parts.loc[:, (parts != 0).any()]
    parts.columns = [name.rpartition("_")[0] for name in parts.columns]
    parts.index = [_label(row) for row in hits.to_dict("records")]
    title = "What each part adds, before age and trust count" if explained else "Parts of the score, as reported"
    ax = _bars(parts, ax, title)
    ax.invert_yaxis()
    for place, (length, score) in enumerate(zip(parts.sum(axis="columns"), hits["score"], strict=True)):
        ax.annotate(f"{score:.4f}", (length, place), (4, 0), textcoords="offset points", va="center")
    ax.set_xlim(0, 1.2 * max([*parts.sum(axis="columns"), 0.01]))
    ax.set_xlabel("sum of the parts; at its end the score")
    return ax


def timeline(memories: DataFrame, by: str = "bank", ax: Axes | None = None) -> Axes:
    """Draw how many memories were made when; those no longer valid are marked below.

    Parameters
    ----------
    memories
        As ``session.memories()`` gives them.
    by
        A column whose values get a colour each: ``bank``, ``store``, ``source``, ``type``, ``veracity``.
    ax
        Where to draw; a new figure by default.
    """
    _need(memories, "date", "timeline")
    _need(memories, by, "timeline")
    dated = memories.dropna(subset=["date"])
    spread = (dated["date"].max() - dated["date"].min()).days if len(dated) else 0
    unit, width = ("week", 6.0) if spread > _MANY_DAYS else ("day", 0.8)
    ax = ax or _axes()
    from matplotlib.ticker import MaxNLocator

    # Weeks are counted from Monday, days from midnight, in UTC.
    when = dated["date"].dt.tz_localize(None).dt.to_period(unit[0].upper()).dt.start_time
    kinds = dated[by].fillna("none")
    counts = dated.assign(when=when, kind=kinds).groupby(["when", "kind"]).size().unstack(fill_value=0)
    below: Any = 0
    for colour, kind in zip(_colours(counts.columns), counts.columns, strict=True):
        ax.bar(counts.index, counts[kind], width, bottom=below, color=colour, label=_drawn(str(kind)))
        below = below + counts[kind]
    if "state" in dated:
        ended = dated[dated["state"].isin(["superseded", "expired"])]
        if len(ended):
            moments = ended["date"].dt.tz_localize(None)
            ax.plot(moments, [0] * len(ended), "|", color="black", markersize=14, label="no longer valid")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0, 1.2 * max([1, *counts.sum(axis="columns")]))
    ax.set_title(f"Memories made per {unit}")
    ax.set_ylabel("memories")
    if ax.get_legend_handles_labels()[1]:
        ax.legend()
    ax.figure.autofmt_xdate()
    return ax


def decay(memories: DataFrame | None = None, *, days: float = 30.0, ax: Axes | None = None) -> Axes:
    """Draw what age does to a score, by the local engine's own rule, with the ages of memories marked on it.

    Parameters
    ----------
    memories
        Marked by their age at the frame's ``attrs["as_of"]``, else at its newest memory.
    days
        How far back the curve goes.
    ax
        Where to draw; a new figure by default.
    """
    import pandas as pd

    from ipy_memory.backends.mnemopi.recall import scoring

    def factor(age: float) -> float:
        return scoring.recency_factor(scoring.decay(-age * _DAY_MS, 0, None))

    ages = [days * step / 200 for step in range(201)]
    ax = ax or _axes()
    ax.plot(ages, [factor(age) for age in ages], color=COLOURS[0], label="factor of the score")
    if memories is not None:
        _need(memories, "date", "decay")
        dates = memories["date"].dropna()
        as_of = memories.attrs.get("as_of")
        now = pd.Timestamp(as_of) if as_of else dates.max()
        found = [max(0.0, (now - date).total_seconds() / 86_400) for date in dates]
        shown = [age for age in found if age <= days]
        ax.plot(shown, [factor(age) for age in shown], "o", color=COLOURS[1], label="memories")
        if older := len(found) - len(shown):
            ax.plot([], [], " ", label=f"and {older} older")
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("age in days")
    ax.set_ylabel("factor")
    ax.set_title("What age does to a score")
    ax.legend()
    return ax


def banks(stats: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how much each bank holds.

    Parameters
    ----------
    stats
        As :func:`ipy_memory.explore.banks.banks` gives them.
    ax
        Where to draw; a new figure by default.
    """
    _need(stats, "name", "banks")
    kinds = [name for name in ("working", "episodic", "facts") if name in stats.columns]
    counts = stats[kinds].astype("float64").fillna(0)
    uses = stats["use"] if "use" in stats.columns else [""] * len(stats)
    counts.index = [
        _drawn(f"{name}\n{use}" if use else str(name)) for name, use in zip(stats["name"], uses, strict=True)
    ]
    ax = _bars(counts, ax, "What the banks hold")
    ax.invert_yaxis()
    ax.set_xlabel("rows")
    return ax


def _bars(frame: DataFrame, ax: Axes | None, title: str) -> Axes:
    ax = ax or _axes(height=1.2 + 0.5 * max(1, len(frame)))
    if frame.empty:
        ax.set_title(f"{title}: nothing to draw")
        return ax
    colours: Any = _colours(frame.columns)
    drawn: Axes = frame.plot.barh(stacked=True, ax=ax, color=colours, width=0.7)
    drawn.set_title(title)
    drawn.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def _axes(height: float = 3.6) -> Axes:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingFeatureError(
            "Plots need matplotlib, which is not installed.", hint="pip install 'ipy_memory[plot]'"
        ) from error
    made: Axes = plt.subplots(figsize=(8, height), layout="constrained", facecolor="white")[1]
    return made


def _colours(names: Iterable[Any]) -> list[str]:
    """Return a colour for each name: a tier's own, the others in turn."""
    kinds = list(map(str, names))
    others = cycle([one for one in COLOURS if one not in {TIERS.get(kind) for kind in kinds}])
    return [TIERS.get(kind) or next(others) for kind in kinds]


def _label(row: dict[Any, Any]) -> str:
    words = " ".join(str(row.get("content") or "").split())
    return _drawn(f"{words[:39]}…" if len(words) > 40 else words)


def _drawn(text: str) -> str:
    """Return text of which matplotlib makes no formula."""
    return visible(text).replace("$", r"\$")


def _need(frame: DataFrame, column: str, function: str) -> None:
    if column not in frame.columns:
        raise ToolInputError(
            f"{function}: the frame has no column {column!r}", hint=f"its columns are {', '.join(map(str, frame))}"
        )
