"""Each plot takes a frame and returns Axes that show its numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ipy_memory.backends.mnemopi.recall import scoring
from ipy_memory.errors import MissingFeatureError, ToolInputError
from ipy_memory.frames.build import hits_frame, memories_frame
from ipy_memory.model import Hit, Memory, ScoreParts
from ipy_memory.notebook import plots

if TYPE_CHECKING:
    from collections.abc import Iterator

HITS = [
    Hit("a", "The deploy target is $x$ fra.", score=0.6, parts=ScoreParts(keyword=0.5, importance=0.75)),
    Hit("b", "Deploys go out on Tuesdays.", score=0.2, parts=ScoreParts(keyword=0.25, fts=0.1)),
]
MEMORIES = [
    Memory("a", "shop", "working", "x", timestamp="2026-05-30T10:00:00Z", state="live"),
    Memory("b", "shop", "working", "y", timestamp="2026-05-30T12:00:00Z", state="expired"),
    Memory("c", "$home$", "working", "z", timestamp="2026-06-01T10:00:00Z", state="live"),
]


@pytest.fixture(autouse=True)
def _headless() -> Iterator[None]:
    mpl.use("agg")
    yield
    plt.close("all")


def lengths(ax: plt.Axes) -> dict[str, list[float]]:
    """Return the bars of each part."""
    return {
        str(bars.get_label()): [round(float(bar.get_width() or 0), 4) for bar in bars.patches] for bars in ax.containers
    }


def test_score_parts_show_what_is_reported() -> None:
    ax = plots.score_parts(hits_frame(HITS))
    assert lengths(ax) == {"keyword": [0.5, 0.25], "fts": [0.0, 0.1], "importance": [0.75, 0.0]}
    assert [text.get_text() for text in ax.texts] == ["0.6000", "0.2000"]
    assert "as reported" in ax.get_title()
    assert ax.yaxis_inverted()


def test_score_parts_of_an_explained_recall_show_what_each_part_adds() -> None:
    frame = hits_frame(HITS).assign(keyword_term=[0.3, 0.1], importance_term=[0.2, 0.05])
    ax = plots.score_parts(frame)
    assert lengths(ax) == {"keyword": [0.3, 0.1], "importance": [0.2, 0.05]}
    assert "adds" in ax.get_title()


def test_memory_text_is_no_formula() -> None:
    ax = plots.score_parts(hits_frame(HITS))
    label = ax.get_yticklabels()[0]
    assert label._preprocess_math(label.get_text()) == ("The deploy target is $x$ fra.", False)


def test_an_empty_recall_is_an_empty_picture() -> None:
    assert "nothing to draw" in plots.score_parts(hits_frame([])).get_title()


def test_the_timeline_counts_days_and_marks_what_ended() -> None:
    ax = plots.timeline(memories_frame(MEMORIES))
    heights = {str(bars.get_label()): [bar.get_height() for bar in bars.patches] for bars in ax.containers}
    assert heights == {r"\$home\$": [0, 1], "shop": [2, 0]}
    assert ax.get_title() == "Memories made per day"
    (rug,) = ax.lines
    assert rug.get_label() == "no longer valid"
    assert len(rug.get_xdata()) == 1


def test_a_long_time_is_counted_in_weeks() -> None:
    old = Memory("d", "shop", "working", "w", timestamp="2026-01-01T10:00:00Z")
    assert plots.timeline(memories_frame([*MEMORIES, old]), by="store").get_title() == "Memories made per week"


def test_a_timeline_of_nothing_is_drawn() -> None:
    assert plots.timeline(memories_frame([])).get_title() == "Memories made per day"


def test_the_decay_is_the_engines_own() -> None:
    frame = memories_frame(MEMORIES)
    frame.attrs["as_of"] = "2026-06-02T10:00:00Z"
    ax = plots.decay(frame, days=2.5)
    curve, marks = ax.lines[0], ax.lines[1]
    now = 1_000 * 86_400_000
    for age, factor in zip(curve.get_xdata()[::50], curve.get_ydata()[::50], strict=True):
        assert factor == scoring.recency_factor(scoring.decay(now - age * 86_400_000, now, None))
    assert list(marks.get_xdata()) == [1.0]
    assert "and 2 older" in [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[union-attr]
    assert len(plots.decay().lines) == 1


def test_banks_are_compared() -> None:
    frame = pd.DataFrame({"name": ["shop", "home"], "use": ["read", ""], "working": [4, None], "episodic": [3, 1]})
    ax = plots.banks(frame)
    assert lengths(ax) == {"working": [4, 0], "episodic": [3, 1]}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["shop\nread", "home"]


def test_a_given_place_is_drawn_in() -> None:
    ax = plt.subplots()[1]
    assert plots.decay(ax=ax) is ax
    assert plots.score_parts(hits_frame(HITS), ax) is ax


def test_a_frame_of_something_else_is_an_error_that_names_its_columns() -> None:
    with pytest.raises(ToolInputError, match="no column 'date'"):
        plots.timeline(pd.DataFrame({"id": ["a"]}))
    with pytest.raises(ToolInputError, match="no column 'kind'"):
        plots.timeline(memories_frame(MEMORIES), by="kind")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingFeatureError) as caught:
        plots.decay()
    assert "ipy_memory[plot]" in str(caught.value.hint)


def colours(ax: plt.Axes) -> dict[str, object]:
    """Return the colour of each kind."""
    return {str(bars.get_label()): mpl.colors.to_hex(bars.patches[0].get_facecolor()) for bars in ax.containers}


def test_a_tier_has_one_colour_in_every_picture() -> None:
    memories = [
        Memory(store, "shop", store, "x", timestamp="2026-06-01T10:00:00Z")
        for store in ("episodic", "fact", "triple", "working")
    ]
    drawn = colours(plots.timeline(memories_frame(memories), by="store"))
    stats = pd.DataFrame({"name": ["shop"], "working": [1], "episodic": [2], "facts": [3]})
    held = colours(plots.banks(stats))
    assert (drawn["working"], drawn["episodic"], drawn["fact"]) == (held["working"], held["episodic"], held["facts"])
    assert len(set(drawn.values())) == 4


def test_a_picture_has_a_ground_of_its_own_in_every_theme() -> None:
    assert plots.decay().figure.get_facecolor() == (1, 1, 1, 1)
