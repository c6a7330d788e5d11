"""Mental models: how they are shown, compared and seeded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.hindsight.mental_models import (
    MARKER,
    MentalModel,
    diff,
    list_line,
    missing_seeds,
    models_of,
    render_block,
    seeds_for,
    shown_models,
)
from ipy_memory.jscompat import strings as js

models = st.lists(
    st.builds(MentalModel, st.just("i"), st.text(max_size=30), st.text(max_size=400)), min_size=1, max_size=5
)
lines = st.lists(st.sampled_from("abc"), max_size=8).map("\n".join)


@pytest.mark.claim("B-05")
@given(models, st.integers(0, 1_500))
def test_a_block_never_passes_its_budget(some: list[MentalModel], budget: int) -> None:
    block = render_block(some, budget)
    assert js.units(block) <= budget
    assert block == "" or (block.startswith("<mental_models>\n") and block.endswith("\n</mental_models>"))


@pytest.mark.claim("B-05")
@given(models)
def test_a_wide_budget_shows_everything_unmarked(some: list[MentalModel]) -> None:
    block = render_block(some, 100_000)
    assert MARKER not in block
    assert all(js.trim(model.content) in block for model in some)


def test_a_model_cannot_close_the_block_it_stands_in() -> None:
    block = render_block([MentalModel("i", "n", "a</mental_models>b")], 10_000)
    assert block.count("</mental_models>") == 1


@pytest.mark.claim("B-05")
def test_models_of_other_projects_and_empty_ones_are_left_out_and_names_are_sorted() -> None:
    some = [
        MentalModel("1", "zeta", "x", ("project:demo",)),
        MentalModel("2", "Élan", "x"),
        MentalModel("3", "other", "x", ("project:else",)),
        MentalModel("4", "empty", "  "),
    ]
    assert [model.name for model in shown_models(some, ["project:demo"])] == ["Élan", "zeta"]
    assert [model.name for model in shown_models(some, None)] == ["Élan", "other", "zeta"]


@pytest.mark.claim("B-03")
def test_seeds_follow_the_scoping() -> None:
    assert [seed.id for seed in seeds_for("global", None)] == ["user-preferences"]
    bare = seeds_for("per-project", None)
    assert [seed.id for seed in bare] == ["user-preferences", "project-conventions", "project-decisions"]
    assert {seed.tags for seed in bare} == {()}
    tagged = seeds_for("per-project-tagged", ["project:My Proj/ü"])
    assert [(seed.id, seed.tags) for seed in tagged][1:] == [
        ("project-conventions-My-Proj", ("project:My Proj/ü",)),
        ("project-decisions-My-Proj", ("project:My Proj/ü",)),
    ]


@pytest.mark.claim("B-03")
def test_an_existing_model_is_never_made_again() -> None:
    seeds = seeds_for("per-project-tagged", ["project:demo"])
    present = [
        MentalModel("user-preferences", "n", tags=("other",)),
        MentalModel("project-conventions", "n", tags=("project:demo",)),
        MentalModel("project-decisions", "n", tags=("project:else",)),
    ]
    assert [seed.id for seed in missing_seeds(seeds, present)] == ["project-decisions-demo"]


def test_odd_entries_are_passed_over() -> None:
    assert models_of([None, {"name": "x"}, {"id": "a", "name": None, "tags": "t", "content": 1}]) == [
        MentalModel("a", "a")
    ]


def test_a_list_line() -> None:
    assert list_line(MentalModel("t", "T", "x", ("a", "b"), "2026-05-01")) == "- t: T [a, b] (refreshed 2026-05-01)"
    assert list_line(MentalModel("u", "U")) == "- u: U (never refreshed)"


@given(lines, lines)
def test_a_diff_holds_both_sides(before: str, after: str) -> None:
    shown = diff(before, after).split("\n") if before or after else []
    assert [line[2:] for line in shown if line[0] in " -"] == (before.split("\n") if before else [])
    assert [line[2:] for line in shown if line[0] in " +"] == (after.split("\n") if after else [])


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("ab", "ba", "+b  a-b"),
        ("ba", "aa", "-b  a+a"),
        ("aa", "a", "  a-a"),
        ("a", "aa", "  a+a"),
        ("aba", "baa", "+b  a-b  a"),
        ("bdbcd", "deabbb", "+d+e+a  b-d  b-c-d+b"),
    ],
)
def test_among_equal_diffs_the_earliest_lines_stay(before: str, after: str, shown: str) -> None:
    lines = diff("\n".join(before), "\n".join(after)).split("\n")
    assert "".join(line.replace(" ", "") if line[0] in "+-" else line for line in lines) == shown


def test_a_seed_has_each_tag_once() -> None:
    assert seeds_for("per-project", ["a", "a"])[1].tags == ("a",)


def test_a_model_without_a_name_is_named_by_its_id() -> None:
    assert [model.name for model in models_of([{"id": "a"}, {"id": "b", "name": ""}])] == ["a", ""]


def test_a_long_diff_is_cut() -> None:
    assert diff("a", "", 0) == "\n[…1ln elided…]"
    assert diff("\n".join("abcdef"), "", 2) == "- a\n- b\n[…4ln elided…]"
    assert diff("x\n" * 1_001, "", 10_000).endswith("- x\n… input capped at 1000 lines per side before diff")
