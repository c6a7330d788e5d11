"""What a text that a user stores keeps out of memory: private parts, and credentials that were not meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.credentials import for_memory, shapes, without_credentials, without_private
from ipy_memory.errors import CredentialError, MagicError
from ipy_memory.model import RetainItem
from ipy_memory.redact import MARK, redact
from tests.test_credentials import FREE, HELD

SECRET = "hunter2-and-more"


@pytest.mark.claim("N-03")
@pytest.mark.parametrize(
    ("text", "left", "parts"),
    [
        ("a <private>b</private> c", "a  c", 1),
        ("<PRIVATE>b\n</Private>c<private></private>", "c", 2),
        ("a <private>b<private>c</private>d</private> e", "a  e", 1),
        ("<private>a <private>b</private> c", "<private>a  c", 1),
        ("a </private> b <private> c", "a </private> b <private> c", 0),
        ("<private >a</private>", "<private >a</private>", 0),
        ("", "", 0),
    ],
)
def test_closed_private_parts_are_left_out(text: str, left: str, parts: int) -> None:
    assert without_private(text) == (left, parts)


def test_a_megabyte_of_private_parts_is_read_in_linear_time() -> None:
    assert without_private("<private>" * 100_000) == ("<private>" * 100_000, 0)
    assert without_private("<private>" * 100_000 + "</private>" * 100_000) == ("", 1)
    assert without_private("<private></private>" * 50_000) == ("", 50_000)


@pytest.mark.claim("N-03")
@pytest.mark.parametrize("text", HELD)
def test_a_credential_is_stored_only_when_the_user_says_how(text: str) -> None:
    item = RetainItem(f"see {text} there", "notes")
    if redact(item.content) == without_credentials(item.content)[0]:
        assert for_memory([item], {}) == ([item], [])  # taken out of every text that is stored
        return
    with pytest.raises(CredentialError, match="Nothing was stored: the text seems to hold") as caught:
        for_memory([item], {})
    assert text not in caught.value.one_line()
    assert for_memory([item], {"keep": True}) == ([item], [])
    (kept,), (note,) = for_memory([item], {"redact": True})
    assert MARK in kept.content
    assert note.endswith(f"looked like a credential became {MARK}.")


@pytest.mark.parametrize("text", FREE)
def test_an_ordinary_text_is_stored_as_typed(text: str) -> None:
    assert for_memory([RetainItem(text)], {}) == ([RetainItem(text)], [])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"password": "hunter words; three"}', f'{{"password": "{MARK}"}}'),
        ("password=hunter,b;c,d;e and more", f"password={MARK} and more"),
        ("password: abcdef;ghi", f"password: {MARK}"),
        ("api_key: sk-abc123def456ghi.rest789", f"api_key: {MARK}"),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nafter", f"{MARK}\nafter"),
        (f"password: {MARK} is out", f"password: {MARK} is out"),
    ],
)
def test_a_credential_is_taken_out_to_its_end(text: str, left: str) -> None:
    assert without_credentials(text)[0] == left


@given(st.lists(st.sampled_from([*HELD, *FREE, MARK, " ", "\n", "é", "\0"])).map(" ".join))
def test_nothing_is_left_that_looks_like_one(text: str) -> None:
    once, count = without_credentials(text)
    assert (count > 0) == (once != text)
    assert shapes(once.replace(MARK, ";")) == ()
    assert without_credentials(once) == (once, 0)


def test_contexts_are_looked_at_and_empty_items_fall_out() -> None:
    items = [RetainItem("<private>a</private>"), RetainItem("b", "<private>c</private>d"), RetainItem("e", "f")]
    assert for_memory(items, {}) == (
        [RetainItem("b", "d"), RetainItem("e", "f")],
        ["2 private parts were left out."],
    )
    with pytest.raises(CredentialError):
        for_memory([RetainItem("a", f"password={SECRET}")], {})
    with pytest.raises(MagicError, match="nothing to store"):
        for_memory(items[:1], {})
    with pytest.raises(MagicError, match="exclude each other"):
        for_memory(items, {"redact": True, "keep": True})
