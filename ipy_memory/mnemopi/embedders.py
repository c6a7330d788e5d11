"""The embedders: an OpenAI-compatible endpoint, a local model, and anyone's own function."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ipy_memory import js
from ipy_memory.errors import EmbeddingError, MissingFeatureError
from ipy_memory.mnemopi.embeddings import QUERIES, QueryCache, Vector, clipped, float32, log
from ipy_memory.mnemopi.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import httpx

DEFAULT_URL = "https://openrouter.ai/api/v1"
"""The endpoint of models that name a provider, when no other is given."""


class HttpEmbedder:
    """Asks an OpenAI-compatible endpoint for vectors; whatever goes wrong gives no vector and is logged.

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
    wait
        Lets seconds pass between attempts.
    cache
        Where the vectors of queries are kept.

    Attributes
    ----------
    problem : str
        Why the last request gave no vector; empty when it did.
    """

    def __init__(
        self,
        model: str,
        url: str,
        api_key: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], None] = time.sleep,
        cache: QueryCache = QUERIES,
    ) -> None:
        self.model = model
        self.problem = ""
        self._endpoint = Endpoint(url, api_key, transport=transport, wait=wait)
        self._cache = cache

    @property
    def url(self) -> str:
        """The endpoint's base."""
        return self._endpoint.url

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vectors of some texts, asked for at once."""
        reply = self._endpoint.post("/embeddings", {"model": self.model, "input": [clipped(text) for text in texts]})
        vectors = _read_vectors(reply.body)
        self.problem = reply.problem or ("" if vectors else "an answer without vectors")
        if self.problem:
            log.warning("Mnemopi: embedding failed: model=%s %s", self.model, self.problem)
        return _padded(vectors, len(texts))

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query; one that is known is not asked for again."""
        if not text:
            return None
        return self._cache.get(self.model, self.url, text, lambda: self.embed([text])[0])

    def close(self) -> None:
        """Let go of the connection."""
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
    """Return the embedder that settings and environment name, or ``None``: then nothing is sent anywhere (R-30).

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
    """Tell whether a model is one that only an endpoint offers."""
    return model.startswith("openai/") or "text-embedding" in model


def _is_default(url: str) -> bool:
    try:
        return urlsplit(url).hostname == urlsplit(DEFAULT_URL).hostname
    except ValueError:
        return False


def _quietly(model: str, count: int, compute: Callable[[], Iterable[Any]]) -> list[Vector | None]:
    try:
        return _padded([None if vector is None else float32(map(float, vector)) for vector in compute()], count)
    except Exception as error:  # noqa: BLE001  whatever a model raises, memories are stored and recalled without it
        log.warning("Mnemopi: embedding failed: model=%s error=%s", model, type(error).__name__)
        return [None] * count


def _padded(vectors: Sequence[Vector | None], count: int) -> list[Vector | None]:
    return [*vectors[:count], *[None] * (count - len(vectors))]


def _read_vectors(answer: bytes | None) -> list[Vector]:
    try:
        data = json.loads(answer or b"", parse_int=float)["data"]
        return [float32(map(_number, _listed(item["embedding"]))) for item in data]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _number(value: Any) -> float:
    # As JavaScript's Number() reads it.
    if value is None:
        return 0.0
    if isinstance(value, bool | float):
        return float(value)
    return js.to_number(value) if isinstance(value, str) else math.nan
