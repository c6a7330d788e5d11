"""Vectors: how they are asked for, stored, kept and rebuilt."""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.consolidation.sleep import sleep
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.embeddings.index import (
    CUT_MARK,
    MAX_UNITS,
    QueryCache,
    clipped,
    float32,
    reconcile,
    reindex,
    store_vectors,
)
from ipy_memory.backends.mnemopi.embeddings.providers import (
    CallableEmbedder,
    FastembedEmbedder,
    HttpEmbedder,
    configured_embedder,
)
from ipy_memory.backends.mnemopi.recall.single_bank import recall
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.memories import forget, invalidate, update
from ipy_memory.backends.mnemopi.store.write import RememberOptions, remember
from ipy_memory.clock import FixedClock, FixedIds
from ipy_memory.errors import EmbeddingError, MissingFeatureError
from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.model import Embedder

NOW = "2026-06-01T12:00:00.000Z"
Answer = Callable[[list[str]], httpx.Response]


def _vectors(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def _answered(texts: list[str]) -> httpx.Response:
    return httpx.Response(200, json={"data": [{"embedding": vector} for vector in _vectors(texts)]})


def vectors_of(vectors: list[Any], **more: Any) -> Answer:
    """Return what answers with these vectors, whatever the texts are."""
    data = [{"embedding": vector, **more} for vector in vectors]
    return lambda _texts: httpx.Response(200, content=json.dumps({"data": data}))


class Endpoint:
    """Answers in the process; remembers what was asked and how long the embedder waited."""

    def __init__(self, answer: Answer = _answered) -> None:
        self.answer = answer
        self.requests: list[httpx.Request] = []
        self.waited: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.answer(json.loads(request.content)["input"])

    @property
    def inputs(self) -> list[list[str]]:
        return [json.loads(request.content)["input"] for request in self.requests]

    def embedder(self, url: str = "http://stub/v1", key: str | None = None, model: str = "m") -> HttpEmbedder:
        return HttpEmbedder(
            model, url, key, transport=httpx.MockTransport(self), wait=self.waited.append, cache=QueryCache()
        )


@pytest.fixture
def open_bank(tmp_path: Path) -> Iterator[Callable[..., Bank]]:
    opened: list[Bank] = []
    clock, ids = FixedClock(NOW), FixedIds()

    def opener(embedder: Embedder | None = None, **config: Any) -> Bank:
        bank = Bank.open(
            tmp_path / "mnemopi.db", "proj", clock=clock, ids=ids, embedder=embedder, config=EngineConfig(**config)
        )
        opened.append(bank)
        return bank

    yield opener
    for bank in opened:
        bank.close()


def _stored(bank: Bank) -> dict[str, tuple[str, str]]:
    return {
        row[0]: (row[1], row[2])
        for row in bank.connection.execute(
            "SELECT COALESCE(w.content, e.content), v.model, v.embedding_json FROM memory_embeddings v"
            " LEFT JOIN working_memory w ON w.id = v.memory_id LEFT JOIN episodic_memory e ON e.id = v.memory_id"
        )
    }


class TestRequests:
    def test_the_body_is_model_and_input_and_the_key_only_if_there_is_one(self) -> None:
        endpoint = Endpoint()
        endpoint.embedder("http://stub/v1//").embed(["é \ud83d", "b"])
        endpoint.embedder(key="sk-x").embed(["a"])
        endpoint.embedder(key="").embed(["a"])
        first = endpoint.requests[0]
        assert str(first.url) == "http://stub/v1/embeddings"
        assert first.content == '{"model":"m","input":["é \\ud83d","b"]}'.encode()
        assert first.headers["content-type"] == "application/json"
        assert [r.headers.get("authorization") for r in endpoint.requests] == [None, "Bearer sk-x", None]

    def test_numbers_are_rounded_to_single_precision(self) -> None:
        endpoint = Endpoint(vectors_of([[0.1, 1e-7, -0.0, 123456789.123, 2]], index=7))
        (found,) = endpoint.embedder().embed(["x"])
        assert js.json_text(found) == "[0.10000000149011612,1.0000000116860974e-7,0,123456792,2]"

    @pytest.mark.parametrize(
        "vector",
        [
            *([], None, {}, 5, "AACAPwAAAEA=", "[1,2]", [[1, 2]]),
            *([1, None], [1, "2"], [1, True], [1, {}], [1, 1e39], [1, float("nan")], [float("-inf")]),
        ],
    )
    def test_what_is_not_a_list_of_finite_numbers_is_not_a_vector(self, vector: Any) -> None:
        endpoint = Endpoint(vectors_of([[1, 2], vector, [3, 4]]))
        embedder = endpoint.embedder()
        assert embedder.embed(["a", "b", "c"]) == [[1.0, 2.0], None, [3.0, 4.0]]
        assert embedder.problem == "an answer without usable vectors"
        assert len(endpoint.requests) == 1

    def test_a_vector_of_another_length_than_most_is_not_one(self) -> None:
        endpoint = Endpoint(vectors_of([[1, 2], [1, 2, 3], [3, 4]]))
        assert endpoint.embedder().embed(["a", "b", "c"]) == [[1.0, 2.0], None, [3.0, 4.0]]

    @pytest.mark.parametrize("first", [0, 1, -3])
    def test_vectors_are_placed_by_their_index(self, first: int) -> None:
        def answer(texts: list[str]) -> httpx.Response:
            items = [{"index": first + at, "embedding": [ord(text)]} for at, text in enumerate(texts)]
            return httpx.Response(200, json={"data": items[1:] + items[:1]})

        endpoint = Endpoint(answer)
        assert endpoint.embedder().embed(list("abcd")) == [[97.0], [98.0], [99.0], [100.0]]
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize(
        "twisted",
        [
            lambda items: items[:-1],
            lambda items: [*items, items[0]],
            lambda items: items[1:] if len(items) > 1 else items,
            lambda items: [{**item, "index": 0} for item in items],
            lambda items: [{**items[0], "index": 9}, *items[1:]],
            lambda items: [{"embedding": items[0]["embedding"]}, *items[1:]] if len(items) > 1 else items,
            lambda items: [{**item, "index": "0"} for item in items[1:]] if len(items) > 1 else items,
            lambda items: [],
        ],
    )
    def test_no_text_gets_the_vector_of_another(self, twisted: Callable[[list[Any]], list[Any]]) -> None:
        def answer(texts: list[str]) -> httpx.Response:
            items = [{"index": at, "embedding": [ord(text)]} for at, text in enumerate(texts)]
            return httpx.Response(200, json={"data": twisted(items)})

        found = Endpoint(answer).embedder().embed(list("abcdefg"))
        right = [[97.0 + at] for at in range(7)]
        assert all(got in (None, wanted) for got, wanted in zip(found, right, strict=True))
        single = twisted([{"index": 0, "embedding": [1]}])
        assert found == (right if len(single) == 1 else [None] * 7)

    @pytest.mark.parametrize("status", [400, 413, 422, 500])
    @pytest.mark.parametrize("bad", [["5"], ["0"], ["9"], ["3", "4"], ["0", "1", "9"]])
    def test_a_refused_text_costs_only_itself(self, status: int, bad: list[str]) -> None:
        def answer(texts: list[str]) -> httpx.Response:
            return httpx.Response(status) if set(bad) & set(texts) else _answered(texts)

        texts = [str(number) for number in range(10)]
        endpoint = Endpoint(answer)
        embedder = endpoint.embedder()
        assert [text for text, vector in zip(texts, embedder.embed(texts), strict=True) if not vector] == bad
        assert embedder.problem == f"status {status}"
        assert endpoint.waited == ([1.0, 2.0] if status == 500 else [])

    def test_an_endpoint_that_refuses_every_text_is_left_alone_soon(self) -> None:
        endpoint = Endpoint(lambda _texts: httpx.Response(400))
        assert endpoint.embedder().embed(["x"] * 128) == [None] * 128
        assert len(endpoint.requests) < 16

    def test_no_call_takes_longer_than_its_limit(self) -> None:
        now = 0.0

        def answer(_texts: list[str]) -> httpx.Response:
            nonlocal now
            now += 11
            return httpx.Response(422)

        endpoint = Endpoint(answer)
        embedder = HttpEmbedder(
            "m", "http://stub", transport=httpx.MockTransport(endpoint), clock=lambda: now, cache=QueryCache()
        )
        assert embedder.embed(["a"] * 64) == [None] * 64
        assert [request.extensions["timeout"]["read"] for request in endpoint.requests] == [30, 19, 8]

    @pytest.mark.parametrize(
        "answer",
        [
            httpx.Response(404, text="{}"),
            httpx.Response(200, text="nope"),
            httpx.Response(200, text="{}"),
            httpx.Response(200, json={"data": [None]}),
            httpx.Response(200, json={"data": "x"}),
            httpx.Response(200, json=[]),
            httpx.Response(302, headers={"location": "http://elsewhere/"}),
        ],
    )
    def test_an_unusable_answer_is_no_vector_and_not_asked_again(self, answer: httpx.Response) -> None:
        endpoint = Endpoint(lambda _texts: answer)
        assert endpoint.embedder().embed(["a", "b"]) == [None, None]
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize("status", [408, 429, 500, 503])
    def test_a_failure_that_may_pass_is_tried_three_times(self, status: int) -> None:
        endpoint = Endpoint(lambda _texts: httpx.Response(status))
        assert endpoint.embedder().embed(["a"]) == [None]
        assert len(endpoint.requests) == 3
        assert endpoint.waited == [1.0, 2.0]

    def test_a_lost_connection_is_tried_again(self) -> None:
        attempts = iter([httpx.ConnectError("no"), httpx.ReadTimeout("no"), None])

        def answer(texts: list[str]) -> httpx.Response:
            if error := next(attempts):
                raise error
            return _answered(texts)

        assert Endpoint(answer).embedder().embed(["abc"]) == [[3.0, 1.0]]

    def test_failures_are_logged_without_text_or_key(self, caplog: pytest.LogCaptureFixture) -> None:
        endpoint = Endpoint(lambda _texts: httpx.Response(404, text="the secret body"))
        with caplog.at_level(logging.WARNING, "ipy_memory"):
            endpoint.embedder(key="sk-hidden").embed(["private words"])
        assert "404" in caplog.text
        for hidden in ("private", "sk-hidden", "secret"):
            assert hidden not in caplog.text

    def test_a_bad_address_is_no_vector(self) -> None:
        for url in ("", "http://", "http://[", "ftp://x"):
            assert HttpEmbedder("m", url, wait=lambda _s: None, cache=QueryCache()).embed(["a"]) == [None]

    def test_a_real_endpoint(self, open_bank: Callable[..., Bank]) -> None:
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked.append((self.path, self.headers["authorization"], body))
                answer = json.dumps({"data": [{"embedding": v} for v in _vectors(body["input"])]}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                embedder = HttpEmbedder("m", f"http://127.0.0.1:{server.server_port}/v1", "k", cache=QueryCache())
                bank = open_bank(embedder)
                remember(bank, "fog horn")
                drain(bank)
                (hit,) = recall(bank, "fog", 3)
                embedder.close()
            finally:
                server.shutdown()
                thread.join()
        assert hit.parts.dense == js.round4((8 * 3 + 1) / math.sqrt(65) / math.sqrt(10))
        assert asked == [
            ("/v1/embeddings", "Bearer k", {"model": "m", "input": ["fog horn"]}),
            ("/v1/embeddings", "Bearer k", {"model": "m", "input": ["fog"]}),
        ]


class TestQueries:
    def test_a_known_query_is_not_asked_for_again(self) -> None:
        endpoint = Endpoint()
        embedder = endpoint.embedder()
        assert embedder.embed_query("fog") == embedder.embed_query("fog") == [3.0, 1.0]
        assert embedder.embed_query("") is None
        assert embedder.embed_query("  ") == [2.0, 1.0]
        assert endpoint.inputs == [["fog"], ["  "]]

    def test_a_failure_is_asked_for_again(self) -> None:
        endpoint = Endpoint(lambda _texts: httpx.Response(404))
        embedder = endpoint.embedder()
        assert embedder.embed_query("fog") is None
        endpoint.answer = _answered
        assert embedder.embed_query("fog") == [3.0, 1.0]

    def test_the_cache_tells_model_and_address_apart_and_forgets_the_oldest(self) -> None:
        cache = QueryCache(2)
        computed: list[tuple[str, ...]] = []

        def get(*key: str) -> None:
            cache.get(*key, lambda: computed.append(key) or [1.0])  # type: ignore[func-returns-value]

        for key in [
            ("a", "u", "x"),
            ("b", "u", "x"),
            ("a", "u", "x"),
            ("a", "v", "x"),
            ("a", "u", "x"),
            ("b", "u", "x"),
        ]:
            get(*key)
        assert computed == [("a", "u", "x"), ("b", "u", "x"), ("a", "v", "x"), ("b", "u", "x")]


class TestClipping:
    def test_8192_units_stay(self) -> None:
        assert clipped("a" * MAX_UNITS) == "a" * MAX_UNITS

    def test_longer_texts_keep_both_ends(self) -> None:
        text = "".join(map(str, range(9000)))
        assert clipped(text) == text[:4091] + CUT_MARK + text[-4092:]

    @given(st.integers(MAX_UNITS // 2, MAX_UNITS))
    def test_lengths_are_units(self, count: int) -> None:
        assert js.units(clipped("😀" * count)) == min(2 * count, MAX_UNITS)

    def test_what_is_sent_is_clipped(self) -> None:
        endpoint = Endpoint()
        endpoint.embedder().embed(["x" * 9000])
        assert js.units(endpoint.inputs[0][0]) == MAX_UNITS


@given(st.lists(st.floats(allow_nan=False, width=32)))
def test_single_precision_numbers_stay(vector: list[float]) -> None:
    assert float32(vector) == vector


class TestStoring:
    def test_written_updated_and_summarised_texts_get_vectors(self, open_bank: Callable[..., Bank]) -> None:
        endpoint = Endpoint()
        bank = open_bank(endpoint.embedder())
        first = remember(bank, "first", RememberOptions(source="s", embed_text="other words"))
        remember(bank, "   ")
        assert _stored(bank) == {}  # nothing is asked for within the write
        assert drain(bank) == 0
        update(bank, first, content="second")
        drain(bank)
        bank.clock.advance(13 * 3_600_000)  # type: ignore[attr-defined]
        sleep(bank)
        drain(bank)
        assert endpoint.inputs == [["other words"], ["second"], ["[s] second", "[conversation] "]]
        assert _stored(bank)["second"] == ("m", "[6,1]")
        assert _stored(bank)["[s] second"] == ("m", "[10,1]")

    @pytest.mark.claim("T-13")
    def test_a_failing_endpoint_loses_no_memory(self, open_bank: Callable[..., Bank]) -> None:
        endpoint = Endpoint(lambda _texts: httpx.Response(404))
        bank = open_bank(endpoint.embedder())
        remember(bank, "fog horn")
        drain(bank)
        (hit,) = recall(bank, "fog", 3)
        assert (hit.content, hit.parts.dense) == ("fog horn", 0)

    @pytest.mark.claim("T-13")
    def test_a_raising_embedder_loses_no_memory(self, open_bank: Callable[..., Bank]) -> None:
        class Broken:
            model = "broken"

            def embed(self, texts: Sequence[str]) -> list[list[float] | None]:
                raise RuntimeError("no")

            def embed_query(self, text: str) -> list[float] | None:
                return None

        bank = open_bank(Broken())
        remember(bank, "fog horn")
        assert drain(bank) == 0
        assert [hit.content for hit in recall(bank, "fog", 3)] == ["fog horn"]

    def test_a_memory_that_is_gone_gets_no_vector(self, open_bank: Callable[..., Bank]) -> None:
        bank = open_bank()

        def embed(texts: list[str]) -> list[list[float]]:
            forget(bank, gone)
            return _vectors(texts)

        bank.embedder = CallableEmbedder("m", embed)
        gone, kept = remember(bank, "gone"), remember(bank, "kept")
        assert store_vectors(bank, {gone: "gone", kept: "kept"}) == 1
        assert list(_stored(bank)) == ["kept"]

    def test_switched_off_is_off(self, open_bank: Callable[..., Bank]) -> None:
        endpoint = Endpoint()
        bank = open_bank(endpoint.embedder(), no_embeddings=True)
        remember(bank, "fog horn")
        drain(bank)
        recall(bank, "fog", 3)
        assert endpoint.requests == []
        with pytest.raises(EmbeddingError):
            reindex(bank)

    def test_many_texts_go_in_batches(self, open_bank: Callable[..., Bank]) -> None:
        endpoint = Endpoint()
        bank = open_bank(endpoint.embedder())
        ids = {remember(bank, f"row {number}"): f"row {number}" for number in range(150)}
        bank.pending.clear()
        assert store_vectors(bank, ids) == 150
        assert [len(texts) for texts in endpoint.inputs] == [128, 22]


class TestRebuilding:
    def test_opening_rebuilds_nothing(self, open_bank: Callable[..., Bank]) -> None:
        bank = open_bank(Endpoint().embedder(model="old"))
        remember(bank, "one")
        drain(bank)
        bank.close()
        endpoint = Endpoint()
        bank = open_bank(endpoint.embedder(model="new"))
        assert _stored(bank) == {"one": ("old", "[3,1]")}
        assert endpoint.requests == []

    @pytest.mark.parametrize("rebuild", [reindex, reconcile])
    def test_a_new_model_replaces_all_vectors(
        self, open_bank: Callable[..., Bank], rebuild: Callable[[Bank], int]
    ) -> None:
        bank = open_bank(Endpoint().embedder(model="old"))
        remember(bank, "one", RememberOptions(embed_text="embedded"))
        ended = remember(bank, "ended")
        drain(bank)
        invalidate(bank, ended, "other")
        endpoint = Endpoint()
        bank.embedder = endpoint.embedder(model="new")
        remember(bank, " ")
        assert rebuild(bank) == 1
        assert endpoint.inputs == [["embedded"]]
        assert _stored(bank) == {"one": ("new", "[8,1]")}

    def test_reconcile_computes_only_what_is_missing(self, open_bank: Callable[..., Bank]) -> None:
        endpoint = Endpoint()
        bank = open_bank(endpoint.embedder())
        remember(bank, "one")
        drain(bank)
        remember(bank, "three")
        bank.pending.clear()
        assert reconcile(bank) == 1
        assert endpoint.inputs == [["one"], ["three"]]
        assert reconcile(bank) == 0

    def test_reindex_keeps_old_vectors_until_there_are_new_ones(self, open_bank: Callable[..., Bank]) -> None:
        bank = open_bank(Endpoint().embedder(model="old"))
        remember(bank, "one")
        drain(bank)
        bank.embedder = Endpoint(lambda _texts: httpx.Response(404)).embedder(model="new")
        with pytest.raises(EmbeddingError, match="1 of 1"):
            reindex(bank)
        assert _stored(bank) == {"one": ("old", "[3,1]")}

    def test_reindex_tells_how_far_it_is(self, open_bank: Callable[..., Bank]) -> None:
        bank = open_bank(Endpoint().embedder())
        for number in range(130):
            remember(bank, f"row {number}")
        told: list[tuple[int, int]] = []
        reindex(bank, lambda done, total: told.append((done, total)))
        assert told == [(128, 130), (130, 130)]

    @pytest.mark.parametrize("rebuild", [reindex, reconcile])
    def test_without_an_embedder_it_is_refused(
        self, open_bank: Callable[..., Bank], rebuild: Callable[[Bank], int]
    ) -> None:
        bank = open_bank(Endpoint().embedder())
        remember(bank, "one")
        drain(bank)
        bank.embedder = None
        with pytest.raises(EmbeddingError):
            rebuild(bank)
        assert _stored(bank) == {"one": ("m", "[3,1]")}


class TestOtherEmbedders:
    def test_a_function(self) -> None:
        embedder = CallableEmbedder("mine", _vectors, lambda texts: [[0.1] for _ in texts])
        assert embedder.embed(["a", "bb"]) == [[1.0, 1.0], [2.0, 1.0]]
        assert embedder.embed_query("q") == float32([0.1])
        assert embedder.embed_query("") is None

    @pytest.mark.parametrize(
        "function", [lambda _texts: None, lambda _texts: [["x"]], lambda _texts: [], lambda _texts: 1 / 0]
    )
    def test_a_function_that_fails_gives_no_vector(self, function: Any) -> None:
        embedder = CallableEmbedder("mine", function)
        assert embedder.embed(["a", "b"]) == [None, None]
        assert embedder.embed_query("q") is None

    def test_a_local_model_is_fetched_only_when_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[dict[str, Any]] = []

        class TextEmbedding:
            def __init__(self, **options: Any) -> None:
                made.append(options)

            def embed(self, texts: list[str]) -> Iterator[list[float]]:
                yield from _vectors(texts)

            def query_embed(self, text: str) -> Iterator[list[float]]:
                yield [0.5]

        monkeypatch.setitem(sys.modules, "fastembed", types.SimpleNamespace(TextEmbedding=TextEmbedding))
        embedder = FastembedEmbedder("local", folder="/models", cache=QueryCache())
        assert embedder.embed(["abc"]) == [[3.0, 1.0]]
        assert embedder.embed_query("q") == [0.5]
        assert embedder.embed_query("") is None
        FastembedEmbedder("local", download=True)
        assert made == [
            {"model_name": "local", "cache_dir": "/models", "local_files_only": True},
            {"model_name": "local", "cache_dir": None, "local_files_only": False},
        ]

    def test_a_local_model_that_is_not_there_is_an_error_with_a_way_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(**_options: Any) -> None:
            raise ValueError("no such model")

        monkeypatch.setitem(sys.modules, "fastembed", types.SimpleNamespace(TextEmbedding=missing))
        with pytest.raises(EmbeddingError) as caught:
            FastembedEmbedder("local")
        assert caught.value.where == "local"
        assert "download=True" in (caught.value.hint or "")

    def test_without_the_package_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "fastembed", None)
        with pytest.raises(MissingFeatureError) as caught:
            FastembedEmbedder("local")
        assert "embeddings" in (caught.value.hint or "")


class TestConfigured:
    @pytest.mark.claim("R-30", "T-12")
    @pytest.mark.parametrize(
        ("model", "url", "key", "env"),
        [
            ("BAAI/bge-base-en-v1.5", None, None, {}),
            ("BAAI/bge-base-en-v1.5", "https://openrouter.ai/api/v1", "k", {}),
            ("openai/x", None, None, {}),
            ("text-embedding-3-small", None, "", {}),
        ],
    )
    def test_nothing_configured_sends_nothing(self, model: str, url: str, key: str, env: dict[str, str]) -> None:
        assert configured_embedder(model, url, key, env) is None

    @pytest.mark.parametrize(
        ("model", "url", "key", "env", "expected"),
        [
            ("m", "http://e/v1/", None, {}, "http://e/v1"),
            ("m", None, None, {"MNEMOPI_EMBEDDING_API_URL": "http://env"}, "http://env"),
            ("m", "http://e", None, {"MNEMOPI_EMBEDDING_API_URL": "http://env"}, "http://e"),
            ("openai/x", None, "k", {}, "https://openrouter.ai/api/v1"),
            ("my-text-embedding", None, None, {"OPENROUTER_API_KEY": "k"}, "https://openrouter.ai/api/v1"),
            ("m", "http://[", None, {}, "http://["),
        ],
    )
    def test_what_is_configured_is_asked(
        self, model: str, url: str | None, key: str | None, env: dict[str, str], expected: str
    ) -> None:
        found = configured_embedder(model, url, key, env)
        assert found is not None
        assert (found.model, found.url) == (model, expected)
