"""The list of behaviours in docs/behaviour.md is whole, covered and up to date."""

from tests.claims import BEHAVIOUR, covering, listed, rendered


def test_every_claim_is_covered_by_a_test_or_a_cell() -> None:
    cover = covering()
    assert [claim for claim in listed() if claim not in cover] == []


def test_every_cited_claim_exists() -> None:
    claims = listed()
    assert [(claim, places) for claim, places in covering().items() if claim not in claims] == []


def test_the_page_is_up_to_date() -> None:
    assert BEHAVIOUR.read_text(encoding="utf-8") == rendered(), "run: python -m tests.claims"
