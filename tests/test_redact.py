"""Redaction: what must go, what must stay, and rules that hold for any text."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.redact import _JWT, _KEYWORD, _PREFIXED, MARK, redact, redact_counted, redact_value

TOKEN_TEXT = st.text(alphabet=string.ascii_letters + string.digits + "-_. /é日", max_size=120)
SECRETS = st.one_of(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["password", "secret", "token", "key", "tok", "sk", "pk", "rk"]),
        st.sampled_from("-_"),
        st.text(alphabet=string.ascii_letters, min_size=16, max_size=30),
    ),
    st.builds("AKIA{}".format, st.text(alphabet=string.ascii_uppercase + string.digits, min_size=16, max_size=16)),
    st.builds("ghp_{}".format, st.text(alphabet=string.ascii_letters + string.digits, min_size=20, max_size=40)),
    st.builds("npm_{}".format, st.text(alphabet=string.ascii_letters + string.digits, min_size=30, max_size=40)),
    st.builds("AIza{}".format, st.text(alphabet=string.ascii_letters + string.digits, min_size=30, max_size=40)),
    st.lists(
        st.text(alphabet=string.ascii_letters + string.digits, min_size=16, max_size=24), min_size=3, max_size=3
    ).map(".".join),
)


@pytest.mark.claim("T-10")
@given(TOKEN_TEXT, SECRETS, TOKEN_TEXT)
def test_a_secret_never_survives(before: str, secret: str, after: str) -> None:
    assert secret not in redact(f"{before} {secret} {after}")


@given(TOKEN_TEXT)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact_counted(once) == (once, 0)


@given(st.text())
def test_the_count_says_whether_anything_changed(text: str) -> None:
    redacted, count = redact_counted(text)
    assert (redacted != text) == (count > 0)
    assert redacted.count(MARK) >= count


@given(st.text(alphabet=string.ascii_lowercase + " .,", max_size=200))
def test_plain_prose_without_long_words_stays(text: str) -> None:
    words = [word for word in text.replace(".", " ").replace(",", " ").split() if len(word) >= 16]
    if not words:
        assert redact(text) == text


@pytest.mark.claim("T-10")
def test_metadata_is_redacted_at_any_depth_and_keys_stay() -> None:
    secret = "secret_aB3dE5gH7jK9aB"
    value = {"a": secret, "deep": [{secret: secret}, 1, None, True, (secret,)]}
    redacted, count = redact_value(value)
    assert redacted == {"a": MARK, "deep": [{secret: MARK}, 1, None, True, [MARK]]}
    assert count == 3
    assert value["a"] == secret


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("a" * 200_000, "a" * 200_000),
        ("a-" * 100_000, "a-" * 100_000),
        ("key_" * 50_000, "key_" * 50_000),
        ("sk-" * 60_000 + "aB3dE5gH7jK9", MARK),
        ("aaaaaaaaaaaaaaaa." * 12_000, f"{MARK}." * 4_000),
    ],
)
def test_a_hostile_text_is_read_once(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize("before", [".", ". ", ".x ", "..", "a .x "])
def test_a_dot_in_front_hides_no_token(before: str) -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmnop1234"
    assert redact(before + token) == before + MARK


def test_the_security_page_says_exactly_what_is_caught() -> None:
    """A09."""
    page = (Path(__file__).parent.parent / "docs" / "security.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|(.*)\| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert {(text, redact(text)) for _, text, _ in rows} == {(text, becomes) for _, text, becomes in rows}
    caught = [text for _, text, becomes in rows if text != becomes]
    assert all(any(pattern.search(text) for text in caught) for pattern in (*_PREFIXED, _JWT))
    keywords = re.findall(r"\w+", _KEYWORD.pattern.removeprefix("(?:").removesuffix(r")\Z"))
    assert all(f"`{keyword}`" in page for keyword in keywords)
