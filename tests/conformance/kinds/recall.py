"""Recall and reflect on the recorded banks, the engine's own options, and the engine's environment."""

from __future__ import annotations

import gzip
import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipy_memory import text
from ipy_memory.backends.mnemopi.config import engine_config
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.recall.facts import fact_recall
from ipy_memory.backends.mnemopi.recall.multi_bank import ScopedAnswer, TargetAnswer, scoped_recall
from ipy_memory.backends.mnemopi.recall.scoring import normalised_weights
from ipy_memory.backends.mnemopi.recall.single_bank import RecallOptions, recall, recall_enhanced, touch
from ipy_memory.conversation import strip_protocol
from ipy_memory.errors import MemoryToolkitError, ScopedRecallError
from ipy_memory.jscompat.strings import cut, number_text, round4, units

from ..registry import Case, kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ipy_memory.clock import FixedClock
    from ipy_memory.model import Hit

_ENV_FIELDS = {
    "vectorWeight": "vector_weight",
    "ftsWeight": "fts_weight",
    "importanceWeight": "importance_weight",
    "temporalHalflifeHours": "halflife_hours",
    "maxEpisodeChars": "max_episode_chars",
    "embeddingsDisabled": "no_embeddings",
    "polyphonicRecallEnabled": "polyphonic_recall",
    "enhancedRecallEnabled": "enhanced_recall",
    "proactiveLinkingEnabled": "proactive_linking",
    "dataDir": "data_dir",
}


@kind("settings_env_core")
def engine_environment(case: Case) -> Any:
    if case.input["fn"] == "normalizedRecallWeights":
        return list(normalised_weights(*case.input["weights"]))
    config = engine_config({"HOME": "/home/user", **case.input["env"]})
    value = getattr(config, _ENV_FIELDS[case.input["fn"]])
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else number_text(value)


@dataclass(frozen=True)
class RecordedEmbedder:
    """Answers the recorded vectors; a query that was not recorded has none."""

    vectors: Mapping[str, list[float]]
    model: str = "recorded"

    def embed(self, texts: list[str]) -> list[list[float] | None]:
        return [self.vectors.get(one) for one in texts]

    def embed_query(self, query: str) -> list[float] | None:
        return self.vectors.get(query)


def unpack(corpus: Path, bankset: str, target: Path) -> None:
    """Put fresh copies of a bankset's files into a folder."""
    for manifest in sorted((corpus / "banks").glob("manifest*.json")):
        for entry in json.loads(manifest.read_text(encoding="utf-8"))["files"]:
            if entry["bankset"] != bankset:
                continue
            path = target / entry["unpack_to"]
            path.parent.mkdir(parents=True, exist_ok=True)
            opener = gzip.open if entry["gzip"] else open
            with opener(corpus / entry["file"], "rb") as packed, path.open("wb") as plain:
                shutil.copyfileobj(packed, plain)


@contextmanager
def open_banks(case: Case, names: list[str], shared: str) -> Iterator[dict[str, Bank]]:
    """Open fresh copies of a case's banks."""
    unpack(case.corpus, case.input["bankset"], case.scratch)
    vectors = case.input.get("query_embeddings")
    banks = {}
    for name in names:
        path = case.scratch / "mnemopi.db" if name == shared else case.scratch / "banks" / name / "mnemopi.db"
        embedder = RecordedEmbedder(vectors) if vectors is not None else None
        banks[name] = Bank.open(path, name, clock=case.clock(), embedder=embedder)
    try:
        yield banks
    finally:
        for bank in banks.values():
            bank.close()


