"""The program's commands about banks, memories and settings; only ``doctor --repair`` and ``trust`` write."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ipy_memory.commands.table import FILTERS, ROWS, chosen
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.shell.output import DONE, NO, Result, in_shell_words, memory_record, moment, record, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.explore.banks import BankRow
    from ipy_memory.model import Memory
    from ipy_memory.session import MemorySession

BANK_COLUMNS = ("name", "use", "reason", "working", "episodic", "facts", "size", "last memory", "folders", "error")


def status(session: MemorySession, _: Parsed) -> Result:
    """Show the session, and every setting that is not at its default."""
    from ipy_memory.explore.status import status_notes, status_rows

    rows = status_rows(session, folder_chosen=True)
    shown = table(("what", "value", "from"), [(row.name, row.value, row.origin) for row in rows], "")
    whole = status_rows(session, folder_chosen=True, whole_paths=True)
    return Result(shown, {"status": record(whole)}, status_notes(session))


def browse(session: MemorySession, parsed: Parsed) -> Result:
    """List a page of what is stored, newest first."""
    from ipy_memory.explore import browse as browsing

    flags, text = parsed.flags, parsed.text.strip()
    where = chosen(FILTERS, flags) | ({"text": text} if text else {})
    limit, number = flags.get("limit", ROWS), flags.get("page", 1)
    found = browsing.find(
        session,
        flags.get("bank"),
        browsing.checked(where),
        browsing.stores_of(flags.get("store")),
        limit=limit,
        offset=(number - 1) * limit,
    )
    shown = _memories(session, found.memories, ("state", "bank", "store", "content"), browsing.nothing(where))
    notes = browsing.page_notes(len(found.memories), found.total, found.offset, found.next_offset, number)
    notes += found.problems
    data = {
        "memories": [memory_record(one, session.clock.tz) for one in found.memories],
        "total": found.total,
        "offset": found.offset,
        "next_offset": found.next_offset,
    }
    return Result(shown, data, notes)


def _memories(session: MemorySession, found: Sequence[Memory], names: Sequence[str], empty: str) -> str:
    tz = session.clock.tz
    rows = [
        (one.id, shown_stamp(one.timestamp or "", tz), *(_cell(getattr(one, name), name, session) for name in names))
        for one in found
    ]
    return table(("id", "date", *names), rows, empty)


def _cell(value: Any, name: str, session: MemorySession) -> Any:
    return shown_stamp(value, session.clock.tz) if name == "valid_until" and value else value


def show(session: MemorySession, parsed: Parsed) -> Result:
    """Show one memory in full."""
    memory_id = parsed.word.removeprefix("memory://")
    text = session.read(memory_id)
    return Result(text, {"text": text, "memory": memory_record(session.memory(memory_id), session.clock.tz)})


def chain(session: MemorySession, parsed: Parsed) -> Result:
    """List a memory with what it replaced and what replaced it, the oldest first."""
    from ipy_memory.explore import browse as browsing

    found, missing = browsing.chain_of(session, parsed.word.removeprefix("memory://"), parsed.flags.get("bank"))
    shown = _memories(session, found, ("bank", "superseded_by", "valid_until", "content"), "")
    data = {"memories": [memory_record(one, session.clock.tz) for one in found], "missing": missing}
    return Result(shown, data, browsing.chain_notes(missing))


def banks(session: MemorySession, parsed: Parsed) -> Result:
    """List every bank of the database folder, or a page of the server's."""
    from ipy_memory.explore.banks import bank_rows, count_note
    from ipy_memory.explore.local import server_backend

    if server := server_backend(session):
        from ipy_memory.backends.hindsight import admin
        from ipy_memory.explore.remote import bank_notes

        page = parsed.flags.get("page", 1)
        found, total = admin.banks(server.service, page)
        rows = [
            (one.name, "in use" if one.in_use else "", one.memories, shown_stamp(one.last_write or "", None))
            for one in found
        ]
        shown = table(("bank", "use", "memories", "last write"), rows, "No banks.")
        return Result(shown, {"banks": record(found), "total": total}, bank_notes(server, found, page, total))
    local = bank_rows(session)
    shown = table(BANK_COLUMNS, [_bank_cells(row, session) for row in local], "No banks.")
    return Result(shown, {"banks": [_bank_record(row, session) for row in local]}, [count_note(len(local))])


