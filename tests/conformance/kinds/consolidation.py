"""Adapters for consolidation and vectors: the short form, the graph's reading, sleep and embedding replays."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import httpx

from ipy_memory.backends.mnemopi.config import engine_config
from ipy_memory.backends.mnemopi.consolidation.degrade import degrade
from ipy_memory.backends.mnemopi.consolidation.episodes import encode
from ipy_memory.backends.mnemopi.consolidation.sleep import sleep, sleep_all
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.embeddings.index import CUT_MARK, reconcile
from ipy_memory.backends.mnemopi.embeddings.providers import HttpEmbedder
from ipy_memory.backends.mnemopi.recall.single_bank import recall
from ipy_memory.backends.mnemopi.store.graph import extract_gist, extract_statements
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.memories import invalidate, update
from ipy_memory.backends.mnemopi.store.write import remember
from ipy_memory.clock import FixedIds
from ipy_memory.jscompat import strings as js
from ipy_memory.jscompat.dates import iso
from tests.conformance.compare import first_difference
from tests.conformance.dump import Names, shown, tables
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
        for step in steps:
            result = self.step(step)
            drain(self.bank)
            if "result" in step:
                results[step["result"]] = result
        return [results[at] for at in sorted(results)]

    def step(self, step: dict[str, Any]) -> Any:
        op = step["op"]
        if op == "remember":
            found = remember(self.bank, step["content"], remember_options(step.get("options")))
            return "string" if step.get("as") == "type" and isinstance(found, str) else found
        if op == "remember_series":
            for number in range(step["count"]):
                remember(self.bank, f"{step['content_prefix']}{number}", remember_options(step.get("options")))
                self.clock.advance(step["every_ms"])
            return None
        if op == "flush":
            return None
        if op in {"sleep", "sleep_all", "degrade"}:
            act = {"sleep": sleep, "sleep_all": sleep_all, "degrade": degrade}[op]
            return act(self.bank, dry_run=step.get("dry_run", False))
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


class Endpoint:
    """A stand-in for an embedding endpoint: records requests and answers by its one rule."""

    def __init__(self, rules: list[dict[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.rule = rules[0]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.requests.append(
            {
                "path": request.url.path,
                "auth": request.headers.get("authorization"),
                "model": body["model"],
                "input": [_input_shown(text) for text in body["input"]],
                "keys": list(body),
            }
        )
        if "vectors" not in self.rule:
            return httpx.Response(self.rule.get("status", 200), text=self.rule["text"])
        texts = body["input"][:-1] if self.rule["vectors"] == "all but the last" else body["input"]
        data = [{"object": "embedding", "index": at, "embedding": stub_vector(text)} for at, text in enumerate(texts)]
        return httpx.Response(200, json={"object": "list", "model": body["model"], "data": data})


def stub_vector(text: str) -> list[float]:
    """Return the recorded endpoint's vector: hashed words, 32 numbers, length 1."""
    vector = [0.0] * 32
    for token in re.findall(r"[^\W_]+", text.lower()):
        value = 0x811C9DC5
        for byte in token.encode("utf-8"):
            value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
        vector[value % 32] += 1 if value >> 16 & 1 else -1
    length = math.sqrt(sum(part * part for part in vector)) or 1.0
    return [part / length for part in vector]


def _input_shown(text: str) -> Any:
    size = js.units(text)
    if size <= 300:
        return text
    return {
        "$len": size,
        "$head": js.cut(text, 0, 30),
        "$tail": js.cut(text, size - 30),
        "$has_marker": CUT_MARK in text,
    }


class VectorReplay:
    """The steps of one embeddings case. The query cache is the process's own, as it was when recorded."""

    def __init__(self, case: Case) -> None:
        self.given = case.input
        self.path = case.scratch / "proj.db"
        self.clock = case.clock()
        self.ids = FixedIds()
        self.endpoint = Endpoint(case.input["responses"])
        self.options = {"embeddingModel": "stub-32", **case.input["options"]}
        self.labels: dict[str, str] = {}
        self.out: dict[str, Any] = {}
        self.bank = self.opened()

    def opened(self) -> Bank:
        embedder = HttpEmbedder(
            self.options["embeddingModel"],
            "http://127.0.0.1/v1",
            self.options.get("embeddingApiKey"),
            transport=httpx.MockTransport(self.endpoint),
            wait=lambda _seconds: None,
        )
        return Bank.open(self.path, "proj", clock=self.clock, ids=self.ids, embedder=embedder)

    def run(self) -> dict[str, Any]:
        for step in self.given["steps"]:
            self.step(step)
            drain(self.bank)
        stored = self.bank.connection.execute(
            "SELECT COALESCE(w.content, e.content), v.model, v.embedding_json FROM memory_embeddings v"
            " LEFT JOIN working_memory w ON w.id = v.memory_id LEFT JOIN episodic_memory e ON e.id = v.memory_id"
            " ORDER BY 1"
        ).fetchall()
        self.bank.close()
        return {
            "requests": self.endpoint.requests,
            "stored": [
                {"content": js.cut(content, 0, 60), "model": model, "embedding_json": vector}
                for content, model, vector in stored
            ],
            "out": self.out,
        }

    def step(self, step: dict[str, Any]) -> None:
        op = step["op"]
        if op == "remember":
            found = remember(self.bank, step["content"], remember_options(step.get("options")))
            if "label" in step:
                self.labels[step["label"]] = found
        elif op == "update":
            update(
                self.bank,
                self.labels[step["label"]],
                content=step.get("content"),
                importance=step.get("importance"),
            )
        elif op == "invalidate":
            invalidate(self.bank, self.labels[step["label"]], step["replacement_id"])
        elif op == "recall":
            hits = recall(self.bank, step["query"], step["top_k"])
            shown = [[hit.content, hit.score, hit.parts.dense] for hit in hits]
            self.out[step["out"]] = len(shown) if step.get("as") == "count" else shown
        elif op == "sleep":
            sleep(self.bank)
        elif op == "advance":
            self.clock.advance(step["ms"])
        elif op == "reopen":
            self.bank.close()
            self.options.update(step["options"])
            self.bank = self.opened()
            if self.options.get("reconcile") is not False:
                reconcile(self.bank)
        elif op == "responses":
            self.endpoint.rule = step["responses"][0]
        elif op != "flush":
            raise ValueError(f"unknown step {op}")


@kind("embeddings_http")
def run_embeddings(case: Case) -> dict[str, Any]:
    """Play the steps of a case; show the requests and the stored vectors."""
    return VectorReplay(case).run()