class Scene:
    """The open banks of one recall case and the tools on them."""

    def __init__(self, case: Case, banks: Mapping[str, Bank]) -> None:
        self.banks = [banks[name] for name in case.input["recallBanks"]]
        self.input = case.input
        self.clock: FixedClock = case.clock()

    def ask(self, query: str) -> ScopedAnswer:
        tagged = self.input["scoping"] == "per-project-tagged"
        return scoped_recall(
            self.banks,
            query,
            self.input["recallLimit"],
            project_bank=self.input["retainBank"] if tagged else None,
            shared_bank=self.input["globalBank"] if tagged else None,
        )

    def recalled(self, answer: ScopedAnswer) -> dict[str, Any]:
        if not answer.hits:
            return {"text": text.NO_MEMORIES, "useless": True}
        return {"text": text.recall_text([text.mnemopi_bullet(hit) for hit in answer.hits], self.clock.now_ms())}

    def reflected(self, answer: ScopedAnswer) -> dict[str, Any]:
        return {"text": text.reflect_text(answer.hits) if answer.hits else text.NO_REFLECTION}

    def counts(self) -> dict[str, int]:
        return {
            f"{bank.name}/{table}/{id_}": count
            for bank in self.banks
            for table in ("working_memory", "episodic_memory")
            for id_, count in bank.connection.execute(f"SELECT id, recall_count FROM {table}")
        }


@kind("recall/*")
def recall_case(case: Case) -> Any:
    with open_banks(case, case.input["recallBanks"], case.input["globalBank"]) as banks:
        scene = Scene(case, banks)
        before = scene.counts()
        answer = scene.ask(case.input["query"])
        changed = sorted(key for key, count in scene.counts().items() if count != before[key])
        found: dict[str, Any] = {
            "per_target": [_target(one, case.input["recallLimit"]) for one in answer.per_target],
            "merged": [
                {"id": hit.id, "score": hit.score, "tier": hit.tier, "content_length": units(hit.content)}
                for hit in answer.hits
            ],
            "recall": scene.recalled(answer),
            "reflect": scene.reflected(scene.ask(case.input["query"])),
            "recall_counts_incremented": changed,
        }
        if "context" in case.input:
            again = scene.ask(text.reflect_query(case.input["query"], case.input["context"]))
            found["reflect_with_context"] = scene.reflected(again)
            found["reflect_with_context_queries"] = [{"bank": t.bank, "query": t.query} for t in again.per_target]
        hits = scene.ask(case.input["query"]).hits
        found["block"] = text.mnemopi_block(hits, scene.clock.now_ms(), strip_protocol) if hits else None
        return found


@kind("recall/failures")
def failing_case(case: Case) -> Any:
    with open_banks(case, case.input["recallBanks"], case.input["globalBank"]) as banks:
        for name in case.input["drop"]:
            banks[name].connection.execute("DROP TABLE working_memory")
        scene = Scene(case, banks)
        found: dict[str, Any] = {}
        for tool, shown in (("recall", scene.recalled), ("reflect", scene.reflected)):
            try:
                answer = scene.ask(case.input["query"])
            except MemoryToolkitError as error:
                found[tool] = {"error": str(error), "error_name": _javascript_name(error)}
                failed = error.exceptions if isinstance(error, ScopedRecallError) else [error]
                targets = [
                    {"bank": bank.name, "query": case.input["query"], "error": str(one)}
                    for bank, one in zip(scene.banks, failed, strict=True)
                ]
            else:
                found[tool] = shown(answer)
                targets = [_short_target(one) for one in answer.per_target]
            found.setdefault("per_target", targets)
        return found


def _javascript_name(error: Exception) -> str:
    return "AggregateError" if isinstance(error, ScopedRecallError) else "SQLiteError"


def _short_target(target: TargetAnswer) -> dict[str, Any]:
    head = {"bank": target.bank, "query": target.query}
    if target.error is not None:
        return head | {"error": str(target.error)}
    return head | {"results": [{"id": h.id, "score": h.score, "tier": h.tier} for h in target.hits]}


def _target(target: TargetAnswer, limit: int) -> dict[str, Any]:
    return {
        "bank": target.bank,
        "query": target.query,
        "topK": limit,
        "options": {"includeFacts": True, "channelId": target.bank},
        **({"error": str(target.error)} if target.error else {"results": [engine_result(hit) for hit in target.hits]}),
    }


