"""The embedders: an OpenAI-compatible endpoint, a local model, and anyone's own function."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ipy_memory.backends.mnemopi.embeddings.index import QUERIES, QueryCache, clipped, float32, log
from ipy_memory.backends.mnemopi.embeddings.openai_api import Endpoint
from ipy_memory.errors import EmbeddingError, MissingFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ipy_memory.http.exchange import Transport
    from ipy_memory.model import Vector

EMBEDDING_SECONDS = 30.0
"""How long one request for vectors may take with all that follows from it."""

DEFAULT_URL = "https://openrouter.ai/api/v1"
"""The endpoint of models that name a provider, when no other is given."""

_MAY_REFUSE_ONE = frozenset((400, 413, 422, 500))
"""Statuses of an answer that may concern one text of a batch alone."""

_REFUSES_ALL = 3
"""So many single texts refused, and none taken: the endpoint takes none."""


class HttpEmbedder:
    """Asks an OpenAI-compatible endpoint for vectors; a failure gives no vector and is logged.

    A text that the endpoint refuses, or an answer that does not tell which vector belongs to which text, costs only
    the texts concerned: halves of the batch are asked for on their own.

    Parameters
    ----------
    model
        The model's name.
    url
        The endpoint's base; ``/embeddings`` is added.
    api_key
        Sent as a bearer token if not empty.
    transport
        Another way to the network (tests).
    wait, clock
        Lets seconds pass between attempts, and counts them.
    seconds
        How long one call may take in all.
    cache
        Where the vectors of queries are kept.

    Attributes
    ----------
    problem : str
        Why the last request gave no vector for some text; empty when it did.
    """

    def __init__(
        self,
        model: str,
        url: str,
        api_key: str | None = None,
        *,
        transport: Transport | None = None,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        seconds: float = EMBEDDING_SECONDS,
        cache: QueryCache = QUERIES,
    ) -> None:
        self.model = model
        self.problem = ""
        self._seconds = seconds
        self._endpoint = Endpoint(url, api_key, transport=transport, wait=wait, clock=clock)
        self._cache = cache

    @property
    def url(self) -> str:
        """The endpoint's base."""
        return self._endpoint.url

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vectors of some texts, asked for at once."""
        until = self._endpoint.clock() + self._seconds
        vectors: list[Vector | None] = [None] * len(texts)
        problem = ""
        refused = 0
        parts = [range(len(texts))]
        while parts:
            part = parts.pop()
            body = {"model": self.model, "input": [clipped(texts[at]) for at in part]}
            reply = self._endpoint.post("/embeddings", body, until=until, patient=len(part) == len(texts))
            found = None if reply.body is None else read_vectors(reply.body, len(part))
            for at, vector in zip(part, found or (), strict=False):
                vectors[at] = vector
            problem = reply.problem or problem or "an answer without usable vectors"
            is_part_refused = found == [] or reply.status in _MAY_REFUSE_ONE
            if not is_part_refused:
                continue
            if len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
            elif (refused := refused + 1) == _REFUSES_ALL and not any(vectors):
                break
        self.problem = problem if None in vectors else ""
        if self.problem:
            log.warning("Mnemopi: embedding failed: model=%s %s", self.model, self.problem)
        return vectors

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query; one that is known is not asked for again."""
        if not text:
            return None
        return self._cache.get(self.model, self.url, text, lambda: self.embed([text])[0])

    def close(self) -> None:
        """Close the connection."""
        self._endpoint.close()


class FastembedEmbedder:
    """A local model through the ``fastembed`` package (extra ``embeddings``).

    Parameters
    ----------
    model
        The model's name.
    folder
        Where its files are; the package's own place by default.
    download
        Whether missing files may be fetched from the network.
    cache
        Where the vectors of queries are kept.

    Raises
    ------
    MissingFeatureError
        The package is not installed.
    EmbeddingError
        The model's files are not there, or not of this model.
    """

    def __init__(
        self, model: str, *, folder: str | None = None, download: bool = False, cache: QueryCache = QUERIES
    ) -> None:
        try:
            from fastembed import TextEmbedding
        except ImportError as error:
            raise MissingFeatureError(
                "The package fastembed is not installed.", hint='Install it with the extra "embeddings".'
            ) from error
        self.model = model
        self._cache = cache
        try:
            self._engine = TextEmbedding(model_name=model, cache_dir=folder, local_files_only=not download)
        except Exception as error:
            raise EmbeddingError(
                "The embedding model cannot be loaded.",
                where=model,
                hint="Check its name; pass download=True to fetch its files once.",
            ) from error

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vectors of some texts."""
        return _quietly(self.model, len(texts), lambda: self._engine.embed([clipped(text) for text in texts]))

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query; one that is known is not computed again."""
        if not text:
            return None
        return self._cache.get(
            self.model, "", text, lambda: _quietly(self.model, 1, lambda: self._engine.query_embed(clipped(text)))[0]
        )


