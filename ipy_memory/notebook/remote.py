"""What the commands on a Hindsight server share: the backend, pages, and the list of the server's banks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TableResult


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
