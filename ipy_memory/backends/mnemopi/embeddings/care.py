"""The commands of a person about vectors: computing them anew, and fetching a local model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.embeddings import model_files, providers
from ipy_memory.backends.mnemopi.embeddings.index import reindex
from ipy_memory.errors import EmbeddingError, MissingFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.bank import Bank
    from ipy_memory.backends.mnemopi.embeddings.selection import Choice

_PROBE = "memory"


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindex did to one bank: how many vectors it stored, and the copy that was made before."""

    bank: str
    stored: int
    copy: Path


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
