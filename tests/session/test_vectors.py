"""Vectors and the remote language model from a session's view, over a loopback endpoint."""

from __future__ import annotations

import json
import logging
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.backends.mnemopi.embeddings import index
from ipy_memory.backends.mnemopi.embeddings.providers import CallableEmbedder
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import EmbeddingError, MemoryToolkitError, MissingFeatureError, ReadOnlyBankError
from ipy_memory.session import MemorySession, open_session
from tests.services.openai_stub import OpenAIStub, vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOW = "2026-06-01T12:00:00.000Z"
ROOT = Path(__file__).parents[2]
KEY = "sk-" + "hidden" * 3


def opened(folder: Path, embedder: Any = None, env: dict[str, str] | None = None, **settings: Any) -> MemorySession:
    return open_session(
        "mnemopi",
        cwd="/proj/demo",
        database=folder / "mnemopi.db",
        settings={f"mnemopi.{name}": value for name, value in settings.items()},
        agent_dir=folder / "agent",
        env={"HOME": str(folder), **(env or {})},
        clock=FixedClock(NOW),
        ids=FixedIds(),
        embedder=embedder,
    )


def bank_file(folder: Path) -> Path:
    (found,) = (folder / "banks").glob("*/mnemopi.db")
    return found


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(bank_file(folder))
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def stored(folder: Path) -> list[tuple[str, str, int]]:
    return rows(
        folder,
        "SELECT content, model, json_array_length(embedding_json) FROM memory_embeddings"
        " JOIN working_memory ON id = memory_id ORDER BY content",
    )


def numbers(size: int, model: str) -> CallableEmbedder:
    return CallableEmbedder(model, lambda texts: [vector(text, size) for text in texts])


def closed_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{found.getsockname()[1]}/v1"


@pytest.fixture
def stub() -> Iterator[OpenAIStub]:
    index.QUERIES.clear()
    with OpenAIStub() as server:
        yield server


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipy_memory.backends.mnemopi.embeddings.openai_api.RETRY_WAITS", (0.0, 0.0))


