"""The program's commands that ask memory or store something: the agent's tools, and why a memory came back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ipy_memory.commands.grammar import Parsed, id_and_text
from ipy_memory.commands.table import COMMANDS, RECALL_FILTERS, chosen
from ipy_memory.errors import MagicError
from ipy_memory.shell.output import DONE, NO, Result, hit_record, in_shell_words, record, table

if TYPE_CHECKING:
    from ipy_memory.backends.trace import Trace
    from ipy_memory.commands.grammar import Parsed
    from ipy_memory.explore.queue import Listing, Sent
    from ipy_memory.model import ToolResult
    from ipy_memory.session import MemorySession

STDIN = "-"
"""A text that says: read it from stdin."""

WHY_COLUMNS = ("id", "bank", "store", "verdict", "reason", "content")


def recall(session: MemorySession, parsed: Parsed) -> Result:
    """Search memory as the agent does, and count it as the agent's tool does."""
    flags = parsed.flags
    ranking = flags.get("ranking", "agent")
    if "explain" in flags and ranking == "best":
        raise MagicError("--explain takes the agent's ranking apart", hint="by best, the field explanation says why")
    traces: list[Trace] | None = [] if "explain" in flags else None
    found = session.recall(
        parsed.text,
        limit=flags.get("limit"),
        touch="no-touch" not in flags,
        bank=flags.get("bank"),
        ranking=ranking,
        as_agent_start="as-agent-start" in flags,
        as_of=flags.get("as-of"),
        where=chosen(RECALL_FILTERS, flags),
        traces=traces,
    )
    near = _near(session, parsed, len(found.hits))
    if traces is None:
        return _answered(session, found, found.text, [{} for _ in found.hits], near)
    from ipy_memory.explore.explain import account_of, reason

    reasons = [reason(hit, account_of(hit, traces)) for hit in found.hits]
    rows = [(hit.id, hit.bank, f"{hit.score}", why) for hit, why in zip(found.hits, reasons, strict=True)]
    shown = f"{found.text}\n\n{table(('id', 'bank', 'score', 'reason'), rows, '')}" if rows else found.text
    return _answered(session, found, shown, [{"reason": why} for why in reasons], near)


def reflect(session: MemorySession, parsed: Parsed) -> Result:
    """Answer a question from memory as a whole."""
    flags = parsed.flags
    found = session.reflect(parsed.text, flags.get("context"), touch="no-touch" not in flags, bank=flags.get("bank"))
    near = _near(session, parsed, len(found.hits))
    return _answered(session, found, found.text, [{} for _ in found.hits], near)


def _near(session: MemorySession, parsed: Parsed, hits: int) -> list[str]:
    """Return what to say of banks near by, where the session's own gives nothing."""
    from ipy_memory.explore.nearby import recall_notes

    if "bank" in parsed.flags or chosen(RECALL_FILTERS, parsed.flags):
        return []
    return recall_notes(session, parsed.text, parsed.flags.get("limit"), hits=hits)


def _answered(
    session: MemorySession, found: ToolResult, shown: str, more: list[dict[str, Any]], near: list[str]
) -> Result:
    hits = [hit_record(hit, session.clock.tz, **extra) for hit, extra in zip(found.hits, more, strict=True)]
    return Result(shown, {"text": found.text, "hits": hits}, (*found.notes, *near))


def retain(session: MemorySession, parsed: Parsed) -> Result:
    """Store a text, or what stdin says; nothing is stored where anything is wrong with it."""
    from ipy_memory.credentials import for_memory
    from ipy_memory.explore.nearby import retain_notes
    from ipy_memory.redact import redact
    from ipy_memory.tools import check_size, typed_items

    text = _stdin_text() if parsed.text == STDIN or not parsed.given else parsed.text
    items, left_out = for_memory(typed_items(text, parsed.flags), parsed.flags)
    about_size = check_size(items, yes="yes" in parsed.flags)
    done = session.retain(items)
    receipt = done.receipt
    ids = receipt.ids if receipt and len(receipt.ids) == len(items) else [None] * len(items)
    stored = [
        {
            "id": one,
            "bank": receipt and receipt.bank,
            "state": receipt and receipt.state,
            "content": redact(item.content),
            "context": item.context and redact(item.context),
        }
        for one, item in zip(ids, items, strict=True)
    ]
    notes = [*done.notes, *left_out, *about_size]
    if receipt is not None and receipt.new_bank:
        notes += retain_notes(session)
    return Result(done.text, {"text": done.text, "items": stored}, notes)


