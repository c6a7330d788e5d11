"""Credentials in memories: every shape is found, words about credentials are not."""

from __future__ import annotations

import pytest

from ipy_memory.audit.secrets import secrets
from tests.audit.notes import found, memory
from tests.test_credentials import FREE, HELD

RANDOM = "q7Zk2LwX9vB4nT6yR1mC8sD3fG5hJ0pA"
MORE = [
    f"key-{'0123456789abcdef' * 2}",
    f"GOCSPX-{RANDOM[:28]}",
    f"glrt-{RANDOM[:20]}",
    f"xoxb-123456789012-123456789012-{RANDOM[:24]}",
    f"SG.{RANDOM[:22]}.{RANDOM}{RANDOM[:11]}",
    f"Authorization: Token {RANDOM}",
    f"X-Api-Key: {RANDOM}",
    f"wachtwoord: {RANDOM[:10]}",
    f"\u5bc6\u78bc: {RANDOM[:10]}",
    f"pwd={RANDOM[:8]}",
    "password = njczwkmxli",
    "https://hooks.slack.com/services/T0ABCDEFG/B0ABCDEFG/q7Zk2LwX9vB4nT6yR1mC8sD3",
    f"mysql -u root -p{RANDOM[:10]} shop",
]
WORDS = [
    "password: stored in Bitwarden",
    "token = getToken()",
    'api_key = os.environ["API_KEY"]',
    "export API_KEY=$SECRET_KEY",
    "password=<your password>",
    "max_tokens = 4096",
    "secret name: payments-db-credentials",
    "secret: rotated every 90 days",
    "primary key: tenant_id",
    "npm_config_registry_url is set",
    "sk-learn-contrib-lightning plugin",
    "postgres://user:${PASS}@host/db",
    "commit 3f2a9c1b7d4e5f60718293a4b5c6d7e8f9012345",
    "uuid 550e8400-e29b-41d4-a716-446655440000",
    "access token lifetime: 15m",
    "private key path: /etc/ssl/private/server.key",
    "token-bucket-ratelimiter2 implementation",
    "password: [REDACTED]",
    "tokens: OpenAI",
]


@pytest.mark.parametrize("text", [*HELD, *MORE])
def test_a_credential_is_found(text: str) -> None:
    (one,) = found(secrets, f"Note: {text}")
    assert (one.kind, one.id, one.action, one.reversible) == ("secrets", "m0", "redact", False)


@pytest.mark.parametrize("text", [*FREE, *WORDS])
def test_words_about_credentials_are_none(text: str) -> None:
    assert found(secrets, text) == []


def test_the_evidence_shows_at_most_four_characters_of_a_secret() -> None:
    for text in [*HELD, *MORE]:
        (one,) = found(secrets, text)
        shown = [part for part in one.evidence.split("(") if "\u2026" in part]
        assert all(len(part.split("\u2026")[0]) <= 4 for part in shown), one.evidence


@pytest.mark.parametrize("text", ["https://bob:s3cretpw@git.example.com/x", "-----BEGIN RSA PRIVATE KEY-----\nMIIabc"])
def test_nothing_of_a_url_or_a_key_block_is_shown(text: str) -> None:
    (one,) = found(secrets, text)
    assert one.evidence in {"a URL with a password", "a private key"}


def test_values_of_documentation_count_little() -> None:
    severities = [found(secrets, text)[0].severity for text in ("AKIAIOSFODNN7EXAMPLE", f"api_key={RANDOM}")]
    assert severities == ["low", "high"]


def test_several_in_one_memory_are_one_finding_that_names_each_kind() -> None:
    (one,) = found(secrets, f"api_key={RANDOM} and redis://:{RANDOM}@cache/0")
    assert one.evidence.count(";") == 1
    assert RANDOM[:5] not in one.evidence


def test_a_secret_in_a_fact_names_its_source() -> None:
    fact = memory(0, f"api_key={RANDOM}", id="f1", store="fact", about=("m7",))
    (one,) = found(secrets, fact)
    assert (one.id, one.other) == ("f1", ("m7",))
    assert one.evidence.endswith("made from m7")
