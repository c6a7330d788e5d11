"""The files of a local embedding model: where they are, whether they are there, and fetching them when told to."""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.embeddings.providers import FastembedEmbedder
from ipy_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = "fastembed"
FETCH_COMMAND = "%memory embeddings download"

_SET_ASIDE = ".damaged"
_BESIDE_WEIGHTS = ("config.json", "tokenizer.json")


def installed() -> bool:
    """Return whether the package that runs local models is there; it is not imported."""
    try:
        return importlib.util.find_spec(PACKAGE) is not None
    except ValueError:  # a stand-in without a specification
        return True


def models_folder(env: Mapping[str, str]) -> Path:
    """Return where model files are kept: the package's own variable, else this product's part of the user's cache."""
    if chosen := env.get("FASTEMBED_CACHE_PATH"):
        return Path(chosen)
    cache = env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or Path.home(), ".cache")
    return Path(cache, "ipy_memory", "models")


def files_of(folder: Path, model: str) -> list[Path]:
    """Return the folders that hold weights of a model, whichever publisher repacked it; nothing is loaded."""
    name = model.rpartition("/")[2].lower()
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [
        entry
        for entry in entries
        if name in entry.name.lower()
        and not entry.name.endswith(_SET_ASIDE)
        and any(found.is_file() for found in entry.rglob("*.onnx*"))
    ]


def missing_of(folder: Path, model: str) -> list[str]:
    """Return what a model whose weights are there cannot run without: empty where one copy of it is whole."""
    lacking = [
        [name for name in _BESIDE_WEIGHTS if not any(found.is_file() for found in entry.rglob(name))]
        for entry in files_of(folder, model)
    ]
    return min(lacking, key=len, default=[])


def load(model: str, folder: Path) -> FastembedEmbedder:
    """Load a model whose files are there; nothing is fetched (B030: damaged files are said to be so).

    Raises
    ------
    EmbeddingError
        The files are damaged or incomplete.
    MissingFeatureError
        The package is not installed.
    """
    try:
        with _unheard():
            return FastembedEmbedder(model, folder=str(folder))
    except EmbeddingError as error:
        raise EmbeddingError(
            "The model's files are damaged or incomplete.", where=model, hint=f"{FETCH_COMMAND} fetches them again"
        ) from error


def fetch(model: str, folder: Path) -> str:
    """Fetch a model's files unless they are there and can be loaded; return what was done.

    Damaged files are set aside under another name, never deleted.

    Raises
    ------
    EmbeddingError
        The files could not be fetched.
    MissingFeatureError
        The package is not installed.
    """
    there = files_of(folder, model)
    if there:
        try:
            load(model, folder)
        except EmbeddingError:
            for entry in there:
                entry.rename(_free(entry))
        else:
            return f"The files of {model} are in {folder} already."
    folder.mkdir(parents=True, exist_ok=True)
    try:
        FastembedEmbedder(model, folder=str(folder), download=True)
    except EmbeddingError as error:
        raise EmbeddingError(
            "The model's files could not be fetched.",
            where=model,
            hint="check the network and the model's name; recall goes on by text",
        ) from error
    aside = f" Damaged ones were kept beside them, ending in {_SET_ASIDE}." if there else ""
    return f"The files of {model} are in {folder} now.{aside}"


@contextmanager
def _unheard() -> Iterator[None]:
    """Keep the package's own log out of the cell while it is asked for files that may be damaged."""
    try:
        from loguru import logger
    except ImportError:
        yield
        return
    logger.disable(PACKAGE)
    try:
        yield
    finally:
        logger.enable(PACKAGE)


def _free(entry: Path) -> Path:
    names = (entry.with_name(f"{entry.name}{mark}{_SET_ASIDE}") for mark in ("", *(f".{n}" for n in range(1, 1000))))
    return next(name for name in names if not name.exists())
