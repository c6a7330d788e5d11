"""``%memory embeddings``: which vectors the banks hold, computing them anew, fetching a local model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed, one_of
from ipy_memory.commands.table import VECTORS
from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult

COLUMNS = ("bank", "memories", "with vector", "model", "vectors", "numbers")


@handles("embeddings")
def embeddings(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Show, compute or fetch; nothing is ever fetched but by ``download``."""
    action = one_of("the action", parsed.word or VECTORS[0], VECTORS)
    if parsed.flags and action != "reindex":
        raise MagicError("--bank and --missing belong to reindex", hint="see %memory embeddings -h")
    if action == "download":
        return _download(magics)
    return _reindex(magics, parsed) if action == "reindex" else _status(magics)


def _status(magics: MemoryMagics) -> TextResult:
    from ipy_memory.notebook.result import TableResult

    found = magics.session.vectors()
    rows = []
    for bank in found.banks:
        counts = (bank.bank, str(bank.memories), str(bank.covered))
        rows += [
            (*counts, one.model, str(one.count), "unreadable" if one.size is None else str(one.size))
            for one in bank.models
        ] or [(*counts, "", "0", "")]
    return TableResult(COLUMNS, rows, notes=[f"Vectors are {found.summary}."])


def _reindex(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    from ipy_memory.notebook.result import TextResult

    done = magics.session.reindex_vectors(
        parsed.flags.get("bank"), missing_only="missing" in parsed.flags, progress=magics.progress("memories")
    )
    lines = [f"Bank {one.bank}: {one.stored} vectors computed; the bank as it was is in {one.copy}." for one in done]
    return TextResult("\n".join(lines) or "There is no bank file yet.")


def _download(magics: MemoryMagics) -> TextResult:
    from ipy_memory.notebook.result import TextResult

    said = magics.session.fetch_model()
    magics.close_session()  # the next magic opens one that uses the model
    return TextResult(said)