def _bank_cells(row: BankRow, session: MemorySession) -> tuple[Any, ...]:
    held = row.tally
    counts = (held.working, held.episodic, held.facts) if row.counted else (None, None, None)
    last = shown_stamp(held.last_memory or "", session.clock.tz)
    return (row.name, row.use, row.reason, *counts, row.size, last, ", ".join(held.cwds or ()), row.error)


def _bank_record(row: BankRow, session: MemorySession) -> dict[str, Any]:
    held = asdict(row.tally) if row.counted else dict.fromkeys(asdict(row.tally))
    held["last_memory"] = moment(held["last_memory"], session.clock.tz)
    whole: dict[str, Any] = record(row)
    del whole["tally"]
    counts: dict[str, Any] = record(held)
    return whole | counts


def scopes(session: MemorySession, parsed: Parsed) -> Result:
    """Compare the scoping modes."""
    from ipy_memory.explore.scopes import scope_rows, shown_scopes

    query = parsed.text if parsed.given else None
    rows = scope_rows(session, query, cwd=parsed.flags.get("folder"))
    return Result(table(*shown_scopes(rows, query), ""), {"scopes": record(rows)})


def stats(session: MemorySession, _: Parsed) -> Result:
    """Show how much each bank in scope holds."""
    from ipy_memory.explore.aging import stats_text

    return _text(in_shell_words(stats_text(session)))


def diagnose(session: MemorySession, _: Parsed) -> Result:
    """Check the banks as the agent's own command does."""
    return _text(session.diagnose())


def report(session: MemorySession, _: Parsed) -> Result:
    """Print what to compare when the agent's recall differs."""
    from ipy_memory.explore.status import report_text

    return _text(in_shell_words(report_text(session)))


def _text(text: str) -> Result:
    return Result(text, {"text": text})


def doctor(session: MemorySession, parsed: Parsed) -> Result:
    """Check the banks in scope, or one, and repair them on request; faults that are left are an answer of no."""
    from ipy_memory.explore import health

    found = health.examined(session, parsed.flags.get("bank"), mend="repair" in parsed.flags)
    rows = [tuple(in_shell_words(cell) for cell in row) for row in found.rows]
    findings = [dict(zip(health.COLUMNS, row, strict=True)) for row in rows]
    data = {"findings": findings, "faults": found.faults}
    shown = table(health.COLUMNS, rows, health.NO_FILE)
    return Result(shown, data, found.notes, NO if found.faults else DONE)


def audit(session: MemorySession, parsed: Parsed) -> Result:
    """List what there is to clean up; findings are an answer of no."""
    from ipy_memory.explore import audit as auditing

    found = auditing.audited(session, **auditing.asked(parsed.text, parsed.flags))
    rows = [tuple(getattr(one, name) for name in auditing.SHOWN) for one in found.findings]
    shown = [found.summary, *([table(auditing.SHOWN, rows, "")] if rows else [])]
    code = NO if found.findings else DONE
    return Result("\n".join(shown), {}, found.notes, code, lines=record(found.records))


def trust(session: MemorySession, parsed: Parsed) -> Result:
    """Trust a project folder, end its trust, or list the trusted folders."""
    from ipy_memory.explore.trusting import trust_answer

    found = trust_answer(session, parsed.word, listing="list" in parsed.flags, revoke="revoke" in parsed.flags)
    data = {"text": found.text, "rows": [dict(zip(found.headers, row, strict=True)) for row in found.rows]}
    return Result(table(found.headers, found.rows, found.text), data, found.notes)
