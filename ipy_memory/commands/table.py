"""The table of commands: the one place where a command's name, flags, arity, group and help are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.backends import registry
from ipy_memory.backends.filters import BUDGETS, TYPES
from ipy_memory.commands.grammar import (
    Arity,
    Command,
    Flag,
    Group,
    date,
    names,
    number_to_one,
    variable,
    whole_number,
)
from ipy_memory.settings.table import SCOPINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def backends() -> tuple[str, ...]:
    """Return what ``memory.backend`` can be chosen to be, a backend that was registered too."""
    return (*registry.names(), "off")


"""What a session can choose; the agent knows further backends, which have no tools."""

PANELS = ("recall", "banks", "memory", "retain", "reflect")
RECORDING = ("on", "off", "status", "preview")
VECTORS = ("status", "reindex", "download")
MODELS_OF_BANK = ("list", "seed", "reload")
MODELS_BY_ID = ("show", "refresh", "history", "delete")

_FROM = Flag("from", "take the text from this Python variable", "NAME", variable, in_shell="")
_OUT = Flag("out", "also bind the result to this variable", "NAME", variable, in_shell="")
_BANK = Flag("bank", "ask this one bank, of the database folder or of the server, read-only", "NAME")
_NO_TOUCH = Flag("no-touch", "leave the recall counters as they are")
_LIMIT = Flag("limit", "at most this many hits", "N", whole_number)
_LOCAL_BANK = Flag("bank", "this one bank of the database folder", "NAME")
_EDITED_BANK = Flag("bank", "in this one bank of the database folder, in scope or not", "NAME")
_PAGE = Flag("page", "on a Hindsight server: this page, 1 is the first", "N", whole_number)
_DRY_RUN = Flag("dry-run", "only say what would happen")

ROWS = 50
"""How many rows a page of ``browse`` has."""

_BY = Flag(
    "by",
    "what varies, separated by commas: ranking, scope, backend, limit=3,8, or a setting with its values",
    "NAMES",
)
FILTERS = (
    Flag("source", "who stored it", "NAME"),
    Flag("type", f"such as fact or episode; on a Hindsight server {', '.join(TYPES)}", "NAME"),
    Flag("tag", "on a Hindsight server: with this tag, of several with each", "NAMES", names, many=True),
    Flag("document", "on a Hindsight server: made from this document", "ID"),
    Flag("veracity", "how sure it is: stated, tool, inferred, …", "NAME"),
    Flag("session", "id of the session that stored it", "ID"),
    Flag("cwd", "folder it was stored from", "PATH", in_shell="stored-from"),
    Flag("state", "live, superseded or expired", "STATE"),
    Flag("about", "what was made from this memory (with --store all)", "ID"),
    Flag("since", "stored at this date or time (UTC without a zone) or later", "DATE", date),
    Flag("until", "stored at this date or time (UTC without a zone) or before", "DATE", date),
)
"""Flags of ``browse`` that say which memories; each is a filter of the same name."""

RECALL_FILTERS = (
    Flag(
        "source",
        "only memories of this source; each flag from here to --tokens also leaves the recall counters alone",
        "NAME",
    ),
    Flag("author", "only memories of the author of this id", "ID"),
    Flag("since", "only memories of this date or time (UTC without a zone) or later", "DATE", date),
    Flag("until", "only memories of this date or time (UTC without a zone) or before", "DATE", date),
    Flag("at", "count ages from this date or time instead of now; what ends is compared with it", "DATE", date),
    Flag("tag", "on a Hindsight server: only memories with this tag, of several with each", "NAMES", names, many=True),
    Flag("type", f"on a Hindsight server: only {', '.join(TYPES)}", "NAMES", names, many=True),
    Flag("budget", f"on a Hindsight server: how thoroughly it searches, {', '.join(BUDGETS)}", "NAME"),
    Flag("tokens", "on a Hindsight server: how much text it gives", "N", whole_number),
)
"""Flags of ``recall`` that a backend honours or refuses; each is a filter of the same name."""


def chosen(filters: Sequence[Flag], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters among the flags of a command, by name."""
    return {one.name: flags[one.name] for one in filters if one.name in flags}