def _stdin_text() -> str:
    """Return what stdin holds, less the newline that ends it."""
    stdin = sys.stdin
    if stdin is None or stdin.isatty():
        raise MagicError("%retain needs a text", hint="type it after %retain, or send it to stdin")
    try:
        text = stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise MagicError(f"stdin is not valid UTF-8: byte {error.start}", hint="nothing was stored") from None
    if not text.strip():
        raise MagicError("stdin is empty: there is nothing to store", hint="send a text to stdin")
    return text.removesuffix("\n").removesuffix("\r")


def why(session: MemorySession, parsed: Parsed) -> Result:
    """Say why a memory comes back for a query, or does not; nothing is counted or written."""
    from ipy_memory.explore.why import came_back, furthest, verdicts

    flags = parsed.flags
    if "all" in flags:
        if not parsed.given:
            raise MagicError("%memory why --all takes a query", hint="see %memory why -h")
        found = verdicts(session, parsed.text, limit=flags.get("limit"), everywhere="everywhere" in flags)
        ordered = [found[at] for at in furthest(found)]
        rows = [[getattr(one, name) for name in WHY_COLUMNS] for one in ordered]
        shown = table(WHY_COLUMNS, rows, "No memories.")
        return Result(shown, {"verdicts": record(ordered)}, [came_back(found)])
    if "everywhere" in flags:
        raise MagicError("--everywhere goes with --all", hint="an id is looked for in every bank anyway")
    memory_id, query = id_and_text(COMMANDS["why"], parsed)
    if not memory_id or not query:
        raise MagicError(
            "%memory why takes an id and a query",
            hint="as in: %memory why 716b251a2adcd9e2 deploy target, or without an id: %memory why --all deploy target",
        )
    verdict = session.why(memory_id, query, limit=flags.get("limit"))
    return Result(str(verdict), {"text": str(verdict), "verdict": record(verdict)})


def queue(session: MemorySession, parsed: Parsed) -> Result:
    """List what no server is known to have, or send it again, or drop it."""
    from ipy_memory.explore import queue

    if "drop" in parsed.flags:
        said = queue.drop_pending(session, parsed.flags)
        return Result(said, {"text": said})
    if queue.asks_to_send(parsed.flags):
        return _sent(queue.send(session, parsed.flags))
    return _listed("items", queue.queue_listing(session), "Nothing waits.")


def flush(session: MemorySession, parsed: Parsed) -> Result:
    """Send what waits now, or finish the work on local banks."""
    from ipy_memory.explore import queue

    return _sent(queue.flush(session, parsed.flags))


def operations(session: MemorySession, parsed: Parsed) -> Result:
    """List the work that the server took on."""
    from ipy_memory.explore import queue

    return _listed("operations", queue.operations(session, parsed.flags.get("page", 1)), "No operations.")


def _sent(done: Sent) -> Result:
    """Return what was sent; what is not known to have arrived is an answer of no."""
    said = in_shell_words(done.text)
    return Result(said, {"text": said, "left": done.left}, code=NO if done.left else DONE)


def _listed(name: str, found: Listing, empty: str) -> Result:
    keys = [header.replace(" ", "_") for header in found.headers]
    rows = [dict(zip(keys, row, strict=True)) for row in found.rows]
    return Result(table(found.headers, found.rows, empty), {name: rows}, found.notes)
