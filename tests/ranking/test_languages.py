"""The ranking on notes in eight languages, with and without stems and pairs of characters."""

from __future__ import annotations

import pytest

from ipy_memory.ranking.best import Question, score
from ipy_memory.ranking.words import Stems, words_of
from tests.ranking.languages import LANGUAGES, STEMMED, Language
from tests.ranking.notes import Note, index


def found_in_eight(language: Language, stems: Stems) -> float:
    notes = list(language.notes())
    postings = index([Note(n, text, n * 100_000.0) for n, text in enumerate(notes)], stems)
    hits = [n in score(postings, Question(query)).top(8) for n, query in enumerate(language.questions())]
    return sum(hits) / len(hits)


class Plain(Stems):
    """Words as they are written, in lower case: what the ranking would be without stems or pairs."""

    def of_word(self, word: str, language: str) -> tuple[str, ...]:
        return (word.lower(),)


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_set_is_large_enough_and_a_question_shares_at_most_one_word_with_its_note(name: str) -> None:
    language = LANGUAGES[name]
    notes, questions = list(language.notes()), language.questions()
    assert (len(notes), len(questions)) == (200, 40)
    assert len(set(notes)) == 200
    if name in STEMMED:
        for note, question in zip(notes, questions, strict=False):
            assert len({word.lower() for word in words_of(note)} & {word.lower() for word in words_of(question)}) <= 1


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_memory_is_found_by_another_form_of_its_word(name: str) -> None:
    assert found_in_eight(LANGUAGES[name], Stems()) >= 0.8


@pytest.mark.parametrize("name", LANGUAGES)
def test_without_stems_and_pairs_far_fewer_are_found(name: str) -> None:
    assert found_in_eight(LANGUAGES[name], Plain()) <= 0.4
