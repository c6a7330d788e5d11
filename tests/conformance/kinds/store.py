"""Adapters for what is written: redaction, extraction, and retain replays."""

from __future__ import annotations

from typing import Any

from ipy_memory import text
from ipy_memory.backends.base import Edit
from ipy_memory.backends.mnemopi.config import EngineConfig
from ipy_memory.backends.mnemopi.consolidation.sleep import sleep
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.retention import Retention
from ipy_memory.backends.mnemopi.store.edit import edit
from ipy_memory.backends.mnemopi.store.extraction import FACT_LIMIT, heuristic_facts, parse_answer
from ipy_memory.backends.mnemopi.store.jobs import drain
from ipy_memory.backends.mnemopi.store.write import RememberOptions, redact_write, remember, retain_items
from ipy_memory.clock import FixedIds
from ipy_memory.conversation import messages_of
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.model import RetainItem
from ipy_memory.redact import redact
from ipy_memory.settings.table import SETTINGS
from tests.conformance.dump import Names, see_all, shown, tables
from tests.conformance.registry import Case, kind


@kind("redact")
def run_redact(case: Case) -> str:
    """Redact one text."""
    return redact(case.input)


@kind("extract_heuristic")
def run_heuristic(case: Case) -> list[str]:
    """Extract by sentence patterns."""
    return heuristic_facts(case.input)


@kind("extract_llm_output")
def run_llm_output(case: Case) -> dict[str, Any]:
    """Read a language model's answer."""
    found = parse_answer(case.input)
    categories = {name: list(getattr(found, name)) for name in ("facts", "instructions", "preferences", "timelines")}
    kg = [dict(zip(("subject", "predicate", "object"), triple, strict=True)) for triple in found.kg]
    return {"categories": {**categories, "kg": kg}, "flat": list(found.sentences()[:FACT_LIMIT])}


EVERY = "mnemopi.retainEveryNTurns"
OPTION_NAMES = {
    "source": "source",
    "importance": "importance",
    "timestamp": "timestamp",
    "scope": "scope",
    "veracity": "veracity",
    "memoryType": "memory_type",
    "metadata": "metadata",
    "trustTier": "trust_tier",
    "validUntil": "valid_until",
    "extract": "extract",
    "extractEntities": "extract_entities",
    "extractText": "extract_text",
    "embedText": "embed_text",
    "extract_text": "extract_text",
    "embed_text": "embed_text",
}


def remember_options(given: dict[str, Any] | None, *, trim: bool = True) -> RememberOptions:
    """Return the engine's options from the recorded camelCase ones; a null counts as not given."""
    known = {OPTION_NAMES[name]: value for name, value in (given or {}).items() if value is not None}
    return RememberOptions(**known, trim=trim)


@kind("redact_write")
def run_redact_write(case: Case) -> list[Any]:
    """Redact one write: the product's way for a text with options, whatever else was given stays."""
    memory, options = case.input["memory"], case.input["options"]
    given = {name: value for name, value in (options or {}).items() if name in OPTION_NAMES and name != "scope"}
    content = memory["content"] if isinstance(memory, dict) else memory
    content, _, _ = redact_write(content, remember_options({}))
    redacted = {}
    for name, value in given.items():  # one by one: some have two spellings
        _, written, _ = redact_write("", remember_options({name: value}))
        redacted[name] = getattr(written, OPTION_NAMES[name])
    if isinstance(memory, dict):
        return [{**memory, "content": content}, options]
    return [content, None if options is None else {**options, **redacted}]


class Replay:
    """The steps of one retain case."""

    def __init__(self, case: Case) -> None:
        given = case.input
        self.case, self.clock, self.ids = case, case.clock(), FixedIds(given["id_counter"])
        config, answer = given["config"], given["llm_answer"]
        self.retain_bank = config["retainBank"]
        names = dict.fromkeys([config["retainBank"], *config["recallBanks"], given["shared_bank"]])
        in_scope = [name for name in names if name in {config["retainBank"], *config["recallBanks"]}]
        self.banks = {
            name: Bank.open(
                case.scratch / f"{name}.db",
                name,
                clock=self.clock,
                ids=self.ids,
                config=EngineConfig(proactive_linking=config["proactiveLinking"], no_embeddings=True),
                completion=None if answer is None else lambda _prompt: answer,
            )
            for name in in_scope
        }
        self.names = Names()
        self.log: list[Any] = next((s["entries"] for s in given["steps"] if s["op"] == "entries"), [])
        settings: dict[str, Any] = {EVERY: SETTINGS[EVERY].default} | (given.get("settings") or {})
        self.retention = Retention(
            lambda: self.bank,
            session_id=given["session_id"],
            cwd=given["cwd"],
            every=settings[EVERY],
        )

    @property
    def bank(self) -> Bank:
        return self.banks[self.retain_bank]

    def run(self) -> dict[str, Any]:
        results = []
        for step in self.case.input["steps"]:
            if "now" in step:
                self.clock.set(step["now"])
            result = self.step(self.names.real(step))
            for bank in self.banks.values():
                drain(bank)
            see_all(self.names, [(b, "" if n == self.retain_bank else f"{n}:") for n, b in self.banks.items()])
            results.append(self.names.hide(result))
        dumps = {name: shown(tables(bank), self.names) for name, bank in self.banks.items()}
        for bank in self.banks.values():
            bank.close()
        return {"results": results, "tables": dumps}

    def step(self, step: dict[str, Any]) -> Any:
        op = step["op"]
        if op == "retain":
            items = [RetainItem(item["content"], item.get("context")) for item in step["items"]]
            given = self.case.input
            receipt = retain_items(self.bank, items, session_id=given["session_id"], cwd=given["cwd"], trim_old=True)
            return {"text": text.stored_text(receipt.count), "details": {"count": receipt.count}}
        if op == "remember":
            try:
                return remember(self.bank, step["content"], remember_options(step.get("options")))
            except MemoryToolkitError:
                return None
        if op == "remember_in_bank":
            return remember(self.banks[step["bank"]], step["content"], RememberOptions(scope="bank", trim=True))
        if op == "memory_edit":
            given = step["params"]
            try:
                edited = edit(list(self.banks.values()), Edit(**given))
            except MemoryToolkitError as error:
                return {"error": error.message, "error_name": "Error"}
            return {"text": edited.text, "details": edited.details}
        if op == "sleep":
            return sleep(self.banks[step["bank"]])
        if op == "entries":
            return None
        if op == "reset_tracking":
            self.retention.reset()
            return 0
        messages = messages_of(self.log[: step["entries_seen"]])
        if op.startswith("agent_end"):
            self.retention.end_turn(messages)
        elif op.startswith("force_retain"):
            self.retention.force(messages)
        else:
            raise ValueError(f"unknown step {op}")
        return self.retention.last_turn


@kind("retain")
def run_retain(case: Case) -> dict[str, Any]:
    """Play the steps of a case and show every table."""
    return Replay(case).run()
