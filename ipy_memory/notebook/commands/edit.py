"""``%memory update|invalidate|forget|undo``: repairing memories, with a dry run and a way back."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.commands.grammar import Parsed, id_and_text, text_of, value_of
from ipy_memory.commands.table import COMMANDS
from ipy_memory.errors import ChangedSinceError, MagicError
from ipy_memory.notebook.commands import handles
from ipy_memory.redact import redact_counted
from ipy_memory.text import bare_id

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from ipy_memory.backends.base import Edited, Operation
    from ipy_memory.backends.mnemopi.backend import MnemopiBackend
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult

_ROWS = {
    "annotations": ("annotation", "annotations"),
    "memory_embeddings": ("vector", "vectors"),
    "memoria_facts": ("extracted fact", "extracted facts"),
    "memoria_instructions": ("instruction", "instructions"),
    "memoria_kg": ("triple", "triples"),
    "memoria_preferences": ("preference", "preferences"),
    "memoria_timelines": ("event", "events"),
    "gists": ("gist", "gists"),
    "facts": ("fact", "facts"),
    "graph_edges": ("link", "links"),
}
"""What a row of a table is called, one and several."""


@handles("update")
def update(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Write a new text, as typed; a preview over the whole text is refused."""
    memory_id, typed = id_and_text(COMMANDS["update"], parsed)
    if not memory_id.strip():
        raise MagicError("%memory update takes an id and a text", hint="see %memory update -h")
    source = parsed.flags.get("from")
    if source is not None and typed.strip():
        raise MagicError("--from already says where the text comes from", hint="leave one of the two out")
    content = text_of(magics.variables, source) if source is not None else typed or None
    importance = parsed.flags.get("importance")
    if content is None and importance is None:
        raise MagicError(
            "there is nothing to change", hint="type the new text behind the id, or --importance X in front of it"
        )
    force = "force" in parsed.flags
    return _changed(magics, parsed, "update", memory_id, content=content, importance=importance, force=force)


@handles("invalidate")
def invalidate(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """End one memory, or a selection as one; %memory undo brings them back."""
    from ipy_memory.notebook.result import TextResult

    name = parsed.flags.get("frame")
    if name is None:
        return _changed(magics, parsed, "invalidate", parsed.word, replacement_id=parsed.flags.get("by"))
    from ipy_memory.explore.selection import invalidate_all

    if "bank" in parsed.flags:
        raise MagicError("the rows of --frame say their banks", hint="leave --bank out")
    confirm = "yes" in parsed.flags and "dry-run" not in parsed.flags
    selected = invalidate_all(
        magics.session, value_of(magics.variables, name), replacement=parsed.flags.get("by"), confirm=confirm
    )
    if not selected.done and selected.count:
        return TextResult(f"{selected}\nTo do it: %memory invalidate --frame {name} --yes")
    return TextResult(str(selected))


@handles("forget")
def forget(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Delete one memory."""
    return _changed(magics, parsed, "forget", parsed.word, purge="purge" in parsed.flags)


@handles("undo")
def undo(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Put the memories back as they were before; where one was changed again since, show both states and refuse."""
    from ipy_memory.explore.selection import undo_last
    from ipy_memory.notebook.result import TextResult

    try:
        return TextResult(undo_last(magics.session, force="force" in parsed.flags))
    except ChangedSinceError as error:
        magics.show(TextResult("\n".join(_both(error))))
        raise


def _both(error: ChangedSinceError) -> list[str]:
    """Return what is stored now and what an undo would write, line by line."""
    from ipy_memory.frames.escape import visible

    lines = ["--- as it is now", "+++ as it would be after the undo"]
    for name, now in error.now.items():
        former = error.former[name]
        if name == "content":
            changes = difflib.ndiff(str(now).splitlines(), str(former).splitlines())
            lines += [line for line in changes if not line.startswith("?")]
        elif now != former:
            lines += [f"- {name}: {now}", f"+ {name}: {former}"]
    return [visible(line) for line in lines]


def _changed(magics: MemoryMagics, parsed: Parsed, op: Operation, memory_id: str, **given: Any) -> TextResult:
    """Carry out an edit; say what was done, and where the copy is that was made of the bank at its first edit."""
    from ipy_memory.backends.mnemopi.backend import MnemopiBackend

    dry = "dry-run" in parsed.flags
    backend = magics.session.backend
    had = tuple(backend.backups) if isinstance(backend, MnemopiBackend) else ()
    bank = parsed.flags.get("bank")
    done = magics.session.change(op, bare_id(memory_id.strip()), dry_run=dry, bank=bank, **given)
    copies: list[str] = []
    if isinstance(backend, MnemopiBackend) and not dry:
        copies = _copies_left(backend, done) if given.get("purge") else _copies_made(backend, had)
    return _shown(done, given.get("content"), copies, dry=dry)


def _shown(done: Edited, content: str | None, copies: Sequence[str], *, dry: bool) -> TextResult:
    """Return what was done or would be, the difference of an update, and what is said of copies."""
    from ipy_memory.frames.escape import visible
    from ipy_memory.notebook.result import TextResult

    lines = [f"Dry run: nothing was written. It would say: {done.text}" if dry else done.text]
    notes = []
    if content is not None and done.before is not None:
        stored, redacted = redact_counted(content)
        lines += difflib.unified_diff(
            done.before.content.splitlines(), stored.splitlines(), "before", "after", lineterm="", n=1
        )
        if redacted:
            notes.append(f"{redacted} credential{'s' if redacted > 1 else ''} redacted.")
    elif dry and done.before is not None:
        lines.append(done.before.content)
    if done.along:
        notes.append(f"With it: {', '.join(counted(number, table) for table, number in done.along.items())}.")
    notes += [
        f"Its summary {one} stays and can be recalled; to end it: %memory invalidate {one}" for one in done.summaries
    ]
    return TextResult(visible("\n".join([*lines, *notes, *copies])))


def counted(number: int, table: str) -> str:
    """Return how many rows of a table in words."""
    one, more = _ROWS.get(table, (f"row of {table}", f"rows of {table}"))
    return f"{number} {one if number == 1 else more}"


def _copies_made(backend: MnemopiBackend, had: Collection[Path]) -> list[str]:
    made = [shown_path(copy, backend.home) for path, copy in backend.backups.items() if path not in had]
    return [f"Copy of the bank from before this session's first edit: {copy}" for copy in made]


def _copies_left(backend: MnemopiBackend, done: Edited) -> list[str]:
    from ipy_memory.backends.mnemopi.db.copies import copies_of, unfinished_of

    # A forgotten text may be gone from every bank since an earlier purge: then any of them may have had it.
    targets = backend.edit_targets()
    edited = [backend.target_of(done)] if done.bank else targets
    folder = backend.banks.copies
    left = [
        copy for target in edited for copy in (*copies_of(target.path, folder), *unfinished_of(target.path, folder))
    ]
    shown = ", ".join(shown_path(copy, backend.home) for copy in left)
    return [f"Earlier copies of the bank may still hold the text: {shown}"] if left else []
