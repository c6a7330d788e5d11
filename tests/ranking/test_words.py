"""Words and stems: folding, languages, identifiers, scripts without spaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.ranking.words import STOP_WORDS, Languages, Stems, fold, words_of

ENGLISH = Languages()


@pytest.mark.parametrize(
    ("one", "other"),
    [("straße", "STRASSE"), ("Café", "cafe\u0301"), ("ＡＢＣ", "abc"), ("Ångström", "angstrom"), ("ﬁle", "file")],
)
def test_forms_of_one_word_are_folded_together(one: str, other: str) -> None:
    assert [fold(word) for word in words_of(one)] == [fold(word) for word in words_of(other)]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("english", "deployments", "deployment"),
        ("german", "Häuser", "Häusern"),
        ("french", "serveurs", "serveur"),
        ("spanish", "contraseñas", "contraseña"),
        ("russian", "серверы", "сервера"),
    ],
)
def test_inflected_forms_share_a_stem(language: str, one: str, other: str) -> None:
    stems = Stems()
    assert stems.of_word(one, language) == stems.of_word(other, language)


@pytest.mark.parametrize("word", ["deploy_target", "deployTarget", "DeployTarget"])
def test_an_identifier_is_found_by_its_parts_and_as_a_whole(word: str) -> None:
    whole, *parts = Stems().of_word(word, "english")
    assert parts == ["deploy", "target"]
    assert whole == fold(word) or whole.startswith("deploy")


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("部署目标", ["部署", "署目", "目标"]),
        ("デプロイ", ["デプ", "プロ", "ロイ"]),
        ("ปลายทาง", ["ปล", "ลา", "าย", "ยท", "ทา", "าง"]),
        ("v2部署", ["v2", "部署"]),
        ("目", ["目"]),
    ],
)
def test_scripts_without_spaces_give_overlapping_pairs(text: str, pairs: list[str]) -> None:
    stems = Stems()
    assert [stem for word in words_of(text) for stem in stems.of_word(word, "english")] == pairs


def test_a_thai_word_keeps_its_vowel_signs() -> None:
    assert words_of("ที่อยู่ server") == ["ที่อยู่", "server"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("english", "The server is in the second rack and it was moved"),
        ("german", "Der Server ist in dem zweiten Schrank und wurde nicht bewegt"),
        ("french", "Le serveur est dans la deuxième baie et il a été déplacé"),
        ("spanish", "El servidor está en el segundo armario y no se ha movido"),
        ("italian", "Il server è nel secondo armadio e non è stato spostato"),
        ("portuguese", "O servidor está no segundo armário e não foi movido"),
        ("dutch", "De server is in de tweede kast en het werd niet verplaatst"),
        ("russian", "Сервер был в этом шкафу и его не было на месте"),
    ],
)
def test_function_words_tell_the_language(language: str, text: str) -> None:
    assert Languages(tuple(STOP_WORDS)).of(words_of(text)) == language
    assert Languages.of_rows([text] * 3).names == (language,)


def test_a_bank_of_two_languages_has_both_and_rare_strays_do_not_count() -> None:
    german, english = "Der Server ist nicht in dem Schrank", "The server is not in the rack"
    assert Languages.of_rows([english] * 60 + [german] * 40).names == ("english", "german")
    assert Languages.of_rows([english] * 200 + [german]).names == ("english",)


def test_a_text_without_function_words_is_english() -> None:
    assert Languages.of_rows(["x86_64 9f3c", ""]).names == ("english",)


def test_a_query_is_asked_without_function_words_unless_there_is_nothing_else() -> None:
    stems = Stems()
    assert stems.of_query("where is the deploy target", ENGLISH) == [("deploy",), ("target",)]
    assert stems.of_query("what is this", ENGLISH) == [("what",), ("is",), ("this",)]


def test_a_word_of_a_query_is_answered_by_its_stem_in_each_language_of_the_bank() -> None:
    both = Languages(("english", "german"))
    (answers,) = Stems().of_query("Adressen", both)
    assert set(answers) == {Stems().of_word("Adressen", name)[0] for name in both.names}


@given(st.text(max_size=60))
def test_any_text_gives_stems_without_capitals_or_blanks(text: str) -> None:
    stems = Stems()
    for word in words_of(text):
        for stem in stems.of_word(word, "english"):
            assert stem == fold(stem)
            assert not any(map(str.isspace, stem))