OTHER_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("search",), "recall"),
    **dict.fromkeys(("remember", "add"), "retain"),
    **dict.fromkeys(("ask",), "reflect"),
    **dict.fromkeys(("list", "ls", "find"), "browse"),
    **dict.fromkeys(("edit", "change"), "update"),
    **dict.fromkeys(("delete", "remove", "rm"), "forget"),
    "explain": "why",
}
"""What people type who do not know the name of the command yet."""


_LOOK = (
    Command(
        "status",
        "",
        "Show backend, scope, banks, database, vectors, and where each setting comes from.",
        Group.LOOK,
        in_shell=True,
    ),
    Command(
        "browse",
        "[TEXT]",
        "List what is stored, newest first; TEXT must be part of the content.",
        Group.LOOK,
        Arity.OPTIONAL,
        (
            Flag("bank", "this one bank, or * for all of the database folder", "NAME"),
            Flag("store", "working, episodic, fact, annotation, entity, triple, or all", "NAME"),
            *FILTERS,
            Flag("limit", f"rows a page; {ROWS} by default", "N", whole_number),
            Flag("page", "which page, from 1", "N", whole_number),
            _OUT,
        ),
        in_shell=True,
    ),
    Command(
        "show",
        "ID",
        "Show one memory in full, by the id that recall shows.",
        Group.LOOK,
        Arity.WORD,
        (_EDITED_BANK,),
        one="id",
        in_shell=True,
    ),
    Command(
        "chain",
        "ID",
        "List a memory with all that it replaced and all that replaced it, the oldest first.",
        Group.LOOK,
        Arity.WORD,
        (_EDITED_BANK,),
        one="id",
        in_shell=True,
    ),
    Command(
        "banks",
        "",
        "List every bank of the database folder, and why it is read or not; or the banks of the Hindsight server.",
        Group.LOOK,
        flags=(_PAGE,),
        in_shell=True,
    ),
    Command(
        "scopes",
        "[QUERY]",
        "Compare the scoping modes: what each reads and writes here, and what a query would give in it.",
        Group.LOOK,
        Arity.OPTIONAL,
        (Flag("folder", "as if the agent worked there", "PATH"),),
        in_shell=True,
    ),
    Command(
        "stats", "", "Show how much each bank in scope holds, and what happens to it when.", Group.LOOK, in_shell=True
    ),
    Command("view", "", "Show what memory adds to the agent's instructions just now.", Group.LOOK),
    Command(
        "report",
        "",
        "Print what to compare when the agent's recall differs: backend, banks, settings, vectors.",
        Group.LOOK,
        in_shell=True,
    ),
    Command(
        "panel",
        f"{'|'.join(PANELS)} [TEXT]",
        "Open a panel; TEXT is what it starts with: a query, an id, a question.",
        Group.LOOK,
        Arity.OPTIONAL,
        (
            Flag("static", "text and HTML only, without the widget"),
            Flag("live", "the widget also where nobody seems to be there to use it"),
        ),
        choices=PANELS,
    ),
)
_FIND = (
    Command(
        "recall",
        "QUERY",
        "Search memory, and show exactly what the agent would see.",
        Group.FIND,
        Arity.TEXT,
        (
            _FROM,
            _LIMIT,
            _BANK,
            Flag("ranking", "agent, or best: finds what the agent misses, and counts nothing", "NAME"),
            Flag("as-of", "from what the banks held at this date or time (UTC without a zone), with its clock", "DATE"),
            Flag("as-agent-start", "as after the agent's next start, which consolidates old memories; from copies"),
            *RECALL_FILTERS,
            Flag("explain", "add why each hit has its score"),
            _NO_TOUCH,
            _OUT,
        ),
        instead=("from",),
        in_shell=True,
        alone=True,
        forms=(
            "%recall [flags] QUERY",
            "%%recall [flags]      (the query is the cell)",
            "hits = %recall QUERY  (a DataFrame)",
        ),
    ),
    Command(
        "reflect",
        "QUESTION",
        "Answer a question from memory as a whole.",
        Group.FIND,
        Arity.TEXT,
        (_FROM, Flag("context", "more to consider; quote it if it has blanks", "TEXT"), _BANK, _NO_TOUCH, _OUT),
        instead=("from",),
        in_shell=True,
        alone=True,
        forms=(
            "%reflect [flags] QUESTION",
            "%%reflect [flags]          (the question is the cell)",
            "answer = %reflect QUESTION (answer.frame holds the hits it used)",
        ),
    ),
    Command(
        "why",
        "ID QUERY",
        "Say why a memory comes back for a query, or why it does not; with --all QUERY for every memory.",
        Group.FIND,
        Arity.OPTIONAL,
        (
            Flag("all", "every memory in scope; what follows is the query alone"),
            Flag("everywhere", "with --all: the memories of other banks too"),
            _LIMIT,
        ),
        in_shell=True,
    ),
    Command(
        "evaluate",
        "[PAIRS]",
        "Measure recall on questions whose memories you know: a CSV or JSONL file with query and ids.",
        Group.FIND,
        Arity.OPTIONAL,
        (
            _BY,
            _LIMIT,
            Flag("proxy", "questions made from the banks themselves, in place of a file"),
            Flag("frame", "a variable with columns query and ids, in place of a file", "NAME", variable, in_shell=""),
            Flag("fail-under", "an answer of no where the first variant is below, as in hit@8=.8", "MEASURE=X"),
            Flag("trec", "also write NAME.qrels and NAME.run, in the forms of TREC", "NAME"),
        ),
        in_shell=True,
    ),
    Command(
        "compare",
        "QUERY",
        "Ask a query in several ways side by side: what moved, and what only one of them gives.",
        Group.FIND,
        Arity.OPTIONAL,
        (_BY, _LIMIT, Flag("file", "a file with one query a line, in place of the query", "PATH")),
        in_shell=True,
    ),
    Command(
        "diff",
        "[A B]",
        "Show what differs between two banks or bank files, or with --since what has changed in the banks in scope.",
        Group.FIND,
        Arity.OPTIONAL,
        (Flag("since", "what was stored or has ended since this date or time (UTC without a zone)", "DATE", date),),
        in_shell=True,
    ),
)
_CURATE = (
    Command(
        "retain",
        "TEXT",
        "Store a memory: the text as typed, as one item.",
        Group.CURATE,
        Arity.TEXT,
        (
            _FROM,
            Flag("lines", "one item for each line that is not blank"),
            Flag("json", 'items from a JSON list of {"content": …, "context": …}', in_shell="items"),
            Flag("context", "where the text comes from; quote it if it has blanks", "TEXT"),
            Flag("redact", "store what looks like a credential as [REDACTED]"),
            Flag("keep", "also a text that seems to hold a credential, as it is"),
            Flag("yes", "also a memory of more than 5 MB"),
            _OUT,
        ),
        instead=("from",),
        in_shell=True,
        stdin=True,
        alone=True,
        forms=("%retain [flags] TEXT", "%%retain [flags]      (the text is the cell)"),
    ),
    Command(
        "update",
        "ID [TEXT]",
        "Replace the whole text of a memory, or its importance.",
        Group.CURATE,
        Arity.OPTIONAL,
        (
            _FROM,
            Flag("importance", "how much it weighs, from 0 to 1", "X", number_to_one),
            Flag("force", "also a text that is only the cut preview of the memory"),
            _EDITED_BANK,
            _DRY_RUN,
        ),
    ),
    Command(
        "invalidate",
        "ID",
        "End a memory now, so that it is no longer recalled; --frame ends every row of a frame.",
        Group.CURATE,
        Arity.WORD,
        (
            Flag("by", "id of the memory that replaces it", "ID"),
            Flag("frame", "a variable with rows of %memory browse or %recall, in place of an id", "NAME", variable),
            Flag("yes", "with --frame: do it; without, only say how many"),
            _EDITED_BANK,
            _DRY_RUN,
        ),
        one="id",
        instead=("frame",),
    ),
    Command(
        "forget",
        "ID",
        "Delete a memory for good; a summary that was made from it stays, and is named.",
        Group.CURATE,
        Arity.WORD,
        (
            Flag("purge", "leave no byte of its text in the file; the bank is not copied before"),
            _EDITED_BANK,
            _DRY_RUN,
        ),
        one="id",
    ),
    Command(
        "undo",
        "",
        "Undo the last update or invalidation of this session, a selection's as one.",
        Group.CURATE,
        flags=(Flag("force", "also if the memory was changed again since"),),
    ),
    Command(
        "audit",
        "[KIND…]",
        "Look for what to clean up: secrets, personal data, duplicates, conflicts, and what is of no use any more.",
        Group.CURATE,
        Arity.OPTIONAL,
        (
            Flag("bank", "this one bank, of the database folder or of the server", "NAME"),
            Flag("all", "every bank of the database folder"),
            Flag("accept", "leave out these findings from now on: their names with commas between", "FINDINGS"),
            Flag("baseline", "leave out what this file of an earlier `ipy-memory audit --json` has", "FILE"),
            _OUT,
        ),
        in_shell=True,
    ),
    Command(
        "consolidate",
        "",
        "Consolidate memories older than 12 hours into episodes, and shorten old episodes.",
        Group.CURATE,
        flags=(Flag("dry-run", "only say how many there are"),),
    ),
)
_RESEND = (
    Flag("resend", "also send again what failed"),
    Flag("unknown", "with --resend: also what may have arrived already, at the risk of storing it twice"),
    Flag("moved-from", "with --resend: send what was queued for this address to the present one", "URL"),
)

