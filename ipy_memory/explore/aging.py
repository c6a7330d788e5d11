"""How the memories of a session's banks age, in words; and consolidating them now, with counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.consolidation.schedule import RULE, Ageing, ageing
from ipy_memory.backends.mnemopi.consolidation.sleep import sleep_all
from ipy_memory.backends.mnemopi.pool import READ, WRITE
from ipy_memory.backends.mnemopi.session import MnemopiSession
from ipy_memory.errors import BankError
from ipy_memory.explore.local import local_backend, server_backend
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.paths import exists

if TYPE_CHECKING:
    from datetime import tzinfo

    from ipy_memory.backends.mnemopi.pool import Target
    from ipy_memory.session import MemorySession


def stats_text(session: MemorySession) -> str:
    """Return the agent's own table of counts, and below it the rule by which local memories age."""
    shown = session.stats()
    return shown if server_backend(session) else "\n".join([shown, "", *ageing_notes(session)])


def ageing_notes(session: MemorySession) -> list[str]:
    """Return for each bank in scope what is due in it, and the rule."""
    backend = local_backend(session, "the age of memories")
    notes = []
    for target in backend.recall_targets():
        try:
            notes.append(_note(target.name, ageing(target.path, target.name, session.clock), session.clock.tz))
        except BankError as error:
            notes.append(f"{target.name}: {error.message}")
    return [*notes, RULE]


def _note(name: str, due: Ageing, tz: tzinfo | None) -> str:
    whole, shortened, key = due.tiers
    parts = [f"{due.open} of {due.working} working memories are not summed up, {due.due} of them can be now"]
    if due.oldest:
        parts.append(f"the oldest is of {shown_stamp(due.oldest, tz)}")
    if due.next_due:
        parts.append(f"the next can be at {shown_stamp(due.next_due, tz)}")
    parts.append(f"episodes: {whole} whole, {shortened} shortened, {key} key sentences only")
    parts.append(f"last summed up {shown_stamp(due.last, tz) if due.last else 'never'}")
    return f"{name}: {'; '.join(parts)}."


def consolidate_now(session: MemorySession, *, dry_run: bool = False) -> list[str]:
    """Consolidate the session's own banks, each as a whole; return what was done in each, or why nothing."""
    backend = local_backend(session, "consolidating")
    targets = backend.own_targets() if isinstance(backend, MnemopiSession) else backend.recall_targets()
    return [_consolidated(session, target, dry_run=dry_run) for target in targets]


def _consolidated(session: MemorySession, target: Target, *, dry_run: bool) -> str:
    backend = local_backend(session, "consolidating")
    if not exists(target.path):
        return f"{target.name}: nothing to sum up, there is no file yet."
    due = ageing(target.path, target.name, session.clock)
    if not due.due:
        return f"{target.name}: 0 memories considered: {_why_nothing(due, session.clock.tz)}."
    with backend.banks.lock:
        bank = backend.banks.get(target, READ if dry_run else WRITE)
        if bank is None:
            return f"{target.name}: nothing to sum up, there is no file yet."
        done = sleep_all(bank, dry_run=dry_run)
    aged = sum(value for value in done.get("degradation", {}).values() if isinstance(value, int) and value is not True)
    verb = "would be summed up" if dry_run else "summed up"
    return (
        f"{target.name}: {due.due} {'memory' if due.due == 1 else 'memories'} considered,"
        f" {done['items_consolidated']} {verb} into {_episodes(done['summaries_created'])}; {_episodes(aged)} aged."
    )


def _episodes(number: int) -> str:
    return f"{number} {'episode' if number == 1 else 'episodes'}"


def _why_nothing(due: Ageing, tz: tzinfo | None) -> str:
    if due.open:
        soonest = shown_stamp(due.next_due or "", tz)
        return f"{due.open} are younger than twelve hours; the next can be at {soonest}"
    return f"all {due.working} are already consolidated" if due.working else "the bank is empty"
