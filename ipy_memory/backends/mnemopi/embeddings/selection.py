"""The embedder of a session: which one it is, made at its first use, and whether it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ipy_memory import process
from ipy_memory.backends.base import Reindexed
from ipy_memory.backends.mnemopi.embeddings import model_files, openai_api, providers
from ipy_memory.backends.mnemopi.embeddings.index import log, reindex
from ipy_memory.errors import EmbeddingError, MemoryToolkitError, MissingFeatureError
from ipy_memory.jscompat.strings import trim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.credentials import Outgoing
    from ipy_memory.model import Embedder, Vector
    from ipy_memory.settings.resolve import MnemopiConfig

_T = TypeVar("_T")


class SessionEmbedder:
    """An embedder that never raises, is made when first needed, and tells why it gave nothing.

    Parameters
    ----------
    model
        The name that is stored beside the vectors.
    make
        Makes the embedder; an error of this package is logged once, and is the answer from then on.
    place
        Where it computes, for the user.
    local
        Whether making it loads a model: then no query is embedded where no vector is stored.
    close
        Lets go of what it holds.
    outgoing
        Called with each query before it is sent, where the embedder is a server.

    Attributes
    ----------
    problem : str
        Why the last call gave no vector; empty when it did.
    """

    def __init__(
        self,
        model: str,
        make: Callable[[], Embedder],
        *,
        place: str,
        local: bool = False,
        close: Callable[[], None] | None = None,
        outgoing: Outgoing | None = None,
    ) -> None:
        self.model = model
        self.place = place
        self.problem = ""
        self._make = make
        self._close = close
        self._outgoing = outgoing
        self.local = local
        self._made: Embedder | None = None
        self._broken = ""
        if local:
            process.after_fork_in_child(self._part)

    def _part(self) -> None:
        # The threads of a loaded model are not in the child, which would wait for them for ever.
        self._inherited, self._made = self._made, None

    @property
    def reluctant(self) -> bool:
        """Whether the next call would have to load a model."""
        return self.local and self._made is None

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vectors of memories, in order."""
        found = self._ask(lambda embedder: embedder.embed(texts)) or []
        vectors = [*found, *[None] * (len(texts) - len(found))]
        self._note(failed=any(vector is None and trim(text) for vector, text in zip(vectors, texts, strict=False)))
        return vectors

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query."""
        vector = self._ask(lambda embedder: self._embed_query(embedder, text))
        self._note(failed=vector is None and bool(text))
        return vector

    def _embed_query(self, embedder: Embedder, text: str) -> Vector | None:
        if self._outgoing is not None:
            self._outgoing(text, f"the embedding endpoint {self.place}")
        return embedder.embed_query(text)

    def close(self) -> None:
        """Release an endpoint's connection; a caller's own embedder is the caller's to close."""
        if self._close is not None:
            self._close()

    def _ask(self, call: Callable[[Embedder], _T]) -> _T | None:
        self.problem = self._broken
        if self._broken:
            return None
        try:
            if self._made is None:
                self._made = self._make()
            return call(self._made)
        except MemoryToolkitError as error:
            self.problem = ": ".join(filter(None, (error.message.rstrip("."), error.hint)))
            if self._made is None:
                self._broken = self.problem
        except Exception as error:  # noqa: BLE001  an embedder may be anyone's; memories are found without it
            self.problem = type(error).__name__
        log.warning("Mnemopi: embedding failed: model=%s %s", self.model, self.problem)
        return None

    def _note(self, *, failed: bool) -> None:
        if failed and not self.problem:
            self.problem = getattr(self._made, "problem", "") or "it gave no vector"


@dataclass(frozen=True, slots=True)
class Choice:
    """The embedder of a session, or why there is none."""

    embedder: SessionEmbedder | None
    reason: str = ""
    hint: str = ""
    off: bool = False


