"""What looks like a credential, and what happens before it is sent to a server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ipy_memory.credentials import Guard, shapes, without_credentials
from ipy_memory.errors import CredentialError
from ipy_memory.session import MemorySession, open_session
from tests.backends.hindsight.stub import StubServer
from tests.services.openai_stub import OpenAIStub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECRET = "hunter2-and-more"
QUERY = f"why does password={SECRET} fail?"

HELD = [
    "password=hunter22",
    "the password: hunter22!",
    'DB_PASSWORD="hunter22"',
    "token: 0123456789abcdef0123456789abcdef",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "api-key=abcdef123456",
    "Authorization: Bearer abcdefghijklmnop1234",
    "postgres://user:pass@host/db",
    "redis://:pass@host",
    "glpat-abcdefghij1234567890",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "sk-proj-abcdefghij1234567890",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.sig",
    "my-secret-abc123def456",
]
FREE = [
    "",
    "where is the password stored?",
    "how does token refresh work",
    "https://host:8443/path and a@b.c",
    "risk-averse task-runner",
    "https://user@host/path",
    "BEGIN PUBLIC KEY",
    "password: ",
    "the token is base64-encoded",
    "password is required here",
    "token count 12345678",
    "password hashing with argon2id",
    "docker run -u 1000:1000 image",
    "cookie: chocolate",
    "PASS: test_foo",
]
HEX = "0123456789abcdef" * 2
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6lM9"
NEIGHBOURS = [
    "clientSecret=hunter22",
    "AccountName=x;AccountKey=hunter22",
    f"_authToken={MIXED}",
    "DB_PASS=hunter22",
    "my password is hunter2secret",
    "password hunter2secret",
    f"the api key is {HEX}",
    f"The token is {MIXED}.",
    "Passwort: geheim12",
    "mot de passe : azerty12",
    "contraseña: secreto",
    "пароль: secret12",
    "密码：secret12",
    "mysql --password hunter2",
    "mysql -u root -phunter2",
    "sshpass -p hunter2 ssh host",
    "curl -s -u admin:hunter2 https://x",
    "machine x login y password hunter2",
    f"Authorization: Basic {MIXED}",
    f"Set-Cookie: session={MIXED}",
    f"https://hooks.slack.com/services/T00000000/B00000000/{MIXED[:24]}",
    f"https://discord.com/api/webhooks/123456789012345678/{MIXED}",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    *(
        front + MIXED
        for front in (
            *(
                "dckr_pat_",
                "AGE-SECRET-KEY-1",
                "ATATT3",
                "lin_api_",
                "hvs.",
                "sntrys_",
                "nvapi-",
                "r8_",
                "pplx-",
                "xai-",
            ),
            *("gsk_", "figd_", "ntn_", "sbp_", "tskey-", "glsa_", "sk_test_", "12345678:AA", "sq0csp-"),
        )
    ),
    f"SK{HEX}",
    f"dapi{HEX}",
]


@pytest.mark.parametrize("text", NEIGHBOURS)
def test_further_forms_are_seen_and_taken_out(text: str) -> None:
    """A09: other names, other languages, command lines, headers, webhooks, more services."""
    assert shapes(f"see {text} there")
    without, count = without_credentials(f"see {text} there")
    assert count
    assert not [
        part for part in ("hunter2", "geheim", "azerty", "secreto", "secret12", MIXED[-8:], HEX) if part in without
    ]


@pytest.mark.parametrize("text", HELD)
def test_credentials_are_seen(text: str) -> None:
    assert shapes(f"see {text} there")


@pytest.mark.parametrize("text", FREE)
def test_ordinary_texts_are_not(text: str) -> None:
    assert shapes(text) == ()


@pytest.mark.parametrize(
    "part",
    [
        "password",
        "password ",
        "password: ",
        "://a:",
        "://",
        "eyJ",
        "eyJaaaaaaaaa.",
        "-----BEGIN ",
        "key_",
        "sk-",
        "bearer ",
        "secret is ",
        "--password ",
        "curl ",
        "mysql ",
        "login ",
        "login a password ",
        "cookie: ",
        "cookie: a=",
        "authorization: basic ",
        "hooks.slack.com/services/",
        "0123456789",
        "aaaaaaaaaa",
    ],
)
def test_a_megabyte_is_read_in_linear_time(part: str) -> None:
    began = time.monotonic()
    shapes(part * (1_000_000 // len(part)))
    assert time.monotonic() - began < 60


class TestGuard:
    def test_each_text_is_told_about_once_for_each_place(self) -> None:
        told: list[str] = []
        guard = Guard(told.append)
        for place in ("the server", "the server", "another server"):
            guard(QUERY, place)
            guard("an ordinary text", place)
        assert len(told) == 2
        assert "the server" in told[0]
        assert not [line for line in told if SECRET in line]

    def test_it_may_refuse(self) -> None:
        told: list[str] = []
        guard = Guard(told.append)
        guard.refuse = True
        with pytest.raises(CredentialError) as caught:
            guard(QUERY, "the server")
        assert SECRET not in caught.value.one_line()
        assert told == []
        guard("an ordinary text", "the server")


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as made:
        yield made


@pytest.fixture
def remote(server: StubServer, tmp_path: Path) -> Iterator[MemorySession]:
    settings = {"hindsight.apiUrl": server.url, "hindsight.mentalModelsEnabled": False}
    made = open_session("hindsight", "/work/shop", settings=settings, agent_dir=tmp_path, env={})
    yield made
    made.close()


def queries(server: StubServer) -> list[str]:
    return [r["body"]["query"] for r in server.requests if r["body"] and "query" in r["body"]]


class TestHindsight:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda s: s.recall(QUERY),
            lambda s: s.reflect(QUERY),
            lambda s: s.reflect("why?", f"the password is: {SECRET}"),
            lambda s: s.first_turn(QUERY),
        ],
        ids=["recall", "reflect", "context", "automatic recall"],
    )
    def test_a_warning_comes_before_the_unchanged_request(
        self, ask: Callable[[MemorySession], object], remote: MemorySession, server: StubServer
    ) -> None:
        shown: list[int] = []
        remote.show_at_once = lambda: shown.append(len(queries(server)))
        ask(remote)
        assert shown == [0]
        assert len(queries(server)) == 1
        assert queries(server)[0] in (QUERY, "why?")
        (notice,) = remote.notices
        assert f"the Hindsight server at {server.url}" in notice.text
        assert SECRET not in notice.text

    def test_nothing_is_sent_where_it_is_refused(self, remote: MemorySession, server: StubServer) -> None:
        remote.outgoing.refuse = True
        for ask in (lambda: remote.recall(QUERY), lambda: remote.reflect("why?", QUERY)):
            with pytest.raises(CredentialError, match="was not sent"):
                ask()
        remote.first_turn(QUERY)
        assert queries(server) == []
        remote.recall("an ordinary query")
        assert queries(server) == ["an ordinary query"]


class TestEmbeddings:
    @pytest.fixture
    def local(self, tmp_path: Path) -> Iterator[tuple[MemorySession, OpenAIStub]]:
        with OpenAIStub() as stub:
            settings = {
                "mnemopi.dbPath": str(tmp_path / "m.db"),
                "mnemopi.embeddingApiUrl": stub.url,
                "mnemopi.embeddingModel": "m",
            }
            made = open_session("mnemopi", "/work/shop", settings=settings, agent_dir=tmp_path, env={})
            made.retain("the harbour lights")
            made.flush()
            stub.requests.clear()
            yield made, stub
            made.close()

    def test_a_warning_names_the_endpoint(self, local: tuple[MemorySession, OpenAIStub]) -> None:
        session, stub = local
        session.recall(QUERY)
        assert [body["input"] for _, body in stub.requests] == [[QUERY]]
        assert [notice.text for notice in session.notices if "the embedding endpoint 127.0.0.1" in notice.text]

    def test_refused_it_stays_and_recall_goes_by_text(self, local: tuple[MemorySession, OpenAIStub]) -> None:
        session, stub = local
        session.outgoing.refuse = True
        answer = session.recall(f"harbour lights password={SECRET}")
        assert stub.requests == []
        assert answer.hits
        assert any("was not sent" in note for note in answer.notes)
        assert not [note for note in answer.notes if SECRET in note]


def test_a_bank_on_this_machine_warns_of_nothing(tmp_path: Path) -> None:
    settings = {"mnemopi.dbPath": str(tmp_path / "m.db")}
    session = open_session("mnemopi", "/work/shop", settings=settings, agent_dir=tmp_path, env={})
    session.recall(QUERY)
    assert [notice for notice in session.notices if "credential" in notice.text or "password" in notice.text] == []
    session.close()
