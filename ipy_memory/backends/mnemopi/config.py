"""The engine's own numbers and switches, read from the environment and the settings."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ipy_memory.jscompat.strings import WHITESPACE, trim

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEADING_NUMBER = re.compile(rf"[{WHITESPACE}]*([+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))", re.ASCII)
_LEADING_INTEGER = re.compile(rf"[{WHITESPACE}]*([+-]?\d+)", re.ASCII)
_SMALLEST_PAGE, _LARGEST_PAGE = 512, 65536


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What steers one engine (defaults as in the real system).

    ``polyphonic_recall`` and ``enhanced_recall`` are read and shown, but have no effect on recall; ``data_dir`` is
    where the engine keeps banks that no agent gives a place. ``page_size`` is in bytes, ``None`` for SQLite's own.
    """

    vector_weight: float = 0.5
    fts_weight: float = 0.3
    importance_weight: float = 0.2
    halflife_hours: float = 24
    max_episode_chars: int = 100_000
    sleep_batch: int = 5000
    tier2_days: float = 30
    tier3_days: float = 180
    degrade_batch: int = 100
    tier3_max_chars: int = 300
    page_size: int | None = None
    proactive_linking: bool = False
    no_embeddings: bool = False
    polyphonic_recall: bool = False
    enhanced_recall: bool = False
    data_dir: str = ""


def engine_config(
    env: Mapping[str, str],
    *,
    proactive_linking: bool = False,
    no_embeddings: bool = False,
    polyphonic_recall: bool = False,
    enhanced_recall: bool = False,
) -> EngineConfig:
    """Return the engine's config from the environment, over what the settings say.

    Parameters
    ----------
    env
        Environment variables; an empty value counts as unset.
    proactive_linking, no_embeddings, polyphonic_recall, enhanced_recall
        The settings. ``MNEMOPI_PROACTIVE_LINKING``, if set at all, overrides its setting; the other variables
        can only switch on.
    """
    usual = EngineConfig()
    linking = env.get("MNEMOPI_PROACTIVE_LINKING", "")
    return EngineConfig(
        vector_weight=_number(env, "MNEMOPI_VEC_WEIGHT", usual.vector_weight),
        fts_weight=_number(env, "MNEMOPI_FTS_WEIGHT", usual.fts_weight),
        importance_weight=_number(env, "MNEMOPI_IMPORTANCE_WEIGHT", usual.importance_weight),
        halflife_hours=_number(env, "MNEMOPI_TEMPORAL_HALFLIFE_HOURS", usual.halflife_hours),
        max_episode_chars=max(1, _integer(env, "MNEMOPI_MAX_EPISODE_CHARS", usual.max_episode_chars)),
        sleep_batch=_integer(env, "MNEMOPI_SLEEP_BATCH", usual.sleep_batch),
        tier2_days=_number(env, "MNEMOPI_TIER2_DAYS", usual.tier2_days),
        tier3_days=_number(env, "MNEMOPI_TIER3_DAYS", usual.tier3_days),
        degrade_batch=_integer(env, "MNEMOPI_DEGRADE_BATCH", usual.degrade_batch),
        tier3_max_chars=_integer(env, "MNEMOPI_TIER3_MAX_CHARS", usual.tier3_max_chars),
        page_size=_page_size(env.get("MNEMOPI_DB_PAGE_SIZE", "")),
        proactive_linking=trim(linking) == "1" if linking else proactive_linking,
        no_embeddings=no_embeddings or bool(env.get("MNEMOPI_NO_EMBEDDINGS")),
        polyphonic_recall=polyphonic_recall or _switch(env, "MNEMOPI_POLYPHONIC_RECALL"),
        enhanced_recall=enhanced_recall or _switch(env, "MNEMOPI_ENHANCED_RECALL"),
        data_dir=_data_dir(env),
    )


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    found = _LEADING_NUMBER.match(env.get(name, ""))
    value = float(found.group(1)) if found else math.nan
    return value if math.isfinite(value) else default


def _integer(env: Mapping[str, str], name: str, default: int) -> int:
    found = _LEADING_INTEGER.match(env.get(name, ""))
    return int(found.group(1)) if found else default


def _switch(env: Mapping[str, str], name: str) -> bool:
    return trim(env.get(name, "")) == "1"


def _page_size(text: str) -> int | None:
    if trim(text).lower() == "os":
        from mmap import PAGESIZE

        size = PAGESIZE
    else:
        size = int(trim(text)) if re.fullmatch(r"\d{1,6}", trim(text), re.ASCII) else 0
    return size if _SMALLEST_PAGE <= size <= _LARGEST_PAGE and size & (size - 1) == 0 else None


def _data_dir(env: Mapping[str, str]) -> str:
    given = env.get("MNEMOPI_DATA_DIR", "")
    if trim(given):
        return given
    return str(PurePosixPath(env.get("HOME", "~")) / ".hermes" / "mnemopi" / "data")
