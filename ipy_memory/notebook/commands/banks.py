"""``%memory banks`` and ``%memory scopes``: where memories lie, and what each scope would read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.commands.grammar import Parsed, one_of
from ipy_memory.commands.table import VECTORS
from ipy_memory.errors import MagicError
from ipy_memory.notebook.commands import handles

if TYPE_CHECKING:
    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import ListFrame, TableResult, TextResult


BANK_COLUMNS = ("name", "use", "reason", "working", "episodic", "facts", "size", "last_memory", "cwds", "error")


@handles("banks")
def banks(magics: MemoryMagics, parsed: Parsed) -> ListFrame | TableResult:
    """List the banks; reads only."""
    from ipy_memory.explore import banks as listing
    from ipy_memory.notebook.result import ListFrame

    if server := remote_if_any(magics):
        return remote_banks(server, parsed.flags.get("page", 1))
    found = listing.banks(magics.session, magics.progress("banks"))
    return ListFrame(found, BANK_COLUMNS, notes=[listing.count_note(len(found))], quiet=parsed.quiet)


@handles("scopes")
def scopes(magics: MemoryMagics, parsed: Parsed) -> ListFrame:
    """Compare the modes of both backends; nothing is counted or written."""
    from ipy_memory.explore import scopes as comparing
    from ipy_memory.frames.build import DataFrame
    from ipy_memory.notebook.result import ListFrame

    query = parsed.text if parsed.given else None
    folder, session = parsed.flags.get("folder"), magics.session
    rows = comparing.scope_rows(session, query, cwd=folder)
    columns, shown = comparing.shown_scopes(rows, query)
    return ListFrame(
        comparing.scopes_frame(rows, session, query, cwd=folder),
        columns,
        shown=DataFrame(shown, columns=columns, dtype="object"),
        notes=["The frame of this result also has files, ids of hits, tags and filters in columns of their own."],
        quiet=parsed.quiet,
    )


@handles("open")
def open_file(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Let the magics read just this file; the path is the rest of the line, blanks and all."""
    from ipy_memory.explore.banks import open_bank_file
    from ipy_memory.notebook.result import TextResult

    session = open_bank_file(parsed.word, **magics.surroundings())
    magics.adopt(session)
    return TextResult(f"Reading bank {session.live_backend().retain_bank} only; %memory use mnemopi ends it.")


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


def remote(magics: MemoryMagics, what: str) -> HindsightBackend:
    """Return the session's Hindsight backend, or raise an error that says what has none."""
    from ipy_memory.explore.local import needed_server

    return needed_server(magics.session, what)


def remote_if_any(magics: MemoryMagics) -> HindsightBackend | None:
    """Return the session's Hindsight backend, ``None`` where another one is in use."""
    from ipy_memory.explore.local import server_backend

    return server_backend(magics.session)


def remote_banks(backend: HindsightBackend, page: int) -> TableResult:
    """List one page of the server's banks; looking makes none."""
    from ipy_memory.backends.hindsight import admin
    from ipy_memory.explore.remote import bank_notes
    from ipy_memory.notebook.result import TableResult

    found, total = admin.banks(backend.service, page)
    rows = [
        (
            one.name,
            "in use" if one.in_use else "",
            "" if one.memories is None else str(one.memories),
            one.last_write or "",
        )
        for one in found
    ]
    notes = bank_notes(backend, found, page, total)
    return TableResult(("bank", "", "memories", "last write"), rows, dates=("last write",), notes=notes)