class TestEndpoint:
    @pytest.mark.claim("T-13")
    def test_what_is_retained_gets_vectors_and_a_recall_uses_the_querys(self, tmp_path: Path, stub: OpenAIStub) -> None:
        with opened(tmp_path, embeddingApiUrl=stub.url, embeddingModel="stub-384") as session:
            session.retain(["The deploy target is Frankfurt", "Tea is at four"])
            assert stub.requests == []  # nothing is asked for before the call has returned
            assert session.flush() == 0
            result = session.recall("deployment targets in Frankfurt")
            status = {row.name: row.value for row in session.status()}
        assert stored(tmp_path) == [
            ("Tea is at four", "stub-384", 384),
            ("The deploy target is Frankfurt", "stub-384", 384),
        ]
        asked = [body for path, body in stub.requests if path.endswith("/embeddings")]
        assert [body["input"] for body in asked] == [
            ["The deploy target is Frankfurt", "Tea is at four"],
            ["deployment targets in Frankfurt"],
        ]
        best = result.hits[0]
        assert best.content == "The deploy target is Frankfurt"
        assert best.parts is not None
        asked_for, deploy = map(vector, ("deployment targets in Frankfurt", "The deploy target is Frankfurt"))
        assert best.parts.dense == pytest.approx(sum(a * b for a, b in zip(asked_for, deploy, strict=True)), abs=1e-4)
        assert result.notes == ()
        port = stub.server_address[1]
        assert status["vectors"] == f"in use: stub-384, 127.0.0.1:{port}"

    @pytest.mark.claim("T-13")
    def test_closing_computes_what_still_waits(self, tmp_path: Path, stub: OpenAIStub) -> None:
        with opened(tmp_path, embeddingApiUrl=stub.url) as session:
            session.retain("one")
            assert {row.name: row.value for row in session.status()}["waiting"] == "1"
        assert [row[0] for row in stored(tmp_path)] == ["one"]

    @pytest.mark.claim("T-13")
    def test_the_end_of_the_process_computes_what_still_waits(self, tmp_path: Path, stub: OpenAIStub) -> None:
        code = (
            "import sys\nfrom ipy_memory import open_session\n"
            "s = open_session('mnemopi', cwd='/proj/demo', database=sys.argv[1], agent_dir=sys.argv[2],"
            " settings={'mnemopi.embeddingApiUrl': sys.argv[3]}, env={'HOME': sys.argv[2]})\n"
            "s.retain('left without a word')\n"
        )
        given = [str(tmp_path / "mnemopi.db"), str(tmp_path), stub.url]
        subprocess.run([sys.executable, "-W", "error", "-c", code, *given], check=True, cwd=ROOT)
        assert [row[0] for row in stored(tmp_path)] == ["left without a word"]

    @pytest.mark.claim("T-13")
    def test_an_endpoint_that_is_down_loses_nothing_and_is_said(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with (
            caplog.at_level(logging.WARNING, "ipy_memory"),
            opened(tmp_path, embeddingApiUrl=closed_port(), embeddingApiKey=KEY) as session,
        ):
            result = session.retain("The fog horn is loud")
            assert result.text == "1 memory stored."
            assert session.flush() == 0
            found = session.recall("fog horn")
            status = {row.name: row.value for row in session.status()}
        assert [hit.content for hit in found.hits] == ["The fog horn is loud"]
        (note,) = found.notes
        assert "by text alone" in note
        assert "No memories are lost" in note
        assert status["vectors"].startswith("off: ")
        assert status["vectors"].endswith("; 0 of 1 memories have one")
        for text in (note, status["vectors"], caplog.text):
            assert KEY not in text
            assert "fog horn" not in text

    def test_what_an_outage_left_out_is_computed_on_request(self, tmp_path: Path, stub: OpenAIStub) -> None:
        with opened(tmp_path, embeddingApiUrl=stub.url) as session:
            session.retain("first")
            session.flush()
            with stub.fault("/embeddings", status=400):
                session.retain("second")
                session.flush()
            assert [row[0] for row in stored(tmp_path)] == ["first"]
            stub.requests.clear()
            (done,) = session.reindex_vectors(missing_only=True)
        assert done.stored == 1
        assert done.copy.exists()
        assert [body["input"] for _, body in stub.requests] == [["memory"], ["second"]]
        assert [row[0] for row in stored(tmp_path)] == ["first", "second"]

    def test_the_environment_configures_as_well(self, tmp_path: Path, stub: OpenAIStub) -> None:
        with opened(tmp_path, env={"MNEMOPI_EMBEDDING_API_URL": stub.url}) as session:
            session.retain("x-ray")
        assert [row[0] for row in stored(tmp_path)] == ["x-ray"]

    @pytest.mark.claim("R-30", "T-12")
    @pytest.mark.parametrize("switch", [{"noEmbeddings": True}, {"env": {"MNEMOPI_NO_EMBEDDINGS": "1"}}])
    def test_switched_off_nothing_is_asked_and_no_note_is_made(
        self, tmp_path: Path, stub: OpenAIStub, switch: dict[str, Any]
    ) -> None:
        with opened(tmp_path, embeddingApiUrl=stub.url) as session:
            session.retain("one")
        stub.requests.clear()
        with opened(tmp_path, numbers(4, "given"), embeddingApiUrl=stub.url, **switch) as session:
            session.retain("two")
            assert session.recall("one").notes == ()
            assert "switched off" in session.vectors().state
        assert stub.requests == []
        assert [row[0] for row in stored(tmp_path)] == ["one"]

    @pytest.mark.claim("C-02")
    def test_the_files_model_is_asked_for_before_the_environments(self, tmp_path: Path, stub: OpenAIStub) -> None:
        agent = tmp_path / "agent"
        agent.mkdir()
        env = {"MNEMOPI_EMBEDDING_MODEL": "of/env"}
        for query in ("one", "two"):
            with opened(tmp_path, env=env, embeddingApiUrl=stub.url) as session:
                session.recall(query)
                session.retain(query)
            (agent / "config.yml").write_text("mnemopi: {embeddingModel: of/file}\n")
        assert [body["model"] for _, body in stub.requests] == ["of/env", "of/file", "of/file"]
        assert [(content, model) for content, model, _ in stored(tmp_path)] == [("one", "of/env"), ("two", "of/file")]


class TestChoice:
    def test_a_given_embedder_comes_before_the_endpoint(self, tmp_path: Path, stub: OpenAIStub) -> None:
        with opened(tmp_path, numbers(4, "mine"), embeddingApiUrl=stub.url) as session:
            session.retain("one")
            session.flush()
            assert session.vectors().state == "in use: mine, given by the caller"
        assert stub.requests == []
        assert stored(tmp_path) == [("one", "mine", 4)]

    @pytest.mark.claim("R-30", "T-12")
    def test_nothing_configured_is_not_in_use_and_says_why(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ipy_memory.backends.mnemopi.embeddings.model_files.installed", lambda: False)
        with opened(tmp_path) as session:
            session.retain("one")
            status = {row.name: row.value for row in session.status()}
            with pytest.raises(EmbeddingError) as caught:
                session.reindex_vectors()
        assert status["vectors"].startswith("not in use: no endpoint is set and no local model can run")
        assert "mnemopi.embeddingApiUrl" in (caught.value.hint or "")

    def test_a_providers_model_without_a_key_names_the_key(self, tmp_path: Path) -> None:
        with opened(tmp_path, embeddingModel="openai/text-embedding-3-small") as session:
            assert "mnemopi.embeddingApiKey" in session.vectors().state

    def test_stored_vectors_without_an_embedder_are_noted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ipy_memory.backends.mnemopi.embeddings.model_files.installed", lambda: False)
        with opened(tmp_path, numbers(4, "mine")) as session:
            session.retain("one")
        with opened(tmp_path) as session:
            (note,) = session.recall("one").notes
            assert "1 of 1 memories have one" in session.vectors().summary
        assert "no embedder is active" in note
        assert "mnemopi.embeddingApiUrl" in note

    def test_an_embedder_that_raises_leaves_recall_to_the_text(self, tmp_path: Path) -> None:
        class Broken:
            model = "broken"

            def embed(self, texts: Sequence[str]) -> list[list[float] | None]:
                raise RuntimeError("private words")

            def embed_query(self, text: str) -> list[float] | None:
                raise RuntimeError("private words")

        with opened(tmp_path, Broken()) as session:
            session.retain("one")
            session.flush()
            found = session.recall("one")
            with pytest.raises(EmbeddingError, match="RuntimeError"):
                session.reindex_vectors()
        assert [hit.content for hit in found.hits] == ["one"]
        assert "RuntimeError" in found.notes[0]
        assert "private" not in found.notes[0]
        assert not list(tmp_path.rglob("*.backup"))


class TestOtherModels:
    def test_a_new_model_recalls_by_text_and_rebuilds_on_request(self, tmp_path: Path) -> None:
        with opened(tmp_path, numbers(4, "old")) as session:
            session.retain(["The fog horn is loud", "Tea is at four"])
        before = stored(tmp_path)
        with opened(tmp_path, numbers(8, "new")) as session:
            found = session.recall("fog horn")
            assert stored(tmp_path) == before
            summary = session.vectors().summary
            told: list[tuple[int, int]] = []
            (done,) = session.reindex_vectors(progress=lambda *given: told.append(given))
            again = session.recall("fog horn")
            after = session.vectors()
        assert [hit.content for hit in found.hits] == ["The fog horn is loud"]
        assert found.hits[0].parts is not None
        assert found.hits[0].parts.dense == 0
        (note,) = found.notes
        for words in ("vectors of old", "those of new", "No memories are lost", "%memory embeddings reindex"):
            assert words in note
        assert "0 of 2 memories have one" in summary
        assert (done.stored, told) == (2, [(2, 2)])
        assert [row[1:] for row in stored(tmp_path)] == [("new", 8)] * 2
        assert again.notes == ()
        assert again.hits[0].parts is not None
        assert again.hits[0].parts.dense > 0
        assert after.summary == "in use: new, given by the caller"
        copied = sqlite3.connect(done.copy)
        assert copied.execute("SELECT DISTINCT model FROM memory_embeddings").fetchall() == [("old",)]
        copied.close()

    def test_another_length_under_the_same_name_is_noted(self, tmp_path: Path) -> None:
        with opened(tmp_path, numbers(4, "same")) as session:
            session.retain("The fog horn is loud")
        with opened(tmp_path, numbers(8, "same")) as session:
            (note,) = session.recall("fog horn").notes
        for words in ("vectors of 4 numbers", "has 8", "No memories are lost", "%memory embeddings reindex"):
            assert words in note

    def test_a_mixed_bank_compares_its_own_and_names_the_rest(self, tmp_path: Path) -> None:
        with opened(tmp_path, numbers(4, "old")) as session:
            session.retain("The fog horn is loud")
        with opened(tmp_path, numbers(4, "new")) as session:
            session.retain("The fog horn is new")
            session.flush()
            found = session.recall("fog horn")
            (bank,) = session.vectors().banks
        dense = {hit.content: hit.parts.dense for hit in found.hits if hit.parts}
        assert dense["The fog horn is new"] > 0
        assert dense["The fog horn is loud"] == 0
        assert "vectors of old" in found.notes[0]
        assert (bank.memories, bank.covered) == (2, 1)
        assert [(one.model, one.count, one.size) for one in bank.models] == [("new", 1, 4), ("old", 1, 4)]

    def test_a_reindex_that_fails_keeps_what_is_there(self, tmp_path: Path) -> None:
        with opened(tmp_path, numbers(4, "old")) as session:
            session.retain([f"row {number}" for number in range(300)])
        before = stored(tmp_path)
        calls: list[int] = []

        def embed(texts: list[str]) -> list[list[float]] | None:
            calls.append(len(texts))
            return [[1.0]] if texts == ["memory"] else None

        with (
            opened(tmp_path, CallableEmbedder("new", embed)) as session,
            pytest.raises(EmbeddingError, match="300 of 300"),
        ):
            session.reindex_vectors()
        assert calls == [1, 128]  # the first batch without a vector is the last
        assert stored(tmp_path) == before

    def test_one_bank_is_read_only(self, tmp_path: Path) -> None:
        with opened(tmp_path, numbers(4, "m")) as session:
            session.retain("one")
            backend = session.live_backend().one_bank(session.live_backend().retain_bank)  # type: ignore[attr-defined]
            assert backend.vectors().banks[0].covered == 0
            with pytest.raises(ReadOnlyBankError):
                backend.reindex_vectors()

    def test_hindsight_keeps_none_here(self, tmp_path: Path) -> None:
        session = open_session(
            "hindsight", cwd="/p", settings={"hindsight.apiUrl": "http://127.0.0.1:1"}, agent_dir=tmp_path, env={}
        )
        with pytest.raises(MemoryToolkitError, match="on the server"):
            session.vectors()


class TestLocalModel:
    """A model of the package ``fastembed``, played by a stand-in for the package."""

    MODEL = "BAAI/bge-base-en-v1.5"

    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """The stand-in: what was made of it, and where it keeps its files."""
        seen: dict[str, Any] = {"made": [], "weights": tmp_path / "models" / "models--q--bge-base-en-v1.5-onnx-q"}

        class TextEmbedding:
            def __init__(self, *, model_name: str, cache_dir: str, local_files_only: bool) -> None:
                seen["made"].append(local_files_only)
                weights = seen["weights"] / "snapshots" / "1" / "model_optimized.onnx"
                if not local_files_only:
                    weights.parent.mkdir(parents=True)
                    weights.write_bytes(b"x" * 2000)
                    for name in ("config.json", "tokenizer.json"):
                        (weights.parent / name).write_text("{}")
                whole = weights.exists() and (weights.parent / "tokenizer.json").exists()
                if not whole or weights.stat().st_size < 2000:
                    raise ValueError("cannot be loaded")

            def embed(self, texts: list[str]) -> list[list[float]]:
                return [vector(text, 8) for text in texts]

            def query_embed(self, text: str) -> list[list[float]]:
                return [vector(text, 8)]

        import types

        monkeypatch.setitem(sys.modules, "fastembed", types.SimpleNamespace(TextEmbedding=TextEmbedding))
        monkeypatch.setattr("ipy_memory.backends.mnemopi.embeddings.model_files.installed", lambda: True)
        return seen

    def opened(self, folder: Path) -> MemorySession:
        index.QUERIES.clear()
        return opened(folder, env={"FASTEMBED_CACHE_PATH": str(folder / "models")})

    @pytest.mark.claim("R-30", "T-12")
    def test_its_files_are_fetched_only_on_request(self, tmp_path: Path, package: dict[str, Any]) -> None:
        with self.opened(tmp_path) as session:
            session.retain("one")
            session.flush()
            assert session.recall("one").notes == ()
            assert f"the files of {self.MODEL} are not there" in session.vectors().state
            assert package["made"] == []
            assert session.fetch_model().endswith(" now.")
        assert package["made"] == [False]
        with self.opened(tmp_path) as session:
            assert session.vectors().state == f"in use: {self.MODEL}, this machine"
            session.recall("one")
            assert package["made"] == [False]  # no vector is stored: the model is not loaded for a query
            session.retain("two")
            session.flush()
            assert package["made"] == [False, True]
            assert "already" in session.fetch_model()
        assert stored(tmp_path) == [("two", self.MODEL, 8)]

    def test_damaged_files_are_one_warning_and_recall_goes_on(
        self, tmp_path: Path, package: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        with self.opened(tmp_path) as session:
            session.fetch_model()
        with self.opened(tmp_path) as session:
            session.retain("The fog horn is loud")
        weights = next(package["weights"].rglob("*.onnx"))
        weights.write_bytes(b"x" * 1000)
        package["made"].clear()
        with caplog.at_level(logging.WARNING, "ipy_memory"), self.opened(tmp_path) as session:
            found = [session.recall("fog horn"), session.recall("loud horn")]
            state = session.vectors().state
            assert [[hit.content for hit in each.hits] for each in found] == [["The fog horn is loud"]] * 2
            assert all("damaged or incomplete" in each.notes[0] for each in found)
            assert state.startswith("off: The model's files are damaged or incomplete: %memory embeddings download")
            assert package["made"] == [True]
            assert caplog.text.count("damaged") == 1
            assert "kept beside them" in session.fetch_model()
        assert [entry.name for entry in (tmp_path / "models").iterdir() if entry.name.endswith(".damaged")]
        with self.opened(tmp_path) as session:
            assert session.recall("fog horn").notes == ()

    @pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
    def test_files_without_a_tokenizer_are_not_in_use(self, tmp_path: Path, package: dict[str, Any], name: str) -> None:
        """C20: status says what is missing, before anything is loaded, and a download makes it good."""
        with self.opened(tmp_path) as session:
            session.fetch_model()
        next(package["weights"].rglob(name)).unlink()
        with self.opened(tmp_path) as session:
            state = session.vectors().state
            assert state.startswith(f"not in use: the files of {self.MODEL} are incomplete: {name} missing")
            assert "%memory embeddings download" in state
            if name == "tokenizer.json":
                assert "kept beside them" in session.fetch_model()
        with self.opened(tmp_path) as session:
            assert session.vectors().state.startswith("in use" if name == "tokenizer.json" else "not in use")

    def test_without_the_package_or_beside_an_endpoint_nothing_is_fetched(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ipy_memory.backends.mnemopi.embeddings.model_files.installed", lambda: False)
        with opened(tmp_path) as session, pytest.raises(MissingFeatureError):
            session.fetch_model()
        with opened(tmp_path, embeddingApiUrl="http://127.0.0.1:1") as session, pytest.raises(EmbeddingError):
            session.fetch_model()
        with opened(tmp_path, embeddingModel="openai/x") as session, pytest.raises(EmbeddingError):
            session.fetch_model()

    def test_importing_a_session_imports_no_heavy_guest(self) -> None:
        code = (
            "import sys, ipy_memory.session, ipy_memory.backends.mnemopi.session\n"
            "import ipy_memory.backends.mnemopi.embeddings.selection\n"
            "assert not {'numpy', 'httpx', 'fastembed', 'onnxruntime'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


PATTERNS = ["The user prefers green tea a lot"]
"""What the sentence patterns find where a model gives nothing."""


class TestRemoteModel:
    """D14: the request and the way back to the patterns are the real engine's; what is not JSON is dropped."""

    FACTS = "SELECT value FROM memoria_facts ORDER BY value"

    def remote(self, folder: Path, url: str | None, mode: str = "remote") -> MemorySession:
        return opened(folder, llmMode=mode, llmBaseUrl=url, llmApiKey=KEY, llmModel="chat-1")

    @pytest.mark.parametrize(
        ("answer", "facts"),
        [
            ('<think>secret plan</think>["likes tea"]', ["likes tea"]),
            ('secret plan</think>\n{"facts": ["likes tea"]}', ["likes tea"]),
            ('```json\n{"facts": ["likes tea"]}\n```', ["likes tea"]),
            ('<thinking a="b">{"facts": ["secret plan"]}</thinking>{"facts": ["likes tea"]}', ["likes tea"]),
            ("<think>secret plan without an end", PATTERNS),
            ("Sure! The user said a secret plan.", []),
            ('{"facts": ["secret plan"', []),
            ("- The secret plan is a list\n- of bullets", []),
            ('Here it is: {"facts": ["secret plan"]}', []),
            ("", PATTERNS),
            ("null", PATTERNS),
            ("no_facts", PATTERNS),
            ("short", PATTERNS),
            ('{"facts": []}', PATTERNS),
        ],
    )
    def test_only_what_was_asked_for_is_stored(
        self, tmp_path: Path, stub: OpenAIStub, answer: str, facts: list[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        stub.answer = answer
        with caplog.at_level(logging.WARNING, "ipy_memory"), self.remote(tmp_path, stub.url) as session:
            session.retain("I like green tea a lot")
            assert rows(tmp_path, self.FACTS) == []
            assert session.flush() == 0
            assert {row.name: row.value for row in session.status()}["language model"].startswith("in use: chat-1, ")
        assert [row[0] for row in rows(tmp_path, self.FACTS)] == facts
        assert ("fact extraction failed" in caplog.text) is not bool(facts)
        assert "The user said" not in caplog.text
        ((path, body),) = stub.requests
        assert path == "/v1/chat/completions"
        assert body["model"] == "chat-1"
        assert "I like green tea a lot" in body["messages"][0]["content"]
        dump = bank_file(tmp_path).read_bytes()
        assert b"secret plan" not in dump
        assert KEY not in caplog.text

    @pytest.mark.claim("T-13")
    @pytest.mark.parametrize("failure", [400, 503, None])
    def test_where_no_model_answers_the_patterns_do_and_it_is_logged(
        self, tmp_path: Path, stub: OpenAIStub, failure: int | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        url = stub.url if failure else closed_port()
        with (
            caplog.at_level(logging.WARNING, "ipy_memory"),
            stub.fault("/chat/completions", status=failure),
            self.remote(tmp_path, url) as session,
        ):
            assert session.retain("I like green tea a lot").text == "1 memory stored."
            session.flush()
            assert "I like green tea a lot" in [hit.content for hit in session.recall("green tea").hits]
        assert [row[0] for row in rows(tmp_path, self.FACTS)] == PATTERNS
        assert caplog.text.count("the language model gave no facts") == 1
        for hidden in (KEY, "green tea"):
            assert hidden not in caplog.text

    @pytest.mark.claim("R-30", "T-12")
    @pytest.mark.parametrize("mode", ["none", "smol"])
    def test_other_modes_ask_nobody(self, tmp_path: Path, stub: OpenAIStub, mode: str) -> None:
        with self.remote(tmp_path, stub.url, mode) as session:
            session.retain("I like green tea a lot")
            assert "language model" not in {row.name for row in session.status()}
        assert stub.requests == []
        assert [row[0] for row in rows(tmp_path, self.FACTS)] == ["The user prefers green tea a lot"]

    @pytest.mark.claim("R-30", "T-12")
    def test_without_an_address_nobody_is_asked_and_it_is_said(self, tmp_path: Path) -> None:
        with self.remote(tmp_path, None) as session:
            session.retain("I like green tea a lot")
            status = {row.name: row.value for row in session.status()}
        assert status["language model"].startswith("not in use: set mnemopi.llmBaseUrl")
        assert [row[0] for row in rows(tmp_path, self.FACTS)] == ["The user prefers green tea a lot"]

    def test_the_requests_keys_and_header(self, tmp_path: Path) -> None:
        import httpx

        from ipy_memory.backends.mnemopi.store.llm import RemoteCompletion

        asked: list[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            asked.append(request)
            return httpx.Response(200, json={"choices": [{"message": {"content": "NO_FACTS"}}]})

        model = RemoteCompletion("m", "http://stub/v1/", KEY, transport=httpx.MockTransport(answer))
        assert model("a prompt") == "NO_FACTS"
        model.close()
        (request,) = asked
        assert str(request.url) == "http://stub/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert json.loads(request.content) == {
            "model": "m",
            "messages": [{"role": "user", "content": "a prompt"}],
            "max_tokens": 2048,
            "temperature": 0,
            "stop": ["</s>", "<|user|>"],
        }