_MOVE = (
    Command(
        "export",
        "PATH",
        "Write banks to a new file: JSONL with every column, CSV or Markdown to read.",
        Group.MOVE,
        Arity.TEXT,
        (
            Flag("bank", "this one bank, or * for all of the database folder; by default those in scope", "NAME"),
            Flag("format", "jsonl, csv or markdown; by default as the name ends", "NAME"),
            Flag("vectors", "with JSONL: vectors too"),
            Flag("redact", "write what looks like a credential as [REDACTED]"),
        ),
        in_shell=True,
    ),
    Command(
        "import",
        "PATH",
        "Take banks in from a JSONL file that export wrote, each under its name; harmless when repeated.",
        Group.MOVE,
        Arity.TEXT,
        (
            Flag("into", "this one bank takes everything", "BANK"),
            Flag("on-conflict", "skip, newer or both: what becomes of a memory whose id is there", "WAY"),
            _DRY_RUN,
        ),
        in_shell=True,
    ),
)
_SERVER = (
    Command(
        "queue",
        "",
        "Show what is waiting for a Hindsight server or is not known to have arrived there, of all kernels.",
        Group.SERVER,
        flags=(
            *_RESEND,
            Flag("drop", "delete items that are not to be sent: their numbers with commas between, or all", "ITEMS"),
            Flag("yes", "with --drop: really do it"),
        ),
        in_shell=True,
    ),
    Command(
        "flush",
        "",
        "Send the Hindsight queue now, or finish background work on local banks.",
        Group.SERVER,
        flags=_RESEND,
        in_shell=True,
    ),
    Command(
        "operations",
        "",
        "Show the work that the Hindsight server took on, and what came of it.",
        Group.SERVER,
        flags=(_PAGE,),
        in_shell=True,
    ),
    Command(
        "mm",
        "list|seed|reload, or show|refresh|history|delete ID",
        "Mental models of a Hindsight bank: see, make, renew, delete; reload puts them into the instructions.",
        Group.SERVER,
        Arity.OPTIONAL,
        (Flag("yes", "really delete"),),
        choices=(*MODELS_OF_BANK, *MODELS_BY_ID),
    ),
)
_ADMIN = (
    Command(
        "use",
        "|".join(backends()),
        "Choose the memory backend for this notebook: a Hindsight server, the local banks (mnemopi), or none.",
        Group.ADMIN,
        Arity.WORD,
        one="backend",
        choices=backends,
    ),
    Command(
        "scope",
        "|".join(SCOPINGS),
        "Choose which banks are written and read, for this notebook.",
        Group.ADMIN,
        Arity.WORD,
        one="scope",
        choices=SCOPINGS,
    ),
    Command(
        "rebind",
        "[FOLDER]",
        "Switch to another folder, by default the working directory, with its scope.",
        Group.ADMIN,
        Arity.OPTIONAL,
    ),
    Command(
        "trust",
        "[FOLDER]",
        "Let the files of a project folder, by default this one, decide where memories go, as the agent does.",
        Group.ADMIN,
        Arity.OPTIONAL,
        (Flag("list", "show the trusted folders"), Flag("revoke", "trust the folder no longer")),
        in_shell=True,
    ),
    Command(
        "open",
        "PATH",
        "Read one bank file, wherever it lies, until %memory use chooses again; nothing is written.",
        Group.ADMIN,
        Arity.TEXT,
    ),
    Command(
        "record",
        "|".join(RECORDING),
        "Take the notebook's cells as turns that memory retains; says first what is written where.",
        Group.ADMIN,
        Arity.WORD,
        one="action",
        choices=RECORDING,
    ),
    Command(
        "pause",
        "",
        "Record, retain and count nothing in this notebook until %memory resume; recall goes on.",
        Group.ADMIN,
    ),
    Command("resume", "", "End the pause: record, retain and count again.", Group.ADMIN),
    Command(
        "enqueue",
        "",
        "Retain now what waits and what the cadence has not retained yet; consolidate local banks.",
        Group.ADMIN,
    ),
    Command(
        "clear",
        "",
        "Delete every memory in the local banks in scope, or the local state of a Hindsight session.",
        Group.ADMIN,
        flags=(
            Flag("yes", "really do it; without it, say what would be cleared"),
            Flag("no-backup", "make no copies of the banks first"),
            Flag("rescued", "also clear this rescued bank", "NAME"),
        ),
    ),
    Command(
        "embeddings",
        "|".join(VECTORS),
        "Show which vectors the banks hold; recompute them (after a backup); download the local model.",
        Group.ADMIN,
        Arity.OPTIONAL,
        (
            Flag("bank", "reindex: this one bank of the database folder", "NAME"),
            Flag("missing", "reindex: only memories without a vector of the model in use"),
        ),
        choices=VECTORS,
    ),
    Command(
        "diagnose",
        "",
        "Check the banks in scope as the agent's own command does, or the way to a Hindsight bank.",
        Group.ADMIN,
        in_shell=True,
    ),
    Command(
        "doctor",
        "",
        "Check (and with --repair, repair) the banks: file, schema, indexes, vectors, orphans; or the way to a server.",
        Group.ADMIN,
        flags=(_LOCAL_BANK, Flag("repair", "repair what can be repaired, after a copy of the bank")),
        in_shell=True,
    ),
    Command(
        "demo",
        "",
        "Make demonstration banks, recall from them, and open the quickstart notebook; needs no network and no key.",
        Group.ADMIN,
        flags=(
            Flag("folder", "make the banks here and keep them; by default they are removed at the end", "PATH"),
            Flag("no-lab", "stop before JupyterLab is started"),
            Flag("execute", "run the notebook without a browser and print its outputs"),
        ),
        in_shell=True,
        in_magic=False,
    ),
)