class CallableEmbedder:
    """Anyone's own function as an embedder.

    Parameters
    ----------
    model
        The name that is stored beside the vectors.
    function
        Takes a list of texts, returns one vector (any sequence of numbers, or ``None``) each.
    query_function
        The same for queries, where they are embedded in another way.
    """

    def __init__(
        self,
        model: str,
        function: Callable[[list[str]], Iterable[Any]],
        query_function: Callable[[list[str]], Iterable[Any]] | None = None,
    ) -> None:
        self.model = model
        self._function = function
        self._query_function = query_function or function

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vectors of some texts."""
        return _quietly(self.model, len(texts), lambda: self._function([clipped(text) for text in texts]))

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query."""
        return _quietly(self.model, 1, lambda: self._query_function([clipped(text)]))[0] if text else None


def configured_embedder(
    model: str, url: str | None, api_key: str | None, env: Mapping[str, str]
) -> HttpEmbedder | None:
    """Return the embedder that settings and environment name, or ``None``: then nothing is sent anywhere.

    Parameters
    ----------
    model
        The model's name.
    url, api_key
        The settings; ``MNEMOPI_EMBEDDING_API_URL`` and ``MNEMOPI_EMBEDDING_API_KEY`` stand in for missing ones.
    env
        Environment variables.
    """
    url = url or env.get("MNEMOPI_EMBEDDING_API_URL") or ""
    api_key = api_key or env.get("MNEMOPI_EMBEDDING_API_KEY") or ""
    if url and not _is_default(url):
        return HttpEmbedder(model, url, api_key)
    if names_provider(model):
        api_key = api_key or env.get("OPENROUTER_API_KEY") or ""
        return HttpEmbedder(model, url or DEFAULT_URL, api_key) if api_key else None
    return None


def names_provider(model: str) -> bool:
    """Return whether a model is one that only an endpoint offers."""
    return model.startswith("openai/") or "text-embedding" in model


def _is_default(url: str) -> bool:
    try:
        return urlsplit(url).hostname == urlsplit(DEFAULT_URL).hostname
    except ValueError:
        return False


def _quietly(model: str, count: int, compute: Callable[[], Iterable[Any]]) -> list[Vector | None]:
    try:
        vectors = [None if vector is None else float32(map(float, vector)) for vector in compute()]
        return [*vectors[:count], *[None] * (count - len(vectors))]
    except Exception as error:  # noqa: BLE001  whatever a model raises, memories are stored and recalled without it
        log.warning("Mnemopi: embedding failed: model=%s error=%s", model, type(error).__name__)
        return [None] * count


def read_vectors(answer: str, count: int) -> list[Vector | None] | None:
    """Return the vectors of an answer in the order of the texts.

    A vector that is not a list of finite numbers is ``None``, and so is one of another length than most. The list is
    empty where it is not clear which vector belongs to which text; there is no list where the answer holds none.
    """
    try:
        data = json.loads(answer, parse_int=float)["data"]
        items = [(item.get("index"), item.get("embedding")) for item in data]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    places = [place for place, _ in items if isinstance(place, float)]
    if len(items) != count or len(places) not in (0, count):
        return []
    if count > 1 and places:
        if len(set(places)) < count or max(places) - min(places) != count - 1:
            return []
        items.sort()
    vectors = [_finite(vector) for _, vector in items]
    sizes = Counter(len(vector) for vector in vectors if vector)
    usual = max(sizes, key=sizes.__getitem__, default=0)
    return [vector if vector and len(vector) == usual else None for vector in vectors]


def _finite(vector: Any) -> Vector | None:
    if not isinstance(vector, list) or not all(type(number) is float for number in vector):
        return None
    vector = float32(vector)
    return vector if all(map(math.isfinite, vector)) else None