def engine_result(hit: Hit) -> dict[str, Any]:
    parts = hit.parts
    shared = {
        "id": hit.id,
        "content": hit.content,
        "source": hit.source,
        "timestamp": hit.timestamp,
        "score": hit.score,
        "tier": hit.tier,
        "tier_label": hit.tier,
        "keyword_score": parts.keyword,
        "fts_score": parts.fts,
        "importance_score": parts.importance,
        "explanation": hit.explanation,
    }
    if hit.fact is not None:
        return shared | {"fact_id": hit.id, "subject": hit.fact[0], "predicate": hit.fact[1]}
    if hit.tier == "episodic":
        shared["degradation_tier"] = hit.degradation_tier
    return shared | {
        "importance": hit.importance,
        "rank": hit.rank,
        "dense_score": parts.dense,
        "recency_score": parts.recency,
        "temporal_score": parts.temporal,
        "recall_count": hit.recall_count,
        "last_recalled": hit.last_recalled,
        "truncated": hit.truncated,
        "full_length": hit.full_length,
        "veracity": hit.veracity,
        "memory_type": hit.type,
        "session_id": hit.session_id,
        "scope": hit.scope,
    }


_OPTION_NAMES = {
    "fromDate": "from_date",
    "toDate": "to_date",
    "source": "source",
    "authorId": "author_id",
    "authorType": "author_type",
    "channelId": "channel_id",
    "includeWorking": "include_working",
    "includeFacts": "include_facts",
    "queryTime": "query_time",
    "temporalWeight": "temporal_weight",
    "temporalHalflife": "temporal_halflife",
    "contentPreviewChars": "content_preview_chars",
}


def engine_options(given: Mapping[str, Any]) -> RecallOptions:
    weights = tuple(given.get(name) for name in ("vecWeight", "ftsWeight", "importanceWeight"))
    plain = {_OPTION_NAMES[name]: value for name, value in given.items() if name in _OPTION_NAMES}
    return RecallOptions(weights=weights, **plain)  # type: ignore[arg-type]


@kind("engine_recall")
def engine_case(case: Case) -> Any:
    asked = case.input
    if "bankset" not in asked:
        return text.context_text([])
    with open_banks(case, [asked["bank"]], "default") as banks:
        bank = banks[asked["bank"]]
        options = engine_options(asked.get("options", {}))
        if asked["fn"] == "beam.factRecall":
            return [_cut(hit, case.expected) for hit in fact_recall(bank, asked["query"], asked["topK"])]
        if asked["fn"] == "recallEnhanced":
            options = engine_options({"includeFacts": False} | dict(asked.get("options", {})))
            return [_cut(h, case.expected) for h in recall_enhanced(bank, asked["query"], asked["topK"], options)]
        hits = recall(bank, asked["query"], asked["topK"], options)
        touch(bank, {(hit.tier or "", hit.id or ""): 1 for hit in hits})
        if "formatContext" in asked["fn"]:
            return _overview(hits)
        return [_cut(hit, case.expected) for hit in hits]


def _overview(hits: list[Hit]) -> str:
    """Return the sections of a reflection in the engine's own JSON form, which no tool shows."""
    parts = text.context_sections(hits)
    named = dict(zip(("top_facts", "supporting_context", "recent_memories"), parts, strict=True))
    return json.dumps(named | {"total_memories": sum(map(len, parts))}, indent=2, ensure_ascii=False)


def _cut(hit: Hit, expected: list[dict[str, Any]]) -> dict[str, Any]:
    full = engine_result(hit) | {"content_head": cut(hit.content, 0, 40), "content_length": units(hit.content)}
    parts = hit.parts
    if hit.fact is not None:
        full["voice_scores"] = {"keyword": parts.keyword, "fts": parts.fts, "importance": parts.importance}
    else:
        full["voice_scores"] = {
            "vec": parts.dense,
            "fts": parts.fts,
            "keyword": parts.keyword,
            "importance": round4(parts.importance or 0),
            "recency_decay": parts.recency,
            "temporal": parts.temporal,
        }
    keys = {key for one in expected for key in one}
    missing = {"truncated", "full_length", "dense_score", "recency_score", "temporal_score"}
    absent = missing if hit.fact is not None else {"subject", "predicate"}
    return {key: value for key, value in full.items() if key in keys - absent}