def choose(
    config: MnemopiConfig,
    env: Mapping[str, str],
    given: Embedder | None,
    *,
    off: bool,
    outgoing: Outgoing | None = None,
) -> Choice:
    """Return the embedder that was given, else the configured endpoint, else a local model whose files are there.

    No model is loaded and nothing is sent here.

    Parameters
    ----------
    config
        The settings.
    env
        Environment variables.
    given
        An embedder that the caller made.
    off
        Whether embeddings are switched off.
    outgoing
        Called with each query before it is sent to an endpoint.
    """
    model = config.embedding_model
    if off:
        return Choice(None, "embeddings are switched off", "set mnemopi.noEmbeddings to false", off=True)
    if given is not None:
        if isinstance(given, providers.HttpEmbedder):
            return Choice(
                SessionEmbedder(given.model, lambda: given, place=openai_api.shown(given.url), outgoing=outgoing)
            )
        return Choice(SessionEmbedder(given.model, lambda: given, place="given by the caller"))
    keys = env if config.embedding_user_keys else {}
    remote = providers.configured_embedder(model, config.embedding_api_url, config.embedding_api_key, keys)
    if remote is not None:
        place = openai_api.shown(remote.url)
        return Choice(SessionEmbedder(model, lambda: remote, place=place, close=remote.close, outgoing=outgoing))
    if providers.names_provider(model):
        return Choice(None, f"{model} needs an endpoint's key", "set mnemopi.embeddingApiKey")
    if not model_files.installed():
        return Choice(
            None,
            "no endpoint is set and no local model can run",
            'set mnemopi.embeddingApiUrl, or install the extra "embeddings"',
        )
    folder = model_files.models_folder(env)
    if not model_files.files_of(folder, model):
        return Choice(None, f"the files of {model} are not there", f"fetch them: {model_files.FETCH_COMMAND}")
    if missing := model_files.missing_of(folder, model):
        reason = f"the files of {model} are incomplete: {', '.join(missing)} missing"
        return Choice(None, reason, f"fetch them: {model_files.FETCH_COMMAND}")
    return Choice(SessionEmbedder(model, lambda: model_files.load(model, folder), place="this machine", local=True))


_PROBE = "memory"


def check_answers(choice: Choice) -> None:
    """Refuse unless there is an embedder and it gives a vector; before anything is copied or changed.

    Raises
    ------
    EmbeddingError
        Why there is none, and what to do.
    """
    embedder = choice.embedder
    if embedder is None:
        raise EmbeddingError(
            f"Vectors cannot be computed: {choice.reason}.", hint=f"{choice.hint}; the stored vectors stay as they are"
        )
    if embedder.embed([_PROBE])[0] is None:
        raise EmbeddingError(
            f"Vectors cannot be computed: {embedder.problem}.",
            where=f"{embedder.model}, {embedder.place}",
            hint="the stored vectors stay as they are",
        )


def reindex_banks(
    banks: Sequence[Bank],
    back_up: Callable[[Bank], Path],
    *,
    missing_only: bool,
    progress: Callable[[int, int], object] | None,
) -> list[Reindexed]:
    """Compute the vectors of each bank, after it was copied.

    Raises
    ------
    EmbeddingError
        Some memories got no vector; what was stored before stays.
    """
    found = []
    for bank in banks:
        copy = back_up(bank)
        found.append(Reindexed(bank.name, reindex(bank, progress, missing_only=missing_only), copy))
        bank.pending[:] = [job for job in bank.pending if job.kind != "embed"]
    return found


def fetch_for(model: str, choice: Choice, env: Mapping[str, str]) -> str:
    """Fetch the files of a local model; return what was done.

    Raises
    ------
    EmbeddingError
        An endpoint or a caller's embedder is in use, or the files could not be fetched.
    MissingFeatureError
        The package that runs local models is not installed.
    """
    if choice.embedder is not None and not choice.embedder.local:
        raise EmbeddingError(
            "No local model is needed: vectors come from elsewhere.",
            where=f"{choice.embedder.model}, {choice.embedder.place}",
            hint="unset mnemopi.embeddingApiUrl to use a local model",
        )
    if providers.names_provider(model):
        raise EmbeddingError(
            "This model runs at its provider only.", where=model, hint="set mnemopi.embeddingModel to a local one"
        )
    if not model_files.installed():
        raise MissingFeatureError(
            "The package fastembed is not installed.", hint='install it with the extra "embeddings"'
        )
    return model_files.fetch(model, model_files.models_folder(env))
