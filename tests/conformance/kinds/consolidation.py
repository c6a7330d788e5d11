"""Adapters for consolidation: the short form, the graph's reading of a text, and sleep replays."""

from __future__ import annotations

from typing import Any

from ipy_memory.clock import FixedIds
from ipy_memory.jsdate import iso
from ipy_memory.mnemopi.aaak import encode
from ipy_memory.mnemopi.bank import Bank
from ipy_memory.mnemopi.config import engine_config
from ipy_memory.mnemopi.consolidation import sleep, sleep_all
from ipy_memory.mnemopi.degradation import degrade
from ipy_memory.mnemopi.graph_extract import extract_gist, extract_statements
from ipy_memory.mnemopi.pending import drain
from ipy_memory.mnemopi.store import remember
from tests.conformance.compare import first_difference
from tests.conformance.dump import Names, shown, tables, written_out
from tests.conformance.kinds.store import remember_options
from tests.conformance.registry import Case, kind


@kind("aaak")
def run_aaak(case: Case) -> str:
    """Encode one text."""
    return encode(case.input)


@kind("graph_extract")
def run_graph_extract(case: Case) -> dict[str, Any]:
    """Read gist and statements out of one text."""
    now_ms = case.clock().now_ms()
    gist = extract_gist(case.input, "m", now_ms)
    return {
        "gist": {
            "id": gist.id,
            "text": gist.text,
            "timestamp": gist.timestamp,
            "participants": list(gist.participants),
            "location": gist.location,
            "emotion": gist.emotion,
            "timeScope": gist.time_scope,
        },
        "facts": [
            {
                "id": fact.id,
                "subject": fact.subject,
                "predicate": fact.predicate,
                "object": fact.object,
                "timestamp": fact.timestamp,
                "confidence": fact.confidence,
                "temporalQualifier": None,
            }
            for fact in extract_statements(case.input, "m", now_ms)
        ],
    }


class Replay:
    """The steps of one consolidation case."""

    def __init__(self, case: Case) -> None:
        self.given = case.input
        self.clock = case.clock(case.input["setup"]["now"])
        self.ids = FixedIds(case.input["setup"]["id_counter"])
        config = engine_config(case.input["env"], no_embeddings=True)
        self.bank = Bank.open(case.scratch / "proj.db", "proj", clock=self.clock, ids=self.ids, config=config)
        self.names = Names()

    def run(self) -> dict[str, Any]:
        self.play(self.given["setup"]["steps"])
        before = self.seen()
        if not isinstance(self.given["before"], str) and (
            found := first_difference(before, self.given["before"], "setup")
        ):
            raise AssertionError(found)
        self.ids.last = self.given["id_counter"]
        results = self.play(self.given["steps"])
        after = self.seen()
        self.bank.close()
        return {"results": self.names.hide(results), "after": after, "now": iso(self.clock.now_ms())}

    def seen(self) -> dict[str, Any]:
        dump = tables(self.bank)
        self.names.see(dump)
        return shown(dump, self.names)

    def play(self, steps: list[dict[str, Any]]) -> list[Any]:
        results: dict[int, Any] = {}
        for step in map(written_out, steps):
            result = self.step(step)
            drain(self.bank)
            if "result" in step:
                results[step["result"]] = result
        return [results[at] for at in sorted(results)]

    def step(self, step: dict[str, Any]) -> Any:
        op = step["op"]
        if op == "remember":
            found = remember(self.bank, step["content"], remember_options(step["options"]))
            return "string" if step.get("as") == "type" and isinstance(found, str) else found
        if op == "remember_series":
            for number in range(step["count"]):
                remember(self.bank, f"{step['content_prefix']}{number}", remember_options(step["options"]))
                self.clock.advance(step["every_ms"])
            return None
        if op == "flush":
            return None
        if op in {"sleep", "sleep_all", "degrade"}:
            act = {"sleep": sleep, "sleep_all": sleep_all, "degrade": degrade}[op]
            return act(self.bank, dry_run=step["dry_run"])
        if op == "sql":
            with self.bank.transaction() as connection:
                connection.execute(step["statement"], step["args"])
            return None
        if op == "query":
            return {key: self.bank.connection.execute(select).fetchone()[0] for key, select in step["values"].items()}
        if op == "advance":
            self.clock.advance(step["ms"])
            return None
        raise ValueError(f"unknown step {op}")


@kind("consolidation")
def run_consolidation(case: Case) -> dict[str, Any]:
    """Play the steps of a case and show every table."""
    return Replay(case).run()
