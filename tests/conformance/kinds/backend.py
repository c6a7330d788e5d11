"""The session hooks and commands of the local engine's backend, step by step."""

from __future__ import annotations

import functools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.session import MnemopiSession
from ipy_memory.clock import FixedIds
from ipy_memory.conversation import messages_in, messages_of
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.session import MemorySession, open_session
from ipy_memory.text import MNEMOPI_INSTRUCTIONS
from tests.conformance.dump import Names, mapped, see_all
from tests.conformance.kinds.tools import tool_answer
from tests.conformance.registry import Case, kind

BASE = "agent-of-the-case"
"""Name of the agent directory: one that no text holds by chance."""


class Replay:
    """One session (and its sub-agent) over the steps of a case."""

    def __init__(self, case: Case) -> None:
        self.case, self.clock = case, case.clock()
        self.ids = FixedIds(case.input["id_counter"])
        self.home = case.scratch / "home"
        self.dir = self.home / BASE
        self.dir.mkdir(parents=True)
        self.names = Names()
        self.entries: list[Any] = []
        self.sub_entries: list[Any] = []
        self.sub: MemorySession | None = None
        self.cleared = False
        self.session = self.opened()
        self.session.backend = None

    def opened(self, session_id: str = "sess-1") -> MemorySession:
        settings = {
            "memory.backend": "mnemopi",
            "mnemopi.dbPath": str(self.dir / "mnemopi.db"),
            "mnemopi.noEmbeddings": True,
            "mnemopi.llmMode": "none",
        }
        return open_session(
            cwd=self.placed(self.case.input["cwd"]),
            settings=settings | self.placed(self.case.input["settings"]),
            agent_dir=self.dir,
            env={"HOME": str(self.home)},
            clock=self.clock,
            ids=self.ids,
            session_id=session_id,
        )

    @property
    def backend(self) -> MnemopiSession:
        assert isinstance(self.session.backend, MnemopiSession)
        return self.session.backend

    def run(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for raw in self.case.input["steps"]:
            step = self.names.real(self.placed(raw))
            answer = getattr(self, f"do_{step['op']}")(step)
            if self.session.backend is not None:
                self.session.flush()
            if "out" in raw:
                out[raw["out"]] = self.unplaced(answer)
        self.session.close()
        shown: dict[str, Any] = self.names.hide(out)
        return shown

    def placed(self, value: Any) -> Any:
        return mapped(value, lambda text: text.replace("$DIR", str(self.dir)).replace("$B", BASE))

    def unplaced(self, value: Any) -> Any:
        shown = ((str(self.dir), "$DIR"), (f"~/{BASE}", "$DIR"), (BASE, "$B"))
        return mapped(value, lambda text: functools.reduce(lambda said, pair: said.replace(*pair), shown, text))

    def do_start(self, step: dict[str, Any]) -> None:
        self.session, self.cleared = self.opened(), False
        self.backend.start()

    def do_stats(self, step: dict[str, Any]) -> str:
        return self.session.stats()

    def do_diagnose(self, step: dict[str, Any]) -> str:
        return self.session.diagnose()

    def do_status(self, step: dict[str, Any]) -> Any:
        return dict(self.session.describe())

    def do_instructions(self, step: dict[str, Any]) -> str:
        return self.backend.instructions() if self.session.backend else MNEMOPI_INSTRUCTIONS

    def do_retain(self, step: dict[str, Any]) -> Any:
        return _called(self.session, "retain", items=step["items"])

    def do_recall(self, step: dict[str, Any]) -> Any:
        return _called(self.session, "recall", query=step["query"])

    def do_reflect(self, step: dict[str, Any]) -> Any:
        return _called(self.session, "reflect", query=step["query"])

    def do_memory_edit(self, step: dict[str, Any]) -> Any:
        return _called(self.session, "memory_edit", **step["params"])

    def do_save(self, step: dict[str, Any]) -> Any:
        given = dict(step["input"])
        return dict(self.session.save(given.pop("content"), **given))

    def do_search(self, step: dict[str, Any]) -> Any:
        return dict(self.session.search(step["query"], (step.get("options") or {}).get("limit")))

    def do_first_turn(self, step: dict[str, Any]) -> Any:
        if self.session.backend is None:
            return None
        prepared = self.backend.prepare_first_turn(step["prompt"], messages_of(self.entries))
        if prepared is None:
            return None
        answer: dict[str, Any] = {} if prepared.context is None else {"context": prepared.context}
        return answer | {"commit": prepared.commit()} if step.get("commit") else answer

    def do_compaction(self, step: dict[str, Any]) -> Any:
        return self.backend.compaction(messages_in(step["messages"])) if self.session.backend else None

    def do_read(self, step: dict[str, Any]) -> Any:
        session = self.session
        if step.get("session_id", session.session_id) != session.session_id:
            session = open_session("off", cwd=session.cwd, agent_dir=self.dir, env={"HOME": str(self.home)})
        elif session.backend is None:
            session = self.opened()
        try:
            page = session.read(step["url"])
        except MemoryToolkitError as error:
            return {"error": error.message}
        return {"content": page, "contentType": "text/markdown", "size": len(page.encode())}

    def do_enqueue(self, step: dict[str, Any]) -> None:
        if self.session.backend is not None and not self.cleared:  # a clear ends the agent's state
            self.backend.enqueue(messages_of(self.entries))

    def do_clear(self, step: dict[str, Any]) -> None:
        self.backend.clear(backup=False)
        self.cleared = True

    def do_number_ids(self, step: dict[str, Any]) -> None:
        banks = {bank.name: bank for bank in self.backend.banks.all()}
        own = banks.pop(self.backend.retain_bank)
        see_all(self.names, [(own, ""), *((bank, "shared:") for bank in banks.values())])

    def do_freeze_created_at(self, step: dict[str, Any]) -> None:
        connection = self.backend.writer().connection
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            for column in columns & {"created_at", "updated_at", "valid_from"}:
                connection.execute(
                    f"UPDATE {table} SET {column} = '2026-06-01 12:00:00' WHERE {column} GLOB '????-??-?? ??:??:??'"
                )

    def do_files(self, step: dict[str, Any]) -> list[str]:
        found = [path.relative_to(self.dir).as_posix() for path in self.dir.rglob("*")]
        return sorted(path for path in found if not path.endswith(("-wal", "-shm")))

    def do_sql(self, step: dict[str, Any]) -> Any:
        if "file" in step:
            with closing(sqlite3.connect(step["file"])) as connection:
                return _rows(connection, step)
        return _rows(self.backend.writer().connection, step)

    def do_make_bank(self, step: dict[str, Any]) -> None:
        with Bank.open(Path(step["file"]), step["bank"], clock=self.clock) as bank:
            for row in step["rows"]:
                names = ", ".join(row)
                marks = ", ".join(f":{name}" for name in row)
                bank.connection.execute(f"INSERT INTO working_memory ({names}) VALUES ({marks})", row)

    def do_entries(self, step: dict[str, Any]) -> None:
        self.entries = step["entries"]

    def do_dispose(self, step: dict[str, Any]) -> None:
        if step.get("consolidate", True):
            self.backend.finish(messages_of(self.entries))
        self.session.close()

    def do_state_installed(self, step: dict[str, Any]) -> bool:
        return self.session.backend is not None

    def do_sub_start(self, step: dict[str, Any]) -> None:
        self.sub = self.session.child(session_id=step["session_id"], cwd=step["cwd"])

    def do_sub_is_alias(self, step: dict[str, Any]) -> bool:
        assert self.sub
        assert self.sub.backend
        return self.sub.backend.status() == self.backend.status()

    def do_sub_retain(self, step: dict[str, Any]) -> Any:
        return _called(self.sub, "retain", items=step["items"])

    def do_sub_first_turn(self, step: dict[str, Any]) -> Any:
        assert self.sub
        return self.sub.first_turn(step["prompt"])

    def do_sub_entries(self, step: dict[str, Any]) -> None:
        self.sub_entries = step["entries"]

    def do_sub_agent_end(self, step: dict[str, Any]) -> None:
        assert self.sub
        self.sub.end_turn(messages_of(self.sub_entries))

    def do_sub_force_retain(self, step: dict[str, Any]) -> None:
        assert self.sub
        self.sub.force_retain(messages_of(self.sub_entries))

    def do_sub_dispose(self, step: dict[str, Any]) -> None:
        assert self.sub
        self.sub.close()

    def do_advance(self, step: dict[str, Any]) -> None:
        self.clock.advance(step["ms"])


def _called(session: MemorySession | None, tool: str, **given: Any) -> dict[str, Any]:
    assert session
    return tool_answer(lambda: session.tools[tool](**given))


def _rows(connection: sqlite3.Connection, step: dict[str, Any]) -> Any:
    cursor = connection.execute(step["query"])
    if step.get("as") == "value":
        return cursor.fetchone()[0]
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


@kind("backend")
def run(case: Case) -> Any:
    return Replay(case).run()