COMMANDS: Mapping[str, Command] = {
    command.name: command for command in (*_LOOK, *_FIND, *_CURATE, *_MOVE, *_SERVER, *_ADMIN)
}
"""Every command by name, grouped by task."""

MAGICS: Mapping[str, Command] = {name: command for name, command in COMMANDS.items() if command.alone}
"""The commands that are magics of their own."""

MEMORY: Mapping[str, Command] = {
    name: command for name, command in COMMANDS.items() if command.in_magic and not command.alone
}
"""The commands of ``%memory``."""

SHELL: Mapping[str, Command] = {name: command for name, command in COMMANDS.items() if command.in_shell}
"""The commands of the program ``ipy-memory``."""

OPTIONS = (
    Flag("as-json", "print the result as one JSON object", in_shell="json"),
    Flag("cwd", "the project folder; by default the working directory", "FOLDER"),
    Flag("agent-dir", "the agent's folder; by default PI_CODING_AGENT_DIR, else ~/.omp/agent", "FOLDER"),
    Flag("backend", "hindsight or mnemopi; by default as the agent's settings say", "NAME"),
    Flag("scope", f"{', '.join(SCOPINGS)}; by default as the settings say", "MODE"),
    Flag("database", "path of the Mnemopi database; by default as the settings say", "PATH"),
    Flag("demo", "work on demonstration banks in a folder that is removed at the end"),
    Flag("debug", "show full tracebacks"),
)
"""What every command of the program takes, in front of its name or behind it."""

MEMORY_USAGE = (
    "See and choose which memory the magics use.\n\n    %memory\n    %memory COMMAND …\n    %memory COMMAND -h"
)
"""The help page of ``%memory`` itself."""
