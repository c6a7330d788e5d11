"""The parts of the score, as rules rather than cases."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.recall import query_terms, scoring
from ipy_memory.backends.mnemopi.recall.scoring import Document, Evidence, Factors, Group, Words
from ipy_memory.jscompat import strings as js

WORD = st.text(alphabet="abcdeé日𐐨_", min_size=1, max_size=12)
TEXT = st.text(alphabet="abcdeé日𐐨_ -😀", max_size=60)
UNIT = st.floats(0, 1)


def score(query: str, text: str) -> float:
    words = Words.of(query)
    return scoring.lexical_score(words.groups, words.phrase, Document(text))


def plain_match(variants: list[str], text: str) -> bool:
    """The rule as it is written: in the text, or either way round with a word of it, four units or more."""
    tokens = set(query_terms.tokenise(text))
    return any(
        variant in tokens
        or variant in text
        or any(js.units(variant) >= 4 and js.units(t) >= 4 and (t in variant or variant in t) for t in tokens)
        for variant in variants
    )


@given(st.lists(WORD, min_size=1, max_size=4), TEXT)
def test_a_group_matches_as_the_rule_says(variants: list[str], text: str) -> None:
    assert Group(variants).matches(Document(text)) is plain_match(variants, js.lower(text))


@given(st.lists(st.sampled_from(["from", "that", "where", "light"]), min_size=1), TEXT)
def test_a_stop_word_of_a_text_is_no_part(words: list[str], text: str) -> None:
    variants, text = ["".join(words)], f"{text} {' '.join(words)}"
    assert Group(variants).matches(Document(text)) is plain_match(variants, js.lower(text))


@given(WORD, st.integers(1, 20), TEXT)
def test_long_variants_match_by_the_same_rule(part: str, times: int, text: str) -> None:
    variants = [part * times]
    assert Group(variants).matches(Document(text)) is plain_match(variants, js.lower(text))


@given(
    st.lists(st.lists(WORD, min_size=1, max_size=3), max_size=12),
    st.lists(WORD | st.sampled_from(["from", "that", "-", "😀"]), max_size=12).map(" ".join),
)
def test_very_many_groups_match_as_few_do(groups: list[list[str]], text: str) -> None:
    document = Document(text)
    few = [place for place, variants in enumerate(groups) if Group(variants).matches(document)]
    assert scoring._Index(groups).matching(document) == few


def test_many_groups_are_found_by_the_words_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    query = " ".join(f"word{number}" for number in range(500)) + " harbour harbour"
    text = "the old harbour, word77 and aword400b"
    found = score(query, text)
    scoring._words.cache_clear()
    monkeypatch.setattr(scoring, "_FEW_GROUPS", 10_000)
    assert score(query, text) == found > 0


@given(st.lists(WORD, max_size=6).map(" ".join), st.lists(WORD, max_size=10).map(" ".join))
def test_the_lexical_score_is_a_share(query: str, text: str) -> None:
    assert 0 <= score(query, text) <= 1


def test_one_word_gains_by_repetition_up_to_one() -> None:
    scores = [score("quarry", "quarry " * n) for n in range(6)]
    assert scores == pytest.approx([0, 0.7, 0.8, 0.9, 1, 1])


def test_repeated_words_of_a_query_weigh_more() -> None:
    assert score("alpha alpha beta", "alpha") == 2 / 3


def test_the_normalised_phrase_scores_in_full() -> None:
    assert score("zebra alpha", "so alpha zebra") == 1
    assert score("the of", "the of") == 0


@pytest.mark.parametrize(("tokens", "floor"), [(0, 0.08), (1, 0.08), (2, 0.18), (3, 0.34), (4, 0.22), (40, 0.22)])
def test_the_floor_depends_on_the_words(tokens: int, floor: float) -> None:
    assert scoring.min_relevance(tokens) == floor


@given(st.lists(st.floats(-100, 0), max_size=12))
def test_ranks_become_scores_between_one_and_zero(ranks: list[float]) -> None:
    scores = scoring.fts_scores(sorted(ranks))
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    if scores:
        assert scores[0] == 1


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5))
def test_weights_are_normalised(vector: float, text: float, importance: float) -> None:
    weights = scoring.normalised_weights(vector, text, importance)
    assert min(weights) >= 0
    assert sum(weights) == pytest.approx(1)


def test_weights_that_sum_to_one_stay_as_they_are() -> None:
    almost = (0.5, 0.3, 0.2 + 9e-10)
    assert scoring.normalised_weights(*almost) == almost
    assert scoring.normalised_weights(0.5, 0.3, 0.2 + 2e-9) != (0.5, 0.3, 0.2 + 2e-9)
    assert scoring.normalised_weights(0.5, 0.25, 0.5) == (0.4, 0.2, 0.4)
    assert scoring.normalised_weights(-1, 0, 0) == (0.5, 0.3, 0.2)


def test_decay_falls_with_age_and_never_rises_above_one() -> None:
    hour = 3_600_000
    assert scoring.decay(None, 0, None) == 0
    assert scoring.decay(5 * hour, 0, None) == 1
    assert scoring.decay(0, 72 * hour, None) == pytest.approx(math.exp(-1))
    assert scoring.decay(0, 100 * hour, 72 * hour) == pytest.approx(math.exp(-1))


@given(UNIT, UNIT, UNIT, UNIT)
def test_a_similarity_is_a_fifth_of_the_score(lexical: float, fts: float, similarity: float, weight: float) -> None:
    without = scoring.working_base(Evidence(lexical, fts, 0, 0.5), weight)
    expected = without if similarity == 0 else 0.8 * without + 0.2 * similarity
    assert scoring.working_base(Evidence(lexical, fts, similarity, 0.5), weight) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("evidence", "terms"),
    [
        (Evidence(0.5, 1, 0, 0.5), {"fts": 0.288 + 0.0288, "importance": 0.1, "dense": 0}),
        (Evidence(0.5, 1, 0.5, 0.5), {"fts": 0.8 * 0.3168, "importance": 0.08, "dense": 0.1}),
        (Evidence(0.6, 1, 0, 0), {"keyword": 0.3168, "importance": 0, "dense": 0}),
        (Evidence(1, 0, 0, 1), {"keyword": 0.48 + 0.08, "importance": 0.2, "dense": 0}),
    ],
)
def test_the_score_of_a_working_memory_and_its_parts(evidence: Evidence, terms: dict[str, float]) -> None:
    assert scoring.working_terms(evidence, 0.2) == pytest.approx(terms)
    assert scoring.working_base(evidence, 0.2) == pytest.approx(sum(terms.values()))


@pytest.mark.parametrize(
    ("evidence", "terms"),
    [
        (Evidence(0.5, 0.4, 0.6, 0.25), {"dense": 0.3, "fts": 0.12, "importance": 0.05}),
        (Evidence(1, 0.4, 0.6, 0.25), {"keyword": 0.8}),
    ],
)
def test_the_score_of_an_episode_and_its_parts(evidence: Evidence, terms: dict[str, float]) -> None:
    assert scoring.episodic_terms(evidence, scoring.DEFAULT_WEIGHTS) == pytest.approx(terms)
    assert scoring.episodic_base(evidence, scoring.DEFAULT_WEIGHTS) == pytest.approx(sum(terms.values()))


def test_a_fact_scores_by_its_words_its_certainty_and_its_rank() -> None:
    assert [scoring.fact_factor(*given) for given in ((0, 0), (1, 0), (0, 1), (0.5, 0.5))] == pytest.approx(
        [0.7, 0.9, 0.8, 0.85]
    )
    assert scoring.fact_score(0.5, 0.7, 1) == 0.47


def test_an_episode_never_scores_less_than_its_words() -> None:
    assert scoring.episodic_base(Evidence(1, 0, 0, 0), scoring.DEFAULT_WEIGHTS) == 0.8
    assert scoring.episodic_base(Evidence(0, 1, 1, 1), scoring.DEFAULT_WEIGHTS) == 1


@pytest.mark.parametrize(
    ("veracity", "factor"),
    [
        ("stated", 1),
        ("true", 1),
        ("likely_true", 1),
        (None, 0.8),
        ("", 0.8),
        ("unknown", 0.8),
        ("odd", 0.8),
        ("inferred", 0.7),
        ("imported", 0.6),
        ("tool", 0.5),
        ("false", 0),
    ],
)
def test_veracity_scales(veracity: str | None, factor: float) -> None:
    assert scoring.veracity_factor(veracity) == factor


@pytest.mark.parametrize(("tier", "factor"), [(1, 1), (2, 0.85), (3, 0.7), (0, 0.7), (9, 0.7), (None, 0.7)])
def test_degradation_scales(tier: int | None, factor: float) -> None:
    assert scoring.tier_factor(tier) == factor


def test_current_and_past_words_scale_a_query_for_now() -> None:
    assert scoring.asks_for_now("what is the LATEST url")
    assert not scoring.asks_for_now("what is known")
    assert scoring.current_factor("it is current") == 1.35
    assert scoring.current_factor("it was moved") == 0.72
    assert scoring.current_factor("the active one was old") == pytest.approx(1.35 * 0.72)
    assert scoring.current_factor("nowhere wasps") == 1


def test_time_counts_only_with_a_weight() -> None:
    for recency, weight, score in ((1, 0, 0.5), (0, 0, 0.35), (1, 0.45, 0.725)):
        of_time = scoring.recency_factor(recency), scoring.temporal_factor(weight, 1)
        assert scoring.final_score(0.5, Factors(*of_time, tier=1, veracity=1, current=1)) == score


# On a tie at the fifth digit the order of the products decides; what stands here is what the real engine answers.
@pytest.mark.parametrize(
    ("lexical", "importance", "score"),
    [(0.625, 0.182, 0.3676), (0.625, 0.9925, 0.5297), (0.875, 0.081, 0.4974)],
)
def test_the_last_digit_of_a_working_memory(lexical: float, importance: float, score: float) -> None:
    base = scoring.working_base(Evidence(lexical, 0, 0, importance), 0.2)
    assert scoring.final_score(base, Factors(1, 1, 1, 1, 1)) == score


@pytest.mark.parametrize(
    ("base", "factors", "score"),
    [
        (scoring.working_base(Evidence(2 / 3, 1, 0, 0.625), 0.2), Factors(1, 1.45, 1, 0.8, 1.35), 0.7525),
        (scoring.working_base(Evidence(0.25, 0, 0, 0), 0.2), Factors(1, 1.45, 1, 0.7, 0.72), 0.0914),
        (scoring.episodic_base(Evidence(0.5, 1, 0, 0.13), (0.5, 0.3, 0.2)), Factors(1, 1.45, 0.7, 0.5, 1.35), 0.2741),
    ],
)
def test_the_last_digit_after_all_factors(base: float, factors: Factors, score: float) -> None:
    assert scoring.final_score(base, factors) == score
